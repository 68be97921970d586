// A request's body and query, read within bounds and parsed at the door.

import * as v from "valibot";
import { Failure } from "../errors.ts";
import { issuesOf } from "../form.ts";
import { limits } from "../limits.ts";

/** The body as `schema` says. Throws `body_too_large`, `not_json` or, with all issues at once, `invalid`. */
export async function readForm<Schema extends v.GenericSchema>(
  request: Request,
  schema: Schema,
  options: { orEmpty?: boolean } = {},
): Promise<v.InferOutput<Schema>> {
  return parseForm(schema, await readJson(request, options));
}

/** The body as JSON. `orEmpty`: no body stands for `{}`. */
export async function readJson(request: Request, options: { orEmpty?: boolean } = {}): Promise<unknown> {
  const bytes = await readBytes(request);
  if (bytes.length === 0 && options.orEmpty) return {};
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new Failure("not_json", { why: "it is not UTF-8" }, { cause: error });
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = text.trim() === "" ? "it is empty" : "it cannot be parsed";
    throw new Failure("not_json", { why }, { cause: error });
  }
}

/** The query's parameters as `schema` says. Throws `invalid`. */
export function readQuery<Schema extends v.GenericSchema>(
  url: string,
  schema: Schema,
): v.InferOutput<Schema> {
  return parseForm(schema, Object.fromEntries(new URL(url).searchParams));
}

export function parseForm<Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
): v.InferOutput<Schema> {
  const parsed = v.safeParse(schema, value);
  if (parsed.success) return parsed.output;
  throw new Failure("invalid", { issues: issuesOf(parsed.issues) });
}

async function readBytes(request: Request): Promise<Uint8Array> {
  const bytesMax = limits.bodyBytesMax;
  const tooLarge = () => new Failure("body_too_large", { bytesMax });
  const length = request.headers.get("content-length");
  if (length !== null && Number(length) > bytesMax) throw tooLarge();
  try {
    // Where the length is told the server holds the body to it, and reading it at once is the cheap way.
    if (length !== null) return new Uint8Array(await request.arrayBuffer());
    return await counted(request.body, bytesMax, tooLarge);
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure("not_json", { why: "it was cut" }, { cause: error });
  }
}

/** All bytes of a body whose length nobody told, counted as they come. */
async function counted(
  body: ReadableStream<Uint8Array> | null,
  bytesMax: number,
  tooLarge: () => Failure,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw tooLarge();
    chunks.push(chunk);
  }
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}
