// The holder of one conversation's lease: takes it, keeps it, writes under it, and stops as soon as it is lost. Every write
// of a turn goes through here, so this is where two processes are kept apart.

import type { Clock, Ids } from "../clock.ts";
import { asFailure, failedBy, Failure } from "../errors.ts";
import { limits } from "../limits.ts";
import type { Event, Kept } from "../log/event.ts";
import type { ConversationStore, HeldLease, Holder as HolderName, Lease, Mark } from "../store/seams.ts";
import type { Tail } from "./tail.ts";

export interface HolderParts {
  clock: Clock;
  ids: Ids;
  store: ConversationStore;
  tail: Tail;
  holder: HolderName;
}

/** What a lease is taken for. */
export interface Claim {
  turn: string;
  message?: string;
  connection?: string;
  deadlineMs: number;
  /** The dead lease, exactly as read, that is replaced. */
  replaces?: HeldLease;
}

/** What is done first under a lease: where it fails, the lease is left to recovery, so that it is never held for nothing. */
export async function orLeave<Value>(holder: Holder, work: Promise<Value>): Promise<Value> {
  try {
    return await work;
  } catch (thrown) {
    await holder.leave().catch(() => {});
    throw thrown;
  }
}

/** Tries a write again, the very same, while the store can neither say yes nor no. */
export async function insist<Value>(
  clock: Clock,
  write: () => Promise<Value>,
  signal?: AbortSignal,
): Promise<Value> {
  for (let tried = 1;; tried++) {
    try {
      return await write();
    } catch (thrown) {
      if (!failedBy(thrown, "store_failed", "store_busy") || tried >= limits.storeTriesMax) throw thrown;
      await clock.sleep(limits.storeRetryMs * tried, signal);
    }
  }
}

/** Why a turn's own signal was aborted. */
export type StopReason = "lost" | "left" | "deadline";

/** Takes the lease; undefined where somebody else has it. */
export async function takeLease(parts: HolderParts, claim: Claim): Promise<Holder | undefined> {
  const { store, clock } = parts;
  const lease: Lease = {
    key: parts.ids("lease"),
    holder: parts.holder,
    turn: claim.turn,
    ...(claim.message === undefined ? {} : { message: claim.message }),
    ...(claim.connection === undefined ? {} : { connection: claim.connection }),
    ...(store.term === undefined ? {} : { term: store.term }),
    taken: clock.now(),
    deadline: claim.deadlineMs,
  };
  const sent = clock.mono();
  const held = await insist(clock, () => store.leaseTake(parts.tail.thread, lease, claim.replaces?.tag));
  return held && new Holder(parts, held.lease, sent);
}

export class Holder {
  readonly lease: Lease;
  /** Aborted with a StopReason once nothing may be written, called or sent any more. */
  readonly stop = new AbortController();
  #parts: HolderParts;
  #freed = new AbortController();
  /** When the newest renewal that was granted had been sent. */
  #good: number;

  constructor(parts: HolderParts, lease: Lease, sent: number) {
    this.#parts = parts;
    this.lease = lease;
    this.#good = sent;
    if (lease.term !== undefined) void this.#renewing(lease.term);
  }

  /** Throws `lease_lost` once the lease is not this holder's. */
  check(): void {
    const { aborted, reason } = this.stop.signal;
    if (aborted) {
      throw new Failure(reason === "left" ? "draining" : "lease_lost", { thread: this.#parts.tail.thread });
    }
    if (this.lease.term !== undefined && this.#parts.clock.mono() - this.#good >= this.lease.term) {
      this.#lost();
    }
  }

  #lost(): never {
    this.stop.abort("lost" satisfies StopReason);
    throw new Failure("lease_lost", { thread: this.#parts.tail.thread });
  }

  /**
   * Appends one event at the next number, made for that number. Messages that came meanwhile are taken in first; anything else
   * that this holder did not write is another holder's fence: the lease is lost. Durable once it resolves.
   */
  async append<Made extends Event>(
    make: (seq: number) => Made,
    onKept?: (event: Made) => void,
  ): Promise<Made> {
    const { tail, ids } = this.#parts;
    for (;;) {
      this.check();
      const write = {
        make,
        token: ids("append"),
        key: this.lease.key,
        insist: this.#insist,
        ...(onKept ? { onKept } : {}),
      };
      try {
        const done = await tail.append(write);
        if ("event" in done) return done.event;
        this.#fenced(done.came);
      } catch (thrown) {
        if (failedBy(thrown, "lease_lost")) this.#lost();
        throw thrown;
      }
    }
  }

  /** Takes in the messages that came meanwhile. */
  async takeIn(): Promise<Kept[]> {
    const came = await this.#parts.tail.refresh();
    this.#fenced(came);
    return came;
  }

  #fenced(came: Kept[]): void {
    if (came.some(({ event }) => event?.type !== "message")) this.#lost();
  }

  /** Tries a write again while the store can neither say yes nor no; the same token each time. */
  readonly #insist = <Value>(write: () => Promise<Value>): Promise<Value> =>
    insist(this.#parts.clock, async () => (this.check(), await write()), this.stop.signal);

  /** Frees the lease, and notes what became of the answer in the same step. */
  async free(mark?: Mark): Promise<void> {
    this.#freed.abort();
    if (this.stop.signal.aborted) return;
    await this.#insist(() => this.#parts.store.leaseFree(this.#parts.tail.thread, this.lease.key, mark));
  }

  /** Notes that the answer has been given and only the summary is left. */
  async answered(): Promise<void> {
    await this.#parts.store.leaseRenew(this.#parts.tail.thread, this.lease.key, { answered: true });
  }

  /** At a drain's deadline: leaves the turn to whoever recovers it, at once. */
  async leave(): Promise<void> {
    this.stop.abort("left" satisfies StopReason);
    this.#freed.abort();
    await this.#parts.store.leaseRenew(this.#parts.tail.thread, this.lease.key, { left: true });
  }

  async #renewing(term: number): Promise<void> {
    const { clock, store, tail } = this.#parts;
    const over = AbortSignal.any([this.#freed.signal, this.stop.signal]);
    for (;;) {
      await clock.sleep(term / 3, over);
      if (over.aborted) return;
      const sent = clock.mono();
      try {
        const patience = Math.min(limits.leaseTryMs, term / 3);
        const done = await Promise.race([
          store.leaseRenew(tail.thread, this.lease.key).then(() => true),
          clock.sleep(patience, over).then(() => false),
        ]);
        if (done) this.#good = sent;
      } catch (thrown) {
        if (over.aborted) return;
        if (asFailure(thrown).code === "lease_lost") return this.stop.abort("lost" satisfies StopReason);
      }
      // Another may take it once the term is over: a third of it is kept back for what is on its way.
      if (clock.mono() - this.#good >= term * 0.9 && !over.aborted) {
        return this.stop.abort("lost" satisfies StopReason);
      }
    }
  }
}
