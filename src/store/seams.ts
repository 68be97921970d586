// The seams of what is kept: a conversation store as a turn sees it, the much smaller driver that one is made from,
// and the agent's other files. Nothing here runs; conversations.ts makes a ConversationStore from any Driver.

import type { Clock, Ids } from "../clock.ts";
import type { Fetch } from "../fetch.ts";
import type { Kept } from "../log/event.ts";
import type { Notify } from "../notices.ts";

/** How a conversation is kept. A driver's name stands for itself. */
export type Way = "log" | "compact" | (string & Record<never, never>);

/** Who works on a turn. `lock` names a process lock of this machine: where it is set the operating system says whether the holder lives. */
export interface Holder {
  host: string;
  process: number;
  start: string;
  lock?: string;
}

/** A lease: who works on a conversation's turn. `key` is made at each taking and stays the same through renewals: it is what
 * the holder proves itself by. */
export interface Lease {
  key: string;
  holder: Holder;
  turn: string;
  /** The id of the message that the holder is about to append. */
  message?: string;
  connection?: string;
  /** The answer was delivered (or kept as untaken); only the summary is left. Nothing joins. */
  answered?: boolean;
  /** The holder gave up at its drain's deadline: dead at once. */
  left?: boolean;
  /** ms that it lives past its last renewal; absent where `holder.lock` says. */
  term?: number;
  /** ms since 1970 by the taker's clock: told to people only, never compared between machines. */
  taken: number;
  /** ms after its taking at which the turn must be over. */
  deadline: number;
  /** Counts renewals, so that each changes the record. */
  renewals?: number;
}

/** A lease as read. `unknown` where the store has no clock: watch it unchanged for a term. */
export interface HeldLease {
  lease: Lease;
  /** Names exactly this record, renewal included. */
  tag: string;
  state: "live" | "dead" | "unknown";
}

/** Why an answer waits to be handed over. */
export type Why = "caller_gone" | "crashed" | "joined" | "failed";

/** An answer, or an `ended` event, that waits to be handed over. */
export interface Untaken {
  seq: number;
  turn: string;
  why: Why;
  /** Its opaque id: unique for ever, the same in `answer`, `repeated` and `recover`. */
  id: string;
}

/** What is noted about a conversation's turns beside its events. */
export interface Marks {
  untaken: Untaken[];
  /** Numbers delivered or handed over: nothing is noted as untaken again that stands here. */
  done: number[];
  /** The turn that was asked to end. */
  end?: string;
}

/** A change of marks, each whole by itself. */
export type Mark =
  | { untaken: Untaken; key?: string } // with `key`: only while that lease is held
  | { done: number }
  | { end: string }; // only while a lease of that turn is held

/** Sent with each write: a token of its own. A write sent again with its own token has been done, not refused. */
export interface Append {
  /** The number of the first line; must be the next one. */
  seq: number;
  /** Whole events, one each, without line ends; numbers rise by one. */
  lines: string[];
  token: string;
  /** Key of the lease under which this is written; checked in the same step where the store can. */
  key?: string;
}

/** What a list shows of a conversation. */
export interface ThreadInfo {
  thread: string;
  /** Number of its last event. */
  events: number;
  storage: Way;
  /** Time of its last event, RFC 3339; empty where it cannot be read. */
  updated: string;
  /** What is wrong with it, where something is. */
  damage?: string;
}

/**
 * All conversations of one agent, as a turn sees them. Threads are whole names, already checked.
 *
 * Failures: `seq_taken` (facts `next`), `lease_lost`, `log_damaged` (facts `where`, `why`), `store_busy`, `store_full`,
 * `store_failed` (neither yes nor no: send it again with the same token), `exists`.
 */
export interface ConversationStore {
  /** Number of the last event; 0 where there is no conversation. */
  last(thread: string): Promise<number>;
  /** Lines from number `from` on, `to` included where given, in order. */
  read(thread: string, from: number, to?: number): AsyncIterable<string>;
  /** The newest `limit` lines with a number below `before` (or of all), in ascending order. Costs O(limit). */
  readBack(thread: string, before: number | undefined, limit: number): Promise<string[]>;
  /** Durably appends. `again` where this token had written it before. */
  append(thread: string, append: Append): Promise<{ again?: true }>;

  leaseRead(thread: string): Promise<HeldLease | undefined>;
  /** Takes a free lease, or the one whose record is exactly `replaces`. Undefined where it could not: somebody else was first. */
  leaseTake(thread: string, lease: Lease, replaces?: string): Promise<HeldLease | undefined>;
  /** Renews, or with `change` also notes `answered` or `left`. Throws `lease_lost`. */
  leaseRenew(thread: string, key: string, change?: Pick<Lease, "answered" | "left">): Promise<void>;
  /** Frees; no error where it is not held by this key any more. Clears the end asked for its turn. With `mark`, both in one step. */
  leaseFree(thread: string, key: string, mark?: Mark): Promise<void>;

  mark(thread: string, mark: Mark): Promise<void>;
  marksRead(thread: string): Promise<Marks>;

  /** Narrows the conversation's tools: what was kept, and in `tools`. Returns what stands. */
  toolsNarrow(thread: string, tools: string[]): Promise<string[]>;
  toolsRead(thread: string): Promise<string[] | undefined>;

  /** Conversations after `after` in order of thread, at most `limit`. Reads no more than the end of each. */
  threads(after: string | undefined, limit: number): Promise<ThreadInfo[]>;
  /** Every conversation with a lease, an untaken answer or an end asked. Costs what is open, not what there is. */
  open(): Promise<OpenConversation[]>;

  /** Puts a whole conversation in place by one last write; `exists` where there is one, unless `replace`. Lines from number 1. */
  put(thread: string, lines: AsyncIterable<string>, options?: PutOptions): Promise<{ events: number }>;
  /** Removes the conversation and all that is noted of it. */
  forget(thread: string): Promise<void>;

  /** Term that a taker without a process lock sets, in ms; undefined where this store gives process locks by itself. */
  readonly term: number | undefined;
  /** Frees what is held (handles, locks); it opens again at the next use. */
  close(): Promise<void>;
}

/** How a whole conversation is put in place. */
export interface PutOptions {
  /** How it is kept; a driver has one way and reads over this. Left out: as a new one is. */
  way?: Way;
  /** Its narrowed tools. A store that keeps them beside the events puts both in place in one step. */
  tools?: string[];
  /** Takes the place of one that is there. */
  replace?: boolean;
}

/** What is open about one conversation. */
export interface OpenConversation {
  thread: string;
  held?: HeldLease;
  marks: Marks;
}

/** The agent's files, by path below a fixed root, `/` between parts. Never through a symbolic link (`link_refused`). */
export interface FileStore {
  /** Undefined where there is none. */
  read(path: string): Promise<Uint8Array | undefined>;
  /** `expect`: the sha256 (hex) of what it replaces, null for none, left out for any. Throws `exists` on another. */
  write(path: string, bytes: Uint8Array, options?: { expect?: string | null; mode?: number }): Promise<void>;
  /** Files below `prefix`, in order of path. */
  list(prefix: string): Promise<FileInfo[]>;
  delete(path: string): Promise<void>;
}

export interface FileInfo {
  path: string;
  bytes: number;
  mode: number;
  /** Changes whenever the file does: what a cache of it is kept by. */
  version: string;
}

/** All that is kept of one agent: its conversations, its own folder (config.json, tool-lists.json …) and its files folder. */
export interface AgentStore {
  conversations: ConversationStore;
  /** Root: the agent's own folder. Holds config.json and tool-lists.json; never the key. */
  own: FileStore;
  /** Root: the files folder. */
  files: FileStore;
  /** Brings the copy for people up to the last answer, from the newest events at hand; left out where none is kept. */
  copy?(thread: string, newest: readonly Kept[]): Promise<void>;
}

/** What the module of a driver exports: the package `lnk-NAME`, or `drivers/NAME/mod.ts` here. */
export interface DriverModule {
  /** Opens the driver for one agent. May throw; asked again then at the next use. */
  openDriver(parts: DriverParts): Driver | Promise<Driver>;
}

/** What a driver is opened with. */
export interface DriverParts {
  agent: string;
  /** `[storage.NAME]` of the agent's settings, unchecked. */
  settings: Record<string, unknown>;
  /** Whether an event is on the disk itself before anybody is told of it, where that is the driver's to say. */
  sync: boolean;
  /** For a driver of this machine: its one file, and the folder below which it follows no symbolic link. */
  file: { root: string; path: string };
  /** A name for a thread: a-z, 0-9, `_`, `-` and `~`, at most 100 long, and no two threads' the same. */
  threadFolder(thread: string): string;
  clock: Clock;
  ids: Ids;
  fetch: Fetch;
  notify: Notify;
}

/**
 * What a driver (lnk-<name>) brings: events, and small documents replaced by compare-and-swap. Everything else (leases, marks,
 * tools) is made from these by conversations.ts, once for all drivers.
 *
 * Failures are those of ConversationStore. A driver sends a write again by itself, with its token, while it cannot know whether it
 * was done, and throws `store_failed` where it cannot tell in the end.
 */
export interface Driver {
  readonly name: string;
  /** Whether processes of other machines use the same store: then documents live here too, else in the agent's folder. */
  readonly shared: boolean;
  last(thread: string): Promise<number>;
  read(thread: string, from: number, to?: number): AsyncIterable<string>;
  readBack(thread: string, before: number | undefined, limit: number): Promise<string[]>;
  /** With `key`: only where the driver's own `turn` document of the thread has `lease.key` of that value, else `lease_lost`. */
  append(thread: string, append: Append): Promise<{ again?: true }>;
  /** `tools`, where given, is the `tools` document (a JSON array) that stands after; else none does. `turn` stays. */
  put(thread: string, lines: AsyncIterable<string>, options: PutOptions): Promise<{ events: number }>;
  threads(after: string | undefined, limit: number): Promise<ThreadInfo[]>;
  /** Removes events and documents. No error where there is nothing. */
  forget(thread: string): Promise<void>;
  readonly documents: Documents;
  close(): Promise<void>;
}

/** Kinds of documents: `turn` holds lease and marks, `tools` the narrowed tools. */
export type DocumentKind = "turn" | "tools";

export interface Document {
  text: string;
  /** Names this very text of it. */
  tag: string;
  /** ms since it was last written, by the store's own clock; undefined where it has none. */
  ageMs?: number;
}

/** Small JSON texts by thread and kind, each replaced only if it is still the one read. */
export interface Documents {
  get(thread: string, kind: DocumentKind): Promise<Document | undefined>;
  /** Replaces what `tag` names (null: nothing there) by `text` (null: removes it). Refused: what is there now, in `current`. */
  swap(thread: string, kind: DocumentKind, tag: string | null, text: string | null): Promise<Swapped>;
  /** Every thread that has a document of this kind. */
  list(kind: DocumentKind): Promise<{ thread: string; document: Document }[]>;
  /** This machine's process locks; undefined where holders may be on other machines. */
  readonly locks?: ProcessLocks;
}

export type Swapped = { swapped: true; tag: string } | { swapped: false; current: Document | undefined };

/** One exclusive lock per process, freed by the operating system whatever ends it. */
export interface ProcessLocks {
  /** This process's own lock, taken at first use. */
  own(): Promise<string>;
  /** Whether the process that holds `lock` lives. A lock file that is gone: dead. */
  alive(lock: string): boolean;
}
