// The wires against a provider written by others, so that a mistake of ours about a wire shows.

import { LLMock } from "@copilotkit/aimock";
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { failedBy } from "../../src/errors.ts";
import { chooseModel } from "../../src/model/choose.ts";
import type { Piece, Prompt } from "../../src/model/model.ts";
import { silent } from "../../src/notices.ts";
import { hastyClock, promptOf } from "./fakes.ts";

const tool = {
  name: "memory__search",
  description: "Searches.",
  schema: { type: "object", properties: { q: { type: "string" } } },
};

for (const wire of ["openai", "anthropic"] as const) {
  const mock = new LLMock({ port: 0 });
  const ask = async (prompt: Prompt) => {
    const pieces: Piece[] = [];
    const model = await chooseModel({ name: "some/model" }, {
      environment: { LNK_MODEL_URL: `${mock.url}/v1`, LNK_MODEL_KEY: "test", LNK_MODEL_WIRE: wire },
      fetch,
      clock: hastyClock(),
      notify: silent,
    });
    const signal = new AbortController().signal;
    const answer = await model.ask({ prompt, signal, onPiece: (piece) => pieces.push(piece) });
    return { answer, pieces };
  };

  describe(`aimock as the ${wire} endpoint`, () => {
    before(async () => {
      await mock.start();
    });
    after(async () => {
      await mock.stop();
    });

    it("gives a streamed text with its usage and response id", async () => {
      mock.onMessage(/parcel/, {
        content: "On its way. 🐎",
        usage: {
          prompt_tokens: 11,
          completion_tokens: 5,
          total_tokens: 16,
          input_tokens: 11,
          output_tokens: 5,
        },
      });
      const { answer, pieces } = await ask(promptOf("Where is my parcel?"));
      assert.equal(answer.text, "On its way. 🐎");
      assert.equal(answer.stop, "end");
      assert.ok(answer.response);
      assert.deepEqual([answer.tokens.input, answer.tokens.output], [11, 5]);
      assert.equal(pieces.map((piece) => piece.type === "text" ? piece.text : "").join(""), answer.text);
    });

    it("gives parallel calls, and an answer after their results", async () => {
      mock.on({ userMessage: /look twice/, hasToolResult: false }, {
        toolCalls: [
          { name: "memory__search", arguments: '{"q":"a"}' },
          { name: "memory__search", arguments: '{"q":"b"}' },
        ],
      });
      mock.on({ userMessage: /look twice/, hasToolResult: true }, { content: "Found both." });
      const prompt = promptOf("look twice");
      prompt.tools = [tool];
      const first = await ask(prompt);
      assert.equal(first.answer.stop, "calls");
      assert.deepEqual(first.answer.calls.map((call) => [call.tool, JSON.parse(call.arguments)]), [
        ["memory__search", { q: "a" }],
        ["memory__search", { q: "b" }],
      ]);
      const calls = first.answer.calls.map((call, at) => ({ ...call, id: `c2_${at}` }));
      prompt.messages.push(
        { role: "model", text: "", calls, model: "m", provider: "proxy" },
        ...calls.map(({ id, tool }) => ({
          role: "result" as const,
          call: id,
          tool,
          text: "found",
          ok: true,
        })),
      );
      assert.equal((await ask(prompt)).answer.text, "Found both.");
    });

    it("gives thinking beside its text", async () => {
      mock.onMessage(/think/, {
        content: "42",
        reasoning: "Let me see.",
        reasoningSignature: "c2lnbmF0dXJl",
      });
      const { answer } = await ask(promptOf("think"));
      assert.equal(answer.text, "42");
      assert.match(JSON.stringify(answer.thinking?.blocks), /Let me see\./);
    });

    it("is asked again after a 429 and a 503, and not after a 400", async () => {
      mock.onMessage(/again/, { content: "there" });
      for (const status of [429, 503]) {
        mock.nextRequestError(status, { message: "later" });
        assert.equal((await ask(promptOf("again"))).answer.text, "there");
      }
      mock.nextRequestError(400, { message: "no", type: "invalid_request_error" });
      await assert.rejects(() => ask(promptOf("again")), (thrown) => failedBy(thrown, "model_failed"));
    });

    it("is asked again where its stream breaks midway", async () => {
      let tries = 0;
      const broken = { content: "a long enough answer to be cut in the middle of it" };
      mock.on({ userMessage: /breaks/, predicate: () => tries++ === 0 }, broken, {
        truncateAfterChunks: 5,
        chunkSize: 5,
        latency: 5,
      });
      mock.onMessage(/breaks/, { content: "whole" });
      const { answer, pieces } = await ask(promptOf("breaks"));
      assert.equal(answer.text, "whole");
      assert.ok(pieces.some((piece) => piece.type === "restart"));
    });
  });
}
