// What the tests of tools share: a toolbox over a memory of files, a clock that runs fast, and doubles that are closed at the end.

import { after } from "node:test";
import type { Clock } from "../../src/clock.ts";
import type { Facts } from "../../src/errors.ts";
import type { Level } from "../../src/notices.ts";
import { type McpToolbox, openToolbox, type ToolboxParts } from "../../src/tools/toolbox.ts";
import type { CallResult } from "../../src/tools/tools.ts";
import { type Double, mcpDouble, type Script } from "../doubles/mcp.ts";

const closing: (() => Promise<unknown>)[] = [];
after(async () => {
  for (const close of closing.reverse()) await close();
});

/** Closes something when the file's tests are over. */
export function atEnd(close: () => Promise<unknown>): void {
  closing.push(close);
}

export async function double(script: Script = {}): Promise<Double> {
  const server = await mcpDouble(script);
  atEnd(() => server.close());
  return server;
}

/** The agent's own folder, in memory. */
export class Folder {
  readonly files = new Map<string, Uint8Array>();
  reads = 0;
  writes = 0;
  read = async (path: string): Promise<Uint8Array | undefined> => {
    this.reads++;
    return this.files.get(path);
  };
  write = async (path: string, bytes: Uint8Array): Promise<void> => {
    this.writes++;
    this.files.set(path, bytes);
  };
  /** `tool-lists.json`, as text. */
  lists(): string {
    return new TextDecoder().decode(this.files.get("tool-lists.json"));
  }
}

/** A clock on which time goes `speed` times as fast, and from `hurry` on otherwise; and the alarm that goes with it. */
export function fastClock(speed: number, slept: number[] = []): {
  clock: Clock;
  alarm: NonNullable<ToolboxParts["alarm"]>;
  hurry(speed: number): void;
} {
  let passed = 0, since = performance.now();
  const mono = () => passed + (performance.now() - since) * speed;
  return {
    hurry(next) {
      [passed, since, speed] = [mono(), performance.now(), next];
    },
    clock: {
      mono,
      now: () => Date.UTC(2026, 11, 1) + mono(),
      sleep: (ms, signal) => {
        slept.push(ms);
        return new Promise((done) => {
          if (signal?.aborted) return done();
          const end = () => {
            clearTimeout(timer);
            signal?.removeEventListener("abort", end);
            done();
          };
          const timer = setTimeout(end, ms / speed);
          signal?.addEventListener("abort", end, { once: true });
        });
      },
    },
    alarm: (ms, ring) => {
      const timer = setTimeout(ring, ms / speed);
      return () => clearTimeout(timer);
    },
  };
}

export interface Told {
  level: Level;
  sentence: string;
  facts: Facts | undefined;
}

export interface Rig {
  box: McpToolbox;
  folder: Folder;
  told: Told[];
  /** Every wait that was begun, ms. */
  slept: number[];
  /** From here on time goes so much faster. */
  hurry(speed: number): void;
  /** Calls, in turn `turn_1` unless it says otherwise. */
  call(
    name: string,
    given?: Record<string, unknown>,
    more?: { turn?: string; key?: string; signal?: AbortSignal },
  ): Promise<CallResult>;
  names(addresses?: Record<string, string>): Promise<string[]>;
}

/** A toolbox over these addresses, by variable. */
export function rig(
  environment: Record<string, string>,
  parts: Partial<ToolboxParts> & { folder?: Folder; speed?: number } = {},
): Rig {
  const { folder = new Folder(), speed = 1, ...others } = parts;
  const told: Told[] = [], slept: number[] = [];
  const { clock, alarm, hurry } = fastClock(speed, slept);
  const box = openToolbox({
    environment,
    own: folder,
    fetch: (input, init) => fetch(input, init),
    notify: (level, sentence, facts) => void told.push({ level, sentence, facts }),
    clock,
    alarm,
    ...others,
  });
  atEnd(() => box.close());
  let keys = 0;
  return {
    box,
    folder,
    told,
    slept,
    hurry,
    call: (name, given = {}, { turn = "turn_1", key = `mia/t:1#c1_${++keys}`, signal } = {}) =>
      box.call({
        thread: "t:1",
        turn,
        key,
        name,
        arguments: given,
        signal: signal ?? new AbortController().signal,
      }),
    names: async (addresses) => (await box.offer(addresses)).tools.map(({ name }) => name),
  };
}

/** Waits until `done`; throws where that is not within `ms`. */
export async function until(done: () => boolean, ms = 10_000): Promise<void> {
  const late = performance.now() + ms;
  while (!done()) {
    if (performance.now() > late) throw new Error("waited in vain");
    await new Promise((next) => setTimeout(next, 5));
  }
}
