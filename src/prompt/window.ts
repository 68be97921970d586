// The window: how much of a conversation the model sees. Where it begins is fixed by the conversation itself and the room
// there is, so that any process sends the same: it begins where the newest checkpoint says, and once it outgrows its room
// the oldest leave, half of the share at a time, at the start of a message before which all was answered. Pure but for
// `findStart`, which reads. How large the room is is room.ts; what is asked of what leaves is summary.ts.
//
//   const room = roomOf(facts, settings, sections, tools)
//   const found = await findStart(tail)                   // reads back at most to where the window begins
//   const window = windowOf(tail.events, found, room)     // for each request
//   composePrompt({ sections, tools, placed: window.placed, summary: window.summary, … })
//   … the answer's event: window: window.start

import { limits } from "../limits.ts";
import type { Checkpoint, Kept, SummaryEvent } from "../log/event.ts";
import { fitted } from "./fit.ts";
import { answeredOnly, type Placed, placedMessages, summaryMessage } from "./messages.ts";
import type { Room } from "./room.ts";
import { tokensOf } from "./tokens.ts";

/** Where a window begins. */
export interface Start {
  /** What an answer to it records. */
  start: Checkpoint;
  /** Stands before its messages. */
  summary?: SummaryEvent;
}

export interface Window extends Start {
  placed: Placed[];
  /** Rough tokens of the summary and the messages, as they are sent. */
  tokens: number;
  /** What left since the start that was given, oldest first. */
  left: Placed[];
  /** What cannot leave is larger than the room: its longest texts are cut. */
  cut: boolean;
}

/** The window at the end of `events`, which reach back to `start.from` and are in order. */
export function windowOf(
  events: readonly Kept[],
  { start, summary }: Start,
  room: Pick<Room, "share" | "drop">,
): Window {
  const placed = placedMessages(events, start.from);
  const reserved = summary ? tokensOf(summaryMessage(summary)) : 0;
  const points = dropPoints(placed);
  const first = dropTo(points, room.drop, (tokens) => reserved + tokens > room.share);
  const stays = placed.slice(first.index);
  const tokens = reserved + points.total - first.before;
  const window = {
    start: startAt(events, start, first),
    ...(summary ? { summary } : {}),
    left: placed.slice(0, first.index),
  };
  if (tokens <= room.share) return { ...window, placed: stays, tokens, cut: false };
  const fit = fitted(stays, room.share - reserved);
  return { ...window, placed: fit.placed, tokens: reserved + fit.tokens, cut: true };
}

/** Where the window would begin after an answer, once what leaves is summarised; undefined where nothing would leave. */
export function movedWindow(
  events: readonly Kept[],
  window: Window,
  room: Pick<Room, "drop" | "compactAt">,
): Window | undefined {
  const { compactAt } = room;
  if (compactAt === undefined) return undefined;
  const placed = answeredOnly(placedMessages(events, window.start.from));
  const reserved = window.summary ? tokensOf(summaryMessage(window.summary)) : 0;
  const points = dropPoints(placed);
  const first = dropTo(points, room.drop, (tokens) => reserved + tokens >= compactAt);
  if (first.index === 0) return undefined;
  return {
    start: startAt(events, window.start, first),
    ...(window.summary ? { summary: window.summary } : {}),
    placed: placed.slice(first.index),
    tokens: reserved + points.total - first.before,
    left: placed.slice(0, first.index),
    cut: false,
  };
}

/** A place at which a window may begin: the message there, and the tokens from the window's first message to it. */
interface Point {
  index: number;
  seq: number;
  before: number;
}

function dropPoints(placed: readonly Placed[]): { points: Point[]; total: number } {
  const points: Point[] = [];
  let total = 0;
  for (const [index, { tokens, seq, begins }] of placed.entries()) {
    if (begins || index === 0) points.push({ index, seq, before: total });
    total += tokens;
  }
  return { points, total };
}

/**
 * The first point from which what stays is no longer too much. From one to the next at most `drop` tokens leave, or what cannot
 * be parted: so the points follow from the conversation alone, whenever and by whomever they are looked for.
 */
function dropTo(
  { points, total }: { points: Point[]; total: number },
  drop: number,
  isTooMuch: (tokens: number) => boolean,
): Point {
  let at = 0;
  while (at + 1 < points.length && isTooMuch(total - points[at]!.before)) {
    const most = points[at]!.before + drop;
    let next = at + 1;
    while (next + 1 < points.length && points[next + 1]!.before <= most) next++;
    at = next;
  }
  return points[at] ?? { index: 0, seq: 0, before: 0 };
}

function startAt(events: readonly Kept[], start: Checkpoint, first: Point): Checkpoint {
  if (first.index === 0 && start.at !== "") return start;
  const from = first.index === 0 ? start.from : first.seq;
  const at = events.find(({ seq }) => seq === from)?.event?.at ?? start.at;
  const { summary } = start;
  return { from, at, before: start.before + first.before, ...(summary === undefined ? {} : { summary }) };
}

/** The newest events of a conversation, as a process has them at hand, without gaps. */
export interface Newest {
  readonly events: readonly Kept[];
  /** Makes the events from number `seq` on be at hand. */
  reach(seq: number): Promise<void>;
  /** One event, wherever it stands. */
  one(seq: number): Promise<Kept | undefined>;
}

/**
 * Where the window begins: what the newest checkpoint or summary says. Reads back until there is one, and to where it points;
 * a conversation that has none is read from its first event, once, or from `windowSearchEvents` back.
 */
export async function findStart(tail: Newest): Promise<Start> {
  const start = await findCheckpoint(tail);
  if (start.from < (tail.events[0]?.seq ?? 1)) await tail.reach(start.from);
  if (start.summary === undefined) return { start };
  const at = tail.events.find(({ seq }) => seq === start.summary) ?? await tail.one(start.summary);
  return at?.event?.type === "summary" ? { start, summary: at.event } : { start };
}

async function findCheckpoint(tail: Newest): Promise<Checkpoint> {
  let looked = Infinity;
  for (let step: number = limits.checkpointEvents;; step *= 2) {
    for (let at = tail.events.length - 1; at >= 0; at--) {
      const kept = tail.events[at]!;
      const start = kept.seq < looked ? startOf(kept) : undefined;
      if (start) return start;
    }
    const first = tail.events[0]?.seq ?? 1;
    const newest = tail.events.at(-1)?.seq ?? 0;
    const nowhere = { from: first, at: "", before: 0 };
    if (first <= 1 || first >= looked || newest - first >= limits.windowSearchEvents) return nowhere;
    looked = first;
    await tail.reach(Math.max(1, first - step));
  }
}

/** What an event says of where the window begins. */
function startOf({ event }: Kept): Checkpoint | undefined {
  if (event?.type === "model") return event.window && sane(event.window, event.seq);
  if (event?.type !== "summary" || event.failed !== undefined) return undefined;
  const { at, before } = event.window ?? { at: "", before: 0 };
  return sane({ from: event.keeps, at, before, summary: event.seq }, event.seq);
}

/** A window begins before the event that says so. */
function sane(start: Checkpoint, seq: number): Checkpoint | undefined {
  return start.from >= 1 && start.from < seq ? start : undefined;
}

/** Whether a round of so many calls should repeat the checkpoint, so that one stays within the newest events. */
export function isCheckpointDue(events: readonly Kept[], calls: number): boolean {
  const last = events.findLast((kept) => startOf(kept) !== undefined)?.seq ?? 0;
  const newest = events.at(-1)?.seq ?? 0;
  return newest + 1 + calls + 1 - last >= limits.checkpointEvents;
}
