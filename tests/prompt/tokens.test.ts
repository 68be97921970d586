import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { cutEnd, cutMiddle } from "../../src/prompt/cut.ts";
import { roughTokens, tokensOf } from "../../src/prompt/tokens.ts";

const seed = 52;
const anyText = fc.string({ unit: "binary", maxLength: 400 });

describe("the rough count", () => {
  it("W12 counts four ASCII characters to a token, and one for any other character", () => {
    assert.equal(roughTokens(""), 0);
    assert.equal(roughTokens("abcd"), 1);
    assert.equal(roughTokens("abcde"), 2);
    assert.equal(roughTokens("漢字"), 2);
    assert.equal(roughTokens("🙂🙂"), 2);
    assert.equal(roughTokens("é1234"), 2);
  });

  it("W12 counts as a count by characters would, for any text", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const characters = [...text];
        const ascii = characters.filter((one) => one.codePointAt(0)! < 0x80).length;
        assert.equal(roughTokens(text), Math.ceil(ascii / 4) + characters.length - ascii);
      }),
      { seed },
    );
  });

  it("counts calls and thinking with the message that holds them", () => {
    const message = { role: "model", text: "abcd", calls: [], model: "m", provider: "p" } as const;
    const calls = [{ id: "c1_0", tool: "a__b", arguments: '{"a":1}' }];
    const thinking = { wire: "anthropic", blocks: [{ thinking: "x".repeat(400) }] };
    const plain = tokensOf({ ...message, calls: [] });
    assert.ok(tokensOf({ ...message, calls }) > plain);
    assert.ok(tokensOf({ ...message, calls: [], thinking }) > plain + 100);
  });
});

describe("a text made to fit", () => {
  it("B42 is within its size, says what is missing, and cuts no character", () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 40, max: 120 }), (given, max) => {
        const text = given.toWellFormed();
        for (const cut of [cutEnd(text, max), cutMiddle(text, max)]) {
          assert.ok(roughTokens(cut) <= max);
          assert.ok(cut.isWellFormed());
          assert.equal(cut === text, roughTokens(text) <= max);
        }
      }),
      { seed, numRuns: 500 },
    );
  });

  it("B42 keeps start and end at each place of a pair of surrogates", () => {
    for (let ascii = 2000; ascii < 2008; ascii++) {
      const cut = cutMiddle("a".repeat(ascii) + "🙂".repeat(2000) + "b".repeat(ascii), 400);
      assert.ok(cut.isWellFormed());
      assert.ok(cut.startsWith("aaaa") && cut.endsWith("bbbb"));
    }
  });
});
