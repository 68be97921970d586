// The thin edge to the file system, for one root: short synchronous steps, failures as ours, no symbolic link in any part below
// the root. What the steps are for stands elsewhere; tests put a disk in its place that fills up or dies at a given step.

import fs from "node:fs";
import { dirname, relative, sep } from "node:path";
import { Failure } from "../errors.ts";
import { limits } from "../limits.ts";

/** What is told of a file without following it. */
export interface Stat {
  kind: "file" | "folder" | "link" | "other";
  size: number;
  mode: number;
  inode: number;
  device: number;
  /** ms since 1970 of its last change of content. */
  changed: number;
  /** ms since 1970 of its last change of anything. */
  touched: number;
}

/** `read`: must be there. `write`: must be there. `create`: is made where it is not. `new`: must not be there (`exists`). */
export type OpenFor = "read" | "write" | "create" | "new";

/** Steps on files below a root. Every path is absolute and lies below it. */
export interface Disk {
  readonly root: string;
  /** Undefined where there is nothing. */
  stat(path: string): Stat | undefined;
  statOpen(file: number): Stat;
  /** Undefined where it must be there and is not. Throws `link_refused`. */
  open(path: string, how: OpenFor, mode?: number): number | undefined;
  /** Bytes read: as many as asked for, less only at the end. */
  read(file: number, into: Uint8Array, at: number): number;
  /** Writes all of it or throws. */
  write(file: number, bytes: Uint8Array, at: number): void;
  /** The whole file; undefined where there is none. Throws `store_failed` over `bytesMax`. */
  readWhole(path: string, bytesMax: number): Uint8Array | undefined;
  /** Puts a whole file in place in one step: whoever looks sees the old one or the new one, whatever ends this process. */
  writeWhole(path: string, bytes: Uint8Array, options: { sync: boolean; mode?: number }): void;
  truncate(file: number, size: number): void;
  /** Brings what was written to the disk itself. */
  sync(file: number): void;
  close(file: number): void;
  /** Makes the folder and those above it, below the root. True where it was not there. */
  makeFolder(path: string): boolean;
  /** Brings new and gone names in a folder to the disk itself. */
  syncFolder(path: string): void;
  rename(from: string, to: string): void;
  /** No error where it is gone. */
  remove(path: string): void;
  /** Removes a folder and all below it, links themselves included, never what they point at. No error where it is gone. */
  removeFolder(path: string): void;
  /** Names in a folder, none where there is no folder. */
  names(path: string): string[];
}

/** The disk below `root`. Others than the harness write in the folder `workspace` of it: there nothing that was seen once is trusted. */
export function openDisk(root: string, workspace?: string): Disk {
  const { O_RDONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_NOFOLLOW = 0, O_DIRECTORY = 0, O_NONBLOCK = 0 } =
    fs.constants;
  // A pipe in a file's place is opened without waiting for its other end, and refused.
  const flags = {
    read: O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
    write: O_RDWR | O_NOFOLLOW | O_NONBLOCK,
    create: O_RDWR | O_CREAT | O_NOFOLLOW,
    new: O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW,
  };

  /** Runs one step; what the system says about `path` becomes a failure of ours. */
  function step<T>(path: string, act: () => T): T {
    try {
      return act();
    } catch (error) {
      throw failureOf(error, named(path));
    }
  }

  /** Folders outside of the workspace that were seen to be no links. */
  const trusted = new Set<string>();
  const isOwn = (path: string) => workspace === undefined || !`${path}${sep}`.startsWith(workspace + sep);

  const named = (path: string) => relative(root, path) || path;

  // Asks first whether anything is there: on Deno an error of the system costs ten times that. A link to nothing counts as nothing
  // here; whoever then makes the file is refused.
  const stat = (path: string) => fs.existsSync(path) ? look(path) : undefined;

  function look(path: string): Stat | undefined {
    try {
      const found = fs.lstatSync(path, { throwIfNoEntry: false });
      return found && told(found);
    } catch (error) {
      if (isGone(error)) return undefined;
      throw failureOf(error, named(path));
    }
  }

  /** Throws where a part of the way from the root to `path` is a link; `path` itself included where `whole`. False where a part is missing. */
  function guard(path: string, whole: boolean): boolean {
    if (path === root) return true;
    if (!path.startsWith(root) || path[root.length] !== sep) {
      throw new Failure("store_failed", { why: `${path} lies outside of ${root}` });
    }
    for (let end = root.length;;) {
      const next = path.indexOf(sep, end + 1);
      if (next === -1 && !whole) return true;
      const part = next === -1 ? path : path.slice(0, next);
      if (!trusted.has(part)) {
        const kind = look(part)?.kind;
        if (kind === "link") throw new Failure("link_refused", { path: named(part) });
        if (kind === undefined) return false;
        if (kind === "folder" && isOwn(part)) trusted.add(part);
      }
      if (next === -1) return true;
      end = next;
    }
  }

  /** A file that is longer than the first read, whole. */
  function rest(file: number, path: string, bytesMax: number): Uint8Array {
    for (let bytes = new Uint8Array(Math.min(2 * first.length, bytesMax + 1));;) {
      const done = disk.read(file, bytes, 0);
      if (done > bytesMax) {
        throw new Failure("store_failed", { why: `${named(path)} is over ${bytesMax} bytes` });
      }
      if (done < bytes.length) return bytes.subarray(0, done);
      bytes = new Uint8Array(Math.min(4 * bytes.length, bytesMax + 1));
    }
  }

  const first = new Uint8Array(limits.wholeBytes);
  const disk: Disk = {
    root,
    stat,
    statOpen: (file) => told(fs.fstatSync(file)),

    open(path, how, mode = 0o600) {
      const isGuarded = isOwn(path);
      if (isGuarded || how === "create" || how === "new") guard(path, false);
      let file: number;
      try {
        file = fs.openSync(path, flags[how], mode);
      } catch (error) {
        if ((how === "read" || how === "write") && isGone(error)) return undefined;
        if (codeOf(error) === "ELOOP") throw new Failure("link_refused", { path: named(path) });
        throw failureOf(error, named(path));
      }
      if (isGuarded) return file;
      try {
        // Looked at after the opening: a part that became a link in between shows as one, or as another file.
        guard(path, true);
        const opened = fs.fstatSync(file), found = stat(path);
        if (!found || found.inode !== opened.ino || found.device !== opened.dev) {
          throw new Failure("store_failed", { why: `${named(path)} was replaced while it was opened` });
        }
        if (!opened.isFile()) throw new Failure("store_failed", { why: `${named(path)} is no plain file` });
        return file;
      } catch (error) {
        fs.closeSync(file);
        throw error;
      }
    },

    read(file, into, at) {
      return step("a file", () => {
        let done = 0;
        while (done < into.length) {
          const count = fs.readSync(file, into, done, into.length - done, at + done);
          if (count === 0) break;
          done += count;
        }
        return done;
      });
    },

    write(file, bytes, at) {
      step("a file", () => {
        let done = 0;
        while (done < bytes.length) {
          done += fs.writeSync(file, bytes, done, bytes.length - done, at + done);
        }
      });
    },

    readWhole(path, bytesMax) {
      if (!fs.existsSync(path)) return undefined;
      const file = disk.open(path, "read");
      if (file === undefined) return undefined;
      try {
        const done = disk.read(file, first, 0);
        if (done < first.length && done <= bytesMax) return first.slice(0, done);
        return rest(file, path, bytesMax);
      } finally {
        fs.closeSync(file);
      }
    },

    writeWhole(path, bytes, { sync, mode = 0o600 }) {
      const folder = path.slice(0, path.lastIndexOf(sep));
      if (!guard(path, false)) disk.makeFolder(folder);
      // Always the same name, so that what a dead process left is written over by the next.
      const beside = `${folder}${sep}.${path.slice(folder.length + 1)}.tmp`;
      step(path, () => {
        const file = fs.openSync(beside, flags.create | O_TRUNC, mode);
        try {
          disk.write(file, bytes, 0);
          if (sync) fs.fdatasyncSync(file);
          fs.renameSync(beside, path);
          if (sync) disk.syncFolder(folder);
        } catch (error) {
          disk.remove(beside);
          throw error;
        } finally {
          fs.closeSync(file);
        }
      });
    },

    truncate: (file, size) => step("a file", () => fs.ftruncateSync(file, size)),
    sync: (file) => step("a file", () => fs.fdatasyncSync(file)),
    close: (file) => fs.closeSync(file),

    makeFolder(path) {
      if (stat(path)?.kind === "folder") return guard(path, true), false;
      const missing: string[] = [];
      for (let at = path; at !== root && !look(at); at = dirname(at)) missing.unshift(at);
      guard(path, true);
      return step(path, () => {
        if (!stat(root)) fs.mkdirSync(root, { mode: 0o700, recursive: true });
        for (const folder of missing) {
          try {
            fs.mkdirSync(folder, { mode: 0o700 });
          } catch (error) {
            if (codeOf(error) !== "EEXIST") throw error;
          }
        }
        return true;
      });
    },

    syncFolder(path) {
      step(path, () => {
        const folder = fs.openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        try {
          fs.fsyncSync(folder);
        } finally {
          fs.closeSync(folder);
        }
      });
    },

    rename(from, to) {
      guard(from, false);
      if (dirname(from) !== dirname(to)) guard(to, false);
      step(to, () => fs.renameSync(from, to));
    },

    remove(path) {
      guard(path, false);
      try {
        fs.unlinkSync(path);
      } catch (error) {
        if (!isGone(error)) throw failureOf(error, named(path));
      }
    },

    removeFolder(path) {
      guard(path, false);
      step(path, () => fs.rmSync(path, { recursive: true, force: true }));
    },

    names(path) {
      guard(path, true);
      try {
        return fs.readdirSync(path);
      } catch (error) {
        if (isGone(error)) return [];
        throw failureOf(error, named(path));
      }
    },
  };
  return disk;
}

function told(stats: fs.Stats): Stat {
  return {
    kind: stats.isFile()
      ? "file"
      : stats.isDirectory()
      ? "folder"
      : stats.isSymbolicLink()
      ? "link"
      : "other",
    size: stats.size,
    mode: stats.mode & 0o777,
    inode: stats.ino,
    device: stats.dev,
    changed: stats.mtimeMs,
    touched: stats.ctimeMs,
  };
}

function codeOf(error: unknown): string | undefined {
  return (error as { code?: string } | undefined)?.code;
}

/** Nothing is there: no such name, or something on the way that is no folder. */
function isGone(error: unknown): boolean {
  return codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR";
}

/** A failure of the system as ours, with what to do about it. */
function failureOf(error: unknown, what: string): Failure {
  if (error instanceof Failure) return error;
  const code = codeOf(error) ?? (error as Error)?.name ?? "unknown";
  if (code === "ENOSPC" || code === "EDQUOT") return new Failure("store_full", { what }, { cause: error });
  if (code === "ELOOP") return new Failure("link_refused", { path: what }, { cause: error });
  if (code === "EEXIST") return new Failure("exists", { what }, { cause: error });
  const advice: Record<string, string> = {
    EROFS: "the file system is read-only; make it writable",
    EACCES: "this process may not touch it; give it the right to",
    EPERM: "this process may not touch it; give it the right to",
    NotCapable: "this process was started without the permission; allow it to read and write there",
    EMFILE: "too many files are open; raise the limit",
    ENFILE: "too many files are open; raise the limit",
    EFBIG: "the file would be larger than allowed; raise the limit",
    EIO: "the disk failed; look at it",
  };
  return new Failure("store_failed", { why: `${what}: ${code}, ${advice[code] ?? "see the system's log"}` }, {
    cause: error,
  });
}
