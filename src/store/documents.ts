// Documents in folders: `turns/FOLDER`, one for each conversation that has something open, and `tools.json` beside the events.
// Each is replaced under the agent's lock by one rename; a reader sees the old text or the new one and needs no lock.

import { createHash } from "node:crypto";
import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";
import { type AgentPaths, folderThread, threadFolder } from "../paths.ts";
import type { Disk, Stat } from "./disk.ts";
import { parseRecord } from "./lease.ts";
import type { Lock } from "./lock.ts";
import type { Document, DocumentKind, Documents, ProcessLocks } from "./seams.ts";
import { Warm } from "./warm.ts";

export interface DocumentParts {
  disk: Disk;
  paths: AgentPaths;
  lock: Lock;
  locks: ProcessLocks;
  clock: Clock;
  /** Makes the conversation's folder where there is none. */
  makeFolder(thread: string): void;
  /** Threads of all conversations' folders. */
  threads(): string[];
}

/** Documents on disk, and a look at the lease for whoever holds the lock. */
export interface FolderDocuments extends Documents {
  /** Key of the lease that stands there now. The lock is held. */
  leaseKey(thread: string): string | undefined;
  /** Removes what is noted. The lock is held. */
  remove(thread: string): void;
}

export function openDocuments(parts: DocumentParts): FolderDocuments {
  const { disk, paths, lock, locks, clock, makeFolder, threads } = parts;
  const kept = new Warm<{ stat: Stat; document: Document }>(2 * limits.conversationsWarm);
  const pathOf = (thread: string, kind: DocumentKind) =>
    kind === "turn" ? paths.turn(thread) : paths.conversation(thread).tools;

  function read(path: string): Document | undefined {
    const stat = disk.stat(path);
    if (!stat) return undefined;
    const known = kept.get(path);
    if (known && isSame(known.stat, stat)) return aged(known.document, stat);
    const whole = disk.readWhole(path, limits.documentBytesMax);
    if (!whole) return undefined;
    const text = new TextDecoder().decode(whole.bytes);
    const document = { text, tag: tagOf(text) };
    kept.set(path, { stat: whole.stat, document });
    return aged(document, whole.stat);
  }

  // The file's time is this machine's, as the clock is: what tells of holders elsewhere, who have no lock here.
  const aged = (document: Document, stat: Stat) => ({
    ...document,
    ageMs: Math.max(0, clock.now() - stat.changed),
  });

  function write(thread: string, kind: DocumentKind, text: string): string {
    if (kind === "tools") makeFolder(thread);
    else if (!disk.stat(paths.turns)) disk.makeFolder(paths.turns);
    const path = pathOf(thread, kind);
    const document = { text, tag: tagOf(text) };
    const stat = disk.writeWhole(path, new TextEncoder().encode(text), { sync: isLasting(kind, text) });
    kept.set(path, { stat, document });
    return document.tag;
  }

  function turnOf(folder: string): { thread: string; document: Document } | undefined {
    const document = read(`${paths.turns}/${folder}`);
    const thread = folderThread(folder) ?? (document && parseRecord(document.text)?.thread);
    return document && thread !== undefined && threadFolder(thread) === folder
      ? { thread, document }
      : undefined;
  }

  return {
    locks,

    get: (thread, kind) => Promise.resolve().then(() => read(pathOf(thread, kind))),

    swap(thread, kind, tag, text) {
      return lock.alone(() => {
        const current = read(pathOf(thread, kind));
        if ((current?.tag ?? null) !== tag) return { swapped: false, current };
        if (text !== null) return { swapped: true, tag: write(thread, kind, text) };
        kept.drop(pathOf(thread, kind));
        disk.remove(pathOf(thread, kind));
        return { swapped: true, tag: "" };
      });
    },

    list(kind) {
      return Promise.resolve().then(() => {
        if (kind === "turn") {
          return disk.names(paths.turns).filter((name) => !name.startsWith(".")).flatMap((name) =>
            turnOf(name) ?? []
          );
        }
        return threads().flatMap((thread) => {
          const document = read(pathOf(thread, kind));
          return document ? { thread, document } : [];
        });
      });
    },

    leaseKey(thread) {
      const document = read(paths.turn(thread));
      return document && parseRecord(document.text)?.lease?.key;
    },

    remove(thread) {
      kept.drop(paths.turn(thread));
      disk.remove(paths.turn(thread));
    },
  };
}

/** Names a text. */
function tagOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

/** The same file, unchanged. */
function isSame(a: Stat, b: Stat): boolean {
  return a.inode === b.inode && a.changed === b.changed && a.size === b.size;
}

/** Whether losing the text at a power cut would lose more than a lease that is dead then anyway. */
function isLasting(kind: DocumentKind, text: string): boolean {
  return kind === "tools" || (parseRecord(text)?.marks.untaken.length ?? 0) > 0;
}
