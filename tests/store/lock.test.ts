// Locks between processes, and the turn record that they guard: killed, stopped and slow holders.

import assert from "node:assert/strict";
import fs from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { after, describe, it } from "node:test";
import { type Clock, randomIds } from "../../src/clock.ts";
import { failedBy } from "../../src/errors.ts";
import { limits } from "../../src/limits.ts";
import { agentPaths } from "../../src/paths.ts";
import { openDisk } from "../../src/store/disk.ts";
import { openLock, processLocks } from "../../src/store/lock.ts";
import type { Lease } from "../../src/store/seams.ts";
import { fill, refused } from "../contract/conversations.ts";
import { messages } from "../contract/events.ts";
import { folderPlace, openFolder, temporaryFolder } from "../contract/places.ts";
import { start } from "../contract/process.ts";
import { Died, dyingDisk } from "./disks.ts";

const thread = "telegram:42";
const homes: string[] = [];
after(() => homes.forEach((home) => fs.rmSync(home, { recursive: true, force: true })));

function newHome(): string {
  const home = temporaryFolder();
  homes.push(home);
  return home;
}

const lease = (key: string): Lease => ({
  key,
  holder: { host: "here", process: 1, start: "then" },
  turn: `turn_${key}`,
  taken: Date.now(),
  deadline: 60_000,
});

/** A clock whose sleeps pass at once, and that adds them up. */
function quickClock(): Clock & { slept: number } {
  const clock = {
    slept: 0,
    now: () => Date.now(),
    mono: () => clock.slept,
    sleep: (ms: number) => {
      clock.slept += ms;
      return new Promise<void>((done) => setImmediate(done));
    },
  };
  return clock;
}

describe("locks", () => {
  it("B06 a lease whose holder was killed is dead at once, and is taken over by another process", async () => {
    const place = await folderPlace("log");
    const store = await place.open();
    const other = start(place, { kind: "hold", thread, key: "theirs" });
    assert.deepEqual(await other.line(), { held: true });
    const alive = await store.leaseRead(thread);
    assert.deepEqual([alive?.lease.key, alive?.state], ["theirs", "live"]);
    assert.equal(await store.leaseTake(thread, lease("mine")), undefined);
    other.kill();
    await other.ended;
    const dead = await store.leaseRead(thread);
    assert.deepEqual([dead?.lease.key, dead?.state, dead?.tag], ["theirs", "dead", alive?.tag]);
    assert.equal((await store.leaseTake(thread, lease("mine"), dead?.tag))?.lease.key, "mine");
    assert.equal((await store.leaseRead(thread))?.state, "live");
    await place.remove();
  });

  it("B08 a holder that is stopped keeps its lease; one whose lock file is gone has lost it", async () => {
    const place = await folderPlace("log");
    const store = await place.open();
    const other = start(place, { kind: "hold", thread, key: "theirs" });
    await other.line();
    process.kill(other.pid, "SIGSTOP");
    const held = await store.leaseRead(thread);
    assert.equal(held?.state, "live");
    const { home } = place.opener.args as { home: string };
    fs.rmSync(join(home, "run", `${held?.lease.holder.lock}.lk`));
    assert.equal((await store.leaseRead(thread))?.state, "dead");
    other.kill();
    await other.ended;
    await place.remove();
  });

  it("a process lock and its owner appear in one step: nobody who looks in between takes it for dead", async () => {
    const run = join(newHome(), "run");
    const [one, two] = [processLocks(run, randomIds), processLocks(run, randomIds)];
    const ids = [await one.own(), await two.own()] as const;
    assert.equal(await one.own(), ids[0]);
    assert.deepEqual(ids.map((id) => one.alive(id)), [true, true]);
    assert.deepEqual(fs.readdirSync(run).length, 2);
    two.close();
    assert.deepEqual(ids.map((id) => one.alive(id)), [true, false]);
    for (const id of ["p_0", "../x", "", "a/b", "p_0\0"]) assert.equal(one.alive(id), false);
    one.close();
    assert.deepEqual(fs.readdirSync(run), []);
  });

  it("lock files of processes that were killed are swept by the next, those of live ones are not", async () => {
    const place = await folderPlace("log");
    const { home } = place.opener.args as { home: string };
    const run = join(home, "run");
    const [killed, live] = [1, 2].map((i) =>
      start(place, { kind: "hold", thread: `telegram:${i}`, key: `k${i}` })
    );
    await Promise.all([killed!.line(), live!.line()]);
    killed!.kill();
    await killed!.ended;
    const store = await place.open();
    await store.leaseTake(thread, lease("mine"));
    assert.equal(fs.readdirSync(run).length, 2);
    assert.deepEqual(
      [(await store.leaseRead("telegram:1"))?.state, (await store.leaseRead("telegram:2"))?.state],
      ["dead", "live"],
    );
    live!.kill();
    await live!.ended;
    await place.remove();
  });

  it("a lock held by another is waited for, with a bound, and then told as that; nothing is written", async () => {
    const clock = quickClock();
    const place = await folderPlace("log");
    const { home } = place.opener.args as { home: string };
    const store = openFolder({ home }, { clock });
    await fill(store, thread, messages(1));
    const blocker = new (process.getBuiltinModule("node:sqlite").DatabaseSync)(
      agentPaths("mia", { home }).lock,
    );
    blocker.exec("BEGIN EXCLUSIVE");
    clock.slept = 0;
    const error = await refused(
      store.append(thread, { seq: 2, lines: messages(2).slice(1), token: "t" }),
      "store_busy",
    );
    assert.match(error.message, /held by another process/);
    assert.ok(clock.slept >= limits.lockWaitMs);
    blocker.exec("ROLLBACK");
    assert.equal(await store.last(thread), 1);
    await store.append(thread, { seq: 2, lines: messages(2).slice(1), token: "t" });
    blocker.close();
    await store.close();
    await place.remove();
  });

  it("sections alone exclude each other and those beside; those beside share", async () => {
    const home = newHome(), path = join(home, "lock");
    const open = () => openLock(openDisk(home), path, quickClock());
    const [one, two, three] = [open(), open(), open()];
    const order: string[] = [];
    const waiting = await one.beside(() => {
      void two.beside(() => order.push("beside, at once"));
      const alone = three.alone(() => order.push("alone, after"));
      order.push("first");
      return { alone };
    });
    await waiting.alone;
    assert.deepEqual(order, ["beside, at once", "first", "alone, after"]);
    const late = await one.alone(() => {
      const beside = two.beside(() => order.push("beside, after"));
      order.push("alone");
      return { beside };
    });
    await late.beside;
    assert.deepEqual(order.slice(3), ["alone", "beside, after"]);
    for (const lock of [one, two, three]) lock.close();
  });

  it("B08 a turn record whose writing was killed at any step is the old one or the new one", async () => {
    const home = newHome();
    const { own, turns } = agentPaths("mia", { home });
    const first = openFolder({ home });
    await first.leaseTake(thread, lease("old"));
    let steps = 0;
    for (;; steps++) {
      const disk = dyingDisk(own, steps);
      const dying = openFolder({ home }, { disk });
      const read = await first.leaseRead(thread);
      const done = await dying.leaseTake(thread, lease(`new${steps}`), read?.tag).catch((error) => {
        assert.ok(error instanceof Died, error);
        return "died" as const;
      });
      const now = await openFolder({ home }).leaseRead(thread);
      assert.ok([read?.lease.key, `new${steps}`].includes(now?.lease.key ?? "none"), `step ${steps}`);
      assert.ok(fs.readdirSync(turns).filter((name) => !name.startsWith(".")).length === 1);
      await dying.close();
      if (done !== "died") break;
    }
    assert.ok(steps >= 1);
    await first.close();
  });

  it("a turn record that is torn or foreign says nothing and is replaced", async () => {
    for (const bytes of ["", "{", "null", '{"thread":1}', "\0\0\0"]) {
      const home = newHome();
      const { turns, turn } = agentPaths("mia", { home });
      fs.mkdirSync(turns, { recursive: true });
      fs.writeFileSync(turn(thread), bytes);
      fs.writeFileSync(join(turns, "not ours"), bytes);
      const store = openFolder({ home });
      assert.equal(await store.leaseRead(thread), undefined);
      assert.deepEqual(await store.open(), []);
      assert.ok(await store.leaseTake(thread, lease("a")));
      assert.deepEqual((await store.open()).map((one) => one.thread), [thread]);
      await store.close();
    }
  });

  it("a lock file that is a symbolic link is refused", async () => {
    const home = newHome();
    const { own, lock } = agentPaths("mia", { home });
    fs.mkdirSync(own, { recursive: true });
    fs.writeFileSync(join(home, "elsewhere"), "");
    fs.symlinkSync(join(home, "elsewhere"), lock);
    const error = await openFolder({ home }).leaseTake(thread, lease("a")).then(
      () => undefined,
      (error) => error,
    );
    assert.ok(failedBy(error, "link_refused"));
  });
});
