// What is noted of a conversation's turns, as one small record (`turn` document) and pure changes of it: lease, marks,
// and the tokens of the last writes, by which a write whose reply was lost is known again. Who keeps the record is
// conversations.ts; what it means is turn/.

import { limits } from "../limits.ts";
import type { HeldLease, Lease, Mark, Marks } from "./seams.ts";

/** The record. Absent: nothing is open. */
export interface TurnRecord {
  thread: string;
  lease?: Lease;
  marks: Marks;
  /** Tokens of the last writes of this record, newest last. */
  tokens: string[];
}

/** A change: the record after it, `undefined` where nothing is left to note, or `refused`. */
export type Change = { record: TurnRecord | undefined } | { refused: "held" | "lost" };

/** The record of a text; undefined where it is empty, torn or of no form: then it says nothing and may be replaced. */
export function parseRecord(text: string): TurnRecord | undefined {
  try {
    const value = JSON.parse(text);
    if (
      typeof value?.thread !== "string" || !Array.isArray(value.marks?.untaken) ||
      !Array.isArray(value.marks?.done)
    ) return undefined;
    if (
      value.lease !== undefined &&
      (typeof value.lease?.key !== "string" || typeof value.lease?.turn !== "string")
    ) return undefined;
    return { ...value, tokens: Array.isArray(value.tokens) ? value.tokens : [] };
  } catch {
    return undefined;
  }
}

export function emptyRecord(thread: string): TurnRecord {
  return { thread, marks: { untaken: [], done: [] }, tokens: [] };
}

/** Whether a lease lives, from what its store can tell: its process lock, else its age. */
export function leaseState(
  lease: Lease,
  facts: { lockAlive?: boolean; ageMs?: number; now?: number },
): HeldLease["state"] {
  if (lease.left) return "dead";
  if (facts.lockAlive !== undefined) {
    // The clock that wrote `taken` is this machine's own here, so its age may be told by it.
    const old = facts.now !== undefined && facts.now - lease.taken > lease.deadline + limits.leaseOverMs;
    return facts.lockAlive && !old ? "live" : "dead";
  }
  if (facts.ageMs === undefined) return "unknown";
  return facts.ageMs > (lease.term ?? limits.leaseTermMs) ? "dead" : "live";
}

/** Takes: over nothing, or over the lease that the caller read and found dead. */
export function take(record: TurnRecord, lease: Lease, token: string, replaces: boolean): Change {
  if (record.lease && !replaces) return { refused: "held" };
  const { end, ...marks } = record.marks;
  // An end that was asked for goes on to whoever takes the same turn over, and to no other.
  return {
    record: written({ ...record, lease, marks: end === lease.turn ? { ...marks, end } : marks }, token),
  };
}

export function renew(record: TurnRecord, key: string, token: string, change: Partial<Lease>): Change {
  if (record.lease?.key !== key) return { refused: "lost" };
  const lease = { ...record.lease, ...change, renewals: (record.lease.renewals ?? 0) + 1 };
  return { record: written({ ...record, lease }, token) };
}

/** Frees, and with `mark` notes what became of the answer in the same step. */
export function free(record: TurnRecord, key: string, token: string, mark?: Mark): Change {
  if (record.lease?.key !== key) return { refused: "lost" };
  const { lease: _, ...rest } = record;
  const { end: __, ...marks } = mark ? marked(rest.marks, mark) : rest.marks;
  return { record: written({ ...rest, marks }, token) };
}

export function mark(record: TurnRecord, change: Mark, token: string): Change {
  if ("end" in change && record.lease?.turn !== change.end) return { refused: "lost" };
  if ("untaken" in change && change.key !== undefined && record.lease?.key !== change.key) {
    return { refused: "lost" };
  }
  return { record: written({ ...record, marks: marked(record.marks, change) }, token) };
}

function marked(marks: Marks, change: Mark): Marks {
  if ("end" in change) return { ...marks, end: change.end };
  if ("done" in change) {
    return {
      ...marks,
      untaken: marks.untaken.filter((one) => one.seq !== change.done),
      done: marks.done.includes(change.done)
        ? marks.done
        : [...marks.done, change.done].slice(-limits.doneKept),
    };
  }
  const { untaken } = change;
  if (marks.done.includes(untaken.seq) || marks.untaken.some((one) => one.seq === untaken.seq)) return marks;
  return { ...marks, untaken: [...marks.untaken, untaken].sort((a, b) => a.seq - b.seq) };
}

function written(record: TurnRecord, token: string): TurnRecord | undefined {
  if (!record.lease && record.marks.untaken.length === 0 && record.marks.end === undefined) return undefined;
  return { ...record, tokens: [...record.tokens, token].slice(-limits.tokensKept) };
}
