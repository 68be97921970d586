// What events mean together: what is owed, what a turn has said, which calls lack a result. Pure.

import type { Call, EndedEvent, Event, Kept, MessageEvent, ModelEvent } from "./event.ts";

/** Whether a model event is an answer of its turn, not a round of calls and not the piece of one that was asked to end. */
export function isAnswer(event: Event | undefined): event is ModelEvent & { upto: number } {
  return event?.type === "model" && event.upto !== undefined;
}

/** The turn that an event belongs to; undefined for a message. */
export function turnOf(event: Event | undefined): string | undefined {
  return event === undefined || event.type === "message" ? undefined : event.turn;
}

/** Highest message number that is answered or ended, by the events given. */
export function settledUpto(events: Iterable<Kept>): number {
  let upto = 0;
  for (const { event } of events) {
    if (event && (isAnswer(event) || event.type === "ended")) upto = Math.max(upto, event.upto ?? 0);
  }
  return upto;
}

/** Messages that nothing has answered or ended. The events given must reach back past the oldest of them. */
export function owed(events: readonly Kept[]): MessageEvent[] {
  const upto = settledUpto(events);
  return events.flatMap(({ event }) => event?.type === "message" && event.seq > upto ? [event] : []);
}

/** The outcome that covers message `seq`: the first answer or `ended` whose `upto` reaches it. */
export function outcomeOf(
  seq: number,
  events: readonly Kept[],
): (ModelEvent & { upto: number }) | EndedEvent | undefined {
  for (const { event } of events) {
    if (!event || event.seq < seq) continue;
    if ((isAnswer(event) || event.type === "ended") && (event.upto ?? 0) >= seq) return event;
  }
  return undefined;
}

/** Calls of these events that have no result among them. */
export function unanswered(events: readonly Kept[]): Call[] {
  const done = new Set(events.flatMap(({ event }) => event?.type === "result" ? [event.call] : []));
  return events.flatMap(({ event }) =>
    event?.type === "model" ? (event.calls ?? []).filter((call) => !done.has(call.id)) : []
  );
}
