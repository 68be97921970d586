// What holds of every request, whatever was said: checked on prompts made at random.

import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { anthropic } from "../../src/model/anthropic.ts";
import type { Prompt, PromptMessage } from "../../src/model/model.ts";
import { openai } from "../../src/model/openai.ts";
import type { Addressee, Manner, Wire } from "../../src/model/wire.ts";
import type { ToolSpec } from "../../src/tool.ts";

const seed = 20261201;
const manner: Manner = { thinking: true, answerField: "max_tokens", endless: false };

const wires: [string, Wire, Addressee][] = [
  ["the Anthropic wire", anthropic, { provider: "anthropic", model: "claude-x" }],
  ["the OpenAI wire", openai, { provider: "proxy", model: "maker/model" }],
  ["OpenRouter with one of Anthropic's models", openai, {
    provider: "openrouter",
    model: "anthropic/claude-x",
  }],
];

const text = fc.oneof(
  { weight: 3, arbitrary: fc.string({ unit: "binary", maxLength: 30 }) },
  fc.constantFrom(
    "",
    " \n",
    "\ud83d",
    "\udc0e",
    '"',
    "\\",
    "🐎",
    "\u2028",
    "]}",
    '","cache_control":{"type":"ephemeral"}',
  ),
);
const args = fc.oneof(
  fc.constantFrom(
    "",
    "null",
    "[]",
    "{",
    '{"a":1,"a":2}',
    '{"__proto__":1}',
    '{"a":"\\ud83d"}',
    ' {"a" : 1e400}',
  ),
  fc.dictionary(fc.string({ maxLength: 8 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }).map((value) =>
    JSON.stringify(value)
  ),
);
const toolName = fc.constantFrom("memory__search", "a.b__c", "a_b__c", `t__${"x".repeat(90)}`, "ü__x");

const thinkingBlock = fc.constantFrom<unknown>(
  { type: "thinking", thinking: "hm", signature: "s" },
  { type: "thinking", thinking: "cut" },
  { type: "redacted_thinking", data: "d" },
  { type: "place_text", chars: 3 },
  { type: "place_call" },
  { reasoning_content: "hm" },
  { reasoning_details: [{ type: "reasoning.text", text: "hm", format: "anthropic-claude-v1" }] },
  null,
);
const thinking = fc.record({
  wire: fc.constantFrom("anthropic", "openai"),
  maker: fc.constantFrom(
    "anthropic claude-x",
    "proxy maker/model",
    "openrouter anthropic/claude-x",
    "someone else",
  ),
  blocks: fc.array(thinkingBlock, { maxLength: 4 }),
});

/** A message of somebody, or a round of a model with the result of each of its calls: what a prompt is made of. */
const part: fc.Arbitrary<(number: number) => PromptMessage[]> = fc.oneof(
  text.map((said) => () => [{ role: "user" as const, text: said }]),
  fc.record({
    text,
    thinking: fc.option(thinking, { nil: undefined }),
    calls: fc.array(fc.record({ tool: toolName, arguments: args, result: text, ok: fc.boolean() }), {
      maxLength: 4,
    }),
  }).map((round) => (number: number): PromptMessage[] => [
    {
      role: "model",
      text: round.text,
      calls: round.calls.map(({ tool, arguments: given }, at) => ({
        id: `c${number}_${at}`,
        tool,
        arguments: given,
      })),
      ...(round.thinking ? { thinking: round.thinking } : {}),
      model: "m",
      provider: "p",
    },
    ...round.calls.map(({ tool, result, ok }, at): PromptMessage => ({
      role: "result",
      call: `c${number}_${at}`,
      tool,
      text: result,
      ok,
    })),
  ]),
);
const tools = fc.uniqueArray(toolName, { maxLength: 4 }).map((names): ToolSpec[] =>
  names.map((name) => ({
    name,
    description: "d",
    schema: { properties: { a: { $ref: "#/$defs/A" } }, $defs: { A: true } },
  }))
);

const prompts = fc.record({
  instructions: fc.array(text, { maxLength: 3 }),
  tools,
  parts: fc.array(part, { minLength: 1, maxLength: 8 }),
  more: fc.array(part, { minLength: 1, maxLength: 4 }),
  mark: fc.nat(10),
}).map(({ instructions, tools, parts, more, mark }) => {
  const at = (made: PromptMessage[]): Prompt => ({
    instructions,
    tools,
    choice: "auto",
    messages: made,
    markAt: mark % (made.length + 1) - 1,
    answerMax: 100,
  });
  // As prompts are composed, one never ends with what the model said.
  const end: PromptMessage = { role: "user", text: "end" };
  const first = [...parts.flatMap((make, number) => make(number + 1)), end];
  const second = [...first, ...more.flatMap((make, number) => make(number + 101)), end];
  return { first: at(first), second: at(second) };
});

/** Without cache marks, and without the brackets that close its JSON. */
function open(request: string): string {
  return request.replaceAll(/,"cache_control":\{"type":"ephemeral"\}(?=\})/g, "").replace(/["\]}]*$/, "");
}

function assertPaired(calls: string[], results: string[]): void {
  assert.equal(new Set(calls).size, calls.length, "an id is used once");
  assert.deepEqual(results, calls, "each call has one result, right after");
}

// deno-lint-ignore no-explicit-any -- looks into what was encoded
type Body = any;

const valid: Record<Wire["name"], (body: Body) => void> = {
  anthropic(body) {
    let role = "assistant", open: string[] = [];
    for (const message of body.messages) {
      assert.notEqual(message.role, role, "roles take turns, the user first");
      role = message.role;
      const types: string[] = message.content.map((block: Body) => block.type);
      assert.ok(types.length > 0);
      if (role === "assistant") assert.doesNotMatch(types.at(-1)!, /thinking/);
      for (const block of message.content) {
        assert.ok(!block.type.startsWith("place_"));
        if (block.type === "text") assert.notEqual(block.text.trim(), "");
        if (block.type === "tool_result") assert.notEqual(block.content.trim(), "");
        if (block.type === "thinking") assert.ok(block.signature);
        if (block.type === "tool_use") assert.match(block.name, /^[A-Za-z0-9_-]{1,64}$/);
      }
      const of = (type: string, id: string): string[] =>
        message.content.filter((block: Body) => block.type === type).map((block: Body) => block[id]);
      const results = of("tool_result", "tool_use_id");
      assertPaired(open, results);
      assert.deepEqual(
        types.slice(0, results.length),
        results.map(() => "tool_result"),
        "results come first",
      );
      open = of("tool_use", "id");
    }
    assertPaired(open, []);
    const marks =
      JSON.stringify(body, (key, value) => key === "cache_control" ? "MARK" : value).split('"MARK"').length -
      1;
    assert.ok(marks >= 1 && marks <= 4, `${marks} marks`);
    if (!body.tools) assert.doesNotMatch(JSON.stringify(body.messages), /"type":"tool_(use|result)"/);
  },
  openai(body) {
    let open: string[] = [], results: string[] = [], last = "";
    const words = (content: Body) => typeof content === "string" ? content : content[0].text;
    for (const message of [...body.messages, { role: "end" }]) {
      if (message.role === "tool") {
        assert.notEqual(words(message.content).trim(), "");
        results.push(message.tool_call_id);
        continue;
      }
      assertPaired(open, results);
      open = [];
      results = [];
      if (message.role === "user") assert.notEqual(last, "user", "users are not two in a row");
      if (message.content !== null && message.role !== "end") {
        assert.notEqual(words(message.content).trim(), "");
      }
      if (message.role === "assistant") {
        if (message.content === null) assert.ok(message.tool_calls.length > 0);
        for (const call of message.tool_calls ?? []) {
          assert.match(call.function.name, /^[A-Za-z0-9_-]{1,64}$/);
          const given = JSON.parse(call.function.arguments);
          assert.ok(typeof given === "object" && given !== null && !Array.isArray(given));
          open.push(call.id);
        }
      }
      last = message.role;
    }
    if (!body.tools) {
      assert.ok(!body.messages.some((message: Body) => message.tool_calls || message.role === "tool"));
    }
  },
};

for (const [title, wire, to] of wires) {
  describe(`requests on ${title}`, () => {
    it(`a conversation that goes on keeps every byte before (seed ${seed})`, () => {
      fc.assert(
        fc.property(prompts, ({ first, second }) => {
          const before = open(wire.encode(first, to, manner)), after = open(wire.encode(second, to, manner));
          assert.ok(after.startsWith(before), `${before}\n${after}`);
        }),
        { seed, numRuns: 200 },
      );
    });

    it(`B34 every request is valid, and the same again (seed ${seed})`, () => {
      fc.assert(
        fc.property(prompts, ({ second }) => {
          const request = wire.encode(second, to, manner);
          assert.ok(request.isWellFormed());
          assert.doesNotMatch(request, /\\u[dD][89a-fA-F]/);
          valid[wire.name](JSON.parse(request));
          assert.equal(wire.encode(structuredClone(second), to, manner), request);
        }),
        { seed, numRuns: 200 },
      );
    });

    it(`B34 results that are missing, doubled, or of no call still make a valid request (seed ${seed})`, () => {
      fc.assert(
        fc.property(prompts, fc.array(fc.nat(30), { maxLength: 6 }), ({ second }, places) => {
          const messages = [...second.messages];
          for (const place of places) {
            const at = messages.findIndex((message, index) => index >= place && message.role === "result");
            if (at < 0) continue;
            if (place % 3 === 0) messages.splice(at, 1);
            else if (place % 3 === 1) messages.splice(at, 0, messages[at]!);
            else {messages[at] = {
                ...messages[at] as Extract<PromptMessage, { role: "result" }>,
                call: "nobody",
              };}
          }
          valid[wire.name](JSON.parse(wire.encode({ ...second, messages }, to, manner)));
        }),
        { seed, numRuns: 200 },
      );
    });
  });
}
