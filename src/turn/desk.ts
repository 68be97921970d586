// A desk is where one process works on one conversation: its newest events at hand, the turn that runs here, and the one
// that waits to. Desks are derived and dropped when they are many; nothing that matters is only here.

import type { Agent } from "../agent/agent.ts";
import type { Clock, Ids } from "../clock.ts";
import { limits } from "../limits.ts";
import type { Notify } from "../notices.ts";
import type { SkillCache } from "../prompt/skills.ts";
import type { Holder as HolderName, Why } from "../store/seams.ts";
import type { Holder } from "./holder.ts";
import type { Caller } from "./news.ts";
import { Tail } from "./tail.ts";

/** What all turns of a process are made with. */
export interface TurnParts {
  clock: Clock;
  ids: Ids;
  notify: Notify;
  /** This process, as leases name it. */
  holder: HolderName;
  /** Zone of the heads: an IANA name. */
  zone: string;
}

/** What a process has of its turns; nothing that matters is only here. */
export interface Here {
  parts: TurnParts;
  desks: Desks;
  /** Ids of answers that a reply is handing over just now. */
  handing: Set<string>;
  /** Conversations that are being taken over just now, each until that is done. */
  finishing: Map<string, Promise<void>>;
  /** Drained: whatever is unfinished is left to recovery. */
  left: boolean;
}

/** A turn of this process: waiting for its lease, running, or with its answer given. */
export interface Running {
  turn: string;
  /** Undefined until its lease is taken. */
  holder?: Holder;
  /** Who waits for its answer; undefined for a turn that nobody asked for here. */
  caller?: Caller;
  /** Why its answer is handed over where nobody took it. */
  why: Why;
  /** Number of the message that a retry is about. */
  retries?: number;
  /** Aborted with `ended` (model.ts) when it is asked to end. */
  end: AbortController;
  /** Its last answer is kept: what comes now waits for a turn of its own. */
  closed: boolean;
  /** Settled when all is done and the lease is free. */
  work: Promise<void>;
}

export interface Desk {
  agent: Agent;
  thread: string;
  tail: Tail;
  /** What was read of the agent's skills, by their version: all its desks share it. */
  skills: SkillCache;
  /** What was told of this conversation, so that it is told once. */
  told: Set<string>;
  running?: Running;
  /** The turn that begins once the one that runs, here or elsewhere, is over. */
  next?: Running;
  /** Set while this process watches a lease that another holds. */
  watching?: Promise<void>;
  /** One message is accepted at a time. */
  accept<Value>(work: () => Promise<Value>): Promise<Value>;
}

/** The desks of a process, the least recently used dropped first once they are many; never one that is at work. */
export class Desks {
  #desks = new Map<string, Desk>();
  #skills = new WeakMap<Agent, SkillCache>();

  at(agent: Agent, thread: string): Desk {
    const key = `${agent.name}\n${thread}`;
    const known = this.#desks.get(key);
    // A new Agent value under the same name (closed and opened again) brings a new store.
    const desk = known && (known.agent === agent || busy(known)) ? known : this.#open(agent, thread);
    this.#desks.delete(key);
    this.#desks.set(key, desk);
    for (const [old, { running, next, watching }] of this.#desks) {
      if (this.#desks.size <= limits.conversationsWarm) break;
      if (!running && !next && !watching && old !== key) this.#desks.delete(old);
    }
    return desk;
  }

  #open(agent: Agent, thread: string): Desk {
    const skills = this.#skills.get(agent) ?? new Map();
    this.#skills.set(agent, skills);
    let line: Promise<unknown> = Promise.resolve();
    return {
      agent,
      thread,
      skills,
      told: new Set(),
      tail: new Tail(agent.store.conversations, thread),
      accept: (work) => {
        const done = line.then(work);
        line = done.catch(() => {});
        return done;
      },
    };
  }

  /** Desks of this agent at which a turn runs or waits. */
  busy(agent: string): Desk[] {
    return [...this.#desks.values()].filter((desk) => desk.agent.name === agent && busy(desk));
  }

  all(): Desk[] {
    return [...this.#desks.values()];
  }

  /** Lets go of what an agent's conversations hold here, where nothing is at work. */
  drop(agent: string, thread?: string): void {
    for (const [key, desk] of this.#desks) {
      if (desk.agent.name === agent && (thread === undefined || desk.thread === thread) && !busy(desk)) {
        this.#desks.delete(key);
      }
    }
  }
}

function busy(desk: Desk): boolean {
  return desk.running !== undefined || desk.next !== undefined || desk.watching !== undefined;
}
