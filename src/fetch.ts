// Speaking HTTP as a client: a request that is never sent twice by itself, replies of a bounded size, and errors that
// name no secret. Whoever asks (models, tools, the store bridge) takes this; what is asked, and how often, is theirs.

import { limits } from "./limits.ts";

/** The platform's `fetch`, or whatever stands in for it. */
export type Fetch = (input: string | URL, init?: RequestInit) => Promise<Response>;

/** Methods that may be sent again without harm. */
const repeatable = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);

/**
 * A `fetch` whose POST reaches a server at most once.
 *
 * A runtime may send a request again by itself when a connection that it reused is dropped without a reply (seen on
 * Deno 2.9), and a tool call or a paid answer is then made twice. It can only do so with a body that it can read again,
 * so the body goes as a stream. Such a drop is then an error that the caller sees, as it should.
 */
export function onceFetch(fetch: Fetch): Fetch {
  return async (input, init = {}) => {
    const method = (init.method ?? "GET").toUpperCase();
    if (repeatable.has(method)) return await fetch(input, init);
    const headers = new Headers(init.headers);
    let body = init.body ?? "";
    if (!(body instanceof ReadableStream)) {
      const whole = new Response(body);
      const type = whole.headers.get("content-type");
      if (type && !headers.has("content-type")) headers.set("content-type", type);
      const bytes = new Uint8Array(await whole.arrayBuffer());
      // A runtime that honours it spares the server a chunked body.
      headers.set("content-length", String(bytes.byteLength));
      body = oneChunk(bytes);
    }
    // `duplex` is missing in the types of some runtimes and required by all that take a stream.
    return await fetch(input, { ...init, method, headers, body, duplex: "half" } as RequestInit);
  };
}

function oneChunk(bytes: Uint8Array): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      if (bytes.byteLength > 0) controller.enqueue(bytes);
      controller.close();
    },
  });
}

/** A signal that fires at `ms`, or with `signal`. Its reason is then a `TimeoutError`, or that of `signal`. */
export function within(ms: number, signal?: AbortSignal): AbortSignal {
  const late = AbortSignal.timeout(ms);
  return signal ? AbortSignal.any([signal, late]) : late;
}

/** A reply was longer than its reader takes. */
export class ReplyTooLong extends Error {
  override readonly name = "ReplyTooLong";
}

/** The text of a reply, at most `bytesMax` long: past it the rest is dropped, or, with `strict`, `ReplyTooLong` is thrown. */
export async function readText(
  response: Response,
  bytesMax: number,
  options: { strict?: boolean } = {},
): Promise<string> {
  if (!response.body) return "";
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "", bytes = 0;
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return text + decoder.decode();
      bytes += value.byteLength;
      if (bytes > bytesMax) {
        if (options.strict) throw new ReplyTooLong(`over ${bytesMax} bytes`);
        return text + decoder.decode(value.subarray(0, value.byteLength - (bytes - bytesMax)));
      }
      text += decoder.decode(value, { stream: true });
    }
  } finally {
    // Ends the connection where the reply was not read to its end.
    reader.cancel().catch(() => {});
  }
}

/** What GET says there as JSON; undefined where nothing usable answers in time. For probes: never throws. */
export async function getJson(
  fetch: Fetch,
  url: string,
  options: { ms: number; headers?: Record<string, string>; signal?: AbortSignal },
): Promise<{ status: number; value?: unknown; why?: string }> {
  try {
    const response = await fetch(url, {
      headers: { accept: "application/json", ...options.headers },
      redirect: "manual",
      signal: within(options.ms, options.signal),
    });
    const text = await readText(response, limits.modelListBytesMax, { strict: true });
    if (!response.ok) return { status: response.status, why: `HTTP ${response.status}` };
    try {
      return { status: response.status, value: JSON.parse(text) };
    } catch {
      return { status: response.status, why: "no JSON" };
    }
  } catch (error) {
    return { status: 0, why: sayWhy(error) };
  }
}

/**
 * Where `path` is under a base address, and the headers its user name and password stand for: an address with a password
 * in it is refused by `fetch`, which would name it. A query in the base stays. Undefined where it is no http address.
 */
export function addressUnder(
  base: string,
  path: string,
): { url: string; headers: Record<string, string> } | undefined {
  const url = URL.parse(base);
  if (!url || !/^https?:$/.test(url.protocol)) return undefined;
  const headers: Record<string, string> = {};
  if (url.username || url.password) {
    const pair = new TextEncoder().encode(
      `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`,
    );
    headers.authorization = `Basic ${btoa(String.fromCharCode(...pair))}`;
    url.username = url.password = "";
  }
  url.pathname = url.pathname.replace(/\/+$/, "") + path;
  url.hash = "";
  return { url: url.href, headers };
}

/** An address as it may be told: its origin. A path, a query and a user may all hold a secret. */
export function originOf(address: string): string {
  return URL.parse(address)?.origin ?? "an address that is no URL";
}

/** What went wrong with a request, in words without an address's path, query or password, or any of `secrets`. */
export function sayWhy(error: unknown, secrets: readonly string[] = []): string {
  if (error instanceof ReplyTooLong) return `the reply is ${error.message}`;
  const name = error instanceof Error || error instanceof DOMException ? error.name : "";
  if (name === "TimeoutError") return "no reply in time";
  if (name === "AbortError") return "it was stopped";
  const texts: string[] = [];
  for (let at: unknown = error; at instanceof Error && texts.length < 4; at = at.cause) {
    const code = (at as { code?: unknown }).code;
    texts.push(`${typeof code === "string" ? code : ""} ${at.message}`);
  }
  const all = texts.join(" ");
  for (const [pattern, say] of knownErrors) if (pattern.test(all)) return say;
  return hide(texts.at(-1)?.trim() || String(error), secrets);
}

const knownErrors: [RegExp, string][] = [
  [/ECONNREFUSED|connection refused/i, "the connection was refused"],
  [/ENOTFOUND|EAI_AGAIN|dns error|failed to lookup/i, "its host's name is not known"],
  [
    /ECONNRESET|UND_ERR_SOCKET|connection reset|connection closed|other side closed|unexpected end|IncompleteMessage/i,
    "the connection was dropped",
  ],
  [/EHOSTUNREACH|ENETUNREACH|unreachable/i, "its host cannot be reached"],
  [/ETIMEDOUT|UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT|timed out/i, "the connection timed out"],
  [/CERT_|certificate|SELF_SIGNED|UnknownIssuer/i, "its certificate is not accepted"],
  [/requests to port|bad port/i, "its port is one that no request may go to"],
];

/** `text` on one line with every address cut to its origin and every secret masked. */
export function hide(text: string, secrets: readonly string[] = []): string {
  let hidden = text.replace(/\bhttps?:\/\/[^\s"'<>)\]]+/g, originOf);
  for (const secret of secrets) if (secret.length >= 4) hidden = hidden.replaceAll(secret, "…");
  return hidden.replace(/\s+/g, " ").trim();
}
