import assert from "node:assert/strict";
import { chmod, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Agent } from "../../src/agent/agent.ts";
import { keyIn } from "../../src/agent/key_file.ts";
import { newKey, ownerOf, sameKey } from "../../src/agent/keys.ts";

describe("keys", () => {
  it("A3 a key tells whose it is among all agents served, and nobody's tells nobody", () => {
    const agents = ["mia", "leo"].map((name) => ({ name, key: newKey() }) as Agent);
    assert.equal(ownerOf(agents[0]!.key, agents), agents[0]);
    assert.equal(ownerOf(agents[1]!.key, agents), agents[1]);
    assert.equal(ownerOf(newKey(), agents), undefined);
    assert.equal(ownerOf("", agents), undefined);
    assert.equal(sameKey("a", "a"), true);
    assert.equal(sameKey("a", "ab"), false);
  });
});

describe("the key's file", () => {
  let folder = "";
  before(async () => folder = await mkdtemp(join(tmpdir(), "lnk-key-")));
  after(() => rm(folder, { recursive: true }));

  it("is made at first use with 256 random bits and mode 0600, and read from then on", async () => {
    const path = join(folder, "first");
    const key = await keyIn(path);
    assert.match(key, /^[0-9a-f]{64}$/);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    assert.equal(await keyIn(path), key);
  });

  it("made by many at once, is one key for all, and nothing is left beside it", async () => {
    const path = join(folder, "many");
    const keys = await Promise.all(Array.from({ length: 20 }, () => keyIn(path)));
    assert.equal(new Set(keys).size, 1);
    assert.deepEqual((await readdir(folder)).filter((name) => name.startsWith("many")), ["many"]);
  });

  it("that others can read is closed again; that holds none is refused; a link is not followed", async () => {
    const open = join(folder, "open");
    await writeFile(open, `${newKey()}\n`);
    await chmod(open, 0o644);
    assert.equal(await keyIn(open), (await readFile(open, "utf8")).trim());
    assert.equal((await stat(open)).mode & 0o777, 0o600);
    await writeFile(join(folder, "empty"), "");
    await assert.rejects(keyIn(join(folder, "empty")), { code: "key_broken" });
    await symlink(open, join(folder, "link"));
    await assert.rejects(keyIn(join(folder, "link")), { code: "link_refused" });
  });
});
