// Conversations for the tests of prompts: one that a turn would write, with the messages of each request that was made, and
// ones that no turn would write.

import fc from "fast-check";
import {
  type Checkpoint,
  type Event,
  keep,
  type Kept,
  type ModelEvent,
  type Tokens,
} from "../../src/log/event.ts";
import type { Newest } from "../../src/prompt/window.ts";

export const tokens: Tokens = { input: 1, output: 1 };
const at = "2026-12-01T09:00:00.000Z";

/** What may happen in a turn, in the order of the log. */
export type Step =
  | { step: "message"; text: string; role?: "owner" | "other" }
  /** A round: what it says, how many calls it makes, how many of them get their result, and what came while it was asked. */
  | { step: "round"; text: string; calls: number; results: number; came: string[] }
  | { step: "answer"; text: string; came: string[] }
  | { step: "stop"; text: string; came: string[] }
  | { step: "fail" }
  | { step: "crash" };

function timeOf(seq: number): string {
  return new Date(Date.parse(at) + seq * 1000).toISOString();
}

/** A log as a process finds it that has nothing of it at hand but its newest events; `reads` counts the events read. */
export function tailOf(log: readonly Kept[]): Newest & { reads: number } {
  let first = Math.max(0, log.length - 32);
  const tail = {
    reads: log.length - first,
    get events() {
      return log.slice(first);
    },
    reach(seq: number) {
      const to = Math.max(0, Math.min(first, seq - 1));
      tail.reads += first - to;
      first = to;
      return Promise.resolve();
    },
    one: (seq: number) => Promise.resolve(log[seq - 1]),
  };
  return tail;
}

/** Nobody ever wrote where the window began. */
export function withoutCheckpoints(log: readonly Kept[]): Kept[] {
  return log.map((kept) => {
    if (kept.event?.type !== "model") return kept;
    const { window: _, ...event } = kept.event;
    return keep(event);
  });
}

const text = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.constantFrom("漢字 🙂", "[a]\nb", "x".repeat(300), "y".repeat(900)),
);
const came = fc.array(text, { maxLength: 2 });

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ step: fc.constant("message" as const), text }) },
  {
    weight: 2,
    arbitrary: fc.record({
      step: fc.constant("round" as const),
      text,
      calls: fc.integer({ min: 1, max: 3 }),
      results: fc.integer({ min: 0, max: 3 }),
      came,
    }),
  },
  { weight: 4, arbitrary: fc.record({ step: fc.constant("answer" as const), text, came }) },
  fc.record({ step: fc.constant("stop" as const), text, came }),
  fc.record({ step: fc.constant("fail" as const) }),
  fc.record({ step: fc.constant("crash" as const) }),
);
export const steps = fc.array(step, { minLength: 1, maxLength: 40 });
/** Enough to outgrow a small window a few times. */
export const manySteps = fc.array(step, { minLength: 40, maxLength: 120, size: "max" });

/** What stands around the turns: told what is kept whenever the model would be asked, and after each answer. */
export interface Around {
  /** Gives the checkpoint that the answer records. */
  asked?(log: Kept[]): Checkpoint | undefined | void;
  /** Gives the event that follows the answer. */
  answered?(log: Kept[]): Event | undefined;
}

/** The log that turns would write by these steps. */
export function played(steps: Step[], { asked, answered }: Around = {}): Kept[] {
  const log: Kept[] = [];
  const next = () => log.length + 1;
  const write = (event: Event) => void log.push(keep(event));
  const say = (text: string, role: "owner" | "other" = "owner") =>
    write({
      seq: next(),
      at: timeOf(next()),
      type: "message",
      from: { role },
      head: `[head ${next()}]`,
      text,
    });
  const said = (text: string) => ({
    at: timeOf(next()),
    turn: "t",
    round: 1,
    text,
    model: "m",
    provider: "p",
    stop: "end",
    tokens,
    ms: 1,
  });
  let window: Checkpoint | undefined;
  let owed = false;
  /** The model is asked, and these messages come meanwhile; gives the number up to which it saw. */
  const ask = (came: string[]): number => {
    window = asked?.([...log]) ?? undefined;
    const upto = log.length;
    for (const one of came) say(one);
    return upto;
  };
  for (const step of steps) {
    if (step.step === "message") {
      say(step.text, step.role);
      owed = true;
    }
    if (!owed) continue;
    if (step.step === "round") {
      const seen = ask(step.came);
      const seq = next();
      const calls = Array.from(
        { length: step.calls },
        (_, i) => ({ id: `c${seq}_${i}`, tool: "a__b", arguments: "{}" }),
      );
      write({ ...said(step.text), seq, type: "model", calls, ...(seen < seq - 1 ? { seen } : {}) });
      for (const call of calls.slice(0, step.results).reverse()) {
        write({
          seq: next(),
          at,
          type: "result",
          turn: "t",
          call: call.id,
          tool: call.tool,
          text: "r",
          ok: true,
          ms: 1,
        });
      }
    } else if (step.step === "answer") {
      const upto = ask(step.came);
      write({ ...said(step.text), seq: next(), type: "model", upto, ...(window ? { window } : {}) });
      const after = answered?.([...log]);
      if (after) write(after);
      owed = step.came.length > 0;
    } else if (step.step === "stop") {
      const upto = ask(step.came);
      const seen = upto < log.length ? { seen: upto } : {};
      if (step.text !== "") write({ ...said(step.text), seq: next(), type: "model", ...seen } as ModelEvent);
      write({ seq: next(), at, type: "ended", turn: "t", upto, reason: "asked" });
      owed = step.came.length > 0;
    } else if (step.step === "fail") {
      asked?.([...log]);
      write({
        seq: next(),
        at,
        type: "ended",
        turn: "t",
        upto: log.length,
        reason: "failed",
        code: "model_failed",
      });
      owed = false;
    } else if (step.step === "crash") {
      write({ seq: next(), at, type: "recovered", turn: "t", try: 1, holder: {} });
    }
  }
  return log;
}

/** Events in any order of kinds, with calls and results that fit or do not. */
export const damaged: fc.Arbitrary<Kept[]> = fc.array(
  fc.oneof(
    fc.record({ type: fc.constant("message" as const) }),
    fc.record({
      type: fc.constant("model" as const),
      calls: fc.option(fc.array(fc.constantFrom("a", "b", "c1_0", ""), { maxLength: 3 }), { nil: undefined }),
      upto: fc.option(fc.integer({ min: 1, max: 40 }), { nil: undefined }),
      seen: fc.option(fc.integer({ min: 1, max: 40 }), { nil: undefined }),
    }),
    fc.record({ type: fc.constant("result" as const), call: fc.constantFrom("a", "b", "c1_0", "") }),
    fc.record({
      type: fc.constant("ended" as const),
      upto: fc.integer({ min: 0, max: 40 }),
      reason: fc.constantFrom("asked" as const, "failed" as const, "forked" as const),
    }),
    fc.record({ type: fc.constant("summary" as const) }),
    fc.record({ type: fc.constant("unknown" as const) }),
  ),
  { maxLength: 40 },
).map((kinds) =>
  kinds.map((kind, index): Kept => {
    const seq = index + 1;
    const said = { text: "t", model: "m", provider: "p", stop: "end", tokens, ms: 1, turn: "t" };
    switch (kind.type) {
      case "message":
        return keep({ seq, at, type: "message", from: { role: "owner" }, head: "[h]", text: `m${seq}` });
      case "model": {
        const calls = kind.calls?.map((id) => ({ id, tool: "a__b", arguments: "{}" }));
        return keep({ ...said, seq, at, type: "model", round: 1, calls, upto: kind.upto, seen: kind.seen });
      }
      case "result":
        return keep({
          seq,
          at,
          type: "result",
          turn: "t",
          call: kind.call,
          tool: "a__b",
          text: "r",
          ok: true,
          ms: 1,
        });
      case "ended":
        return keep({ seq, at, type: "ended", turn: "t", upto: kind.upto, reason: kind.reason });
      case "summary":
        return keep({ ...said, seq, at, type: "summary", from: 1, to: 1, keeps: 2 });
      case "unknown":
        return { seq, line: `{"seq":${seq},"at":"${at}","type":"later"}`, event: undefined };
    }
  })
);
