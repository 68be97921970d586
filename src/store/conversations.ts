// A conversation store from any driver: leases, marks and narrowed tools as changes of two small documents, each replaced
// by compare-and-swap. Events go to the driver as they are.

import type { Clock, Ids } from "../clock.ts";
import { Failure } from "../errors.ts";
import {
  type Change,
  emptyRecord,
  free,
  leaseState,
  mark,
  parseRecord,
  renew,
  take,
  type TurnRecord,
} from "./lease.ts";
import type {
  ConversationStore,
  Document,
  Driver,
  HeldLease,
  Lease,
  Mark,
  OpenConversation,
} from "./seams.ts";

/** What a store is made with: time and ids. `term`: ms of a lease where no process lock tells; see `[storage] lease`. */
export interface StoreParts {
  clock: Clock;
  ids: Ids;
  term: number;
}

/** Makes the store. Every write is sent again with its token where the driver could not say whether it was done. */
export function conversationsOver(driver: Driver, parts: StoreParts): ConversationStore {
  const { documents } = driver;
  const { locks } = documents;

  function held(document: Document, record: TurnRecord): HeldLease | undefined {
    const { lease } = record;
    if (!lease) return undefined;
    const lockAlive = lease.holder.lock !== undefined && locks ? locks.alive(lease.holder.lock) : undefined;
    const state = leaseState(lease, { lockAlive, ageMs: document.ageMs, now: parts.clock.now() });
    return { lease, tag: document.tag, state };
  }

  const recordOf = (thread: string, document: Document | undefined) =>
    (document && parseRecord(document.text)) ?? emptyRecord(thread);

  /** Changes the record until nobody was in between. `seen` may name the document that is thought to be there. */
  async function change(
    thread: string,
    token: string,
    seen: Document | undefined,
    make: (record: TurnRecord, document: Document | undefined) => Change,
  ): Promise<{ document?: Document; refused?: "held" | "lost" }> {
    for (let document = seen;;) {
      const record = recordOf(thread, document);
      if (record.tokens.includes(token)) return { document };
      const made = make(record, document);
      if ("refused" in made) return { document, refused: made.refused };
      if (!made.record && !document) return {};
      const text = made.record ? JSON.stringify(made.record) : null;
      const swapped = await documents.swap(thread, "turn", document?.tag ?? null, text);
      if (swapped.swapped) return text === null ? {} : { document: { text, tag: swapped.tag, ageMs: 0 } };
      document = swapped.current;
    }
  }

  const store: ConversationStore = {
    term: locks ? undefined : parts.term,
    last: (thread) => driver.last(thread),
    read: (thread, from, to) => driver.read(thread, from, to),
    readBack: (thread, before, limit) => driver.readBack(thread, before, limit),
    append: (thread, append) => driver.append(thread, append),
    threads: (after, limit) => driver.threads(after, limit),
    put: async (thread, lines, options = {}) => {
      const put = await driver.put(thread, lines, options);
      if (options.tools) await store.toolsNarrow(thread, options.tools);
      return put;
    },
    forget: (thread) => driver.forget(thread),
    close: () => driver.close(),

    async leaseRead(thread) {
      const document = await documents.get(thread, "turn");
      return document && held(document, recordOf(thread, document));
    },

    async leaseTake(thread, lease, replaces) {
      const token = lease.key;
      const lock = locks && lease.term === undefined ? await locks.own() : undefined;
      const full: Lease = lock
        ? { ...lease, holder: { ...lease.holder, lock } }
        : { ...lease, term: lease.term ?? parts.term };
      const seen = replaces === undefined ? undefined : await documents.get(thread, "turn");
      const done = await change(thread, token, seen, (record, document) => {
        if (replaces !== undefined && document?.tag !== replaces) return { refused: "held" };
        return take(record, full, token, replaces !== undefined);
      });
      return done.refused || !done.document
        ? undefined
        : held(done.document, recordOf(thread, done.document));
    },

    async leaseRenew(thread, key, changed = {}) {
      const seen = await documents.get(thread, "turn");
      const token = parts.ids("renew");
      const done = await change(thread, token, seen, (record) => renew(record, key, token, changed));
      if (done.refused) throw new Failure("lease_lost", { thread });
    },

    async leaseFree(thread, key, noted) {
      const seen = await documents.get(thread, "turn");
      const token = parts.ids("free");
      await change(thread, token, seen, (record) => free(record, key, token, noted));
    },

    async mark(thread, noted: Mark) {
      const token = parts.ids("mark");
      const done = await change(
        thread,
        token,
        await documents.get(thread, "turn"),
        (record) => mark(record, noted, token),
      );
      if (done.refused) throw new Failure("lease_lost", { thread });
    },

    async marksRead(thread) {
      return recordOf(thread, await documents.get(thread, "turn")).marks;
    },

    async toolsNarrow(thread, tools) {
      for (let document = await documents.get(thread, "tools");;) {
        const kept = document && toolsOf(document);
        const narrowed = [...new Set(kept ? kept.filter((tool) => tools.includes(tool)) : tools)].sort();
        if (kept && kept.length === narrowed.length) return kept;
        const swapped = await documents.swap(
          thread,
          "tools",
          document?.tag ?? null,
          JSON.stringify(narrowed),
        );
        if (swapped.swapped) return narrowed;
        document = swapped.current;
      }
    },

    async toolsRead(thread) {
      const document = await documents.get(thread, "tools");
      return document && toolsOf(document);
    },

    async open() {
      const open: OpenConversation[] = [];
      for (const { document } of await documents.list("turn")) {
        const record = parseRecord(document.text);
        if (record) open.push({ thread: record.thread, held: held(document, record), marks: record.marks });
      }
      return open;
    },
  };
  return store;
}

/** The narrowed tools of a document. One that cannot be read narrows to nothing: losing it must never widen. */
function toolsOf(document: Document): string[] {
  try {
    const tools: unknown = JSON.parse(document.text);
    return Array.isArray(tools) ? tools.filter((tool) => typeof tool === "string") : [];
  } catch {
    return [];
  }
}
