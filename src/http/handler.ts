// The handler: one agent's harness, or many agents', as a function from a request to a response. Where it runs (a server, an
// edge runtime) and what it is made from are the caller's.

import { presenceOf } from "../agent/presence.ts";
import { randomIds, systemClock } from "../clock.ts";
import { asFailure } from "../errors.ts";
import { limits } from "../limits.ts";
import { silent } from "../notices.ts";
import { createApp, refused } from "./app.ts";
import { factsOf, type HandlerContext, type Parts } from "./door.ts";

/** What a handler is made from. Time, ids, notices and presence may be left out. */
export type HandlerParts = Pick<Parts, "agents" | "turns" | "version"> & Partial<Parts>;

export interface Handler {
  /** Answers a request. Never rejects. `context.waitUntil` is given what goes on after the response. */
  fetch(request: Request, context?: HandlerContext): Promise<Response>;
  /** Starts finishing every crashed turn of the agents here, without waiting for it; how many those are. */
  recover(): Promise<{ finishing: number }>;
  /**
   * Ends: `/healthz` says so at once and followers are let go, requests are still answered until `connections` is settled,
   * then the turns that run are waited for. All within `deadlineMs`; `left` counts turns left to recovery.
   */
  drain(options?: { deadlineMs?: number; connections?: Promise<unknown> }): Promise<{ left: number }>;
}

export function createHandler(given: HandlerParts): Handler {
  const clock = given.clock ?? systemClock;
  const parts: Parts = {
    clock,
    ids: randomIds,
    notify: silent,
    presence: given.presence ?? presenceOf(given.agents, clock),
    ...given,
  };
  const app = createApp(parts);
  const drained = new AbortController();

  return {
    async fetch(request, context) {
      try {
        return await app.fetch(request, { context, drained: drained.signal });
      } catch (thrown) {
        parts.notify("error", "A request failed inside.", factsOf(thrown));
        return refused(asFailure(thrown));
      }
    },

    async recover() {
      let finishing = 0;
      for (const agent of parts.agents.list()) {
        try {
          const found = await parts.turns.recover(agent, { keep: true });
          if (found.finishing > 0) parts.presence.use(agent.name);
          finishing += found.finishing;
        } catch (thrown) {
          // One agent's trouble is not another's.
          parts.notify("error", "An agent's crashed turns could not be looked for.", {
            agent: agent.name,
            ...factsOf(thrown),
          });
        }
      }
      return { finishing };
    },

    async drain({ deadlineMs = limits.drainMs, connections } = {}) {
      const began = clock.mono();
      drained.abort();
      const over = new AbortController();
      if (connections) await Promise.race([connections, clock.sleep(deadlineMs, over.signal)]);
      over.abort("over");
      return await parts.turns.drain(Math.max(0, deadlineMs - (clock.mono() - began)));
    },
  };
}
