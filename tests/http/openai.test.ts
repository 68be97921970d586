import assert from "node:assert/strict";
import OpenAI, { type APIError } from "openai";
import { after, before, describe, it } from "node:test";
import { encodeEvent } from "../../src/log/event.ts";
import { Failure } from "../../src/errors.ts";
import type { Caller, News } from "../../src/turn/news.ts";
import { answer, makeRig, type Rig, serve, type Served, start } from "./rig.ts";

const at = "2026-12-01T09:00:00.000Z";
const message = (seq: number, text: string, id?: string) =>
  encodeEvent({ seq, at, type: "message", head: "", from: { role: "owner" }, text, ...(id ? { id } : {}) });
const said = (seq: number, text: string) =>
  encodeEvent({
    seq,
    at,
    type: "model",
    turn: "turn_1",
    round: 1,
    text,
    model: "m",
    provider: "p",
    stop: "end",
    tokens: { input: 1, output: 1 },
    ms: 1,
    upto: seq - 1,
  });

describe("a chat completion, by the openai package", () => {
  let rig: Rig, served: Served, client: OpenAI;
  before(async () => {
    rig = makeRig();
    served = await serve(rig.handler);
    client = new OpenAI({ apiKey: rig.agents.get("mia")!.key, baseURL: `${served.url}/agents/mia/v1` });
  });
  after(() => served.close());

  const user = (content: string) => ({ role: "user" as const, content });
  const assistant = (content: string) => ({ role: "assistant" as const, content });
  const tell = (...news: News[]) => rig.script = (caller: Caller) => news.forEach((one) => caller.tell(one));
  const text = (text: string): News => ({ type: "text", text });
  const ask = (messages: OpenAI.ChatCompletionMessageParam[], more: object = {}) =>
    client.chat.completions.create({ model: "mia", messages, ...more }) as Promise<OpenAI.ChatCompletion>;

  it("lists the agent as its one model", async () => {
    const models = await client.models.list();
    assert.deepEqual(models.data.map(({ id }) => id), ["mia"]);
  });

  it("plain: the answer, its usage, why it stopped", async () => {
    tell(start, { ...answer, tokens: { input: 10, output: 4, cached: 8, reasoning: 2 } });
    const completion = await ask([{ role: "system", content: "Be brief." }, user("Hi")]);
    assert.equal(completion.choices[0]!.message.content, "Hello.");
    assert.equal(completion.choices[0]!.finish_reason, "stop");
    assert.equal(completion.model, "mia");
    assert.equal(completion.object, "chat.completion");
    assert.deepEqual(completion.usage, {
      prompt_tokens: 10,
      completion_tokens: 4,
      total_tokens: 14,
      prompt_tokens_details: { cached_tokens: 8 },
      completion_tokens_details: { reasoning_tokens: 2 },
    });
    const say = rig.said.at(-1)!;
    assert.equal(say.message.text, "Hi");
    assert.deepEqual(say.message.from, { role: "owner" });
    assert.equal(say.waitMs, 60_000);
    for (
      const [stop, reason] of [["length", "length"], ["filter", "content_filter"], ["asked", "stop"]] as const
    ) {
      tell({ ...answer, stop });
      assert.equal((await ask([user("Hi")])).choices[0]!.finish_reason, reason);
    }
  });

  const streamed = async (more: object = {}) => {
    const stream = await client.chat.completions.create({
      model: "mia",
      messages: [user("Hi")],
      stream: true,
      ...more,
    });
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    return { chunks, text: chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("") };
  };

  it("streamed: the pieces, the role first, the reason last, usage where it is asked for", async () => {
    tell(start, text("Hel"), text("lo."), answer);
    const { chunks, text: whole } = await streamed();
    assert.equal(whole, "Hello.");
    assert.equal(chunks[0]!.choices[0]!.delta.role, "assistant");
    assert.equal(chunks.at(-1)!.choices[0]!.finish_reason, "stop");
    assert.equal(new Set(chunks.map(({ id }) => id)).size, 1);
    const counted = await streamed({ stream_options: { include_usage: true } });
    assert.deepEqual(counted.chunks.at(-1)!.choices, []);
    assert.equal(counted.chunks.at(-1)!.usage!.total_tokens, 4);
    assert.equal(counted.chunks.at(-2)!.usage, null);
  });

  it("streamed: what a restart voids is set apart, and the answer always ends whole", async () => {
    tell(start, text("Hal"), { type: "restart" }, text("Hello."), answer);
    assert.equal((await streamed()).text, "Hal\n\nHello.");
    tell(
      start,
      text("Let me look."),
      { type: "call", id: "c", tool: "a__b", arguments: {} },
      { type: "result", id: "c", tool: "a__b", ok: true, ms: 1, chars: 1 },
      text("Hello."),
      answer,
    );
    assert.equal((await streamed()).text, "Let me look.\n\nHello.");
    tell(start, text("One."), { ...start, seq: 3 }, text("Two."), { ...answer, text: "One.\n\nTwo." });
    assert.equal((await streamed()).text, "One.\n\nTwo.");
    tell({ ...answer, repeated: true });
    assert.equal((await streamed()).text, "Hello.");
  });

  it("aborted: the caller is gone, the turn is not", async () => {
    let caller!: Caller;
    rig.script = (told) => {
      caller = told;
      caller.tell(start);
      caller.tell(text("Hel"));
    };
    const stream = await client.chat.completions.create({
      model: "mia",
      messages: [user("Hi")],
      stream: true,
    });
    for await (const _ of stream) break;
    assert.equal(await caller.taken, false);
    caller.tell(answer);
  });

  it("text parts are joined; any other part, tools of the client, many answers and forms are 400", async () => {
    tell(answer);
    await ask([{ role: "user", content: [{ type: "text", text: "One" }, { type: "text", text: "Two" }] }]);
    assert.equal(rig.said.at(-1)!.message.text, "One\nTwo");
    const before = rig.said.length;
    const image = { type: "image_url" as const, image_url: { url: "data:image/png;base64,AA==" } };
    const tool = { type: "function" as const, function: { name: "f", parameters: {} } };
    const refused: [string, Promise<unknown>, RegExp][] = [
      [
        "an image",
        ask([{ role: "user", content: [{ type: "text", text: "x" }, image] }]),
        /messages\.0\.content\.1/,
      ],
      ["tools", ask([user("x")], { tools: [tool] }), /tools/],
      ["n", ask([user("x")], { n: 2 }), /"n"/],
      ["JSON", ask([user("x")], { response_format: { type: "json_object" } }), /response_format/],
      ["no user", ask([assistant("x")]), /messages/],
      ["nothing to see", ask([user(" ")]), /messages\.0\.content/],
      ["nothing", ask([]), /messages/],
    ];
    for (const [title, asked, where] of refused) {
      await assert.rejects(asked, (error: APIError) => {
        assert.equal(error.status, 400, title);
        assert.equal(error.type, "invalid_request_error");
        assert.match(JSON.stringify(error.error), where, title);
        return true;
      });
    }
    await assert.rejects(ask([user("x")], { model: "gpt-5.1" }), { status: 404 });
    assert.equal(rig.said.length, before);
  });

  const threadOf = async (
    messages: OpenAI.ChatCompletionMessageParam[],
    more: object = {},
    headers: Record<string, string> = {},
  ) => {
    tell(answer);
    const { response } = await client.chat.completions.create({ model: "mia", messages, ...more }, {
      headers,
    }).withResponse();
    assert.equal(decodeURIComponent(response.headers.get("x-thread")!), rig.said.at(-1)!.thread);
    return rig.said.at(-1)!.thread;
  };

  it("the thread is X-Thread, else metadata.thread, else user", async () => {
    const all = { metadata: { thread: "b:2" }, user: "c:3" };
    assert.equal(
      await threadOf([user("x")], all, { "X-Thread": encodeURIComponent("télégramme:4/2 😀") }),
      "télégramme:4/2 😀",
    );
    assert.equal(await threadOf([user("x")], all), "b:2");
    assert.equal(await threadOf([user("x")], { user: "c:3" }), "c:3");
    await assert.rejects(threadOf([user("x")], {}, { "X-Thread": "%ZZ" }), { status: 400 });
    await assert.rejects(threadOf([user("x")], {}, { "X-Thread": ".." }), { status: 400 });
    await assert.rejects(threadOf([user("x")], { user: "a\u0000b" }), { status: 400 });
  });

  it("else the default one while the history goes on with it, else one of the chat's first message", async () => {
    rig.logs.set("openai:default", [message(1, "One?"), said(2, "1."), message(3, "Two?"), said(4, "2.")]);
    assert.equal(await threadOf([user("x")]), "openai:default");
    assert.equal(await threadOf([user("One?"), assistant("1."), user("x")]), "openai:default");
    assert.equal(
      await threadOf([
        user("One?"),
        assistant("Let me see.\n\n1."),
        user("Two?"),
        assistant("2."),
        user("x"),
      ]),
      "openai:default",
    );
    const others = [
      await threadOf([user("Uno?"), assistant("1."), user("x")]),
      await threadOf([user("Uno?"), assistant("1."), user("x"), assistant("y"), user("z")]),
    ];
    assert.match(others[0]!, /^openai:[0-9a-f]{16}$/);
    assert.equal(others[0], others[1]);
    assert.notEqual(await threadOf([user("One?"), assistant("7."), user("x")]), "openai:default");
    assert.notEqual(
      await threadOf([
        user("One?"),
        assistant("1."),
        user("Two?"),
        assistant("2."),
        user("3?"),
        assistant("3."),
        user("x"),
      ]),
      "openai:default",
    );
  });

  it("Idempotency-Key is the message's id; a library's repeat of the newest message is that message", async () => {
    tell(answer);
    await client.chat.completions.create({ model: "mia", messages: [user("x")] }, {
      headers: { "Idempotency-Key": "k-1" },
    });
    assert.equal(rig.said.at(-1)!.message.id, "k-1");
    rig.logs.set("r:1", [message(1, "Old"), message(2, "Hi", "chat_7"), said(3, "Hello.")]);
    const again = async (content: string, count: string) => {
      await client.chat.completions.create({ model: "mia", messages: [user(content)], user: "r:1" }, {
        headers: { "x-stainless-retry-count": count },
      });
      return rig.said.at(-1)!.message.id;
    };
    assert.equal(await again("Hi", "1"), "chat_7");
    assert.notEqual(await again("Hi", "0"), "chat_7");
    assert.notEqual(await again("Old", "1"), "chat_7");
  });

  it("a failure after the message was kept is asked for once: the library does not try again", async () => {
    const failure: News = {
      type: "error",
      status: 502,
      error: { code: "model_failed", message: "No." },
      turn: "turn_1",
    };
    tell(start, failure);
    const before = rig.said.length;
    await assert.rejects(ask([user("x")]), (error: APIError) => {
      assert.deepEqual([error.status, error.code, error.type], [502, "model_failed", "server_error"]);
      return error.headers!.get("x-should-retry") === "false";
    });
    assert.equal(rig.said.length, before + 1);
    await assert.rejects(streamed(), (error: APIError) => /No\./.test(error.message));
    assert.equal(rig.said.length, before + 2);
    tell({ ...failure, repeated: true });
    await assert.rejects(streamed(), { status: 502, code: "model_failed" });
    assert.equal(rig.said.length, before + 3);
  });

  it("a conversation whose turn runs past the wait is 409, and may be asked again", async () => {
    const once = new OpenAI({ apiKey: client.apiKey!, baseURL: client.baseURL, maxRetries: 0 });
    rig.script = () => {
      throw new Failure("turn_running", { thread: "a:b" });
    };
    await assert.rejects(
      once.chat.completions.create({ model: "mia", messages: [user("x")] }),
      (error: APIError) => {
        assert.deepEqual([error.status, error.code], [409, "turn_running"]);
        return error.headers!.get("x-should-retry") === null;
      },
    );
  });

  it("without the agent's key is 401", async () => {
    const stranger = new OpenAI({ apiKey: "nobody", baseURL: client.baseURL });
    await assert.rejects(stranger.models.list(), { status: 401, code: "unauthorized" });
  });
});
