// Documents in folders: `turns/FOLDER`, one for each conversation that has something open, and `tools.json` beside the events.
// Each is replaced under the agent's lock by one rename; a reader sees the old text or the new one and needs no lock.

import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";
import { type AgentPaths, folderThread, threadFolder } from "../paths.ts";
import type { Disk } from "./disk.ts";
import { parseRecord, type TurnRecord } from "./lease.ts";
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

/** A document as it was last seen on the disk. */
interface Kept {
  bytes: Uint8Array;
  document: Document;
  record: TurnRecord | undefined;
}

export function openDocuments(parts: DocumentParts): FolderDocuments {
  const { disk, paths, lock, locks, clock, makeFolder, threads } = parts;
  const kept = new Warm<Kept>(2 * limits.conversationsWarm);
  const pathOf = (thread: string, kind: DocumentKind) =>
    kind === "turn" ? paths.turn(thread) : paths.conversation(thread).tools;

  function read(path: string): Kept | undefined {
    const bytes = disk.readWhole(path, limits.documentBytesMax);
    if (!bytes) return undefined;
    const known = kept.get(path);
    // Compared as bytes: cheaper than asking the system whether the file changed, and surer.
    return known && Buffer.compare(known.bytes, bytes) === 0
      ? known
      : keep(path, bytes, new TextDecoder().decode(bytes));
  }

  function keep(path: string, bytes: Uint8Array, text: string): Kept {
    const now = { bytes, document: { text, tag: tagOf(text) }, record: parseRecord(text) };
    kept.set(path, now);
    return now;
  }

  function write(thread: string, kind: DocumentKind, text: string): string {
    if (kind === "tools") makeFolder(thread);
    const path = pathOf(thread, kind);
    const { bytes, document, record } = keep(path, new TextEncoder().encode(text), text);
    // Losing an untaken answer or narrowed tools at a power cut would lose more than a lease that is dead then anyway.
    disk.writeWhole(path, bytes, { sync: kind === "tools" || (record?.marks.untaken.length ?? 0) > 0 });
    return document.tag;
  }

  /** The document, and its age where a holder elsewhere, who has no lock here, is told by it: the file's time is this machine's. */
  function aged(path: string): Document | undefined {
    const found = read(path);
    if (!found?.record?.lease || found.record.lease.holder.lock !== undefined) return found?.document;
    const { changed } = disk.stat(path) ?? { changed: 0 };
    return { ...found.document, ageMs: Math.max(0, clock.now() - changed) };
  }

  function turnOf(folder: string): { thread: string; document: Document } | undefined {
    const path = join(paths.turns, folder);
    const document = aged(path);
    const thread = folderThread(folder) ?? kept.get(path)?.record?.thread;
    return document && thread !== undefined && threadFolder(thread) === folder
      ? { thread, document }
      : undefined;
  }

  return {
    locks,

    get: (thread, kind) => Promise.resolve().then(() => aged(pathOf(thread, kind))),

    swap(thread, kind, tag, text) {
      return lock.alone(() => {
        const current = read(pathOf(thread, kind))?.document;
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
          const document = read(pathOf(thread, kind))?.document;
          return document ? { thread, document } : [];
        });
      });
    },

    leaseKey(thread) {
      return read(paths.turn(thread))?.record?.lease?.key;
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
