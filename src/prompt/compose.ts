// The prompt of one request, from what was read: sections, tools, and the conversation's messages. Pure: no time, no random
// names, no order of a map, so that two turns in a row begin with the same bytes. What is read is sections.ts, where
// the conversation begins window.ts.
//
//   readSections(input) → Section[]          sections.ts, once a turn
//   placedMessages(events, from) → Placed[]  messages.ts
//   composePrompt({ sections, tools, placed, … }) → Prompt

import type { SummaryEvent } from "../log/event.ts";
import type { Prompt, PromptMessage } from "../model/model.ts";
import type { ToolSpec } from "../tool.ts";
import { type Placed, summaryMessage, words } from "./messages.ts";

export interface Parts {
  /** Texts of the sections in order; empty ones are left out. */
  sections: readonly { text: string }[];
  /** As they are offered, sorted. */
  tools: readonly ToolSpec[];
  /** The window's messages. */
  placed: readonly Placed[];
  /** Stands before them. */
  summary?: SummaryEvent;
  /** What the harness asks after them: of a summary. */
  request?: string;
  choice: Prompt["choice"];
  /** Tokens. */
  answerMax: number;
}

export function composePrompt(parts: Parts): Prompt {
  const messages: PromptMessage[] = parts.summary ? [summaryMessage(parts.summary)] : [];
  const markAt = messages.length + parts.placed.findLastIndex(({ settles }) => settles);
  for (const { message } of parts.placed) messages.push(message);
  if (parts.request !== undefined) messages.push({ role: "user", text: parts.request });
  else if (messages.at(-1)?.role === "model") messages.push({ role: "user", text: words.again });
  return {
    instructions: parts.sections.flatMap(({ text }) => text === "" ? [] : [text]),
    tools: [...parts.tools],
    choice: parts.choice,
    messages,
    markAt,
    answerMax: parts.answerMax,
  };
}
