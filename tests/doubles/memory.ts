// A driver in memory: what every store must do, in its plainest form. Shared by as many "processes" as a test has.

import { Failure } from "../../src/errors.ts";
import type { Append, Document, DocumentKind, Driver, Swapped, ThreadInfo } from "../../src/store/seams.ts";

export interface Memory {
  conversations: Map<string, { lines: string[]; tokens: Map<string, number> }>;
  documents: Map<string, { thread: string; kind: DocumentKind; text: string; tag: string; written: number }>;
  /** Tags given so far, by all drivers over it. */
  tags: number;
}

function newConversation(): { lines: string[]; tokens: Map<string, number> } {
  return { lines: [], tokens: new Map() };
}

export function newMemory(): Memory {
  return { conversations: new Map(), documents: new Map(), tags: 0 };
}

/** `now` is the store's own clock, ms. `checksKey`: whether an append checks its lease in the same step. */
export function memoryDriver(memory: Memory, now: () => number, checksKey = true): Driver {
  const lines = (thread: string) => memory.conversations.get(thread)?.lines ?? [];
  const keyOf = (thread: string) => {
    const document = memory.documents.get(`turn ${thread}`);
    return document && (JSON.parse(document.text) as { lease?: { key: string } }).lease?.key;
  };
  return {
    name: "memory",
    shared: true,
    last: (thread) => Promise.resolve(lines(thread).length),
    async *read(thread, from, to = Infinity) {
      for (const line of lines(thread).slice(from - 1, to)) yield await Promise.resolve(line);
    },
    readBack: (thread, before = Infinity, limit) => {
      const until = lines(thread).slice(0, before - 1);
      return Promise.resolve(until.slice(Math.max(0, until.length - limit)));
    },
    append: (thread, append: Append) => {
      const known = memory.conversations.get(thread) ?? newConversation();
      if (known.tokens.has(append.token)) return Promise.resolve({ again: true as const });
      if (checksKey && append.key !== undefined && keyOf(thread) !== append.key) {
        return Promise.reject(new Failure("lease_lost", { thread }));
      }
      const next = known.lines.length + 1;
      if (append.seq !== next) return Promise.reject(new Failure("seq_taken", { seq: append.seq, next }));
      known.lines.push(...append.lines);
      known.tokens.set(append.token, append.seq);
      memory.conversations.set(thread, known);
      return Promise.resolve({});
    },
    put: async (thread, source, { replace }) => {
      if (memory.conversations.has(thread) && !replace) throw new Failure("exists", { what: thread });
      const all: string[] = [];
      for await (const line of source) all.push(line);
      memory.conversations.set(thread, { lines: all, tokens: new Map() });
      return { events: all.length };
    },
    threads: (after, limit) => {
      const names = [...memory.conversations.keys()].sort().filter((thread) =>
        after === undefined || thread > after
      );
      return Promise.resolve(
        names.slice(0, limit).map((thread): ThreadInfo => {
          const newest = lines(thread).at(-1);
          return {
            thread,
            events: lines(thread).length,
            storage: "memory",
            updated: newest ? JSON.parse(newest).at : "",
          };
        }),
      );
    },
    forget: (thread) => {
      memory.conversations.delete(thread);
      for (const kind of ["turn", "tools"]) memory.documents.delete(`${kind} ${thread}`);
      return Promise.resolve();
    },
    documents: {
      get: (thread, kind) => Promise.resolve(current(thread, kind)),
      swap: (thread, kind, tag, text): Promise<Swapped> => {
        const there = current(thread, kind);
        if ((there?.tag ?? null) !== tag) return Promise.resolve({ swapped: false, current: there });
        if (text === null) {
          memory.documents.delete(`${kind} ${thread}`);
          return Promise.resolve({ swapped: true, tag: "" });
        }
        const made = `tag ${++memory.tags}`;
        memory.documents.set(`${kind} ${thread}`, { thread, kind, text, tag: made, written: now() });
        return Promise.resolve({ swapped: true, tag: made });
      },
      list: (kind) =>
        Promise.resolve(
          [...memory.documents.values()].filter((one) => one.kind === kind)
            .map(({ thread }) => ({ thread, document: current(thread, kind)! })),
        ),
    },
    close: () => Promise.resolve(),
  };

  function current(thread: string, kind: DocumentKind): Document | undefined {
    const there = memory.documents.get(`${kind} ${thread}`);
    return there && { text: there.text, tag: there.tag, ageMs: now() - there.written };
  }
}
