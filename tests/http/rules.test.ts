import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { limits } from "../../src/limits.ts";
import { isVisible } from "../../src/http/schemas.ts";
import { type AskOptions, makeRig, type Rig, serve, type Served } from "./rig.ts";

const turnPath = "/agents/mia/asp/turn";
const good = { thread: "telegram:42", message: { text: "Hi" } };

async function errorOf(
  response: Response,
): Promise<{ status: number; code: string; message: string; paths: string[] }> {
  const { error } = await response.json();
  assert.match(response.headers.get("content-type")!, /^application\/json/);
  assert.match(error.code, /^[a-z_]+$/);
  assert.ok(error.message.length > 10 && !error.message.includes("    at "), error.message);
  const paths = (error.issues ?? []).map((issue: { path: string }) => issue.path).sort();
  return { status: response.status, code: error.code, message: error.message, paths };
}

describe("a body", () => {
  const rig = makeRig();
  const post = async (options: AskOptions) => await errorOf(await rig.ask("POST", turnPath, options));

  it("that is no JSON, empty, not UTF-8 or no object is refused with 400 and nothing is asked", async () => {
    const raws: [string, BodyInit, string][] = [
      ["text", "hello", "not_json"],
      ["half", '{"thread":', "not_json"],
      ["empty", "", "not_json"],
      ["blank", " \n", "not_json"],
      ["not UTF-8", new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]), "not_json"],
      ["half a character", new Uint8Array([0x22, 0xf0, 0x9f, 0x98, 0x22]), "not_json"],
      ["UTF-16", new Uint8Array([0xff, 0xfe, 0x7b, 0, 0x7d, 0]), "not_json"],
      ["two", "{}{}", "not_json"],
      ["NaN", '{"thread":NaN}', "not_json"],
      ["null", "null", "invalid"],
      ["a list", "[]", "invalid"],
      ["a text", '"x"', "invalid"],
      ["a number", "1e999", "invalid"],
    ];
    for (const [title, raw, code] of raws) {
      const error = await post({ raw });
      assert.deepEqual([error.status, error.code], [400, code], title);
    }
    assert.deepEqual(rig.said, []);
  });

  it("of the wrong form has all its issues listed at once", async () => {
    const error = await post({
      body: {
        thread: "..",
        message: { id: "", text: 5, from: { role: "boss", nam: "x" }, at: "yesterday", attachments: [] },
        connection: "",
        tools: "all",
        retry: "yes",
        extra: 1,
      },
    });
    assert.deepEqual([error.status, error.code], [400, "invalid"]);
    assert.deepEqual(error.paths, [
      "connection",
      "extra",
      "message.at",
      "message.attachments",
      "message.from.nam",
      "message.from.role",
      "message.id",
      "message.text",
      "retry",
      "thread",
      "tools",
    ]);
  });

  it("of exactly 10 MiB is taken and one byte more is refused with 413, told its length or not", async () => {
    const frame = JSON.stringify({ ...good, message: { text: "" } }).length;
    const text = "a".repeat(limits.bodyBytesMax - frame);
    const exact = JSON.stringify({ ...good, message: { text } });
    const lengths = (raw: string) => ({ "content-length": String(raw.length) });
    assert.equal((await rig.ask("POST", turnPath, { raw: exact, headers: lengths(exact) })).status, 200);
    assert.equal((await rig.ask("POST", turnPath, { raw: new Blob([exact]).stream() })).status, 200);
    const over = `${exact} `;
    const told = await post({ raw: over, headers: lengths(over) });
    assert.deepEqual([told.status, told.code], [413, "body_too_large"]);
    const streamed = await post({ raw: new Blob([over]).stream() });
    assert.deepEqual([streamed.status, streamed.code], [413, "body_too_large"]);
  });

  it("B72 with no visible text is refused with 400; a lone CR beside a letter, or 9.9 MiB, is text", async () => {
    for (
      const text of [
        "",
        " ",
        "\r",
        "\n\t",
        "\u200b\u200d",
        "\u0000\u0007",
        "\u00ad",
        "\ufeff",
        "\u3164",
        "\u2800",
        "\u{e0041}",
      ]
    ) {
      const error = await post({ body: { ...good, message: { text } } });
      assert.deepEqual(
        [error.status, error.code, error.paths],
        [400, "invalid", ["message.text"]],
        JSON.stringify(text),
      );
    }
    for (const text of ["a\r", "0", "é", "e\u0301", "👍", "中", "a".repeat(9.9 * 1024 * 1024 | 0)]) {
      assert.equal((await rig.ask("POST", turnPath, { body: { ...good, message: { text } } })).status, 200);
    }
    assert.ok(isVisible("👨‍👩‍👧") && isVisible("\u05d0") && isVisible("+"));
  });

  it("B42 text with half a surrogate pair is made well-formed before anything is kept; such an id or thread is refused", async () => {
    await rig.ask("POST", turnPath, { raw: '{"thread":"a:b","message":{"text":"x\\ud83d"}}' });
    assert.equal(rig.said.at(-1)!.message.text, "x\ufffd");
    const error = await post({
      raw: '{"thread":"\\ud83d","message":{"id":"\\ude00","text":"x"},"connection":"\\ud83d"}',
    });
    assert.deepEqual(error.paths, ["connection", "message.id", "thread"]);
  });

  it("an id has 1 to 512 characters", async () => {
    const withId = (id: string) =>
      rig.ask("POST", turnPath, { body: { ...good, message: { id, text: "x" } } });
    assert.equal((await withId("i".repeat(512))).status, 200);
    assert.equal((await withId("i".repeat(513))).status, 400);
    assert.equal((await withId("a\nb")).status, 400);
  });

  it("nested a hundred thousand deep is refused like any other wrong form", async () => {
    const depth = 100_000;
    const raw = `{"thread":"a:b","message":${'{"a":'.repeat(depth)}1${"}".repeat(depth)}}`;
    assert.equal((await post({ raw })).status, 400);
    const settings = await rig.ask("PATCH", "/agents/mia/asp/settings", {
      raw: `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`,
    });
    assert.equal(settings.status, 400);
    assert.equal(
      (await rig.ask("PUT", "/agents/mia/asp/settings", {
        raw: `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`,
      })).status,
      400,
    );
  });
});

describe("a message", () => {
  const rig = makeRig();

  it("comes to the turn whole: role owner by default, time in UTC, tools that both lists name", async () => {
    const say = async (body: object, headers: Record<string, string> = {}) => {
      const response = await rig.ask("POST", turnPath, { body, headers });
      assert.equal(response.status, 200, await response.clone().text());
      return rig.said.at(-1)!;
    };
    assert.deepEqual(await say(good), {
      thread: "telegram:42",
      message: { text: "Hi", from: { role: "owner" } },
    });
    const whole = {
      thread: "telegram:42",
      message: {
        id: "tg-991",
        text: "Where?",
        from: { role: "run", name: "run:7" },
        at: "2026-12-01T10:00:00+01:00",
      },
      connection: "telegram",
      tools: ["memory__search", "run__command"],
      retry: true,
    };
    assert.deepEqual(await say(whole, { "Link-Tools": "run__command,  file__read" }), {
      ...whole,
      message: { ...whole.message, at: "2026-12-01T09:00:00.000Z" },
      tools: ["run__command"],
    });
    assert.deepEqual((await say(good, { "Link-Tools": "a__b, c__d" })).tools, ["a__b", "c__d"]);
    assert.deepEqual((await say(good, { "Link-Tools": "" })).tools, []);
    assert.deepEqual((await say({ ...good, tools: [] })).tools, []);
    assert.equal((await say(good)).tools, undefined);
  });

  it("B18 B20 threads of every strange but valid name come through the body and the path as they are", async () => {
    const threads = [
      "telegram:42",
      "telegram-42",
      "Telegram:42",
      "telegram:４２",
      "é",
      "e\u0301",
      "a ",
      "a.",
      "con",
      "CON",
      "nul.txt",
      "com1.a",
      "COM¹",
      "%2e%2e",
      "%ZZ",
      "%",
      "a/b",
      "a\\b",
      "../x",
      "...",
      "?x=1#y",
      "a+b",
      "a&b",
      "\u2028",
      "😀".repeat(512),
      "__proto__",
      "x:y:z",
      "*",
      ":thread",
      "events",
      "a;b",
      '"',
      "\u{10ffff}",
      "asp/turn",
    ];
    for (const thread of threads) {
      const response = await rig.ask("POST", turnPath, { body: { thread, message: { text: "x" } } });
      assert.equal(response.status, 200, thread);
      assert.equal(rig.said.at(-1)!.thread, thread);
      rig.logs.set(thread, [JSON.stringify({ seq: 1, thread })]);
      const events = await rig.ask(
        "GET",
        `/agents/mia/asp/conversations/${encodeURIComponent(thread)}/events`,
      );
      assert.equal(await events.text(), `${JSON.stringify({ seq: 1, thread })}\n`, thread);
    }
    const listed = await (await rig.ask("GET", "/agents/mia/asp/conversations?limit=1000")).json();
    assert.equal(listed.conversations.length, threads.length);
  });

  it("B18 threads that are none are refused, in the body as an issue, in the path as thread_invalid", async () => {
    for (const thread of ["", ".", "..", "a\u0000b", "a\nb", "\u0085", "😀".repeat(513), "x".repeat(513)]) {
      const response = await rig.ask("POST", turnPath, { body: { thread, message: { text: "x" } } });
      const { status, paths } = await errorOf(response);
      assert.deepEqual([status, paths], [400, ["thread"]], JSON.stringify(thread));
      // A path's dot names and empty parts never reach a handler: the URL is resolved before.
      if (thread === "" || thread === "." || thread === "..") continue;
      const path = await rig.ask("GET", `/agents/mia/asp/conversations/${encodeURIComponent(thread)}/events`);
      assert.equal((await errorOf(path)).code, "thread_invalid");
    }
  });
});

describe("a path", () => {
  let rig: Rig, served: Served;
  before(async () => {
    rig = makeRig();
    served = await serve(rig.handler);
  });
  after(() => served.close());

  it("that is not there is 404, a wrong method 405 with what is allowed, broken percent-encoding 400", async () => {
    const cases: [string, string, number, string][] = [
      ["GET", "/agents/mia/asp/turns", 404, "not_found"],
      ["POST", "/agents/mia/asp", 404, "not_found"],
      ["POST", "/agents/mia/asp/turn/", 404, "not_found"],
      ["GET", "/agents/mia/asp/turn", 405, "method_not_allowed"],
      ["PUT", "/agents/mia", 405, "method_not_allowed"],
      ["DELETE", "/agents/mia/asp/settings", 405, "method_not_allowed"],
      ["OPTIONS", "/agents/mia/asp/end", 405, "method_not_allowed"],
      ["POST", "/healthz", 405, "method_not_allowed"],
      ["GET", "/agents/mia/asp/conversations/%ZZ/events", 400, "invalid"],
      ["GET", "/agents/mia/asp/conversations/%/events", 400, "invalid"],
      ["GET", "/agents/mia/asp/conversations/%ff/events", 400, "invalid"],
      ["GET", "/agents/mia/asp/conversations/nobody/events", 404, "not_found"],
    ];
    for (const [method, path, status, code] of cases) {
      const response = await rig.ask(method, path);
      const error = await errorOf(response);
      assert.deepEqual([error.status, error.code], [status, code], `${method} ${path}`);
    }
    const settings = await rig.ask("POST", "/agents/mia/asp/settings");
    assert.equal(settings.headers.get("allow"), "GET, PUT, PATCH");
  });

  it("HEAD is GET without a body", async () => {
    const response = await rig.ask("HEAD", "/agents/mia");
    assert.equal(response.status, 200);
    assert.equal(await response.text(), "");
  });

  it("a query of no numbers is refused, each parameter by its name", async () => {
    rig.logs.set("a:b", ["{}"]);
    const error = await errorOf(
      await rig.ask("GET", "/agents/mia/asp/conversations/a%3Ab/events?from=0&limit=x&last=-1"),
    );
    assert.deepEqual([error.status, error.paths], [400, ["from", "last", "limit"]]);
    assert.equal((await rig.ask("GET", "/agents/mia/asp/conversations?limit=1001")).status, 400);
  });

  it("asked through a real socket, a body over 10 MiB is answered 413, not cut off", async () => {
    const key = rig.agents.get("mia")!.key;
    const big = "a".repeat(limits.bodyBytesMax + 1);
    for (const body of [big, new Blob([big]).stream()]) {
      const response = await fetch(`${served.url}${turnPath}`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}` },
        body,
        duplex: "half",
      } as RequestInit);
      assert.equal((await errorOf(response)).status, 413);
    }
  });
});

describe("what fails inside", () => {
  it("is 500 with the error form and no word of what was thrown, which is told to whoever runs it, without its text", async () => {
    const rig = makeRig();
    rig.script = () => {
      throw new TypeError("secret text of a message");
    };
    for (const accept of ["application/json", "text/event-stream"]) {
      const response = await rig.ask("POST", turnPath, { body: good, headers: { accept } });
      const text = await response.clone().text();
      assert.deepEqual(await errorOf(response).then(({ status, code }) => [status, code]), [500, "internal"]);
      assert.ok(!text.includes("secret"));
    }
    assert.equal(rig.notices.length, 2);
    assert.match(rig.notices[0]!, /TypeError/);
    assert.ok(!rig.notices.join().includes("secret"));
  });
});
