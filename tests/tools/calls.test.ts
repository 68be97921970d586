// Calls: bounded, never made twice, told apart by whether they can have been made, whatever a server does.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { limits } from "../../src/limits.ts";
import type { Behaviour, Exchange } from "../doubles/mcp.ts";
import { double, rig, until } from "./rig.ts";

const done = { content: [{ type: "text", text: "done" }] };
const answer = (x: Exchange, result: unknown = done) => ({ jsonrpc: "2.0", id: x.message!.id, result });
const second = 1000;

/** A tool whose calls are answered so, and how one is told. */
async function told(behaviour: Behaviour, options: { speed?: number; era?: "legacy" | "modern" } = {}) {
  const { speed = 1, era } = options;
  const server = await double({ on: { "tools/call": behaviour }, ...(era ? { era } : {}) });
  const tools = rig({ LNK_TOOL_X: server.url });
  await tools.names();
  tools.hurry(speed);
  return { server, ...tools, result: await tools.call("x__note") };
}

describe("calls", () => {
  it("T7 carries the arguments, the thread and a stable key, and makes each call once", async () => {
    const server = await double();
    const { names, call } = rig({ LNK_TOOL_X: server.url });
    await names();
    await call("x__note", { a: { b: ["é", 1, null] } }, { key: "mia/t:1#c7_0" });
    const { name, arguments: given, _meta } = server.calls[0]!.params!;
    assert.deepEqual([name, given], ["note", { a: { b: ["é", 1, null] } }]);
    assert.deepEqual([_meta!["link/thread"], _meta!["link/key"]], ["t:1", "mia/t:1#c7_0"]);
    assert.equal(server.calls.length, 1);
  });

  it("T10 the calls of one round run at once", async () => {
    const waiting: Exchange[] = [];
    const server = await double({ on: { "tools/call": (x) => void waiting.push(x) } });
    const { names, call } = rig({ LNK_TOOL_X: server.url });
    await names();
    const results = [1, 2, 3, 4, 5].map((n) => call("x__note", { n }));
    await until(() => waiting.length === 5);
    for (const x of waiting.reverse()) {
      const { n } = x.message!.params!.arguments as { n: number };
      x.result({ content: [{ type: "text", text: `${n}` }] });
    }
    assert.deepEqual((await Promise.all(results)).map(({ text }) => text), ["1", "2", "3", "4", "5"]);
  });

  it("T5 a call to a tool that is not offered is answered as one there isn't, and reaches no server", async () => {
    const server = await double();
    const { names, call } = rig({ LNK_TOOL_X: server.url });
    assert.equal((await call("x__note")).text, "There is no tool x__note.");
    await names();
    for (const name of ["x__other", "x", "y__note", "note", "x__", "__proto__", ""]) {
      assert.deepEqual(await call(name), { ok: false, text: `There is no tool ${name}.` });
    }
    assert.equal(server.calls.length, 0);
  });

  it("B78 sends a token, and a tool that tells of its progress every 5 s may take 90 s and far longer", async () => {
    const speed = 300;
    const { result, server } = await told(async (x) => {
      const token = x.message!.params!._meta!.progressToken;
      assert.notEqual(token, undefined);
      const events = x.events();
      for (let s = 0; s < 600; s += 60) {
        await new Promise((next) => setTimeout(next, 60 * second / speed));
        events.send({
          jsonrpc: "2.0",
          method: "notifications/progress",
          params: { progressToken: token, progress: s },
        });
      }
      events.send(answer(x));
      events.end();
    }, { speed });
    assert.deepEqual(result, { ok: true, text: "done" });
    assert.equal(server.count("notifications/cancelled"), 0);
  });

  it("B78 a tool that is silent past the bound is given up, cancelled and told as unknown; its connection is closed", async () => {
    for (const era of ["legacy", "modern"] as const) {
      const gone: Promise<void>[] = [];
      const { result, server } = await told((x) => void gone.push(x.gone), { speed: 1000, era });
      assert.equal(result.ok, false);
      assert.match(result.text, /no answer came within 300 seconds.*outcome is unknown/s);
      await Promise.all(gone);
      if (era === "legacy") {
        await until(() => server.count("notifications/cancelled") === 1);
        const { message } = server.asked.find(({ message }) =>
          message?.method === "notifications/cancelled"
        )!;
        assert.equal(message!.params!.requestId, server.calls[0]!.id);
      }
      assert.equal(server.calls.length, 1);
    }
  });

  it("B78 a tool that tells of its progress for ever is given up in the end", async () => {
    const { result } = await told(async (x) => {
      const progressToken = x.message!.params!._meta!.progressToken;
      const events = x.events();
      let going = true;
      x.gone.then(() => going = false);
      for (let progress = 0; going; progress++) {
        events.send({
          jsonrpc: "2.0",
          method: "notifications/progress",
          params: { progressToken, progress },
        });
        await new Promise((next) => setTimeout(next, 20));
      }
    }, { speed: 600 });
    assert.match(result.text, /no answer came within 1200 seconds.*outcome is unknown/s);
  });

  it("a turn that is stopped cancels its call, and tells of one that it had not begun as not made", async () => {
    const server = await double({ on: { "tools/call": () => {} } });
    const { names, call } = rig({ LNK_TOOL_X: server.url });
    await names();
    const stop = new AbortController();
    const running = call("x__note", {}, { signal: stop.signal });
    await until(() => server.calls.length === 1);
    stop.abort();
    assert.match((await running).text, /the turn was stopped.*outcome is unknown/s);
    await until(() => server.count("notifications/cancelled") === 1);
    assert.match((await call("x__note", {}, { signal: stop.signal })).text, /The call was not made\.$/);
    assert.equal(server.calls.length, 1);
  });

  it("an answer that breaks off is told as unknown at once, and the call is not made again", async () => {
    const ways: Record<string, Behaviour> = {
      "drops the connection": (x) => x.drop(),
      "ends its stream with no answer": (x) => x.events().end(),
      "drops its stream": (x) => {
        x.events().raw(": working\n\n");
        setTimeout(() => x.drop(), 20);
      },
      "answers half an event": (x) => {
        const events = x.events();
        events.raw(`data: {"jsonrpc":"2.0","id":${x.message!.id},"resu`);
        events.end();
      },
      "answers half a JSON": (x) =>
        x.status(200, `{"jsonrpc":"2.0","id":${x.message!.id},"resu`, "application/json"),
      "answers a page": (x) => x.status(200, "<html>busy</html>", "text/html"),
      "answers 500": (x) => x.status(500, "oops"),
      "answers 504": (x) => x.status(504),
      "answers no object": (x) => x.status(200, "7", "application/json"),
    };
    for (const [way, behaviour] of Object.entries(ways)) {
      const { result, server } = await told(behaviour);
      assert.equal(result.ok, false, way);
      assert.match(result.text, /outcome is unknown/, way);
      assert.equal(server.calls.length, 1, way);
    }
  });

  it("a stream that broke off is gone on with where its server says how, and the call is not made again", async () => {
    const server = await double();
    let asked: Exchange | undefined;
    server.script.on = {
      "tools/call": (x) => {
        asked = x;
        const events = x.events();
        events.raw("id: 7\nretry: 10\ndata:\n\n");
        events.end();
      },
      GET: (x) => {
        assert.equal(x.headers["last-event-id"], "7");
        const events = x.events();
        events.send(answer(asked!), "8");
        events.end();
      },
    };
    const { names, call } = rig({ LNK_TOOL_X: server.url });
    await names();
    assert.deepEqual(await call("x__note"), { ok: true, text: "done" });
    assert.equal(server.calls.length, 1);
    // One whose stream cannot be gone on with is told as unknown, without waiting for its silence to be over.
    server.script.on.GET = (x) => x.status(405);
    assert.match((await call("x__note")).text, /its answer broke off.*outcome is unknown/s);
    assert.equal(server.calls.length, 2);
  });

  it("a flood is cut where it is too long, and does no harm below that", async () => {
    const noise = `data: ${
      JSON.stringify({
        jsonrpc: "2.0",
        method: "notifications/message",
        params: { level: "info", data: "x".repeat(1000) },
      })
    }\n\n`;
    const flood = async (x: Exchange, bytes: number) => {
      const events = x.events();
      let going = true;
      x.gone.then(() => going = false);
      for (let sent = 0; sent < bytes && going; sent += 100 * noise.length) {
        events.raw(noise.repeat(100));
        await new Promise((next) => setImmediate(next));
      }
      if (!going) return;
      events.send(answer(x));
      events.end();
    };
    const harmless = await told((x) => flood(x, 1024 * 1024));
    assert.deepEqual(harmless.result, { ok: true, text: "done" });
    const cut = await told((x) => flood(x, Infinity));
    assert.match(cut.result.text, /outcome is unknown/);
    const long = await told((x) =>
      x.result({ content: [{ type: "text", text: "x".repeat(limits.toolReplyBytesMax) }] })
    );
    assert.match(long.result.text, /outcome is unknown/);
    assert.equal(cut.server.calls.length + long.server.calls.length, 2);
  });

  it("what a server asks of us is refused in words, never left waiting, and a flood of it is not answered for ever", async () => {
    const server = await double();
    const refused: { code: number; message: string }[] = [];
    server.script.on = {
      "tools/call": async (x) => {
        const events = x.events();
        for (const method of ["elicitation/create", "sampling/createMessage", "roots/list", "made/up"]) {
          events.send({
            jsonrpc: "2.0",
            id: `ask-${method}`,
            method,
            params: { message: "Your password?", mode: "form" },
          });
        }
        await until(() => server.asked.filter(({ message }) => message?.error).length === 4);
        for (let i = 0; i < 500; i++) {
          events.send({ jsonrpc: "2.0", id: `flood-${i}`, method: "elicitation/create", params: {} });
        }
        events.send(answer(x));
        events.end();
      },
    };
    const { names, call } = rig({ LNK_TOOL_X: server.url });
    await names();
    assert.deepEqual(await call("x__note"), { ok: true, text: "done" });
    for (const { message } of server.asked) if (message?.error) refused.push(message.error);
    assert.ok(refused.length <= limits.toolRefusalsMax);
    for (const { message } of refused) assert.match(message, /Nobody can be asked here/);
  });

  it("B80 a server of 2026-07-28 that asks for input is told to the model as one that cannot be given any", async () => {
    const { result, server } = await told(
      (x) =>
        x.result({
          resultType: "input_required",
          inputRequests: { a: { method: "elicitation/create", params: {} } },
        }),
      { era: "modern" },
    );
    assert.equal(result.ok, false);
    assert.match(result.text, /asks for input that nobody can give here/);
    assert.equal(server.calls.length, 1);
  });

  it("B63 errors are data: of the protocol with code and words, of the tool as it tells them, whatever schema it promised", async () => {
    const rpc = await told((x) => x.error(-32602, "Unknown tool: note"));
    assert.deepEqual(rpc.result, {
      ok: false,
      text: "The tool x gave no result: it answered with error -32602: Unknown tool: note.",
    });
    for (const era of ["legacy", "modern"] as const) {
      const results: [unknown, { ok: boolean; text: string }][] = [
        [{ isError: true, content: [{ type: "text", text: "disk full" }], structuredContent: { code: 28 } }, {
          ok: false,
          text: `disk full\n{"code":28}`,
        }],
        [{ content: [{ type: "text", text: "no structure" }] }, { ok: true, text: "no structure" }],
        [{ content: [{ type: "text", text: "7" }], structuredContent: { other: true } }, {
          ok: true,
          text: `7\n{"other":true}`,
        }],
        [{ content: [{ type: "hologram", data: 1 }, { type: "text" }, null] }, {
          ok: true,
          text:
            "[a part of kind hologram, 28 characters]\n[a text that cannot be read]\n[a part that cannot be read]",
        }],
        [{ structuredContent: { a: 1 } }, { ok: true, text: `{"a":1}` }],
        [{ content: "text" }, { ok: true, text: "The tool gave no output." }],
        [{}, { ok: true, text: "The tool gave no output." }],
      ];
      const outputSchema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
      for (const [whole, expected] of results) {
        const server = await double({
          era,
          tools: [{ name: "note", inputSchema: { type: "object" }, outputSchema }],
          on: { "tools/call": (x) => x.result(whole) },
        });
        const { names, call } = rig({ LNK_TOOL_X: server.url });
        await names();
        assert.deepEqual(await call("x__note"), expected, `${era} ${JSON.stringify(whole)}`);
      }
    }
  });

  it("a server's own words about its trouble are cut and stay on one line", async () => {
    const { result } = await told((x) => x.error(-32603, `line\nline ${"x".repeat(5000)}`));
    assert.ok(result.text.length < limits.toolErrorCharsMax + 200);
    assert.doesNotMatch(result.text, /\n/);
  });

  it("a redirect is followed within its origin only, and no call is made at two places", async () => {
    const other = await double();
    for (const [to, made] of [["/mcp?moved", 1], [other.url, 0]] as const) {
      const server = await double();
      server.script.on = {
        "tools/call": (x) => {
          if (x.path.includes("moved")) return "default";
          server.calls.pop();
          x.redirect(to);
        },
      };
      const { names, call } = rig({ LNK_TOOL_X: server.url });
      await names();
      const { ok, text } = await call("x__note");
      assert.equal(ok, made === 1);
      assert.equal(server.calls.length, made);
      if (!ok) assert.match(text, /HTTP 307.*The call was not made/s);
    }
    assert.equal(other.asked.length, 0);
  });
});
