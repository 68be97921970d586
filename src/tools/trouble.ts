// What went wrong with a tool: whether the call can have been made, and words for the model that name no address. The one
// place that reads the client's errors.

import { hide, sayWhy } from "../fetch.ts";
import { limits } from "../limits.ts";

/**
 * - `forgotten`: the server knows the session no more, so that nothing was run; a new one may be asked.
 * - `unmade`: nothing was run.
 * - `told`: the server answered with an error.
 * - `unknown`: it may have been run or not.
 */
export type TroubleKind = "forgotten" | "unmade" | "told" | "unknown";

export class Trouble extends Error {
  override readonly name = "Trouble";
  readonly kind: TroubleKind;
  /** Neither another session nor another revision of the protocol would change it. */
  readonly final: boolean;

  constructor(kind: TroubleKind, say: string, options: { final?: boolean; cause?: unknown } = {}) {
    super(say, { cause: options.cause });
    this.kind = kind;
    this.final = options.final ?? false;
  }
}

/** What an error of the client means. `session`: the request named one. */
export function troubleOf(
  error: unknown,
  { session, secrets }: { session: boolean; secrets: readonly string[] },
): Trouble {
  if (error instanceof Trouble) return error;
  const { code, data, message } = (typeof error === "object" ? error ?? {} : {}) as {
    code?: unknown;
    message?: unknown;
    data?: { status?: unknown; text?: unknown; resultType?: unknown };
  };
  if (typeof code === "number") {
    const said = quoted(message, secrets);
    return new Trouble("told", `it answered with error ${code}${said}`, { cause: error });
  }
  if (typeof data?.status === "number") return ofStatus(data.status, data.text, session, secrets, error);
  if (data?.resultType === "input_required") {
    return new Trouble("told", "it asks for input that nobody can give here", { cause: error });
  }
  const why = sayWhy(error, secrets).replace(/https?:\/\/\S+/g, "its address").slice(
    0,
    limits.toolErrorCharsMax,
  );
  return neverConnected.test(deepMessage(error))
    ? new Trouble("unmade", why, { final: true, cause: error })
    : new Trouble("unknown", why, { cause: error });
}

/** A reply that is no success. */
function ofStatus(
  status: number,
  text: unknown,
  session: boolean,
  secrets: readonly string[],
  cause: unknown,
): Trouble {
  const error = rpcError(text);
  const said = quoted(error?.message, secrets);
  const say = `it answered HTTP ${status}${said}`;
  if (status >= 500) return new Trouble("unknown", say, { cause });
  if (session && (status === 404 || (status === 400 && isAboutSession(error)))) {
    return new Trouble("forgotten", say, { cause });
  }
  return new Trouble("unmade", say, { final: status === 401 || status === 403, cause });
}

/** Whether a refusal may be about the session: it says nothing that a program can read, or a code that servers use for it. */
function isAboutSession(error: { code: number } | undefined): boolean {
  return error === undefined || error.code === -32000 || error.code === -32001;
}

function rpcError(text: unknown): { code: number; message: string } | undefined {
  try {
    const { error } = JSON.parse(String(text));
    return typeof error?.code === "number" ? error : undefined;
  } catch {
    return undefined;
  }
}

function quoted(message: unknown, secrets: readonly string[]): string {
  if (typeof message !== "string" || message.trim() === "") return "";
  const hidden = hide(message.slice(0, 10 * limits.toolErrorCharsMax), secrets).replace(
    /https?:\/\/\S+/g,
    "its address",
  );
  return `: ${hidden.slice(0, limits.toolErrorCharsMax).toWellFormed()}`;
}

/** No connection was made, so nothing was sent. */
const neverConnected =
  /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|client error \(Connect\)|dns error|CERT_|certificate|bad port|requests to port/i;

function deepMessage(error: unknown): string {
  const texts: string[] = [];
  for (let at: unknown = error; at instanceof Error && texts.length < 4; at = at.cause) {
    texts.push(`${(at as { code?: unknown }).code ?? ""} ${at.message}`);
  }
  return texts.join(" ");
}
