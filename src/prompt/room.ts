// How a model's window is shared out between instructions, conversation and answer, in rough tokens. What the conversation
// does with its share is window.ts.

import { limits } from "../limits.ts";
import type { ModelFacts } from "../model/model.ts";
import type { ToolSpec } from "../tool.ts";
import { toolsTokens } from "./tokens.ts";

/** What the settings say of it. */
export interface RoomSettings {
  model: { answer?: number };
  window: { max: number; unknown: number; compact_at: number | "never"; margin: number; answer: number };
}

export interface Room {
  /** The window that is sent, and where it came from. */
  window: number;
  from: string;
  /** Longest answer. */
  answer: number;
  instructions: number;
  tools: number;
  margin: number;
  /** The conversation's share: what its summary and messages may have. */
  share: number;
  /** What leaves at a time, at most, where it can be parted so. */
  drop: number;
  /** At this the conversation is summarised after an answer; undefined for never. */
  compactAt: number | undefined;
  /** Longest summary. */
  summary: number;
  /** Instructions and tools leave the conversation less than it must have: a sentence that says so. */
  tight?: string;
}

export function roomOf(
  facts: ModelFacts,
  settings: RoomSettings,
  sections: readonly { name: string; tokens: number }[],
  offered: readonly ToolSpec[],
): Room {
  const { max, unknown } = settings.window;
  // A window that it was only trained for counts up to the unknown one: it is seldom the one that it is run with.
  const window = max > 0 ? max : facts.window ?? Math.min(facts.trained ?? unknown, unknown);
  const from = max > 0
    ? "[window] max"
    : facts.window === undefined
    ? "[window] unknown"
    : facts.from ?? "the model's facts";
  const sizes = sections.map(({ name, tokens }) => ({ what: `the section ${name}`, tokens }));
  const instructions = sizes.reduce((sum, { tokens }) => sum + tokens, 0);
  const tools = toolsTokens(offered);
  const margin = Math.ceil(window * settings.window.margin);
  const wanted = settings.model.answer ?? Math.floor(window * settings.window.answer);
  const answer = Math.max(1, Math.min(wanted, facts.answerMax ?? wanted, window));
  const rest = window - answer - instructions - tools - margin;
  const isTight = rest < limits.windowRoomMin;
  const share = Math.max(rest, limits.windowRoomMin);
  const { compact_at } = settings.window;
  const at = compact_at === "never" || isTight ? undefined : Math.floor(share * compact_at);
  const drop = Math.floor(Math.min(share / 2, at === undefined ? share : at * 2 / 3));
  return {
    window,
    from,
    // Where there is too little room, a short answer is worth more than none.
    answer: isTight
      ? Math.min(answer, Math.max(limits.windowRoomMin, window - instructions - tools - margin - share))
      : answer,
    instructions,
    tools,
    margin,
    share,
    drop,
    compactAt: at,
    summary: Math.max(limits.summaryTokensMin, Math.min(limits.summaryTokensMax, Math.floor(drop / 4))),
    ...(isTight
      ? { tight: tightSaid(window, from, rest, [...sizes, { what: "the tools", tokens: tools }]) }
      : {}),
  };
}

function tightSaid(
  window: number,
  from: string,
  rest: number,
  parts: { what: string; tokens: number }[],
): string {
  const largest = parts.reduce((most, part) => part.tokens > most.tokens ? part : most);
  return `Instructions and tools leave ${
    Math.max(rest, 0)
  } tokens of the window of ${window} (from ${from}) to the conversation, ` +
    `so that nothing is summarised; the largest part is ${largest.what} with ${largest.tokens} tokens: make it smaller or set a larger [window] max.`;
}
