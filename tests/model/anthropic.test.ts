import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { failedBy } from "../../src/errors.ts";
import { silent } from "../../src/notices.ts";
import { anthropic } from "../../src/model/anthropic.ts";
import { chooseModel } from "../../src/model/choose.ts";
import type { Piece, Prompt, PromptMessage } from "../../src/model/model.ts";
import { hastyClock, json, promptOf, provider, type Reply, status, stream } from "./fakes.ts";

const event = (type: string, fields: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
const start = (usage: object = { input_tokens: 10, output_tokens: 1 }) =>
  event("message_start", {
    message: {
      id: "msg_1",
      type: "message",
      model: "claude-x-20261101",
      content: [],
      stop_reason: null,
      usage,
    },
  });
const block = (index: number, content_block: object, ...deltas: object[]) =>
  [
    event("content_block_start", { index, content_block }),
    ...deltas.map((delta) => event("content_block_delta", { index, delta })),
    event("content_block_stop", { index }),
  ].join("");
const text = (index: number, ...pieces: string[]) =>
  block(index, { type: "text", text: "" }, ...pieces.map((piece) => ({ type: "text_delta", text: piece })));
const end = (stop_reason: string, usage: object = { output_tokens: 20 }) =>
  event("message_delta", { delta: { stop_reason, stop_sequence: null }, usage }) + event("message_stop", {});
const said = (words: string): Reply => stream([start(), text(0, words), end("end_turn")]);

async function answerOf(prompt: Prompt, ...replies: Reply[]) {
  const { url, asked } = await provider(...replies);
  const clock = hastyClock();
  const model = await chooseModel({ name: "anthropic/claude-x" }, {
    environment: { ANTHROPIC_API_KEY: "sk-ant-key", ANTHROPIC_BASE_URL: url.replace(/\/v1$/, "/") },
    fetch,
    clock,
    notify: silent,
  });
  const pieces: Piece[] = [];
  const signal = new AbortController().signal;
  const answer = await model.ask({ prompt, signal, onPiece: (piece) => pieces.push(piece) });
  return { answer, pieces, asked };
}

const failureOf = (...replies: Reply[]) =>
  answerOf(promptOf("hi"), ...replies).then(() => assert.fail(), (thrown) => thrown);

const to = { provider: "anthropic", model: "claude-x" };
const manner = { thinking: true, answerField: "max_tokens", endless: false } as const;
// deno-lint-ignore no-explicit-any -- tests look into it freely
const encoded = (prompt: Prompt): any => JSON.parse(anthropic.encode(prompt, to, manner));

const tool = { name: "t__u", description: "d", schema: { type: "object", properties: {} } };
const said2 = (fields: Partial<Extract<PromptMessage, { role: "model" }>>): PromptMessage => ({
  role: "model",
  text: "",
  calls: [],
  model: "claude-x-20261101",
  provider: "anthropic",
  ...fields,
});
const calls = (from: number, count: number) =>
  Array.from({ length: count }, (_, at) => ({ id: `c${from}_${at}`, tool: "t__u", arguments: "{}" }));
const results = (from: number, count: number): PromptMessage[] =>
  calls(from, count).map(({ id, tool }) => ({ role: "result", call: id, tool, text: "done", ok: true }));

describe("the Anthropic wire: answers", () => {
  it("C3 text, usage with cache reads and writes, response id and model are kept", async () => {
    const { answer, pieces, asked } = await answerOf(
      promptOf("hi"),
      stream([
        start({
          input_tokens: 10,
          cache_read_input_tokens: 900,
          cache_creation_input_tokens: 90,
          output_tokens: 1,
        }),
        event("ping", {}),
        text(0, "Hel", "lo"),
        end("end_turn", { output_tokens: 20 }),
      ]),
    );
    assert.deepEqual({ ...answer, ms: 0 }, {
      text: "Hello",
      calls: [],
      model: "claude-x-20261101",
      provider: "anthropic",
      response: "msg_1",
      stop: "end",
      tokens: { input: 1000, output: 20, cached: 900, written: 90 },
      ms: 0,
    });
    assert.equal(pieces.length, 2);
    const { path, headers, body } = asked[0]!;
    assert.equal(path, "/v1/messages");
    assert.equal(headers["x-api-key"], "sk-ant-key");
    assert.ok(headers["anthropic-version"]);
    assert.equal(body.model, "claude-x");
    assert.equal(body.max_tokens, 100);
  });

  it("thinking with its signature, redacted thinking and parallel calls are kept", async () => {
    const { answer } = await answerOf(
      promptOf("hi"),
      stream([
        start(),
        block(
          0,
          { type: "thinking", thinking: "", signature: "" },
          { type: "thinking_delta", thinking: "Let me " },
          { type: "thinking_delta", thinking: "see." },
          { type: "signature_delta", signature: "sig" },
        ),
        block(1, { type: "redacted_thinking", data: "secret" }),
        text(2, "I look."),
        block(3, { type: "tool_use", id: "toolu_1", name: "t__u", input: {} }, {
          type: "input_json_delta",
          partial_json: '{"q"',
        }, { type: "input_json_delta", partial_json: ':"x"}' }),
        block(4, { type: "tool_use", id: "toolu_2", name: "t__u", input: {} }),
        end("tool_use"),
      ]),
    );
    assert.equal(answer.stop, "calls");
    assert.deepEqual(answer.calls, [
      { given: "toolu_1", tool: "t__u", arguments: '{"q":"x"}' },
      { given: "toolu_2", tool: "t__u", arguments: "{}" },
    ]);
    assert.deepEqual(answer.thinking, {
      wire: "anthropic",
      maker: "anthropic claude-x",
      blocks: [
        { type: "thinking", thinking: "Let me see.", signature: "sig" },
        { type: "redacted_thinking", data: "secret" },
      ],
    });
  });

  it("B39 thinking goes back whole and in its place, to its maker, between texts and calls too", async () => {
    const thinking = (n: number) => ({ type: "thinking", thinking: `t${n}`, signature: `s${n}` });
    const { answer } = await answerOf(
      promptOf("hi"),
      stream([
        start(),
        block(0, thinking(1)),
        text(1, "one"),
        block(2, thinking(2)),
        block(3, { type: "tool_use", id: "a", name: "t__u", input: { a: 1 } }),
        block(4, thinking(3)),
        block(5, { type: "tool_use", id: "b", name: "t__u", input: {} }),
        text(6, "two"),
        end("tool_use"),
      ]),
    );
    const prompt = promptOf(
      "hi",
      said2({
        text: answer.text,
        calls: answer.calls.map((call, at) => ({ ...call, id: `c2_${at}` })),
        thinking: answer.thinking,
      }),
      ...results(2, 2),
    );
    prompt.tools = [tool];
    assert.deepEqual(encoded(prompt).messages[1].content, [
      thinking(1),
      { type: "text", text: "one" },
      thinking(2),
      { type: "tool_use", id: "c2_0", name: "t__u", input: { a: 1 } },
      thinking(3),
      { type: "text", text: "two" },
      { type: "tool_use", id: "c2_1", name: "t__u", input: {} },
    ]);
    const other = JSON.parse(anthropic.encode(prompt, { provider: "anthropic", model: "claude-y" }, manner));
    assert.ok(!JSON.stringify(other).includes("thinking"));
  });

  it("B39 thinking that is unsigned, cut or of another maker is left out; signed and empty goes back", () => {
    const send = (block: object, maker = "anthropic claude-x") =>
      JSON.stringify(
        encoded(
          promptOf("a", said2({ text: "b", thinking: { wire: "anthropic", maker, blocks: [block] } }), "c"),
        ),
      );
    assert.match(send({ type: "thinking", thinking: "", signature: "s" }), /signature/);
    assert.doesNotMatch(send({ type: "thinking", thinking: "x" }), /thinking/);
    assert.doesNotMatch(send({ type: "thinking", thinking: "x", signature: "" }), /thinking/);
    assert.doesNotMatch(send({ type: "redacted_thinking" }), /thinking/);
    assert.doesNotMatch(
      send({ type: "thinking", thinking: "x", signature: "s" }, "openrouter anthropic/claude-x"),
      /thinking/,
    );
  });

  it("stop reasons: length, a full window, a refusal as its own error", async () => {
    const stopped = async (reason: string) =>
      (await answerOf(promptOf("hi"), stream([start(), text(0, "x"), end(reason)]))).answer.stop;
    assert.equal(await stopped("max_tokens"), "length");
    assert.equal(await stopped("model_context_window_exceeded"), "length");
    assert.equal(await stopped("stop_sequence"), "end");
    assert.ok(failedBy(await failureOf(stream([start(), text(0, "x"), end("refusal")])), "model_refused"));
  });

  it("a whole reply of a server that does not stream is understood", async () => {
    const { answer } = await answerOf(
      promptOf("hi"),
      json({
        id: "msg_2",
        type: "message",
        model: "claude-x",
        content: [{ type: "text", text: "whole" }, {
          type: "tool_use",
          id: "a",
          name: "t__u",
          input: { q: 1 },
        }],
        stop_reason: "tool_use",
        usage: { input_tokens: 3, output_tokens: 4 },
      }),
    );
    assert.deepEqual([answer.text, answer.calls[0]!.arguments, answer.stop, answer.tokens.input], [
      "whole",
      '{"q":1}',
      "calls",
      3,
    ]);
  });

  const broken: [string, Reply][] = [
    ["stops midway", stream([start(), text(0, "half")])],
    ["is dropped", stream([start(), text(0, "half")], { drop: true })],
    [
      "holds an error",
      stream([
        start(),
        text(0, "half"),
        event("error", { error: { type: "overloaded_error", message: "Overloaded" } }),
      ]),
    ],
    ["is a 529", status(529, { type: "error", error: { type: "overloaded_error", message: "Overloaded" } })],
    [
      "is an error with status 200",
      json({ type: "error", error: { type: "api_error", message: "Internal" } }),
    ],
  ];
  for (const [title, reply] of broken) {
    it(`B44 a reply that ${title} is asked for again`, async () => {
      const { answer, asked } = await answerOf(promptOf("hi"), reply, said("whole"));
      assert.equal(answer.text, "whole");
      assert.equal(asked.length, 2);
    });
  }

  it("B44 an answer with its stop reason is whole though its last event is missing", async () => {
    const cut = end("end_turn").split("event: message_stop")[0]!;
    const { answer, asked } = await answerOf(
      promptOf("hi"),
      stream([start(), text(0, "all"), cut], { drop: true }),
    );
    assert.deepEqual([answer.text, asked.length], ["all", 1]);
  });
});

describe("the Anthropic wire: requests", () => {
  /** Blocks with a mark, by where they stand. */
  function marks(prompt: Prompt): string[] {
    const body = encoded(prompt);
    const found: string[] = [];
    for (const [at, one] of (body.tools ?? []).entries()) if (one.cache_control) found.push(`tool ${at}`);
    for (const [at, one] of (body.system ?? []).entries()) if (one.cache_control) found.push(`system ${at}`);
    for (const [at, message] of body.messages.entries()) {
      for (const [place, one] of message.content.entries()) {
        if (one.cache_control) found.push(`message ${at} block ${place}`);
      }
    }
    return found;
  }

  it("B76 at most four marks, one block each, also where the marked message has eight parallel results", () => {
    const prompt = promptOf(
      "a",
      said2({ calls: calls(2, 8) }),
      ...results(2, 8),
      said2({ text: "answer" }),
      "b",
    );
    prompt.tools = [tool, { ...tool, name: "t__v" }];
    prompt.instructions = ["one", "two", "three"];
    prompt.markAt = 9;
    assert.deepEqual(marks(prompt), ["tool 1", "system 2", "message 2 block 7", "message 4 block 0"]);
    prompt.markAt = 10;
    assert.deepEqual(marks(prompt), ["tool 1", "system 2", "message 3 block 0", "message 4 block 0"]);
    prompt.messages.length = 10;
    prompt.markAt = 9;
    assert.deepEqual(marks(prompt), ["tool 1", "system 2", "message 2 block 7"]);
    prompt.tools = [];
    prompt.instructions = [];
    assert.equal(marks(prompt).length, 1);
  });

  it("roles take turns, the user first, results before what was said meanwhile", () => {
    const prompt = promptOf(
      said2({ text: "before" }),
      "a",
      "b",
      said2({ calls: calls(2, 1) }),
      ...results(2, 1),
      "meanwhile",
      said2({ text: "x" }),
      said2({ text: "y" }),
      "c",
    );
    prompt.tools = [tool];
    const { messages } = encoded(prompt);
    assert.deepEqual(messages.map((message: { role: string }) => message.role), [
      "user",
      "assistant",
      "user",
      "assistant",
      "user",
      "assistant",
      "user",
    ]);
    assert.deepEqual(messages[4].content.map((one: { type: string }) => one.type), ["tool_result", "text"]);
  });

  it("B41 no empty block is sent: fixed words stand for what is empty", () => {
    const prompt = promptOf(
      "",
      said2({ text: " \n", calls: calls(2, 3) }),
      ...results(2, 3),
      said2({ text: "" }),
      "x",
    );
    prompt.tools = [tool];
    for (const [at, text] of ["", " \n", "[]"].entries()) Object.assign(prompt.messages[2 + at]!, { text });
    const { messages } = encoded(prompt);
    assert.deepEqual(messages[1].content.map((one: { type: string }) => one.type), [
      "tool_use",
      "tool_use",
      "tool_use",
    ]);
    assert.deepEqual(messages[2].content.map((one: { content: string }) => one.content), [
      "(the tool gave no output)",
      "(the tool gave no output)",
      "[]",
    ]);
    assert.equal(messages[3].content[0].text, "(no words)");
  });

  it("B43 arguments that are no whole object are replayed as an empty one", () => {
    for (const text of ['{"path":"a', "", "null", "[]", '"x"', "{}{}"]) {
      const prompt = promptOf(
        "a",
        said2({ calls: [{ id: "c2_0", tool: "t__u", arguments: text }] }),
        ...results(2, 1),
      );
      prompt.tools = [tool];
      assert.deepEqual(encoded(prompt).messages[1].content[0].input, {});
    }
  });

  it("T6 with the tools gone, calls and results go as text", () => {
    const prompt = promptOf("a", said2({ text: "I look.", calls: calls(2, 2) }), ...results(2, 1), "b");
    const { messages, tools } = encoded(prompt);
    assert.equal(tools, undefined);
    assert.equal(messages[1].content[0].text, "I look.\n\n[called t__u with {}]\n\n[called t__u with {}]");
    assert.match(
      messages[2].content[0].text,
      /^\[result of t__u\]\ndone\n\n\[result of t__u\]\n\(no result was kept/,
    );
  });

  it("that nothing is to be called is said in words, after the last mark", () => {
    const prompt = promptOf("a");
    prompt.tools = [tool];
    const calling = anthropic.encode(prompt, to, manner);
    prompt.choice = "none";
    const { messages, tool_choice } = encoded(prompt);
    assert.equal(tool_choice, undefined);
    assert.ok(messages[0].content[0].cache_control);
    assert.match(messages[0].content[1].text, /Call no tool/);
    assert.ok(anthropic.encode(prompt, to, manner).startsWith(calling.replace(/\]\}\]\}$/, "")));
  });

  it("names that are refused are mapped the same way each time, told apart, and mapped back", async () => {
    const names = ["a.b__c", "a_b__c", "ü__x", "9__x", `t__${"x".repeat(80)}`, `t__${"x".repeat(80)}y`];
    const prompt = promptOf("a");
    prompt.tools = names.map((name) => ({ ...tool, name }));
    const sent: string[] = encoded(prompt).tools.map((one: { name: string }) => one.name);
    assert.equal(new Set(sent).size, names.length);
    for (const name of sent) assert.match(name, /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/);
    assert.equal(sent[1], "a_b__c");
    const { answer } = await answerOf(
      prompt,
      stream([
        start(),
        ...sent.map((name, index) => block(index, { type: "tool_use", id: `${index}`, name, input: {} })),
        end("tool_use"),
      ]),
    );
    assert.deepEqual(answer.calls.map((call) => call.tool), names);
  });
});
