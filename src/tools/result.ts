// A call's result as data for the model: text as it is, everything else named by kind and size, nothing said twice, cut where it
// is long. Pure. An error that a tool tells is a result like any other.

import { type Fields, isObject } from "../json.ts";
import { limits } from "../limits.ts";
import type { CallResult } from "./tools.ts";

/** What a tool gave, as text. `whole` is the result as it came; nothing of it is trusted. */
export function resultOf(whole: unknown): CallResult {
  const { content, structuredContent, isError } = isObject(whole) ? whole : {} as Fields;
  const texts = (Array.isArray(content) ? content : []).map(textOf);
  const structured = structuredText(structuredContent, texts);
  if (structured !== undefined) texts.push(structured);
  const text = texts.filter((one) => one.trim() !== "").join("\n");
  const ok = isError !== true;
  if (text === "") return { ok, text: ok ? "The tool gave no output." : "The tool failed and said nothing." };
  return { ok, ...cutResult(text.toWellFormed()) };
}

/** A text within the bytes of a result: its head and its tail, between them how much is left out. No character is cut in two. */
export function cutResult(text: string): { text: string; cut?: number } {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= limits.resultBytesMax) return { text };
  const told =
    `\n[… cut here: the whole result has ${bytes.length} bytes, this is its start and its end …]\n`;
  const room = limits.resultBytesMax - new TextEncoder().encode(told).length;
  let head = Math.ceil(room / 2), tail = bytes.length - Math.floor(room / 2);
  while (isInside(bytes[head]!)) head--;
  while (tail < bytes.length && isInside(bytes[tail]!)) tail++;
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const start = decoder.decode(bytes.subarray(0, head)), end = decoder.decode(bytes.subarray(tail));
  return { text: `${start}${told}${end}`, cut: bytes.length };
}

/** Whether a byte of UTF-8 goes on with a character. */
function isInside(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

/** One part of a result. */
function textOf(part: unknown): string {
  if (!isObject(part)) return "[a part that cannot be read]";
  switch (part.type) {
    case "text":
      return typeof part.text === "string" ? part.text : "[a text that cannot be read]";
    case "image":
    case "audio":
      return `[${part.type}: ${said(part.mimeType, "of unknown kind")}, ${bytesOf(part.data)} bytes]`;
    case "resource":
      return resourceText(part.resource);
    case "resource_link": {
      const size = typeof part.size === "number" ? `, ${part.size} bytes` : "";
      const kind = typeof part.mimeType === "string" ? `, ${said(part.mimeType)}` : "";
      return `[link to a resource: ${said(part.title ?? part.name, "unnamed")}, ${
        said(part.uri)
      }${kind}${size}]`;
    }
    default:
      return `[a part of kind ${said(part.type, "unknown")}, ${JSON.stringify(part).length} characters]`;
  }
}

function resourceText(resource: unknown): string {
  if (!isObject(resource)) return "[a resource that cannot be read]";
  const name = `resource: ${said(resource.uri, "unnamed")}`;
  if (typeof resource.text === "string") return `[${name}]\n${resource.text}`;
  return `[${name}, ${said(resource.mimeType, "of unknown kind")}, ${bytesOf(resource.blob)} bytes]`;
}

/**
 * The structured content as JSON, where the texts do not say the same: most servers write it out as a text, too. Long base64
 * in it is named by its size.
 */
function structuredText(structured: unknown, texts: readonly string[]): string | undefined {
  if (structured === undefined || structured === null) return undefined;
  const said = texts.join("\n");
  if (said !== "" && isSaid(structured, said)) return undefined;
  const { result, ...others } = isObject(structured) ? structured : {} as Fields;
  // Some servers wrap what is no object.
  const wrapped = result !== undefined && Object.keys(others).length === 0 ? [result] : [];
  const same = [structured, ...wrapped].map(canonical);
  if ([...texts, texts.join("")].some((text) => same.includes(canonical(parsed(text))))) return undefined;
  return JSON.stringify(structured, (_, value) => isBase64(value) ? `[${bytesOf(value)} bytes]` : value);
}

/** Whether all that a value holds are texts that `said` has in it, word for word. */
function isSaid(value: unknown, said: string): boolean {
  if (typeof value === "string") return said.includes(value);
  return typeof value === "object" && value !== null &&
    Object.values(value).every((inner) => isSaid(inner, said));
}

function isBase64(value: unknown): boolean {
  return typeof value === "string" && value.length >= 1024 &&
    /^(data:[^,]{1,200},)?[A-Za-z0-9+/_-]+={0,2}$/.test(value);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A value's JSON, whatever the order of its keys. */
function canonical(value: unknown): string {
  return JSON.stringify(
    value,
    (_, inner) =>
      isObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => a < b ? -1 : 1)) : inner,
  ) ?? "";
}

/** Bytes that a base64 text stands for. */
function bytesOf(data: unknown): number {
  if (typeof data !== "string") return 0;
  const plain = data.replace(/^data:[^,]{1,200},/, "").replace(/=+$/, "");
  return Math.floor(plain.length * 3 / 4);
}

/** A short text of the server's, on one line. */
function said(value: unknown, otherwise = ""): string {
  return typeof value === "string" && value !== "" ? value.replace(/\s+/g, " ").slice(0, 500) : otherwise;
}
