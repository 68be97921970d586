// The older layout: one file per event, `events/000001.json` (or `000001.json` beside it). Read, never written: an event that comes
// after is the first line of `events.jsonl`, its number going on from here.

import { join, relative } from "node:path";
import { Failure } from "../errors.ts";
import { limits } from "../limits.ts";
import type { ConversationPaths } from "../paths.ts";
import type { Disk } from "./disk.ts";
import { readLine } from "./lines.ts";

/** Events that stand in files of their own, numbered from 1. */
export interface Older {
  count: number;
  line(seq: number): string;
}

/** No such events. */
export const noOlder: Older = {
  count: 0,
  line: (seq) => {
    throw new Failure("internal", { seq });
  },
};

const eventFile = /^0*(\d+)\.json$/;

/** Events in files of their own, in a folder whose names are `names`. */
export function openOlder(disk: Disk, paths: ConversationPaths, names: readonly string[]): Older {
  const found = new Map<number, string>();
  const add = (folder: string, name: string) => {
    const match = eventFile.exec(name);
    if (match) found.set(Number(match[1]), join(folder, name));
  };
  for (const name of names) add(paths.folder, name);
  if (names.includes("events")) { for (const name of disk.names(paths.older)) add(paths.older, name); }
  if (found.size === 0) return noOlder;

  const damaged = (path: string, why: string) =>
    new Failure("log_damaged", { where: relative(disk.root, path), why });

  for (let seq = 1; seq <= found.size; seq++) {
    if (!found.has(seq)) throw damaged(paths.older, `event ${seq} is missing`);
  }
  return {
    count: found.size,
    line(seq) {
      const path = found.get(seq) as string;
      const line = readLine(wholeFile(disk, path));
      if (!("seq" in line)) throw damaged(path, line.why);
      if (line.seq !== seq) throw damaged(path, `number ${line.seq} stands where ${seq} should`);
      const text = line.text.trim();
      // Written by hand over several lines: the same event in one.
      return text.includes("\n") ? JSON.stringify(JSON.parse(text)) : text;
    },
  };
}

function wholeFile(disk: Disk, path: string): Uint8Array {
  const file = disk.open(path, "read");
  if (file === undefined) return new Uint8Array(0);
  try {
    const { size } = disk.statOpen(file);
    if (size > limits.eventBytesMax) {
      throw new Failure("log_damaged", { where: path, why: "it is too large" });
    }
    const bytes = new Uint8Array(size);
    return bytes.subarray(0, disk.read(file, bytes, 0));
  } finally {
    disk.close(file);
  }
}
