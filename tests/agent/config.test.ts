import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import { configIn, configInMemory } from "../../src/agent/config.ts";
import { masked } from "../../src/agent/settings.ts";
import { Failure } from "../../src/errors.ts";
import type { FileStore } from "../../src/store/seams.ts";

/** Files in memory. `before` runs ahead of each write, as another process would. */
function files(first: Record<string, string> = {}, before: () => void = () => {}) {
  const held = new Map(Object.entries(first));
  const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
  const store: FileStore = {
    read: async (path) => held.has(path) ? new TextEncoder().encode(held.get(path)) : undefined,
    async write(path, bytes, options) {
      before();
      const there = held.get(path);
      const is = there === undefined ? null : sha256(there);
      if (options?.expect !== undefined && options.expect !== is) throw new Failure("exists");
      held.set(path, new TextDecoder().decode(bytes));
    },
    list: async () => [],
    delete: async (path) => void held.delete(path),
  };
  return { store, held };
}

describe("config.json", () => {
  it("D4 a change made between two reads counts from the next", async () => {
    const { store, held } = files();
    const config = configIn(store);
    assert.equal((await config.settings()).window.max, 0);
    held.set("config.json", '{"window":{"max":7}}');
    assert.equal((await config.settings()).window.max, 7);
    await config.patch({ window: { max: 8 } });
    assert.equal((await config.settings()).window.max, 8);
    assert.equal(held.get("config.json"), '{\n  "window": {\n    "max": 8\n  }\n}\n');
  });

  it("unchanged bytes are not parsed again", async () => {
    const { store } = files({ "config.json": '{"window":{"max":7}}' });
    const config = configIn(store);
    assert.equal(await config.settings(), await config.settings());
  });

  it("a broken one is told with its file and reason, never its text, and can be replaced but not patched", async () => {
    for (
      const [text, why] of [['{"tools":{"a":"http://secret"', /not JSON/], [
        '{"widow":{}}',
        /widow.*`window`/,
      ]] as const
    ) {
      const { store } = files({ "config.json": text });
      const config = configIn(store);
      await assert.rejects(config.settings(), (error: Failure) => {
        assert.equal(error.code, "settings_broken");
        assert.match(error.message, /config\.json/);
        assert.match(error.message, why);
        return !error.message.includes("secret");
      });
      await assert.rejects(config.patch({}), { code: "settings_broken" });
      await config.put({ window: { max: 1 } });
      assert.equal((await config.settings()).window.max, 1);
    }
  });

  it("a writer in between loses nothing: the change is made again on what it wrote", async () => {
    let meanwhile = true;
    const { store, held } = files({ "config.json": "{}" }, () => {
      if (meanwhile) held.set("config.json", '{"model":{"name":"theirs"}}');
      meanwhile = false;
    });
    assert.deepEqual(await configIn(store).patch({ window: { max: 3 } }), {
      model: { name: "theirs" },
      window: { max: 3 },
    });
  });

  it("an invalid change changes nothing", async () => {
    const { store, held } = files({ "config.json": "{}" });
    await assert.rejects(configIn(store).patch({ window: { mix: 3 } }), { code: "settings_invalid" });
    await assert.rejects(configIn(store).put([]), { code: "settings_invalid" });
    assert.equal(held.get("config.json"), "{}");
  });

  it("A7 a unit's spec is changed in memory the same way", async () => {
    const config = configInMemory({ tools: { memory: "http://127.0.0.1:1/m" } });
    await config.patch({ tools: { memory: masked }, window: { max: 9 } });
    assert.equal((await config.settings()).tools.memory, "http://127.0.0.1:1/m");
    assert.equal((await config.settings()).window.max, 9);
    await assert.rejects(config.put({ nope: 1 }), { code: "settings_invalid" });
  });
});
