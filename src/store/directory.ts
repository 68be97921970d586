// All conversations of an agent in folders, as one driver: tells from its folder how each is kept, and hands on. Events of a
// conversation that a driver keeps go to that driver; what is no event stays here. How each way keeps events stands elsewhere.

import type { Clock } from "../clock.ts";
import { Failure } from "../errors.ts";
import { limits } from "../limits.ts";
import { byThread } from "../names.ts";
import type { Notify } from "../notices.ts";
import {
  type AgentPaths,
  type ConversationPaths,
  conversationPaths,
  folderThread,
  isHashedFolder,
  markedDriver,
  threadFolder,
} from "../paths.ts";
import type { Disk } from "./disk.ts";
import { type FolderDocuments, openDocuments } from "./documents.ts";
import type { Lock } from "./lock.ts";
import { type Keeping, Moved, openLog } from "./log.ts";
import { noOlder, openOlder } from "./older.ts";
import type { Append, Driver, ProcessLocks, PutOptions, ThreadInfo, Way } from "./seams.ts";
import { Warm } from "./warm.ts";

/** What the settings say of what is kept. */
export interface Storage {
  /** How a new conversation starts. */
  way: Way;
  /** Whether an event is on the disk itself before anybody is told of it. */
  sync: boolean;
}

export interface DirectoryParts {
  disk: Disk;
  paths: AgentPaths;
  lock: Lock;
  locks: ProcessLocks;
  clock: Clock;
  notify: Notify;
  storage(): Storage | Promise<Storage>;
  /** The driver of that name, opened once; throws `driver_unknown`. */
  driver(name: string): Promise<Driver>;
}

/** One conversation as its folder shows it. */
interface Conversation {
  /** Undefined where there is none yet. */
  way: Way | undefined;
  /** Undefined where a driver keeps the events. */
  keeping?: Keeping;
}

/** Conversations in folders. */
export class Directory implements Driver {
  readonly name = "folder";
  readonly shared = false;
  readonly documents: FolderDocuments;
  readonly #parts: DirectoryParts;
  readonly #warm = new Warm<Conversation>(limits.conversationsWarm, ({ keeping }) => keeping?.close());

  constructor(parts: DirectoryParts) {
    this.#parts = parts;
    this.documents = openDocuments({
      ...parts,
      makeFolder: (thread) => this.#makeFolder(thread, parts.paths.conversation(thread), true),
      threads: () => this.all(),
    });
  }

  /** How a conversation is kept; undefined where there is none. */
  way(thread: string): Way | undefined {
    return this.#conversation(thread).way;
  }

  last(thread: string): Promise<number> {
    return this.#ask(thread, (keeping) => keeping.last(), (driver) => driver.last(thread));
  }

  readBack(thread: string, before: number | undefined, limit: number): Promise<string[]> {
    return this.#ask(
      thread,
      (keeping) => keeping.readBack(before, limit),
      (driver) => driver.readBack(thread, before, limit),
    );
  }

  async *read(thread: string, from: number, to?: number): AsyncIterable<string> {
    yield* await this.#ask<Iterable<string> | AsyncIterable<string>>(thread, (keeping) => {
      // The first line is asked for here, where a log that was replaced is looked at anew.
      const lines = keeping.read(from, to)[Symbol.iterator]();
      return resumed(lines, lines.next());
    }, (driver) => Promise.resolve(driver.read(thread, from, to)));
  }

  async append(thread: string, append: Append): Promise<{ again?: true }> {
    const { way, sync } = await this.#storage();
    const kept = await this.#parts.lock.alone(() => {
      if (append.key !== undefined && this.documents.leaseKey(thread) !== append.key) {
        throw new Failure("lease_lost", { thread });
      }
      return this.#again(thread, (conversation) => {
        const { keeping } = conversation.way === undefined ? this.#begun(thread, way, sync) : conversation;
        return keeping?.append(append, sync);
      });
    });
    // The lease is kept here, so that the driver has nothing to hold its key against.
    return kept ?? (await this.#driver(thread)).append(thread, { ...append, key: undefined });
  }

  async threads(after: string | undefined, limit: number): Promise<ThreadInfo[]> {
    const infos: ThreadInfo[] = [];
    for (const thread of this.all()) {
      if (infos.length >= limit) break;
      if (after !== undefined && byThread(thread, after) <= 0) continue;
      const info = await this.#info(thread);
      if (info.events > 0 || info.damage) infos.push(info);
    }
    return infos;
  }

  /** Threads of all folders, in order. */
  all(): string[] {
    const { disk, paths } = this.#parts;
    const threads = new Set<string>();
    for (const name of disk.names(paths.chats)) {
      const thread = this.#threadOf(name.endsWith(".new") ? name.slice(0, -4) : name);
      if (thread !== undefined) threads.add(thread);
    }
    return [...threads].sort(byThread);
  }

  async put(thread: string, lines: AsyncIterable<string>, options: PutOptions): Promise<{ events: number }> {
    const { disk, lock, paths } = this.#parts;
    const { way: wayNew, sync } = await this.#storage();
    const way = options.way ?? wayNew;
    const { folder } = paths.conversation(thread);
    if (!options.replace && await this.last(thread) > 0) throw new Failure("exists", { what: "The thread" });

    const staged = conversationPaths(`${folder}.part`);
    disk.removeFolder(staged.folder);
    this.#makeFolder(thread, staged, false);
    if (options.tools) {
      disk.writeWhole(staged.tools, new TextEncoder().encode(JSON.stringify(options.tools)), { sync });
    }
    const { keeping } = this.#shown(staged, this.#marked(staged, way, sync));
    const events = keeping
      ? await copied(lines, keeping, sync)
      : (await (await this.#parts.driver(way)).put(thread, lines, { replace: true })).events;
    if (sync) disk.syncFolder(staged.folder);
    await lock.alone(() => {
      if (!options.replace && this.way(thread) !== undefined) {
        throw new Failure("exists", { what: "The thread" });
      }
      this.#publish(thread, staged.folder);
    });
    return { events };
  }

  async forget(thread: string): Promise<void> {
    const { way, keeping } = this.#conversation(thread);
    if (way !== undefined && !keeping) await (await this.#driver(thread)).forget(thread);
    await this.unmark(thread);
  }

  /** Says in the folder that a driver keeps the conversation, in the place of what else kept it. */
  async mark(thread: string, way: Way): Promise<void> {
    if (this.way(thread) === way) return;
    const { disk, lock, paths } = this.#parts;
    const { sync } = await this.#storage();
    const staged = conversationPaths(`${paths.conversation(thread).folder}.part`);
    await lock.alone(() => {
      disk.removeFolder(staged.folder);
      this.#makeFolder(thread, staged, false);
      this.#marked(staged, way, sync);
      this.#publish(thread, staged.folder);
    });
  }

  /** Removes what stands here of a conversation, whoever keeps its events. */
  async unmark(thread: string): Promise<void> {
    const { disk, lock, paths } = this.#parts;
    await lock.alone(() => {
      this.#warm.drop(thread);
      const { folder } = paths.conversation(thread);
      // Gone in one step; what is left of it then is nobody's.
      if (disk.stat(folder)) {
        disk.removeFolder(`${folder}.was`);
        disk.rename(folder, `${folder}.was`);
        disk.syncFolder(paths.chats);
      }
      for (const rest of [".was", ".part"]) disk.removeFolder(folder + rest);
      this.documents.remove(thread);
    });
  }

  close(): Promise<void> {
    this.#warm.clear();
    return Promise.resolve();
  }

  #storage(): Storage | Promise<Storage> {
    return this.#parts.storage();
  }

  /** Makes a conversation's folder where there is none. The lock is held, or nobody else knows the folder. */
  #makeFolder(thread: string, { folder, thread: name }: ConversationPaths, sync: boolean): void {
    const { disk, paths } = this.#parts;
    if (!disk.makeFolder(folder)) return;
    if (folderThread(threadFolder(thread)) === undefined) {
      disk.writeWhole(name, new TextEncoder().encode(thread), { sync });
    }
    if (!sync) return;
    disk.syncFolder(folder);
    disk.syncFolder(paths.chats);
  }

  /** A new conversation, kept as `way` says. The lock is held. */
  #begun(thread: string, way: Way, sync: boolean): Conversation {
    const paths = this.#parts.paths.conversation(thread);
    this.#makeFolder(thread, paths, sync);
    const conversation = this.#shown(paths, this.#marked(paths, way, sync));
    this.#warm.set(thread, conversation);
    return conversation;
  }

  /** Says in the folder how the conversation is kept, and what the folder shows then. */
  #marked(paths: ConversationPaths, way: Way, sync: boolean): string[] {
    if (way !== "log") this.#parts.disk.writeWhole(paths.marker(way), new Uint8Array(0), { sync });
    return [...this.#parts.disk.names(paths.folder), ...(way === "log" ? ["events.jsonl"] : [])];
  }

  /** Puts a whole folder in the conversation's place. The lock is held. Whatever ends this process: the old one or the new one. */
  #publish(thread: string, staged: string): void {
    const { disk, paths } = this.#parts;
    const { folder } = paths.conversation(thread);
    for (const rest of [".was", ".new"]) disk.removeFolder(folder + rest);
    disk.rename(staged, `${folder}.new`);
    if (disk.stat(folder)) disk.rename(folder, `${folder}.was`);
    this.#finish(folder);
    disk.syncFolder(paths.chats);
    disk.removeFolder(`${folder}.was`);
    this.#warm.drop(thread);
  }

  /** Puts `FOLDER.new`, which is whole by its name, in the place of a folder that is not there. */
  #finish(folder: string): void {
    const { disk } = this.#parts;
    try {
      disk.rename(`${folder}.new`, folder);
    } catch (error) {
      // Another process was faster.
      if (!disk.stat(folder)) throw error;
    }
  }

  /** The conversation as it stands. Only one that is there is kept at hand. */
  #conversation(thread: string, keep = true): Conversation {
    const warm = this.#warm.get(thread);
    if (warm) return warm;
    const { disk } = this.#parts;
    const paths = this.#parts.paths.conversation(thread);
    if (!disk.stat(paths.folder)) {
      if (!disk.stat(`${paths.folder}.new`)) return { way: undefined };
      this.#finish(paths.folder);
    }
    const conversation = this.#shown(paths, disk.names(paths.folder));
    if (conversation.keeping && keep) this.#warm.set(thread, conversation);
    return conversation;
  }

  /** What a folder with these names in it shows. */
  #shown(paths: ConversationPaths, names: string[]): Conversation {
    const { disk, notify } = this.#parts;
    const driver = names.map(markedDriver).find((name) => name !== undefined);
    if (driver !== undefined) return { way: driver };
    const older = names.length > 0 ? openOlder(disk, paths, names) : noOlder;
    if (!names.includes("events.jsonl") && older.count === 0) return { way: undefined };
    return { way: "log", keeping: openLog({ disk, paths, older, notify }) };
  }

  /** Asks whoever keeps the events; nobody does of a conversation that is not there. */
  async #ask<T>(
    thread: string,
    keeping: (keeping: Keeping) => T,
    driver: (driver: Driver) => Promise<T>,
  ): Promise<T> {
    const asked = this.#again(thread, (conversation) => {
      if (conversation.way !== undefined && !conversation.keeping) return undefined;
      return { answer: keeping(conversation.keeping ?? nothing) };
    });
    return asked ? asked.answer : driver(await this.#driver(thread));
  }

  /** Runs it on the conversation as it stands; once more where another process put another in its place. */
  #again<T>(thread: string, run: (conversation: Conversation) => T): T {
    for (let tries = 1;; tries++) {
      try {
        return run(this.#conversation(thread));
      } catch (error) {
        if (!(error instanceof Moved) || tries > limits.movedTriesMax) throw error;
        this.#warm.drop(thread);
      }
    }
  }

  async #driver(thread: string): Promise<Driver> {
    return await this.#parts.driver(this.#conversation(thread).way as string);
  }

  /** The thread of a name in `chats`; undefined where it is none of ours. */
  #threadOf(name: string): string | undefined {
    const plain = folderThread(name);
    if (plain !== undefined || !isHashedFolder(name)) return plain;
    const { disk, notify, paths } = this.#parts;
    try {
      const { thread: path } = conversationPaths(`${paths.chats}/${name}`);
      const thread = new TextDecoder().decode(disk.readWhole(path, 4 * limits.threadPointsMax));
      if (threadFolder(thread) === name) return thread;
    } catch { /* told below */ }
    notify("warn", `A folder in chats does not say its thread, so it is not listed: ${name}.`);
    return undefined;
  }

  /** What a list shows of a conversation: never a failure, since one that is bad hides no other. */
  async #info(thread: string): Promise<ThreadInfo> {
    const info: ThreadInfo = { thread, events: 0, storage: "log", updated: "" };
    try {
      const { way, keeping } = this.#conversation(thread, false);
      if (way === undefined) return info;
      info.storage = way;
      const [line] = keeping
        ? keeping.readBack(undefined, 1)
        : await (await this.#parts.driver(way)).readBack(thread, undefined, 1);
      if (!this.#warm.get(thread)) keeping?.close();
      if (line === undefined) return info;
      const { seq, at } = JSON.parse(line);
      return { ...info, events: seq, updated: typeof at === "string" ? at : "" };
    } catch (error) {
      const { facts, message } = error as Failure;
      return { ...info, damage: facts?.where ? `${facts.where}: ${facts.why}` : message };
    }
  }
}

/** Appends all lines, many in one step. */
async function copied(lines: AsyncIterable<string>, keeping: Keeping, sync: boolean): Promise<number> {
  let events = 0, some: string[] = [], size = 0;
  const write = (last: boolean) => {
    if (some.length > 0) {
      keeping.append({ seq: events - some.length + 1, lines: some, token: "" }, last && sync);
    }
    some = [];
    size = 0;
  };
  try {
    for await (const line of lines) {
      // The last lines bring all before them to the disk itself.
      if (some.length >= limits.copyEvents || size >= limits.copyBytes) write(false);
      events++;
      some.push(line);
      size += line.length;
    }
    write(true);
    return events;
  } finally {
    keeping.close();
  }
}

/** What is read of a conversation that is not there. */
const nothing: Keeping = {
  last: () => 0,
  read: () => [],
  readBack: () => [],
  append: () => {
    throw new Failure("internal");
  },
  close: () => {},
};

function* resumed<T>(rest: Iterator<T>, first: IteratorResult<T>): Generator<T> {
  try {
    for (let next = first; !next.done; next = rest.next()) yield next.value;
  } finally {
    rest.return?.();
  }
}
