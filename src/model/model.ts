// What a model is to a turn: it takes a prompt, streams pieces, and gives one whole answer. Which wire speaks to it,
// how often it is tried and who stands in for it are elsewhere in this folder.

import type { Call, Thinking, Tokens } from "../log/event.ts";
import type { ToolSpec } from "../tool.ts";

/** One message of a prompt. What a `model` event said, or somebody's message, or one call's result. */
export type PromptMessage =
  | { role: "user"; text: string }
  | { role: "model"; text: string; calls: Call[]; thinking?: Thinking; model: string; provider: string }
  | { role: "result"; call: string; tool: string; text: string; ok: boolean };

/** A prompt, whole and not yet of any wire. Made by prompt/compose.ts as a pure function of what is kept. */
export interface Prompt {
  /** The sections in order, each whole text; joined by a blank line where a wire has one text. */
  instructions: string[];
  tools: ToolSpec[];
  /** Whether the model may call. `none` still sends the tools, so that the cache holds, tells the model, and drops calls made all the same. */
  choice: "auto" | "none";
  messages: PromptMessage[];
  /** Index of the last message of the turn before, for a cache mark; -1 for none. */
  markAt: number;
  /** Longest answer, tokens. */
  answerMax: number;
}

/** What comes while a model answers. */
export type Piece =
  | { type: "text"; text: string }
  /** What was streamed of this answer is void: it is asked again. */
  | { type: "restart" };

/** Why an answer stopped. */
export type Stop = "end" | "calls" | "length" | "filter" | "asked";

/** A whole answer. Text is well-formed; `calls` have no id of ours yet. */
export interface Answer {
  text: string;
  calls: { given?: string; tool: string; arguments: string }[];
  thinking?: Thinking;
  /** As the provider names it; else as it was asked for. */
  model: string;
  provider: string;
  response?: string;
  stop: Stop;
  tokens: Tokens;
  /** US dollars as the provider reported them. */
  cost?: number;
  ms: number;
}

export interface Ask {
  prompt: Prompt;
  /** How large the window is that the prompt was made for, tokens, and where that came from: named where it was too large. */
  window?: { tokens: number; from: string };
  /** Aborted: the call is stopped; `ask` then resolves with `stop: "asked"` and the text so far where the reason is `ended`, else it throws. */
  signal: AbortSignal;
  onPiece(piece: Piece): void;
}

/** What is known of a model. Unknown fields are left out; sizes in tokens. */
export interface ModelFacts {
  window?: number;
  answerMax?: number;
  /** The window it was trained for, where nobody says which it is run with: counts only up to `[window] unknown`. */
  trained?: number;
  /** Where the window came from, for people. */
  from?: string;
  images?: boolean;
  tools?: boolean;
  thinking?: boolean;
  /** False for a server that ends its stream with no finish reason: the end of the stream is then the end of the answer. */
  finish?: boolean;
  /** Where each field came from, for people. */
  sources?: Partial<Record<FactName, string>>;
}

/** A field of facts that has a value of its own. */
export type FactName = Exclude<keyof ModelFacts, "from" | "sources">;

/** The reason with which a turn that was asked to end aborts its model call. */
export const ended: unique symbol = Symbol("ended");

/**
 * One model that can be asked.
 *
 * Failures of `ask`: `model_failed`, `model_refused`, `model_timeout`, `prompt_too_long`, `no_model`.
 */
export interface Model {
  /** As settings name it, e.g. `anthropic/claude-opus-4-5`. */
  readonly name: string;
  readonly provider: string;
  facts(): Promise<ModelFacts>;
  ask(ask: Ask): Promise<Answer>;
}
