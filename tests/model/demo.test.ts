import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock } from "../../src/clock.ts";
import { demoModel } from "../../src/model/demo.ts";
import { ended, type Piece, type Prompt } from "../../src/model/model.ts";
import { promptOf } from "./fakes.ts";

const tool = { name: "memory__search", description: "d", schema: { type: "object", properties: {} } };

async function ask(prompt: Prompt) {
  const pieces: Piece[] = [];
  const answer = await demoModel(systemClock).ask({
    prompt,
    signal: new AbortController().signal,
    onPiece: (piece) => pieces.push(piece),
  });
  return { answer, pieces };
}

describe("demo/echo", () => {
  it("echoes, streams word by word, and says what it is", async () => {
    const { answer, pieces } = await ask(promptOf("[2026-12-01 09:00]\nWhere is my parcel?"));
    assert.match(answer.text, /You said: Where is my parcel\?/);
    assert.match(answer.text, /demo\/echo.*no real model/);
    assert.ok(pieces.length > 5);
    assert.equal(pieces.map((piece) => piece.type === "text" ? piece.text : "").join(""), answer.text);
  });

  it("calls the tools that a message names, of those that are offered", async () => {
    const prompt = promptOf('use memory__search {"q":"x"}\nuse memory__search\nuse other__thing {}');
    prompt.tools = [tool];
    const { answer } = await ask(prompt);
    assert.equal(answer.stop, "calls");
    assert.deepEqual(answer.calls, [
      { tool: "memory__search", arguments: '{"q":"x"}' },
      { tool: "memory__search", arguments: "{}" },
    ]);
    prompt.choice = "none";
    assert.deepEqual((await ask(prompt)).answer.calls, []);
  });

  it("tells what its calls gave", async () => {
    const call = { id: "c2_0", tool: "memory__search", arguments: "{}" };
    const { answer } = await ask(promptOf(
      "use memory__search",
      { role: "model", text: "", calls: [call], model: "demo/echo", provider: "demo" },
      { role: "result", call: "c2_0", tool: "memory__search", text: "found it", ok: true },
    ));
    assert.match(answer.text, /memory__search gave:\nfound it/);
    assert.match(answer.text, /demo\/echo/);
  });

  it("stops when asked to end, with what was said", async () => {
    const stop = new AbortController();
    const asking = (reason: unknown) =>
      demoModel(systemClock).ask({
        prompt: promptOf("one two three"),
        signal: stop.signal,
        onPiece: () => stop.abort(reason),
      });
    const answer = await asking(ended);
    assert.deepEqual([answer.text, answer.stop], ["You ", "asked"]);
  });
});
