// What a turn is asked, and what it tells its caller while it runs: the words between turn/ and the doors.

import type { ErrorForm } from "../errors.ts";
import type { Speaker, Tokens } from "../log/event.ts";

/** A message for an agent, checked. */
export interface Say {
  thread: string;
  message: { id?: string; text: string; from: Speaker; at?: string };
  connection?: string;
  /** Narrows the conversation for good. */
  tools?: string[];
  /** A new turn on a message whose turn failed. */
  retry?: boolean;
  /** Never joins: waits this many ms for a running turn, then `turn_running`. Left out: joins. */
  waitMs?: number;
}

/** The whole answer of a turn. */
export interface TurnAnswer {
  id: string;
  turn: string;
  thread: string;
  /** Number of the answer's event. */
  seq: number;
  messages: string[];
  text: string;
  model: string;
  provider: string;
  tokens: Tokens;
  cost?: number;
  ms: number;
  /** Calls of the model, so 1 without tools. */
  rounds: number;
  /** Calls of tools. */
  calls: number;
  stop: string;
  repeated?: true;
}

/** What a caller is told, in order. `joined`, `answer` and `error` are last. */
export type News =
  | { type: "start"; turn: string; thread: string; seq: number }
  | { type: "text"; text: string }
  | { type: "restart" }
  | { type: "call"; id: string; tool: string; arguments: unknown }
  | { type: "result"; id: string; tool: string; ok: boolean; ms: number; chars: number; cut?: number }
  | { type: "joined"; thread: string; seq: number; turn?: string }
  | ({ type: "answer" } & TurnAnswer)
  | ({ type: "error"; status: number; turn?: string; repeated?: true } & ErrorForm);

/** Whoever waits for a turn. A turn never waits for it, except for `taken`, and that within a bound. */
export interface Caller {
  /** Never waits, never throws; does nothing once the caller has gone. */
  tell(news: News): void;
  /** True once the last news was taken to its last byte; false once the caller has gone. Never rejects. */
  readonly taken: Promise<boolean>;
  /** Counts the caller as gone: cuts what it has not taken. */
  drop(): void;
}

/** One thing handed over by recover. */
export interface HandedOver {
  id: string;
  thread: string;
  connection?: string;
  turn: string;
  seq: number;
  text?: string;
  error?: { code: string; message: string };
  at: string;
  messages: string[];
  why: "caller_gone" | "crashed" | "joined" | "failed";
}
