// The log under what happens to files: writes cut short, blank and foreign bytes, flipped bits, full and read-only disks, links.

import assert from "node:assert/strict";
import fs from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { after, describe, it } from "node:test";
import { randomIds, systemClock } from "../../src/clock.ts";
import { failedBy, Failure } from "../../src/errors.ts";
import { agentPaths } from "../../src/paths.ts";
import { openFolderStore } from "../../src/store/folder.ts";
import { isTorn } from "../../src/store/lines.ts";
import type { ConversationStore } from "../../src/store/seams.ts";
import { all, fill, refused } from "../contract/conversations.ts";
import { message, messages } from "../contract/events.ts";
import { temporaryFolder } from "../contract/places.ts";
import { countingDisk, smallDisk } from "./disks.ts";

const thread = "telegram:42";
const homes: string[] = [];
after(() => homes.forEach((home) => fs.rmSync(home, { recursive: true, force: true })));

/** An agent's home and its store, opened as often as wanted. */
function place() {
  const home = temporaryFolder();
  homes.push(home);
  const paths = agentPaths("mia", { home });
  const notices: string[] = [];
  const open = (disk?: Parameters<typeof openFolderStore>[0]["disk"], sync = false) =>
    openFolderStore({
      agent: "mia",
      where: { home },
      clock: systemClock,
      ids: randomIds,
      notify: (_, sentence) => notices.push(sentence),
      storage: () => ({ way: "log", sync }),
      disk,
    });
  return { home, paths, notices, open, ...paths.conversation(thread) };
}

/** A place whose log holds these bytes. */
function holding(bytes: string | Uint8Array) {
  const made = place();
  fs.mkdirSync(made.folder, { recursive: true });
  fs.writeFileSync(made.log, bytes);
  return made;
}

async function next(store: ConversationStore, text = "next"): Promise<number> {
  const seq = await store.last(thread) + 1;
  try {
    await store.append(thread, { seq, lines: [message(seq, text)], token: "next" });
    return seq;
  } catch (error) {
    // A whole last line that only lacked its end counts once it is ended.
    if (!failedBy(error, "seq_taken")) throw error;
    const { next } = error.facts as { next: number };
    await store.append(thread, { seq: next, lines: [message(next, text)], token: "next" });
    return next;
  }
}

describe("log", () => {
  it("B01 cut at every byte of its last line, the log loses that event alone and takes the next", async () => {
    const lines = [
      message(1, "one"),
      message(2, 'zwei 😀 é \u2028 \\" {}[]', { n: [1.5e3, true, null, { a: "b" }] }),
    ];
    const whole = Buffer.from(lines.join("\n") + "\n"), start = whole.indexOf(0x0a) + 1;
    for (let cut = start; cut <= whole.length; cut++) {
      const { open, log, torn, notices } = holding(whole.subarray(0, cut));
      const { conversations: store } = open();
      const isWhole = cut >= whole.length - 1;
      assert.deepEqual(
        await all(store, thread),
        cut === whole.length ? lines : lines.slice(0, 1),
        `cut at ${cut}`,
      );
      assert.equal(await next(store), isWhole ? 3 : 2);
      const expected = isWhole ? [...lines, message(3, "next")] : [lines[0], message(2, "next")];
      assert.equal(fs.readFileSync(log, "utf8"), expected.join("\n") + "\n");
      const isCut = !isWhole && cut > start;
      assert.equal(notices.length, isCut || cut === whole.length - 1 ? 1 : 0);
      if (isCut) {
        assert.deepEqual(
          fs.readFileSync(torn),
          Buffer.concat([whole.subarray(start, cut), Buffer.from("\n")]),
        );
      }
      await store.close();
    }
    const { open, log } = holding("");
    const { conversations: store } = open();
    assert.equal(await next(store), 1);
    assert.equal(fs.readFileSync(log, "utf8"), message(1, "next") + "\n");
  });

  it("B04 blank bytes and zeros behind the last line, torn or whole, hide nothing and are cut", async () => {
    const lines = messages(3);
    for (const blank of ["\n", "\n\n", "\0\0\0\0", " \r\n\t\n", "\n" + "\0".repeat(100_000)]) {
      for (const torn of ['{"a":', '{"seq":4,"te', ""]) {
        const { open, log, notices } = holding(lines.join("\n") + "\n" + torn + blank);
        const { conversations: store } = open();
        assert.deepEqual(await all(store, thread), lines);
        assert.equal(await next(store), 4);
        assert.equal(fs.readFileSync(log, "utf8"), [...lines, message(4, "next")].join("\n") + "\n");
        assert.equal(notices.length, 1);
        await store.close();
      }
    }
  });

  it("B01 what another process tore is seen and mended by one that had the log open", async () => {
    const { open, log } = place();
    const { conversations: store } = open();
    await fill(store, thread, messages(3));
    fs.appendFileSync(log, '{"seq":4,"text":"to');
    assert.equal(await store.last(thread), 3);
    assert.equal(await next(store), 4);
    assert.deepEqual(await all(store, thread), [...messages(3), message(4, "next")]);
    await store.close();
  });

  it("B05 a glued line is told with its place, everything before it is read, and every list still shows the rest", async () => {
    const lines = messages(9);
    const glued = [...lines.slice(0, 6), lines[6]!.slice(0, 40) + lines[7], lines[8]].join("\n") + "\n";
    const { open, paths } = holding(glued);
    const { conversations: store } = open();
    await fill(store, "telegram:7", messages(2));
    const seen: string[] = [];
    const error = await refused(
      (async () => {
        for await (const line of store.read(thread, 1)) seen.push(line);
      })(),
      "log_damaged",
    );
    assert.deepEqual(seen, lines.slice(0, 6));
    assert.match(String(error.facts.where), /telegram-42.events\.jsonl, line 7 \(byte \d+\)/);
    await refused(store.readBack(thread, undefined, 5), "log_damaged");
    assert.deepEqual(await store.readBack(thread, undefined, 1), [lines[8]]);
    const listed = await store.threads(undefined, 10);
    assert.deepEqual(listed.map((info) => [info.thread, info.events]), [[thread, 9], ["telegram:7", 2]]);

    // Glued at its very end, the whole event inside is not cut off as if it were a torn one.
    fs.writeFileSync(paths.conversation(thread).log, glued.split("\n").slice(0, 7).join("\n") + "\n");
    const again = open().conversations;
    await refused(again.last(thread), "log_damaged");
    await refused(next(again), "log_damaged");
    const [info] = await again.threads(undefined, 10);
    assert.equal(info?.thread, thread);
    assert.match(info?.damage ?? "", /line 7/);
    await store.close();
    await again.close();
  });

  it("C2 with any one bit flipped, reading gives a right prefix and a named failure, or lines that still are events", async () => {
    const lines = [message(1, "one"), message(2, "two")].map((line) =>
      line.replace(/,"from.*2026-12-01"/, "")
    );
    const whole = Buffer.from(lines.join("\n") + "\n");
    const { open, log } = holding(whole);
    let told = 0;
    for (let bit = 0; bit < whole.length * 8; bit++) {
      const bytes = Buffer.from(whole);
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      fs.writeFileSync(log, bytes);
      const { conversations: store } = open();
      const seen: string[] = [];
      let failure: unknown;
      try {
        for await (const line of store.read(thread, 1)) seen.push(line);
      } catch (error) {
        failure = error;
      }
      await store.close();
      if (failure) {
        assert.ok(failedBy(failure, "log_damaged"), `bit ${bit}: ${failure}`);
        told++;
      } else {
        // A flip inside of a text leaves an event; only a compact conversation has sums to tell.
        assert.equal(seen.length, 2, `bit ${bit} made the log shorter, silently`);
      }
      seen.forEach((line, i) => {
        const at = whole.indexOf(lines[i]!);
        const isHit = bit >> 3 >= at && bit >> 3 < at + lines[i]!.length;
        assert.ok(isHit || line === lines[i], `bit ${bit}: line ${i + 1}`);
      });
    }
    assert.ok(told > whole.length);
  });

  it("every beginning of a line is known as torn, and no whole line is", () => {
    for (
      const line of [
        message(7, 'a \\ " \u00e9 😀 \n', { n: [-1.5e-3, true, false, null, {}, [], "\u0001"] }),
        '{"a":-0}',
      ]
    ) {
      for (let end = 1; end < line.length; end++) {
        assert.ok(isTorn(Buffer.from(line.slice(0, end))), line.slice(0, end));
      }
      for (const bad of [line, line + "x", line + line, "x" + line, line.replace(":", "")]) {
        assert.equal(isTorn(Buffer.from(bad)), false, bad);
      }
    }
    assert.equal(isTorn(Buffer.from("[1")), false);
    assert.equal(isTorn(Buffer.from("")), false);
  });

  it("C2 numbers that repeat or skip are told with their place", async () => {
    const lines = messages(6);
    for (const wrong of [[0, 1, 1, 2], [0, 1, 3, 4], [1, 2], [0, 2, 1]]) {
      const { open } = holding(wrong.map((i) => lines[i]).join("\n") + "\n");
      const { conversations: store } = open();
      const error = await refused(all(store, thread), "log_damaged");
      assert.match(error.message, /number \d stands where \d should/);
      await store.close();
    }
  });

  it("B71 reading the newest, and a list, cost what they show, whatever stands before it", async () => {
    const { open, paths } = place();
    await fill(open().conversations, thread, messages(20_000), 5000);
    const disk = countingDisk(paths.own);
    const { conversations: store } = open(disk);
    assert.equal((await store.threads(undefined, 10))[0]?.events, 20_000);
    assert.ok(disk.bytesRead < 100_000, `${disk.bytesRead} for a list`);
    disk.bytesRead = 0;
    assert.equal((await store.readBack(thread, undefined, 32)).length, 32);
    assert.ok(disk.bytesRead < 100_000, `${disk.bytesRead} for the newest 32`);
    for (const from of [2, 9_999, 15_000]) {
      disk.bytesRead = 0;
      assert.deepEqual(await all(store, thread, from, from + 2), messages(from + 2).slice(-3));
      assert.ok(disk.bytesRead < 700_000, `${disk.bytesRead} for three from ${from}`);
      disk.bytesRead = 0;
      assert.deepEqual(await store.readBack(thread, from + 3, 3), messages(from + 2).slice(-3));
      assert.ok(disk.bytesRead < 700_000, `${disk.bytesRead} for three before ${from + 3}`);
    }
    // Warm, only what is new is read.
    await next(open().conversations);
    disk.bytesRead = 0;
    assert.equal(await store.last(thread), 20_001);
    assert.deepEqual(await all(store, thread, 20_001), [message(20_001, "next")]);
    assert.ok(disk.bytesRead < 5 * message(20_001, "next").length, `${disk.bytesRead} for one that is new`);
    disk.bytesRead = 0;
    assert.equal(await store.last(thread), 20_001);
    assert.deepEqual(await all(store, thread, 20_002), []);
    assert.equal(disk.bytesRead, 0);
  });

  it("a full disk refuses the event and leaves the log whole, however much of it was written", async () => {
    for (const room of [0, 1, 50, 100]) {
      const { open, paths, log } = place();
      const disk = smallDisk(paths.own, 1_000_000);
      const { conversations: store } = open(disk, true);
      await fill(store, thread, messages(3));
      const before = fs.readFileSync(log);
      disk.room = room;
      await refused(
        store.append(thread, { seq: 4, lines: [message(4, "x".repeat(200))], token: "a" }),
        "store_full",
      );
      assert.deepEqual(fs.readFileSync(log), before);
      assert.equal(await store.last(thread), 3);
      disk.room = 1_000_000;
      assert.equal(await next(store), 4);
      await store.close();
    }
  });

  it("a write that the disk did not confirm is taken back", async () => {
    const { open, paths } = place();
    const disk = smallDisk(paths.own, 1_000_000);
    const { conversations: store } = open(disk, true);
    await fill(store, thread, messages(3));
    disk.sync = () => {
      throw new Failure("store_failed", { why: "EIO" });
    };
    await refused(store.append(thread, { seq: 4, lines: [message(4, "x")], token: "a" }), "store_failed");
    assert.equal(await open().conversations.last(thread), 3);
  });

  it(
    "a folder that may not be written is read, and an append says what to do",
    { skip: asRoot() },
    async () => {
      const { open, log, folder } = place();
      await fill(open().conversations, thread, messages(3));
      fs.chmodSync(log, 0o400);
      fs.chmodSync(folder, 0o500);
      const { conversations: store } = open();
      assert.deepEqual(await all(store, thread), messages(3));
      const error = await refused(next(store), "store_failed");
      assert.match(error.message, /EACCES.*right/);
      fs.chmodSync(folder, 0o700);
    },
  );

  it("a symbolic link in any part below the agent's home is refused, never followed", async () => {
    const parts: ((made: ReturnType<typeof place>) => string)[] = [
      ({ paths }) => paths.files,
      ({ paths }) => paths.chats,
      ({ folder }) => folder,
      ({ log }) => log,
    ];
    for (const part of parts) {
      const made = place(), elsewhere = place();
      for (const { open } of [made, elsewhere]) {
        const { conversations } = open();
        await fill(conversations, thread, messages(2));
        await conversations.close();
      }
      const before = fs.readFileSync(elsewhere.log);
      fs.rmSync(part(made), { recursive: true });
      fs.symlinkSync(part(elsewhere), part(made));
      const { conversations: store } = made.open();
      await refused(all(store, thread), "link_refused");
      await refused(store.append(thread, { seq: 3, lines: [message(3, "x")], token: "t" }), "link_refused");
      assert.deepEqual(fs.readFileSync(elsewhere.log), before);
      await store.close();
    }
  });

  it("a link to nothing in the log's place is not written through", async () => {
    const { open, folder, log, home } = place();
    fs.mkdirSync(folder, { recursive: true });
    fs.symlinkSync(join(home, "outside"), log);
    const { conversations: store } = open();
    await refused(store.append(thread, { seq: 1, lines: [message(1, "x")], token: "t" }), "link_refused");
    assert.equal(fs.existsSync(join(home, "outside")), false);
  });

  it("C4 one file per event, the older layout, is read, and goes on as a log", async () => {
    const lines = messages(12);
    for (
      const folderOf of [({ older }: { older: string }) => older, ({ folder }: { folder: string }) => folder]
    ) {
      const made = place(), { open, log } = made;
      fs.mkdirSync(folderOf(made), { recursive: true });
      lines.forEach((line, i) => {
        const text = i === 4 ? JSON.stringify(JSON.parse(line), null, 2) : line + "\n";
        fs.writeFileSync(join(folderOf(made), `${String(i + 1).padStart(6, "0")}.json`), text);
      });
      const { conversations: store } = open();
      assert.equal(await store.last(thread), 12);
      assert.deepEqual(await all(store, thread), lines);
      assert.equal(await next(store), 13);
      const now = [...lines, message(13, "next")];
      for (const reader of [store, open().conversations]) {
        assert.deepEqual(await all(reader, thread), now);
        assert.deepEqual(await all(reader, thread, 11), now.slice(10));
        assert.deepEqual(await reader.readBack(thread, undefined, 4), now.slice(-4));
        assert.deepEqual(await reader.readBack(thread, 13, 4), now.slice(8, 12));
        assert.deepEqual((await reader.threads(undefined, 5)).map((info) => info.events), [13]);
      }
      assert.equal(fs.readFileSync(log, "utf8"), now[12] + "\n");
      fs.rmSync(join(folderOf(made), "000003.json"));
      await refused(all(open().conversations, thread), "log_damaged");
    }
  });

  it("a foreign file or folder in chats is left alone and hides nothing", async () => {
    const { open, paths } = place();
    const { conversations: store } = open();
    await fill(store, thread, messages(1));
    fs.writeFileSync(join(paths.chats, "README.txt"), "x");
    fs.writeFileSync(join(paths.chats, "notes-1"), "x");
    fs.mkdirSync(join(paths.chats, "My Folder"));
    fs.mkdirSync(join(paths.chats, "empty-1"));
    assert.deepEqual((await store.threads(undefined, 10)).map((info) => info.thread), [thread]);
    assert.deepEqual(await all(store, "notes:1"), []);
    await refused(store.append("notes:1", { seq: 1, lines: [message(1, "x")], token: "t" }), "store_failed");
  });

  it("an event that is not in one line, or carries another number, never reaches the log", async () => {
    const { open } = place();
    const { conversations: store } = open();
    for (
      const line of [
        message(1, "x") + "\n",
        message(2, "x"),
        "{}",
        "x",
        `${message(1, "a")}\n${message(2, "b")}`,
      ]
    ) {
      await refused(store.append(thread, { seq: 1, lines: [line], token: "t" }), "event_invalid");
    }
    assert.equal(await store.last(thread), 0);
  });
});

function asRoot(): string | false {
  return process.getuid?.() === 0 ? "root may write anywhere, so nothing is refused to it" : false;
}
