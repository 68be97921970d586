import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { shippedFacts as shippedText } from "../../scripts/refresh_facts.ts";
import { systemClock } from "../../src/clock.ts";
import type { Fetch } from "../../src/fetch.ts";
import { chooseFallback, chooseModel, factsOf, modelChooser } from "../../src/model/choose.ts";
import { mergeFacts, shippedFacts } from "../../src/model/facts.ts";
import { shipped } from "../../src/model/facts_shipped.ts";
import { silent } from "../../src/notices.ts";
import { promptOf } from "./fakes.ts";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "facts-"));
});
after(() => rm(folder, { recursive: true }));

const ollama = "http://127.0.0.1:11434",
  lmstudio = "http://127.0.0.1:1234",
  llamacpp = "http://127.0.0.1:8080";

/** A network of these replies, by method and address. */
function network(replies: Record<string, unknown>) {
  const asked: string[] = [];
  const fetch: Fetch = async (input, init) => {
    const key = `${init?.method ?? "GET"} ${input}`;
    asked.push(key);
    const reply = replies[key];
    if (reply === undefined) throw new TypeError("fetch failed", { cause: new Error("ECONNREFUSED") });
    const value = typeof reply === "function" ? reply() : reply;
    return await Promise.resolve(Response.json(value));
  };
  return { fetch, asked };
}

const world = (replies: Record<string, unknown>, more: { factsFile?: string } = {}) => ({
  environment: {},
  ...network(replies),
  clock: systemClock,
  notify: silent,
  ...more,
});

describe("model facts", () => {
  it("W9 are merged field by field, each with where it came from", () => {
    const merged = mergeFacts(
      { from: "a", facts: { window: 1 } },
      undefined,
      { from: "b", facts: { window: 2, images: false } },
      { from: "c", facts: { answerMax: 3, images: true } },
    );
    assert.deepEqual(merged, {
      window: 1,
      images: false,
      answerMax: 3,
      from: "a",
      sources: { window: "a", images: "b", answerMax: "c" },
    });
  });

  it("W9 the shipped ones know today's models by both of their names, and say nothing of prices", async () => {
    for (const name of ["anthropic/claude-opus-5.5", "anthropic/claude-opus-5-5", "openai/gpt-6-sol"]) {
      const known = await shippedFacts(name);
      assert.ok(known?.facts.window! > 100_000, name);
      assert.ok(known?.facts.answerMax! > 1000, name);
      assert.equal(known?.facts.tools, true);
    }
    for (
      const name of [
        "anthropic/claude",
        "claude-opus-5.5",
        "",
        " ",
        "nobody/nothing",
        "anthropic/claude-opus-5.5 1000000",
      ]
    ) {
      assert.equal(await shippedFacts(name), undefined, name);
    }
    for (const line of shipped.trimEnd().split("\n")) {
      assert.match(line, /^[\w.+-]+\/[\w.+-]+ \d+ (\d+|-) (i?t?r?|-)$/);
    }
  });

  it("the shipped file is made from a public listing, without models that do not talk and without variants", () => {
    const row = (id: string, more: object = {}) => ({
      id,
      context_length: 1000,
      architecture: { input_modalities: ["text", "image"], output_modalities: ["text"] },
      top_provider: { context_length: 500, max_completion_tokens: 900 },
      supported_parameters: ["tools"],
      pricing: { prompt: "0.1" },
      ...more,
    });
    const text = shippedText({
      data: [
        row("anthropic/claude-x.5"),
        row("b/image", { architecture: { output_modalities: ["image"] } }),
        row("b/free:free"),
        row("b/none", { context_length: null, top_provider: {} }),
        row("a/plain", { architecture: {}, supported_parameters: undefined, top_provider: undefined }),
        row("a/`; evil"),
      ],
    }, "2026-12-01");
    const lines = /`\\\n([^]*)`;/.exec(text)![1]!.trim().split("\n");
    assert.deepEqual(lines, [
      "a/plain 1000 - -",
      "anthropic/claude-x-5 500 500 it",
      "anthropic/claude-x.5 500 500 it",
    ]);
    assert.doesNotMatch(text, /0\.1|pricing/);
  });

  it("W9 the user's file wins in every field it says, and counts as it stands now", async () => {
    const factsFile = join(folder, "wins.toml");
    const window = async () => (await factsOf("openai/gpt-6-sol", world({}, { factsFile }))).window;
    const before = await window();
    await writeFile(factsFile, '["openai/gpt-6-sol"]\nwindow = 1234\n');
    const facts = await factsOf("openai/gpt-6-sol", world({}, { factsFile }));
    assert.equal(facts.window, 1234);
    assert.equal(facts.from, factsFile);
    assert.match(facts.sources?.answerMax ?? "", /shipped/);
    await rm(factsFile);
    assert.equal(await window(), before);
  });

  it("a user's file that is broken is told and says nothing", async () => {
    for (
      const text of ["[", '["a/b"]\nwindow = "large"', '["a/b"]\nwindwo = 1', '["a/b"]\nwindow = -1', "a = 1"]
    ) {
      const factsFile = join(folder, "broken.toml");
      await writeFile(factsFile, text);
      const told: string[] = [];
      const facts = await factsOf("a/b", {
        ...world({}, { factsFile }),
        notify: (_, sentence) => told.push(sentence),
      });
      assert.deepEqual(facts.sources, {}, text);
      assert.equal(told.length, 1, text);
    }
  });

  it("B49 an Ollama model's window is the one it runs with, never the one it was trained for", async () => {
    const show = { model_info: { "qwen3.context_length": 131072 }, capabilities: ["completion", "tools"] };
    const running = world({
      [`GET ${ollama}/api/ps`]: { models: [{ name: "qwen3:8b", context_length: 4096 }] },
      [`POST ${ollama}/api/show`]: show,
    });
    const facts = await factsOf("ollama/qwen3:8b", running);
    assert.deepEqual([facts.window, facts.trained, facts.tools, facts.images], [
      4096,
      undefined,
      true,
      false,
    ]);
    assert.match(facts.from!, /Ollama/);
    const set = await factsOf(
      "ollama/qwen3:8b",
      world({ [`POST ${ollama}/api/show`]: { ...show, parameters: "stop  x\nnum_ctx    8192" } }),
    );
    assert.equal(set.window, 8192);
    const silent = await factsOf("ollama/qwen3:8b", world({ [`POST ${ollama}/api/show`]: show }));
    assert.deepEqual([silent.window, silent.trained], [undefined, 131072]);
  });

  it("B49 a model that is to be asked is loaded to know its window; one that is only shown is not", async () => {
    let loaded = false;
    const replies = {
      [`GET ${ollama}/v1/models`]: { data: [{ id: "qwen3:8b" }] },
      [`GET ${ollama}/api/ps`]: () => ({
        models: loaded ? [{ model: "qwen3:8b", context_length: 16384 }] : [],
      }),
      [`POST ${ollama}/api/generate`]: () => {
        loaded = true;
        return { done: true };
      },
      [`POST ${ollama}/api/show`]: {},
    };
    const shown = world(replies);
    assert.equal((await factsOf("ollama/qwen3:8b", shown)).window, undefined);
    assert.ok(!shown.asked.some((key) => key.includes("generate")));
    const here = world(replies);
    const model = await chooseModel({ name: "ollama/qwen3:8b" }, here);
    assert.equal((await model.facts()).window, 16384);
    const asked = here.asked.length;
    assert.equal((await model.facts()).window, 16384);
    assert.equal(here.asked.length, asked, "what it said stands for a while");
  });

  it("B49 a runtime that read far less than was sent is told of", async () => {
    const told: string[] = [];
    const answer = { model: "m", choices: [{ message: { content: "ok" }, finish_reason: "stop" }] };
    const replies = {
      [`GET ${ollama}/v1/models`]: { data: [{ id: "m" }] },
      [`POST ${ollama}/v1/chat/completions`]: {
        ...answer,
        usage: { prompt_tokens: 2050, completion_tokens: 1 },
      },
    };
    const model = await chooseModel({ name: "ollama/m" }, {
      ...world(replies),
      notify: (_, sentence) => told.push(sentence),
    });
    const ask = (prompt: string) =>
      model.ask({ prompt: promptOf(prompt), signal: new AbortController().signal, onPiece: () => {} });
    await ask("short");
    assert.equal(told.length, 0);
    await ask("word ".repeat(7900));
    await ask("word ".repeat(7900));
    assert.equal(told.length, 1);
    assert.match(told[0]!, /only a part of its prompt/);
  });

  it("W9 LM Studio and llama.cpp are asked for the window they run with", async () => {
    const studio = world({
      [`GET ${lmstudio}/api/v0/models`]: {
        data: [{ id: "qwen/qwen3-8b", type: "vlm", loaded_context_length: 8000, max_context_length: 40000 }, {
          id: "idle",
          max_context_length: 40000,
        }],
      },
    });
    const loaded = await factsOf("lmstudio/qwen/qwen3-8b", studio);
    assert.deepEqual([loaded.window, loaded.images], [8000, true]);
    const idle = await factsOf("lmstudio/idle", studio);
    assert.deepEqual([idle.window, idle.trained], [undefined, 40000]);
    const cpp = world({
      [`GET ${llamacpp}/props`]: {
        default_generation_settings: { n_ctx: 5000 },
        modalities: { vision: false },
      },
    });
    assert.deepEqual([(await factsOf("llamacpp/x", cpp)).window, (await factsOf("llamacpp/x", cpp)).images], [
      5000,
      false,
    ]);
  });

  it("a runtime that answers nonsense, or nothing, says nothing", async () => {
    for (const nonsense of [null, [], "text", { models: [null, 7] }, { data: [null] }]) {
      const replies = Object.fromEntries(
        [
          `GET ${ollama}/api/ps`,
          `POST ${ollama}/api/show`,
          `GET ${lmstudio}/api/v0/models`,
          `GET ${llamacpp}/props`,
        ].map((key) => [key, nonsense]),
      );
      for (const name of ["ollama/m", "lmstudio/m", "llamacpp/m"]) {
        assert.deepEqual((await factsOf(name, world(replies))).sources, {});
      }
    }
    assert.deepEqual((await factsOf("ollama/m", world({}))).sources, {});
  });

  it("B44 a server that never sends a finish reason is understood where the user says so", async () => {
    const factsFile = join(folder, "finish.toml");
    await writeFile(factsFile, '["mine"]\nfinish = false\n');
    const body = 'data: {"choices":[{"delta":{"content":"all"}}]}\n\ndata: [DONE]\n\n';
    const fetch: Fetch = () =>
      Promise.resolve(new Response(body, { headers: { "content-type": "text/event-stream" } }));
    const model = await chooseModel({ name: "mine" }, {
      ...world({}, { factsFile }),
      environment: { LNK_MODEL_URL: "http://h/v1" },
      fetch,
    });
    const answer = await model.ask({
      prompt: promptOf("hi"),
      signal: new AbortController().signal,
      onPiece: () => {},
    });
    assert.equal(answer.text, "all");
  });
});

describe("the model that stands in", () => {
  const environment = { ANTHROPIC_API_KEY: "a", OPENAI_API_KEY: "b" };
  const fallbackOf = async (wanted: { name?: string; fallback?: string; via?: string; url?: string }) => {
    const model = await chooseFallback(modelChooser({ ...world({}), environment }), wanted);
    return model && `${model.provider}: ${model.name}`;
  };

  it("is reached as the first one is where that serves it, else by whatever does", async () => {
    const name = "anthropic/claude-opus-5-5", fallback = "openai/gpt-6-sol";
    assert.equal(await fallbackOf({ name, fallback }), "openai: openai/gpt-6-sol");
    assert.equal(await fallbackOf({ name, fallback, via: "anthropic" }), "openai: openai/gpt-6-sol");
    assert.equal(await fallbackOf({ name, fallback, url: "http://here/v1" }), "proxy: openai/gpt-6-sol");
  });

  it("is nobody where none is set, or it is the first one itself", async () => {
    assert.equal(await fallbackOf({ name: "a/b" }), undefined);
    assert.equal(await fallbackOf({ name: "a/b", fallback: "" }), undefined);
    assert.equal(await fallbackOf({ name: "a/b", fallback: "a/b" }), undefined);
  });
});
