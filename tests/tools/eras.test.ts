// Both eras of the protocol: of 2025 with `initialize` and session ids, and since 2026-07-28 without either.

import { createMcpHandler, fromJsonSchema, McpServer } from "@modelcontextprotocol/server";
import { getRequestListener } from "@hono/node-server";
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { limits } from "../../src/limits.ts";
import { atEnd, double, Folder, rig } from "./rig.ts";

const day = limits.toolEraMs;
const eraIn = (folder: Folder) => JSON.parse(folder.lists()).lists.x.era;

describe("eras", () => {
  it("B80 a server of 2025 only: listed and called in sessions; the verdict is kept, and it is not asked again each time", async () => {
    const server = await double({ era: "legacy" });
    const { names, call, box, folder } = rig({ LNK_TOOL_X: server.url });
    assert.deepEqual(await names(), ["x__note"]);
    assert.equal((await call("x__note")).ok, true);
    await box.turnEnded("turn_1");
    await call("x__note", {}, { turn: "turn_2" });
    assert.equal(server.count("server/discover"), 1);
    assert.equal(eraIn(folder), "2025");
    await rig({ LNK_TOOL_X: server.url }, { folder }).names();
    assert.equal(server.count("server/discover"), 1, "a new process trusts a verdict that is young");
  });

  it("B80 a verdict that is a day old is asked again: a server that was upgraded is spoken to in the newer era", async () => {
    const server = await double({ era: "legacy" });
    const folder = new Folder();
    await rig({ LNK_TOOL_X: server.url }, { folder }).names();
    server.script.era = "both";
    const later = {
      mono: () => 0,
      now: () => Date.UTC(2026, 11, 1) + 2 * day,
      sleep: () => new Promise<void>(() => {}),
    };
    const { names, call } = rig({ LNK_TOOL_X: server.url }, { folder, clock: later });
    assert.deepEqual(await names(), ["x__note"]);
    assert.equal(eraIn(folder), "2026");
    assert.equal((await call("x__note")).ok, true);
    assert.equal(server.asked.at(-1)!.session, undefined);
  });

  it("B80 a server of 2026-07-28 only: no initialize, no session id, nothing to end; the call carries thread and key", async () => {
    const server = await double({ era: "modern", instructions: "Be kind." });
    const { box, call } = rig({ LNK_TOOL_X: server.url });
    const { tools, instructions } = await box.offer();
    assert.deepEqual([tools.length, instructions[0]!.text], [1, "Be kind."]);
    assert.deepEqual(await call("x__note", {}, { key: "k1" }), { ok: true, text: "call 1" });
    await box.turnEnded("turn_1");
    await call("x__note", {}, { turn: "turn_2", key: "k2" });
    assert.deepEqual(["initialize", "DELETE", "GET"].map(server.count), [0, 0, 0]);
    assert.equal(server.count("server/discover"), 1, "what it said of itself serves the turns after");
    assert.deepEqual(server.calls.map(({ params }) => params!._meta!["link/key"]), ["k1", "k2"]);
  });

  it("B80 a server that changes its era between two turns is found out, in both directions, and every call is made once", async () => {
    for (const [before, after] of [["legacy", "modern"], ["modern", "legacy"]] as const) {
      const server = await double({ era: before });
      const { names, call, box } = rig({ LNK_TOOL_X: server.url });
      await names();
      await call("x__note");
      await box.turnEnded("turn_1");
      server.script.era = after;
      server.restart();
      assert.deepEqual(await call("x__note", {}, { turn: "turn_2" }), { ok: true, text: "call 2" }, after);
      assert.equal(server.calls.length, 2);
    }
  });

  it("B80 a server that never answers the question, or fails at it, is spoken to in the older era", async () => {
    for (
      const probe of [
        () => {},
        (x: { status(code: number): void }) => x.status(500),
        (x: { drop(): void }) => x.drop(),
      ]
    ) {
      const server = await double({ on: { "server/discover": probe as never } });
      const { names } = rig({ LNK_TOOL_X: server.url });
      assert.deepEqual(await names(), ["x__note"]);
    }
  });

  it("T1 the official server of 2026-07-28 takes our calls, headers from arguments included, and of 2025 as well", async () => {
    const seen: { era: string; header: string | null; given: unknown }[] = [];
    const handler = createMcpHandler(({ era, requestInfo }) => {
      const server = new McpServer({ name: "official", version: "1" }, { instructions: "Official." });
      const inputSchema = fromJsonSchema<{ region: string }>({
        type: "object",
        properties: { region: { type: "string", ...{ "x-mcp-header": "Region" } } },
        required: ["region"],
      });
      server.registerTool("ping", { description: "Answers.", inputSchema }, (given) => {
        seen.push({ era, header: requestInfo?.headers.get("mcp-param-region") ?? null, given });
        return { content: [{ type: "text", text: `pong ${given.region}` }] };
      });
      return server;
    });
    let reject2026 = false;
    const listener = getRequestListener(async (request) => {
      const body = request.method === "POST" ? await request.clone().text() : "";
      if (reject2026 && body.includes("server/discover")) return new Response("no", { status: 404 });
      return await handler.fetch(request);
    });
    const server = createServer(listener);
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    atEnd(async () => {
      server.closeAllConnections();
      server.close();
      await handler.close();
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
    for (const older of [false, true]) {
      reject2026 = older;
      const { names, call } = rig({ LNK_TOOL_X: url });
      assert.deepEqual(await names(), ["x__ping"]);
      assert.deepEqual(await call("x__ping", { region: "eu west" }), { ok: true, text: "pong eu west" });
    }
    assert.deepEqual(seen, [
      { era: "modern", header: "eu west", given: { region: "eu west" } },
      { era: "legacy", header: null, given: { region: "eu west" } },
    ]);
  });
});
