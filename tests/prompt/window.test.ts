import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type Checkpoint, type Event, keep, type Kept } from "../../src/log/event.ts";
import { composePrompt } from "../../src/prompt/compose.ts";
import { tokensOf } from "../../src/prompt/tokens.ts";
import {
  findStart,
  isCheckpointDue,
  movedWindow,
  type Start,
  type Window,
  windowOf,
} from "../../src/prompt/window.ts";
import { manySteps, played, type Step, tailOf, tokens, withoutCheckpoints } from "./conversations.ts";

const seed = 53;
const at = "2026-12-01T09:00:00.000Z";
const small = { share: 400, drop: 200, compactAt: 300 };

/** What is sent of a window, as texts. */
function sent(window: Window): string[] {
  const { summary, placed } = window;
  const prompt = composePrompt({
    sections: [],
    tools: [],
    placed,
    ...(summary ? { summary } : {}),
    choice: "auto",
    answerMax: 1,
  });
  return prompt.messages.map((message) => JSON.stringify(message));
}

/** Where the window of a process begins that has nothing at hand. */
const coldWindow = async (log: Kept[], room = small) => windowOf(log, await findStart(tailOf(log)), room);

/** A summary of what `movedWindow` says would leave. */
function summaryAfter(log: Kept[], start: Start, room = small): Event | undefined {
  const moved = movedWindow(log, windowOf(log, start, room), room);
  if (!moved) return undefined;
  const seq = log.length + 1;
  return {
    seq,
    at,
    type: "summary",
    turn: "t",
    from: 1,
    to: seq - 1,
    keeps: moved.start.from,
    text: "so far",
    model: "m",
    provider: "p",
    stop: "end",
    tokens,
    ms: 1,
    window: { ...moved.start, summary: seq },
  };
}

/** Plays turns as one process that keeps where its window began; gives each request with the log at that time. */
function playedWindows(
  steps: Step[],
  summarised: boolean,
): { log: Kept[]; asked: { log: Kept[]; window: Window }[] } {
  const asked: { log: Kept[]; window: Window }[] = [];
  let start: Start = { start: { from: 1, at: "", before: 0 } };
  const log = played(steps, {
    asked(log) {
      const window = windowOf(log, start, small);
      asked.push({ log, window });
      start = window;
      return window.start;
    },
    answered(log) {
      const summary = summarised ? summaryAfter(log, start) : undefined;
      if (summary?.type === "summary") start = { start: summary.window!, summary };
      return summary;
    },
  });
  return { log, asked };
}

const turn = (text: string, answer = "ok"): Step[] => [
  { step: "message", text },
  { step: "answer", text: answer, came: [] },
];

describe("the window", () => {
  for (const summarised of [false, true]) {
    const how = summarised ? "with summaries" : "without summaries";

    it(`D9 W1 W13 is the same for any process, with or without checkpoints, ${how}`, async () => {
      let moves = 0;
      await fc.assert(
        fc.asyncProperty(manySteps, async (steps) => {
          for (const { log, window } of playedWindows(steps, summarised).asked) {
            if (window.left.length > 0) moves++;
            assert.deepEqual(sent(await coldWindow(log)), sent(window));
            assert.deepEqual(sent(await coldWindow(withoutCheckpoints(log))), sent(window));
          }
        }),
        { seed, numRuns: 40 },
      );
      assert.ok(moves > 100, String(moves));
    });

    it(`W1 B60 sends what was sent before in the same bytes but at drop points, and never outgrows its room, ${how}`, () => {
      fc.assert(
        fc.property(manySteps, (steps) => {
          const { asked } = playedWindows(steps, summarised);
          for (const [index, { window }] of asked.entries()) {
            assert.ok(window.tokens <= small.share, String(window.tokens));
            const next = asked[index + 1]?.window;
            if (!next || next.start.from !== window.start.from || next.summary !== window.summary) continue;
            if (window.cut || next.cut) continue;
            const before = sent(window);
            assert.deepEqual(sent(next).slice(0, before.length), before);
          }
        }),
        { seed, numRuns: 100 },
      );
    });
  }

  it("W1 begins with somebody's message, and parts no message from its answer and no call from its result", () => {
    fc.assert(
      fc.property(manySteps, (steps) => {
        for (const { log, window } of playedWindows(steps, false).asked) {
          const [first] = window.placed;
          assert.equal(first?.message.role, "user");
          assert.equal(first?.begins, true);
          // Everything that leaves was answered or ended.
          if (window.left.length > 0) assert.equal(window.left.at(-1)!.settles, true);
          const kinds = window.placed.map(({ message }) => message.role);
          assert.equal(
            kinds.indexOf("result") >= 0 && kinds.indexOf("result") < kinds.indexOf("model"),
            false,
          );
          assert.equal(log[window.start.from - 1]!.event?.type, "message");
        }
      }),
      { seed, numRuns: 60 },
    );
  });

  it("W1 half the share leaves at a time, and then nothing for many turns", () => {
    const starts: number[] = [];
    let start: Start = { start: { from: 1, at: "", before: 0 } };
    played(Array.from({ length: 200 }, () => turn("x".repeat(60))).flat(), {
      asked(log) {
        const window = windowOf(log, start, small);
        if (window.start.from !== start.start.from) starts.push(window.tokens);
        start = window;
        return window.start;
      },
    });
    assert.ok(starts.length > 5 && starts.length < 40, String(starts.length));
    for (const tokens of starts) assert.ok(tokens > 180 && tokens < 300, String(tokens));
  });

  it("W13 a checkpoint says the first message, its time, and the tokens before it", () => {
    let last: Checkpoint | undefined;
    const log = played(Array.from({ length: 60 }, () => turn("x".repeat(60))).flat(), {
      asked: (log) => last = windowOf(log, { start: last ?? { from: 1, at: "", before: 0 } }, small).start,
    });
    const all = windowOf(log, { start: { from: 1, at: "", before: 0 } }, { share: Infinity, drop: Infinity });
    const before = all.placed.filter(({ seq }) => seq < last!.from).reduce(
      (sum, { tokens }) => sum + tokens,
      0,
    );
    assert.deepEqual(last, { from: last!.from, at: log[last!.from - 1]!.event!.at, before });
    assert.ok(last!.from > 1);
  });

  it("W13 a cold turn reads at most 40 events beyond its window, however long the log", async () => {
    let start: Start = { start: { from: 1, at: "", before: 0 } };
    const log = played(
      Array.from({ length: 300 }, (_, n): Step[] => [
        { step: "message", text: "x".repeat(60) },
        { step: "round", text: "", calls: n % 5, results: n % 5, came: [] },
        { step: "answer", text: "y", came: [] },
      ]).flat(),
      { asked: (log) => (start = windowOf(log, start, small)).start },
    );
    const tail = tailOf(log);
    const found = await findStart(tail);
    assert.ok(tail.reads <= log.length - found.start.from + 1 + 40, String(tail.reads));
  });

  it("W13 one checkpoint stays within the newest 32 events of a long turn", () => {
    const log: Kept[] = [];
    const write = (event: object) =>
      log.push(keep({ seq: log.length + 1, at, turn: "t", ...event } as Event));
    write({ type: "message", from: { role: "owner" }, head: "", text: "go" });
    for (let round = 0; round < 30; round++) {
      const calls = Array.from(
        { length: 1 + round % 8 },
        (_, n) => ({ id: `x${n}`, tool: "a__b", arguments: "{}" }),
      );
      const window = isCheckpointDue(log, calls.length) ? { window: { from: 1, at, before: 0 } } : {};
      write({ type: "model", round, text: "", calls, ...window });
      for (const { id } of calls) {
        write({ type: "result", call: id, tool: "a__b", text: "r", ok: true, ms: 1 });
      }
      const newest = log.slice(-32);
      assert.ok(newest[0]!.seq === 1 || newest.some(({ event }) => event?.type === "model" && event.window));
    }
  });

  it("W10 a model with a quarter of the window makes the oldest leave at once, and what stays fits", () => {
    const log = played([...Array.from({ length: 12 }, () => turn("x".repeat(60))).flat(), {
      step: "message",
      text: "now",
    }]);
    const start = { start: { from: 1, at: "", before: 0 } };
    const wide = windowOf(log, start, small);
    assert.equal(wide.left.length, 0);
    const narrow = windowOf(log, start, { share: 100, drop: 50 });
    assert.ok(narrow.tokens <= 100 && narrow.left.length > 0);
    // What has left does not come back with a larger window.
    assert.equal(windowOf(log, narrow, small).start.from, narrow.start.from);
  });

  it("B55 a message larger than the window is cut, told, and leaves with the next turn", () => {
    for (const text of ["x".repeat(10_000), "漢".repeat(5_000), "🙂".repeat(5_000)]) {
      const steps: Step[] = [...turn("before"), { step: "message", text }];
      const log = played(steps);
      const start = { start: { from: 1, at: "", before: 0 } };
      const window = windowOf(log, start, small);
      assert.ok(window.cut && window.tokens <= small.share);
      assert.match(window.placed.at(-1)!.message.text, /^\[head 3\]\n.+\n\[… \d+ characters left out here/u);
      assert.ok(window.placed.at(-1)!.message.text.isWellFormed());
      const next = windowOf(
        played([...steps, { step: "answer", text: "a", came: [] }, ...turn("after")]),
        window,
        small,
      );
      assert.equal(next.cut, false);
      assert.equal(next.placed[0]!.message.text, "[head 5]\nafter");
    }
  });

  it("B60 a turn of many large results is cut by halves, each call with its result", () => {
    const log: Kept[] = [
      keep({ seq: 1, at, type: "message", from: { role: "owner" }, head: "[h]", text: "go" }),
    ];
    const shapes = new Set<string>();
    for (let round = 0; round < 8; round++) {
      const seq = log.length + 1;
      const call = {
        id: `c${seq}_0`,
        tool: "a__b",
        arguments: round === 3 ? `{"x":"${"y".repeat(20_000)}"}` : "{}",
      };
      const said = {
        turn: "t",
        round,
        text: "",
        calls: [call],
        model: "m",
        provider: "p",
        stop: "calls",
        tokens,
        ms: 1,
      };
      log.push(keep({ ...said, seq, at, type: "model" }));
      const result = {
        turn: "t",
        call: call.id,
        tool: call.tool,
        text: `${round}`.repeat(32_768),
        ok: true,
        ms: 1,
      };
      log.push(keep({ ...result, seq: seq + 1, at, type: "result" }));
      const window = windowOf(log, { start: { from: 1, at, before: 0 } }, { share: 20_000, drop: 10_000 });
      assert.ok(window.tokens <= 20_000);
      assert.equal(window.placed.filter(({ message }) => message.role === "result").length, round + 1);
      for (const { message } of window.placed) {
        if (message.role === "model") { for (const call of message.calls) JSON.parse(call.arguments); }
      }
      shapes.add(window.placed[2]!.message.text);
    }
    assert.ok(shapes.size <= 5, String(shapes.size));
  });

  it("a 10 MB line costs little, and is counted once", () => {
    const text = "z".repeat(10 * 1024 * 1024);
    const log = played([...turn("a"), { step: "message", text }]);
    const window = windowOf(log, { start: { from: 1, at: "", before: 0 } }, small);
    assert.ok(window.tokens <= small.share);
    assert.equal(window.placed.reduce((sum, { message }) => sum + tokensOf(message), 0), window.tokens);
  });

  it("a checkpoint that points nowhere is passed over", async () => {
    const log = played(Array.from({ length: 10 }, () => turn("hi")).flat(), {
      asked: (log) => ({ from: log.length + 50, at, before: 0 }),
    });
    assert.equal((await findStart(tailOf(log))).start.from, 1);
  });

  it("B58 a failed summary moves nothing", async () => {
    const log = played(Array.from({ length: 30 }, () => turn("x".repeat(60))).flat(), {
      asked: () => ({ from: 1, at, before: 0 }),
    });
    const seq = log.length + 1;
    const said = { turn: "t", model: "m", provider: "p", stop: "end", tokens, ms: 1, text: "" };
    log.push(keep({ ...said, seq, at, type: "summary", from: 1, to: 20, keeps: 21, failed: "it is empty" }));
    assert.deepEqual(await findStart(tailOf(log)), { start: { from: 1, at, before: 0 } });
  });

  it("W6 an unsummarised drop keeps the summary of before, wherever it stands", async () => {
    const room = { share: 400, drop: 200, compactAt: 300 };
    const { log } = playedWindows(Array.from({ length: 20 }, () => turn("x".repeat(60))).flat(), true);
    const summary = log.findLast(({ event }) => event?.type === "summary")!.event!;
    const more = played(Array.from({ length: 80 }, () => turn("y".repeat(60))).flat()).map(({ event }) => {
      const moved = { ...event!, seq: event!.seq + log.length } as Event;
      if (moved.type === "model") moved.upto = moved.seq - 1;
      return keep(moved);
    });
    let start: Start = await findStart(tailOf(log));
    const all = [...log];
    for (const kept of more) {
      if (kept.event?.type === "model") {
        start = windowOf(all, start, room);
        all.push(keep({ ...kept.event, window: start.start }));
      } else all.push(kept);
    }
    assert.equal(start.start.summary, summary.seq);
    assert.ok(start.start.from > summary.seq);
    assert.deepEqual((await findStart(tailOf(all))).summary, summary);
  });
});
