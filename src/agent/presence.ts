// Which of a process's agents are awake. An agent asleep stays served: only what it held is freed, and opens again at its
// next use. When it falls asleep by itself is the process's to say (cli/).

import type { Clock } from "../clock.ts";
import type { Agent, AgentsHere } from "./agent.ts";

export interface Presence {
  isAwake(agent: string): boolean;
  /** How many are awake. */
  awake(): number;
  /** It is used: that wakes it. Only a turn, a chat completion and a turn that recovery finishes are a use. */
  use(agent: string): void;
  /** ms since it was last used, or since the process began. */
  idleMs(agent: string): number;
  /** Frees what it holds: its sessions with tools, its store's handles. */
  sleep(agent: Agent): Promise<void>;
}

/** Everybody awake. `changed` is called after each waking and each falling asleep. */
export function presenceOf(agents: AgentsHere, clock: Clock, changed: () => void = () => {}): Presence {
  const began = clock.mono();
  const used = new Map<string, number>();
  const asleep = new Set<string>();
  return {
    isAwake: (agent) => !asleep.has(agent),
    awake() {
      let count = 0;
      for (const { name } of agents.list()) if (!asleep.has(name)) count++;
      return count;
    },
    use(agent) {
      used.set(agent, clock.mono());
      if (asleep.delete(agent)) changed();
    },
    idleMs: (agent) => clock.mono() - (used.get(agent) ?? began),
    async sleep(agent) {
      if (asleep.has(agent.name)) return;
      asleep.add(agent.name);
      await Promise.all([agent.tools.close(), agent.store.conversations.close()]);
      changed();
    },
  };
}
