// Documents in the SQLite file: used where the driver keeps them, behind a store bridge. On its own machine the folder does.

import type { Document, DocumentKind, Documents, DriverParts } from "../../src/store/seams.ts";
import { type Database, row, type Sql } from "./database.ts";

type Parts = Pick<DriverParts, "clock" | "ids">;

interface Row {
  thread: string;
  text: string;
  tag: string;
  updated: number;
}

export function openDocuments(database: Database, { clock, ids }: Parts): Documents {
  const told = ({ text, tag, updated }: Row): Document => ({
    text,
    tag,
    ageMs: Math.max(0, clock.now() - updated),
  });
  const current = (sql: Sql, thread: string, kind: DocumentKind) => {
    const found = row<Row>(sql("SELECT * FROM documents WHERE thread = ? AND kind = ?"), thread, kind);
    return found && told(found);
  };

  return {
    get: (thread, kind) => database.read((sql) => current(sql, thread, kind)),

    swap(thread, kind, tag, text) {
      return database.write((sql) => {
        const now = current(sql, thread, kind);
        if ((now?.tag ?? null) !== tag) return { swapped: false, current: now };
        return { swapped: true, tag: setDocument(sql, { clock, ids }, thread, kind, text) };
      });
    },

    async list(kind) {
      const rows = await database.read((sql) =>
        sql("SELECT * FROM documents WHERE kind = ? ORDER BY thread").all(kind) as unknown as Row[]
      );
      return (rows ?? []).map((row) => ({ thread: row.thread, document: told(row) }));
    },
  };
}

/** Puts a document in the place of any other, or removes it; gives its tag. In a transaction. */
export function setDocument(
  sql: Sql,
  { clock, ids }: Parts,
  thread: string,
  kind: DocumentKind,
  text: string | null,
): string {
  if (text === null) {
    sql("DELETE FROM documents WHERE thread = ? AND kind = ?").run(thread, kind);
    return "";
  }
  const tag = ids("d");
  sql("INSERT OR REPLACE INTO documents (thread, kind, text, tag, updated) VALUES (?, ?, ?, ?, ?)")
    .run(thread, kind, text, tag, clock.now());
  return tag;
}

/** Key of the lease that stands in the thread's `turn` document. */
export function leaseKeyOf(sql: Sql, thread: string): string | undefined {
  const found = row<{ text: string }>(
    sql("SELECT text FROM documents WHERE thread = ? AND kind = 'turn'"),
    thread,
  );
  return found && JSON.parse(found.text).lease?.key;
}
