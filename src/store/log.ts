// The `log` way: `events.jsonl`, one event a line. Everything is one short synchronous step; whoever calls `append` holds the
// agent's lock. Readers hold none: what they read ends at a line end, and nothing before a line end is ever written again.

import { relative } from "node:path";
import { Failure } from "../errors.ts";
import { limits } from "../limits.ts";
import type { Notify } from "../notices.ts";
import type { ConversationPaths } from "../paths.ts";
import type { Disk } from "./disk.ts";
import {
  isBlank,
  isTorn,
  lineFeed,
  linesBack,
  linesFrom,
  numberAtStart,
  numberOf,
  readLine,
} from "./lines.ts";
import type { Older } from "./older.ts";
import type { Append } from "./seams.ts";

/** How one conversation's events are kept in its folder. */
export interface Keeping {
  last(): number;
  read(from: number, to?: number): Iterable<string>;
  readBack(before: number | undefined, limit: number): string[];
  /** The agent's lock is held alone. `sync`: on the disk itself when it returns. */
  append(append: Append, sync: boolean): { again?: true };
  close(): void;
}

export interface LogParts {
  disk: Disk;
  paths: ConversationPaths;
  /** Events of the older layout: they come before the log's first line. */
  older: Older;
  notify: Notify;
}

/** What stands behind the last whole line: nothing, or what a write that never ended left. */
type Rest =
  | { kind: "none" }
  | { kind: "blank" } // white space or zeros
  | { kind: "unended"; stop: number } // a whole event that only lacks its line end
  | { kind: "torn" };

/** The log as last seen. `end` follows the last whole line; `places` are the starts of the newest lines, the last one's last. */
interface Seen {
  handle: Handle;
  size: number;
  end: number;
  seq: number;
  places: number[];
  rest: Rest;
}

/** An open file and who uses it: closed when it is given up and the last reader is through. */
interface Handle {
  file: number;
  inode: number;
  writes: boolean;
  users: number;
  givenUp: boolean;
}

/** The log that was open is not the one that stands there now: tell again how the conversation is kept. */
export class Moved extends Error {}

/** The log in a conversation's folder, whether or not it is there yet. */
export function openLog({ disk, paths, older, notify }: LogParts): Keeping {
  let seen: Seen | undefined;
  const name = relative(disk.root, paths.log);

  const reader = (handle: Handle) => (at: number, size: number) => {
    const bytes = new Uint8Array(size);
    return bytes.subarray(0, disk.read(handle.file, bytes, at));
  };

  /** The log as it stands now; undefined where there is no file. Costs one look where nothing is new. */
  function look(writes: boolean): Seen | undefined {
    const found = disk.stat(paths.log);
    if (seen && seen.handle.inode !== found?.inode) throw new Moved();
    if (!found) return undefined;
    if (found.kind === "link") throw new Failure("link_refused", { path: name });
    if (seen && found.size < seen.end) close();
    if (!seen || (writes && !seen.handle.writes)) seen = opened(writes, seen);
    if (!seen) return undefined;
    if (found.size !== seen.end || seen.rest.kind !== "none") seen = caughtUp(seen, found.size);
    return seen;
  }

  function opened(writes: boolean, before: Seen | undefined): Seen | undefined {
    const file = disk.open(paths.log, writes ? "write" : "read");
    if (file === undefined) return undefined;
    const handle = { file, inode: disk.statOpen(file).inode, writes, users: 0, givenUp: false };
    if (before) giveUp(before.handle);
    if (before?.handle.inode === handle.inode) return { ...before, handle };
    return { handle, size: 0, end: 0, seq: older.count, places: [], rest: { kind: "none" } };
  }

  /** Looks twice before it tells damage: a writer in another process may have been at its last line. */
  function caughtUp(before: Seen, size: number): Seen {
    try {
      return withEnd(before, size);
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== "log_damaged") throw error;
      return withEnd(before, disk.statOpen(before.handle.file).size);
    }
  }

  /** What was known, and what stands behind it. */
  function withEnd(before: Seen, size: number): Seen {
    const read = reader(before.handle);
    const { end, rest } = endOf(read, before.end, size);
    const starts: number[] = [];
    let seq: number | undefined;
    for (const { at, bytes } of linesBack(read, before.end, end, limits.endBytes)) {
      if (seq === undefined) seq = checked(bytes, at, undefined).seq;
      else if (starts.length === 1) follows(bytes, seq, starts[0] as number);
      starts.push(at);
      // Of a file that is new here, which may be long, the last lines are enough. One that grew is followed line by line.
      const isEnough = before.end === 0 && end - at > limits.endBytes / 2;
      if (isEnough || starts.length === limits.placesKept) break;
    }
    const places = [...before.places, ...starts.reverse()].slice(-limits.placesKept);
    if (seq === undefined) return { ...before, size, end, rest };
    const isCounted = before.end > 0
      ? starts.length < limits.placesKept
      : starts.length === 1 && starts[0] === 0;
    if (isCounted && seq !== before.seq + starts.length) {
      for (const _ of inOrder(before.handle, before.end, end, before.seq + 1)) { /* tells where */ }
    }
    return { handle: before.handle, size, end, seq, places, rest };
  }

  /** The last line's number must follow that of the line before, where that can be read: it says how many there are. */
  function follows(before: Uint8Array, seq: number, at: number): void {
    const line = readLine(before);
    if ("seq" in line && line.seq + 1 !== seq) {
      throw damaged(at, `number ${seq} stands where ${line.seq + 1} should`);
    }
  }

  /** Where the last whole line ends, at `floor` or behind it, and what stands behind it. */
  function endOf(
    read: (at: number, size: number) => Uint8Array,
    floor: number,
    size: number,
  ): { end: number; rest: Rest } {
    if (size - floor >= 2) {
      const [brace, feed] = read(size - 2, 2);
      if (brace === 0x7d && feed === lineFeed) return { end: size, rest: { kind: "none" } };
    }
    const tail = tailOf(read, floor, size);
    if (!tail) return { end: floor, rest: size > floor ? { kind: "blank" } : { kind: "none" } };
    const { at, bytes } = tail;
    const stop = at + bytes.length;
    const behind = read(stop, Math.min(size - stop, limits.endBytes));
    const feed = behind.findIndex((byte) => byte === lineFeed || byte === 0);
    const ended = behind[feed] === lineFeed;
    const line = readLine(bytes);
    if ("seq" in line) {
      if (!ended) return { end: at, rest: { kind: "unended", stop } };
      const end = stop + feed + 1;
      return { end, rest: size > end ? { kind: "blank" } : { kind: "none" } };
    }
    // A line that once was whole and lost a quotation mark looks unfinished too, but still ends as one that is whole.
    if (isTorn(bytes) && !(ended && bytes.at(-1) === 0x7d)) return { end: at, rest: { kind: "torn" } };
    throw damaged(at, line.why);
  }

  /** The last line that holds something, up to its last byte that says something. */
  function tailOf(
    read: (at: number, size: number) => Uint8Array,
    floor: number,
    size: number,
  ): { at: number; bytes: Uint8Array } | undefined {
    for (let chunk = limits.endBytes;; chunk *= 4) {
      const from = Math.max(floor, size - chunk);
      const bytes = read(from, size - from);
      const stop = bytes.findLastIndex((byte) => !isBlank(byte)) + 1;
      const feed = stop > 0 ? bytes.lastIndexOf(lineFeed, stop - 1) : -1;
      if (stop > 0 && (feed !== -1 || from === floor)) {
        return { at: from + feed + 1, bytes: bytes.subarray(feed + 1, stop) };
      }
      if (from === floor) return undefined;
    }
  }

  /** Whole lines from byte `at` on, which is where number `from` stands. Throws where another number or no event stands. */
  function* inOrder(handle: Handle, at: number, end: number, from: number): Generator<string> {
    let seq = from;
    for (const line of linesFrom(reader(handle), at, end, Math.min(limits.readBytes, end - at))) {
      yield checked(line.bytes, line.at, seq++).text;
    }
  }

  function checked(bytes: Uint8Array, at: number, seq: number | undefined): { text: string; seq: number } {
    const line = readLine(bytes);
    if (!("seq" in line)) throw damaged(at, line.why);
    if (seq !== undefined && line.seq !== seq) {
      throw damaged(at, `number ${line.seq} stands where ${seq} should`);
    }
    return line;
  }

  /** Where line number `seq` begins; it is one of the log's. */
  function placeOf(now: Seen, seq: number): number {
    const first = now.seq - now.places.length + 1;
    if (seq > now.seq) return now.end;
    if (seq >= first) return now.places[seq - first] as number;
    if (seq === older.count + 1) return 0;
    const read = reader(now.handle);
    let low = 0, lowSeq = older.count + 1;
    // Halves what is left by the numbers that lines begin with; a line that tells none is left to the last stretch.
    for (let high = now.places[0] ?? now.end; high - low > limits.endBytes;) {
      const middle = low + Math.floor((high - low) / 2);
      const block = read(middle, Math.min(limits.endBytes, high - middle));
      const feed = block.indexOf(lineFeed);
      const found = feed === -1 ? undefined : numberAtStart(block.subarray(feed + 1));
      if (found === undefined || found > seq || found < lowSeq) high = middle;
      else {
        low = middle + feed + 1;
        lowSeq = found;
      }
    }
    for (const line of linesFrom(read, low, now.end, limits.endBytes)) {
      if (checked(line.bytes, line.at, lowSeq).seq === seq) return line.at;
      lowSeq++;
    }
    throw damaged(now.end, `number ${seq} is missing`);
  }

  function* read(from: number, to = Number.MAX_SAFE_INTEGER): Generator<string> {
    const now = look(false);
    const last = Math.min(to, now?.seq ?? older.count);
    for (let seq = Math.max(1, from); seq <= Math.min(older.count, last); seq++) yield older.line(seq);
    const first = Math.max(from, older.count + 1);
    if (!now || first > last) return;
    now.handle.users++;
    try {
      let seq = first;
      for (const text of inOrder(now.handle, placeOf(now, first), now.end, first)) {
        yield text;
        if (seq++ >= last) return;
      }
      throw damaged(now.end, `number ${seq} is missing`);
    } finally {
      now.handle.users--;
      if (now.handle.givenUp) giveUp(now.handle);
    }
  }

  function readBack(before: number | undefined, limit: number): string[] {
    const now = look(false);
    const last = Math.min((before ?? Number.MAX_SAFE_INTEGER) - 1, now?.seq ?? older.count);
    const texts: string[] = [];
    if (now && last > older.count && limit > 0) {
      let seq = last;
      for (
        const { at, bytes } of linesBack(reader(now.handle), 0, placeOf(now, last + 1), limits.endBytes)
      ) {
        texts.push(checked(bytes, at, seq--).text);
        if (texts.length === limit) break;
      }
      if (texts.length < limit && seq > older.count) throw damaged(0, `number ${seq} is missing`);
    }
    for (let seq = Math.min(last, older.count); seq > 0 && texts.length < limit; seq--) {
      texts.push(older.line(seq));
    }
    return texts.reverse();
  }

  function append({ seq, lines }: Append, sync: boolean): { again?: true } {
    lines.forEach((line, i) => {
      if (line.includes("\n") || numberOf(line) !== seq + i) {
        throw new Failure("event_invalid", { why: `line ${i + 1} is not event ${seq + i} in one line` });
      }
    });
    let now = look(true);
    if (now && now.rest.kind !== "none") now = mended(now, sync);
    const last = now?.seq ?? older.count;
    if (seq <= last && lines.length > 0 && last >= seq + lines.length - 1) {
      const there = [...read(seq, seq + lines.length - 1)];
      if (there.every((line, i) => line === lines[i])) return { again: true };
    }
    if (seq !== last + 1) throw new Failure("seq_taken", { seq, next: last + 1 });
    now ??= created();
    write(now, lines, sync);
    return {};
  }

  function created(): Seen {
    const file = disk.open(paths.log, "create") as number;
    const handle = { file, inode: disk.statOpen(file).inode, writes: true, users: 0, givenUp: false };
    return seen = { handle, size: 0, end: 0, seq: older.count, places: [], rest: { kind: "none" } };
  }

  /** Writes at the end. Where it does not come to its end, the log is left as it was. */
  function write(now: Seen, lines: string[], sync: boolean): void {
    const bytes = new TextEncoder().encode(lines.join("\n") + "\n");
    try {
      disk.write(now.handle.file, bytes, now.end);
      if (sync) disk.sync(now.handle.file);
      if (sync && now.end === 0) disk.syncFolder(paths.folder);
    } catch (error) {
      try {
        disk.truncate(now.handle.file, now.end);
      } finally {
        close();
      }
      throw error;
    }
    let at = now.end;
    for (const line of lines) {
      now.places.push(at);
      at += Buffer.byteLength(line) + 1;
    }
    if (now.places.length > 2 * limits.placesKept) {
      now.places.splice(0, now.places.length - limits.placesKept);
    }
    now.seq += lines.length;
    now.end = now.size = at;
  }

  /** Makes the log end at a line end again and tells what was done. What is cut is set aside first. */
  function mended(now: Seen, sync: boolean): Seen {
    const { handle: { file }, rest, end, size } = now;
    if (rest.kind === "unended") {
      const { text, seq } = checked(reader(now.handle)(end, rest.stop - end), end, now.seq + 1);
      disk.truncate(file, rest.stop);
      disk.write(file, new Uint8Array([lineFeed]), rest.stop);
      if (sync) disk.sync(file);
      notify("warn", `${name}: event ${seq} lacked its line end, which was added.`, { bytes: text.length });
      now = { ...now, seq, places: [...now.places, end], end: rest.stop + 1 };
    } else {
      if (rest.kind === "torn") setAside(reader(now.handle)(end, size - end), sync);
      disk.truncate(file, end);
      if (sync) disk.sync(file);
      const what = rest.kind === "torn" ? "an event whose writing was cut short" : "blank bytes";
      const where = rest.kind === "torn" ? `; they stand in ${relative(disk.root, paths.torn)}` : "";
      notify("warn", `${name}: ${size - end} bytes of ${what} were cut behind event ${now.seq}${where}.`, {
        bytes: size - end,
      });
    }
    return seen = { ...now, size: now.end, rest: { kind: "none" } };
  }

  function setAside(bytes: Uint8Array, sync: boolean): void {
    const file = disk.open(paths.torn, "create") as number;
    try {
      disk.write(file, new Uint8Array([...bytes, lineFeed]), disk.statOpen(file).size);
      if (sync) disk.sync(file);
    } finally {
      disk.close(file);
    }
  }

  /** The failure, naming file, line and byte. */
  function damaged(at: number, why: string): Failure {
    let line = 1;
    const file = disk.open(paths.log, "read");
    if (file !== undefined) {
      try {
        const block = new Uint8Array(limits.readBytes);
        for (let from = 0; from < at; from += block.length) {
          const count = Math.min(disk.read(file, block, from), at - from);
          for (let i = 0; i < count; i++) if (block[i] === lineFeed) line++;
        }
      } finally {
        disk.close(file);
      }
    }
    return new Failure("log_damaged", { where: `${name}, line ${line} (byte ${at})`, why });
  }

  function giveUp(handle: Handle): void {
    handle.givenUp = true;
    if (handle.users === 0) disk.close(handle.file);
  }

  function close(): void {
    if (seen) giveUp(seen.handle);
    seen = undefined;
  }

  return { last: () => look(false)?.seq ?? older.count, read, readBack, append, close };
}
