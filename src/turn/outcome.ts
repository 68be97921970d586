// What became of a turn, told from its events: the answer that its caller gets, its repeat, its hand-over. Pure.

import { isFailureCode } from "../errors.ts";
import { isAnswer, outcomeOf, turnOf } from "../log/conversation.ts";
import type { EndedEvent, Kept, ModelEvent, Tokens } from "../log/event.ts";
import type { HandedOver, News, TurnAnswer } from "./news.ts";
import type { Why } from "../store/seams.ts";

/** The event that closes a turn: its last answer, or an `ended`. */
export type Outcome = (ModelEvent & { upto: number }) | EndedEvent;

/**
 * The outcome that covers message `seq`, as its turn's caller is told it: the last answer of that turn (a turn may answer more
 * than once, its text is all of them), or its being asked to end. A failure counts where nothing was answered before it.
 */
export function outcomeFor(seq: number, events: readonly Kept[]): Outcome | undefined {
  const tried = outcomeOf(seq, events);
  if (!tried) return undefined;
  const first = (isFailed(tried) ? retryOf(seq, events) : undefined) ?? tried;
  let outcome: Outcome = first;
  for (const { event } of events) {
    if (!event || event.seq <= first.seq || turnOf(event) !== first.turn) continue;
    if (isAnswer(event)) outcome = event;
    else if (event.type === "ended" && event.reason === "asked") outcome = event;
  }
  return outcome;
}

/** The newest outcome of a turn that tried message `seq` again. */
function retryOf(seq: number, events: readonly Kept[]): Outcome | undefined {
  const event = events.findLast(({ event }) =>
    (isAnswer(event) || event?.type === "ended") && event.retries === seq
  )?.event;
  return isAnswer(event) || event?.type === "ended" ? event : undefined;
}

/** Whether it is told as an error. */
export function isFailed(outcome: Outcome): outcome is EndedEvent {
  return outcome.type === "ended" && outcome.reason !== "asked";
}

/** Whether nothing was waiting to be answered by the same turn when it was kept. */
export function isLast(outcome: Outcome, events: readonly Kept[]): boolean {
  return outcome.type === "ended" ||
    !events.some(({ event }) =>
      event?.type === "message" && event.seq > outcome.upto && event.seq < outcome.seq
    );
}

/** The id of an answer or failure: opaque, the same wherever it is told. */
export function outcomeId(thread: string, outcome: Pick<Outcome, "turn" | "seq">): string {
  return `${outcome.turn.replace(/^turn_/, "")}.${outcome.seq}.${hash(thread)}`;
}

/** FNV-1a, 32 bits: a fork's copy of an answer is told from the original by its thread. */
function hash(text: string): string {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return (value >>> 0).toString(16).padStart(8, "0");
}

/** Ids of the messages that `outcome` covers and nothing before its turn did. */
export function coveredBy(outcome: Outcome, events: readonly Kept[]): string[] {
  let before = 0;
  for (const { event } of events) {
    if (!event || event.seq >= outcome.seq) break;
    if ((isAnswer(event) || event.type === "ended") && event.turn !== outcome.turn) {
      before = Math.max(before, event.upto);
    }
    // A failure that followed an answer of its own turn is handed over apart from it.
    if (outcome.type === "ended" && outcome.reason === "failed" && isAnswer(event)) {
      before = Math.max(before, event.upto);
    }
  }
  return events.flatMap(({ event }) => {
    if (event?.type !== "message" || event.id === undefined || event.seq > outcome.upto) return [];
    return event.seq > before || event.seq === outcome.retries ? [event.id] : [];
  });
}

/** The answer form of an outcome that is one (an answer, or an end that was asked for). */
export function answerOf(thread: string, outcome: Outcome, events: readonly Kept[]): TurnAnswer {
  const own = events.flatMap(({ event }) =>
    event && turnOf(event) === outcome.turn && event.seq <= outcome.seq ? [event] : []
  );
  const models = own.filter((event) => event.type === "model");
  const spoken = models.filter((event) => isAnswer(event) || event.stop === "asked");
  const newest = models.at(-1);
  const cost = models.reduce<number | undefined>(
    (sum, { cost }) => cost === undefined ? sum : (sum ?? 0) + cost,
    undefined,
  );
  return {
    id: outcomeId(thread, outcome),
    turn: outcome.turn,
    thread,
    seq: outcome.seq,
    messages: coveredBy(outcome, events),
    text: spoken.map(({ text }) => text).filter((text) => text !== "").join("\n\n"),
    model: newest?.model ?? "",
    provider: newest?.provider ?? "",
    tokens: summed(models.map(({ tokens }) => tokens)),
    ...(cost === undefined ? {} : { cost }),
    ms: elapsed(outcome, events),
    rounds: models.length,
    calls: models.reduce((sum, { calls }) => sum + (calls?.length ?? 0), 0),
    stop: outcome.type === "ended" ? "asked" : outcome.stop,
  };
}

/** Time from the first message that it covers to its end, by the events' own times. */
function elapsed(outcome: Outcome, events: readonly Kept[]): number {
  const ids = new Set(coveredBy(outcome, events));
  const first = events.find(({ event }) =>
    event?.type === "message" && event.id !== undefined && ids.has(event.id)
  )?.event;
  return first ? Math.max(0, Date.parse(outcome.at) - Date.parse(first.at)) : 0;
}

function summed(all: Tokens[]): Tokens {
  const sum: Tokens = { input: 0, output: 0 };
  for (const tokens of all) {
    for (const key of ["input", "output", "cached", "written", "reasoning"] as const) {
      const count = tokens[key];
      if (count !== undefined) sum[key] = (sum[key] ?? 0) + count;
    }
  }
  return sum;
}

/** The last news of an outcome: the answer, or its failure's error form. */
export function newsOf(
  thread: string,
  outcome: Outcome,
  events: readonly Kept[],
  statusOf: (code: string) => number,
): News {
  if (isFailed(outcome)) {
    const { code, message } = failureOf(outcome);
    return { type: "error", status: statusOf(code), turn: outcome.turn, error: { code, message } };
  }
  return { type: "answer", ...answerOf(thread, outcome, events) };
}

/** What a bridge is handed of an untaken outcome. */
export function handOver(thread: string, outcome: Outcome, events: readonly Kept[], why: Why): HandedOver {
  const covered = new Set(coveredBy(outcome, events));
  const message = events.findLast(({ event }) =>
    event?.type === "message" && event.id !== undefined && covered.has(event.id)
  )?.event;
  const connection = message?.type === "message" ? message.connection : undefined;
  return {
    id: outcomeId(thread, outcome),
    thread,
    ...(connection === undefined ? {} : { connection }),
    turn: outcome.turn,
    seq: outcome.seq,
    ...(isFailed(outcome) ? { error: failureOf(outcome) } : { text: answerOf(thread, outcome, events).text }),
    at: outcome.at,
    messages: [...covered],
    why,
  };
}

function failureOf(outcome: EndedEvent): { code: string; message: string } {
  const code = outcome.code ?? (outcome.reason === "failed" ? "model_failed" : `turn_${outcome.reason}`);
  return {
    code: isFailureCode(code) ? code : "internal",
    message: outcome.message ?? `The turn ended (${outcome.reason}).`,
  };
}

/** Makes all events of the outcome's turn, and the messages that it covers, be at hand. */
export async function reachTurn(
  tail: { first: number; events: Kept[]; reach(seq: number): Promise<void> },
  outcome: Outcome,
): Promise<void> {
  const covers = ({ event }: Kept) =>
    (isAnswer(event) || event?.type === "ended") && event.seq < outcome.seq && event.turn !== outcome.turn;
  while (tail.first > 1 && !tail.events.some(covers)) await tail.reach(tail.first - 1);
  if (outcome.retries !== undefined) await tail.reach(outcome.retries);
}
