// What every conversation store keeps to, whatever keeps it: one suite, a function of how tests are made and how the store is
// opened. A store says in `skips` which promises it cannot be held to, and why.

import assert from "node:assert/strict";
import { failedBy, type FailureCode } from "../../src/errors.ts";
import { byThread } from "../../src/names.ts";
import type { ConversationStore, Lease } from "../../src/store/seams.ts";
import { message, messages, oddTexts, oddThreads } from "./events.ts";
import type { Place } from "./places.ts";
import { start } from "./process.ts";

/** How tests are made: `it` of node:test. */
export type Test = (title: string, options: { skip?: string | false }, run: () => Promise<void>) => unknown;

export interface Traits {
  /** Titles (their beginning) that do not hold here, with the reason. */
  skips?: Record<string, string>;
  /** Threads in the listing of many; fewer for a store that is slow by nature. */
  threads?: number;
  /** Other runtimes that open the same store. */
  runtimes?: string[];
}

const thread = "telegram:42";

/** All of the contract. `make` gives an empty place each time. */
export function conversationContract(test: Test, make: () => Promise<Place>, traits: Traits = {}): void {
  const promise = (title: string, run: (place: Place, store: ConversationStore) => Promise<void>) => {
    const skip = Object.entries(traits.skips ?? {}).find(([start]) => title.startsWith(start))?.[1];
    test(title, { skip: skip ?? false }, async () => {
      const place = await make();
      try {
        await run(place, await place.open());
      } finally {
        await place.remove();
      }
    });
  };
  events(promise);
  many(promise, traits);
  leases(promise);
  marks(promise);
  whole(promise);
}

type Promising = (
  title: string,
  run: (place: Place, store: ConversationStore) => Promise<void>,
) => void;

function events(promise: Promising): void {
  promise("C1 events are read in order, from a number, up to one, byte for byte", async (place, store) => {
    assert.equal(await store.last(thread), 0);
    assert.deepEqual(await all(store, thread), []);
    assert.deepEqual(await store.readBack(thread, undefined, 5), []);
    const lines = messages(70);
    await fill(store, thread, lines);
    for (const reader of [store, await place.open()]) {
      assert.equal(await reader.last(thread), 70);
      assert.deepEqual(await all(reader, thread), lines);
      assert.deepEqual(await all(reader, thread, 34), lines.slice(33));
      assert.deepEqual(await all(reader, thread, 34, 36), lines.slice(33, 36));
      assert.deepEqual(await all(reader, thread, 71), []);
    }
  });

  promise("C1 the newest are read backwards from the end or from a number", async (place, store) => {
    const lines = messages(140);
    await fill(store, thread, lines);
    for (const reader of [store, await place.open()]) {
      for (const limit of [1, 2, 31, 32, 33, 64, 139, 140, 141]) {
        assert.deepEqual(await reader.readBack(thread, undefined, limit), lines.slice(-limit));
        for (const before of [1, 2, 33, 65, 100, 140, 141, 500]) {
          const end = Math.min(before - 1, 140);
          assert.deepEqual(
            await reader.readBack(thread, before, limit),
            lines.slice(Math.max(0, end - limit), end),
          );
        }
      }
    }
  });

  promise(
    "C2 a number taken or not the next is refused with the next, and nothing is kept",
    async (_, store) => {
      await fill(store, thread, messages(3));
      for (const seq of [1, 3, 5, 99]) {
        const error = await refused(
          store.append(thread, { seq, lines: [message(seq, "other")], token: `t${seq}` }),
          "seq_taken",
        );
        assert.equal(error.facts.next, 4);
      }
      const error = await refused(
        store.append("telegram:7", { seq: 2, lines: [message(2, "x")], token: "t" }),
        "seq_taken",
      );
      assert.equal(error.facts.next, 1);
      assert.deepEqual(await all(store, thread), messages(3));
      assert.equal(await store.last("telegram:7"), 0);
    },
  );

  promise(
    "an append whose reply was lost is found again, never taken for another's",
    async (place, store) => {
      const append = { seq: 1, lines: messages(2), token: "first" };
      assert.deepEqual(await store.append(thread, append), {});
      assert.deepEqual(await store.append(thread, append), { again: true });
      await store.append(thread, { seq: 3, lines: [message(3, "x")], token: "second" });
      assert.deepEqual(await (await place.open()).append(thread, append), { again: true });
      await refused(
        store.append(thread, { seq: 3, lines: [message(3, "y")], token: "third" }),
        "seq_taken",
      );
      assert.equal(await store.last(thread), 3);
    },
  );

  promise(
    "B73 any text, and fields and types that nobody knows, come back byte for byte",
    async (place, store) => {
      const lines = oddTexts.map((text, i) =>
        message(i + 1, text, { "z ☃": [1, { deep: null }], text2: text, seq2: 1e21 })
      );
      const seq = lines.length + 1;
      lines.push(`{"seq":${seq},"type":"from the future","at":"x", "spaced" : [ 1.0, 1e2 , "\\u00e9\\/" ]}`);
      await fill(store, thread, lines);
      assert.deepEqual(await all(await place.open(), thread), lines);
      assert.deepEqual(await store.readBack(thread, undefined, 100), lines);
    },
  );

  promise("an event of 10 MiB is kept and read like any other", async (place, store) => {
    const lines = [message(1, "before"), message(2, "😀".repeat(10 * 1024 * 256)), message(3, "after")];
    await fill(store, thread, lines);
    const reader = await place.open();
    assert.deepEqual(await all(reader, thread), lines);
    assert.deepEqual(await reader.readBack(thread, undefined, 2), lines.slice(1));
    assert.deepEqual(await reader.readBack(thread, 3, 1), [lines[1]]);
  });

  promise("readers during appends see whole events, each once, in order", async (place, store) => {
    const lines = messages(100), reader = await place.open();
    let written = false;
    const writing = fill(store, thread, lines, 1).finally(() => written = true);
    for (let rounds = 0; !written || rounds === 0; rounds++) {
      const seen = await all(reader, thread);
      assert.deepEqual(seen, lines.slice(0, seen.length));
      const last = await reader.last(thread);
      assert.ok(last >= seen.length);
      const newest = await reader.readBack(thread, undefined, 40);
      const end = JSON.parse(newest.at(-1) ?? '{"seq":0}').seq;
      assert.ok(end >= last);
      assert.deepEqual(newest, lines.slice(Math.max(0, end - 40), end));
    }
    await writing;
    assert.deepEqual(await all(reader, thread), lines);
  });
}

function many(promise: Promising, traits: Traits): void {
  promise(
    "B18 threads that look alike never share anything: made, listed, removed one by one",
    async (_, store) => {
      const threads = [...oddThreads].sort(byThread);
      for (const one of threads) await store.append(one, { seq: 1, lines: [message(1, one)], token: one });
      for (const one of threads) assert.deepEqual(await all(store, one), [message(1, one)]);
      for (let left = threads; left.length > 0; left = left.slice(1)) {
        assert.deepEqual((await store.threads(undefined, 1000)).map((info) => info.thread), left);
        await store.forget(left[0] as string);
        assert.equal(await store.last(left[0] as string), 0);
      }
    },
  );

  promise(
    "B05 hundreds of conversations are listed in order of thread, a page at a time",
    async (place, store) => {
      const count = traits.threads ?? 300;
      const threads = Array.from({ length: count }, (_, i) => `telegram:${i}`);
      for (const one of threads) {
        await store.append(one, { seq: 1, lines: [message(1, one), message(2, one)], token: one });
      }
      const seen: string[] = [], reader = await place.open();
      for (let page; (page = await reader.threads(seen.at(-1), 70)).length > 0;) {
        for (const info of page) {
          assert.deepEqual(
            { events: info.events, updated: info.updated, damage: info.damage },
            { events: 2, updated: "2026-12-01T00:00:02.000Z", damage: undefined },
          );
          seen.push(info.thread);
        }
      }
      assert.deepEqual(seen, threads.sort(byThread));
    },
  );

  promise(
    "C9 two processes append to one conversation: each number has one winner, none is missing",
    async (place, store) => {
      const runtimes = traits.runtimes ?? [undefined, undefined];
      const others = runtimes.map((runtime, i) =>
        start(place, { kind: "append", thread, count: 40, who: `w${i}` }, runtime)
      );
      const won = (await Promise.all(others.map((other) => other.line()))) as { won: number[] }[];
      await Promise.all(others.map((other) => other.ended));
      const count = 40 * others.length;
      assert.deepEqual(
        won.flatMap((one) => one.won).sort((a, b) => a - b),
        Array.from({ length: count }, (_, i) => i + 1),
      );
      const lines = await all(store, thread);
      assert.equal(lines.length, count);
      won.forEach(({ won }, i) => {
        won.forEach((seq, j) => assert.equal(lines[seq - 1], message(seq, `w${i} ${j}`)));
      });
    },
  );
}

function leases(promise: Promising): void {
  promise("D6 a lease is held by one, renewed and freed by its key alone", async (place, store) => {
    const other = await place.open();
    assert.equal(await store.leaseRead(thread), undefined);
    const held = await store.leaseTake(thread, lease("a", { message: "tg-1", connection: "telegram" }));
    assert.equal(held?.lease.key, "a");
    assert.equal(await other.leaseTake(thread, lease("b")), undefined);
    const seen = await other.leaseRead(thread);
    assert.deepEqual(
      [seen?.lease.key, seen?.lease.turn, seen?.lease.message, seen?.lease.connection, seen?.tag],
      ["a", "turn_a", "tg-1", "telegram", held?.tag],
    );
    assert.notEqual(seen?.state, "dead");
    await store.leaseRenew(thread, "a");
    await refused(other.leaseRenew(thread, "b"), "lease_lost");
    await other.leaseFree(thread, "b");
    assert.equal((await store.leaseRead(thread))?.lease.key, "a");
    await store.leaseRenew(thread, "a", { answered: true });
    assert.equal((await other.leaseRead(thread))?.lease.answered, true);
    await store.leaseFree(thread, "a");
    assert.equal(await other.leaseRead(thread), undefined);
    await store.leaseFree(thread, "a");
    await refused(store.leaseRenew(thread, "a"), "lease_lost");
    assert.ok(await other.leaseTake(thread, lease("c")));
  });

  promise(
    "a lease whose taking was written and not told is the taker's when it asks again",
    async (_, store) => {
      await store.leaseTake(thread, lease("a"));
      assert.equal((await store.leaseTake(thread, lease("a")))?.lease.key, "a");
    },
  );

  promise("D6 of many who take at once one has it", async (place, store) => {
    const stores = [store, await place.open(), await place.open()];
    const takes = await Promise.all(
      Array.from({ length: 12 }, (_, i) => stores[i % 3]!.leaseTake(thread, lease(`k${i}`))),
    );
    const winners = takes.filter((taken) => taken !== undefined);
    assert.equal(winners.length, 1);
    assert.equal((await store.leaseRead(thread))?.lease.key, winners[0]?.lease.key);
  });

  promise("S2 a lease is taken over by exactly the record that was read, once", async (place, store) => {
    const other = await place.open();
    await store.leaseTake(thread, lease("a"));
    const read = await other.leaseRead(thread);
    await store.leaseRenew(thread, "a");
    assert.equal(await other.leaseTake(thread, lease("b"), read?.tag), undefined, "it was renewed since");
    const again = await other.leaseRead(thread);
    const [first, second] = [
      await other.leaseTake(thread, lease("b"), again?.tag),
      await store.leaseTake(thread, lease("c"), again?.tag),
    ];
    assert.equal(first?.lease.key, "b");
    assert.equal(second, undefined);
    await refused(store.leaseRenew(thread, "a"), "lease_lost");
    assert.equal(await other.leaseTake("telegram:7", lease("d"), again?.tag), undefined);
  });

  promise("a lease that its holder left is dead at once", async (place, store) => {
    await store.leaseTake(thread, lease("a"));
    await store.leaseRenew(thread, "a", { left: true });
    const seen = await (await place.open()).leaseRead(thread);
    assert.equal(seen?.state, "dead");
    assert.ok(await store.leaseTake(thread, lease("b"), seen?.tag));
  });

  promise("an append under a lease that was lost is refused and not kept", async (_, store) => {
    await store.leaseTake(thread, lease("a"));
    await store.append(thread, { seq: 1, lines: [message(1, "mine")], token: "1", key: "a" });
    const seen = await store.leaseRead(thread);
    await store.leaseTake(thread, lease("b"), seen?.tag);
    await refused(
      store.append(thread, { seq: 2, lines: [message(2, "late")], token: "2", key: "a" }),
      "lease_lost",
    );
    await store.append(thread, { seq: 2, lines: [message(2, "next")], token: "3", key: "b" });
    await store.leaseFree(thread, "b");
    await refused(
      store.append(thread, { seq: 3, lines: [message(3, "later")], token: "4", key: "b" }),
      "lease_lost",
    );
    assert.deepEqual(await all(store, thread), [message(1, "mine"), message(2, "next")]);
  });
}

function marks(promise: Promising): void {
  const untaken = (seq: number) => ({
    seq,
    turn: `turn_${seq}`,
    why: "caller_gone" as const,
    id: `ans_${seq}`,
  });

  promise("S3 an answer is noted as untaken once, and not again once it is done", async (place, store) => {
    const other = await place.open();
    assert.deepEqual(await store.marksRead(thread), { untaken: [], done: [] });
    await store.mark(thread, { untaken: untaken(4) });
    await other.mark(thread, { untaken: untaken(2) });
    await store.mark(thread, { untaken: untaken(4) });
    assert.deepEqual((await other.marksRead(thread)).untaken, [untaken(2), untaken(4)]);
    await other.mark(thread, { done: 2 });
    await store.mark(thread, { untaken: untaken(2) });
    const now = await store.marksRead(thread);
    assert.deepEqual([now.untaken, now.done], [[untaken(4)], [2]]);
  });

  promise(
    "C13 an end that was asked names its turn, is seen elsewhere, and goes with it",
    async (place, store) => {
      const other = await place.open();
      await store.leaseTake(thread, lease("a"));
      await other.mark(thread, { end: "turn_a" });
      assert.equal((await store.marksRead(thread)).end, "turn_a");
      await store.leaseFree(thread, "a");
      assert.equal((await other.marksRead(thread)).end, undefined);
    },
  );

  promise("a lease is freed and its answer noted in one step", async (place, store) => {
    await store.leaseTake(thread, lease("a"));
    await store.leaseFree(thread, "a", { untaken: untaken(2) });
    const other = await place.open();
    assert.deepEqual((await other.marksRead(thread)).untaken, [untaken(2)]);
    assert.equal(await other.leaseRead(thread), undefined);
  });

  promise("what one process notes another's noting never loses", async (place, store) => {
    const other = await place.open();
    await store.leaseTake(thread, lease("a"));
    await Promise.all(
      Array.from({ length: 10 }, (_, i) => (i % 2 ? store : other).mark(thread, { untaken: untaken(i + 1) })),
    );
    const { untaken: all } = await store.marksRead(thread);
    assert.deepEqual(all.map((one) => one.seq), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert.equal((await store.leaseRead(thread))?.lease.key, "a");
  });

  promise("what is open is found, and nothing else", async (place, store) => {
    for (const one of ["telegram:1", "é", "telegram:3", "telegram:4"]) {
      await store.append(one, { seq: 1, lines: [message(1, "x")], token: one });
    }
    await store.leaseTake("telegram:1", lease("a"));
    await store.mark("é", { untaken: untaken(1) });
    await store.leaseTake("telegram:3", lease("b"));
    await store.leaseFree("telegram:3", "b");
    const open = (await (await place.open()).open()).sort((a, b) => byThread(a.thread, b.thread));
    assert.deepEqual(
      open.map((one) => [one.thread, one.held?.lease.key, one.marks.untaken.length]),
      [["telegram:1", "a", 0], ["é", undefined, 1]],
    );
  });

  promise("T5 tools are narrowed and never widened, in every process", async (place, store) => {
    const other = await place.open();
    assert.equal(await store.toolsRead(thread), undefined);
    assert.deepEqual(await store.toolsNarrow(thread, ["b", "a", "c"]), ["a", "b", "c"]);
    assert.deepEqual(await other.toolsNarrow(thread, ["c", "a", "z"]), ["a", "c"]);
    assert.deepEqual(await store.toolsNarrow(thread, ["a", "b", "c", "z"]), ["a", "c"]);
    assert.deepEqual(await store.toolsRead(thread), ["a", "c"]);
    await store.append(thread, { seq: 1, lines: [message(1, "x")], token: "t" });
    assert.deepEqual(await other.toolsNarrow(thread, []), []);
    assert.deepEqual(await (await place.open()).toolsRead(thread), []);
    assert.equal((await store.threads(undefined, 10)).length, 1);
  });
}

function whole(promise: Promising): void {
  promise(
    "a whole conversation is put in place by one write, over another only where asked to",
    async (place, store) => {
      const lines = messages(90), other = await place.open();
      assert.equal(await other.last(thread), 0);
      assert.deepEqual(await store.put(thread, each(lines), { tools: ["b", "a"] }), { events: 90 });
      for (const reader of [store, other]) {
        assert.deepEqual(await all(reader, thread), lines);
        assert.deepEqual((await reader.toolsRead(thread))?.sort(), ["a", "b"]);
      }
      await refused(store.put(thread, each([message(1, "other")])), "exists");
      assert.deepEqual(await all(store, thread), lines);
      await store.put(thread, each([message(1, "other")]), { replace: true });
      for (const reader of [store, other]) {
        assert.deepEqual(await all(reader, thread), [message(1, "other")]);
      }
      await other.append(thread, { seq: 2, lines: [message(2, "on")], token: "on" });
      assert.deepEqual(await all(store, thread), [message(1, "other"), message(2, "on")]);
    },
  );

  promise("a put that fails midway leaves what was there", async (place, store) => {
    await fill(store, thread, messages(5));
    async function* broken() {
      yield* messages(50);
      await Promise.resolve();
      throw new Error("the source broke");
    }
    await assert.rejects(store.put(thread, broken(), { replace: true }), /the source broke/);
    await assert.rejects(store.put("telegram:7", broken()), /the source broke/);
    const other = await place.open();
    assert.deepEqual(await all(other, thread), messages(5));
    assert.equal(await other.last("telegram:7"), 0);
    assert.deepEqual((await other.threads(undefined, 10)).map((info) => info.thread), [thread]);
    assert.deepEqual(await other.put("telegram:7", each(messages(2))), { events: 2 });
    assert.deepEqual(await all(store, "telegram:7"), messages(2));
  });

  promise(
    "a conversation that was forgotten leaves nothing, and its neighbours are untouched",
    async (place, store) => {
      const other = await place.open();
      for (const one of [thread, "telegram:421", "telegram:4"]) await fill(store, one, messages(40));
      await store.toolsNarrow(thread, ["a"]);
      await store.mark(thread, { untaken: { seq: 2, turn: "t", why: "crashed", id: "i" } });
      assert.equal(await other.last(thread), 40);
      await store.forget(thread);
      await store.forget(thread);
      for (const reader of [store, other]) {
        assert.equal(await reader.last(thread), 0);
        assert.deepEqual(await all(reader, thread), []);
        assert.equal(await reader.toolsRead(thread), undefined);
        assert.deepEqual(await reader.marksRead(thread), { untaken: [], done: [] });
        assert.deepEqual(await reader.open(), []);
        const left = (await reader.threads(undefined, 10)).map((info) => info.thread);
        assert.deepEqual(left, ["telegram:4", "telegram:421"]);
        assert.deepEqual(await all(reader, "telegram:4"), messages(40));
      }
      await other.append(thread, { seq: 1, lines: [message(1, "anew")], token: "new" });
      assert.deepEqual(await all(store, thread), [message(1, "anew")]);
    },
  );

  promise("a store that was closed opens again at its next use, with equal bytes", async (place, store) => {
    await fill(store, thread, messages(50));
    await store.close();
    assert.deepEqual(await all(store, thread), messages(50));
    await store.append(thread, { seq: 51, lines: [message(51, "on")], token: "t" });
    assert.deepEqual(await all(await place.open(), thread), [...messages(50), message(51, "on")]);
  });
}

/** A lease of this process; where the store gives no process locks it lives a minute. */
function lease(key: string, more: Partial<Lease> = {}): Lease {
  const holder = { host: "here", process: 1, start: "then" };
  return { key, holder, turn: `turn_${key}`, taken: Date.now(), deadline: 60_000, ...more };
}

/** All lines of a thread, from and to a number. */
export async function all(
  store: Pick<ConversationStore, "read">,
  thread: string,
  from = 1,
  to?: number,
): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of store.read(thread, from, to)) lines.push(line);
  return lines;
}

/** Appends the lines, some at a time. */
export async function fill(
  store: Pick<ConversationStore, "append">,
  thread: string,
  lines: string[],
  atOnce = 7,
): Promise<void> {
  for (let i = 0; i < lines.length; i += atOnce) {
    await store.append(thread, { seq: i + 1, lines: lines.slice(i, i + atOnce), token: `fill-${i}` });
  }
}

/** Awaits a failure of that code. */
export async function refused(promise: Promise<unknown>, code: FailureCode) {
  try {
    await promise;
  } catch (error) {
    if (failedBy(error, code)) return error;
    throw error;
  }
  throw new Error(`not refused with ${code}`);
}

/** The lines, as a source. */
// deno-lint-ignore require-await
export async function* each(lines: string[]): AsyncIterable<string> {
  yield* lines;
}
