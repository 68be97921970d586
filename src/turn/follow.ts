// How the turns of one conversation follow one another in a process: a lease is claimed, a turn begins, the next one waits,
// a lease that another holds is watched, and what is owed in the end is finished.

import { asFailure, failedBy, Failure } from "../errors.ts";
import { limits } from "../limits.ts";
import { owed } from "../log/conversation.ts";
import type { HeldLease } from "../store/seams.ts";
import type { Desk, Here, Running } from "./desk.ts";
import { type Claim, orLeave, takeLease } from "./holder.ts";
import type { Caller, Say } from "./news.ts";
import { type Claimed, takeOver } from "./recovery.ts";
import { runTurn } from "./turn.ts";

/** Takes the conversation's lease, over a dead holder where there is one; else says who holds it. */
export async function claim(
  here: Here,
  desk: Desk,
  request: Say,
  deadlineMs: number,
): Promise<Claimed | { held: HeldLease }> {
  const store = desk.agent.store.conversations;
  for (;;) {
    const turn = here.parts.ids("turn");
    const { connection, message: { id } } = request;
    const wanted: Claim = {
      turn,
      deadlineMs,
      ...(id === undefined ? {} : { message: id }),
      ...(connection === undefined ? {} : { connection }),
    };
    const holder = await takeLease({ ...here.parts, store, tail: desk.tail }, wanted);
    if (holder) {
      await orLeave(holder, desk.tail.refresh());
      return { holder, turn };
    }
    const held = await store.leaseRead(desk.thread);
    if (!held) continue;
    if (held.state !== "dead") return { held };
    const taken = await takeOver(here.parts, desk, held, deadlineMs).catch((thrown) => {
      if (failedBy(thrown, "lease_lost")) return undefined;
      throw thrown;
    });
    if (taken) return taken;
  }
}

export function newRunning(turn: string, caller?: Caller): Running {
  const running: Running = {
    turn,
    why: "caller_gone",
    end: new AbortController(),
    closed: false,
    work: Promise.resolve(),
  };
  if (caller) attach(running, caller);
  return running;
}

/** The caller of a turn, until it goes: going ends nothing. */
export function attach(running: Running, caller: Caller): void {
  running.caller = caller;
  void caller.taken.then((taken) => {
    if (!taken && running.caller === caller && !running.closed) running.caller = undefined;
  });
}

/** Starts the turn whose lease is taken; what comes after it follows by itself. */
export function begin(
  here: Here,
  desk: Desk,
  running: Running,
  seq: number | undefined,
  deadlineMs: number,
): Promise<void> {
  desk.running = running;
  const { caller, holder } = running;
  if (caller) {
    attach(running, caller);
    if (seq !== undefined) caller.tell({ type: "start", turn: running.turn, thread: desk.thread, seq });
  }
  running.work = runTurn({ parts: here.parts, desk, running, holder: holder!, deadlineMs }).then(() =>
    after(here, desk, running, deadlineMs)
  );
  return running.work;
}

/** The lease is free: whoever freed it looks at the log once more. */
async function after(here: Here, desk: Desk, running: Running, deadlineMs: number): Promise<void> {
  if (desk.running === running) desk.running = undefined;
  if (here.left || desk.next) return;
  try {
    await desk.tail.refresh();
    await desk.tail.reachOutcome();
    desk.tail.trim(desk.tail.last - limits.tailKept);
    if (owed(desk.tail.events).length > 0 && !desk.running && !desk.next) {
      await finishHere(here, desk, undefined, "joined", deadlineMs);
    }
  } catch (thrown) {
    here.parts.notify("warn", "A conversation could not be looked at after its turn.", {
      why: asFailure(thrown).message,
    });
  }
}

/** Begins the turn that waited, once the lease can be had. */
export async function beginNext(here: Here, desk: Desk, waits: Running, deadlineMs: number): Promise<void> {
  const { thread } = desk;
  try {
    if (here.left) throw new Failure("draining");
    const claimed = await desk.accept(async () => {
      const taken = await claim(
        here,
        desk,
        { thread, message: { text: "", from: { role: "owner" } } },
        deadlineMs,
      );
      desk.next = undefined;
      if ("held" in taken) return taken;
      waits.holder = taken.holder;
      waits.turn = taken.turn;
      desk.running = waits;
      return taken;
    });
    if (claimed && !("held" in claimed)) return await begin(here, desk, waits, undefined, deadlineMs);
    // Another process was first: it answers, and what it answers is handed over or repeated.
    if (claimed) watch(here, desk, claimed.held, deadlineMs);
    waits.caller?.tell({ type: "joined", thread, seq: desk.tail.last });
  } catch (thrown) {
    desk.next = undefined;
    const failure = asFailure(thrown);
    waits.caller?.tell({ type: "error", status: failure.status, ...failure.form() });
  }
}

/** Watches a lease that another holds until it is free or dead; then finishes what is owed. */
export function watch(here: Here, desk: Desk, held: HeldLease, deadlineMs: number): void {
  desk.watching ??= watchLease(here, desk, held).then(async () => {
    desk.watching = undefined;
    if (!desk.running && !desk.next && !here.left) await finishOne(here, desk, "joined", deadlineMs);
  }).catch((thrown) => {
    desk.watching = undefined;
    here.parts.notify("warn", "A conversation held elsewhere could not be watched.", {
      why: asFailure(thrown).message,
    });
  });
}

export async function watchLease(here: Here, desk: Desk, held: HeldLease): Promise<void> {
  const store = desk.agent.store.conversations;
  let same: HeldLease | undefined = held, since = here.parts.clock.mono();
  while (same && !here.left) {
    await here.parts.clock.sleep(limits.leaseWatchMs);
    const now: HeldLease | undefined = await store.leaseRead(desk.thread).catch(() => same);
    if (!now || now.state === "dead" || now.lease.key !== held.lease.key) return;
    // A store without a clock: unchanged for a term, by one's own clock, is dead.
    if (now.tag !== same.tag) since = here.parts.clock.mono();
    else if (
      now.state === "unknown" && here.parts.clock.mono() - since > (now.lease.term ?? limits.leaseTermMs)
    ) return;
    same = now;
  }
}

/** Takes over what is owed of a conversation, and runs it without a caller. Resolves when it is done. */
export async function finishHere(
  here: Here,
  desk: Desk,
  dead: HeldLease | undefined,
  why: Running["why"],
  deadlineMs: number,
): Promise<void> {
  const claimed = await desk.accept(async () => {
    if (desk.running || desk.next) return undefined;
    const taken = await takeOver(here.parts, desk, dead, deadlineMs);
    if (taken) desk.running = { ...newRunning(taken.turn), why, holder: taken.holder };
    return taken && desk.running;
  });
  if (claimed) await begin(here, desk, claimed, undefined, deadlineMs);
}

async function finishOne(here: Here, desk: Desk, why: Running["why"], deadlineMs: number): Promise<void> {
  const held = await desk.agent.store.conversations.leaseRead(desk.thread);
  if (held && held.state !== "dead") return;
  await finishHere(here, desk, held, why, deadlineMs);
}
