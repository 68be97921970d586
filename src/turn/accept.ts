// What becomes of a message: it is told again, joins a turn that runs, waits for one of its own, or begins it. How turns
// follow one another is follow.ts.

import { duration, timestamp } from "../clock.ts";
import type { Agent } from "../agent/agent.ts";
import { failedBy, Failure } from "../errors.ts";
import { limits } from "../limits.ts";
import type { MessageEvent } from "../log/event.ts";
import { headOf } from "../prompt/head.ts";
import type { HeldLease } from "../store/seams.ts";
import type { Desk, Here } from "./desk.ts";
import { attach, begin, beginNext, claim, letGo, newRunning, repeat, watch, watchLease } from "./follow.ts";
import { insist } from "./holder.ts";
import type { Caller, Say } from "./news.ts";
import { isFailed } from "./outcome.ts";
import { outcomeSaid } from "./recovery.ts";

/** A message whose fate is decided; `work` is what goes on. */
export interface Accepted {
  work: Promise<void>;
}

/** Thrown where the very message was appended by another process between the look and the append: it is looked for again. */
const saidMeanwhile = Symbol("said meanwhile");

export async function say(here: Here, agent: Agent, request: Say, caller: Caller): Promise<Accepted> {
  if (here.left) throw new Failure("draining");
  const settings = await agent.settings();
  const deadlineMs = duration(settings.model.deadline) ?? limits.turnDeadlineMs;
  const desk = here.desks.at(agent, request.thread);
  const until = request.waitMs === undefined ? undefined : here.parts.clock.mono() + request.waitMs;
  for (;;) {
    const accepted = await desk.accept(() => accept(here, desk, request, caller, deadlineMs));
    if (accepted !== "wait") return accepted;
    await pause(here, desk, until!, request.thread);
  }
}

/** Decides what becomes of a message, one message of a conversation at a time. */
async function accept(
  here: Here,
  desk: Desk,
  request: Say,
  caller: Caller,
  deadlineMs: number,
): Promise<Accepted | "wait"> {
  for (;;) {
    const got = desk.running ?? desk.next ? undefined : await claim(here, desk, request, deadlineMs);
    const claimed = got && "holder" in got ? got : undefined;
    const elsewhere = got && "held" in got ? got.held : undefined;
    let begun = false;
    try {
      if (!claimed) await desk.tail.refresh();
      const known = request.message.id === undefined ? undefined : await desk.tail.find(request.message.id);
      if (known && known.text !== request.message.text) throw new Failure("id_reused", { id: known.id });
      const outcome = known && await outcomeSaid(desk, known.seq);
      const tryAgain = request.retry === true && outcome !== undefined && isFailed(outcome);
      if (outcome && !tryAgain) return { work: repeat(here, desk, outcome, caller) };
      if (!claimed && request.waitMs !== undefined) return "wait";
      if (!claimed && known) return joinAgain(here, desk, known, caller, elsewhere, deadlineMs);
      if (request.tools && !known) {
        await desk.agent.store.conversations.toolsNarrow(request.thread, request.tools);
      }
      if (claimed) {
        const { seq } = known ?? await claimed.holder.append((seq) => messageEvent(here, desk, seq, request));
        const retries = tryAgain ? { retries: seq } : {};
        begun = true;
        return {
          work: begin(
            here,
            desk,
            { ...newRunning(claimed.turn, caller), ...retries, holder: claimed.holder },
            seq,
            deadlineMs,
          ),
        };
      }
      const joined = elsewhere
        ? await joinElsewhere(here, desk, request, caller, elsewhere, deadlineMs)
        : await joinHere(here, desk, request, caller, deadlineMs);
      if (joined) return joined;
    } catch (thrown) {
      if (thrown !== saidMeanwhile) throw thrown;
    } finally {
      if (claimed && !begun) await letGo(here, desk, claimed, deadlineMs);
    }
  }
}

/** A message that is kept and not answered yet, while a turn runs: it joins, or has its caller again. */
function joinAgain(
  here: Here,
  desk: Desk,
  known: MessageEvent,
  caller: Caller,
  elsewhere: HeldLease | undefined,
  deadlineMs: number,
): Accepted {
  const { running, next, thread } = desk;
  if (running && !running.closed && !running.caller) {
    attach(running, caller);
    caller.tell({ type: "start", turn: running.turn, thread, seq: known.seq });
    return { work: running.work };
  }
  if (elsewhere) watch(here, desk, elsewhere, deadlineMs);
  const turn = (next ?? running)?.turn ?? elsewhere?.lease.turn;
  caller.tell({ type: "joined", thread, seq: known.seq, ...(turn === undefined ? {} : { turn }) });
  return { work: Promise.resolve() };
}

/** A turn runs or waits in this process: the message is kept and joins it, or waits for a turn of its own. */
async function joinHere(
  here: Here,
  desk: Desk,
  request: Say,
  caller: Caller,
  deadlineMs: number,
): Promise<Accepted | undefined> {
  const { running, next, thread } = desk;
  const target = next ?? (running && !running.closed ? running : undefined);
  const key = running && !running.closed ? running.holder?.lease.key : undefined;
  const kept = await appendMessage(
    here,
    desk,
    request,
    key,
    () => target !== next && target?.closed === true,
  );
  if (!kept) return undefined;
  if (target) {
    caller.tell({ type: "joined", thread, seq: kept.seq, turn: target.turn });
    return { work: target.work };
  }
  const waits = newRunning(here.parts.ids("turn"), caller);
  desk.next = waits;
  caller.tell({ type: "start", turn: waits.turn, thread, seq: kept.seq });
  waits.work = (running?.work ?? Promise.resolve()).then(() =>
    beginNext(here, desk, waits, kept.seq, deadlineMs)
  );
  return { work: waits.work };
}

/** Another process holds the lease: the message is kept and joins its turn. */
async function joinElsewhere(
  here: Here,
  desk: Desk,
  request: Say,
  caller: Caller,
  held: HeldLease,
  deadlineMs: number,
): Promise<Accepted | undefined> {
  const kept = await appendMessage(here, desk, request, held.lease.key, () => false);
  if (!kept) return undefined;
  if (held.lease.answered) {
    const waits = newRunning(here.parts.ids("turn"), caller);
    desk.next = waits;
    caller.tell({ type: "start", turn: waits.turn, thread: desk.thread, seq: kept.seq });
    waits.work = watchLease(here, desk, held).then(() => beginNext(here, desk, waits, kept.seq, deadlineMs));
    return { work: waits.work };
  }
  caller.tell({ type: "joined", thread: desk.thread, seq: kept.seq, turn: held.lease.turn });
  watch(here, desk, held, deadlineMs);
  return { work: desk.watching ?? Promise.resolve() };
}

/** Appends a message to a turn that another holds; undefined where that turn is over, here or in the store. */
async function appendMessage(
  here: Here,
  desk: Desk,
  request: Say,
  key: string | undefined,
  over: () => boolean,
): Promise<MessageEvent | undefined> {
  for (;;) {
    if (over()) return undefined;
    try {
      const done = await desk.tail.append({
        make: (seq) => {
          if (over()) throw new Failure("lease_lost", { thread: desk.thread });
          return messageEvent(here, desk, seq, request);
        },
        token: here.parts.ids("append"),
        ...(key === undefined ? {} : { key }),
        insist: (write) => insist(here.parts.clock, write),
      });
      if ("event" in done) return done.event;
    } catch (thrown) {
      if (failedBy(thrown, "lease_lost")) return undefined;
      throw thrown;
    }
  }
}

function messageEvent(here: Here, { tail }: Desk, seq: number, { message, connection }: Say): MessageEvent {
  if (tail.knows(message.id)) throw saidMeanwhile;
  const now = here.parts.clock.now();
  return {
    seq,
    at: timestamp(now),
    type: "message",
    id: message.id ?? here.parts.ids("message"),
    from: message.from,
    ...(connection === undefined ? {} : { connection }),
    head: headOf({
      at: message.at ?? timestamp(now),
      zone: here.parts.zone,
      from: message.from,
      ...(connection === undefined ? {} : { connection }),
    }),
    text: message.text,
  };
}

/** Waits until the running turn is over, or throws `turn_running` past the time that the caller waits. */
async function pause(here: Here, desk: Desk, until: number, thread: string): Promise<void> {
  const spare = until - here.parts.clock.mono();
  if (spare <= 0) throw new Failure("turn_running", { thread });
  const over = new AbortController();
  const bound = here.parts.clock.sleep(Math.min(spare, limits.leaseWatchMs), over.signal);
  await Promise.race([desk.running?.work ?? bound, bound]);
  over.abort();
}
