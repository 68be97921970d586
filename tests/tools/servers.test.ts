// Which servers there are, and that nothing prints where they are.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { inspect } from "node:util";
import { serversOf } from "../../src/tools/servers.ts";
import { double, rig } from "./rig.ts";

const at = (name: string) => `http://127.0.0.1:9/${name}`;
const tools = (sources: Parameters<typeof serversOf>[0]) =>
  serversOf(sources).servers.map(({ tool }) => tool);

describe("servers", () => {
  it("T1 come from LNK_TOOL_<NAME> and the five of their own name, sorted by tool; empty ones are none", () => {
    const environment = {
      LNK_TOOL_WEATHER: at("w"),
      LNK_SCHEDULER: at("s"),
      LNK_RUN: at("r"),
      LNK_MEMORY: at("m"),
      LNK_FILE: at("f"),
      LNK_CODE: "",
      LNK_TOOL_OFF: undefined,
      LNK_MODEL_URL: at("no"),
      PATH: "/bin",
    };
    assert.deepEqual(tools({ environment }), ["file", "memory", "run", "scheduler", "weather"]);
  });

  it("T3 a team's memory is a tool of its own: LNK_TOOL_ATLAS_MEMORY is atlas_memory", () => {
    assert.deepEqual(tools({ environment: { LNK_TOOL_ATLAS_MEMORY: at("t"), LNK_MEMORY: at("m") } }), [
      "atlas_memory",
      "memory",
    ]);
  });

  it("T7 keeps the sessions of memory, run, file, code, the scheduler and task, and of no other", () => {
    const environment = Object.fromEntries(
      ["MEMORY", "RUN", "FILE", "CODE", "SCHEDULER"].map((name) => [`LNK_${name}`, at(name)]),
    );
    const { servers } = serversOf({
      environment: {
        ...environment,
        LNK_TOOL_TASK: at("t"),
        LNK_TOOL_X: at("x"),
        LNK_TOOL_A_MEMORY: at("a"),
      },
      settings: { agent: at("agent"), tool: at("tool") },
    });
    assert.deepEqual(servers.filter(({ keeps }) => keeps).map(({ tool }) => tool), [
      "code",
      "file",
      "memory",
      "run",
      "scheduler",
      "task",
    ]);
  });

  it("D4 settings count over the agent's table, and that over the environment", () => {
    const { servers } = serversOf({
      environment: { LNK_MEMORY: at("1"), LNK_TOOL_MEMORY: at("0"), LNK_FILE: at("1") },
      agent: { MEMORY: at("2"), run: at("2") },
      settings: { memory: at("3") },
    });
    assert.deepEqual(servers.map(({ tool, source }) => [tool, source]), [
      ["file", "environment"],
      ["memory", "settings"],
      ["run", "agent"],
    ]);
    assert.equal(servers[1]!.reach().url.pathname, "/3");
    const only = serversOf({ environment: { LNK_MEMORY: at("own"), LNK_TOOL_MEMORY: at("other") } });
    assert.equal(only.servers[0]!.reach().url.pathname, "/own");
  });

  it("refuses names that could not be told apart and addresses that are none, without saying them", () => {
    const { servers, refused } = serversOf({
      environment: {
        LNK_TOOL_A__B: at("a"),
        LNK_TOOL_C_: at("c"),
        LNK_TOOL_D: "file:///secret",
        LNK_TOOL_E: "hush-hush",
      },
    });
    assert.deepEqual(servers, []);
    assert.deepEqual(refused.map(({ name }) => name), [
      "LNK_TOOL_A__B",
      "LNK_TOOL_C_",
      "LNK_TOOL_D",
      "LNK_TOOL_E",
    ]);
    assert.doesNotMatch(JSON.stringify(refused), /secret|hush/);
  });

  it("a server prints without its address, however it is printed", () => {
    const { servers } = serversOf({
      settings: { memory: "http://ana:pass-word@host.example/s3cr3t-path-1?key=t0psecret" },
    });
    for (
      const print of [
        JSON.stringify(servers),
        inspect(servers, { depth: 9, showHidden: true }),
        String(servers),
      ]
    ) {
      assert.doesNotMatch(print, /host\.example|s3cr3t|t0psecret|pass-word/);
    }
    assert.match(servers[0]!.hash, /^[0-9a-f]{64}$/);
  });

  it("sends a user and password as a header, and the fragment's headers with each request", async () => {
    const server = await double();
    const address = server.url.replace("http://", "http://ana:pass%20word@") +
      "?key=t0psecret#X-Team=atlas&Authorization=Bearer+abc";
    const { names } = rig({ LNK_TOOL_X: address });
    assert.deepEqual(await names(), ["x__note"]);
    for (const { headers, path } of server.asked) {
      assert.equal(path, "/mcp?key=t0psecret");
      assert.equal(headers["x-team"], "atlas");
      assert.equal(headers.authorization, "Bearer abc");
    }
    const basic = rig({ LNK_TOOL_X: server.url.replace("http://", "http://ana:pass%20word@") });
    await basic.names();
    assert.equal(server.asked.at(-1)!.headers.authorization, `Basic ${btoa("ana:pass word")}`);
  });

  it("no address is in the file of lists, a notice, an offer or a result, whatever goes wrong", async () => {
    const secret = "s3cr3t-token-in-path";
    const server = await double({
      on: { "tools/call": (x) => x.status(418, `no: http://127.0.0.1${x.path} ${x.headers.authorization}`) },
    });
    const address = `${
      server.url.replace("/mcp", `/${secret}`)
    }?key=t0psecret#Authorization=Bearer+pass-word`;
    const { box, call, folder, told } = rig({
      LNK_TOOL_X: address,
      LNK_TOOL_DOWN: `http://127.0.0.1:1/${secret}`,
    });
    const offer = await box.offer({ bad: `http//${secret}` });
    const result = await call("x__note");
    const all = JSON.stringify([offer, result, told, folder.lists(), await box.states()]);
    assert.match(result.text, /HTTP 418/);
    assert.doesNotMatch(all, /s3cr3t|t0psecret|pass-word|127\.0\.0\.1/);
  });
});
