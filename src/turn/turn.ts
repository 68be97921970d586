// One turn, from its lease to its end: ask, call, write each thing that happens, answer, deliver, let go. What it reads is
// request.ts; who may run it is turns.ts and recovery.ts.

import { asFailure, failedBy, Failure, statusOf } from "../errors.ts";
import { timestamp } from "../clock.ts";
import { limits } from "../limits.ts";
import { isAnswer } from "../log/conversation.ts";
import type { Call, EndedEvent, ModelEvent } from "../log/event.ts";
import { type Answer, ended, type Piece } from "../model/model.ts";
import type { Plan } from "../prompt/summary.ts";
import { isCheckpointDue, type Window } from "../prompt/window.ts";
import type { Mark } from "../store/seams.ts";
import { argumentsOf } from "../tools/arguments.ts";
import type { Desk, Running, TurnParts } from "./desk.ts";
import { type Holder, insist } from "./holder.ts";
import type { News } from "./news.ts";
import { isFailed, newsOf, type Outcome, outcomeId, reachTurn } from "./outcome.ts";
import { openRequest, type TurnRequest } from "./request.ts";
import { summarise } from "./summarise.ts";

/** A turn whose lease is taken. */
export interface Held {
  parts: TurnParts;
  desk: Desk;
  running: Running;
  holder: Holder;
  deadlineMs: number;
}

/** Runs the turn to its end. Never throws: what goes wrong is an event, or is left to recovery, and is told to the caller. */
export async function runTurn(held: Held): Promise<void> {
  const { parts, running, holder } = held;
  const over = new AbortController();
  const deadline = new AbortController();
  void parts.clock.sleep(held.deadlineMs, over.signal).then(() => over.signal.aborted || deadline.abort());
  void watchEnd(held, over.signal);
  const signal = AbortSignal.any([running.end.signal, holder.stop.signal, deadline.signal]);
  try {
    let outcomes: Outcome[], request: TurnRequest | undefined;
    try {
      await holder.takeIn();
      request = await openRequest({ ...held.desk, notify: parts.notify });
      outcomes = [await answerAll(held, request, signal)];
    } catch (thrown) {
      const late = deadline.signal.aborted
        ? new Failure("model_timeout", { why: "the turn's deadline is over" })
        : thrown;
      outcomes = await endFailed(held, asFailure(late));
    }
    await finish(held, outcomes, request, AbortSignal.any([holder.stop.signal, deadline.signal]));
  } catch (thrown) {
    await leave(held, asFailure(thrown));
  } finally {
    over.abort();
    running.closed = true;
    // Sessions that live as long as one turn are ended beside, not before, what comes next.
    held.desk.agent.tools.turnEnded(running.turn).catch((thrown) =>
      parts.notify("warn", "A tool's session could not be ended.", { why: asFailure(thrown).code })
    );
  }
}

/** Answers until nothing is owed that an answer had not seen. */
async function answerAll(held: Held, request: TurnRequest, signal: AbortSignal): Promise<Outcome> {
  const { desk, running } = held;
  for (;;) {
    const outcome = await answerOnce(held, request, signal);
    if (running.closed) return outcome;
    const came = desk.tail.events.find(({ seq, event }) => seq > outcome.upto && event?.type === "message");
    tell(running, { type: "start", turn: running.turn, thread: desk.thread, seq: came?.seq ?? outcome.seq });
  }
}

/** Rounds of calls until the model answers, or is asked to end. Closes the turn where nothing came meanwhile. */
async function answerOnce(held: Held, request: TurnRequest, signal: AbortSignal): Promise<Outcome> {
  const { desk: { tail }, running, holder } = held;
  for (;;) {
    await holder.takeIn();
    if (running.end.signal.aborted) return await endAsked(held, tail.last);
    const { window, upto } = await roundWindow(held, request, signal);
    const final = roundsOf(held).filter(({ calls }) => calls).length >= limits.roundsMax;
    const answer = await askRound(held, request, { window, final, signal });
    if (!answer) continue;
    holder.check();
    if (answer.stop === "asked") return await endAsked(held, upto, answer);
    if (answer.calls.length > 0 && !final) {
      const due = isCheckpointDue(tail.events, answer.calls.length);
      const event = await holder.append((seq) =>
        modelEvent(held, seq, answer, {
          calls: callsOf(seq, answer),
          ...(seq > upto + 1 ? { seen: upto } : {}),
          ...(due ? { window: window.start } : {}),
        })
      );
      await makeCalls(held, request, event.calls ?? [], signal);
      continue;
    }
    const closes = () => {
      const came = tail.events.some(({ seq, event }) => seq > upto && event?.type === "message");
      if (!came) running.closed = true;
    };
    const about = {
      upto,
      ...(running.retries === undefined ? {} : { retries: running.retries }),
      window: window.start,
    };
    return await holder.append((seq) => modelEvent(held, seq, answer, about), closes) as Outcome;
  }
}

/** The window of the next request; what has outgrown its room is summarised first. */
async function roundWindow(
  held: Held,
  request: TurnRequest,
  signal: AbortSignal,
): Promise<{ window: Window; upto: number }> {
  const found = await request.window();
  const plan = request.planBefore(found.window);
  if (!plan) return found;
  // What leaves unsummarised has left all the same: it is not asked for again in this turn.
  const { start, summary } = found.window;
  request.moved({ start, ...(summary ? { summary } : {}) });
  await summarise(held, request, plan, signal);
  return await request.window();
}

/** Asks for one round; undefined where it is to be asked again, otherwise. */
async function askRound(
  { running }: Held,
  request: TurnRequest,
  { window, final, signal }: { window: Window; final: boolean; signal: AbortSignal },
): Promise<Answer | undefined> {
  const onPiece = (piece: Piece) => tell(running, piece);
  try {
    return await request.ask(request.prompt(window, final ? "none" : "auto"), signal, onPiece);
  } catch (thrown) {
    const failure = asFailure(thrown);
    if (signal.aborted || !await request.mend(failure, window)) throw failure;
    onPiece({ type: "restart" });
    return undefined;
  }
}

/** What the model has said in this turn. */
function roundsOf({ desk, running }: Held): ModelEvent[] {
  return desk.tail.events.flatMap(({ event }) =>
    event?.type === "model" && event.turn === running.turn ? [event] : []
  );
}

function modelEvent(held: Held, seq: number, answer: Answer, more: Partial<ModelEvent>): ModelEvent {
  const { parts, running } = held;
  const round = roundsOf(held).length + 1;
  const { text, thinking, model, provider, response, stop, tokens, ms, cost } = answer;
  const { calls, ...rest } = more;
  return {
    seq,
    at: timestamp(parts.clock.now()),
    type: "model",
    turn: running.turn,
    round,
    text,
    ...(thinking ? { thinking } : {}),
    ...(calls ? { calls } : {}),
    model,
    provider,
    ...(response === undefined ? {} : { response }),
    stop,
    tokens,
    ms: Math.round(ms),
    ...(cost === undefined ? {} : { cost }),
    ...rest,
  };
}

/** The calls with ids of ours: providers reuse theirs. */
function callsOf(seq: number, answer: Answer): Call[] {
  return answer.calls.map((call, position) => ({ id: `c${seq}_${position}`, ...call }));
}

/** Makes the calls of one round at once; each result is an event as it comes. */
async function makeCalls(
  held: Held,
  request: TurnRequest,
  calls: Call[],
  signal: AbortSignal,
): Promise<void> {
  const { parts, desk, running, holder } = held;
  const offered = await request.callable();
  const done = await Promise.allSettled(calls.map(async (call) => {
    const args = argumentsOf(call.arguments);
    tell(running, { type: "call", id: call.id, tool: call.tool, arguments: args ?? call.arguments });
    const began = parts.clock.mono();
    const result = !offered.has(call.tool)
      ? { ok: false, text: `There is no tool ${call.tool}.` }
      : args === undefined
      ? {
        ok: false,
        text:
          "The arguments are not one whole JSON object, so nothing was run. Make the call again with whole arguments.",
      }
      : await desk.agent.tools.call({
        thread: desk.thread,
        turn: running.turn,
        key: `${desk.agent.name}/${desk.thread}#${call.id}`,
        name: call.tool,
        arguments: args,
        signal,
      });
    const ms = Math.round(parts.clock.mono() - began);
    const cut = "cut" in result && result.cut !== undefined ? { cut: result.cut } : {};
    const { ok, text } = result;
    await holder.append((seq) => ({
      seq,
      at: timestamp(parts.clock.now()),
      type: "result",
      turn: running.turn,
      call: call.id,
      tool: call.tool,
      text,
      ok,
      ms,
      ...cut,
    }));
    tell(running, { type: "result", id: call.id, tool: call.tool, ok, ms, chars: [...text].length, ...cut });
  }));
  for (const one of done) if (one.status === "rejected") throw one.reason;
}

/** It was asked to end: what it has said is kept, and what its last request held is settled. */
async function endAsked(held: Held, upto: number, answer?: Answer): Promise<Outcome> {
  const { parts, running, holder } = held;
  if (answer && answer.text !== "") {
    await holder.append((seq) => modelEvent(held, seq, { ...answer, calls: [] }, {}));
  }
  return await holder.append(
    (seq): EndedEvent => ({
      seq,
      at: timestamp(parts.clock.now()),
      type: "ended",
      turn: running.turn,
      upto,
      reason: "asked",
    }),
    () => void (running.closed = true),
  );
}

/**
 * The turn failed: that is kept as an event, so that it is not taken for a crash. What was answered before stays its caller's
 * answer, and the failure is handed over. Throws where it may not or cannot be written.
 */
async function endFailed(held: Held, failure: Failure): Promise<Outcome[]> {
  const { parts, desk, running, holder } = held;
  if (failure.code === "internal") {
    const cause = failure.cause instanceof Error ? failure.cause.stack : String(failure.cause);
    parts.notify("error", "A turn failed inside.", { turn: running.turn, cause });
  }
  if (failedBy(failure, "lease_lost", "draining", "store_failed", "store_busy", "store_full")) throw failure;
  holder.check();
  const end = await holder.append((seq): EndedEvent => ({
    seq,
    at: timestamp(parts.clock.now()),
    type: "ended",
    turn: running.turn,
    upto: seq - 1,
    ...(running.retries === undefined ? {} : { retries: running.retries }),
    reason: "failed",
    code: failure.code,
    message: failure.message,
  }), () => void (running.closed = true));
  const answered = desk.tail.events.findLast(({ event }) => isAnswer(event) && event.turn === running.turn)
    ?.event;
  return isAnswer(answered) ? [answered, end] : [end];
}

/**
 * Tells the first outcome to the caller, notes what was not taken, keeps the copy for people, and lets the lease go. Where the
 * window has filled, it is summarised before the lease is free: whoever waits has its answer by then.
 */
async function finish(
  held: Held,
  [outcome, unheard]: Outcome[],
  request: TurnRequest | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { parts, desk, running, holder } = held;
  if (!outcome) return;
  await reachTurn(desk.tail, outcome);
  const { conversations } = desk.agent.store;
  const mark = (mark: Mark) => insist(parts.clock, () => conversations.mark(desk.thread, mark));
  if (unheard) await mark(untakenMark(held, unheard));
  const taken = await deliver(held, newsOf(desk.thread, outcome, desk.tail.events, statusOf));
  running.caller = undefined;
  if (!isFailed(outcome)) await copyForPeople(held);
  const became = taken ? { done: outcome.seq } : untakenMark(held, outcome);
  const plan = isAnswer(outcome) && !unheard ? await request?.planAfter() : undefined;
  if (!plan) return await holder.free(became);
  await mark(became);
  await holder.answered();
  await summariseAfter(held, request!, plan, signal);
  await holder.free();
}

/** Whatever goes wrong here costs the summary alone: the next turn asks for it again. */
async function summariseAfter(
  held: Held,
  request: TurnRequest,
  plan: Plan,
  signal: AbortSignal,
): Promise<void> {
  try {
    await summarise(held, request, plan, signal);
  } catch (thrown) {
    if (failedBy(thrown, "lease_lost", "draining")) throw thrown;
    held.parts.notify("warn", "A summary could not be kept; the next turn asks for it again.", {
      thread: held.desk.thread,
      why: asFailure(thrown).message,
    });
  }
}

function untakenMark({ desk, running, holder }: Held, outcome: Outcome): Mark {
  const why = isFailed(outcome) ? "failed" : running.why;
  return {
    untaken: { seq: outcome.seq, turn: running.turn, why, id: outcomeId(desk.thread, outcome) },
    key: holder.lease.key,
  };
}

async function copyForPeople({ parts, desk }: Held): Promise<void> {
  try {
    await desk.agent.store.copy?.(desk.thread, desk.tail.events);
  } catch (thrown) {
    parts.notify("warn", "The copy for people could not be written; it is made again at the next answer.", {
      thread: desk.thread,
      why: (thrown as Error).message,
    });
  }
}

/** This process cannot go on with the turn: what is kept is whole, and whoever recovers it goes on from there. */
async function leave(held: Held, failure: Failure): Promise<void> {
  const { parts, running, holder } = held;
  if (!holder.stop.signal.aborted) {
    parts.notify("error", "A turn could not be brought to its end here and is left to recovery.", {
      turn: running.turn,
      why: failure.message,
    });
    await holder.leave().catch(() => {});
  }
  told(held, failure);
}

/** Tells a caller that this process no longer works on its message. */
function told({ desk, running }: Held, failure: Failure): void {
  if (failure.code === "lease_lost") {
    const message = desk.tail.events.findLast(({ event }) => event?.type === "message");
    return tell(running, {
      type: "joined",
      thread: desk.thread,
      seq: message?.seq ?? desk.tail.last,
      turn: running.turn,
    });
  }
  tell(running, { type: "error", status: failure.status, turn: running.turn, ...failure.form() });
}

function tell(running: Running, news: News): void {
  running.caller?.tell(news);
}

/** Tells the last news and waits, within a bound, until they were taken whole. */
async function deliver({ parts, running }: Held, news: News): Promise<boolean> {
  const { caller } = running;
  if (!caller) return false;
  caller.tell(news);
  const over = new AbortController();
  const late = parts.clock.sleep(limits.deliverMs, over.signal).then(() => false);
  const taken = await Promise.race([caller.taken, late]);
  over.abort();
  if (!taken) caller.drop();
  return taken;
}

/** Looks once a second whether another process asked the turn to end. */
async function watchEnd({ parts, desk, running }: Held, over: AbortSignal): Promise<void> {
  while (!over.aborted && !running.end.signal.aborted) {
    await parts.clock.sleep(limits.endLookMs, over);
    if (over.aborted) return;
    const marks = await desk.agent.store.conversations.marksRead(desk.thread).catch(() => undefined);
    if (marks?.end === running.turn) running.end.abort(ended);
  }
}
