// The one SQLite file: opened without following a link, written in transactions that take its lock first, waited for in short
// tries, its errors as failures of ours. What stands in it is mod.ts and documents.ts.

import { closeSync, constants, lstatSync, mkdirSync, openSync } from "node:fs";
import { basename, dirname, join, relative, sep } from "node:path";
import process from "node:process";
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { Failure } from "../../src/errors.ts";
import { limits } from "../../src/limits.ts";
import type { DriverParts } from "../../src/store/seams.ts";

/** A statement by its text, made once for each opening. */
export type Sql = (text: string) => StatementSync;

export interface Database {
  /** Runs a short synchronous step in one transaction; it may run again where the lock was lost to another. */
  write<T>(step: (sql: Sql) => T): Promise<T>;
  /** Runs a short synchronous step that only reads; undefined where there is no file. It leaves no read open. */
  read<T>(step: (sql: Sql) => T): Promise<T | undefined>;
  /** Opened again at the next use. */
  close(): void;
}

export interface DatabaseParts extends Pick<DriverParts, "file" | "sync" | "clock"> {
  /** ms that a locked file is waited for. */
  waitMs: number;
}

const applicationId = 0x6c6e6b31; // "lnk1"
const version = 1;

const schema = `
  CREATE TABLE threads (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never given twice: a reader of one that is gone finds nothing
    thread TEXT UNIQUE,                    -- null while it is put in place, and once it was given up
    staged INTEGER                         -- then: ms since 1970 of the last write to it
  ) STRICT;
  CREATE TABLE events (
    thread INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    line TEXT NOT NULL,  -- the event, without its line end
    token TEXT,          -- of the write, on its first event
    PRIMARY KEY (thread, seq)
  ) STRICT;
  CREATE TABLE documents (
    thread TEXT NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    tag TEXT NOT NULL,
    updated INTEGER NOT NULL,  -- ms since 1970
    PRIMARY KEY (thread, kind)
  ) STRICT, WITHOUT ROWID`;

export function openDatabase(parts: DatabaseParts): Database {
  const { file, clock, waitMs } = parts;
  const name = relative(file.root, file.path);
  let open: { database: DatabaseSync; sql: Sql } | undefined;

  /** Tries until nobody else has the file, in short tries that differ, so that writers do not march in step. */
  async function waiting<T>(attempt: () => T): Promise<T> {
    const until = clock.mono() + waitMs;
    for (let wait: number = limits.lockTryMs;; wait = Math.min(2 * wait, limits.lockTryMsMax)) {
      try {
        return attempt();
      } catch (error) {
        if (!isBusy(error)) throw failureOf(error, name);
        if (clock.mono() >= until) throw new Failure("store_busy", { what: name }, { cause: error });
      }
      await clock.sleep(wait * (0.5 + Math.random() / 2));
    }
  }

  function opened(): Sql {
    open ??= openFile(parts);
    return open.sql;
  }

  function close(): void {
    open?.database.close();
    open = undefined;
  }

  return {
    write: (step) => waiting(() => transaction(opened(), step)),
    read: (step) => waiting(() => open || kindOf(file.path) ? step(opened()) : undefined),
    close,
  };
}

/** What a statement gives, for a reader of rows whose form the schema fixes. */
export function row<T>(statement: StatementSync, ...values: SQLInputValue[]): T | undefined {
  return statement.get(...values) as T | undefined;
}

function transaction<T>(sql: Sql, step: (sql: Sql) => T): T {
  sql("BEGIN IMMEDIATE").run();
  try {
    const result = step(sql);
    sql("COMMIT").run();
    return result;
  } catch (error) {
    try {
      sql("ROLLBACK").run();
    } catch { /* SQLite has rolled back by itself, as it does on a full disk */ }
    throw error;
  }
}

function openFile(parts: DatabaseParts): { database: DatabaseSync; sql: Sql } {
  const { path } = parts.file;
  refuseLinks(parts.file);
  makeFile(path);
  const database = new (sqlite().DatabaseSync)(path, { timeout: 0 });
  try {
    // Again, for what was put there in between.
    refuseLinks(parts.file);
    const statements = new Map<string, StatementSync>();
    const sql: Sql = (text) => {
      let statement = statements.get(text);
      if (!statement) statements.set(text, statement = database.prepare(text));
      return statement;
    };
    setUp(sql, database, parts);
    return { database, sql };
  } catch (error) {
    database.close();
    throw error;
  }
}

function setUp(sql: Sql, database: DatabaseSync, parts: DatabaseParts): void {
  const isOurs = isOfThisVersion(sql, parts);
  const mode = row<{ journal_mode: string }>(sql("PRAGMA journal_mode = WAL"))?.journal_mode;
  if (mode !== "wal") throw new Failure("store_unsafe", { why: `SQLite's journal is ${mode}, not wal` });
  sql(`PRAGMA synchronous = ${parts.sync ? "FULL" : "NORMAL"}`).all();
  sql(`PRAGMA journal_size_limit = ${limits.walBytesKept}`).all();
  // What was removed is gone from the file, too.
  sql("PRAGMA secure_delete = ON").all();
  if (isOurs) return;
  transaction(sql, () => {
    // Another process may have been faster.
    if (isOfThisVersion(sql, parts)) return;
    for (const statement of schema.split(";\n")) database.prepare(statement).run();
    database.prepare(`PRAGMA application_id = ${applicationId}`).run();
    database.prepare(`PRAGMA user_version = ${version}`).run();
  });
}

/** False for a file that is still empty; throws where it is somebody else's. */
function isOfThisVersion(sql: Sql, parts: DatabaseParts): boolean {
  const { user_version: found } = row<{ user_version: number }>(sql("PRAGMA user_version"))!;
  const { application_id: owner } = row<{ application_id: number }>(sql("PRAGMA application_id"))!;
  if (owner === applicationId && found === version) return true;
  if (owner === 0 && found === 0 && !sql("SELECT 1 FROM sqlite_master").get()) return false;
  const whose = owner === applicationId ? `of version ${found}, not ${version}` : "of another program";
  throw new Failure("store_failed", { why: `${basename(parts.file.path)} is a database ${whose}` });
}

/** Made by us where it is not there, readable by its owner alone. Never opened again so: closing it would drop SQLite's locks. */
function makeFile(path: string): void {
  if (kindOf(path)) return;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  try {
    const { O_CREAT, O_EXCL, O_WRONLY, O_NOFOLLOW = 0 } = constants;
    closeSync(openSync(path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0o600));
  } catch (error) {
    if ((error as { code?: string }).code !== "EEXIST") throw error;
  }
}

/** Throws where the file, one of SQLite's beside it, or a folder on the way from the root is a symbolic link. */
function refuseLinks({ root, path }: DriverParts["file"]): void {
  let at = root;
  const ways = relative(root, path).split(sep).map((part) => at = join(at, part));
  for (const way of [...ways, `${path}-wal`, `${path}-shm`, `${path}-journal`]) {
    if (kindOf(way) === "link") throw new Failure("link_refused", { path: relative(root, way) });
  }
}

function kindOf(path: string): "link" | "other" | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found && (found.isSymbolicLink() ? "link" : "other");
}

/** Result code of SQLite without its extension; 0 where it is no error of SQLite. */
function resultCode(error: unknown): number {
  return ((error as { errcode?: number }).errcode ?? 0) & 255;
}

function isBusy(error: unknown): boolean {
  return resultCode(error) === 5;
}

function failureOf(error: unknown, what: string): Failure {
  if (error instanceof Failure) return error;
  const { code, message } = error as { code?: string; message: string };
  const cause = { cause: error };
  if (resultCode(error) === 13 || code === "ENOSPC" || code === "EDQUOT") {
    return new Failure("store_full", { what }, cause);
  }
  if (resultCode(error) === 11 || resultCode(error) === 26) {
    return new Failure("log_damaged", { where: what, why: message }, cause);
  }
  return new Failure("store_failed", { why: `${what}: ${message}` }, cause);
}

/** Loaded without the word that Node 22 says at it: what is used here of it is settled. */
function sqlite(): typeof import("node:sqlite") {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return process.getBuiltinModule("node:sqlite");
  } finally {
    process.emitWarning = emitWarning;
  }
}
