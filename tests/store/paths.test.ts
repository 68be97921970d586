// Paths: one function of the agent, and folders that no two threads share.

import assert from "node:assert/strict";
import { sep } from "node:path";
import { describe, it } from "node:test";
import fc from "fast-check";
import { byThread, checkAgent, checkThread, threadFault } from "../../src/names.ts";
import { agentPaths, folderThread, isHashedFolder, markedDriver, threadFolder } from "../../src/paths.ts";
import { failedBy } from "../../src/errors.ts";
import { oddThreads } from "../contract/events.ts";

const seed = 20261201;
const threads = fc.oneof(
  fc.constantFrom(...oddThreads),
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 }),
  fc.stringMatching(/^[a-z0-9_]{1,8}[:-][a-z0-9_-]{1,12}$/),
).filter((thread) => threadFault(thread) === undefined);

describe("paths", () => {
  it("D5 every path of an agent lies in its own folder, but for the process locks beside it", () => {
    const { agent: _, own, run, ...paths } = agentPaths("mia", { home: "/home/agents" });
    assert.equal(own, "/home/agents/mia".replaceAll("/", sep));
    assert.equal(run, "/home/agents/run".replaceAll("/", sep));
    for (const path of Object.values(paths)) {
      if (typeof path === "string") assert.ok(path.startsWith(own + sep), path);
    }
    for (const thread of oddThreads) {
      assert.ok(paths.turn(thread).startsWith(paths.turns + sep));
      const { folder, marker, ...rest } = paths.conversation(thread);
      assert.ok(folder.startsWith(paths.chats + sep));
      for (const path of [marker("gcs"), ...Object.values(rest)]) assert.ok(path.startsWith(folder + sep));
    }
    assert.equal(agentPaths("mia", { own: "/x/mine" }).files, "/x/mine/files".replaceAll("/", sep));
  });

  it("a plain thread's folder says it whole: telegram:42 is telegram-42", () => {
    assert.equal(threadFolder("telegram:42"), "telegram-42");
    assert.equal(folderThread("telegram-42"), "telegram:42");
    assert.equal(threadFolder("slack:c0-team-9"), "slack-c0-team-9");
    assert.equal(folderThread("slack-c0-team-9"), "slack:c0-team-9");
    for (
      const name of ["telegram", "-42", "telegram-", "Telegram-42", "tele.gram-42", "README.md", "a-b~c"]
    ) {
      assert.equal(folderThread(name), undefined, name);
    }
  });

  it("B18 B20 no two threads share a folder, not by case, normal form, dots, spaces or what systems reserve", () => {
    const seen = new Map<string, string>();
    fc.assert(
      fc.property(threads, (thread) => {
        const folder = threadFolder(thread);
        assert.match(folder, /^[a-z0-9_][a-z0-9_~-]{0,110}$/);
        assert.doesNotMatch(folder, /^(con|prn|aux|nul|com\d|lpt\d)$/);
        assert.equal(folder, folder.toLowerCase().normalize("NFC"));
        const other = seen.get(folder) ?? thread;
        assert.equal(other, thread);
        seen.set(folder, thread);
        const plain = folderThread(folder);
        assert.ok(plain === thread || (plain === undefined && isHashedFolder(folder)));
      }),
      { seed, numRuns: 3000 },
    );
  });

  it("threads and agents are checked: what is refused says precisely why", () => {
    for (
      const [thread, why] of [
        ["", /empty/],
        [".", /dot/],
        ["..", /dot/],
        ["a\u0000b", /control/],
        ["a\u0085b", /control/],
        ["\ud83d", /well-formed/],
        ["😀".repeat(513), /512/],
      ] as const
    ) {
      assert.throws(
        () => checkThread(thread),
        (error) => failedBy(error, "thread_invalid") && why.test(error.message),
      );
    }
    for (const thread of oddThreads) assert.equal(checkThread(thread), thread);
    assert.equal(checkAgent("mia-2_x"), "mia-2_x");
    for (const agent of ["", "-a", "Mia", "a".repeat(64), "a/b", "..", "a.b"]) {
      assert.throws(() => checkAgent(agent), (error) => failedBy(error, "agent_invalid"));
    }
  });

  it("threads are ordered as their UTF-8 bytes are", () => {
    fc.assert(
      fc.property(threads, threads, (a, b) => {
        const bytes = Buffer.compare(Buffer.from(a), Buffer.from(b));
        assert.equal(Math.sign(byThread(a, b)), bytes);
      }),
      { seed, numRuns: 2000 },
    );
  });

  it("C4 a marker names its driver and nothing else does", () => {
    assert.equal(markedDriver("store.sqlite"), "sqlite");
    for (const name of ["store.", "store", "xstore.sqlite", "events.jsonl"]) {
      assert.equal(markedDriver(name), undefined);
    }
  });
});
