// An agent's store in folders of this machine, put together. A conversation that a driver keeps off the machine has its leases,
// marks and tools there too; all others have them here.

import type { Clock, Ids } from "../clock.ts";
import { Failure } from "../errors.ts";
import { limits } from "../limits.ts";
import type { Notify } from "../notices.ts";
import { agentPaths, type Where } from "../paths.ts";
import { conversationsOver } from "./conversations.ts";
import { openCopies } from "./copy.ts";
import { Directory, type Storage } from "./directory.ts";
import { type Disk, openDisk } from "./disk.ts";
import { openFiles } from "./files.ts";
import { openLock, type OwnLocks, processLocks } from "./lock.ts";
import { dispatched } from "./elsewhere.ts";
import type { AgentStore, Driver } from "./seams.ts";

export interface FolderStoreParts {
  agent: string;
  where: Where;
  clock: Clock;
  ids: Ids;
  notify: Notify;
  /** What the settings say now. Left out: the log, on the disk itself. */
  storage?(): Storage | Promise<Storage>;
  /** Opens a driver; asked once for each name. Left out: there are none. */
  driver?(name: string): Promise<Driver>;
  /** The process locks of `run`, where more than one store of a process shares them. */
  locks?: OwnLocks;
  /** ms of a lease of a driver that gives no process locks. */
  term?: number;
  /** Another disk, for tests. */
  disk?: Disk;
}

/** Opens the store; nothing is made until something is kept. */
export function openFolderStore(parts: FolderStoreParts): AgentStore {
  const { agent, where, clock, ids, notify, term = limits.leaseTermMs } = parts;
  const paths = agentPaths(agent, where);
  const disk = parts.disk ?? openDisk(paths.own, paths.files);
  const lock = openLock(disk, paths.lock, clock);
  const locks = parts.locks ?? processLocks(paths.run, ids);
  const storage = parts.storage ?? (() => ({ way: "log", sync: true }));
  const drivers = new Map<string, Promise<Driver>>();

  function driver(name: string): Promise<Driver> {
    let opened = drivers.get(name);
    if (!opened) {
      opened = (parts.driver ?? unknownDriver)(name);
      drivers.set(name, opened);
      opened.catch(() => drivers.delete(name));
    }
    return opened;
  }

  const directory = new Directory({ disk, paths, lock, locks, clock, notify, storage, driver });
  const here = conversationsOver(directory, { clock, ids, term });

  const copies = openCopies({
    disk,
    paths,
    way: (thread) => directory.way(thread),
    read: (thread, from, to) => directory.read(thread, from, to),
  });

  async function close() {
    copies.close();
    await directory.close();
    for (const opened of drivers.values()) await (await opened).close();
    lock.close();
    if (!parts.locks) locks.close();
  }

  const conversations = parts.driver
    ? dispatched(here, directory, {
      storage,
      driver,
      over: (driver) => conversationsOver(driver, { clock, ids, term }),
    })
    : here;
  return {
    conversations: { ...conversations, close },
    copy: copies.answered,
    own: openFiles({ disk, root: paths.own, lock, hidden: ["key", "lock", "turns", "files", "run"] }),
    files: openFiles({ disk, root: paths.files, lock, hidden: ["chats"] }),
  };
}

function unknownDriver(name: string): Promise<Driver> {
  return Promise.reject(new Failure("driver_unknown", { driver: name }));
}
