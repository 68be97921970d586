// What tools are to a turn: a list to offer, and calls that give data. Servers, sessions and the protocol are elsewhere here.

import type { ToolSpec } from "../tool.ts";

/** What one turn offers: the same from its first round to its last. */
export interface Offer {
  /** Sorted by tool, then by call. Not yet narrowed. */
  tools: ToolSpec[];
  /** What each server says of itself, by its tool's name, sorted; at most 2 KB each. */
  instructions: { tool: string; text: string }[];
}

export interface ToolCall {
  thread: string;
  turn: string;
  /** A stable key of ours for this very call, so that a tool can refuse a repeat: thread, number and position. */
  key: string;
  /** `<tool>__<call>`. */
  name: string;
  arguments: Record<string, unknown>;
  signal: AbortSignal;
}

/** A call's result as data: whatever went wrong is told in `text` with `ok: false`; nothing is thrown. */
export interface CallResult {
  ok: boolean;
  /** Never empty; at most 32 KiB with head, tail and the full size told. */
  text: string;
  /** Bytes of the whole result, where it was cut. */
  cut?: number;
}

/** The agent's tools. Never makes a call twice by itself. Usable again after `close`. */
export interface Toolbox {
  /**
   * What is offered under these settings' `[tools]` (addresses by tool): lists what is not listed yet, within 30 s for all
   * together. Never rejects for a tool that fails.
   */
  offer(addresses?: Readonly<Record<string, string>>): Promise<Offer>;
  /** Calls what the newest offer holds. */
  call(call: ToolCall): Promise<CallResult>;
  /** Ends the sessions that live as long as one turn. */
  turnEnded(turn: string): Promise<void>;
  /** Ends all sessions. */
  close(): Promise<void>;
}

/**
 * The offer narrowed to these names, each whole (`<tool>__<call>`): a bare `<tool>` names nothing, so that a list says exactly
 * what it allows, and narrowing twice is keeping what stands in both. Left out: the whole offer.
 */
export function narrow(offer: Offer, names: readonly string[] | undefined): Offer {
  if (names === undefined) return offer;
  const named = new Set(names);
  const tools = offer.tools.filter(({ name }) => named.has(name));
  return {
    tools,
    instructions: offer.instructions.filter(({ tool }) =>
      tools.some(({ name }) => name.startsWith(`${tool}__`))
    ),
  };
}

/** No tools at all. */
export const noTools: Toolbox = {
  offer: () => Promise.resolve({ tools: [], instructions: [] }),
  call: (call) => Promise.resolve(noSuchTool(call.name)),
  turnEnded: () => Promise.resolve(),
  close: () => Promise.resolve(),
};

/** What a call is answered that names no tool which is offered. */
export function noSuchTool(name: string): CallResult {
  return { ok: false, text: `There is no tool ${name}.` };
}
