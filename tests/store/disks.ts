// Disks for tests: one that counts what is read, one that fills up, one that dies at a step as a process does.

import { Failure } from "../../src/errors.ts";
import { join } from "node:path";
import { type Disk, openDisk } from "../../src/store/disk.ts";

/** Steps that change something on the disk. */
const changing = [
  "write",
  "truncate",
  "makeFolder",
  "rename",
  "remove",
  "removeFolder",
  "writeWhole",
  "sync",
  "syncFolder",
] as const;

/** A disk that adds up the bytes read. */
export function countingDisk(root: string): Disk & { bytesRead: number } {
  const disk = openDisk(root, join(root, "files"));
  const counting = Object.assign(Object.create(disk) as Disk, {
    bytesRead: 0,
    read(file: number, into: Uint8Array, at: number) {
      const count = disk.read(file, into, at);
      counting.bytesRead += count;
      return count;
    },
  });
  return counting;
}

/** What a process that is killed does: nothing any more. */
export class Died extends Error {}

/** A disk of a process that is killed before its step number `steps`, half a write done; `taken` counts what it came to. */
export function dyingDisk(root: string, steps: number): Disk & { taken: number } {
  const disk = openDisk(root, join(root, "files"));
  const dying = Object.assign(Object.create(disk) as Disk, { taken: 0 });
  for (const name of changing) {
    Object.assign(dying, {
      [name](...args: unknown[]) {
        if (dying.taken === steps && name === "write") {
          const [file, bytes, at] = args as [number, Uint8Array, number];
          disk.write(file, bytes.subarray(0, bytes.length >> 1), at);
        }
        if (dying.taken++ >= steps) throw new Died();
        return (disk[name] as (...args: unknown[]) => unknown)(...args);
      },
    });
  }
  return dying;
}

/** A disk with room for so many bytes more; `room` may be given more later. */
export function smallDisk(root: string, room: number): Disk & { room: number } {
  const disk = openDisk(root, join(root, "files"));
  const small = Object.assign(Object.create(disk) as Disk, {
    room,
    write(file: number, bytes: Uint8Array, at: number) {
      disk.write(file, bytes.subarray(0, small.room), at);
      if (bytes.length > small.room) {
        small.room = 0;
        throw new Failure("store_full", { what: "a file" });
      }
      small.room -= bytes.length;
    },
  });
  return small;
}
