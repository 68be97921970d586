// The SQLite driver under what happens to a file that others use, too: locks, links, foreign and damaged files, a full disk.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { dirname, join } from "node:path";
import { after, describe, it } from "node:test";
import { DatabaseSync } from "node:sqlite";
import { systemClock } from "../../src/clock.ts";
import { limits } from "../../src/limits.ts";
import { agentPaths, threadFolder } from "../../src/paths.ts";
import { openDriver } from "../../drivers/sqlite/mod.ts";
import { all, each, fill, refused } from "../contract/conversations.ts";
import { driverPlace, loadPartsOf } from "../contract/drivers.ts";
import { message, messages } from "../contract/events.ts";
import { temporaryFolder } from "../contract/places.ts";
import { start } from "../contract/process.ts";

const thread = "telegram:42";
const homes: string[] = [];
after(() => homes.forEach((home) => fs.rmSync(home, { recursive: true, force: true })));

/** A home of its own, the file in it, and the driver on it. */
function place({ home = temporaryFolder(), waitMs }: { home?: string; waitMs?: number } = {}) {
  homes.push(home);
  const paths = agentPaths("mia", { home });
  const file = { root: paths.own, path: paths.driver("sqlite") };
  const open = () =>
    openDriver({ ...loadPartsOf({ driver: "sqlite", home }), file, threadFolder }, { waitMs });
  return { paths, file: file.path, open, driver: open() };
}

const append = (seq: number, text = "x") => ({ seq, lines: [message(seq, text)], token: `t${seq}${text}` });

/** Another program that has the whole file to itself. */
function lockWhole(file: string): { free(): void } {
  const database = new DatabaseSync(file);
  database.exec("BEGIN EXCLUSIVE");
  return {
    free() {
      database.exec("ROLLBACK");
      database.close();
    },
  };
}

describe("sqlite", () => {
  it("B16 C10 a file that another has locked for two seconds is waited for, and nothing else stands still", async () => {
    const { driver, file } = place();
    await driver.append(thread, append(1));
    const other = lockWhole(file);
    let ticks = 0;
    const ticking = setInterval(() => ticks++, 20);
    setTimeout(() => other.free(), 2000);
    await driver.append(thread, append(2));
    clearInterval(ticking);
    assert.ok(ticks > 10, `the process went on meanwhile (${ticks} ticks)`);
    assert.deepEqual(await all(driver, thread), [message(1, "x"), message(2, "x")]);
    await driver.close();
  });

  it("B16 C10 a file locked past the bound is told as busy, and nothing is lost or written late", async () => {
    const { driver, file, open } = place({ waitMs: 100 });
    await driver.append(thread, append(1));
    const other = lockWhole(file);
    const error = await refused(driver.append(thread, append(2, "refused")), "store_busy");
    assert.match(error.message, /events\.sqlite/);
    await refused(driver.documents.swap(thread, "tools", null, "[]"), "store_busy");
    await refused(driver.put("telegram:7", each(messages(3)), {}), "store_busy");
    await refused(driver.forget(thread), "store_busy");
    await refused(open().append(thread, append(2, "refused")), "store_busy");
    other.free();
    await driver.append(thread, append(2, "again"));
    await driver.close();
    assert.deepEqual(await all(open(), thread), [message(1, "x"), message(2, "again")]);
  });

  it("B17 four processes append to four conversations of one agent at once: none is refused, all is there", async () => {
    const there = await driverPlace("sqlite");
    const store = await there.open();
    const threads = [0, 1, 2, 3].map((i) => `telegram:${i}`);
    await fill(store, "telegram:0", messages(1));
    await store.forget("telegram:0");
    const others = threads.map((thread, i) =>
      start(there, { kind: "append", thread, count: 50, who: `w${i}` })
    );
    const numbers = Array.from({ length: 50 }, (_, i) => i + 1);
    for (const other of others) assert.deepEqual(await other.line(), { won: numbers });
    for (const other of others) await other.ended;
    for (const thread of threads) assert.equal((await all(store, thread)).length, 50);
    await there.remove();
  });

  it("B17 a reader that takes its time keeps nobody from writing, and the write-ahead file small", async () => {
    const { driver, file } = place();
    const text = "long ".repeat(20_000);
    await driver.append(thread, append(1, text));
    await driver.append(thread, append(2, text));
    await driver.append(thread, append(3, text));
    const reader = driver.read(thread, 1)[Symbol.asyncIterator]();
    await reader.next();
    for (let seq = 4; seq <= 300; seq++) await driver.append(thread, append(seq, text));
    const { size } = fs.statSync(`${file}-wal`);
    assert.ok(size < 2 * limits.walBytesKept, `${size} bytes`);
    for (const seq of [2, 3]) assert.equal(JSON.parse((await reader.next()).value).seq, seq);
    assert.equal((await reader.next()).done, true, "it ends where it ended when it began");
    await driver.close();
    assert.deepEqual(fs.readdirSync(dirname(file)), ["events.sqlite"]);
  });

  it("a conversation replaced while it is read is told, never read on as another", async () => {
    const { driver } = place();
    await driver.put(thread, each(messages(40).map((_, i) => message(i + 1, "old ".repeat(20_000)))), {});
    const reader = driver.read(thread, 1)[Symbol.asyncIterator]();
    await reader.next();
    await driver.put(thread, each(messages(40)), { replace: true });
    const rest = async () => {
      for (let next = await reader.next(); !next.done; next = await reader.next()) {
        assert.match(next.value, /old/);
      }
    };
    const error = await refused(rest(), "store_failed");
    assert.match(error.message, /replaced/);
    await driver.close();
  });

  it("a number that is missing is told, by place", async () => {
    const { driver, file } = place();
    await driver.put(thread, each(messages(40)), {});
    const database = new DatabaseSync(file);
    database.exec("DELETE FROM events WHERE seq = 20");
    database.close();
    for (const ask of [() => all(driver, thread), () => driver.readBack(thread, undefined, 32)]) {
      const error = await refused(ask(), "log_damaged");
      assert.match(error.message, /telegram:42.*number 20 is missing/);
    }
    assert.deepEqual(await driver.readBack(thread, undefined, 20), messages(40).slice(20));
    await driver.close();
  });

  it("what was forgotten is gone from the file, and what a crash left half put in place goes later", async () => {
    const { driver, file } = place();
    await driver.append("telegram:1", append(1));
    await driver.put(thread, each([message(1, "a secret that must not stay")]), {});
    const database = new DatabaseSync(file);
    database.exec("INSERT INTO threads (staged) VALUES (1)");
    database.exec("INSERT INTO events SELECT max(id), 1, '{}', NULL FROM threads");
    await driver.forget(thread);
    await driver.put("telegram:2", each(messages(2)), {});
    assert.equal(database.prepare("SELECT count(*) AS count FROM events").get()?.count, 3);
    assert.equal(database.prepare("SELECT count(*) AS count FROM threads").get()?.count, 2);
    database.close();
    await driver.close();
    assert.ok(!fs.readFileSync(file).includes("a secret that must not stay"));
  });

  it("reading makes no file, and the one that writing makes is its owner's alone", async () => {
    const { driver, file } = place();
    assert.equal(await driver.last(thread), 0);
    assert.deepEqual(await driver.readBack(thread, undefined, 1), []);
    assert.deepEqual(await driver.threads(undefined, 10), []);
    assert.equal(await driver.documents.get(thread, "turn"), undefined);
    await driver.forget(thread);
    assert.ok(!fs.existsSync(file));
    await driver.append(thread, append(1));
    assert.equal(fs.statSync(file).mode & 0o777, 0o600);
    await driver.close();
  });

  it("S9 a symbolic link in the place of the file, of one beside it or of a folder above is refused", async () => {
    const elsewhere = temporaryFolder();
    homes.push(elsewhere);
    const links: ((paths: ReturnType<typeof agentPaths>) => string)[] = [
      (paths) => paths.driver("sqlite"),
      (paths) => `${paths.driver("sqlite")}-wal`,
      (paths) => paths.chats,
      (paths) => paths.files,
    ];
    for (const linkOf of links) {
      const { driver, paths } = place();
      const link = linkOf(paths);
      fs.mkdirSync(dirname(link), { recursive: true });
      fs.symlinkSync(join(elsewhere, "target"), link);
      if (link === paths.chats || link === paths.files) {
        fs.mkdirSync(join(elsewhere, "target/chats"), { recursive: true });
      }
      await refused(driver.append(thread, append(1)), "link_refused");
      assert.deepEqual(filesBelow(elsewhere), []);
      fs.rmSync(join(elsewhere, "target"), { recursive: true, force: true });
    }
  });

  it("a file that is no database, or another program's, is told and left as it was", async () => {
    const kinds: [string, (file: string) => void, "log_damaged" | "store_failed"][] = [
      ["text", (file) => fs.writeFileSync(file, "no database\n".repeat(500)), "log_damaged"],
      ["a folder", (file) => fs.mkdirSync(file), "store_failed"],
      ["another program's", (file) => {
        const database = new DatabaseSync(file);
        database.exec("CREATE TABLE theirs (a)");
        database.close();
      }, "store_failed"],
      ["a later version's", (file) => {
        const database = new DatabaseSync(file);
        database.exec("PRAGMA application_id = 0x6c6e6b31; PRAGMA user_version = 9; CREATE TABLE x (a)");
        database.close();
      }, "store_failed"],
    ];
    for (const [kind, make, code] of kinds) {
      const { driver, file } = place();
      fs.mkdirSync(dirname(file), { recursive: true });
      make(file);
      const before = fs.statSync(file).isFile() ? fs.readFileSync(file) : undefined;
      const error = await refused(driver.append(thread, append(1)), code);
      assert.match(error.message, /events\.sqlite/, kind);
      await refused(driver.last(thread), code);
      if (before) assert.deepEqual(fs.readFileSync(file), before, kind);
    }
  });

  const noMount = whyNoMount();
  it(
    "a full disk is told as full, the event is refused, and all before it is whole",
    { skip: noMount },
    async () => {
      const home = temporaryFolder();
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=2m", "none", home]);
      try {
        const { driver } = place({ home });
        let seq = 0;
        const filling = async () => {
          for (;;) {
            await driver.append(thread, append(seq + 1, "y".repeat(50_000)));
            seq++;
          }
        };
        await refused(filling(), "store_full");
        assert.ok(seq > 3, `${seq} events`);
        await refused(driver.put("telegram:7", each(messages(2000)), {}), "store_full");
        const lines = await all(driver, thread);
        assert.deepEqual(lines, lines.map((_, i) => message(i + 1, "y".repeat(50_000))));
        assert.equal(lines.length, seq);
        await driver.close();
      } finally {
        execFileSync("umount", [home]);
      }
    },
  );

  it("D6 a document's age is told by the clock of the process that asks the database", async () => {
    const { driver, paths } = place();
    await driver.documents.swap(thread, "turn", null, "{}");
    await driver.close();
    let now = systemClock.now();
    const later = openDriver({
      ...loadPartsOf({ driver: "sqlite", home: dirname(paths.own) }),
      file: { root: paths.own, path: paths.driver("sqlite") },
      threadFolder,
      clock: { ...systemClock, now: () => now },
    });
    now += 61_000;
    const age = (await later.documents.get(thread, "turn"))?.ageMs as number;
    assert.ok(age >= 61_000 && age < 121_000, `${age} ms`);
    now -= 600_000;
    assert.equal((await later.documents.get(thread, "turn"))?.ageMs, 0, "a clock set back makes none older");
    await later.close();
  });
});

function filesBelow(folder: string): string[] {
  return fs.readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile()).map((entry) => entry.name);
}

/** Why no small disk can be mounted for a test; false where one can. */
function whyNoMount(): string | false {
  const folder = temporaryFolder();
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "none", folder], { stdio: "ignore" });
    execFileSync("umount", [folder]);
    return false;
  } catch {
    return "a small disk cannot be mounted here (it takes root on Linux)";
  } finally {
    fs.rmdirSync(folder);
  }
}
