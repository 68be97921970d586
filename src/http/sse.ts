// Server-sent events: one frame of text, and the comment that keeps a silent stream alive.

import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";
import type { Outflow } from "./outflow.ts";

/** One event: its name, its one line of JSON, and its id where it has one. */
export function frame(event: string, line: string, id?: number): string {
  return `${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${line}\n\n`;
}

export interface KeepAlive {
  /** Something else was just pushed. */
  sent(): void;
}

/** Pushes a comment after each `limits.keepAliveMs` of silence, until the flow is over. */
export function keepAlive(clock: Clock, flow: Outflow): KeepAlive {
  const over = new AbortController();
  flow.taken.then(() => over.abort("over"));
  let last = clock.mono();
  const beat = async () => {
    while (!over.signal.aborted) {
      await clock.sleep(last + limits.keepAliveMs - clock.mono(), over.signal);
      if (over.signal.aborted || clock.mono() - last < limits.keepAliveMs) continue;
      flow.push(new TextEncoder().encode(comment));
      last = clock.mono();
    }
  };
  void beat();
  return { sent: () => void (last = clock.mono()) };
}

/** What a silent stream sends. */
export const comment = ": keep-alive\n\n";
