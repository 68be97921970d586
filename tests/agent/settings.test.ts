import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Failure, type Issue } from "../../src/errors.ts";
import { checkSpec, durationMs, effective, masked, type Spec } from "../../src/agent/settings.ts";
import { maskSpec, mergePatch, unmaskSpec } from "../../src/agent/spec_change.ts";
import { parseSet, parseSpec } from "../../src/agent/spec_toml.ts";

function issuesIn(run: () => unknown): Issue[] {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof Failure);
    assert.equal(error.code, "settings_invalid");
    return error.facts.issues as Issue[];
  }
  assert.fail("it was taken");
}

describe("settings", () => {
  it("an empty spec stands for the defaults", () => {
    const settings = effective(checkSpec({}));
    assert.deepEqual(settings, {
      model: { deadline: "30m" },
      window: { max: 0, unknown: 32768, compact_at: 0.75, margin: 0.05, answer: 0.25, save_notes: true },
      storage: { conversations: "log", sync: true, lease: "60s" },
      instructions: {},
      tools: {},
    });
  });

  it("an unknown key names the nearest known one, wherever that stands", () => {
    const nearest = (spec: unknown) => issuesIn(() => checkSpec(spec))[0]!.message;
    assert.match(nearest({ modl: {} }), /`model`/);
    assert.match(nearest({ window: { maxx: 1 } }), /`window\.max`/);
    assert.match(nearest({ window: { compactAt: 1 } }), /`window\.compact_at`/);
    assert.match(nearest({ compact_at: 1 }), /`window\.compact_at`/);
    assert.match(nearest({ storage: { conversation: "log" } }), /`storage\.conversations`/);
    assert.match(nearest({ instructions: { personna: "none" } }), /`instructions\.persona`/);
    assert.match(nearest(JSON.parse('{"__proto__":{}}')), /unknown key/);
  });

  it("all issues come at once, with their paths", () => {
    const issues = issuesIn(() =>
      checkSpec({
        modle: 1,
        widow: 2,
        window: { max: -1, compact_at: "sometimes" },
        model: { deadline: "soon", answer: 1.5 },
        storage: { sync: "no" },
      })
    );
    assert.deepEqual(issues.map((issue) => issue.path).sort(), [
      "model.answer",
      "model.deadline",
      "modle",
      "storage.sync",
      "widow",
      "window.compact_at",
      "window.max",
    ]);
  });

  it("what is wrong with an address is told without the address", () => {
    const spec = { tools: { files: "htp://user:hunter2@host" }, model: { url: "hunter2" } };
    const issues = issuesIn(() => checkSpec(spec));
    assert.equal(issues.length, 2);
    assert.ok(!JSON.stringify(issues).includes("hunter2"));
  });

  it("durations are texts such as 30m, or seconds", () => {
    const settings = effective(checkSpec({ model: { deadline: "90s" }, storage: { lease: 1 } }));
    assert.equal(durationMs(settings.model.deadline), 90_000);
    assert.equal(durationMs(settings.storage.lease), 1000);
    for (const deadline of ["0s", "-1m", "30", "1 week", "99999d", "", true]) {
      assert.equal(issuesIn(() => checkSpec({ model: { deadline } }))[0]!.path, "model.deadline");
    }
  });

  it("a driver has a table of its own, which only the driver knows", () => {
    const spec = checkSpec({ storage: { conversations: "gcs", gcs: { bucket: "b", anything: [1] } } });
    assert.deepEqual(effective(spec).storage.gcs, { bucket: "b", anything: [1] });
  });

  it("S9 a section is a file, a link, none, or both a source and a largest size; nothing leaves the files folder", () => {
    checkSpec({
      instructions: {
        base: "instructions/base.md",
        persona: "none",
        owner: "https://example.org/owner.md",
        notes: { max: 2048 },
        skills: { source: "", max: 8000 },
      },
    });
    for (const source of ["/etc/passwd", "../x", "a/../../b", "C:\\x", "a\\b", "a\0b"]) {
      assert.equal(issuesIn(() => checkSpec({ instructions: { base: source } })).length, 1, source);
    }
  });

  it("empty names are as if they were left out", () => {
    const { model } = effective(checkSpec({ model: { name: "", fallback: "", via: "", url: "" } }));
    assert.deepEqual(model, { deadline: "30m" });
  });
});

describe("spec changes", () => {
  it("the merge patch is RFC 7396's, by the cases of its appendix", () => {
    const cases: [unknown, unknown, unknown][] = [
      [{ a: "b" }, { a: "c" }, { a: "c" }],
      [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
      [{ a: "b" }, { a: null }, {}],
      [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
      [{ a: ["b"] }, { a: "c" }, { a: "c" }],
      [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
      [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
      [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
      [["a", "b"], ["c", "d"], ["c", "d"]],
      [{ a: "b" }, ["c"], ["c"]],
      [{ a: "foo" }, null, null],
      [{ a: "foo" }, "bar", "bar"],
      [{ e: null }, { a: 1 }, { e: null, a: 1 }],
      [[1, 2], { a: "b", c: null }, { a: "b" }],
      [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
    ];
    for (const [target, patch, result] of cases) assert.deepEqual(mergePatch(target, patch), result);
  });

  it("a patch of __proto__ changes nothing but is refused as an unknown key", () => {
    const merged = mergePatch({}, JSON.parse('{"__proto__":{"window":{"max":1}}}'));
    assert.equal(Object.getPrototypeOf(merged), Object.prototype);
    assert.equal(issuesIn(() => checkSpec(merged)).length, 1);
    assert.equal(({} as Spec).window, undefined);
  });

  it("a patch nested without end is refused, not a crash", () => {
    let deep = "1";
    for (let i = 0; i < 20_000; i++) deep = `{"a":${deep}}`;
    assert.throws(() => mergePatch({}, JSON.parse(deep)), { code: "invalid" });
  });

  const kept = checkSpec({
    model: { name: "openai/gpt-5.1", url: "https://key:secret@proxy/v1" },
    storage: {
      gcs: { bucket: "b", endpoint: "http://127.0.0.1:1", keyFile: "/k.json", nested: { token: "t" } },
    },
    tools: { files: "http://127.0.0.1:9/secret" },
  });

  it("secrets and addresses are shown masked, all else as it is", () => {
    assert.deepEqual(maskSpec(kept), {
      model: { name: "openai/gpt-5.1", url: masked },
      storage: { gcs: { bucket: "b", endpoint: masked, keyFile: masked, nested: { token: masked } } },
      tools: { files: masked },
    });
  });

  it("a masked value sent back changes nothing; one with nothing behind it is refused", () => {
    assert.deepEqual(unmaskSpec(maskSpec(kept), kept), kept);
    const added = { ...maskSpec(kept), tools: { files: masked, other: masked } };
    assert.deepEqual(issuesIn(() => unmaskSpec(added, kept)).map((issue) => issue.path), ["tools.other"]);
  });
});

describe("a spec in TOML", () => {
  it("is read with --set pairs over it, whose text values need no quotes", async () => {
    const spec = await parseSpec('[model]\nname = "a/b"\n[window]\nmax = 5', [
      "window.max=100000",
      "model.fallback=openai/gpt-5.1",
      "window.save_notes=false",
      'storage.gcs.bucket="b=c"',
    ]);
    assert.deepEqual(spec, {
      model: { name: "a/b", fallback: "openai/gpt-5.1" },
      window: { max: 100000, save_notes: false },
      storage: { gcs: { bucket: "b=c" } },
    });
  });

  it("a --set that is none is refused", async () => {
    for (const set of ["window.max", "=1", "window.=1", ".max=1"]) {
      await assert.rejects(parseSet(set), { code: "settings_invalid" }, set);
    }
  });

  it("broken TOML is told by line and column, without its text", async () => {
    await assert.rejects(parseSpec('[tools]\nfiles = "http://secret'), (error: Failure) => {
      assert.equal(error.code, "settings_invalid");
      assert.match(error.message, /line 2/);
      return !JSON.stringify(error.form()).includes("secret");
    });
  });
});
