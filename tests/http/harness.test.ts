// The doors over real turns and a real store: what a client sees of a whole harness, with a model that the test scripts.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Agent } from "../../src/agent/agent.ts";
import { configIn } from "../../src/agent/config.ts";
import { newKey } from "../../src/agent/keys.ts";
import { randomIds, systemClock } from "../../src/clock.ts";
import { Failure } from "../../src/errors.ts";
import { createHandler, type Handler } from "../../src/http/handler.ts";
import { type Answer, type Ask, ended } from "../../src/model/model.ts";
import { silent } from "../../src/notices.ts";
import { openFolderStore } from "../../src/store/folder.ts";
import { noTools } from "../../src/tools/tools.ts";
import { createTurns } from "../../src/turn/turns.ts";
import { eventsOf } from "./rig.ts";

type Json = Record<string, unknown>;

describe("a harness", () => {
  let home: string, handler: Handler, agent: Agent;
  /** What the model does with the next prompts. */
  let reply: (ask: Ask) => Promise<string>;
  const prompts: string[][] = [];

  before(async () => {
    home = await mkdtemp(join(tmpdir(), "lnk-http-"));
    const store = openFolderStore({
      agent: "mia",
      where: { home },
      clock: systemClock,
      ids: randomIds,
      notify: silent,
    });
    const config = configIn(store.own);
    const model = {
      name: "test/model",
      provider: "test",
      facts: async () => ({ window: 100_000 }),
      async ask(ask: Ask): Promise<Answer> {
        prompts.push(ask.prompt.messages.map(({ text }) => text));
        const began = performance.now();
        const text = await reply(ask);
        const stop = ask.signal.aborted && ask.signal.reason === ended ? "asked" : "end";
        if (stop === "end") ask.onPiece({ type: "text", text });
        return {
          text,
          calls: [],
          model: "test/model",
          provider: "test",
          stop,
          tokens: { input: 5, output: 2 },
          ms: Math.round(performance.now() - began),
        };
      },
    };
    agent = {
      name: "mia",
      key: newKey(),
      store,
      tools: noTools,
      config,
      settings: () => config.settings(),
      model: async () => model,
      fallback: async () => undefined,
      workspace: join(home, "mia/files"),
    };
    const turns = createTurns({
      clock: systemClock,
      ids: randomIds,
      notify: silent,
      holder: { host: "here", process: 1, start: "now" },
      zone: "UTC",
    });
    handler = createHandler({
      agents: { get: (name) => name === "mia" ? agent : undefined, list: () => [agent] },
      turns,
      version: "0.0.0-test",
    });
  });
  after(async () => {
    await handler.drain({ deadlineMs: 1000 });
    await agent.store.conversations.close();
    await rm(home, { recursive: true });
  });

  const ask = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    handler.fetch(
      new Request(`http://127.0.0.1/agents/mia${path}`, {
        method,
        headers: { authorization: `Bearer ${agent.key}`, ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    );
  const say = async (
    thread: string,
    text: string,
    more: Json = {},
  ): Promise<{ status: number; body: Json }> => {
    const response = await ask("POST", "/asp/turn", { thread, message: { text, ...more } });
    return { status: response.status, body: await response.json() };
  };
  const lines = async (thread: string) => {
    const response = await ask("GET", `/asp/conversations/${encodeURIComponent(thread)}/events`);
    return (await response.text()).split("\n").filter((line) => line !== "");
  };
  const events = async (thread: string): Promise<Json[]> =>
    (await lines(thread)).map((line) => JSON.parse(line));

  it("answers, keeps what was said, and lists it", async () => {
    reply = async () => "Hello Ana.";
    const { status, body } = await say("telegram:42", "Hi", { id: "m1", from: { name: "Ana" } });
    assert.equal(status, 200);
    assert.deepEqual([body.text, body.thread, body.seq, body.messages, body.rounds, body.stop], [
      "Hello Ana.",
      "telegram:42",
      2,
      ["m1"],
      1,
      "end",
    ]);
    assert.deepEqual((await events("telegram:42")).map(({ type }) => type), ["message", "model"]);
    const { conversations } = await (await ask("GET", "/asp/conversations")).json();
    assert.deepEqual(conversations.map((one: Json) => [one.thread, one.events, one.running]), [[
      "telegram:42",
      2,
      false,
    ]]);
    assert.equal((await (await ask("GET", "")).json()).conversations, 1);
    const onDisk = await readFile(join(home, "mia/files/chats/telegram-42/events.jsonl"), "utf8");
    assert.deepEqual(onDisk.trimEnd().split("\n"), await lines("telegram:42"));
  });

  it("S3 the same id is never asked twice: the same answer, `repeated`; another text is 409", async () => {
    const asked = prompts.length;
    const again = await say("telegram:42", "Hi", { id: "m1" });
    assert.deepEqual([again.status, again.body.text, again.body.repeated], [200, "Hello Ana.", true]);
    assert.equal(prompts.length, asked);
    const other = await say("telegram:42", "Ho", { id: "m1" });
    assert.deepEqual([other.status, (other.body.error as Json).code], [409, "id_reused"]);
  });

  it("streams start, pieces and the answer", async () => {
    reply = async () => "Streamed.";
    const response = await ask("POST", "/asp/turn", { thread: "web:1", message: { text: "Hi" } }, {
      accept: "text/event-stream",
    });
    const got = eventsOf(await response.text());
    assert.deepEqual(got.map(({ event }) => event), ["start", "text", "answer"]);
    assert.equal((got[2]!.data as Json).text, "Streamed.");
  });

  it("D6 a message to a running turn joins it at once, and asp/end ends it with what was said", async () => {
    const { promise: asked, resolve: isAsked } = Promise.withResolvers<void>();
    reply = ({ signal, onPiece }) =>
      new Promise((done) => {
        onPiece({ type: "text", text: "So far" });
        isAsked();
        signal.addEventListener("abort", () => done("So far"), { once: true });
      });
    const first = say("web:2", "One", { id: "one" });
    await asked;
    const { conversations } = await (await ask("GET", "/asp/conversations")).json();
    assert.equal(conversations.find((one: Json) => one.thread === "web:2").running, true);
    const refused = await ask("DELETE", "/asp/conversations/web%3A2");
    assert.equal(refused.status, 409);
    assert.equal((await refused.json()).error.code, "turn_running");
    assert.equal((await ask("POST", "/_link/sleep")).status, 409);
    reply = async () => "Second.";
    const joined = await say("web:2", "Two", { id: "two" });
    assert.equal(joined.status, 202);
    assert.equal(joined.body.joined, true);
    const end = await (await ask("POST", "/asp/end", { thread: "web:2" })).json();
    assert.deepEqual(end, { ended: true });
    const { status, body } = await first;
    assert.deepEqual([status, body.stop, body.text], [200, "asked", "So far"]);
  });

  it("S1 an answer whose caller has gone is handed over once by recover", async () => {
    const leaving = new AbortController();
    reply = async () => {
      leaving.abort();
      await new Promise((done) => setTimeout(done, 20));
      return "For later.";
    };
    const asked = handler.fetch(
      new Request("http://127.0.0.1/agents/mia/asp/turn", {
        method: "POST",
        headers: { authorization: `Bearer ${agent.key}` },
        body: JSON.stringify({ thread: "web:3", message: { id: "left", text: "Hi" } }),
        signal: leaving.signal,
      }),
    );
    await asked.catch(() => {});
    const handedOver = async (body: Json) => {
      const { answers } = await (await ask("POST", "/_link/recover", body)).json();
      return answers.filter((one: Json) => one.thread === "web:3");
    };
    let answers: Json[] = [];
    while (answers.length === 0) {
      await new Promise((done) => setTimeout(done, 5));
      answers = await handedOver({ keep: true });
    }
    assert.deepEqual([answers[0]!.text, answers[0]!.messages, answers[0]!.why], [
      "For later.",
      ["left"],
      "caller_gone",
    ]);
    assert.equal((await handedOver({ keep: true })).length, 1);
    assert.equal((await handedOver({ keep: true, taken: [answers[0]!.id] })).length, 0);
    assert.equal((await handedOver({})).length, 0);
  });

  it("C8 C14 its text for people has what was said and answered, made from the events", async () => {
    const response = await ask("GET", "/asp/conversations/telegram%3A42/text");
    assert.match(response.headers.get("content-type")!, /^text\/markdown/);
    const text = await response.text();
    assert.match(text, /Hi\n/);
    assert.match(text, /Hello Ana\.\n/);
    assert.equal((await ask("GET", "/asp/conversations/nobody/text")).status, 404);
    assert.equal(text, await readFile(join(home, "mia/files/chats/telegram-42/chat.md"), "utf8"));
  });

  it("C16 a fork copies every event before a message, byte for byte, with the narrowed tools", async () => {
    reply = async () => "Again.";
    const narrowed = await ask("POST", "/asp/turn", {
      thread: "telegram:42",
      message: { text: "And now?" },
      tools: ["a__b"],
    });
    await narrowed.text();
    const source = await lines("telegram:42");
    const response = await ask("POST", "/asp/conversations/telegram%3A42/fork", {
      before: 3,
      as: "telegram:43",
    });
    assert.equal(response.status, 201, await response.clone().text());
    assert.deepEqual(await response.json(), { thread: "telegram:43", events: 2 });
    assert.deepEqual(await lines("telegram:43"), source.slice(0, 2));
    assert.deepEqual(await lines("telegram:42"), source);
    assert.deepEqual(await agent.store.conversations.toolsRead("telegram:43"), ["a__b"]);
    const { body } = await say("telegram:43", "Another way?");
    assert.equal(body.text, "Again.");
    assert.deepEqual(prompts.at(-1)!.slice(0, 2), prompts.at(-2)!.slice(0, 2));

    const first = await ask("POST", "/asp/conversations/telegram%3A42/fork", {
      before: 1,
      as: "telegram:44",
    });
    assert.deepEqual(await first.json(), { thread: "telegram:44", events: 0 });
    assert.deepEqual(await agent.store.conversations.toolsRead("telegram:44"), ["a__b"]);
  });

  it("C16 a fork that ends owed says that it was forked; no message, no conversation and a taken name are refused", async () => {
    const { conversations } = agent.store;
    const message = (seq: number) =>
      JSON.stringify({
        seq,
        at: "2026-12-01T09:00:00.000Z",
        type: "message",
        id: `f${seq}`,
        from: { role: "owner" },
        head: "[now]",
        text: `Line ${seq}`,
      });
    async function* two() {
      yield message(1);
      yield message(2);
    }
    await conversations.put("owed", two());
    const fork = await ask("POST", "/asp/conversations/owed/fork", { before: 2, as: "forked" });
    assert.deepEqual(await fork.json(), { thread: "forked", events: 2 });
    const [, last] = await events("forked");
    assert.deepEqual([last!.type, last!.reason, last!.upto, last!.code], [
      "ended",
      "forked",
      1,
      "turn_forked",
    ]);
    const repeated = await say("forked", "Line 1", { id: "f1" });
    assert.deepEqual([repeated.status, repeated.body.repeated, (repeated.body.error as Json).code], [
      409,
      true,
      "turn_forked",
    ]);

    const refused = async (path: string, body: Json) => {
      const response = await ask("POST", `/asp/conversations/${path}/fork`, body);
      return [response.status, (await response.json()).error.code];
    };
    assert.deepEqual(await refused("telegram%3A42", { before: 2, as: "new" }), [400, "invalid"]);
    assert.deepEqual(await refused("telegram%3A42", { before: 99, as: "new" }), [400, "invalid"]);
    assert.deepEqual(await refused("telegram%3A42", { before: 3, as: ".." }), [400, "invalid"]);
    assert.deepEqual(await refused("telegram%3A42", { before: 3, as: "forked" }), [409, "exists"]);
    assert.deepEqual(await refused("nobody", { before: 1, as: "new" }), [404, "not_found"]);
  });

  it("DELETE removes the conversation whole; a new one of its name begins empty", async () => {
    reply = async () => "Fresh.";
    assert.equal((await ask("DELETE", "/asp/conversations/telegram%3A43")).status, 204);
    assert.equal((await ask("GET", "/asp/conversations/telegram%3A43/events")).status, 404);
    assert.equal((await ask("DELETE", "/asp/conversations/telegram%3A43")).status, 404);
    const { body } = await say("telegram:43", "Hi");
    assert.equal(body.seq, 2);
    assert.equal(prompts.at(-1)!.length, 1);
  });

  it("W10 a failure of the model is its status and form; a repeat is `repeated`; `retry` asks for a new turn", async () => {
    reply = () => Promise.reject(new Failure("model_failed", { why: "the test says so" }));
    const failed = await say("web:4", "Hi", { id: "r1" });
    assert.deepEqual([failed.status, (failed.body.error as Json).code], [502, "model_failed"]);
    const repeated = await say("web:4", "Hi", { id: "r1" });
    assert.deepEqual([repeated.status, repeated.body.repeated], [502, true]);
    reply = async () => "Now it works.";
    const response = await ask("POST", "/asp/turn", {
      thread: "web:4",
      message: { id: "r1", text: "Hi" },
      retry: true,
    });
    assert.equal((await response.json()).text, "Now it works.");
  });

  it("D4 settings changed by PATCH count from the next turn, and stand in config.json", async () => {
    const patched = await ask("PATCH", "/asp/settings", { window: { max: 50_000 } });
    assert.equal(patched.status, 200);
    assert.equal((await agent.settings()).window.max, 50_000);
    assert.deepEqual(JSON.parse(await readFile(join(home, "mia/config.json"), "utf8")), {
      window: { max: 50_000 },
    });
    await ask("PUT", "/asp/settings", {});
  });

  it("a chat completion is a turn of the same agent, and waits where one runs", async () => {
    reply = async () => "Complete.";
    const response = await ask("POST", "/v1/chat/completions", {
      model: "mia",
      messages: [{ role: "user", content: "Hi" }],
    });
    assert.equal((await response.json()).choices[0].message.content, "Complete.");
    assert.equal(response.headers.get("x-thread"), "openai%3Adefault");
    const more = await ask("POST", "/v1/chat/completions", {
      model: "mia",
      messages: [{ role: "user", content: "Hi" }, { role: "assistant", content: "Complete." }, {
        role: "user",
        content: "More",
      }],
    });
    assert.equal(more.headers.get("x-thread"), "openai%3Adefault");
    await more.text();
    assert.deepEqual((await events("openai:default")).map(({ type }) => type), [
      "message",
      "model",
      "message",
      "model",
    ]);
  });
});
