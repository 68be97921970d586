import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { failedBy } from "../../src/errors.ts";
import type { Fetch } from "../../src/fetch.ts";
import { systemClock } from "../../src/clock.ts";
import { silent } from "../../src/notices.ts";
import { chooseModel, modelChooser, type Wanted } from "../../src/model/choose.ts";
import type { Answer, Model } from "../../src/model/model.ts";
import { promptOf } from "./fakes.ts";

/** A network where these addresses answer: a list of models, or a reply. Everything else refuses. */
function network(there: Record<string, string[] | Response>) {
  const asked: string[] = [];
  const fetch: Fetch = (input, init) => {
    const url = String(input);
    asked.push(`${init?.method ?? "GET"} ${url}`);
    const found = there[url];
    if (found === undefined) {
      return Promise.reject(new TypeError("fetch failed", { cause: new Error("ECONNREFUSED") }));
    }
    if (found instanceof Response) return Promise.resolve(found.clone());
    return Promise.resolve(Response.json({ data: found.map((id) => ({ id })) }));
  };
  return { fetch, asked };
}

const world = (environment: Record<string, string>, there: Record<string, string[] | Response> = {}) => ({
  environment,
  ...network(there),
  clock: systemClock,
  notify: silent,
});

const ollama = "http://127.0.0.1:11434/v1/models";
const lmstudio = "http://127.0.0.1:1234/v1/models";
const llamacpp = "http://127.0.0.1:8080/v1/models";

async function chosen(wanted: Wanted, environment: Record<string, string> = {}, there = {}): Promise<string> {
  const model = await chooseModel(wanted, world(environment, there));
  return `${model.provider}: ${model.name}`;
}

async function whyNone(
  wanted: Wanted,
  environment: Record<string, string> = {},
  there = {},
): Promise<string> {
  const failure = await chooseModel(wanted, world(environment, there)).then(
    () => assert.fail(),
    (thrown) => thrown,
  );
  assert.ok(failedBy(failure, "no_model"), String(failure));
  return failure.message;
}

const answerAs = (name: string) =>
  Response.json({ model: name, choices: [{ message: { content: "ok" }, finish_reason: "stop" }] });

async function askedOf(model: Model): Promise<Answer> {
  return await model.ask({ prompt: promptOf("hi"), signal: new AbortController().signal, onPiece: () => {} });
}

describe("who answers", () => {
  const all = { LNK_MODEL_URL: "http://proxy/v1", OPENAI_API_KEY: "a", OPENROUTER_API_KEY: "b" };

  it("the proxy first, then the maker's own key, then OpenRouter", async () => {
    const name = "openai/gpt-5.1";
    assert.equal(await chosen({ name }, all), "proxy: openai/gpt-5.1");
    assert.equal(await chosen({ name }, { ...all, LNK_MODEL_URL: "" }), "openai: openai/gpt-5.1");
    assert.equal(await chosen({ name }, { OPENROUTER_API_KEY: "b" }), "openrouter: openai/gpt-5.1");
  });

  it("a maker's own key serves only that maker's models", async () => {
    assert.equal(
      await chosen({ name: "x-ai/grok-5" }, { OPENAI_API_KEY: "a", OPENROUTER_API_KEY: "b" }),
      "openrouter: x-ai/grok-5",
    );
    assert.match(
      await whyNone({ name: "x-ai/grok-5" }, { OPENAI_API_KEY: "a" }),
      /OPENROUTER_API_KEY is not set/,
    );
    assert.match(
      await whyNone({ name: "x-ai/grok-5", via: "openai" }, { OPENAI_API_KEY: "a" }),
      /serves only openai/,
    );
  });

  it("[model] via and url say who, and nobody else is asked", async () => {
    const name = "openai/gpt-5.1";
    assert.equal(await chosen({ name, via: "openrouter" }, all), "openrouter: openai/gpt-5.1");
    assert.equal(await chosen({ name: "gpt-5.1", via: "openai" }, all), "openai: gpt-5.1");
    assert.equal(await chosen({ name: "anything", url: "http://here/v1" }, all), "proxy: anything");
    assert.match(await whyNone({ name, via: "openrouter" }, { OPENAI_API_KEY: "a" }), /OPENROUTER_API_KEY/);
    assert.match(await whyNone({ name, via: "nobody" }), /"nobody".*proxy, anthropic/);
    assert.match(
      await whyNone({ url: "http://here/v1" }, { OPENAI_API_KEY: "a" }, { [ollama]: ["x"] }),
      /\[model\] url/,
    );
  });

  it("the name sent is without its maker at the maker, and whole elsewhere", async () => {
    const seen: unknown[] = [];
    const fetch: Fetch = async (_, init) => {
      seen.push(JSON.parse(await new Response(init!.body).text()).model);
      return answerAs("gpt-5.1-2026-01-01");
    };
    for (
      const environment of [{ OPENAI_API_KEY: "a" }, { OPENROUTER_API_KEY: "b" }] as Record<string, string>[]
    ) {
      await askedOf(await chooseModel({ name: "openai/gpt-5.1" }, { ...world(environment), fetch }));
    }
    assert.deepEqual(seen, ["gpt-5.1", "openai/gpt-5.1"]);
  });

  it("with no name, the first that is listed and answers in words", async () => {
    const there = { "http://proxy/v1/models": ["text-embedding-3", "first", "second"] };
    assert.equal(await chosen({}, all, there), "proxy: first");
    assert.equal(
      await chosen({}, { OPENAI_API_KEY: "a" }, {
        "https://api.openai.com/v1/models": ["whisper-1", "gpt-5.1"],
      }),
      "openai: openai/gpt-5.1",
    );
  });

  it("with nothing set, a runtime on this machine, in order, under its own name", async () => {
    const runtimes = {
      [llamacpp]: ["/models/a.gguf"],
      [lmstudio]: ["qwen/qwen3-8b"],
      [ollama]: ["qwen3:8b"],
    };
    assert.equal(await chosen({}, {}, runtimes), "ollama: ollama/qwen3:8b");
    assert.equal(await chosen({}, {}, { [lmstudio]: ["qwen/qwen3-8b"] }), "lmstudio: lmstudio/qwen/qwen3-8b");
    assert.equal(await chosen({ name: "llamacpp/mine" }, all, runtimes), "proxy: llamacpp/mine");
    assert.equal(await chosen({ name: "llamacpp/mine" }, {}, runtimes), "llamacpp: llamacpp/mine");
    assert.match(await whyNone({ name: "ollama/x" }, { OPENROUTER_API_KEY: "b" }), /Ollama/);
  });

  it("demo/echo only where no model was named, set or found, or where it is named itself", async () => {
    assert.equal(await chosen({}), "demo: demo/echo");
    assert.equal(await chosen({ name: "demo/echo" }, all), "demo: demo/echo");
    await whyNone({ name: "openai/gpt-5.1" });
    await whyNone({}, { LNK_MODEL_URL: "http://gone/v1" });
    await whyNone({}, { OPENAI_API_KEY: "a" }, { [ollama]: ["x"] });
  });

  it("an address or a key that cannot be used is told without being shown", async () => {
    assert.match(
      await whyNone({ name: "x/y" }, { LNK_MODEL_URL: "secret nonsense" }),
      /LNK_MODEL_URL is no http/,
    );
    const why = await whyNone({ name: "x/y" }, { LNK_MODEL_URL: "http://h/v1", LNK_MODEL_KEY: "sécret" });
    assert.match(why, /LNK_MODEL_KEY/);
    assert.doesNotMatch(why, /cret/);
    assert.doesNotMatch(await whyNone({}, { LNK_MODEL_URL: "http://h/secret?k=secret" }), /secret/);
  });

  it("the proxy's key is not sent to an address of another host", async () => {
    const keys: (string | null)[] = [];
    const fetch: Fetch = (_, init) => {
      keys.push(new Headers(init!.headers).get("authorization"));
      return Promise.resolve(answerAs("m"));
    };
    const environment = { LNK_MODEL_URL: "http://proxy/v1", LNK_MODEL_KEY: "k" };
    for (const url of ["http://other/v1", "http://proxy/other/v1"]) {
      await askedOf(await chooseModel({ name: "m", url }, { ...world(environment), fetch }));
    }
    assert.deepEqual(keys, [null, "Bearer k"]);
  });
});

describe("a choice that is kept", () => {
  it("asks the network once for many turns, whatever order its settings come in", async () => {
    const here = world({}, { [ollama]: ["qwen3:8b"] });
    const choose = modelChooser(here);
    const [first, second] = await Promise.all([choose({}), choose({})]);
    assert.equal(first, second);
    assert.equal(await choose({}), first);
    assert.equal(here.asked.length, 3);
  });

  it("D4 other settings are another choice, at once", async () => {
    const choose = modelChooser(world({ LNK_MODEL_URL: "http://proxy/v1" }));
    assert.equal((await choose({ name: "a" })).name, "a");
    assert.equal((await choose({ name: "b" })).name, "b");
  });

  it("a look that found nothing is made again", async () => {
    const there: Record<string, string[]> = {};
    const choose = modelChooser(world({ LNK_MODEL_URL: "http://proxy/v1" }, there));
    await assert.rejects(() => choose({}));
    there["http://proxy/v1/models"] = ["m"];
    assert.equal((await choose({})).name, "m");
  });

  it("a demo that stands in for nothing found is replaced by a runtime that starts, after a while", async () => {
    const there: Record<string, string[]> = {};
    let now = 0;
    const choose = modelChooser({ ...world({}, there), clock: { ...systemClock, mono: () => now } });
    assert.equal((await choose({})).provider, "demo");
    there[ollama] = ["qwen3:8b"];
    assert.equal((await choose({})).provider, "demo");
    now += 60_000;
    assert.equal((await choose({})).provider, "ollama");
  });

  it("a runtime that was found and is gone is looked for again", async () => {
    const there: Record<string, string[]> = { [ollama]: ["a"] };
    const choose = modelChooser({
      ...world({}, there),
      clock: { ...systemClock, sleep: () => Promise.resolve() },
    });
    const model = await choose({});
    delete there[ollama];
    there[lmstudio] = ["b"];
    await assert.rejects(() => askedOf(model));
    assert.equal((await choose({})).provider, "lmstudio");
  });
});
