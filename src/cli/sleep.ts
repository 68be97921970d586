// When agents fall asleep by themselves: one timer for the agent that is due next, none where nothing can become due.

import type { Agent, AgentsHere } from "../agent/agent.ts";
import type { Presence } from "../agent/presence.ts";
import { asFailure } from "../errors.ts";
import type { Turns } from "../turn/turns.ts";
import { notices } from "./output.ts";

export interface SleepParts {
  agents: AgentsHere;
  presence: Presence;
  turns: Turns;
  /** Left out: no agent falls asleep by itself. */
  sleepAfterMs: number | undefined;
}

export interface Sleepiness {
  start(): void;
  stop(): void;
}

/** Lets agents that are unused for `sleepAfterMs`, and run no turn, fall asleep. */
export function sleepiness({ agents, presence, turns, sleepAfterMs }: SleepParts): Sleepiness {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stopped = false;

  /** Lets those fall asleep that are due; ms until the next one may be. */
  async function look(after: number): Promise<number> {
    let next = after;
    for (const agent of agents.list()) {
      if (!presence.isAwake(agent.name)) continue;
      const leftMs = after - presence.idleMs(agent.name);
      if (leftMs > 0) next = Math.min(next, leftMs);
      else if (turns.running(agent.name) === 0) await fallAsleep(agent);
    }
    return next;
  }

  async function fallAsleep(agent: Agent): Promise<void> {
    try {
      turns.drop(agent.name);
      await presence.sleep(agent);
    } catch (thrown) {
      notices("error", "An agent could not fall asleep.", {
        agent: agent.name,
        code: asFailure(thrown).code,
      });
    }
  }

  function arm(ms: number, after: number): void {
    if (stopped) return;
    timer = setTimeout(() => void look(after).then((next) => arm(next, after)), ms);
  }

  return {
    start() {
      if (sleepAfterMs !== undefined) arm(sleepAfterMs, sleepAfterMs);
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
