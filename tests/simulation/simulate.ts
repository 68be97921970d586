// One simulated history: processes that share a store, a model and tools that fail, callers that leave, steer, repeat and end.
// After it an oracle looks at everything that was seen. All from one seed.

import type { Agent } from "../../src/agent/agent.ts";
import { asFailure, Failure } from "../../src/errors.ts";
import { isAnswer } from "../../src/log/conversation.ts";
import { type Event, parseLine } from "../../src/log/event.ts";
import type { Answer, Ask, Model } from "../../src/model/model.ts";
import { conversationsOver } from "../../src/store/conversations.ts";
import type { Driver } from "../../src/store/seams.ts";
import type { Caller, News } from "../../src/turn/news.ts";
import { createTurns, type Turns } from "../../src/turn/turns.ts";
import { configIn } from "../../src/agent/config.ts";
import { defaultSettings } from "../../src/agent/settings.ts";
import { type Memory, memoryDriver, newMemory } from "../doubles/memory.ts";
import { type Dice, Process, World } from "./world.ts";

export interface Simulated {
  seed: number;
  /** Turns that came to an outcome. */
  turns: number;
  kills: number;
  /** Kept, failed ones left out. */
  summaries: number;
  /** What must not be; empty where all is well. */
  violations: string[];
}

/** Set to see what the processes of a history tell. */
export const trace: { on: boolean } = { on: false };

/** Chances of what may go wrong, each per occasion. */
const chance = {
  lostReply: 0.02,
  refused: 0.02,
  kill: 0.04,
  pause: 0.03,
  modelFails: 0.05,
  calls: 0.35,
  leaves: 0.15,
  repeats: 0.2,
  ends: 0.04,
};

/** A window so small that conversations outgrow it. */
const settings = {
  ...defaultSettings,
  window: { ...defaultSettings.window, max: 1_600 },
  instructions: { base: "none" },
};

const term = 3_000, messages = 24, threads = ["sim:one", "sim:two"];

/** Runs the history of `seed`. */
export async function simulate(seed: number): Promise<Simulated> {
  const world = new World(seed);
  const history = new History(world);
  const processes = [0, 1, 2].map((n) => history.start(`p${n}`));
  const { dice } = world;
  let said = 0, actors = 0;

  for (let n = 0; n < messages; n++) {
    actors++;
    world.after(dice.below(30_000), () => {
      const id = `m${n}`;
      said++;
      void speak(history, processes, id, dice.pick(threads)).finally(() => actors--);
    });
  }
  const meddle = () => {
    if (said < messages) world.after(500 + dice.below(1_500), meddle);
    const n = dice.below(processes.length);
    if (dice.happens(chance.kill * 4)) processes[n] = history.replace(processes[n]!);
    if (dice.happens(chance.pause * 4)) processes[n]!.process.pause(dice.below(6_000));
    if (dice.happens(chance.ends * 2)) void history.end(processes[n]!, dice.pick(threads));
    if (dice.happens(0.3)) void history.recover(processes[n]!, dice.happens(0.5));
  };
  world.after(1_000, meddle);
  await world.run(() => said === messages && actors === 0, 600_000);

  history.calm = true;
  await recoverAll(history, processes);
  // Whoever never heard of its message's fate asks again, as a caller that may have lost an answer does.
  let asking = 0;
  for (const id of history.accepted.keys()) {
    if (history.heard.has(id)) continue;
    asking++;
    void history.say(processes[0]!, id, history.accepted.get(id)!).finally(() => asking--);
  }
  await world.run(() => asking === 0, 120_000);
  await recoverAll(history, processes);
  const { kills } = history;
  return {
    seed,
    kills,
    turns: history.outcomes(),
    summaries: history.summaries(),
    violations: history.violations(),
  };
}

/** What bridges do, until nothing is open any more; in bounds. */
async function recoverAll(history: History, processes: Unit[]): Promise<void> {
  for (let quiet = 0, look = 0; quiet < 2 && look < 60; look++) {
    await history.world.run(() => false, 5_000);
    for (const unit of processes) void history.recover(unit, true);
    await history.world.run(() => false, 5_000);
    quiet = history.quiet() ? quiet + 1 : 0;
  }
}

/** One caller: says its message until something was heard of it, as a bridge does. */
async function speak(history: History, processes: Unit[], id: string, thread: string): Promise<void> {
  const { world } = history;
  for (let tried = 0; tried < 4; tried++) {
    const known = await history.say(world.dice.pick(processes), id, thread);
    if (known && !world.dice.happens(chance.repeats)) return;
    await world.sleep(500 + world.dice.below(4_000));
  }
}

interface Unit {
  process: Process;
  agent: Agent;
  turns: Turns;
}

class History {
  readonly accepted = new Map<string, string>();
  /** Ids of messages of whose fate somebody heard, and how often each outcome came. */
  readonly heard = new Map<string, Set<string>>();
  readonly received = new Map<string, string>();
  kills = 0;
  calm = false;
  #world: World;
  #dice: Dice;
  #memory: Memory = newMemory();
  #called = new Map<string, number>();
  #wrong: string[] = [];
  #units = 0;

  constructor(world: World) {
    this.#world = world;
    this.#dice = world.dice;
  }

  get world(): World {
    return this.#world;
  }

  start(name: string): Unit {
    const process = new Process(this.#world, `${name}.${++this.#units}`, this.#dice.below(120_000) - 60_000);
    let ids = 0;
    const parts = {
      clock: process.clock,
      ids: (prefix: string) => `${prefix}_${process.name}_${++ids}`,
    };
    const conversations = conversationsOver(this.#driver(process), { ...parts, term });
    const nothing = {
      read: () => Promise.resolve(undefined),
      write: () => Promise.resolve(),
      list: () => Promise.resolve([]),
      delete: () => Promise.resolve(),
    };
    const model = this.#model(process);
    const agent: Agent = {
      name: "sim",
      key: "",
      workspace: "/files",
      store: { conversations, own: nothing, files: nothing },
      config: configIn(nothing),
      settings: () => Promise.resolve(settings),
      model: () => Promise.resolve(model),
      fallback: () => Promise.resolve(undefined),
      tools: this.#tools(process),
    };
    const notify = (level: string, sentence: string, facts?: unknown) => {
      if (trace.on) {
        console.error(
          this.#world.now - 1_700_000_000_000,
          process.name,
          level,
          sentence,
          JSON.stringify(facts),
        );
      }
    };
    const turns = createTurns({
      ...parts,
      notify,
      zone: "UTC",
      holder: { host: "sim", process: this.#units, start: process.name },
    });
    return { process, agent, turns };
  }

  replace(unit: Unit): Unit {
    unit.process.kill();
    this.kills++;
    return this.start(unit.process.name.split(".")[0]!);
  }

  /** Says a message; true once something final was heard of it. */
  async say(unit: Unit, id: string, thread: string): Promise<boolean> {
    const patience = this.calm ? 60_000 : 5_000 + this.#dice.below(30_000);
    const leaves = !this.calm && this.#dice.happens(chance.leaves);
    const heard = Promise.withResolvers<boolean>();
    const taken = Promise.withResolvers<boolean>();
    let gone = false;
    const leave = () => {
      gone = true;
      taken.resolve(false);
      heard.resolve(false);
    };
    const caller: Caller = {
      taken: taken.promise,
      drop: leave,
      tell: (news) => {
        // A reply of a killed process never arrives.
        if (gone || unit.process.dead) return;
        if (news.type === "start" || news.type === "joined") this.accepted.set(id, thread);
        if (news.type === "start" && leaves) return leave();
        if (news.type !== "answer" && news.type !== "error" && news.type !== "joined") return;
        if (news.type !== "joined") this.#told(news, id);
        taken.resolve(true);
        heard.resolve(
          news.type !== "error" ||
            !["draining", "lease_lost", "store_failed", "store_busy"].includes(news.error.code),
        );
      },
    };
    this.#world.after(patience, leave);
    const say = {
      thread,
      message: { id, text: `text of ${id} ${"and so on ".repeat(16)}`, from: { role: "owner" as const } },
    };
    unit.turns.say(unit.agent, say, caller).catch((thrown) => {
      if (asFailure(thrown).code === "internal") {
        this.#wrong.push(`say threw: ${(asFailure(thrown).cause as Error).stack}`);
      }
      leave();
    });
    return await heard.promise;
  }

  #told(news: News, id: string): void {
    if (news.type === "answer") this.#received(news.id, news.text, news.messages);
    if (news.type !== "error") return;
    const { code } = news.error;
    if (code === "internal") this.#wrong.push(`internal error told in ${news.turn}`);
    // What this process could not do is no failure of the turn.
    if (code === "model_failed" || code === "recovery_exhausted") {
      this.#received(`${news.turn} ${code}`, code, [id]);
    }
  }

  #received(outcome: string, text: string, ids: string[]): void {
    const before = this.received.get(outcome);
    if (before !== undefined && before !== text) {
      this.#wrong.push(`outcome ${outcome} came with two texts: ${before} | ${text}`);
    }
    this.received.set(outcome, text);
    for (const id of ids) this.heard.set(id, (this.heard.get(id) ?? new Set()).add(outcome));
  }

  async end(unit: Unit, thread: string): Promise<void> {
    await unit.turns.end(unit.agent, thread).catch(() => false);
  }

  async recover(unit: Unit, keep: boolean): Promise<void> {
    try {
      const recovery = await unit.turns.recover(unit.agent, { keep });
      if (unit.process.dead) return;
      for (const one of recovery.answers) {
        const { error, id, turn, text = "", messages } = one;
        if (error) this.#received(`${turn} ${error.code}`, error.code, messages);
        else this.#received(id, text, messages);
      }
      if (keep) await unit.turns.recover(unit.agent, { keep, taken: recovery.answers.map(({ id }) => id) });
      else await recovery.handed(this.#dice.happens(0.9));
    } catch (thrown) {
      if (asFailure(thrown).code === "internal") {
        this.#wrong.push(`recover threw: ${(asFailure(thrown).cause as Error).stack}`);
      }
    }
  }

  /** The store as one process reaches it: late, sometimes refusing, sometimes losing a reply. */
  #driver(process: Process): Driver {
    const inner = memoryDriver(this.#memory, () => this.#world.now, this.#dice.happens(0.5));
    const through = async <Value>(happen: () => Promise<Value>): Promise<Value> => {
      const fate = this.calm ? 1 : this.#dice.roll();
      const late = this.#dice.happens(0.03) ? this.#dice.below(4_000) : this.#dice.below(40);
      return await process.outside(late, async () => {
        if (fate < chance.refused) throw new Failure("store_failed", { why: "simulated" });
        const value = await happen();
        if (fate < chance.refused + chance.lostReply) {
          throw new Failure("store_failed", { why: "reply lost" });
        }
        return value;
      });
    };
    return {
      ...inner,
      last: (thread) => through(() => inner.last(thread)),
      readBack: (thread, before, limit) => through(() => inner.readBack(thread, before, limit)),
      append: (thread, append) => through(() => inner.append(thread, append)),
      async *read(thread, from, to) {
        yield* await through(async () => {
          const all: string[] = [];
          for await (const line of inner.read(thread, from, to)) all.push(line);
          return all;
        });
      },
      documents: {
        get: (thread, kind) => through(() => inner.documents.get(thread, kind)),
        swap: (thread, kind, tag, text) => through(() => inner.documents.swap(thread, kind, tag, text)),
        list: (kind) => through(() => inner.documents.list(kind)),
      },
    };
  }

  #model(process: Process): Model {
    const ask = async ({ prompt, signal, onPiece }: Ask): Promise<Answer> => {
      this.#valid(prompt.messages);
      const seen = prompt.messages.flatMap((message) =>
        message.role === "user" ? message.text.match(/text of m\d+/g) ?? [] : []
      );
      const ms = 50 + this.#dice.below(3_000);
      const asked = Promise.withResolvers<"asked">();
      const stop = Promise.withResolvers<never>();
      signal.addEventListener(
        "abort",
        () => typeof signal.reason === "symbol" ? asked.resolve("asked") : stop.reject(signal.reason),
      );
      if (signal.aborted) asked.resolve("asked");
      onPiece({ type: "text", text: "so " });
      const early = await Promise.race([process.outside(ms, () => undefined), asked.promise, stop.promise]);
      const base = { model: "sim", provider: "sim", tokens: { input: 1, output: 1 }, ms };
      if (early === "asked") return { ...base, text: "so ", calls: [], stop: "asked" };
      if (!this.calm && this.#dice.happens(chance.modelFails)) {
        throw new Failure("model_failed", { why: "simulated" });
      }
      if (prompt.choice === "auto" && !this.calm && this.#dice.happens(chance.calls)) {
        const calls = Array.from(
          { length: 1 + this.#dice.below(3) },
          () => ({ given: "call_0", tool: "t__do", arguments: "{}" }),
        );
        return { ...base, text: "", calls, stop: "calls" };
      }
      return { ...base, text: `saw ${seen.length}: ${seen.at(-1)}`, calls: [], stop: "end" };
    };
    return { name: "sim/sim", provider: "sim", facts: () => Promise.resolve({}), ask };
  }

  /** Every prompt is valid for its provider: each call has one result, right after it. */
  #valid(messages: Ask["prompt"]["messages"]): void {
    const waiting = new Set<string>();
    for (const message of messages) {
      if (message.role === "result") {
        if (!waiting.delete(message.call)) {
          this.#wrong.push(`prompt: result of ${message.call} without its call`);
        }
      } else {
        if (waiting.size > 0) this.#wrong.push(`prompt: calls ${[...waiting]} without a result`);
        waiting.clear();
        if (message.role === "model") { for (const call of message.calls) waiting.add(call.id); }
      }
    }
    if (waiting.size > 0) this.#wrong.push(`prompt: calls ${[...waiting]} without a result at its end`);
  }

  #tools(process: Process): Agent["tools"] {
    const tool = { name: "t__do", description: "", schema: { type: "object" } };
    return {
      offer: () => Promise.resolve({ tools: [tool], instructions: [] }),
      call: async ({ key, signal }) => {
        const over = Promise.withResolvers<void>();
        signal.addEventListener("abort", () => over.resolve());
        const made = process.outside(this.#dice.below(1_500), () => {
          const times = (this.#called.get(key) ?? 0) + 1;
          this.#called.set(key, times);
          if (times > 1) this.#wrong.push(`call ${key} was made ${times} times`);
          return { ok: true, text: `done ${key}` };
        });
        const early = over.promise.then(() => ({ ok: false, text: "given up; its outcome is unknown" }));
        return await Promise.race([made, early]);
      },
      turnEnded: () => Promise.resolve(),
      close: () => Promise.resolve(),
    };
  }

  #events(thread: string): Event[] {
    return (this.#memory.conversations.get(thread)?.lines ?? []).flatMap((line) =>
      parseLine(line).event ?? []
    );
  }

  outcomes(): number {
    return threads.flatMap((thread) => this.#events(thread)).filter((event) =>
      isAnswer(event) || event.type === "ended"
    ).length;
  }

  summaries(): number {
    return threads.flatMap((thread) => this.#events(thread)).filter((event) =>
      event.type === "summary" && event.failed === undefined
    ).length;
  }

  /** Whether nothing is open any more. */
  quiet(): boolean {
    return this.#memory.documents.size === 0;
  }

  violations(): string[] {
    const wrong = [...this.#wrong];
    for (const thread of threads) this.#checkLog(thread, wrong);
    for (const [id, thread] of this.accepted) {
      const kept = this.#events(thread).filter((event) => event.type === "message" && event.id === id);
      if (kept.length !== 1) wrong.push(`${id} was accepted and is kept ${kept.length} times`);
      const outcomes = this.heard.get(id) ?? new Set();
      if (outcomes.size === 0) wrong.push(`nobody heard what became of ${id}`);
      if (outcomes.size > 1) wrong.push(`${id} was settled more than once: ${[...outcomes]}`);
    }
    for (const { thread, kind, text } of this.#memory.documents.values()) {
      wrong.push(`left open: ${kind} of ${thread}: ${text}`);
    }
    return wrong;
  }

  #checkLog(thread: string, wrong: string[]): void {
    const events = this.#events(thread);
    let upto = 0, owed: string[] = [];
    events.forEach((event, position) => {
      if (event.seq !== position + 1) wrong.push(`${thread}: number ${event.seq} stands at ${position + 1}`);
      if (event.type === "message") owed.push(event.id!);
      if (!isAnswer(event) && event.type !== "ended") return;
      if (event.upto < upto) wrong.push(`${thread}: ${event.seq} settles less than was settled`);
      if (event.upto >= event.seq) wrong.push(`${thread}: ${event.seq} settles itself`);
      upto = Math.max(upto, event.upto);
      owed = events.slice(0, position + 1).flatMap((one) =>
        one.type === "message" && one.seq > upto ? [one.id!] : []
      );
    });
    if (owed.length > 0) wrong.push(`${thread}: nobody answered ${owed}`);
  }
}
