// The world of a simulation: one seed, one virtual clock, and everything that may happen between two ticks of it. The same
// seed gives the same run on every machine.

import { setImmediate } from "node:timers";
import type { Clock } from "../../src/clock.ts";

/** Numbers from a seed (mulberry32). */
export interface Dice {
  /** 0 ≤ x < 1. */
  roll(): number;
  /** A whole number below `sides`. */
  below(sides: number): number;
  /** Whether something of this probability happens. */
  happens(probability: number): boolean;
  pick<One>(all: readonly One[]): One;
}

export function dice(seed: number): Dice {
  let state = seed >>> 0;
  const roll = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const below = (sides: number) => Math.floor(roll() * sides);
  return {
    roll,
    below,
    happens: (probability) => roll() < probability,
    pick: (all) => all[below(all.length)]!,
  };
}

interface Timer {
  at: number;
  order: number;
  wake: () => void;
}

/** Virtual time: nothing passes but by `run`. */
export class World {
  readonly dice: Dice;
  now = 1_700_000_000_000;
  #timers: Timer[] = [];
  #order = 0;

  constructor(seed: number) {
    this.dice = dice(seed);
  }

  /** Wakes after `ms`; returns what cancels it. */
  after(ms: number, wake: () => void): () => void {
    const timer = { at: this.now + Math.max(0, ms), order: this.#order++, wake };
    let low = 0, high = this.#timers.length;
    // Newest first at the end: the next to wake is popped.
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.#timers[middle]!;
      if (other.at > timer.at || (other.at === timer.at && other.order > timer.order)) low = middle + 1;
      else high = middle;
    }
    this.#timers.splice(low, 0, timer);
    return () => {
      const at = this.#timers.indexOf(timer);
      if (at >= 0) this.#timers.splice(at, 1);
    };
  }

  sleep(ms: number): Promise<void> {
    return new Promise((done) => this.after(ms, done));
  }

  /** Runs until `done` says so, or nothing is left to wake, or `maxMs` of virtual time are over. */
  async run(done: () => boolean, maxMs: number): Promise<"done" | "idle" | "late"> {
    const until = this.now + maxMs;
    for (;;) {
      await settle();
      if (done()) return "done";
      const timer = this.#timers.at(-1);
      if (!timer) return "idle";
      if (timer.at > until) {
        this.now = until;
        return "late";
      }
      this.#timers.pop();
      this.now = timer.at;
      timer.wake();
    }
  }
}

/** Lets every promise that can go on go on. */
function settle(): Promise<void> {
  return new Promise((done) => setImmediate(done));
}

/** One process: it may be paused, and once killed nothing of it ever goes on. Its wall clock may be wrong. */
export class Process {
  readonly world: World;
  readonly name: string;
  readonly skewMs: number;
  dead = false;
  #resumed: Promise<void> = Promise.resolve();

  constructor(world: World, name: string, skewMs: number) {
    this.world = world;
    this.name = name;
    this.skewMs = skewMs;
  }

  kill(): void {
    this.dead = true;
  }

  pause(ms: number): void {
    this.#resumed = this.world.sleep(ms);
  }

  /** Passes while the process lives and is not paused; never returns once it is killed. */
  async gate(): Promise<void> {
    for (let resumed; resumed !== this.#resumed;) await (resumed = this.#resumed);
    if (this.dead) await new Promise(() => {});
  }

  /** Something outside takes `ms`, then happens, then its reply comes. */
  async outside<Value>(ms: number, happen: () => Promise<Value> | Value): Promise<Value> {
    await this.gate();
    await this.world.sleep(ms);
    const value = await happen();
    await this.world.sleep(0);
    await this.gate();
    return value;
  }

  readonly clock: Clock = {
    now: () => this.world.now + this.skewMs,
    mono: () => this.world.now,
    sleep: async (ms, signal) => {
      if (signal?.aborted) return;
      await new Promise<void>((done) => {
        const cancel = this.world.after(ms, () => {
          signal?.removeEventListener("abort", early);
          done();
        });
        const early = () => {
          cancel();
          done();
        };
        signal?.addEventListener("abort", early, { once: true });
      });
      await this.gate();
    },
  };
}
