import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { roomOf, type RoomSettings } from "../../src/prompt/room.ts";

const settings: RoomSettings = {
  model: {},
  window: { max: 0, unknown: 32_768, compact_at: 0.75, margin: 0.05, answer: 0.25 },
};
const inWindow = (window: Partial<RoomSettings["window"]>): RoomSettings => ({
  ...settings,
  window: { ...settings.window, ...window },
});
const section = (tokens: number, name = "base") => ({ name, tokens });
const tool = (size: number) => ({ name: "a__b", description: "x".repeat(4 * size), schema: {} });

describe("the room", () => {
  it("W11 the conversation's share is the window less the answer's, instructions, tools and margin", () => {
    const room = roomOf({ window: 200_000, from: "the shipped facts" }, settings, [
      section(1500),
      section(500),
    ], []);
    assert.deepEqual(room, {
      window: 200_000,
      from: "the shipped facts",
      answer: 50_000,
      instructions: 2000,
      tools: 0,
      margin: 10_000,
      share: 138_000,
      drop: 69_000,
      compactAt: 103_500,
      summary: 2048,
    });
  });

  it("W11 the answer's share is `[model] answer`, else a share of the window, at most the model's longest", () => {
    const answer = (facts: { window?: number; answerMax?: number }, model = {}) =>
      roomOf(facts, { ...settings, model }, [], []).answer;
    assert.equal(answer({ window: 100_000 }), 25_000);
    assert.equal(answer({ window: 100_000, answerMax: 8192 }), 8192);
    assert.equal(answer({ window: 100_000 }, { answer: 4000 }), 4000);
    assert.equal(answer({ window: 100_000, answerMax: 1000 }, { answer: 4000 }), 1000);
  });

  it("W9 W10 a window that was set is taken as set; a model that nobody described has the unknown one", () => {
    const known = { window: 100_000 };
    const { window, from } = roomOf(known, inWindow({ max: 1_000_000 }), [], []);
    assert.deepEqual([window, from], [1_000_000, "[window] max"]);
    assert.equal(roomOf(known, inWindow({ max: 5000 }), [], []).window, 5000);
    const unknown = roomOf({}, settings, [], []);
    assert.deepEqual([unknown.window, unknown.from], [32_768, "[window] unknown"]);
  });

  it("W6 never is summarised where compact_at says so", () => {
    assert.equal(roomOf({}, inWindow({ compact_at: "never" }), [], []).compactAt, undefined);
  });

  it("never more leaves at a time than two thirds of what it is summarised at", () => {
    const room = roomOf({}, inWindow({ compact_at: 0.3 }), [], []);
    assert.ok(room.drop <= room.compactAt! * 2 / 3);
    assert.ok(room.summary < room.drop);
  });

  it("B54 instructions and tools over the window are told with what is largest, and nothing is summarised", () => {
    const room = roomOf({}, settings, [section(500), section(900, "skills")], [tool(30_000)]);
    assert.match(room.tight!, /leave 0 tokens of the window of 32768 \(from \[window\] unknown\)/);
    assert.match(room.tight!, /the largest part is the tools with 300\d\d tokens/);
    assert.equal(room.compactAt, undefined);
    assert.equal(room.share, 1024);
    assert.ok(room.answer >= 1024 && room.answer < 8192);
    const wordy = roomOf({}, settings, [section(30_000, "repository")], [tool(10)]);
    assert.match(wordy.tight!, /the section repository with 30000 tokens/);
    assert.equal(roomOf({}, settings, [section(2000)], []).tight, undefined);
  });
});
