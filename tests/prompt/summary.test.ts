import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Checkpoint, Kept, SummaryEvent } from "../../src/log/event.ts";
import type { Answer, Prompt } from "../../src/model/model.ts";
import { composePrompt } from "../../src/prompt/compose.ts";
import { roomOf } from "../../src/prompt/room.ts";
import {
  checkSummary,
  noteCalls,
  type NoteSettings,
  type Plan,
  planAfter,
  planBefore,
  summaryFields,
  summaryPrompt,
  withNotes,
} from "../../src/prompt/summary.ts";
import { roughTokens, tokensOf, toolsTokens } from "../../src/prompt/tokens.ts";
import { type Start, type Window, windowOf } from "../../src/prompt/window.ts";
import { played, type Step, tokens } from "./conversations.ts";

const settings = {
  model: {},
  window: { max: 8192, unknown: 32_768, compact_at: 0.75, margin: 0.05, answer: 0.25 },
};
const tools = [{ name: "memory__remember", description: "Keeps a note", schema: {} }, {
  name: "web__get",
  description: "",
  schema: {},
}];
const sections = [{ name: "base", text: "Be good.", tokens: 2 }];
const room = roomOf({}, settings, sections, tools);
const notes: NoteSettings = { save_notes: true, offered: new Set(tools.map(({ name }) => name)) };
const noNotes: NoteSettings = { save_notes: true, offered: new Set() };
const begin: Start = { start: { from: 1, at: "", before: 0 } };

const turns = (count: number, length = 300, role: "owner" | "other" = "owner"): Step[] =>
  Array.from({ length: count }, (_, n): Step[] => [
    { step: "message", text: `${n} ${"x".repeat(length)}`, role },
    { step: "round", text: "", calls: n % 2, results: 1, came: [] },
    { step: "answer", text: "y".repeat(length), came: [] },
  ]).flat();

/** A log up to the first answer after which a summary is asked for, with the window of that answer. */
function full(
  role: "owner" | "other" = "owner",
  noted = noNotes,
): { log: Kept[]; window: Window; plan: Plan; asked: Prompt } {
  for (let count = 5; count < 100; count++) {
    let window!: Window;
    let asked!: Prompt;
    const log = played(turns(count, 300, role), {
      asked(log) {
        window = windowOf(log, begin, room);
        asked = composePrompt({
          sections,
          tools,
          placed: window.placed,
          choice: "auto",
          answerMax: room.answer,
        });
        return window.start;
      },
    });
    const plan = planAfter(log, window, room, noted);
    if (plan) return { log, window, plan, asked };
  }
  throw new Error("never full");
}

const answer = (more: Partial<Answer> = {}): Answer => ({
  text: "They spoke of x.",
  calls: [],
  model: "m",
  provider: "p",
  stop: "end",
  tokens,
  ms: 1,
  ...more,
});

/** Rough tokens of a request. */
const sizeOf = (prompt: Prompt) =>
  prompt.messages.reduce((sum, message) => sum + tokensOf(message), toolsTokens(prompt.tools)) +
  roughTokens(prompt.instructions.join(""));

describe("a summary", () => {
  it("W3 is asked for once the conversation fills its share of the room, not before", () => {
    const { window, log } = full();
    assert.ok(window.tokens < room.compactAt! + 400 && window.tokens > room.compactAt! - 400);
    const before = log.slice(0, -4);
    assert.equal(planAfter(before, windowOf(before, begin, room), room, noNotes), undefined);
  });

  it("W3 B59 is asked for as a continuation: the answer's own request, its answer, and the words after them", () => {
    const { plan, asked } = full();
    assert.equal(plan.way, "continued");
    const prompt = summaryPrompt(plan, { sections, tools });
    assert.deepEqual(prompt.instructions, asked.instructions);
    assert.deepEqual(prompt.tools, asked.tools);
    assert.equal(prompt.choice, asked.choice);
    assert.deepEqual(prompt.messages.slice(0, asked.messages.length), asked.messages);
    const [said, request, ...more] = prompt.messages.slice(asked.messages.length);
    assert.equal(said?.role, "model");
    assert.equal(request?.role, "user");
    assert.deepEqual(more, []);
  });

  it("W3 quotes the start of the first message that stays, and begins the window there", () => {
    const { log, plan } = full();
    const first = log[plan.start.from - 1]!.event;
    assert.ok(first?.type === "message");
    assert.ok(plan.request.includes(`“${`${first.head} ${first.text}`.slice(0, 120)}”`));
    assert.match(plan.request, /Call no tool\./);
    const event = { ...summaryFields(plan, log.length + 1, { text: "So far." }), seq: log.length + 1 };
    assert.deepEqual([event.from, event.keeps, event.window], [1, plan.start.from, {
      ...plan.start,
      summary: log.length + 1,
    }]);
    assert.ok(event.to < plan.start.from);
  });

  it("W1 W2 the window after it is the summary and at least a quarter of the room, at most half", () => {
    const { log, plan } = full();
    const start = { ...plan.start, summary: log.length + 1 } as Checkpoint;
    const window = windowOf(log, { start }, room);
    assert.ok(window.tokens >= room.share * 0.2 && window.tokens <= room.share * 0.5);
  });

  it("W2 the next one covers the last one and what left after it", () => {
    const { log, plan } = full();
    const seq = log.length + 1;
    const summary = {
      ...summaryFields(plan, seq, { text: "So far." }),
      seq,
      text: "So far.",
    } as SummaryEvent;
    const start: Start = { start: summary.window!, summary };
    const more = played(turns(60));
    for (let end = log.length; end < more.length; end++) {
      const window = windowOf(more.slice(0, end), start, room);
      const next = planAfter(more.slice(0, end), window, room, noNotes);
      if (!next) continue;
      assert.equal(next.from, 1);
      assert.ok(next.to > plan.to);
      const [first] = summaryPrompt(next, { sections, tools }).messages;
      assert.match(first!.text, /^\[Summary of all that was said before.*\]\nSo far\.$/);
      return;
    }
    assert.fail("no second summary");
  });

  it("W4 B55 of a window past its room is made from what leaves alone, newest first, within the room", () => {
    const log = played([
      ...turns(40),
      { step: "message", text: "z".repeat(2 * 4 * 8192) },
      {
        step: "answer",
        text: "long",
        came: [],
      },
      ...turns(150),
      { step: "message", text: "now" },
    ]);
    const window = windowOf(log, begin, room);
    const plan = planBefore(log, window, room, noNotes)!;
    assert.equal(plan.way, "apart");
    const prompt = summaryPrompt(plan, { sections, tools });
    assert.ok(sizeOf(prompt) <= room.window - room.answer, String(sizeOf(prompt)));
    assert.equal(prompt.messages[0]!.role, "user");
    // The newest of what leaves is in it, whole; what stays is not.
    const texts = prompt.messages.map(({ text }) => text);
    assert.equal(texts.at(-2), window.left.at(-1)!.message.text);
    assert.ok(!texts.includes(window.placed[0]!.message.text));
    assert.equal(plan.start.from, window.start.from);
  });

  it("W4 one message of twice the window that leaves is cut, and told", () => {
    const log = played([{ step: "message", text: "z".repeat(2 * 4 * 8192) }, {
      step: "answer",
      text: "long",
      came: [],
    }, {
      step: "message",
      text: "now",
    }]);
    const plan = planBefore(log, windowOf(log, begin, room), room, noNotes)!;
    const prompt = summaryPrompt(plan, { sections, tools });
    assert.ok(sizeOf(prompt) <= room.window - room.answer);
    assert.match(prompt.messages[0]!.text, /characters left out here/);
  });

  it("W3 is made apart where the answer's prompt has no room left to go on", () => {
    const log = played([...turns(14), { step: "message", text: "more" }, {
      step: "answer",
      text: "w".repeat(4 * 4000),
      came: [],
    }]);
    const window = windowOf(log.slice(0, -1), begin, room);
    const plan = planAfter(log, window, room, noNotes)!;
    assert.equal(plan.way, "apart");
    assert.ok(sizeOf(summaryPrompt(plan, { sections, tools })) <= room.window - room.answer);
  });

  it("W6 is never asked for where compact_at is never", () => {
    const never = roomOf(
      {},
      { ...settings, window: { ...settings.window, compact_at: "never" } },
      sections,
      tools,
    );
    const log = played([...turns(100), { step: "message", text: "now" }]);
    const window = windowOf(log, begin, never);
    assert.ok(window.left.length > 0);
    assert.equal(planBefore(log, window, never, noNotes), undefined);
    assert.equal(planAfter(log, window, never, noNotes), undefined);
  });

  it("B54 is not asked for where instructions and tools leave no room: ten turns, none", () => {
    const large = [{ name: "a__b", description: "d".repeat(4 * 30_000), schema: {} }];
    const tight = roomOf({}, { ...settings, window: { ...settings.window, max: 0 } }, sections, large);
    assert.ok(tight.tight);
    let window!: Window;
    const log = played(
      Array.from({ length: 10 }, (): Step[] => [{ step: "message", text: "hi" }, {
        step: "answer",
        text: "hi",
        came: [],
      }]).flat(),
      {
        asked(log) {
          window = windowOf(log, begin, tight);
          assert.equal(planBefore(log, window, tight, noNotes), undefined);
          return window.start;
        },
      },
    );
    assert.equal(planAfter(log, window, tight, noNotes), undefined);
  });

  it("B54 is not asked for where it would cover nothing new: one message that fills the window", () => {
    const log = played([{ step: "message", text: "z".repeat(4 * 4000) }, {
      step: "answer",
      text: "ok",
      came: [],
    }]);
    assert.equal(planAfter(log, windowOf(log.slice(0, 1), begin, room), room, noNotes), undefined);
  });

  it("B58 one that is empty, too long, a call, cut short or stopped is none", () => {
    const { plan } = full();
    const failed = (more: Partial<Answer>) => {
      const checked = checkSummary(answer(more), plan);
      return "failed" in checked ? checked.failed : undefined;
    };
    assert.deepEqual(checkSummary(answer({ text: " So. \n" }), plan), { text: "So." });
    assert.equal(failed({ text: " \n" }), "it is empty");
    assert.match(failed({ text: "w".repeat(4 * plan.summaryMax + 4) })!, /and \d+ is the most/);
    assert.equal(
      failed({ calls: [{ tool: "web__get", arguments: "{}" }], stop: "calls" }),
      "it called web__get",
    );
    for (const stop of ["length", "filter", "asked"] as const) assert.match(failed({ stop })!, /cut short/);
    const fields = summaryFields(plan, 9, { failed: "it is empty" });
    assert.deepEqual([fields.text, fields.failed, fields.window], ["", "it is empty", undefined]);
  });

  it("B58 stays bounded when the model gives back the whole of what it was given, five times", () => {
    const { plan } = full();
    let text = plan.placed.map(({ message }) => message.text).join("\n");
    for (let time = 0; time < 5; time++) {
      const checked = checkSummary(answer({ text }), plan);
      assert.ok("failed" in checked);
      text += text;
    }
  });

  it("W5 notes are saved first where the tool is offered, it is wanted, and the owner spoke", () => {
    assert.equal(full("owner", notes).plan.notes, true);
    assert.match(full("owner", notes).plan.request, /First save with memory__remember/);
    assert.equal(full("other", notes).plan.notes, false);
    assert.equal(full("owner", { ...notes, save_notes: false }).plan.notes, false);
    assert.equal(full("owner", { ...notes, offered: new Set(["web__get"]) }).plan.notes, false);
  });

  it("W5 only the notes tool is called, its results follow, and then the summary comes or none", () => {
    const { plan } = full("owner", notes);
    const prompt = summaryPrompt(plan, { sections, tools });
    const saving = answer({
      text: "",
      calls: [{ tool: "memory__remember", arguments: "{}" }, { tool: "web__get", arguments: "{}" }],
      stop: "calls",
    });
    const calls = noteCalls(plan, saving, 1);
    assert.deepEqual(calls.map(({ runs, call }) => [call.id, runs]), [["n1_0", true], ["n1_1", false]]);
    const next = withNotes(prompt, saving, calls.map(({ call }) => ({ call, ok: true, text: "kept" })));
    assert.deepEqual(next.messages.slice(0, prompt.messages.length), prompt.messages);
    assert.deepEqual(next.messages.slice(prompt.messages.length).map(({ role }) => role), [
      "model",
      "result",
      "result",
    ]);
    assert.deepEqual(noteCalls(plan, answer(), 2), []);
    assert.deepEqual(noteCalls(plan, saving, 3), []);
    assert.deepEqual(noteCalls({ ...plan, notes: false }, saving, 1), []);
  });
});
