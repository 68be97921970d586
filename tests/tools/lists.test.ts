// What tools are offered: lists read whole and in order, kept beside the settings, and offered though their server is down.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { limits } from "../../src/limits.ts";
import { narrow } from "../../src/tools/tools.ts";
import type { Exchange } from "../doubles/mcp.ts";
import { double, Folder, rig, until } from "./rig.ts";

const tool = (name: string, more: object = {}) => ({ name, inputSchema: { type: "object" }, ...more });
const cursorOf = (x: Exchange) => x.message?.params?.cursor as string | undefined;

describe("lists", () => {
  it("T2 offers <tool>__<call> sorted by tool, then call, whatever order servers list and answer in", async () => {
    const [a, b] = [
      await double({ tools: [tool("z"), tool("B"), tool("a")] }),
      await double({ tools: [tool("only")] }),
    ];
    const slow = { LNK_TOOL_ZOO: a.url, LNK_TOOL_APE: b.url };
    const names = ["ape__only", "zoo__B", "zoo__a", "zoo__z"];
    assert.deepEqual(await rig(slow).names(), names);
    a.script.tools!.reverse();
    b.script.on = {
      "tools/list": async () => {
        await until(() => a.count("tools/list") >= 2);
        return "default";
      },
    };
    assert.deepEqual(await rig(slow).names(), names);
  });

  it("T8 a process lists at its first offer only: later ones ask nothing and open no session", async () => {
    const server = await double();
    const { names, box } = rig({ LNK_TOOL_X: server.url });
    await names();
    await box.turnEnded("turn_1");
    const asked = server.asked.length;
    assert.equal(server.sessions.size, 0);
    for (let i = 0; i < 3; i++) await names();
    assert.equal(server.asked.length, asked);
  });

  it("T8 offers that begin together share one start", async () => {
    const server = await double();
    const { names } = rig({ LNK_TOOL_X: server.url });
    await Promise.all([names(), names(), names()]);
    assert.equal(server.count("initialize"), 1);
  });

  it("T8 asks for the list again whenever a session starts", async () => {
    const server = await double({ tools: [tool("old")] });
    const { names, call, box } = rig({ LNK_TOOL_X: server.url });
    await names();
    await box.turnEnded("turn_1");
    server.script.tools = [tool("new"), tool("old")];
    assert.deepEqual(await names(), ["x__old"], "nothing asked, nothing changed");
    await call("x__old", {}, { turn: "turn_2" });
    assert.deepEqual(await names(), ["x__new", "x__old"]);
  });

  it("B64 T8 follows three pages, and takes a tool that stands on two of them once", async () => {
    const pages: Record<string, unknown> = {
      "": { tools: [tool("c", { description: "first" }), tool("a")], nextCursor: "2" },
      2: { tools: [tool("b"), tool("c", { description: "second" })], nextCursor: "3" },
      3: { tools: [tool("d")] },
    };
    const server = await double({ on: { "tools/list": (x) => x.result(pages[cursorOf(x) ?? ""]) } });
    const { box } = rig({ LNK_TOOL_X: server.url });
    const { tools } = await box.offer();
    assert.deepEqual(tools.map(({ name }) => name), ["x__a", "x__b", "x__c", "x__d"]);
    assert.equal(tools[2]!.description, "first");
  });

  it("B64 notices a cursor that comes back, takes an empty one for the end, and bounds the pages", async () => {
    const cases: [string, (x: Exchange) => unknown, number][] = [
      ["repeats", () => ({ tools: [tool("a")], nextCursor: "again" }), 2],
      ["empty", () => ({ tools: [tool("a")], nextCursor: "" }), 1],
      [
        "endless",
        (x) => ({ tools: [tool(`a${cursorOf(x) ?? 0}`)], nextCursor: String(Number(cursorOf(x) ?? 0) + 1) }),
        limits.toolPagesMax,
      ],
    ];
    for (const [name, page, asked] of cases) {
      const server = await double({ on: { "tools/list": (x) => x.result(page(x)) } });
      const { box, told } = rig({ LNK_TOOL_X: server.url });
      const { tools } = await box.offer();
      assert.equal(server.count("tools/list"), asked, name);
      assert.equal(tools.length, name === "endless" ? asked : 1, name);
      assert.equal(told.length, name === "empty" ? 0 : 1, name);
    }
  });

  it("bounds how many calls and bytes a list has, and tells what it left out", async () => {
    const many = await double({
      tools: Array.from({ length: limits.toolCallsListed + 9 }, (_, i) => tool(`t${i}`)),
    });
    const { names, told } = rig({ LNK_TOOL_X: many.url });
    assert.equal((await names()).length, limits.toolCallsListed);
    assert.match(JSON.stringify(told[0]!.facts), /lists more than is taken/);
  });

  it("B63 one bad entry costs that entry alone, not the list", async () => {
    const server = await double({
      tools: [
        null,
        7,
        { description: "nameless" },
        tool("has space"),
        tool(""),
        tool("x".repeat(limits.toolNameCharsMax + 1)),
        tool("odd_output", { outputSchema: { type: "array", items: true } }),
        tool("worse_output", { outputSchema: 7 }),
        { name: "no_schema" },
        { name: "bad_schema", inputSchema: [] },
        tool("odd_annotations", { annotations: "none", icons: 3, _meta: [] }),
        tool("good", { description: "Good." }),
      ],
    });
    for (const era of ["legacy", "modern"] as const) {
      server.script.era = era;
      const { names, told } = rig({ LNK_TOOL_X: server.url });
      assert.deepEqual(await names(), [
        "x__bad_schema",
        "x__good",
        "x__no_schema",
        "x__odd_annotations",
        "x__odd_output",
        "x__worse_output",
      ], era);
      assert.equal((told[0]!.facts!.leftOut as unknown[]).length, 6);
    }
  });

  it("B50 hands every schema on as it came: a server of 12 shapes is offered whole", async () => {
    const shapes: unknown[] = [
      { type: "object", properties: { a: { type: "string" } } },
      {},
      true,
      { anyOf: [{ type: "object" }, { type: "null" }] },
      { type: "object", properties: { a: { $ref: "#/$defs/a" } }, $defs: { a: { $ref: "#/$defs/a" } } },
      { $ref: "http://127.0.0.1:1/schema.json" },
      { type: "object", properties: { list: { type: "array" } } },
      { type: "object", properties: { e: { enum: null } } },
      { type: "string" },
      { type: "object", properties: { any: true, none: false } },
      { type: "object", description: "x".repeat(200_000) },
      { type: ["object", "null"] },
    ];
    const server = await double({ tools: shapes.map((inputSchema, i) => ({ name: `t${i}`, inputSchema })) });
    const { box } = rig({ LNK_TOOL_X: server.url });
    const { tools } = await box.offer();
    assert.equal(tools.length, shapes.length);
    const schema = (name: string) => tools.find((one) => one.name === name)!.schema;
    assert.deepEqual(schema("x__t4"), shapes[4]);
    assert.deepEqual(schema("x__t2"), { type: "object" });
  });

  it("S12 keeps what a server says of itself beside its list, at most 2 KB, no character cut in two", async () => {
    for (const era of ["legacy", "modern"] as const) {
      const server = await double({ era, instructions: ` ${"é".repeat(2000)} ` });
      const { box, folder } = rig({ LNK_TOOL_X: server.url });
      const { instructions } = await box.offer();
      assert.deepEqual(instructions, [{ tool: "x", text: `${"é".repeat(1022)}…` }]);
      assert.ok(new TextEncoder().encode(instructions[0]!.text).length <= 2048);
      await server.close();
      const later = rig({ LNK_TOOL_X: server.url }, { folder });
      assert.deepEqual((await later.box.offer()).instructions, instructions, "down, and described as it was");
    }
  });

  it("T9 a tool that was listed before is offered though it is down, its call answered as unavailable", async () => {
    const server = await double();
    const first = rig({ LNK_TOOL_X: server.url });
    await first.names();
    await first.box.close();
    await server.close();
    const { box, names, call, told } = rig({ LNK_TOOL_X: server.url }, { folder: first.folder });
    assert.deepEqual(await names(), ["x__note"]);
    const result = await call("x__note");
    assert.deepEqual(result, {
      ok: false,
      text: "The tool x is unavailable: the connection was refused. The call was not made.",
    });
    assert.deepEqual((await box.states()).map(({ state }) => state), ["down"]);
    assert.equal(told.length, 1, "told once");
  });

  it("T9 one that was never listed and does not answer is left out of that turn only", async () => {
    let broken = true;
    const server = await double({ on: { initialize: (x) => broken ? x.status(500) : "default" } });
    const { names } = rig({ LNK_TOOL_X: server.url });
    assert.deepEqual(await names(), []);
    broken = false;
    assert.deepEqual(await names(), ["x__note"]);
  });

  it("T8 tool-lists.json holds name, hash and calls of the agent's tools now; read once, written on change only", async () => {
    const [x, y] = [await double({ tools: [tool("a")] }), await double({ tools: [tool("b")] })];
    const { names, folder, call, box } = rig({ LNK_TOOL_X: x.url, LNK_TOOL_Y: y.url });
    await names();
    await names();
    const { lists } = JSON.parse(folder.lists());
    assert.deepEqual(Object.keys(lists), ["x", "y"]);
    assert.match(lists.x.address, /^[0-9a-f]{64}$/);
    assert.deepEqual(lists.x.calls, [{ name: "a", description: "", schema: { type: "object" } }]);
    assert.deepEqual([folder.reads, folder.writes], [1, 1]);
    await call("x__a");
    await box.turnEnded("turn_1");
    assert.equal(folder.writes, 1, "the same list again");
    const one = rig({ LNK_TOOL_X: x.url }, { folder });
    await one.names();
    assert.deepEqual(
      Object.keys(JSON.parse(folder.lists()).lists),
      ["x"],
      "a tool taken away is in it no more",
    );
  });

  it("T8 a tool that moved is not offered from the file", async () => {
    const server = await double();
    const { names, folder } = rig({ LNK_TOOL_X: server.url });
    await names();
    assert.deepEqual(await rig({ LNK_TOOL_X: `${server.url}/other#a=b` }, { folder }).names(), ["x__note"]);
    await server.close();
    assert.deepEqual(await rig({ LNK_TOOL_X: "http://127.0.0.1:1/" }, { folder }).names(), []);
  });

  it("D9 a file of lists that is torn, foreign or cannot be written costs nothing but a listing", async () => {
    const server = await double();
    for (const text of ["", "{", "[]", `{"lists":{"x":7}}`, `{"lists":{"x":{"address":"a"}}}`]) {
      const folder = new Folder();
      folder.files.set("tool-lists.json", new TextEncoder().encode(text));
      assert.deepEqual(await rig({ LNK_TOOL_X: server.url }, { folder }).names(), ["x__note"], text);
    }
    const broken = {
      read: () => Promise.reject(new Error("read")),
      write: () => Promise.reject(new Error("write")),
    };
    const { names, told } = rig({ LNK_TOOL_X: server.url }, { own: broken });
    assert.deepEqual(await names(), ["x__note"]);
    assert.equal(told.length, 2);
  });

  it("D4 servers follow the settings from one turn to the next", async () => {
    const [x, y] = [await double({ tools: [tool("a")] }), await double({ tools: [tool("b")] })];
    const { names, call } = rig({});
    assert.deepEqual(await names({ t: x.url }), ["t__a"]);
    assert.deepEqual(await names({ t: y.url }), ["t__b"]);
    assert.equal((await call("t__a")).text, "There is no tool t__a.");
    assert.equal((await call("t__b")).text, "call 1");
    assert.deepEqual(await names({}), []);
  });

  it("B66 a change between two turns, told or not, counts from the next turn after a session saw it, never within one", async () => {
    const before = [tool("gone"), tool("same", { description: "old" })];
    const after = [tool("fresh"), tool("same", { description: "new" })];
    for (const notified of [true, false]) {
      const server = await double({ tools: before });
      server.script.on = {
        "tools/call": (x) => {
          server.script.tools = after;
          if (!notified) return "default";
          const events = x.events();
          for (let i = 0; i < 1000; i++) {
            events.send({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
          }
          events.send({
            jsonrpc: "2.0",
            id: x.message!.id,
            result: { content: [{ type: "text", text: "done" }] },
          });
          events.end();
        },
      };
      const { box, names, call } = rig({ LNK_TOOL_X: server.url });
      assert.deepEqual(await names(), ["x__gone", "x__same"]);
      await call("x__same");
      assert.notEqual((await call("x__gone")).text, "There is no tool x__gone.", "stable within the turn");
      await box.turnEnded("turn_1");
      if (notified) assert.ok(server.count("tools/list") <= 3, "a flood of changes is one change");
      await names();
      if (!notified) await call("x__same", {}, { turn: "turn_2" });
      const { tools } = await box.offer();
      assert.deepEqual(tools.map(({ name, description }) => [name, description]), [
        ["x__fresh", ""],
        ["x__same", "new"],
      ]);
    }
  });

  it("B66 a kept session hears of a change between two turns, and the next turn has it", async () => {
    let say = (_: unknown) => {};
    const server = await double({ tools: [tool("old")] });
    server.script.on = {
      GET: (x) => {
        say = x.events().send;
      },
    };
    const { names } = rig({ LNK_MEMORY: server.url });
    assert.deepEqual(await names(), ["memory__old"]);
    await until(() => server.count("GET") === 1);
    server.script.tools = [tool("new")];
    say({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
    await until(() => server.count("tools/list") > 0);
    for (let i = 0; i < 100 && server.count("tools/list") < 2; i++) {
      await names();
      await new Promise((next) => setTimeout(next, 5));
    }
    assert.deepEqual(await names(), ["memory__new"]);
  });

  it("B65 servers that never start hold the first turn no longer than 30 s together, and later ones much less", async () => {
    const gone: Promise<void>[] = [];
    const hang = (x: Exchange) => void gone.push(x.gone);
    const drip = (x: Exchange) => {
      const events = x.events();
      const timer = setInterval(() => events.raw(":"), 20);
      x.gone.then(() => clearInterval(timer));
      gone.push(x.gone);
    };
    const silent = await double({ on: { initialize: hang, "server/discover": hang } });
    const headers = await double({
      on: {
        initialize: (x) => {
          x.events();
          hang(x);
        },
      },
    });
    const listless = await double({ on: { "tools/list": hang } });
    const dripping = await double({ on: { "tools/list": drip } });
    const good = await double();
    const known = await double();
    const folder = new Folder();
    const before = rig({ LNK_TOOL_KNOWN: known.url }, { folder });
    await before.names();
    known.script.on = { initialize: hang, "server/discover": hang };
    const speed = 60;
    const { names, box, slept } = rig({
      LNK_TOOL_A: silent.url,
      LNK_TOOL_B: headers.url,
      LNK_TOOL_C: listless.url,
      LNK_TOOL_D: dripping.url,
      LNK_TOOL_GOOD: good.url,
      LNK_TOOL_KNOWN: known.url,
    }, { folder, speed });
    assert.deepEqual(await names(), ["good__note", "known__note"]);
    await until(() => listless.ended.length === 1 && dripping.ended.length === 1);
    assert.equal(listless.sessions.size, 0, "a session that a start had opened is ended");
    // The connections are closed: no server holds one for nobody.
    assert.ok(gone.length >= 4);
    await Promise.all(gone);
    const waits = slept.length;
    const states = await box.states();
    const again = slept.slice(waits).filter((ms) => ms === limits.toolStartAgainMs);
    assert.equal(again.length, 4, "the four that held the first turn are waited for but shortly");
    assert.deepEqual(states.map(({ tool, state }) => `${tool} ${state}`), [
      "a absent",
      "b absent",
      "c absent",
      "d absent",
      "good up",
      "known down",
    ]);
    for (const why of states.slice(0, 4).map(({ why }) => why)) assert.match(why!, /in time/);
  });

  it("T5 narrowing keeps exactly the names given; a bare tool names nothing; instructions follow the tools", () => {
    const spec = (name: string) => ({ name, description: "", schema: {} });
    const offer = {
      tools: ["a__x", "a__y", "b__x"].map(spec),
      instructions: [{ tool: "a", text: "A" }, { tool: "b", text: "B" }],
    };
    assert.equal(narrow(offer, undefined), offer);
    assert.deepEqual(narrow(offer, ["b__x", "c__z", "a"]), {
      tools: [spec("b__x")],
      instructions: [{ tool: "b", text: "B" }],
    });
    assert.deepEqual(narrow(offer, []), { tools: [], instructions: [] });
    assert.deepEqual(narrow(narrow(offer, ["a__x", "b__x"]), ["a__x", "a__y"]).tools, [spec("a__x")]);
  });
});
