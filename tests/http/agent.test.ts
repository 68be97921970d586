import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { masked } from "../../src/agent/settings.ts";
import { answer, makeRig } from "./rig.ts";

describe("what a process and an agent are", () => {
  it("/healthz counts the agents and those awake, and is 503 once the process ends", async () => {
    const rig = makeRig();
    const health = async () => {
      const response = await rig.ask("GET", "/healthz", { key: null });
      return [response.status, await response.json()];
    };
    assert.deepEqual(await health(), [200, { ok: true, version: "0.0.0-test", agents: 2, awake: 2 }]);
    await rig.ask("POST", "/agents/mia/_link/sleep");
    assert.deepEqual(await health(), [200, { ok: true, version: "0.0.0-test", agents: 2, awake: 1 }]);
    void rig.handler.drain();
    const [status, body] = await health();
    assert.deepEqual([status, body.ok, body.error.code], [503, false, "draining"]);
  });

  it("GET /agents/AGENT says what answers", async () => {
    const rig = makeRig(["mia"], { spec: { model: { name: "anthropic/claude-opus-4-5" } } });
    rig.logs.set("a:1", ["{}"]);
    const response = await rig.ask("GET", "/agents/mia");
    assert.deepEqual(await response.json(), {
      agent: "mia",
      harness: "link",
      version: "0.0.0-test",
      asp: "asp/1",
      state: "awake",
      model: "anthropic/claude-opus-4-5",
      storage: "log",
      conversations: 1,
    });
    const unset = await (await makeRig().ask("GET", "/agents/mia")).json();
    assert.equal(unset.model, null);
  });
});

describe("sleep", () => {
  it("A5 an agent asleep stays served; only a turn wakes it", async () => {
    const rig = makeRig();
    const asleep = await rig.ask("POST", "/agents/mia/_link/sleep");
    assert.deepEqual(await asleep.json(), { state: "asleep", awake: 1 });
    const state = async () => (await (await rig.ask("GET", "/agents/mia")).json()).state;
    for (const path of ["/asp/conversations", "/asp/settings"]) await rig.ask("GET", `/agents/mia${path}`);
    await rig.ask("POST", "/agents/mia/_link/recover");
    await rig.ask("POST", "/agents/mia/asp/end", { body: { thread: "a:b" } });
    await rig.ask("POST", "/agents/mia/asp/turn", { body: { thread: "a:b", message: { text: "" } } });
    assert.equal(await state(), "asleep");
    rig.script = (caller) => caller.tell(answer);
    await rig.ask("POST", "/agents/mia/asp/turn", { body: { thread: "a:b", message: { text: "Hi" } } });
    assert.equal(await state(), "awake");
  });

  it("is refused while a turn runs", async () => {
    const rig = makeRig();
    rig.running = 1;
    const response = await rig.ask("POST", "/agents/mia/_link/sleep");
    assert.equal(response.status, 409);
    assert.equal((await response.json()).error.code, "turn_running");
  });
});

describe("the settings' doors", () => {
  const path = "/agents/mia/asp/settings";
  const spec = {
    model: { url: "http://key:secret@127.0.0.1:1/v1" },
    tools: { files: "http://127.0.0.1:9/secret" },
  };

  it("D4 show what is kept, or with `effective` what stands, secrets and addresses masked", async () => {
    const rig = makeRig(["mia"], { spec });
    const kept = await rig.ask("GET", path);
    const text = await kept.text();
    assert.deepEqual(JSON.parse(text), { model: { url: masked }, tools: { files: masked } });
    const whole = await (await rig.ask("GET", `${path}?effective=true`)).json();
    assert.equal(whole.window.unknown, 32768);
    assert.equal(whole.model.deadline, "30m");
    assert.equal(whole.tools.files, masked);
  });

  it("D4 PATCH merges and counts at once; a masked value sent back changes nothing; 200 with what stands then", async () => {
    const rig = makeRig(["mia"], { spec });
    const shown = await (await rig.ask("GET", path)).json();
    const response = await rig.ask("PATCH", path, { body: { ...shown, window: { max: 100000 } } });
    assert.equal(response.status, 200);
    assert.deepEqual(await response.json(), { ...shown, window: { max: 100000 } });
    const settings = await rig.agents.get("mia")!.settings();
    assert.equal(settings.window.max, 100000);
    assert.equal(settings.tools.files, spec.tools.files);
    await rig.ask("PATCH", path, { body: { tools: { files: null }, window: null } });
    assert.deepEqual(await (await rig.ask("GET", path)).json(), { model: { url: masked }, tools: {} });
  });

  it("PUT replaces the whole", async () => {
    const rig = makeRig(["mia"], { spec });
    const response = await rig.ask("PUT", path, { body: { storage: { conversations: "sqlite" } } });
    assert.deepEqual(await response.json(), { storage: { conversations: "sqlite" } });
    assert.equal((await rig.agents.get("mia")!.settings()).model.url, undefined);
  });

  it("an unknown key is 400 and names the nearest known one; nothing is changed", async () => {
    const rig = makeRig(["mia"], { spec });
    for (const method of ["PUT", "PATCH"]) {
      const response = await rig.ask(method, path, { body: { window: { maximum: 5 } } });
      assert.equal(response.status, 400);
      const { error } = await response.json();
      assert.equal(error.code, "settings_invalid");
      assert.equal(error.issues[0].path, "window.maximum");
      assert.match(error.issues[0].message, /`window\.max`|`window\.margin`/);
      assert.match(error.issues[0].message, /`window\.ma/);
    }
    assert.equal((await rig.ask("PATCH", path, { raw: "no json" })).status, 400);
    assert.equal((await rig.ask("PATCH", path, { body: null })).status, 400);
    assert.equal((await rig.ask("PATCH", path, { body: [] })).status, 400);
    assert.deepEqual(await rig.agents.get("mia")!.config.spec(), spec);
  });
});
