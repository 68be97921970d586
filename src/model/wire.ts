// What a wire is: how a prompt becomes a provider's request, and how its reply becomes an answer. Pure on both ways;
// what carries the bytes is exchange.ts, and how often they are carried is retry.ts.

import type { Answer, Prompt } from "./model.ts";
import type { SchemaRules } from "./schema.ts";
import type { StreamEvent } from "./stream.ts";

/** What a wire needs to know of whom it speaks to. */
export interface Addressee {
  /** The model as the provider is asked for it. */
  model: string;
  provider: string;
}

/** What a request leaves out or names otherwise, where the provider refused it the usual way. */
export interface Manner {
  /** Thinking is sent back to its maker. */
  thinking: boolean;
  /** The OpenAI wire's name for the longest answer. */
  answerField: "max_tokens" | "max_completion_tokens";
  /** The server ends its stream with no finish reason: an end of the stream is the end of the answer. */
  endless: boolean;
}

/** An answer but for what its carrier knows. */
export type Draft = Omit<Answer, "ms" | "provider">;

/** Takes one reply, piece by piece. */
export interface Decoder {
  /** Takes one event of a streamed reply; gives the text that it adds. Throws a Trouble that the provider told. */
  take(event: StreamEvent): string;
  /** Takes a whole reply, of a server that does not stream. */
  takeWhole(value: unknown): string;
  /** The answer has its end; what may still come is only its usage. */
  readonly finished: boolean;
  /** Nothing more comes. */
  readonly done: boolean;
  /** The whole answer. Throws a Trouble where its end is missing, or it was refused. */
  answer(): Draft;
  /** What there is, for an answer that is stopped midway: text and tokens alone. */
  soFar(): Draft;
}

export interface Wire {
  readonly name: "openai" | "anthropic";
  /** Path of its requests under a provider's base address. */
  readonly path: string;
  headers(key: string | undefined): Record<string, string>;
  /** What it holds the schemas of tools to. */
  rules(to: Addressee): SchemaRules;
  /** The request. Its bytes depend on nothing but the arguments. */
  encode(prompt: Prompt, to: Addressee, manner: Manner): string;
  decoder(prompt: Prompt, to: Addressee, manner: Manner): Decoder;
}

/** Who made a piece of thinking, and so who may be sent it: the model as asked for, at its provider. */
export function makerOf(to: Addressee): string {
  return `${to.provider} ${to.model}`;
}
