// A conversation's events as the messages of a prompt, in the order in which they were said and heard. Pure: the same
// events give the same messages to any process, and what comes later changes nothing before it. Where the window
// begins is window.ts; how a provider is told is the model folder's.

import { isAnswer } from "../log/conversation.ts";
import type { EndedEvent, Event, Kept, MessageEvent, ModelEvent, SummaryEvent } from "../log/event.ts";
import type { PromptMessage } from "../model/model.ts";
import { tokensOf } from "./tokens.ts";

/** One message of a prompt, and where it stands in its conversation. */
export interface Placed {
  message: PromptMessage;
  /** Number of its event, or of the one that it belongs to. */
  seq: number;
  /** Roughly, whole: the same for ever. */
  tokens: number;
  /** Somebody speaks and all before is answered or ended: a window may begin here. */
  begins: boolean;
  /** An answer, or the end of a turn without one: all before it is settled. */
  settles: boolean;
}

/** What the harness itself says in a conversation, to the model alone. Changing a word breaks every cached prompt. */
export const words = {
  unknown:
    "Outcome unknown: this call was begun, and no result of it was kept. It may have taken effect. It was not made again.",
  stopped: "[This was stopped on request, before the answer was complete.]",
  continued: "[The conversation goes on from here.]",
  leftOut: "[What came between is left out here, for it does not fit.]",
  again: "[Answer now what was said above and has no answer yet.]",
  summary: "[Summary of all that was said before, written by you when it left your window.]",
} as const;

/**
 * The messages of these events, which are in order of number. A message stands after the round that had not seen it, and after that
 * round's results; each call has exactly one result. Messages before number `from` are left out, with all that was said before it.
 */
export function placedMessages(events: readonly Kept[], from = 0): Placed[] {
  const placed: Placed[] = [];
  let waiting: MessageEvent[] = [];
  let settled = true;
  let newest = 0;

  function put(event: { seq: number }, message: PromptMessage): void {
    const begins = message.role === "user" && settled;
    placed.push({ message, seq: event.seq, tokens: counted(event, message), begins, settles: false });
    settled = false;
  }
  function settle(): void {
    const last = placed.at(-1);
    if (last) last.settles = true;
    settled = true;
  }
  function note(seq: number, text: string): void {
    placed.push(noteAt(seq, text));
  }
  /** Puts the waiting messages that a request up to number `upto` held. */
  function hear(upto: number): void {
    for (const event of waiting) {
      const { head, text } = event;
      if (event.seq <= upto) put(event, { role: "user", text: head === "" ? text : `${head}\n${text}` });
    }
    waiting = waiting.filter(({ seq }) => seq > upto);
  }
  function speak(event: ModelEvent, results: Results): void {
    hear(event.upto ?? event.seen ?? event.seq - 1);
    const before = placed.at(-1)?.message.role;
    // No provider takes an answer that answers nothing: a turn on a message of before says so.
    if (before === undefined) note(event.seq, words.continued);
    else if (before === "model") note(event.seq, words.again);
    const { seq, text, thinking, model, provider } = event;
    // Ids by place, so that they are unique whatever a provider or another harness called them.
    const calls = (event.calls ?? []).map((call, at) => ({ ...call, id: `c${seq}_${at}` }));
    put(event, { role: "model", text, calls, ...(thinking ? { thinking } : {}), model, provider });
    for (const [at, call] of calls.entries()) {
      const result = results.get(event.calls![at]!.id)?.shift();
      const { tool } = call;
      const heard = result ? { text: result.text, ok: result.ok } : { text: words.unknown, ok: true };
      put(result ?? { seq }, { role: "result", call: call.id, tool, ...heard });
    }
    if (isAnswer(event)) settle();
    // The piece of an answer that was stopped: nobody may take it for a whole one.
    else if (calls.length === 0) note(seq, words.stopped);
  }
  function end(event: EndedEvent): void {
    hear(event.upto);
    const last = placed.at(-1)?.message;
    if (event.reason === "asked" && last && last.text !== words.stopped) note(event.seq, words.stopped);
    settle();
  }

  for (const [at, { event }] of events.entries()) {
    if (!event || event.seq <= newest) continue;
    newest = event.seq;
    switch (event.type) {
      case "message":
        waiting.push(event);
        break;
      case "model":
        speak(event, resultsAfter(events, at));
        break;
      case "ended":
        end(event);
        break;
      case "result": // put with its call
      case "summary": // stands before the window, see summaryMessage
      case "recovered":
        break;
      default:
        event satisfies never;
    }
  }
  hear(Infinity);
  const first = placed.findIndex(({ seq, message }) => message.role === "user" && seq === from);
  return first > 0 ? placed.slice(first) : placed;
}

/** Only what was answered or ended: without what has come since. */
export function answeredOnly(placed: readonly Placed[]): Placed[] {
  return placed.slice(0, placed.findLastIndex(({ settles }) => settles) + 1);
}

/** Something that the harness itself says. */
export function noteAt(seq: number, text: string): Placed {
  const message = { role: "user", text } as const;
  return { message, seq, tokens: tokensOf(message), begins: false, settles: false };
}

/** The messages by what belongs together: each that somebody said, and each round with its results. */
export function blocksOf(placed: readonly Placed[]): Placed[][] {
  const blocks: Placed[][] = [];
  for (const one of placed) {
    const last = blocks.at(-1);
    if (one.message.role === "result" && last) last.push(one);
    else blocks.push([one]);
  }
  return blocks;
}

/** Rough tokens of these messages. */
export function sizeOf(placed: readonly Placed[]): number {
  return placed.reduce((sum, { tokens }) => sum + tokens, 0);
}

const counts = new WeakMap<object, number>();

/** A message is made from its event alone, so that it is counted once. */
function counted(event: object, message: PromptMessage): number {
  const known = counts.get(event);
  if (known !== undefined) return known;
  const tokens = tokensOf(message);
  counts.set(event, tokens);
  return tokens;
}

type Results = Map<string, Extract<Event, { type: "result" }>[]>;

/** The results that came before the model was asked again, or the turn ended, by their call: one that comes later finds its
 * call told as unknown, which stands. */
function resultsAfter(events: readonly Kept[], at: number): Results {
  const results: Results = new Map();
  const { event } = events[at]!;
  if (event?.type !== "model" || !event.calls?.length) return results;
  for (let next = at + 1; next < events.length; next++) {
    const { event } = events[next]!;
    if (event?.type === "model" || event?.type === "ended") break;
    if (event?.type === "result") results.set(event.call, [...results.get(event.call) ?? [], event]);
  }
  return results;
}

/** What stands first in a window that was summarised. */
export function summaryMessage({ text }: SummaryEvent): PromptMessage {
  return { role: "user", text: `${words.summary}\n${text}` };
}
