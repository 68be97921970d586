// The copy for people beside a log: `chat.md`. It only grows, by each answer and what was said since the one before; where it does not
// end with the answer before, it is made again from the events. Derived: nothing is lost with it, so it is not forced to the disk.

import { dirname, join } from "node:path";
import { limits } from "../limits.ts";
import { isAnswer } from "../log/conversation.ts";
import type { Kept, ModelEvent } from "../log/event.ts";
import { answerText, transcriber, transcript } from "../log/transcript.ts";
import type { AgentPaths } from "../paths.ts";
import type { Disk } from "./disk.ts";
import type { Way } from "./seams.ts";
import { Warm } from "./warm.ts";

export interface CopyParts {
  disk: Disk;
  paths: AgentPaths;
  way(thread: string): Way | undefined;
  read(thread: string, from: number, to: number): AsyncIterable<string>;
}

/** The copies of an agent's conversations, their files kept at hand. */
export interface Copies {
  /** Brings a copy up to the newest answer among `held`: the newest events, in order, that the turn has at hand. */
  answered(thread: string, held: readonly Kept[]): Promise<void>;
  close(): void;
}

/** An open copy. */
interface Open {
  file: number;
  inode: number;
  size: number;
}

export function openCopies({ disk, paths, way, read }: CopyParts): Copies {
  const warm = new Warm<Open>(limits.conversationsWarm, ({ file }) => disk.close(file));

  /** Adds the newest answer; false where the copy does not end with the one before, or what lies between is not all held. */
  function added(path: string, held: readonly Kept[], newest: ModelEvent): boolean {
    const before = held.findLast(({ event }) => isAnswer(event) && event.seq < newest.seq)?.event;
    const reaches = isAnswer(before) ? before.upto + 1 : 1;
    if ((held[0]?.seq ?? Infinity) > reaches) return false;
    const open = opened(path);
    if (!open || !endsWith(open, isAnswer(before) ? before : undefined)) return false;

    const add = transcriber();
    let text = "";
    for (const kept of held) {
      if (kept.seq <= newest.seq) text = add(kept) || text;
    }
    const bytes = new TextEncoder().encode(text);
    disk.write(open.file, bytes, open.size);
    open.size += bytes.length;
    return true;
  }

  function opened(path: string): Open | undefined {
    const stat = disk.stat(path);
    const known = warm.get(path);
    if (known && stat && known.inode === stat.inode) {
      known.size = stat.size;
      return known;
    }
    warm.drop(path);
    const file = disk.open(path, "create") as number;
    const { inode, size } = disk.statOpen(file);
    const open = { file, inode, size };
    warm.set(path, open);
    return open;
  }

  function endsWith(open: Open, answer: ModelEvent | undefined): boolean {
    if (!answer) return open.size === 0;
    const end = new TextEncoder().encode(answerText(answer));
    if (open.size < end.length) return false;
    const there = new Uint8Array(end.length);
    disk.read(open.file, there, open.size - end.length);
    return there.every((byte, i) => byte === end[i]);
  }

  /** Makes it anew, in one step for whoever reads it. */
  async function made(thread: string, path: string, upto: number): Promise<void> {
    warm.drop(path);
    const beside = join(dirname(path), ".chat.md.tmp");
    const file = disk.open(beside, "create") as number;
    try {
      disk.truncate(file, 0);
      let at = 0;
      for await (const text of transcript(read(thread, 1, upto))) {
        const bytes = new TextEncoder().encode(text);
        disk.write(file, bytes, at);
        at += bytes.length;
      }
      disk.rename(beside, path);
    } finally {
      disk.close(file);
    }
  }

  return {
    async answered(thread, held) {
      const newest = held.findLast(({ event }) => isAnswer(event))?.event;
      if (!isAnswer(newest) || way(thread) !== "log") return;
      const path = paths.conversation(thread).copy;
      if (!added(path, held, newest)) await made(thread, path, newest.seq);
    },
    close: () => warm.clear(),
  };
}
