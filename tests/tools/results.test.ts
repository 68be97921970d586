// What a tool gave, as the model is told it.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { limits } from "../../src/limits.ts";
import { cutResult, resultOf } from "../../src/tools/result.ts";

const text = (text: string) => ({ type: "text", text });
const bytes = (text: string) => new TextEncoder().encode(text).length;

describe("results", () => {
  it("B53 an image of 1 MB, audio, a blob and a link are short notes of kind and size, never base64", () => {
    const data = Buffer.alloc(1024 * 1024, 7).toString("base64");
    const { text: said } = resultOf({
      content: [
        { type: "image", mimeType: "image/png", data },
        { type: "audio", mimeType: "audio/wav", data: data.slice(0, 400) },
        { type: "resource", resource: { uri: "file:///a.bin", mimeType: "application/x", blob: data } },
        { type: "resource", resource: { uri: "file:///a.txt", text: "inside" } },
        { type: "resource_link", uri: "file:///b.txt", name: "b", mimeType: "text/plain", size: 12 },
      ],
    });
    assert.equal(
      said,
      [
        "[image: image/png, 1048576 bytes]",
        "[audio: audio/wav, 300 bytes]",
        "[resource: file:///a.bin, application/x, 1048576 bytes]",
        "[resource: file:///a.txt]",
        "inside",
        "[link to a resource: b, file:///b.txt, text/plain, 12 bytes]",
      ].join("\n"),
    );
  });

  it("B53 structured content is not sent beside a text that says the same, and never as base64", () => {
    const data = Buffer.alloc(9000, 7).toString("base64");
    const same: unknown[] = [
      { content: [text('{ "b": [1], "a": "x" }')], structuredContent: { a: "x", b: [1] } },
      { content: [text("plain")], structuredContent: { result: "plain" } },
      { content: [text("[1,2]")], structuredContent: { result: [1, 2] } },
      { content: [text("[1,"), text("2]")], structuredContent: { result: [1, 2] } },
      {
        content: [text("A title\n\nand words")],
        structuredContent: { title: "A title", result: ["and words"] },
      },
    ];
    for (const whole of same) assert.doesNotMatch(resultOf(whole).text, /"a":"x","b"|result/);
    assert.equal(
      resultOf({
        content: [{ type: "image", mimeType: "image/png", data }],
        structuredContent: { image: data, w: 3 },
      }).text,
      `[image: image/png, 9000 bytes]\n{"image":"[9000 bytes]","w":3}`,
    );
    assert.equal(
      resultOf({ content: [text("Found 2.")], structuredContent: { found: [1, 2] } }).text,
      `Found 2.\n{"found":[1,2]}`,
    );
    assert.equal(resultOf({ content: [], structuredContent: [1] }).text, "[1]");
  });

  it("B53 two hundred texts are one text, in their order", () => {
    const parts = Array.from({ length: 200 }, (_, i) => `part ${i}`);
    assert.equal(resultOf({ content: parts.map(text) }).text, parts.join("\n"));
  });

  it("B41 a result that is empty or only white space gets fixed words, and so does a failure that says nothing", () => {
    for (const content of [[], [text("")], [text(" \n")], [text(""), text("\t")], undefined, null, "x"]) {
      assert.deepEqual(resultOf({ content }), { ok: true, text: "The tool gave no output." });
      assert.deepEqual(resultOf({ content, isError: true }), {
        ok: false,
        text: "The tool failed and said nothing.",
      });
    }
    for (const whole of [undefined, null, 7, "x", []]) {
      assert.equal(resultOf(whole).text, "The tool gave no output.");
    }
  });

  it("T10 a result up to 32 KiB stays whole; a longer one keeps head and tail within them, and its whole size is told", () => {
    const whole = "x".repeat(limits.resultBytesMax);
    assert.deepEqual(cutResult(whole), { text: whole });
    const { text, cut } = cutResult(`start ${"m".repeat(100_000)} end`);
    assert.equal(cut, 100_010);
    assert.ok(bytes(text) <= limits.resultBytesMax && bytes(text) > limits.resultBytesMax - 8);
    assert.match(
      text,
      /^start m+\n\[… cut here: the whole result has 100010 bytes, this is its start and its end …\]\nm+ end$/,
    );
  });

  it("B42 the cut is never inside a character: 32 KiB − 1 bytes and an emoji, at all four offsets", () => {
    for (let offset = 0; offset < 4; offset++) {
      const before = "a".repeat(limits.resultBytesMax - 1 - offset);
      for (
        const whole of [
          `${before}😀`,
          `${before}😀${"b".repeat(40_000)}`,
          `${"😀".repeat(20_000)}${"a".repeat(offset)}`,
        ]
      ) {
        const { text, cut } = resultOf({ content: [{ type: "text", text: whole }] });
        assert.ok(text.isWellFormed());
        assert.ok(!text.includes("\ufffd"));
        assert.ok(bytes(text) <= limits.resultBytesMax);
        assert.equal(cut, bytes(whole) > limits.resultBytesMax ? bytes(whole) : undefined);
      }
    }
  });

  it("B42 whatever a tool gives, its result is well-formed, not empty, within its bytes, and cut only where it is too long", () => {
    const long = fc.string({ unit: "binary", maxLength: 60 }).chain((unit) =>
      fc.nat(4000).map((times) => unit.repeat(times))
    );
    fc.assert(
      fc.property(
        fc.oneof(long, fc.string({ unit: "grapheme" }), fc.constant("\ud83d"), fc.jsonValue()),
        (given) => {
          const { text: said, cut } = resultOf({
            content: [text(given as string), { type: "text", text: "\ude00" }],
          });
          assert.ok(said.isWellFormed() && said.trim() !== "" && bytes(said) <= limits.resultBytesMax);
          if (cut !== undefined) assert.ok(cut > limits.resultBytesMax);
        },
      ),
      { seed: 20261201, numRuns: 300 },
    );
  });

  it("whatever comes as a result gives a text", () => {
    fc.assert(
      fc.property(
        fc.record({
          content: fc.array(
            fc.oneof(
              fc.jsonValue(),
              fc.record({
                type: fc.constantFrom("text", "image", "audio", "resource", "resource_link"),
                data: fc.jsonValue(),
                resource: fc.jsonValue(),
                text: fc.jsonValue(),
              }),
            ),
          ),
          structuredContent: fc.jsonValue(),
          isError: fc.jsonValue(),
        }),
        (whole) => {
          const { text: said } = resultOf(whole);
          assert.ok(said !== "" && said.isWellFormed());
        },
      ),
      { seed: 20261201, numRuns: 500 },
    );
  });
});
