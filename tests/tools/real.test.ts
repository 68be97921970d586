// Against servers that others wrote, over real sockets: the protocol's own reference servers, a test double of another project,
// and the official conformance suite for clients.

import { MCPMock } from "@copilotkit/aimock";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { limits } from "../../src/limits.ts";
import { runArguments } from "../contract/process.ts";
import { atEnd, rig, until } from "./rig.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const inModules = (path: string) => join(root, "node_modules", path);
const everything = inModules("@modelcontextprotocol/server-everything/dist/index.js");
const filesystem = inModules("@modelcontextprotocol/server-filesystem/dist/index.js");
const bridge = inModules("mcp-proxy/dist/bin/mcp-proxy.mjs");
const conformance = inModules("@modelcontextprotocol/conformance/dist/index.js");
const runtime = [process.execPath, ...runArguments(process.execPath)];

/** Runs a program of this runtime until the tests are over. */
function run(
  args: string[],
  env: Record<string, string> = {},
): { output(): string; ended: Promise<number | null> } {
  const [path, ...first] = runtime;
  const child = spawn(path!, [...first, ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => output += text);
  }
  const ended = new Promise<number | null>((done) => child.once("close", done));
  atEnd(() => {
    child.kill("SIGKILL");
    return ended;
  });
  return { output: () => output, ended };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

async function listening(port: number): Promise<void> {
  let answered = false;
  await until(() => {
    if (!answered) {
      fetch(`http://127.0.0.1:${port}/`).then((r) => r.body?.cancel()).then(() => answered = true, () => {});
    }
    return answered;
  }, 30_000);
}

describe("real servers", () => {
  it("server-everything: listed, called, its images named, its errors data, its long call waited for", async () => {
    const port = await freePort();
    run([everything, "streamableHttp"], { PORT: String(port) });
    await listening(port);
    const { box, call } = rig({ LNK_TOOL_EVERY: `http://127.0.0.1:${port}/mcp` });
    const { tools, instructions } = await box.offer();
    const names = tools.map(({ name }) => name);
    assert.deepEqual(names, [...names].sort());
    assert.ok(names.includes("every__get-tiny-image") && names.length > 10);
    assert.match(instructions[0]!.text, /Everything Server/);
    assert.deepEqual(await call("every__echo", { message: "¡hola!" }), { ok: true, text: "Echo: ¡hola!" });
    assert.match((await call("every__get-tiny-image")).text, /\[image: image\/png, 4033 bytes\]/);
    const { text } = await call("every__get-structured-content", { location: "Chicago" });
    assert.equal(text.match(/temperature/g)!.length, 1);
    const bad = await call("every__get-sum", { a: 1 });
    assert.equal(bad.ok, false);
    assert.match(bad.text, /Invalid arguments/);
    const long = await call("every__trigger-long-running-operation", { duration: 1, steps: 4 });
    assert.match(long.text, /completed/);
    const big = await call("every__echo", { message: "x".repeat(40_000) });
    assert.equal(big.cut, 40_006);
    assert.ok(big.text.length <= limits.resultBytesMax);
    await box.turnEnded("turn_1");
    assert.match((await call("every__echo", { message: "again" }, { turn: "turn_2" })).text, /again/);
  });

  it("server-filesystem, a stdio server behind the bridge that docs/tools.md names: files read, refusals as data", async () => {
    const folder = mkdtempSync(join(tmpdir(), "lnk-fs-"));
    atEnd(async () => rmSync(folder, { recursive: true, force: true }));
    writeFileSync(join(folder, "a.txt"), "hello\n");
    const port = await freePort();
    run([
      bridge,
      "--port",
      String(port),
      "--host",
      "127.0.0.1",
      "--server",
      "stream",
      "--",
      ...runtime,
      filesystem,
      folder,
    ]);
    await listening(port);
    const { call, names } = rig({ LNK_TOOL_FS: `http://127.0.0.1:${port}/mcp` });
    assert.ok((await names()).includes("fs__read_text_file"));
    assert.deepEqual(await call("fs__read_text_file", { path: join(folder, "a.txt") }), {
      ok: true,
      text: "hello\n",
    });
    const refused = await call("fs__read_text_file", { path: "/etc/passwd" });
    assert.equal(refused.ok, false);
    assert.match(refused.text, /Access denied/);
  });

  it("aimock: a server that another project wrote is listed and called", async () => {
    const mock = new MCPMock({ port: 0 });
    mock.addTool({
      name: "weather",
      description: "Tells it.",
      inputSchema: { type: "object", properties: { city: { type: "string" } } },
    });
    mock.onToolCall("weather", (given) => `Sun in ${(given as { city: string }).city}`);
    mock.addTool({ name: "broken" });
    mock.onToolCall("broken", () => {
      throw new Error("no wind");
    });
    const url = await mock.start();
    atEnd(() => mock.stop());
    const { box, call, names } = rig({ LNK_TOOL_SKY: url });
    assert.deepEqual(await names(), ["sky__broken", "sky__weather"]);
    assert.deepEqual(await call("sky__weather", { city: "Lima" }), { ok: true, text: "Sun in Lima" });
    assert.equal((await call("sky__broken")).ok, false);
    assert.equal(mock.getSessions().size, 1);
    await box.turnEnded("turn_1");
    assert.equal(mock.getSessions().size, 0);
  });

  for (const scenario of ["initialize", "tools_call", "sse-retry"]) {
    it(`the conformance suite for clients passes: ${scenario}`, async () => {
      const command = [...runtime, join("tests", "tools", "conformance_client.ts")].join(" ");
      const suite = run([conformance, "client", "--command", command, "--scenario", scenario]);
      assert.equal(await suite.ended, 0, suite.output());
      assert.match(suite.output(), /OVERALL: PASSED/);
    });
  }
});
