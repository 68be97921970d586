// The forms of what goes out by HTTP, for the description of the wire and for the tests that hold the doors to it. The doors
// do not load this: what they send they make.

import * as v from "valibot";
import { specSchema } from "../agent/settings.ts";
import { strict } from "../form.ts";
import { eventSchema, tokensSchema } from "../log/event.ts";

const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const seq = v.pipe(v.number(), v.integer(), v.minValue(1));
const time = v.pipe(v.string(), v.isoTimestamp());

const told = { code: v.pipe(v.string(), v.regex(/^[a-z_]+$/)), message: v.string() };

export const errorReply = v.pipe(
  strict({
    error: strict({
      ...told,
      issues: v.optional(v.array(strict({ path: v.string(), message: v.string() }))),
      type: v.optional(v.string()),
      param: v.optional(v.null()),
    }),
    repeated: v.optional(v.literal(true)),
  }),
  v.metadata({ ref: "Error", description: "What every failure looks like." }),
);

export const healthReply = v.object({ ok: v.boolean(), version: v.string(), agents: count, awake: count });

export const agentReply = strict({
  agent: v.string(),
  harness: v.literal("link"),
  version: v.string(),
  asp: v.literal("asp/1"),
  state: v.picklist(["awake", "asleep"]),
  model: v.nullable(v.string()),
  storage: v.string(),
  conversations: count,
});

export const answerReply = v.pipe(
  strict({
    id: v.string(),
    turn: v.string(),
    thread: v.string(),
    seq,
    messages: v.array(v.string()),
    text: v.string(),
    model: v.string(),
    provider: v.string(),
    tokens: tokensSchema,
    cost: v.optional(v.number()),
    ms: count,
    rounds: count,
    calls: count,
    stop: v.string(),
    repeated: v.optional(v.literal(true)),
  }),
  v.metadata({ ref: "Answer", description: "The whole answer of a turn." }),
);

/** A message that joined a running turn, or a turn that goes on past the wait. */
export const acceptedReply = v.union([
  strict({ joined: v.literal(true), thread: v.string(), seq, turn: v.optional(v.string()) }),
  strict({ running: v.literal(true), turn: v.string(), thread: v.string(), seq }),
]);

export const endReply = strict({ ended: v.boolean() });

export const recoverReply = strict({
  answers: v.array(strict({
    id: v.string(),
    thread: v.string(),
    connection: v.optional(v.string()),
    turn: v.string(),
    seq,
    text: v.optional(v.string()),
    error: v.optional(strict(told)),
    at: time,
    messages: v.array(v.string()),
    why: v.picklist(["caller_gone", "crashed", "joined", "failed"]),
  })),
  finishing: count,
});

export const sleepReply = strict({ state: v.literal("asleep"), awake: count });

export const conversationsReply = strict({
  conversations: v.array(strict({
    thread: v.string(),
    connection: v.optional(v.string()),
    events: count,
    storage: v.string(),
    updated: v.string(),
    running: v.boolean(),
    damage: v.optional(v.string()),
  })),
});

export const eventReply = v.pipe(
  eventSchema,
  v.metadata({ ref: "Event", description: "One event of a conversation." }),
);

export const settingsReply = v.pipe(
  specSchema,
  v.metadata({ ref: "Settings", description: "An agent's settings." }),
);

export const modelsReply = strict({
  object: v.literal("list"),
  data: v.array(strict({ id: v.string(), object: v.literal("model"), created: count, owned_by: v.string() })),
});

export const completionReply = v.object({
  id: v.string(),
  object: v.literal("chat.completion"),
  created: count,
  model: v.string(),
  choices: v.array(v.object({
    index: v.literal(0),
    message: v.object({ role: v.literal("assistant"), content: v.string(), refusal: v.null() }),
    finish_reason: v.picklist(["stop", "length", "content_filter"]),
  })),
  usage: v.object({ prompt_tokens: count, completion_tokens: count, total_tokens: count }),
});

export const forkReply = strict({ thread: v.string(), events: count });
