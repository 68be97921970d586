// How the turns of one conversation follow one another in a process: a lease is claimed, a turn begins, the next one waits,
// a lease that another holds is watched, and what is owed in the end is finished.

import { asFailure, failedBy, Failure, statusOf } from "../errors.ts";
import { limits } from "../limits.ts";
import { owed } from "../log/conversation.ts";
import type { HeldLease } from "../store/seams.ts";
import type { Desk, Here, Running } from "./desk.ts";
import { type Claim, orLeave, takeLease } from "./holder.ts";
import type { Caller } from "./news.ts";
import { newsOf, type Outcome } from "./outcome.ts";
import { type Claimed, outcomeSaid, takeOver } from "./recovery.ts";
import { runTurn } from "./turn.ts";

/** Takes the conversation's lease, over a dead holder where there is one; else says who holds it. */
export async function claim(
  here: Here,
  desk: Desk,
  { message, connection }: { message?: { id?: string }; connection?: string },
  deadlineMs: number,
  turn = here.parts.ids("turn"),
): Promise<Claimed | { held: HeldLease }> {
  const store = desk.agent.store.conversations;
  const id = message?.id;
  for (;;) {
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
    desk.tail.trim();
    if (owed(desk.tail.events).length > 0 && !desk.running && !desk.next) {
      await finishHere(here, desk, undefined, "joined", deadlineMs);
    }
  } catch (thrown) {
    here.parts.notify("warn", "A conversation could not be looked at after its turn.", {
      why: asFailure(thrown).message,
    });
  }
}

/** Begins the turn that waited on message `seq`, once the lease can be had; tells what became of it where another process was first. */
export async function beginNext(
  here: Here,
  desk: Desk,
  waits: Running,
  seq: number,
  deadlineMs: number,
): Promise<void> {
  const { thread } = desk;
  try {
    if (here.left) throw new Failure("draining");
    // What goes on is awaited outside: nothing is accepted while it is decided, and nobody waits for a turn.
    const { work } = await desk.accept(async (): Promise<{ work?: Promise<void> }> => {
      const taken = await claim(here, desk, {}, deadlineMs, waits.turn).finally(() => desk.next = undefined);
      if ("held" in taken) {
        watch(here, desk, taken.held, deadlineMs);
        waits.caller?.tell({ type: "joined", thread, seq });
        return {};
      }
      const outcome = await orLeave(taken.holder, outcomeSaid(desk, seq));
      if (outcome) {
        await letGo(here, desk, taken, deadlineMs);
        return waits.caller ? { work: repeat(here, desk, outcome, waits.caller) } : {};
      }
      Object.assign(waits, taken);
      return { work: begin(here, desk, waits, undefined, deadlineMs) };
    });
    await work;
  } catch (thrown) {
    const failure = asFailure(thrown);
    waits.caller?.tell({ type: "error", status: failure.status, ...failure.form() });
  }
}

/** Frees a lease that was taken for nothing; what the conversation owes all the same is run under it. */
export async function letGo(
  here: Here,
  desk: Desk,
  { holder, turn }: Claimed,
  deadlineMs: number,
): Promise<void> {
  try {
    await desk.tail.refresh();
    await desk.tail.reachOutcome();
    if (owed(desk.tail.events).length === 0) return await holder.free();
    void begin(here, desk, { ...newRunning(turn), why: "crashed", holder }, undefined, deadlineMs);
  } catch (thrown) {
    here.parts.notify("warn", "A lease could not be freed and is left to recovery.", {
      why: asFailure(thrown).message,
    });
    await holder.leave().catch(() => {});
  }
}

/** Tells the outcome of a message that was said before; its delivery counts as taken. */
export async function repeat(here: Here, desk: Desk, outcome: Outcome, caller: Caller): Promise<void> {
  const news = newsOf(desk.thread, outcome, desk.tail.events, statusOf);
  if (news.type === "answer" || news.type === "error") caller.tell({ ...news, repeated: true });
  if (!await caller.taken) return;
  const store = desk.agent.store.conversations;
  try {
    const { untaken } = await store.marksRead(desk.thread);
    if (untaken.some(({ seq }) => seq === outcome.seq)) {
      await store.mark(desk.thread, { done: outcome.seq });
    }
  } catch (thrown) {
    here.parts.notify("warn", "An answer that was repeated may be handed over once more.", {
      why: asFailure(thrown).message,
    });
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
