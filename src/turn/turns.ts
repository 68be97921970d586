// The turns of a process, as the doors see them. What becomes of a message is accept.ts, what one turn does is turn.ts, who
// takes over whom is recovery.ts.

import type { Agent } from "../agent/agent.ts";
import { failedBy } from "../errors.ts";
import { ended } from "../model/model.ts";
import { type Accepted, say } from "./accept.ts";
import { Desks, type Here, type Running, type TurnParts } from "./desk.ts";
import { recover, type Recovery, sweep } from "./handover.ts";
import type { Caller, Say } from "./news.ts";
import { type Fork, fork, remove, whole } from "./whole.ts";

export type { TurnParts } from "./desk.ts";

export interface Turns {
  /**
   * Takes a message. Resolves as soon as its fate is decided (kept and told to `caller` by `start` or `joined`, or repeated);
   * throws a Failure where nothing was kept. Everything after comes to `caller`. `work` is what goes on: hand it to `waitUntil`.
   */
  say(agent: Agent, say: Say, caller: Caller): Promise<Accepted>;
  /** Asks the running turn to end, wherever it runs. */
  end(agent: Agent, thread: string): Promise<boolean>;
  /** What waits, and how many crashed turns are being finished; call `handed` once that is known of the reply. */
  recover(agent: Agent, request: { keep?: boolean; taken?: string[] }): Promise<Recovery>;
  /** Looks at the end of every conversation, as after a reboot, when leases may be lost; finishes what is owed. */
  sweep(agent: Agent): Promise<{ finishing: number }>;
  /** Turns of this agent that run or wait in this process. */
  running(agent: string): number;
  /** Waits for all turns, at most this long; then leaves the rest to recovery, whole. */
  drain(deadlineMs: number): Promise<{ left: number }>;
  /** Copies what was before a message into a new conversation. Throws `not_found`, `invalid`, `exists`, `turn_running`. */
  fork(agent: Agent, thread: string, as: Fork): Promise<{ events: number }>;
  /** Removes a conversation. Throws `not_found`, `turn_running`. */
  remove(agent: Agent, thread: string): Promise<void>;
  /** Runs `work` while nobody else works on the conversation. Throws `turn_running`. */
  whole<Value>(agent: Agent, thread: string, work: () => Promise<Value>): Promise<Value>;
  /** Lets go of what is at hand of an agent's conversations. */
  drop(agent: string, thread?: string): void;
}

export function createTurns(parts: TurnParts): Turns {
  const here: Here = { parts, desks: new Desks(), handing: new Set(), finishing: new Map(), left: false };
  return {
    say: (agent, message, caller) => say(here, agent, message, caller),
    end: (agent, thread) => end(here, agent, thread),
    recover: (agent, request) => recover(here, agent, request),
    sweep: (agent) => sweep(here, agent),
    running: (agent) => here.desks.busy(agent).length,
    drain: (deadlineMs) => drain(here, deadlineMs),
    fork: (agent, thread, as) => fork(here, agent, thread, as),
    remove: (agent, thread) => remove(here, agent, thread),
    whole: (agent, thread, work) => whole(here, agent, thread, work),
    drop: (agent, thread) => here.desks.drop(agent, thread),
  };
}

async function end(here: Here, agent: Agent, thread: string): Promise<boolean> {
  const store = agent.store.conversations;
  const held = await store.leaseRead(thread);
  if (!held || held.state === "dead" || held.lease.answered) return false;
  const running = here.desks.at(agent, thread).running;
  const own = running && !running.closed && running.turn === held.lease.turn ? running : undefined;
  if (running && !own) return false;
  try {
    await store.mark(thread, { end: held.lease.turn });
  } catch (thrown) {
    if (failedBy(thrown, "lease_lost")) return false;
    throw thrown;
  }
  own?.end.abort(ended);
  return true;
}

async function drain(here: Here, deadlineMs: number): Promise<{ left: number }> {
  const over = new AbortController();
  const bound = here.parts.clock.sleep(deadlineMs, over.signal).then(() => true);
  const idle = async () => {
    for (let work = working(here); work.length > 0; work = working(here)) {
      await Promise.allSettled(work.map((one) => one.work));
    }
    return false;
  };
  const late = await Promise.race([idle(), bound]);
  over.abort();
  here.left = true;
  const rest = late ? working(here) : [];
  await Promise.allSettled(rest.map((one) => one.holder?.leave()));
  return { left: rest.length };
}

function working({ desks }: Here): Running[] {
  return desks.all().flatMap(({ running, next }) => [running, next]).filter((one) => one !== undefined);
}
