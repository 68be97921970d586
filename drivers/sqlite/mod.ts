// SQLite driver: all conversations of an agent in one file, `chats/events.sqlite`. Each write is one transaction that takes the
// file's lock first; each read a short step, so that no reader keeps the write-ahead file from being taken over. How the file is
// opened and waited for is database.ts.

import { Failure } from "../../src/errors.ts";
import { limits } from "../../src/limits.ts";
import type { Append, Driver, DriverParts, PutOptions, ThreadInfo } from "../../src/store/seams.ts";
import { type Database, openDatabase, row, type Sql } from "./database.ts";
import { leaseKeyOf, openDocuments, setDocument } from "./documents.ts";

/** Opens the driver. `waitMs`: how long a file that another process has locked is waited for. */
export function openDriver(
  parts: DriverParts,
  { waitMs = limits.lockWaitMs }: { waitMs?: number } = {},
): Driver {
  const { clock, notify } = parts;
  const database = openDatabase({ ...parts, waitMs });

  async function* read(thread: string, from: number, to?: number): AsyncIterable<string> {
    const begun = await database.read((sql) => {
      const id = idOf(sql, thread);
      return id === undefined ? undefined : { id, last: lastOf(sql, id) };
    });
    if (!begun) return;
    const last = Math.min(to ?? begun.last, begun.last);
    for (let seq = Math.max(1, from); seq <= last;) {
      const lines = await database.read((sql) => page(sql, begun.id, seq, last));
      if (!lines?.length) {
        throw await gap(database, thread, begun.id, seq);
      }
      yield* lines;
      seq += lines.length;
    }
  }

  async function put(
    thread: string,
    lines: AsyncIterable<string>,
    { replace, tools }: PutOptions,
  ): Promise<{ events: number }> {
    const refuse = (sql: Sql) => {
      const id = idOf(sql, thread);
      if (id !== undefined && !replace) throw new Failure("exists", { what: "The thread" });
      return id;
    };
    await database.read(refuse);
    await sweep(database, clock.now() - limits.stagedMsMax);
    const id = await database.write((sql) =>
      Number(sql("INSERT INTO threads (staged) VALUES (?)").run(clock.now()).lastInsertRowid)
    );
    let replaced: number | undefined;
    try {
      const events = await copied(database, id, lines, () => clock.now());
      replaced = await database.write((sql) => {
        const before = refuse(sql);
        if (before !== undefined) giveUp(sql, before);
        sql("UPDATE threads SET thread = ?, staged = NULL WHERE id = ?").run(thread, id);
        setDocument(sql, parts, thread, "tools", tools ? JSON.stringify(tools) : null);
        return before;
      });
      return { events };
    } catch (error) {
      replaced = id;
      throw error;
    } finally {
      if (replaced !== undefined) await removeRows(database, replaced).catch(tellRest);
    }
  }

  async function forget(thread: string): Promise<void> {
    if (await database.read(() => true) === undefined) return;
    const id = await database.write((sql) => {
      sql("DELETE FROM documents WHERE thread = ?").run(thread);
      const id = idOf(sql, thread);
      if (id !== undefined) giveUp(sql, id);
      return id;
    });
    if (id !== undefined) await removeRows(database, id).catch(tellRest);
  }

  const tellRest = (error: Failure) =>
    notify("warn", "What is left of a removed conversation is removed with the next one.", {
      code: error.code,
    });

  return {
    name: "sqlite",
    shared: false,
    documents: openDocuments(database, parts),
    async last(thread) {
      const last = await database.read((sql) => {
        const id = idOf(sql, thread);
        return id === undefined ? 0 : lastOf(sql, id);
      });
      return last ?? 0;
    },
    read,
    async readBack(thread, before, limit) {
      return await database.read((sql) => readBack(sql, thread, before, limit)) ?? [];
    },
    append: (thread, append) => database.write((sql) => appended(sql, thread, append)),
    async threads(after, limit) {
      return await database.read((sql) => threadInfos(sql, after, limit)) ?? [];
    },
    put,
    forget,
    close: () => Promise.resolve(database.close()),
  };
}

function idOf(sql: Sql, thread: string): number | undefined {
  return row<{ id: number }>(sql("SELECT id FROM threads WHERE thread = ?"), thread)?.id;
}

function lastOf(sql: Sql, id: number): number {
  return row<{ last: number }>(sql("SELECT max(seq) AS last FROM events WHERE thread = ?"), id)?.last ?? 0;
}

function appended(sql: Sql, thread: string, { seq, lines, token, key }: Append): { again?: true } {
  let id = idOf(sql, thread);
  const last = id === undefined ? 0 : lastOf(sql, id);
  if (id !== undefined && seq <= last) {
    const there = row<{ token: string }>(
      sql("SELECT token FROM events WHERE thread = ? AND seq = ?"),
      id,
      seq,
    );
    if (there?.token === token) return { again: true };
  }
  if (key !== undefined && leaseKeyOf(sql, thread) !== key) throw new Failure("lease_lost", { thread });
  if (seq !== last + 1) throw new Failure("seq_taken", { seq, next: last + 1 });
  id ??= Number(sql("INSERT INTO threads (thread) VALUES (?)").run(thread).lastInsertRowid);
  lines.forEach((line, i) => insert(sql, id, seq + i, line, i === 0 ? token : null));
  return {};
}

function insert(sql: Sql, id: number, seq: number, line: string, token: string | null): void {
  sql("INSERT INTO events (thread, seq, line, token) VALUES (?, ?, ?, ?)").run(id, seq, line, token);
}

/** Lines from `seq` on that follow one another: some, of a bounded size. */
function page(sql: Sql, id: number, seq: number, last: number): string[] {
  const lines: string[] = [];
  let size = 0;
  const rows = sql("SELECT seq, line FROM events WHERE thread = ? AND seq BETWEEN ? AND ? ORDER BY seq")
    .iterate(id, seq, last) as Iterable<{ seq: number; line: string }>;
  // Leaving the loop ends the statement, and with it the read.
  for (const found of rows) {
    if (found.seq !== seq + lines.length) break;
    lines.push(found.line);
    size += found.line.length;
    if (size >= limits.readBytes) break;
  }
  return lines;
}

function readBack(sql: Sql, thread: string, before: number | undefined, limit: number): string[] {
  const id = idOf(sql, thread);
  if (id === undefined) return [];
  const rows = sql("SELECT seq, line FROM events WHERE thread = ? AND seq < ? ORDER BY seq DESC LIMIT ?")
    .all(id, before ?? Number.MAX_SAFE_INTEGER, limit) as unknown as { seq: number; line: string }[];
  rows.reverse();
  rows.forEach(({ seq }, i) => {
    const due = (rows[0] as { seq: number }).seq + i;
    if (seq !== due) throw missing(thread, due);
  });
  return rows.map(({ line }) => line);
}

/** Why a number that was there when the reading began is not. */
async function gap(database: Database, thread: string, id: number, seq: number): Promise<Failure> {
  const now = await database.read((sql) => idOf(sql, thread));
  if (now === id) return missing(thread, seq);
  return new Failure("store_failed", { why: "the conversation was replaced while it was read" });
}

function missing(thread: string, seq: number): Failure {
  return new Failure("log_damaged", {
    where: `events.sqlite, ${JSON.stringify(thread)}`,
    why: `number ${seq} is missing`,
  });
}

function threadInfos(sql: Sql, after: string | undefined, limit: number): ThreadInfo[] {
  const rows = sql(
    `SELECT thread, (SELECT line FROM events WHERE thread = threads.id ORDER BY seq DESC LIMIT 1) AS line
    FROM threads WHERE thread > ? AND EXISTS (SELECT 1 FROM events WHERE thread = threads.id)
    ORDER BY thread LIMIT ?`,
  ).iterate(after ?? "", limit) as Iterable<{ thread: string; line: string }>;
  const infos: ThreadInfo[] = [];
  for (const { thread, line } of rows) {
    const { seq, at } = JSON.parse(line);
    infos.push({ thread, events: seq, storage: "sqlite", updated: typeof at === "string" ? at : "" });
  }
  return infos;
}

/** Adds the lines to a conversation that nobody sees yet, many in one transaction. */
async function copied(
  database: Database,
  id: number,
  lines: AsyncIterable<string>,
  now: () => number,
): Promise<number> {
  let events = 0, some: string[] = [], size = 0;
  const write = async () => {
    const first = events - some.length + 1, batch = some;
    some = [];
    size = 0;
    await database.write((sql) => {
      const { changes } = sql("UPDATE threads SET staged = ? WHERE id = ?").run(now(), id);
      if (Number(changes) === 0) {
        throw new Failure("store_failed", { why: "the copy was given up as too slow" });
      }
      batch.forEach((line, i) => insert(sql, id, first + i, line, null));
    });
  };
  for await (const line of lines) {
    events++;
    some.push(line);
    size += line.length;
    if (some.length >= limits.copyEvents || size >= limits.copyBytes) await write();
  }
  if (some.length > 0) await write();
  return events;
}

/** The conversation is nobody's from here on; its rows go in steps. */
function giveUp(sql: Sql, id: number): void {
  sql("UPDATE threads SET thread = NULL, staged = 0 WHERE id = ?").run(id);
}

/** Removes what nobody added to since `before`: conversations given up, and those that a crash left half put in place. */
async function sweep(database: Database, before: number): Promise<void> {
  const ids = await database.read((sql) =>
    sql("SELECT id FROM threads WHERE thread IS NULL AND staged < ?").all(before) as unknown as {
      id: number;
    }[]
  );
  for (const { id } of ids ?? []) await removeRows(database, id);
}

async function removeRows(database: Database, id: number): Promise<void> {
  for (;;) {
    const removed = await database.write((sql) => {
      const { changes } = sql(
        "DELETE FROM events WHERE rowid IN (SELECT rowid FROM events WHERE thread = ? LIMIT ?)",
      ).run(id, limits.removeRows);
      if (Number(changes) === 0) sql("DELETE FROM threads WHERE id = ?").run(id);
      return Number(changes);
    });
    if (removed === 0) return;
  }
}
