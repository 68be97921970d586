// What of a model's arguments is run.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { argumentsOf } from "../../src/tools/arguments.ts";
import { double, rig } from "./rig.ts";

describe("arguments", () => {
  it("B43 only one whole JSON object is run: nothing cut short, empty, doubled or of another kind is mended into one", () => {
    const refused = [
      '{"path":"a',
      "",
      " ",
      "null",
      "[]",
      '"x"',
      "7",
      "true",
      "{}{}",
      "{} x",
      "{'a':1}",
      '{"a":1,}',
      "undefined",
    ];
    for (const text of refused) assert.equal(argumentsOf(text), undefined, text);
    for (
      const [text, value] of [["{}", {}], [' {"a":[1]}\n', { a: [1] }], ['{"a":1,"a":2}', { a: 2 }]] as const
    ) {
      assert.deepEqual(argumentsOf(text), value);
    }
    const long = { text: "x".repeat(2 * 1024 * 1024) };
    assert.deepEqual(argumentsOf(JSON.stringify(long)), long);
  });

  it("B43 a key named __proto__ is a key, here and at the server", async () => {
    const given = argumentsOf('{"__proto__":{"polluted":true},"constructor":1}')!;
    assert.deepEqual(Object.keys(given), ["__proto__", "constructor"]);
    assert.equal((given as { polluted?: unknown }).polluted, undefined);
    const server = await double();
    const { names, call } = rig({ LNK_TOOL_X: server.url });
    await names();
    await call("x__note", given);
    assert.deepEqual(Object.entries(server.calls[0]!.params!.arguments!), Object.entries(given));
    assert.equal(({} as { polluted?: unknown }).polluted, undefined);
  });

  it("B42 half a character in an argument is made whole before it is sent", () => {
    assert.deepEqual(argumentsOf('{"a":["\\ud83d","\\ud83d\\ude00"]}'), { a: ["\ufffd", "😀"] });
  });
});
