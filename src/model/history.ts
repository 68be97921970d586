// A prompt's messages as any provider takes them: every call with exactly one result right after it, no empty text, ids and
// names of a safe form. A wire then only gives them its own shape. Pure, and what comes later changes nothing before it.

import type { Thinking } from "../log/event.ts";
import { parsedObject } from "../json.ts";
import type { Prompt, PromptMessage } from "./model.ts";
import { type Names, safeId } from "./names.ts";

/** One step of a conversation. Texts are well-formed and, but for a step's with calls, never empty. */
export type Step =
  | { role: "user"; text: string; marked: boolean }
  | { role: "model"; text: string; calls: SentCall[]; thinking?: Thinking; marked: boolean };

/** A call with its result, as both are sent. */
export interface SentCall {
  id: string;
  name: string;
  /** One JSON object, as text. */
  arguments: string;
  result: { text: string; ok: boolean };
}

/** What stands where there are no words: providers refuse an empty text, and a model should see that nothing is missing. */
export const noWords = {
  user: "(a message without words)",
  model: "(no words)",
  result: "(the tool gave no output)",
  missing: "(no result was kept for this call)",
} as const;

/** Said after the last message of a request that must be answered in words. */
export const callNothing = "[Call no tool now: answer in words.]";

export interface Sending {
  names: Names;
  /** Who may be sent thinking; undefined sends none. */
  maker: string | undefined;
  /** Whether the request offers any tools: without, calls and results go as text. */
  tools: boolean;
}

/** A prompt's messages as steps. */
export function stepsOf(prompt: Prompt, sending: Sending): Step[] {
  const steps: Step[] = [];
  const ids = new Set<string>();
  const { messages, markAt } = prompt;
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at]!;
    if (message.role === "user") {
      steps.push({ role: "user", text: filled(message.text, noWords.user), marked: at === markAt });
    } else if (message.role === "result") {
      // Its call is not in the prompt: it left the window, or was never kept.
      steps.push({ role: "user", text: resultAsText(message), marked: at === markAt });
    } else {
      const results: ResultMessage[] = [];
      let last = at;
      while (messages[last + 1]?.role === "result") results.push(messages[++last] as ResultMessage);
      const marked = markAt >= at && markAt <= last;
      const asText = !sending.tools && message.calls.length > 0;
      steps.push(
        ...(asText
          ? roundAsText(message, results, marked)
          : round(message, results, marked, { ...sending, ids })),
      );
      at = last;
    }
  }
  return steps;
}

type ModelMessage = Extract<PromptMessage, { role: "model" }>;
type ResultMessage = Extract<PromptMessage, { role: "result" }>;

/** What a model said, with the result of each of its calls. */
function round(
  message: ModelMessage,
  results: ResultMessage[],
  marked: boolean,
  { names, maker, ids }: Sending & { ids: Set<string> },
): Step[] {
  const open = [...results];
  const calls = message.calls.map((call): SentCall => {
    const found = open.findIndex((result) => result.call === call.id);
    const result = found < 0 ? undefined : open.splice(found, 1)[0];
    return {
      id: safeId(call.id, ids),
      name: names.sent(call.tool),
      arguments: wholeArguments(call.arguments),
      result: {
        text: result ? filled(result.text, noWords.result) : noWords.missing,
        ok: result?.ok ?? false,
      },
    };
  });
  const thinking = thinkingFor(message, maker);
  const text = calls.length > 0 ? blankAsNone(message.text) : filled(message.text, noWords.model);
  return [
    { role: "model", text, calls, ...(thinking ? { thinking } : {}), marked: marked && open.length === 0 },
    ...open.map((result, at): Step => ({
      role: "user",
      text: resultAsText(result),
      marked: marked && at === open.length - 1,
    })),
  ];
}

/** The same in words alone, for a request that offers no tools. */
function roundAsText(message: ModelMessage, results: ResultMessage[], marked: boolean): Step[] {
  const said = [
    ...(message.calls.length > 0 && blankAsNone(message.text) === ""
      ? []
      : [filled(message.text, noWords.model)]),
    ...message.calls.map((call) => `[called ${call.tool} with ${wholeArguments(call.arguments)}]`),
  ];
  const heard = results.map(resultAsText);
  for (const call of message.calls) {
    if (!results.some((result) => result.call === call.id)) {
      heard.push(`[result of ${call.tool}]\n${noWords.missing}`);
    }
  }
  const spoken = { role: "model", text: said.join("\n\n").toWellFormed(), calls: [] } as const;
  if (heard.length === 0) return [{ ...spoken, calls: [], marked }];
  return [
    { ...spoken, calls: [], marked: false },
    { role: "user", text: heard.join("\n\n").toWellFormed(), marked },
  ];
}

function resultAsText(result: ResultMessage): string {
  return `[result of ${result.tool}${result.ok ? "" : ", failed"}]\n${filled(result.text, noWords.result)}`
    .toWellFormed();
}

/** Thinking goes back to the model and provider that made it, and to no other. */
function thinkingFor(message: ModelMessage, maker: string | undefined): Thinking | undefined {
  if (maker === undefined || !message.thinking) return undefined;
  const by = message.thinking.maker ?? `${message.provider} ${message.model}`;
  return by === maker ? message.thinking : undefined;
}

/** `text` well-formed, or `instead` where it shows nothing. */
function filled(text: string, instead: string): string {
  return text.trim() === "" ? instead : text.toWellFormed();
}

function blankAsNone(text: string): string {
  return text.trim() === "" ? "" : text.toWellFormed();
}

/** A call's arguments as a whole JSON object: what the model wrote where it is one, else an empty one; what became of such a
 * call stands in its result. */
export function wholeArguments(text: string): string {
  const value = parsedObject(text);
  if (value === undefined) return "{}";
  // An escaped lone surrogate is valid JSON that providers refuse.
  return /\\u[dD][89a-fA-F]/.test(text) || !text.isWellFormed()
    ? JSON.stringify(value, (_, inner) => typeof inner === "string" ? inner.toWellFormed() : inner)
    : text.trim();
}
