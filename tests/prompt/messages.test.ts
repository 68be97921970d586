import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type Event, keep, type Kept } from "../../src/log/event.ts";
import type { PromptMessage } from "../../src/model/model.ts";
import { composePrompt } from "../../src/prompt/compose.ts";
import { placedMessages, words } from "../../src/prompt/messages.ts";
import { damaged, played, steps, tokens } from "./conversations.ts";

const seed = 51;
const at = "2026-12-01T09:00:00.000Z";

/** A log from what each event says beside its number. */
function log(...events: ({ type: Event["type"] } & Record<string, unknown>)[]): Kept[] {
  const said = { turn: "t", round: 1, model: "m", provider: "p", stop: "end", tokens, ms: 1, head: "" };
  return events.map((event, index) => keep({ ...said, text: "", ...event, seq: index + 1, at } as Event));
}

/** A prompt's messages in a few letters. */
function told(events: Kept[]): string[] {
  return promptOf(events).map((message) => {
    if (message.role !== "model") return `${message.role}: ${message.text}`;
    return [`model: ${message.text}`, ...message.calls.map(({ id }) => id)].join(" ");
  });
}

function promptOf(events: Kept[]): PromptMessage[] {
  return composePrompt({
    sections: [],
    tools: [],
    placed: placedMessages(events),
    choice: "auto",
    answerMax: 100,
  }).messages;
}

const call = (id: string) => ({ id, tool: "a__b", arguments: "{}" });

describe("a conversation as messages", () => {
  it("puts a message's head above its text", () => {
    assert.deepEqual(told(log({ type: "message", head: "[now]", text: "hi" })), ["user: [now]\nhi"]);
  });

  it("puts a message that came while the model answered after that answer", () => {
    const events = log(
      { type: "message", text: "one" },
      { type: "message", text: "two" },
      { type: "model", text: "to one", upto: 1 },
      { type: "model", text: "to two", upto: 3 },
    );
    assert.deepEqual(told(events).slice(0, 4), ["user: one", "model: to one", "user: two", "model: to two"]);
  });

  it("puts a message that a round had not seen after that round's results", () => {
    const events = log(
      { type: "message", text: "one" },
      { type: "message", text: "two" },
      { type: "model", text: "", calls: [call("x")], seen: 1 },
      { type: "message", text: "three" },
      { type: "result", call: "x", tool: "a__b", text: "done", ok: true },
    );
    assert.deepEqual(told(events), ["user: one", "model:  c3_0", "result: done", "user: two", "user: three"]);
  });

  it("B21 B34 tells a call without a result as unknown, in each position, and never as failed", () => {
    const round = { type: "model", calls: [call("x"), call("y")] } as const;
    const y = { type: "result", call: "y", tool: "a__b", text: "done", ok: true } as const;
    for (
      const events of [
        log({ type: "message", text: "m" }, round),
        log({ type: "message", text: "m" }, round, { type: "model", text: "a", upto: 1 }),
        log({ type: "message", text: "m" }, round, { type: "recovered", try: 1, holder: {} }, {
          type: "summary",
          from: 1,
          to: 1,
          keeps: 1,
        }),
        log({ type: "message", text: "m" }, round, { type: "ended", upto: 1, reason: "forked" }),
        log({ type: "message", text: "m" }, round, y, { type: "message", text: "n" }),
      ]
    ) {
      const results = promptOf(events).filter((message) => message.role === "result");
      const kept = events.some(({ event }) => event?.type === "result");
      assert.deepEqual(results.map(({ text, ok }) => [text, ok]), [[words.unknown, true], [
        kept ? "done" : words.unknown,
        true,
      ]]);
    }
  });

  it("keeps the first of two results of a call, and drops one whose call is not there or was told as unknown", () => {
    const result = (text: string, of = "x") =>
      ({ type: "result", call: of, tool: "a__b", text, ok: true }) as const;
    const events = log(
      { type: "message", text: "m" },
      result("lost", "z"),
      { type: "model", calls: [call("x"), call("y")] },
      result("first"),
      result("second"),
      { type: "model", text: "a", upto: 5 },
      result("late", "y"),
    );
    assert.deepEqual(promptOf(events).flatMap((one) => one.role === "result" ? [one.text] : []), [
      "first",
      words.unknown,
    ]);
  });

  it("B37 gives every call an id of its own, whatever its provider or another harness called it", () => {
    const same = { type: "model", calls: [call("call_0"), call("call_0")] } as const;
    const first = { type: "result", call: "call_0", tool: "a__b", text: "1", ok: true } as const;
    const messages = promptOf(
      log({ type: "message", text: "m" }, same, first, { ...first, text: "2" }, same, {
        ...first,
        text: "3",
      }),
    );
    const results = messages.flatMap((one) => one.role === "result" ? [[one.call, one.text]] : []);
    assert.deepEqual(results, [["c2_0", "1"], ["c2_1", "2"], ["c5_0", "3"], ["c5_1", words.unknown]]);
  });

  it("C3 keeps thinking with the answer that it led to", () => {
    const thinking = { wire: "anthropic", blocks: [{ type: "thinking", thinking: "hm", signature: "s" }] };
    const [, answer] = promptOf(
      log({ type: "message", text: "m" }, { type: "model", text: "a", upto: 1, thinking }),
    );
    assert.deepEqual(answer?.role === "model" && answer.thinking, thinking);
  });

  it("tells once that an answer was stopped on request, with and without a piece of it", () => {
    const asked = { type: "ended", upto: 1, reason: "asked" } as const;
    assert.deepEqual(told(log({ type: "message", text: "m" }, asked)), ["user: m", `user: ${words.stopped}`]);
    const piece = log({ type: "message", text: "m" }, { type: "model", text: "so", stop: "asked" }, asked);
    assert.deepEqual(told(piece), ["user: m", "model: so", `user: ${words.stopped}`]);
  });

  it("ends a request with what is to be answered, also where a message of before is tried again", () => {
    const events = log(
      { type: "message", text: "one" },
      { type: "ended", upto: 1, reason: "failed" },
      { type: "message", text: "two" },
      { type: "model", text: "to two", upto: 3 },
    );
    assert.equal(told(events).at(-1), `user: ${words.again}`);
    const after = log(...events.map(({ event }) => event!), {
      type: "model",
      text: "to one",
      upto: 4,
      retries: 1,
    });
    assert.deepEqual(told(after).slice(3, 5), [`user: ${words.again}`, "model: to one"]);
  });

  it("does not show takeovers, and keeps kinds of events that it does not know out of the prompt", () => {
    const events = [
      ...log({ type: "message", text: "m" }, { type: "recovered", try: 1, holder: {} }),
      { seq: 3, line: `{"seq":3,"at":"${at}","type":"later"}`, event: undefined },
    ];
    assert.deepEqual(told(events), ["user: m"]);
  });

  it("S8 B52 B60 sends what was sent before in the same bytes, request after request", () => {
    fc.assert(
      fc.property(steps, (steps) => {
        const requests: string[][] = [];
        const asked = (log: Kept[]) =>
          void requests.push(promptOf(log).map((message) => JSON.stringify(message)));
        played(steps, { asked });
        for (const [index, request] of requests.entries()) {
          const next = requests[index + 1]?.slice(0, request.length) ?? request;
          assert.deepEqual(next, request);
        }
      }),
      { seed, numRuns: 500 },
    );
  });

  it("B34 T6 gives each call one result right after it, ends with somebody else than the model, for any events", () => {
    fc.assert(
      fc.property(fc.oneof(damaged, steps.map((steps) => played(steps))), (events) => {
        const messages = promptOf(events);
        const ids = new Set<string>();
        for (let index = 0; index < messages.length; index++) {
          const message = messages[index]!;
          assert.notEqual(message.role, "result");
          if (message.role !== "model") continue;
          assert.equal(messages[index - 1]?.role === "model" || index === 0, false);
          for (const { id } of message.calls) {
            const result = messages[++index];
            assert.equal(result?.role === "result" && result.call, id);
            assert.equal(ids.has(id), false);
            ids.add(id);
          }
        }
        if (messages.length > 0) assert.notEqual(messages.at(-1)?.role, "model");
      }),
      { seed, numRuns: 1000 },
    );
  });

  it("begins where it is told to, with a message and all that was said after it", () => {
    const events = log(
      { type: "message", text: "one" },
      { type: "message", text: "two" },
      { type: "model", text: "to one", upto: 1 },
      { type: "model", text: "to two", upto: 3 },
    );
    const placed = placedMessages(events.slice(1), 2);
    assert.deepEqual(placed.map(({ message }) => message.text), ["two", "to two"]);
    assert.deepEqual(placedMessages(events).map(({ begins, settles }) => [begins, settles]), [
      [true, false],
      [false, true],
      [true, false],
      [false, true],
    ]);
  });

  it("marks the last message of the turn before", () => {
    const events = log(
      { type: "message", text: "one" },
      { type: "model", text: "a", upto: 1 },
      { type: "message", text: "two" },
      { type: "model", calls: [call("x")] },
      { type: "result", call: "x", tool: "a__b", text: "r", ok: true },
    );
    const parts = { sections: [], tools: [], choice: "auto", answerMax: 1 } as const;
    assert.equal(composePrompt({ ...parts, placed: placedMessages(events) }).markAt, 1);
    assert.equal(composePrompt({ ...parts, placed: placedMessages(events.slice(0, 1)) }).markAt, -1);
  });
});
