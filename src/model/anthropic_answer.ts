// The Anthropic Messages wire: the reply, streamed or whole.

import type { Tokens } from "../log/event.ts";
import { countIn, type Fields, isObject } from "../json.ts";
import type { Prompt, Stop } from "./model.ts";
import { type Names, namesOf } from "./names.ts";
import { sendable } from "./schema.ts";
import type { StreamEvent } from "./stream.ts";
import { Trouble, troubleOf } from "./trouble.ts";
import { type Addressee, type Decoder, type Draft, makerOf, type Manner } from "./wire.ts";

/** Takes one reply of this wire. */
export function anthropicDecoder(prompt: Prompt, to: Addressee, manner: Manner): Decoder {
  const reply: Reply = { blocks: [], model: to.model, usage: {} };
  let ended = false;
  const names = namesOf(sendable(prompt.tools, "strict").map(({ tool }) => tool));
  return {
    take(event) {
      const value = valueOf(event);
      if (value.type === "message_stop") ended = true;
      return takeEvent(reply, value, event.data);
    },
    takeWhole(value) {
      ended = true;
      if (!isObject(value)) throw new Trouble("again", "the reply is no JSON object");
      if (value.type === "error") throw troubleOf({ status: 0, text: JSON.stringify(value), now: 0 });
      takeMessage(reply, value);
      const blocks: unknown[] = Array.isArray(value.content) ? value.content : [];
      return blocks.map((block, index) => isObject(block) ? startBlock(reply, index, block) : "").join("");
    },
    get finished() {
      return reply.stop !== undefined;
    },
    get done() {
      return ended;
    },
    answer() {
      if (reply.stop === undefined && !manner.endless) {
        throw new Trouble("again", "the answer broke off before its end");
      }
      // The classifiers that stop an answer want it gone: nothing of it may be built on.
      if (reply.stop === "refusal") throw new Trouble("content", "the model declined to answer");
      return draftOf(reply, stopOf(reply.stop), names, to);
    },
    soFar: () => draftOf(reply, "asked", names, to),
  };
}

/** What has come of a reply: its blocks by their index, as they came but for their pieces joined. */
interface Reply {
  blocks: { index: unknown; block: Fields; json: string }[];
  model: string;
  usage: Fields;
  response?: string;
  stop?: string;
}

function valueOf(event: StreamEvent): Fields {
  try {
    const value: unknown = JSON.parse(event.data);
    if (isObject(value)) return value;
  } catch (cause) {
    if (event.event !== "error") {
      throw new Trouble("again", "the stream holds an event that is no JSON", { cause });
    }
  }
  return event.event === "error" ? { type: "error" } : {};
}

/** Takes one event, by the type that its data says. Gives the text that it adds. */
function takeEvent(reply: Reply, value: Fields, data: string): string {
  switch (value.type) {
    case "error":
      throw troubleOf({ status: 0, text: data, now: 0 });
    case "message_start":
      if (isObject(value.message)) takeMessage(reply, value.message);
      return "";
    case "content_block_start":
      return isObject(value.content_block) ? startBlock(reply, value.index, value.content_block) : "";
    case "content_block_delta":
      return isObject(value.delta) ? addDelta(reply, value.index, value.delta) : "";
    case "message_delta":
      if (isObject(value.delta)) takeStop(reply, value.delta);
      if (isObject(value.usage)) takeUsage(reply, value.usage);
      return "";
    default:
      // content_block_stop, message_stop, ping, and what is still to be invented.
      return "";
  }
}

function takeMessage(reply: Reply, message: Fields): void {
  if (typeof message.id === "string" && message.id) reply.response = message.id;
  if (typeof message.model === "string" && message.model) reply.model = message.model;
  if (isObject(message.usage)) takeUsage(reply, message.usage);
  takeStop(reply, message);
}

function takeStop(reply: Reply, { stop_reason }: Fields): void {
  if (typeof stop_reason === "string" && stop_reason) reply.stop = stop_reason;
}

/** Later counts are of the whole answer, and leave out what they do not count. */
function takeUsage(reply: Reply, usage: Fields): void {
  for (const [key, value] of Object.entries(usage)) if (value !== null) reply.usage[key] = value;
}

function startBlock(reply: Reply, index: unknown, block: Fields): string {
  reply.blocks.push({ index, block: { ...block }, json: "" });
  return block.type === "text" && typeof block.text === "string" ? block.text : "";
}

function addDelta(reply: Reply, index: unknown, delta: Fields): string {
  const open = reply.blocks.findLast((known) => known.index === index);
  if (!open) return "";
  const { block } = open;
  const add = (field: string) => block[field] = `${block[field] ?? ""}${delta[field] ?? ""}`;
  switch (delta.type) {
    case "text_delta":
      add("text");
      return typeof delta.text === "string" ? delta.text : "";
    case "thinking_delta":
      add("thinking");
      return "";
    case "signature_delta":
      add("signature");
      return "";
    case "input_json_delta":
      if (typeof delta.partial_json === "string") open.json += delta.partial_json;
      return "";
    default:
      return "";
  }
}

function draftOf(reply: Reply, stop: Stop, names: Names, to: Addressee): Draft {
  // An answer that was stopped midway has neither whole calls nor whole thinking.
  const whole = stop !== "asked";
  let text = "";
  const calls: Draft["calls"] = [], thinking: unknown[] = [];
  for (const { block, json } of reply.blocks) {
    if (block.type === "text" && typeof block.text === "string") {
      text += block.text;
      if (block.text) thinking.push({ type: "place_text", chars: block.text.length });
    } else if (whole && block.type === "tool_use") {
      calls.push(callOf(block, json, names));
      thinking.push({ type: "place_call" });
    } else if (whole && (block.type === "thinking" || block.type === "redacted_thinking")) {
      thinking.push(block);
    }
  }
  const blocks = withoutNeedlessPlaces(thinking as { type: string }[]);
  return {
    text: text.toWellFormed(),
    calls,
    ...(whole && blocks.length > 0 ? { thinking: { wire: "anthropic", maker: makerOf(to), blocks } } : {}),
    model: reply.model,
    ...(reply.response ? { response: reply.response } : {}),
    stop: stop === "end" && calls.length > 0 ? "calls" : stop,
    tokens: tokensOf(reply.usage),
    ...(typeof reply.usage.cost === "number" && reply.usage.cost >= 0 ? { cost: reply.usage.cost } : {}),
  };
}

/** Places are kept only before thinking that does not come first. */
function withoutNeedlessPlaces(blocks: { type: string }[]): unknown[] {
  const last = blocks.findLastIndex(({ type }) => !type.startsWith("place_"));
  return blocks.slice(0, last + 1);
}

function callOf(block: Fields, json: string, names: Names): Draft["calls"][number] {
  const input = isObject(block.input) ? block.input : {};
  const given = typeof block.id === "string" ? block.id : "";
  return {
    ...(given ? { given } : {}),
    tool: names.ours(typeof block.name === "string" ? block.name : ""),
    // A call without arguments has no pieces: its input stands in its start.
    arguments: json === "" ? JSON.stringify(input).toWellFormed() : json.toWellFormed(),
  };
}

function tokensOf(usage: Fields): Tokens {
  const cached = countIn(usage.cache_read_input_tokens), written = countIn(usage.cache_creation_input_tokens);
  return {
    // The provider counts what was read from and written to its cache apart from the rest.
    input: (countIn(usage.input_tokens) ?? 0) + (cached ?? 0) + (written ?? 0),
    output: countIn(usage.output_tokens) ?? 0,
    ...(cached !== undefined ? { cached } : {}),
    ...(written !== undefined ? { written } : {}),
  };
}

function stopOf(stop: string | undefined): Stop {
  return stop === "max_tokens" || stop === "model_context_window_exceeded" ? "length" : "end";
}
