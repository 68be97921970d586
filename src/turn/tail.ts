// The newest events of one conversation, as a process has them at hand. Derived: made again by any process that lacks
// it, checked against the store at each use, and dropped without loss.

import { failedBy, Failure } from "../errors.ts";
import { limits } from "../limits.ts";
import { isAnswer } from "../log/conversation.ts";
import { type Event, keep, type Kept, type MessageEvent, parseLine } from "../log/event.ts";
import type { ConversationStore } from "../store/seams.ts";

/** Events read at once when a conversation is opened cold, or reached further back. */
const step = 40;

/** One append: the event for its number, and how often its write is tried. */
export interface Write<Made extends Event> {
  make(seq: number): Made;
  token: string;
  /** Written only while the lease with this key is held, where the store can tell in the same step. */
  key?: string;
  insist<Value>(write: () => Promise<Value>): Promise<Value>;
  onKept?(event: Made): void;
}

export class Tail {
  readonly thread: string;
  /** Without gaps, newest last. */
  events: Kept[] = [];
  #store: ConversationStore;
  #line: Promise<void> = Promise.resolve();
  /** Ids of messages from number `#idsFrom` on. */
  #ids = new Map<string, number>();
  #idsFrom = Infinity;
  /** Number that the newest window began with: what is at hand from there on stays so. */
  #window = Infinity;

  constructor(store: ConversationStore, thread: string) {
    this.#store = store;
    this.thread = thread;
  }

  /** Number of the last event known; 0 for none. */
  get last(): number {
    return this.events.at(-1)?.seq ?? 0;
  }

  /** Number of the oldest event at hand. */
  get first(): number {
    return this.events[0]?.seq ?? 1;
  }

  /** One reader or writer of this tail at a time. */
  exclusive<Value>(work: () => Promise<Value>): Promise<Value> {
    const done = this.#line.then(work);
    this.#line = done.then(() => {}, () => {});
    return done;
  }

  /** Takes in what others have appended; returns it. Begins again where the conversation is not the one it was. */
  refresh(): Promise<Kept[]> {
    return this.exclusive(() => this.#refresh());
  }

  /**
   * Appends the event made for the next number. Where others were first, nothing is written, and what they wrote is returned
   * as `came`. `onKept` runs before anybody else reads or writes this tail.
   */
  append<Made extends Event>(write: Write<Made>): Promise<{ event: Made } | { came: Kept[] }> {
    return this.exclusive(async () => {
      const event = write.make(this.last + 1);
      const kept = keep(event);
      const append = {
        seq: event.seq,
        lines: [kept.line],
        token: write.token,
        ...(write.key === undefined ? {} : { key: write.key }),
      };
      try {
        await write.insist(() => this.#store.append(this.thread, append));
      } catch (thrown) {
        if (!failedBy(thrown, "seq_taken")) throw thrown;
        return { came: await this.#refresh() };
      }
      this.push(kept);
      write.onKept?.(event);
      return { event };
    });
  }

  async #refresh(): Promise<Kept[]> {
    const known = this.events.at(-1);
    const [newest] = await this.#store.readBack(this.thread, undefined, known ? 1 : step).then((lines) =>
      known ? lines : this.#begin(lines)
    );
    if (!known) return this.events;
    if (newest === known.line) return [];
    const fresh: Kept[] = [];
    if (newest !== undefined) {
      for await (const line of this.#store.read(this.thread, known.seq)) fresh.push(parseLine(line));
    }
    if (fresh[0]?.line !== known.line) {
      this.#begin(await this.#store.readBack(this.thread, undefined, step));
      return this.events;
    }
    fresh.shift();
    for (const kept of fresh) this.push(kept);
    return fresh;
  }

  #begin(lines: string[]): [] {
    this.events = [];
    this.#ids.clear();
    this.#idsFrom = Infinity;
    this.#window = Infinity;
    for (const line of lines) this.push(parseLine(line));
    return [];
  }

  /** Adds the event that was just appended, or read. */
  push(kept: Kept): void {
    const { last } = this;
    if (last !== 0 && kept.seq !== last + 1) {
      throw new Failure("log_damaged", {
        where: `event ${last + 1}`,
        why: `number ${kept.seq} follows ${last}`,
      });
    }
    if (last === 0 && kept.seq === 1) this.#idsFrom = 1;
    this.events.push(kept);
    if (kept.event?.type === "message" && kept.event.id !== undefined && kept.seq >= this.#idsFrom) {
      this.#ids.set(kept.event.id, kept.seq);
    }
  }

  /** Makes at least the events from `seq` on be at hand. */
  async reach(seq: number): Promise<void> {
    while (this.events.length > 0 && this.first > Math.max(seq, 1)) {
      const { first } = this;
      const lines = await this.#store.readBack(this.thread, first, Math.max(step, first - seq));
      const older = lines.map(parseLine);
      if (older.at(-1)?.seq !== first - 1) {
        throw new Failure("log_damaged", { where: `event ${first - 1}`, why: "it is missing" });
      }
      this.events.unshift(...older);
    }
  }

  /** One event, wherever it stands. */
  async one(seq: number): Promise<Kept | undefined> {
    const known = this.events[seq - this.first];
    if (known) return known;
    for await (const line of this.#store.read(this.thread, seq, seq)) return parseLine(line);
    return undefined;
  }

  /** Makes the newest outcome, and all after it, be at hand: what is owed can then be told from the events. */
  async reachOutcome(): Promise<void> {
    const isOutcome = (event: Event | undefined) => isAnswer(event) || event?.type === "ended";
    while (this.first > 1 && !this.events.some(({ event }) => isOutcome(event))) {
      await this.reach(this.first - step);
    }
  }

  /** The message with this id, where it is among the last 1,000 events or any read since. */
  async find(id: string): Promise<MessageEvent | undefined> {
    await this.#indexIds();
    const seq = this.#ids.get(id);
    if (seq === undefined) return undefined;
    await this.reach(seq);
    const event = this.events[seq - this.first]?.event;
    return event?.type === "message" ? event : undefined;
  }

  /** Whether a message with this id has come since it was looked for by `find`. */
  knows(id: string | undefined): boolean {
    return id !== undefined && this.#ids.has(id);
  }

  async #indexIds(): Promise<void> {
    const from = Math.max(1, this.last - limits.idEventsBack + 1);
    if (this.#idsFrom <= from || this.events.length === 0) return;
    let before = Math.min(this.#idsFrom, this.last + 1);
    const lines = await this.#store.readBack(this.thread, before, before - from);
    for (const line of lines.reverse()) {
      before--;
      // Most lines hold no message: they are told by their bytes, unparsed.
      if (!line.includes('"type":"message"')) continue;
      const { event } = parseLine(line);
      if (event?.type === "message" && event.id !== undefined && !this.#ids.has(event.id)) {
        this.#ids.set(event.id, event.seq);
      }
    }
    this.#idsFrom = from;
  }

  /** A window begins at `seq`: no `trim` lets go of what follows it. */
  keepFrom(seq: number): void {
    this.#window = seq;
  }

  /** Lets go of what stands before the window and is not among the newest events, once it is much. */
  trim(): void {
    const spare = Math.min(this.#window, this.last - limits.tailKept) - this.first;
    if (spare > step) this.events.splice(0, spare);
  }
}
