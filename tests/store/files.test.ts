// The agent's other files: whole or not at all, inside of their root or not at all.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fs from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { randomIds, systemClock } from "../../src/clock.ts";
import { failedBy } from "../../src/errors.ts";
import { silent } from "../../src/notices.ts";
import { agentPaths } from "../../src/paths.ts";
import { openFolderStore } from "../../src/store/folder.ts";
import { fill, refused } from "../contract/conversations.ts";
import { messages } from "../contract/events.ts";
import { temporaryFolder } from "../contract/places.ts";
import { Died, dyingDisk } from "./disks.ts";

const homes: string[] = [];
after(() => homes.forEach((home) => fs.rmSync(home, { recursive: true, force: true })));

const bytes = (text: string) => new TextEncoder().encode(text);
const hash = (text: string) => createHash("sha256").update(text).digest("hex");

function opened(steps = Infinity) {
  const home = temporaryFolder();
  homes.push(home);
  const paths = agentPaths("mia", { home });
  const open = (disk?: Parameters<typeof openFolderStore>[0]["disk"]) =>
    openFolderStore({
      agent: "mia",
      where: { home },
      clock: systemClock,
      ids: randomIds,
      notify: silent,
      disk,
    });
  return { home, paths, open, store: open(steps === Infinity ? undefined : dyingDisk(paths.own, steps)) };
}

describe("files", () => {
  it("S4 a file is written, read, listed in order of path and removed", async () => {
    const { files } = opened().store;
    assert.equal(await files.read("memory/notes.md"), undefined);
    assert.deepEqual(await files.list(""), []);
    await files.write("skills/b/SKILL.md", bytes("b"));
    await files.write("skills/a/SKILL.md", bytes("a"), { mode: 0o640 });
    await files.write("memory/notes.md", new Uint8Array([0, 255, 10]));
    assert.deepEqual(await files.read("memory/notes.md"), new Uint8Array([0, 255, 10]));
    const listed = await files.list("");
    assert.deepEqual(listed.map(({ path, bytes, mode }) => [path, bytes, mode]), [
      ["memory/notes.md", 3, 0o600],
      ["skills/a/SKILL.md", 1, 0o640],
      ["skills/b/SKILL.md", 1, 0o600],
    ]);
    assert.deepEqual((await files.list("skills/a")).map(({ path }) => path), ["skills/a/SKILL.md"]);
    assert.deepEqual(await files.list("nothing/here/"), []);
    await files.delete("skills/a/SKILL.md");
    await files.delete("skills/a/SKILL.md");
    assert.equal(await files.read("skills/a/SKILL.md"), undefined);
    assert.equal(await files.read("skills"), undefined);
  });

  it("S14 a file's version changes whenever the file does", async () => {
    const { store: { files }, paths } = opened();
    const seen = new Set<string>();
    for (const text of ["one", "two", "two", "three"]) {
      await files.write("a", bytes(text));
      seen.add((await files.list("a"))[0]!.version);
    }
    fs.writeFileSync(join(paths.files, "a"), "by hand");
    seen.add((await files.list("a"))[0]!.version);
    assert.equal(seen.size, 5);
    assert.equal((await files.list("a"))[0]!.version, [...seen].at(-1));
  });

  it("a write that expects another file than is there is refused, and changes nothing", async () => {
    const { own } = opened().store;
    await refused(own.write("config.json", bytes("{}"), { expect: hash("other") }), "exists");
    await own.write("config.json", bytes("{}"), { expect: null });
    await refused(own.write("config.json", bytes("1"), { expect: null }), "exists");
    await own.write("config.json", bytes("2"), { expect: hash("{}") });
    const both = await Promise.allSettled(
      ["3", "4"].map((text) => own.write("config.json", bytes(text), { expect: hash("2") })),
    );
    assert.deepEqual(both.map(({ status }) => status), ["fulfilled", "rejected"]);
    assert.deepEqual(await own.read("config.json"), bytes("3"));
  });

  it("no path leaves the root or reaches what the harness keeps for itself", async () => {
    const { store: { own, files, conversations }, paths } = opened();
    await fill(conversations, "telegram:42", messages(1));
    fs.writeFileSync(paths.key, "secret");
    const bad = [
      "../config.json",
      "/etc/passwd",
      "a/../../b",
      "a//b",
      "./a",
      "",
      "a/",
      "a\0b",
      "a\\..\\b",
      "\ud83d",
    ];
    for (const path of [...bad, "chats/telegram-42/events.jsonl", "chats"]) {
      await refused(files.read(path), "invalid");
      await refused(files.write(path, bytes("x")), "invalid");
      await refused(files.delete(path), "invalid");
    }
    for (const path of [...bad, "key", "lock", "turns/telegram-42", "files/AGENTS.md"]) {
      await refused(own.read(path), "invalid");
      await refused(own.write(path, bytes("x")), "invalid");
    }
    assert.deepEqual(await files.list(""), []);
    assert.deepEqual(await own.list(""), []);
  });

  it("S9 a symbolic link is neither read, listed, written through nor walked into", async () => {
    const { store: { files }, paths, home } = opened();
    fs.mkdirSync(join(home, "outside"), { recursive: true });
    fs.mkdirSync(paths.files, { recursive: true });
    fs.writeFileSync(join(home, "outside", "secret"), "secret");
    fs.symlinkSync(join(home, "outside"), join(paths.files, "memory"));
    fs.symlinkSync(join(home, "outside", "secret"), join(paths.files, "AGENTS.md"));
    for (const path of ["memory/secret", "AGENTS.md"]) {
      await refused(files.read(path), "link_refused");
      await refused(files.delete("memory/secret"), "link_refused");
    }
    await refused(files.write("memory/new", bytes("x")), "link_refused");
    assert.deepEqual(await files.list(""), []);
    await refused(files.list("memory/"), "link_refused");
    // The link itself is replaced, not followed.
    await files.write("AGENTS.md", bytes("mine"));
    assert.equal(fs.readFileSync(join(home, "outside", "secret"), "utf8"), "secret");
    assert.deepEqual(await files.read("AGENTS.md"), bytes("mine"));
    assert.deepEqual(fs.readdirSync(join(home, "outside")), ["secret"]);
  });

  it("a write that was killed at any step leaves the old file or the new one, and nothing else in lists", async () => {
    const { open, paths } = opened();
    await open().files.write("a/b.md", bytes("old"));
    for (let steps = 0;; steps++) {
      const done = await open(dyingDisk(paths.own, steps)).files.write("a/b.md", bytes("new")).then(
        () => true,
        (error) => {
          assert.ok(error instanceof Died, error);
          return false;
        },
      );
      const { files } = open();
      assert.ok(["old", "new"].includes(new TextDecoder().decode(await files.read("a/b.md"))));
      assert.deepEqual((await files.list("")).map(({ path }) => path), ["a/b.md"]);
      if (done) break;
    }
  });

  it("a file over the bound is refused, not read half", async () => {
    const { store: { files }, paths } = opened();
    fs.mkdirSync(paths.files, { recursive: true });
    const file = fs.openSync(join(paths.files, "big"), "w");
    fs.ftruncateSync(file, 65 * 1024 * 1024);
    fs.closeSync(file);
    const error = await files.read("big").then(() => undefined, (error) => error);
    assert.ok(failedBy(error, "store_failed"));
    assert.match(error.message, /over/);
  });
});
