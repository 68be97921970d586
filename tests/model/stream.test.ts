import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { eventReader, type StreamEvent } from "../../src/model/stream.ts";

const recorded = [
  ": a comment",
  "",
  "event: message_start",
  'data: {"text":"žluťoučký 🐎 e\u0301"}',
  "",
  'data:{"no":"space"}',
  "id: 7",
  "retry: 100",
  "",
  "data: two",
  "data: lines",
  "unknown: field",
  "",
  "event: lost",
  "",
  "data:  kept space",
  "",
  "data: \u2028\u2029\u0085 stay",
  "",
  "data: [DONE]",
].join("\n");

const expected: StreamEvent[] = [
  { event: "message_start", data: '{"text":"žluťoučký 🐎 e\u0301"}' },
  { data: '{"no":"space"}' },
  { data: "two\nlines" },
  { data: " kept space" },
  { data: "\u2028\u2029\u0085 stay" },
  { data: "[DONE]" },
];

function read(...chunks: Uint8Array[]): StreamEvent[] {
  const reader = eventReader(10_000);
  return [...chunks.flatMap((chunk) => reader.feed(chunk)), ...reader.end()];
}

describe("server-sent events", () => {
  for (const [name, end] of [["LF", "\n"], ["CRLF", "\r\n"], ["CR", "\r"]] as const) {
    for (const mark of ["", "\ufeff"]) {
      for (const tail of ["", end, end + end]) {
        const title = `${name}, ${mark ? "a" : "no"} byte order mark, ${
          tail.length / end.length
        } line ends last`;
        it(`B46 a stream reads the same cut at every offset: ${title}`, () => {
          const bytes = new TextEncoder().encode(mark + recorded.replaceAll("\n", end) + tail);
          for (let cut = 0; cut <= bytes.length; cut++) {
            assert.deepEqual(read(bytes.subarray(0, cut), bytes.subarray(cut)), expected, `cut at ${cut}`);
          }
        });
        it(`B46 a stream reads the same byte by byte: ${title}`, () => {
          const bytes = new TextEncoder().encode(mark + recorded.replaceAll("\n", end) + tail);
          assert.deepEqual(read(...Array.from(bytes, (byte) => Uint8Array.of(byte))), expected);
        });
      }
    }
  }

  it("a byte order mark in the middle is data", () => {
    assert.deepEqual(read(new TextEncoder().encode("data: a\ufeffb\n\n")), [{ data: "a\ufeffb" }]);
  });

  it("a line that never ends is given up at its bound", () => {
    const reader = eventReader(100);
    assert.throws(() => {
      for (let i = 0; i < 100; i++) reader.feed(new TextEncoder().encode("data: 0123456789"));
    }, /100/);
  });
});
