// What an event is: its fields, its schema, its one line of JSON. An event is its bytes: whoever moves events
// moves lines; nobody writes a line again from a parsed value. What events mean together is conversation.ts.

import * as v from "valibot";
import { Failure } from "../errors.ts";
import { limits } from "../limits.ts";

const seq = v.pipe(v.number(), v.safeInteger(), v.minValue(1));
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const at = v.pipe(
  v.string(),
  v.regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, "not RFC 3339 in UTC with milliseconds"),
);
const base = { seq, at };

export const roles = ["owner", "other", "run", "schedule", "agent"] as const;

/** Who speaks to the agent. */
export const speakerSchema = v.looseObject({ role: v.picklist(roles), name: v.optional(v.string()) });

/** Tokens as the provider counted them. `input` is all of the input; `cached` of it was read from the cache, `written` to it. */
export const tokensSchema = v.looseObject({
  input: count,
  output: count,
  cached: v.optional(count),
  written: v.optional(count),
  reasoning: v.optional(count),
});

/** A call as the model made it. `id` is ours, unique in the conversation (`c<seq>_<position>`), `given` the provider's;
 * `arguments` is the text that the model wrote, whether or not it is a JSON object. */
export const callSchema = v.looseObject({
  id: v.string(),
  given: v.optional(v.string()),
  tool: v.string(),
  arguments: v.string(),
});

/** Thinking, as the provider's blocks came, signatures and all. Goes back only to its `maker`: the provider and the model as
 * asked for, which may answer under a longer name; where left out, those of its event. */
export const thinkingSchema = v.looseObject({
  wire: v.string(),
  maker: v.optional(v.string()),
  blocks: v.array(v.unknown()),
});

/** Where a window begins: its first message, that message's time, the tokens before it, and the number of the summary that
 * stands first in it. */
export const checkpointSchema = v.looseObject({
  from: seq,
  at: v.string(),
  before: count,
  summary: v.optional(seq),
});

const answered = {
  text: v.string(),
  model: v.string(),
  provider: v.string(),
  response: v.optional(v.string()),
  stop: v.string(),
  tokens: tokensSchema,
  ms: count,
  cost: v.optional(v.number()),
};

export const eventSchemas = {
  message: v.looseObject({
    ...base,
    type: v.literal("message"),
    id: v.optional(v.string()),
    from: speakerSchema,
    connection: v.optional(v.string()),
    head: v.string(),
    text: v.string(),
  }),
  model: v.looseObject({
    ...base,
    type: v.literal("model"),
    turn: v.string(),
    round: count,
    ...answered,
    thinking: v.optional(thinkingSchema),
    calls: v.optional(v.array(callSchema)),
    upto: v.optional(seq),
    /** Of a round that is no answer: the last number that its request held, where a message came meanwhile. */
    seen: v.optional(seq),
    retries: v.optional(seq),
    window: v.optional(checkpointSchema),
  }),
  result: v.looseObject({
    ...base,
    type: v.literal("result"),
    turn: v.string(),
    call: v.string(),
    tool: v.string(),
    text: v.string(),
    ok: v.boolean(),
    ms: count,
    cut: v.optional(count),
  }),
  summary: v.looseObject({
    ...base,
    type: v.literal("summary"),
    turn: v.string(),
    from: seq,
    to: seq,
    keeps: seq,
    ...answered,
    calls: v.optional(v.array(callSchema)),
    /** The window that begins with this summary. */
    window: v.optional(checkpointSchema),
    /** Why it is none: nothing left the window by it. */
    failed: v.optional(v.string()),
  }),
  recovered: v.looseObject({
    ...base,
    type: v.literal("recovered"),
    turn: v.string(),
    try: count,
    holder: v.unknown(),
  }),
  ended: v.looseObject({
    ...base,
    type: v.literal("ended"),
    turn: v.string(),
    upto: count,
    retries: v.optional(seq),
    reason: v.picklist(["asked", "failed", "forked", "exported"]),
    code: v.optional(v.string()),
    message: v.optional(v.string()),
  }),
};

/** Any event that we know, told apart by `type`. */
export const eventSchema = v.variant(
  "type",
  Object.values(eventSchemas) as [typeof eventSchemas.message, ...typeof eventSchemas.model[]],
);

type Of<Type extends keyof typeof eventSchemas> = v.InferOutput<(typeof eventSchemas)[Type]>;
export type Speaker = v.InferOutput<typeof speakerSchema>;
export type Tokens = v.InferOutput<typeof tokensSchema>;
export type Call = v.InferOutput<typeof callSchema>;
export type Thinking = v.InferOutput<typeof thinkingSchema>;
export type Checkpoint = v.InferOutput<typeof checkpointSchema>;
export type MessageEvent = Of<"message">;
export type ModelEvent = Of<"model">;
export type ResultEvent = Of<"result">;
export type SummaryEvent = Of<"summary">;
export type RecoveredEvent = Of<"recovered">;
export type EndedEvent = Of<"ended">;
export type Event = MessageEvent | ModelEvent | ResultEvent | SummaryEvent | RecoveredEvent | EndedEvent;

/** An event as it is kept: its number, its line without the line end, and what it says; `event` is undefined for a type
 * that this version does not know, which is kept and passed on all the same. */
export interface Kept {
  seq: number;
  line: string;
  event: Event | undefined;
}

const orders: Record<Event["type"], readonly string[]> = Object.fromEntries(
  Object.entries(eventSchemas).map(([type, schema]) => [type, Object.keys(schema.entries)]),
) as unknown as Record<Event["type"], readonly string[]>;

/** The line of an event, without its line end: keys in the schema's order, then any others. Text is made well-formed. */
export function encodeEvent(event: Event): string {
  const ordered: Record<string, unknown> = {};
  for (const key of orders[event.type]) {
    const value = (event as Record<string, unknown>)[key];
    if (value !== undefined) ordered[key] = value;
  }
  for (const key of Object.keys(event)) {
    if (!(key in ordered)) ordered[key] = (event as Record<string, unknown>)[key];
  }
  return JSON.stringify(ordered, (_, value) => typeof value === "string" ? value.toWellFormed() : value);
}

/** An event as kept, from the value just made. */
export function keep(event: Event): Kept {
  return { seq: event.seq, line: encodeEvent(event), event };
}

/** A kept line, read. Throws `event_invalid` where it is no JSON object with a number and a type; the fields of known types
 * are trusted here: doors that take lines from outside use `checkLine`. */
export function parseLine(line: string): Kept {
  let value: { seq?: unknown; type?: unknown };
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw new Failure("event_invalid", { why: (error as Error).message }, { cause: error });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Failure("event_invalid", { why: "no JSON object" });
  }
  if (!Number.isSafeInteger(value.seq) || (value.seq as number) < 1) {
    throw new Failure("event_invalid", { why: "no number `seq`" });
  }
  if (typeof value.type !== "string") throw new Failure("event_invalid", { why: "no `type`" });
  const known = Object.hasOwn(eventSchemas, value.type);
  return { seq: value.seq as number, line, event: known ? value as unknown as Event : undefined };
}

/** A line from outside (import, bridge), checked whole: one line, not too long, well-formed, and of its type's form. */
export function checkLine(line: string): Kept {
  if (line.includes("\n")) throw new Failure("event_invalid", { why: "a line end inside" });
  if (line.length > limits.eventBytesMax) {
    throw new Failure("event_invalid", { why: `over ${limits.eventBytesMax} bytes` });
  }
  if (!line.isWellFormed()) throw new Failure("event_invalid", { why: "a lone surrogate" });
  const kept = parseLine(line);
  if (kept.event) {
    const checked = v.safeParse(eventSchemas[kept.event.type], kept.event);
    if (!checked.success) {
      const issue = checked.issues[0];
      throw new Failure("event_invalid", { why: `${v.getDotPath(issue) ?? "event"}: ${issue.message}` });
    }
  }
  return kept;
}
