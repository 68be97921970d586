import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { failedBy } from "../../src/errors.ts";
import { silent } from "../../src/notices.ts";
import { chooseModel, type Wanted } from "../../src/model/choose.ts";
import { type Answer, ended, type Model, type Piece, type Prompt } from "../../src/model/model.ts";
import {
  delta,
  done,
  hastyClock,
  json,
  promptOf,
  provider,
  type Reply,
  said,
  status,
  stream,
} from "./fakes.ts";

async function modelAt(url: string, more: { wanted?: Wanted; silenceMs?: number } = {}) {
  const clock = hastyClock();
  const model = await chooseModel({ name: "maker/fake", ...more.wanted }, {
    environment: { LNK_MODEL_URL: url, LNK_MODEL_KEY: "sk-test-key" },
    fetch,
    clock,
    notify: silent,
    random: () => 0.5,
    ...(more.silenceMs ? { silenceMs: more.silenceMs } : {}),
  });
  return { model, clock };
}

async function ask(model: Model, prompt: Prompt = promptOf("hi"), signal = new AbortController().signal) {
  const pieces: Piece[] = [];
  const answer = await model.ask({ prompt, signal, onPiece: (piece) => pieces.push(piece) });
  return { answer, pieces };
}

/** The answer of a model that gives these replies. */
async function answerOf(...replies: Reply[]) {
  const { url, asked } = await provider(...replies);
  const { model, clock } = await modelAt(url);
  return { ...await ask(model), asked, waits: clock.waits };
}

async function failureOf(...replies: Reply[]) {
  const { url, asked } = await provider(...replies);
  const { model, clock } = await modelAt(url);
  const failure = await ask(model).then(() => assert.fail("it answered"), (thrown) => thrown);
  return { failure, asked, waits: clock.waits };
}

const usage = {
  prompt_tokens: 120,
  completion_tokens: 30,
  prompt_tokens_details: { cached_tokens: 100 },
  completion_tokens_details: { reasoning_tokens: 10 },
  cost: 0.00125,
};

describe("the OpenAI wire: answers", () => {
  it("C3 text, usage, cost, response id, model and thinking are kept", async () => {
    const { answer, pieces, asked } = await answerOf(stream([
      delta({ role: "assistant", content: "" }),
      delta({ reasoning_content: "Let me " }),
      delta({ reasoning_content: "think." }),
      delta({ content: "Hello" }),
      delta({ content: ", 🐎" }),
      delta({}, "stop"),
      { id: "chatcmpl-1", choices: [], usage },
      done,
    ]));
    assert.deepEqual(
      { ...answer, ms: 0 },
      {
        text: "Hello, 🐎",
        calls: [],
        thinking: {
          wire: "openai",
          maker: "proxy maker/fake",
          blocks: [{ reasoning_content: "Let me think." }],
        },
        model: "fake-1",
        provider: "proxy",
        response: "chatcmpl-1",
        stop: "end",
        tokens: { input: 120, output: 30, cached: 100, reasoning: 10 },
        cost: 0.00125,
        ms: 0,
      } satisfies Answer,
    );
    assert.equal(pieces.map((piece) => piece.type === "text" ? piece.text : "!").join(""), "Hello, 🐎");
    assert.equal(asked.length, 1);
    assert.equal(asked[0]!.path, "/v1/chat/completions");
    assert.equal(asked[0]!.headers.authorization, "Bearer sk-test-key");
    assert.equal(asked[0]!.body.model, "maker/fake");
    assert.equal(asked[0]!.body.stream, true);
    assert.deepEqual(asked[0]!.body.stream_options, { include_usage: true });
  });

  it("parallel calls come whole, whatever pieces they came in", async () => {
    const call = (index: number | undefined, fields: object) => delta({ tool_calls: [{ index, ...fields }] });
    const { answer } = await answerOf(stream([
      call(0, { id: "a", type: "function", function: { name: "memory__search", arguments: "" } }),
      call(0, { function: { arguments: '{"q":' } }),
      call(1, { id: "b", function: { name: "memory__read", arguments: '{"path"' } }),
      call(0, { function: { arguments: '"x"}' } }),
      call(1, { function: { arguments: ':"y"}' } }),
      delta({}, "tool_calls"),
      done,
    ]));
    assert.equal(answer.stop, "calls");
    assert.deepEqual(answer.calls, [
      { given: "a", tool: "memory__search", arguments: '{"q":"x"}' },
      { given: "b", tool: "memory__read", arguments: '{"path":"y"}' },
    ]);
  });

  for (
    const [title, pieces] of [
      ["all with index 0", [
        { index: 0, id: "a", function: { name: "t", arguments: "{}" } },
        { index: 0, id: "b", function: { name: "u", arguments: "{}" } },
      ]],
      ["with no index", [
        { id: "a", function: { name: "t", arguments: "{}" } },
        { id: "b", function: { name: "u", arguments: "{}" } },
      ]],
      ["with no index and no id", [{ function: { name: "t", arguments: {} } }, {
        function: { name: "u", arguments: {} },
      }]],
    ] as const
  ) {
    it(`calls ${title} are still two`, async () => {
      const { answer } = await answerOf(
        stream([...pieces.map((piece) => delta({ tool_calls: [piece] })), delta({}, "stop")]),
      );
      assert.deepEqual(answer.calls.map((call) => [call.tool, call.arguments]), [["t", "{}"], ["u", "{}"]]);
      assert.equal(answer.stop, "calls");
    });
  }

  it("B37 two calls with the same id, an empty one and a long one are all kept", async () => {
    const { answer } = await answerOf(stream([
      delta({
        tool_calls: ["call_0", "call_0", "", undefined, "x:|".repeat(100)].map((id, index) => ({
          index,
          id,
          function: { name: `t${index}`, arguments: "{}" },
        })),
      }),
      delta({}, "tool_calls"),
    ]));
    assert.deepEqual(answer.calls.map((call) => call.tool), ["t0", "t1", "t2", "t3", "t4"]);
    assert.deepEqual(answer.calls.map((call) => call.given), [
      "call_0",
      "call_0",
      undefined,
      undefined,
      "x:|".repeat(100),
    ]);
  });

  it("B43 arguments are kept as the model wrote them, whole or not", async () => {
    for (const text of ['{"path":"a', "", "null", "[]", '"x"', "{}{}", '{"a":1,"a":2}', '{"__proto__":1}']) {
      const { answer } = await answerOf(stream([
        delta({ tool_calls: [{ index: 0, id: "a", function: { name: "t", arguments: text } }] }),
        delta({}, "tool_calls"),
      ]));
      assert.equal(answer.calls[0]!.arguments, text);
    }
  });

  it("OpenRouter's reasoning details are joined by block and kept with their signatures", async () => {
    const detail = (fields: object) => delta({ content: "", reasoning_details: [fields] });
    const { answer } = await answerOf(stream([
      detail({ type: "reasoning.text", index: 0, text: "one ", format: "anthropic-claude-v1" }),
      detail({ type: "reasoning.text", index: 0, text: "two" }),
      detail({ type: "reasoning.text", index: 0, signature: "sig" }),
      detail({ type: "reasoning.encrypted", index: 1, data: "xyz" }),
      delta({ content: "ok" }, "stop"),
      done,
    ]));
    assert.deepEqual(answer.thinking?.blocks, [{
      reasoning_details: [
        {
          type: "reasoning.text",
          index: 0,
          text: "one two",
          format: "anthropic-claude-v1",
          signature: "sig",
        },
        { type: "reasoning.encrypted", index: 1, data: "xyz" },
      ],
    }]);
  });

  it("a server that answers plain JSON, though asked to stream, is understood", async () => {
    const { answer, pieces } = await answerOf(json({
      id: "r1",
      model: "fake-2",
      choices: [{
        index: 0,
        message: {
          role: "assistant",
          content: "whole",
          tool_calls: [{ id: "a", type: "function", function: { name: "t", arguments: "{}" } }],
        },
        finish_reason: "tool_calls",
      }],
      usage,
    }));
    assert.equal(answer.text, "whole");
    assert.equal(answer.calls.length, 1);
    assert.equal(answer.tokens.input, 120);
    assert.deepEqual(pieces, [{ type: "text", text: "whole" }]);
  });

  it("B41 thinking only, empty content and null content are an answer with no text", async () => {
    for (const content of ["", null, undefined]) {
      const { answer } = await answerOf(
        stream([delta({ reasoning: "hm", content }), delta({}, "stop"), done]),
      );
      assert.equal(answer.text, "");
      assert.equal(answer.stop, "end");
    }
  });

  it("B42 a surrogate pair cut between two pieces is handed on whole, a lone half is replaced", async () => {
    const { answer, pieces } = await answerOf(
      stream([
        'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n',
        'data: {"choices":[{"delta":{"content":"\\udc0eb\\ud83d"},"finish_reason":"stop"}]}\n\n',
        done,
      ]),
    );
    assert.equal(answer.text, "a🐎b\ufffd");
    assert.ok(pieces.every((piece) => piece.type !== "text" || piece.text.isWellFormed()));
    assert.deepEqual(pieces[1], { type: "text", text: "🐎b" });
  });

  it("stop reasons: length, filter after text, and calls by a server that says stop", async () => {
    assert.equal((await answerOf(said("half", "length"))).answer.stop, "length");
    assert.equal((await answerOf(said("half", "content_filter"))).answer.stop, "filter");
    assert.equal((await answerOf(said("x", "eos"))).answer.stop, "end");
  });

  it("a last round that must call nothing drops the calls of a model that calls all the same", async () => {
    const { url, asked } = await provider(stream([
      delta({
        content: "so",
        tool_calls: [{ index: 0, id: "a", function: { name: "t__u", arguments: "{}" } }],
      }),
      delta({}, "tool_calls"),
    ]));
    const { model } = await modelAt(url);
    const prompt = promptOf("hi");
    prompt.tools = [{ name: "t__u", description: "d", schema: { type: "object", properties: {} } }];
    prompt.choice = "none";
    const { answer } = await ask(model, prompt);
    assert.deepEqual([answer.text, answer.calls, answer.stop], ["so", [], "end"]);
    assert.equal(asked[0]!.body.tool_choice, "none");
    assert.equal(asked[0]!.body.tools.length, 1);
  });
});

describe("the OpenAI wire: failures", () => {
  const retried: [string, Reply][] = [
    [
      "B44 ends after three pieces",
      stream([delta({ content: "a" }), delta({ content: "b" }), delta({ content: "c" })]),
    ],
    [
      "B44 ends after a call's name",
      stream([delta({ tool_calls: [{ index: 0, id: "a", function: { name: "t" } }] })]),
    ],
    ["B44 says [DONE] without a finish", stream([delta({ content: "half" }), done])],
    ["is dropped midway", stream([delta({ content: "half" })], { drop: true })],
    [
      "holds an error event",
      stream([delta({ content: "half" }), { error: { message: "Overloaded", code: 503 } }]),
    ],
    ["holds a choice that ended in an error", stream([delta({ content: "half" }, "error"), done])],
    ["holds an event that is no JSON", stream([delta({ content: "half" }), "data: {oops\n\n"])],
    ["is empty", stream([])],
    ["is an error with status 200", json({ error: { message: "Provider returned error", code: 502 } })],
    ["is JSON cut short", (response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end('{"choices":[{"mess');
    }],
    ["is a 503", status(503, "busy")],
    ["is a 529", status(529, { error: { message: "Overloaded" } })],
    ["is a 409", status(409)],
  ];
  for (const [title, reply] of retried) {
    it(`a reply that ${title} is asked for again, and what was streamed is void`, async () => {
      const { answer, pieces, asked, waits } = await answerOf(reply, said("whole"));
      assert.equal(answer.text, "whole");
      assert.equal(asked.length, 2);
      assert.equal(asked[0]!.text, asked[1]!.text);
      assert.equal(waits.length, 1);
      const restart = pieces.findIndex((piece) => piece.type === "restart");
      const shown = pieces.slice(restart + 1).map((piece) => piece.type === "text" ? piece.text : "!").join(
        "",
      );
      assert.equal(shown, "whole");
      assert.equal(restart >= 0, pieces.length > 1, "a restart exactly where text had come");
    });
  }

  it("B44 a finish without [DONE] is whole, and so is one whose connection breaks after it", async () => {
    const { answer, asked } = await answerOf(stream([delta({ content: "all" }, "stop")]));
    assert.equal(answer.text, "all");
    assert.equal(asked.length, 1);
    const second = await answerOf(stream([delta({ content: "all" }, "stop")], { drop: true }));
    assert.equal(second.answer.text, "all");
    assert.equal(second.asked.length, 1);
  });

  it("a model that never answers is given up after its tries, with waits that grow", async () => {
    const { failure, asked, waits } = await failureOf(status(500, { error: { message: "Internal." } }));
    assert.ok(failedBy(failure, "model_failed"));
    assert.equal(asked.length, 4);
    assert.deepEqual(waits, [375, 750, 1500]);
    assert.match(failure.message, /HTTP 500: Internal, 4 times/);
  });

  it("retry-after is kept to, and one past the cap is told at once", async () => {
    const { waits } = await answerOf(status(429, "", { "retry-after": "7" }), said("ok"));
    assert.deepEqual(waits, [7000]);
    const { failure, asked } = await failureOf(status(429, "", { "retry-after": "3600" }));
    assert.equal(asked.length, 1);
    assert.match(failure.message, /asks to wait 3600 s/);
    const nonsense = await answerOf(status(429, "", { "retry-after": "soon" }), said("ok"));
    assert.deepEqual(nonsense.waits, [375]);
  });

  it("B47 an unknown 400, a refused key and an unknown model are not asked again", async () => {
    for (const code of [400, 401, 403, 404, 422]) {
      const { failure, asked } = await failureOf(
        status(code, { error: { message: `no sk-test-key for you` } }),
      );
      assert.ok(failedBy(failure, "model_failed"), String(code));
      assert.equal(asked.length, 1);
      assert.doesNotMatch(failure.message, /sk-test-key/);
    }
  });

  it("W10 a prompt that is too long is told with the window sent, where it came from and the key to change", async () => {
    const { url, asked } = await provider(
      status(400, { error: { message: "This model's maximum context length is 10 tokens" } }),
    );
    const { model } = await modelAt(url);
    const failure = await model.ask({
      prompt: promptOf("hi"),
      window: { tokens: 32768, from: "[window] unknown" },
      signal: new AbortController().signal,
      onPiece: () => {},
    }).then(() => assert.fail(), (thrown) => thrown);
    assert.ok(failedBy(failure, "prompt_too_long"));
    assert.equal(failure.status, 413);
    for (const word of ["32768", "[window] unknown", "[window] max"]) {
      assert.ok(failure.message.includes(word), word);
    }
    assert.equal(asked.length, 1);
  });

  it("a refusal and a content filter are their own error", async () => {
    for (
      const reply of [
        stream([delta({ refusal: "I can't help with that." }), delta({}, "stop"), done]),
        stream([delta({}, "content_filter"), done]),
        status(400, { error: { code: "content_filter", message: "The prompt was filtered" } }),
      ]
    ) {
      const { failure, asked } = await failureOf(reply);
      assert.ok(failedBy(failure, "model_refused"));
      assert.equal(asked.length, 1);
    }
  });

  it("B39 a 400 about a signature is asked once more without any thinking", async () => {
    const { url, asked } = await provider(
      status(400, { error: { message: "Invalid `signature` in `thinking` block" } }),
      said("ok"),
    );
    const { model } = await modelAt(url);
    const thinking = {
      wire: "openai",
      maker: "proxy maker/fake",
      blocks: [{ reasoning_content: "secret thoughts" }],
    };
    const past = {
      role: "model",
      text: "before",
      calls: [],
      thinking,
      model: "fake-1",
      provider: "proxy",
    } as const;
    const { answer } = await ask(model, promptOf("a", { ...past, calls: [] }, "b"));
    assert.equal(answer.text, "ok");
    assert.equal(asked.length, 2);
    assert.ok(asked[0]!.text.includes("secret thoughts"));
    assert.ok(!asked[1]!.text.includes("secret thoughts"));
  });

  it("a server that names the longest answer otherwise is asked so from then on", async () => {
    const refusal =
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    const { url, asked } = await provider(status(400, { error: { message: refusal } }), said("ok"));
    const { model } = await modelAt(url);
    await ask(model);
    await ask(model);
    assert.deepEqual(asked.map(({ body }) => [body.max_tokens, body.max_completion_tokens]), [
      [100, undefined],
      [undefined, 100],
      [undefined, 100],
    ]);
  });

  it("silence is a timeout, before the reply and within it", async () => {
    for (const reply of [(() => {}) as Reply, stream([delta({ content: "a" })], { hang: true })]) {
      const { url } = await provider(reply);
      const { model } = await modelAt(url, { silenceMs: 60 });
      const failure = await ask(model).then(() => assert.fail(), (thrown) => thrown);
      assert.ok(failedBy(failure, "model_timeout"));
    }
  });

  it("an answer without end is given up at its bound, once", async () => {
    let asked = 0;
    const megabyte = new TextEncoder().encode(
      `data: ${JSON.stringify(delta({ content: "x".repeat(1 << 20) }))}\n\n`,
    );
    const model = await chooseModel({ name: "m" }, {
      environment: { LNK_MODEL_URL: "http://h/v1" },
      clock: hastyClock(),
      notify: silent,
      fetch: () => {
        asked++;
        return Promise.resolve(
          new Response(new ReadableStream({ pull: (controller) => controller.enqueue(megabyte) })),
        );
      },
    });
    const failure = await ask(model).then(() => assert.fail(), (thrown) => thrown);
    assert.ok(failedBy(failure, "model_failed"));
    assert.match(failure.message, /the answer is over/);
    assert.equal(asked, 1);
  });

  it("a key that an error within a reply repeats is not told", async () => {
    const { failure } = await failureOf(stream([{ error: { message: "bad key sk-test-key", code: 401 } }]));
    assert.ok(failedBy(failure, "model_failed"));
    assert.match(failure.message, /bad key …/);
  });

  it("what a reply is shows in its first character, whatever type it is said to be", async () => {
    const chunk = JSON.stringify(delta({ content: "ok" }, "stop"));
    for (
      const [type, body] of [
        ["application/json", `data: ${chunk}\n\n`],
        ["text/event-stream", ` \n${chunk}`],
        ["", chunk],
      ]
    ) {
      const { answer } = await answerOf((response) => {
        if (type) response.setHeader("content-type", type);
        response.end(body);
      });
      assert.equal(answer.text, "ok", type);
    }
  });

  it("a redirect is told and not followed, since it would carry the key along", async () => {
    const other = await provider(said("stolen"));
    const { failure } = await failureOf(status(307, "", { location: `${other.url}/chat/completions` }));
    assert.ok(failedBy(failure, "model_failed"));
    assert.equal(other.asked.length, 0);
  });

  it("a host that is not there is told without its path", async () => {
    const { model } = await modelAt("http://127.0.0.1:9/secret-path/v1?key=secret-query");
    const failure = await ask(model).then(() => assert.fail(), (thrown) => thrown);
    assert.ok(failedBy(failure, "model_failed"));
    assert.doesNotMatch(failure.message, /secret/);
  });
});

describe("stopping a model", () => {
  it("a turn asked to end gets what was said so far, with no calls and no thinking", async () => {
    const { url } = await provider(stream([
      delta({ reasoning_content: "hm" }),
      delta({ tool_calls: [{ index: 0, id: "a", function: { name: "t", arguments: "{" } }] }),
      delta({ content: "so far" }),
    ], { hang: true }));
    const { model } = await modelAt(url);
    const stop = new AbortController();
    const answer = await model.ask({
      prompt: promptOf("hi"),
      signal: stop.signal,
      onPiece: () => stop.abort(ended),
    });
    assert.deepEqual([answer.text, answer.stop, answer.calls, answer.thinking], [
      "so far",
      "asked",
      [],
      undefined,
    ]);
  });

  it("asked to end between two tries, what the caller saw is what was said", async () => {
    const { url, asked } = await provider(stream([delta({ content: "seen" })]));
    const stop = new AbortController();
    const { model } = await modelAt(url);
    const clock = hastyClock();
    const waiting = await chooseModel({ name: "m" }, {
      environment: { LNK_MODEL_URL: url },
      fetch,
      notify: () => stop.abort(ended),
      clock,
    });
    assert.ok(model);
    const { answer } = await ask(waiting, promptOf("hi"), stop.signal);
    assert.deepEqual([answer.text, answer.stop, asked.length], ["seen", "asked", 1]);
  });

  it("any other stop throws", async () => {
    const { url } = await provider(stream([delta({ content: "a" })], { hang: true }));
    const { model } = await modelAt(url);
    const stop = new AbortController();
    const asking = model.ask({
      prompt: promptOf("hi"),
      signal: stop.signal,
      onPiece: () => stop.abort(new Error("lost")),
    });
    await assert.rejects(asking, (thrown) => failedBy(thrown, "model_failed"));
  });
});
