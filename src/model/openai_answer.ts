// The OpenAI chat completions wire: the reply, streamed or whole, as the many servers that speak it send it.

import type { Tokens } from "../log/event.ts";
import { countIn, isObject } from "../json.ts";
import type { Prompt, Stop } from "./model.ts";
import { type Names, namesOf } from "./names.ts";
import { schemaRules, sendable } from "./schema.ts";
import type { StreamEvent } from "./stream.ts";
import { Trouble, troubleOf } from "./trouble.ts";
import { type Addressee, type Decoder, type Draft, makerOf, type Manner } from "./wire.ts";

/** Takes one reply of this wire. */
export function openaiDecoder(prompt: Prompt, to: Addressee, manner: Manner): Decoder {
  const reply: Reply = {
    text: "",
    refusal: "",
    calls: [],
    thoughts: {},
    details: [],
    model: to.model,
    tokens: { input: 0, output: 0 },
  };
  let ended = false;
  const names = namesOf(sendable(prompt.tools, schemaRules(to)).map(({ tool }) => tool));
  const draft = (stop: Stop) => draftOf(reply, stop, names, to);
  return {
    take(event) {
      if (event.data.trim() === "[DONE]") {
        ended = true;
        return "";
      }
      return takeChunk(reply, chunkOf(event));
    },
    takeWhole(value) {
      ended = true;
      return takeChunk(reply, checked(value, JSON.stringify(value) ?? ""));
    },
    get finished() {
      return reply.finish !== undefined;
    },
    get done() {
      return ended;
    },
    answer() {
      const { finish } = reply;
      if (finish === undefined && !manner.endless) {
        throw new Trouble("again", "the answer broke off before its end");
      }
      const nothing = reply.text === "" && reply.calls.length === 0;
      if (reply.refusal && nothing) throw new Trouble("content", reply.refusal);
      if (finish === "content_filter" && nothing) {
        throw new Trouble("content", "its content filter stopped the answer");
      }
      if (finish === "error") throw new Trouble("again", "the answer ended in an error");
      return draft(stopOf(finish, reply.calls.length));
    },
    soFar: () => draft("asked"),
  };
}

/** What has come of a reply. */
interface Reply {
  text: string;
  refusal: string;
  calls: { index: unknown; given: string; name: string; arguments: string }[];
  /** Thinking by the field it came in. */
  thoughts: { reasoning_content?: string; reasoning?: string };
  details: Record<string, unknown>[];
  model: string;
  tokens: Tokens;
  response?: string;
  cost?: number;
  finish?: string;
}

interface Chunk {
  id?: unknown;
  model?: unknown;
  usage?: unknown;
  choices?: unknown;
}

function chunkOf(event: StreamEvent): Chunk {
  let value: unknown;
  try {
    value = JSON.parse(event.data);
  } catch (cause) {
    if (event.event === "error") throw troubleOf({ status: 0, text: event.data, now: 0 });
    throw new Trouble("again", "the stream holds an event that is no JSON", { cause });
  }
  if (event.event === "error") throw troubleOf({ status: 0, text: event.data, now: 0 });
  return checked(value, event.data);
}

/** An error may come as the whole of a reply or of an event, though the status was 200. */
function checked(value: unknown, text: string): Chunk {
  if (typeof value !== "object" || value === null) throw new Trouble("again", "the reply is no JSON object");
  const { error, object } = value as { error?: unknown; object?: unknown };
  if (error || object === "error") throw troubleOf({ status: 0, text, now: 0 });
  return value;
}

/** Takes one chunk, or a whole reply, which has the same form but for `message`. Gives the text that it adds. */
function takeChunk(reply: Reply, chunk: Chunk): string {
  if (typeof chunk.id === "string" && chunk.id) reply.response ??= chunk.id;
  if (typeof chunk.model === "string" && chunk.model) reply.model = chunk.model;
  if (isObject(chunk.usage)) takeUsage(reply, chunk.usage);
  const choice: unknown = Array.isArray(chunk.choices) ? chunk.choices[0] : undefined;
  if (!isObject(choice)) return "";
  if (isObject(choice.error)) throw troubleOf({ status: 0, text: JSON.stringify(choice), now: 0 });
  // The finish may come before or with the last piece; a later null does not take it back.
  if (typeof choice.finish_reason === "string" && choice.finish_reason) reply.finish = choice.finish_reason;
  const delta = isObject(choice.delta) ? choice.delta : isObject(choice.message) ? choice.message : undefined;
  if (!delta) return "";
  takeThinking(reply, delta);
  if (Array.isArray(delta.tool_calls)) delta.tool_calls.forEach((call) => takeCall(reply, call));
  if (typeof delta.refusal === "string") reply.refusal += delta.refusal;
  const text = textOf(delta.content, "text");
  reply.text += text;
  return text;
}

/** Content as one text: mostly it is one, some servers send parts. */
function textOf(content: unknown, kind: "text" | "thinking"): string {
  if (typeof content === "string") return kind === "text" ? content : "";
  if (!Array.isArray(content)) return "";
  return content.map((part: unknown) => {
    if (!isObject(part) || part.type !== kind) return "";
    const inner = part[kind];
    return typeof inner === "string" ? inner : textOf(inner, "text");
  }).join("");
}

function takeThinking(reply: Reply, delta: Record<string, unknown>): void {
  for (const field of ["reasoning_content", "reasoning"] as const) {
    const piece = delta[field];
    if (typeof piece === "string" && piece) reply.thoughts[field] = (reply.thoughts[field] ?? "") + piece;
  }
  const thought = textOf(delta.content, "thinking");
  if (thought) reply.thoughts.reasoning_content = (reply.thoughts.reasoning_content ?? "") + thought;
  if (!Array.isArray(delta.reasoning_details)) return;
  for (const piece of delta.reasoning_details) if (isObject(piece)) takeDetail(reply.details, piece);
}

/** Pieces of one block of thinking come as blocks of one index: their texts are joined, all else is kept as it came last. */
function takeDetail(details: Record<string, unknown>[], piece: Record<string, unknown>): void {
  const last = details.at(-1);
  const field = piece.type === "reasoning.text"
    ? "text"
    : piece.type === "reasoning.summary"
    ? "summary"
    : undefined;
  if (!field || !last || last.type !== piece.type || last.index !== piece.index) {
    details.push({ ...piece });
    return;
  }
  const joined = `${last[field] ?? ""}${piece[field] ?? ""}`;
  for (const [key, value] of Object.entries(piece)) {
    if (value !== null && value !== undefined) last[key] = value;
  }
  last[field] = joined;
}

/** A call comes in pieces told apart by their index. Servers that leave it out, or repeat it, show a new call by its id. */
function takeCall(reply: Reply, piece: unknown): void {
  if (!isObject(piece)) return;
  const { calls } = reply;
  const fn = isObject(piece.function) ? piece.function : {};
  const id = typeof piece.id === "string" ? piece.id : "";
  const name = typeof fn.name === "string" ? fn.name : "";
  let call = piece.index === undefined || piece.index === null
    ? calls.find((known) => id !== "" && known.given === id) ?? (name ? undefined : calls.at(-1))
    : calls.findLast((known) => known.index === piece.index);
  const another = call && name && (id !== "" && call.given !== "" && id !== call.given);
  if (!call || another) calls.push(call = { index: piece.index, given: id, name: "", arguments: "" });
  call.given ||= id;
  call.name ||= name;
  if (typeof fn.arguments === "string") call.arguments += fn.arguments;
  else if (isObject(fn.arguments)) call.arguments += JSON.stringify(fn.arguments);
}

function takeUsage(reply: Reply, usage: Record<string, unknown>): void {
  const input = isObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {};
  const output = isObject(usage.completion_tokens_details) ? usage.completion_tokens_details : {};
  const cached = countIn(input.cached_tokens) ?? countIn(usage.prompt_cache_hit_tokens);
  const written = countIn(input.cache_write_tokens);
  const reasoning = countIn(output.reasoning_tokens);
  reply.tokens = {
    input: countIn(usage.prompt_tokens) ?? 0,
    output: countIn(usage.completion_tokens) ?? 0,
    ...(cached !== undefined ? { cached } : {}),
    ...(written !== undefined ? { written } : {}),
    ...(reasoning !== undefined ? { reasoning } : {}),
  };
  if (typeof usage.cost === "number" && usage.cost >= 0) reply.cost = usage.cost;
}

function draftOf(reply: Reply, stop: Stop, names: Names, to: Addressee): Draft {
  // An answer that was stopped midway has neither whole calls nor whole thinking.
  const whole = stop !== "asked";
  const blocks: unknown[] = [];
  if (whole && reply.thoughts.reasoning_content) {
    blocks.push({ reasoning_content: reply.thoughts.reasoning_content });
  }
  if (whole && reply.thoughts.reasoning) blocks.push({ reasoning: reply.thoughts.reasoning });
  if (whole && reply.details.length > 0) blocks.push({ reasoning_details: reply.details });
  return {
    text: (reply.text || (whole ? reply.refusal : "")).toWellFormed(),
    calls: whole
      ? reply.calls.map((call) => ({
        ...(call.given ? { given: call.given } : {}),
        tool: names.ours(call.name),
        arguments: call.arguments.toWellFormed(),
      }))
      : [],
    ...(blocks.length > 0 ? { thinking: { wire: "openai", maker: makerOf(to), blocks } } : {}),
    model: reply.model,
    ...(reply.response ? { response: reply.response } : {}),
    stop,
    tokens: reply.tokens,
    ...(reply.cost !== undefined ? { cost: reply.cost } : {}),
  };
}

function stopOf(finish: string | undefined, calls: number): Stop {
  if (finish === "length" || finish === "max_tokens") return "length";
  if (finish === "content_filter") return "filter";
  // Many servers end an answer that calls with "stop", and some one that calls nothing with "tool_calls".
  return calls > 0 ? "calls" : "end";
}
