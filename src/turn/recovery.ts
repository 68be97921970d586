// What a process does about a turn whose holder is dead, or that was left: takes the conversation over exactly as it was
// read, writes the fence, and says what is to be run. Also what waits to be handed over. The running itself is turns.ts.

import { timestamp } from "../clock.ts";
import { limits } from "../limits.ts";
import { isAnswer, owed, turnOf } from "../log/conversation.ts";
import type { EndedEvent, Event, RecoveredEvent } from "../log/event.ts";
import { Failure } from "../errors.ts";
import type { HeldLease, Untaken } from "../store/seams.ts";
import type { Desk, TurnParts } from "./desk.ts";
import { type Claim, type Holder, orLeave, takeLease } from "./holder.ts";
import type { HandedOver } from "./news.ts";
import { handOver, isFailed, isLast, type Outcome, outcomeFor, outcomeId, reachTurn } from "./outcome.ts";

/** A lease that was taken, and the turn it is for. */
export interface Claimed {
  holder: Holder;
  turn: string;
}

/**
 * Takes a dead lease over (or, without one, the free lease of a conversation that owes an answer), if anything is owed: the
 * fence is written, tries are counted, what the dead turn had answered waits to be handed over. Undefined where nothing is left
 * to run or somebody else was first.
 */
export async function takeOver(
  parts: TurnParts,
  desk: Desk,
  dead: HeldLease | undefined,
  deadlineMs: number,
): Promise<Claimed | undefined> {
  const { tail, thread, agent } = desk;
  const store = agent.store.conversations;
  for (let replaces = dead;;) {
    await tail.refresh();
    await tail.reachOutcome();
    if (owed(tail.events).length === 0) {
      if (replaces) await settle(desk, replaces, replaces.lease.key);
      if (replaces) await store.leaseFree(thread, replaces.lease.key);
      return undefined;
    }
    const unfinished = unfinishedTurn(desk, replaces);
    const claim: Claim = {
      turn: unfinished ?? parts.ids("turn"),
      deadlineMs,
      ...(replaces ? { replaces } : {}),
    };
    const holder = await takeLease({ ...parts, store, tail }, claim);
    if (!holder) return undefined;
    const stands = await orLeave(holder, stillSo(desk, replaces, unfinished));
    // Nobody had begun on what is owed: no holder to fence off, no try to count.
    if (stands && unfinished === undefined && !replaces) return { holder, turn: claim.turn };
    if (stands) return await orLeave(holder, fence(parts, desk, replaces, holder));
    // The dead holder had written one thing more: under the lease it is seen, and judged again.
    if (replaces) await orLeave(holder, settle(desk, replaces, holder.lease.key));
    await holder.leave();
    replaces = await store.leaseRead(thread);
    if (replaces?.state !== "dead") return undefined;
  }
}

/** Whether what was judged before the lease was taken holds under it. */
async function stillSo(
  desk: Desk,
  dead: HeldLease | undefined,
  unfinished: string | undefined,
): Promise<boolean> {
  const came = await desk.tail.refresh();
  return came.length === 0 ||
    (owed(desk.tail.events).length > 0 && unfinishedTurn(desk, dead) === unfinished);
}

/** Settles what the dead turn had answered, counts the try, and writes the fence. */
async function fence(
  parts: TurnParts,
  desk: Desk,
  dead: HeldLease | undefined,
  holder: Holder,
): Promise<Claimed | undefined> {
  const { turn } = holder.lease;
  if (dead) await settle(desk, dead, holder.lease.key);
  const tries =
    desk.tail.events.filter(({ event }) => event?.type === "recovered" && event.turn === turn).length;
  if (tries >= limits.recoverTriesMax) {
    await giveUp(parts, desk, holder, turn, tries);
    return undefined;
  }
  await holder.append((seq): RecoveredEvent => ({
    seq,
    at: timestamp(parts.clock.now()),
    type: "recovered",
    turn,
    try: tries + 1,
    holder: parts.holder,
  }));
  return { holder, turn };
}

/** The turn that began work on what is owed and has not given its last answer: it goes on under its own name. */
function unfinishedTurn({ tail }: Desk, dead: HeldLease | undefined): string | undefined {
  const at = tail.events.findLastIndex(({ event }) => isOutcome(event));
  const newest = tail.events[at]?.event;
  const outcome = isOutcome(newest) ? newest : undefined;
  const isOver = outcome !== undefined && isLast(outcome, tail.events);
  // A turn that is over may have summarised still: that is no work on what is owed.
  const after = tail.events.slice(at + 1).map(({ event }) => turnOf(event)).findLast((turn) =>
    turn !== undefined && !(isOver && turn === outcome.turn)
  );
  if (after !== undefined) return after;
  if (outcome && !isOver) return outcome.turn;
  return outcome?.turn === dead?.lease.turn ? undefined : dead?.lease.turn;
}

function isOutcome(event: Event | undefined): event is Outcome {
  return isAnswer(event) || event?.type === "ended";
}

/** What a dead turn's outcomes still need: to be handed over, unless its lease says that they were delivered. */
async function settle({ tail, thread, agent }: Desk, { lease }: HeldLease, key: string): Promise<void> {
  if (lease.answered) return;
  const { conversations } = agent.store;
  const newest = tail.events.findLast(({ event }) => isOutcome(event) && event.turn === lease.turn)?.event;
  if (!isOutcome(newest) || !isLast(newest, tail.events)) return;
  await reachTurn(tail, newest);
  const own = tail.events.flatMap(({ event }) =>
    isOutcome(event) && event.turn === lease.turn ? [event] : []
  );
  // A turn that failed after it had answered has both to tell.
  const told = isFailed(newest) ? [own.findLast((event) => isAnswer(event)), newest] : [newest];
  for (const outcome of told) {
    if (!outcome) continue;
    const untaken: Untaken = {
      seq: outcome.seq,
      turn: lease.turn,
      why: isFailed(outcome) ? "failed" : "crashed",
      id: outcomeId(thread, outcome),
    };
    await conversations.mark(thread, { untaken, key });
  }
}

async function giveUp(
  parts: TurnParts,
  { thread, agent }: Desk,
  holder: Holder,
  turn: string,
  tries: number,
): Promise<void> {
  const failure = new Failure("recovery_exhausted", { tries });
  const end = await holder.append((seq): EndedEvent => ({
    seq,
    at: timestamp(parts.clock.now()),
    type: "ended",
    turn,
    upto: seq - 1,
    reason: "failed",
    code: failure.code,
    message: failure.message,
  }));
  const untaken: Untaken = { seq: end.seq, turn, why: "failed", id: outcomeId(thread, end) };
  await agent.store.conversations.mark(thread, { untaken, key: holder.lease.key });
  await holder.free();
  parts.notify("error", "A turn crashed too often and is given up; its caller is told at recover.", {
    turn,
    tries,
  });
}

/** What waits of one conversation, read from its events. */
export async function waiting(desk: Desk, untaken: readonly Untaken[]): Promise<HandedOver[]> {
  const { tail, thread } = desk;
  const answers: HandedOver[] = [];
  await tail.refresh();
  for (const { seq, why } of untaken) {
    await tail.reach(seq);
    const event = tail.events[seq - tail.first]?.event;
    if (!isOutcome(event)) continue;
    await reachTurn(tail, event);
    answers.push(handOver(thread, event, tail.events, why));
  }
  return answers;
}

/** The outcome of a message that was said before, with its whole turn at hand; undefined while its turn goes on. */
export async function outcomeSaid({ tail }: Desk, seq: number): Promise<Outcome | undefined> {
  await tail.reach(seq);
  const outcome = outcomeFor(seq, tail.events);
  if (!outcome) return undefined;
  // A message came before the answer was kept: the same turn goes on to it, and only then has its whole answer.
  const newest = tail.events.findLast(({ event }) => isOutcome(event))?.seq;
  if (outcome.seq === newest && !isLast(outcome, tail.events)) return undefined;
  await reachTurn(tail, outcome);
  return outcome;
}
