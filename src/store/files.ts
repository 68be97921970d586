// The agent's files below one root: read, written whole, listed, removed. Never through a symbolic link, never outside of the
// root, never what the harness keeps for itself.

import { createHash } from "node:crypto";
import { join } from "node:path";
import { Failure } from "../errors.ts";
import { limits } from "../limits.ts";
import type { Disk } from "./disk.ts";
import type { Lock } from "./lock.ts";
import type { FileInfo, FileStore } from "./seams.ts";

export interface FilesParts {
  disk: Disk;
  root: string;
  lock: Lock;
  /** Names at the root that are not for this store. */
  hidden: readonly string[];
}

export function openFiles({ disk, root, lock, hidden }: FilesParts): FileStore {
  /** The place of a file, its path checked. */
  function placeOf(path: string): string {
    const parts = path.split("/");
    const isBad = parts.some((part) => part === "" || part === "." || part === "..") || /[\0\\]/.test(path);
    if (isBad || !path.isWellFormed() || hidden.includes(parts[0] as string)) {
      const message = "must be relative, with `/` between its parts, none of them empty, `.` or `..`";
      throw new Failure("invalid", {
        say: `There can be no file ${JSON.stringify(path)} here; its path ${message}.`,
        issues: [{ path: "path", message }],
      });
    }
    return join(root, ...parts);
  }

  const read = (place: string) =>
    disk.stat(place)?.kind === "folder" ? undefined : disk.readWhole(place, limits.fileBytesMax);

  function* below(folder: string, prefix: string): Generator<FileInfo> {
    for (const name of disk.names(folder).sort()) {
      const path = prefix + name;
      if (prefix === "" && hidden.includes(name) || /^\..*\.tmp$/.test(name)) continue;
      const stat = disk.stat(join(folder, name));
      if (stat?.kind === "folder") yield* below(join(folder, name), `${path}/`);
      if (stat?.kind !== "file") continue;
      const version = `${stat.inode}-${stat.changed}-${stat.touched}-${stat.size}`;
      yield { path, bytes: stat.size, mode: stat.mode, version };
    }
  }

  return {
    read: (path) => Promise.resolve().then(() => read(placeOf(path))),

    write(path, bytes, { expect, mode } = {}) {
      return lock.alone(() => {
        const place = placeOf(path);
        if (expect !== undefined) {
          const there = read(place);
          const hash = there ? createHash("sha256").update(there).digest("hex") : null;
          if (hash !== expect) throw new Failure("exists", { what: `Another ${path}` });
        }
        disk.makeFolder(join(place, ".."));
        disk.writeWhole(place, bytes, { sync: true, mode: mode ?? disk.stat(place)?.mode ?? 0o600 });
      });
    },

    list(prefix) {
      return Promise.resolve().then(() => {
        const folder = prefix.slice(0, prefix.lastIndexOf("/") + 1);
        const start = folder === "" ? root : placeOf(folder.slice(0, -1));
        return [...below(start, folder)].filter(({ path }) => path.startsWith(prefix)).sort((a, b) =>
          a.path < b.path ? -1 : 1
        );
      });
    },

    delete: (path) => lock.alone(() => disk.remove(placeOf(path))),
  };
}
