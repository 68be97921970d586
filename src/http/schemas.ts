// The forms of what comes in by HTTP: bodies and queries, and what is wrong with one, all at once. Text is made well-formed
// here, before anything is kept.

import * as v from "valibot";
import { strict } from "../form.ts";
import { limits } from "../limits.ts";
import { roles } from "../log/event.ts";
import { threadFault } from "../names.ts";

/** A name in a head or a list: short, one line. */
const name = v.pipe(
  v.string(),
  v.minLength(1, "empty"),
  v.maxLength(limits.nameCharsMax, `over ${limits.nameCharsMax} characters`),
  v.check(
    (text) => text.isWellFormed() && !/\p{Cc}/u.test(text),
    "not well-formed, or with control characters",
  ),
);

const thread = v.pipe(
  v.string(),
  v.check(
    (text) => threadFault(text) === undefined,
    ({ input }) => `no thread: ${threadFault(input as string)}`,
  ),
);

export const messageId = v.pipe(
  v.string(),
  v.minLength(1, "empty"),
  v.maxLength(limits.messageIdCharsMax, `over ${limits.messageIdCharsMax} characters`),
  v.check(
    (text) => text.isWellFormed() && !/\p{Cc}/u.test(text),
    "not well-formed, or with control characters",
  ),
);

/** What a model can be shown: whitespace, control, format and other characters that nobody sees do not count. */
export function isVisible(text: string): boolean {
  return /[^\s\p{Cc}\p{Cf}\p{Cs}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u.test(text);
}

/** A message's text, made well-formed. */
export const messageText = v.pipe(
  v.string(),
  v.transform((text) => text.toWellFormed()),
  v.check(isVisible, "no visible text; send what the agent shall read"),
);

const time = v.pipe(
  v.string(),
  v.check(
    (text) =>
      /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/.test(text) &&
      !isNaN(Date.parse(text)),
    "no time; write RFC 3339, e.g. 2026-12-01T09:00:00.000Z",
  ),
  v.transform((text) => new Date(text).toISOString()),
);

const speaker = strict({ role: v.optional(v.picklist(roles), "owner"), name: v.optional(name) });

/** A tool's list of names, as `tools` and `Link-Tools` bring it. */
export const toolNames = v.pipe(v.array(name), v.maxLength(limits.listLimitMax));

export const turnBody = strict({
  thread,
  message: strict({
    id: v.optional(messageId),
    text: messageText,
    from: v.optional(speaker, { role: "owner" }),
    at: v.optional(time),
  }),
  connection: v.optional(name),
  tools: v.optional(toolNames),
  retry: v.optional(v.boolean()),
});

export const endBody = strict({ thread });

export const recoverBody = strict({
  keep: v.optional(v.boolean()),
  taken: v.optional(v.pipe(v.array(v.string()), v.maxLength(limits.takenIdsMax))),
});

const seq = v.pipe(v.number(), v.safeInteger(), v.minValue(1));

export const forkBody = strict({ before: seq, as: thread });

/** A whole number in a query. */
const count = (least: number, most: number) =>
  v.pipe(
    v.string(),
    v.regex(/^\d{1,16}$/, "no whole number"),
    v.transform(Number),
    v.minValue(least, `under ${least}`),
    v.maxValue(most, `over ${most}`),
  );

export const listQuery = v.object({
  limit: v.optional(count(1, limits.listLimitMax), String(limits.listLimit)),
  after: v.optional(v.string()),
});

export const eventsQuery = v.object({
  from: v.optional(count(1, Number.MAX_SAFE_INTEGER)),
  limit: v.optional(count(1, Number.MAX_SAFE_INTEGER)),
  last: v.optional(count(1, Number.MAX_SAFE_INTEGER)),
});

const flag = v.pipe(
  v.picklist(["true", "false", "1", "0", ""]),
  v.transform((text) => text !== "false" && text !== "0"),
);

export const settingsQuery = v.object({ effective: v.optional(flag, "false") });

const refusedTools = "not taken; an agent has tools of its own";

/** A chat completion's request as OpenAI's clients send it. What does not bear on a turn is passed over. */
export const chatBody = v.object({
  model: v.string(),
  messages: v.pipe(
    v.array(v.object({
      role: v.string(),
      content: v.nullish(v.union([v.string(), v.array(v.looseObject({ type: v.string() }))])),
    })),
    v.minLength(1, "empty"),
  ),
  stream: v.nullish(v.boolean()),
  stream_options: v.nullish(v.object({ include_usage: v.nullish(v.boolean()) })),
  user: v.nullish(v.string()),
  metadata: v.nullish(v.object({ thread: v.nullish(v.string()) })),
  n: v.nullish(v.literal(1, "more than one answer is not made")),
  tools: v.nullish(v.pipe(v.array(v.unknown()), v.maxLength(0, refusedTools))),
  functions: v.nullish(v.pipe(v.array(v.unknown()), v.maxLength(0, refusedTools))),
  response_format: v.nullish(v.object({ type: v.literal("text", "only text is answered") })),
});
