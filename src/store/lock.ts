// Locks between processes: SQLite's own file locks on files that hold nothing. The operating system frees them whatever ends
// the process. A lock file is opened in no other way, by nobody: closing any other handle of it would drop the lock.

import process from "node:process";
import { dirname, join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Clock, Ids } from "../clock.ts";
import { Failure } from "../errors.ts";
import { limits } from "../limits.ts";
import { type Disk, openDisk } from "./disk.ts";
import type { ProcessLocks } from "./seams.ts";

/** A lock that processes share: held for one short synchronous section, alone or beside others that only read. */
export interface Lock {
  /** Runs `section` while nobody else is in one. Throws `store_busy` where it cannot be had in time. */
  alone<T>(section: () => T): Promise<T>;
  /** Runs `section` while nobody is in one alone. */
  beside<T>(section: () => T): Promise<T>;
  close(): void;
}

/** The lock kept in the file `path`, made where there is none. */
export function openLock(disk: Disk, path: string, clock: Clock): Lock {
  let open: LockFile | undefined;

  async function held<T>(mode: Mode, section: () => T): Promise<T> {
    const until = clock.mono() + limits.lockWaitMs;
    for (let waitMs: number = limits.lockTryMs;;) {
      if (!open) {
        disk.makeFolder(dirname(path));
        open = openLockFile(disk, path);
      }
      if (open.take(mode)) {
        try {
          return section();
        } finally {
          open.release();
        }
      }
      if (clock.mono() >= until) throw new Failure("store_busy", { what: "its lock" });
      // Waits differ from process to process, so that they do not march in step.
      await clock.sleep(waitMs * (0.5 + clock.mono() % 1 / 2));
      waitMs = Math.min(waitMs * 2, limits.lockTryMsMax);
    }
  }

  return {
    alone: (section) => held("alone", section),
    beside: (section) => held("beside", section),
    close() {
      open?.close();
      open = undefined;
    },
  };
}

/** One lock per process in the folder `run`, its file named by the id that leases carry. */
export interface OwnLocks extends ProcessLocks {
  /** Frees and removes this process's own. */
  close(): void;
}

/** The process locks in the folder `run`; one for all agents of a process that share it. */
export function processLocks(run: string, ids: Ids): OwnLocks {
  const disk = openDisk(join(run, ".."));
  let own: { id: string; file: LockFile } | undefined;
  const pathOf = (id: string) => join(run, `${id}.lk`);

  function takeOwn(): string {
    if (own) return own.id;
    disk.makeFolder(run);
    sweep();
    for (;;) {
      const id = ids("p");
      const file = openLockFile(disk, pathOf(id));
      // Whoever sweeps removes a file only while holding its lock: one that is still there after the taking is ours for good.
      if (file.take("alone") && disk.stat(pathOf(id))) {
        own = { id, file };
        return id;
      }
      file.close();
    }
  }

  function alive(id: string): boolean {
    if (id === own?.id) return true;
    if (!/^[a-z0-9_-]+$/i.test(id) || !disk.stat(pathOf(id))) return false;
    const file = openLockFile(disk, pathOf(id));
    try {
      if (!file.take("alone")) return true;
      disk.remove(pathOf(id));
      return false;
    } finally {
      file.close();
    }
  }

  /** Files of processes that died with no lease open are found by nobody else. */
  function sweep(): void {
    for (const name of disk.names(run)) if (name.endsWith(".lk")) alive(name.slice(0, -3));
  }

  return {
    own: () => Promise.resolve(takeOwn()),
    alive,
    close() {
      if (!own) return;
      disk.remove(pathOf(own.id));
      own.file.close();
      own = undefined;
    },
  };
}

type Mode = "alone" | "beside";

interface LockFile {
  /** False where another has it. */
  take(mode: Mode): boolean;
  release(): void;
  close(): void;
}

function openLockFile(disk: Disk, path: string): LockFile {
  const { DatabaseSync } = sqlite();
  if (disk.stat(path)?.kind === "link") throw new Failure("link_refused", { path });
  try {
    const database = new DatabaseSync(path, { timeout: 0 });
    let statements: ReturnType<typeof statementsOf> | undefined;
    return {
      take(mode) {
        let begun = false;
        try {
          statements ??= statementsOf(database);
          if (mode === "alone") statements.alone.run();
          else {
            statements.begin.run();
            begun = true;
            statements.look.all();
          }
          return true;
        } catch (error) {
          if (begun) statements?.end.run();
          if (isBusy(error)) return false;
          throw failed(path, error);
        }
      },
      release: () => void statements?.end.run(),
      close: () => database.close(),
    };
  } catch (error) {
    throw failed(path, error);
  }
}

/** Fails as busy while another process is alone: making them looks at the file. */
function statementsOf(database: DatabaseSync) {
  // A journal in memory, for a file that nothing is ever written to: taking the lock then touches no other file.
  database.prepare("PRAGMA journal_mode = MEMORY").all();
  return {
    alone: database.prepare("BEGIN EXCLUSIVE"),
    begin: database.prepare("BEGIN"),
    look: database.prepare("SELECT 1 FROM sqlite_master"),
    end: database.prepare("ROLLBACK"),
  };
}

function isBusy(error: unknown): boolean {
  return ((error as { errcode?: number }).errcode ?? 0) % 256 === 5;
}

function failed(path: string, error: unknown): Failure {
  const why = `its lock ${path}: ${(error as Error).message}`;
  return new Failure("store_failed", { why }, { cause: error });
}

/** SQLite, when it is first needed: a server that has served no turn has not loaded it. */
function sqlite(): typeof import("node:sqlite") {
  const { emitWarning } = process;
  // Node 22 calls it experimental at each start; what is used of it here is settled.
  process.emitWarning = () => {};
  try {
    return process.getBuiltinModule("node:sqlite");
  } finally {
    process.emitWarning = emitWarning;
  }
}
