// A process of its own that works on a store under contract: run by this runtime or another, told what to do by its argument,
// and answering in JSON, one line a step. Started as a program, this file is that process.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { failedBy } from "../../src/errors.ts";
import type { ConversationStore } from "../../src/store/seams.ts";
import { message } from "./events.ts";
import type { Place } from "./places.ts";

/** What the process does. */
export type Job =
  | { kind: "append"; thread: string; count: number; who: string }
  | { kind: "hold"; thread: string; key: string };

/** A running process. */
export interface Other {
  pid: number;
  /** Its next line. */
  line(): Promise<unknown>;
  kill(): void;
  /** Resolves with its exit code when it has ended. */
  ended: Promise<number | null>;
}

/** Arguments before the file, for a runtime that starts a program of ours. */
export function runArguments(runtime: string): string[] {
  return /deno/.test(runtime) ? ["run", "-A", "--no-check"] : ["--experimental-strip-types", "--no-warnings"];
}

/** Starts a process that does `job` on the store of `place`. */
export function start(place: Place, job: Job, runtime = process.execPath): Other {
  const file = fileURLToPath(import.meta.url);
  const child = spawn(runtime, [
    ...runArguments(runtime),
    file,
    JSON.stringify({ opener: place.opener, job }),
  ], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines: string[] = [], waiting: ((line: string) => void)[] = [];
  let rest = "";
  child.stdout!.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop() as string;
    for (const line of parts) {
      const first = waiting.shift();
      if (first) first(line);
      else lines.push(line);
    }
  });
  const ended = new Promise<number | null>((done) => child.once("close", (code) => done(code)));
  return {
    pid: child.pid as number,
    line: () =>
      Promise.race([
        new Promise<string>((done) => lines.length > 0 ? done(lines.shift() as string) : waiting.push(done)),
        ended.then((code) => {
          throw new Error(`the process ended (${code}) before it said so`);
        }),
      ]).then((line) => JSON.parse(line)),
    kill: () => void child.kill("SIGKILL"),
    ended,
  };
}

async function run(store: ConversationStore, job: Job, say: (value: unknown) => void): Promise<void> {
  if (job.kind === "hold") {
    const holder = { host: "h", process: process.pid, start: "s" };
    const lease = { key: job.key, holder, turn: "turn_1", taken: Date.now(), deadline: 60_000 };
    say({ held: await store.leaseTake(job.thread, lease) !== undefined });
    return await new Promise(() => setInterval(() => {}, 1000));
  }
  const won: number[] = [];
  for (let i = 0, seq = 1; i < job.count; seq++) {
    try {
      await store.append(job.thread, {
        seq,
        lines: [message(seq, `${job.who} ${i}`)],
        token: `${job.who}-${i}-${seq}`,
      });
      won.push(seq);
      i++;
    } catch (error) {
      if (!failedBy(error, "seq_taken")) throw error;
      seq = error.facts.next as number - 1;
    }
  }
  say({ won });
}

if (
  process.argv[1] &&
  createRequire(import.meta.url).resolve(process.argv[1]) === fileURLToPath(import.meta.url)
) {
  const { opener, job } = JSON.parse(process.argv[2] as string);
  const module = await import(opener.module);
  const store: ConversationStore = await module[opener.name](opener.args);
  await run(store, job, (value) => console.log(JSON.stringify(value)));
  await store.close();
}
