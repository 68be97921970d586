// Summaries of what leaves the window: when one is asked for, in which words, and what counts as one. Pure: the turn asks
// the model, makes the calls that save notes, and writes the event. How a window moves is window.ts.
//
//   plan = planAfter(events, window, room, notes)    // the answer is kept and sent; undefined: nothing to ask
//   plan = planBefore(events, window, room, notes)   // before a request whose window has moved; undefined likewise
//   prompt = summaryPrompt(plan, { sections, tools })
//   answer = ask(prompt)
//   while ((calls = noteCalls(plan, answer, round)).length > 0) prompt = withNotes(prompt, answer, results), ask again
//   checked = checkSummary(answer, plan)             // its text, or why it failed
//   append { type: "summary", ...summaryFields(plan, seq, checked), … }   // a failed one too: it moves nothing

import { limits } from "../limits.ts";
import type { Call, Checkpoint, Kept, SummaryEvent } from "../log/event.ts";
import type { Answer, Prompt, PromptMessage } from "../model/model.ts";
import { composePrompt, type Parts } from "./compose.ts";
import { fitted } from "./fit.ts";
import {
  answeredOnly,
  blocksOf,
  noteAt,
  type Placed,
  placedMessages,
  sizeOf,
  summaryMessage,
  words,
} from "./messages.ts";
import type { Room } from "./room.ts";
import { roughTokens, tokensOf } from "./tokens.ts";
import { movedWindow, type Window } from "./window.ts";

/** The tool by which notes are saved. */
export const noteTool = "memory__remember";

export interface Plan {
  /** A continuation of the answer's own prompt; or made from what leaves alone, where that would not fit. */
  way: "continued" | "apart";
  /** Where the window begins once the summary is kept. */
  start: Checkpoint;
  /** Numbers of the first and the last that it covers. */
  from: number;
  to: number;
  summary?: SummaryEvent;
  /** What it is made from, after the last summary. */
  placed: Placed[];
  /** What is asked after them. */
  request: string;
  /** Whether the model may save notes first. */
  notes: boolean;
  /** Tokens. */
  answerMax: number;
  summaryMax: number;
}

export interface NoteSettings {
  /** `[window] save_notes`. */
  save_notes: boolean;
  /** Names of the tools that the turn offers. */
  offered: ReadonlySet<string>;
}

/** What to ask once the turn's answer is kept: nothing below `[window] compact_at`, nor where nothing could leave. */
export function planAfter(
  events: readonly Kept[],
  window: Window,
  room: Room,
  notes: NoteSettings,
): Plan | undefined {
  const moved = movedWindow(events, window, room);
  if (!moved) return undefined;
  const plan = planApart(moved, room, savesNotes(events, window.start, notes));
  const placed = answeredOnly(placedMessages(events, window.start.from));
  const request = requestFor("continued", plan, quoteOf(moved));
  const used = summarySize(window.summary) + sizeOf(placed) + roughTokens(request);
  const answerMax = Math.min(room.answer, room.share + room.answer - used);
  // Where texts were cut, or no room is left to write in, the answer's prompt cannot go on.
  if (window.cut || answerMax < 2 * plan.summaryMax) return plan;
  return { ...plan, way: "continued", placed, request, answerMax };
}

/** What to ask before a request whose window has moved because it had outgrown its room. */
export function planBefore(
  events: readonly Kept[],
  window: Window,
  room: Room,
  notes: NoteSettings,
): Plan | undefined {
  if (window.left.length === 0 || room.compactAt === undefined) return undefined;
  const from = { ...window.start, from: window.left[0]!.seq };
  return planApart(window, room, savesNotes(events, from, notes));
}

/** From what left alone: the newest of it that has room beside the last summary. */
function planApart(moved: Window, room: Room, notes: boolean): Plan {
  const { start, summary, left } = moved;
  const plan: Plan = {
    way: "apart",
    start,
    from: summary?.from ?? left[0]!.seq,
    to: Math.max(...left.map(({ seq }) => seq)),
    ...(summary ? { summary } : {}),
    placed: [],
    request: "",
    notes,
    answerMax: room.answer,
    summaryMax: room.summary,
  };
  const request = requestFor("apart", plan, quoteOf(moved));
  const placed = newestOf(left, room.share - summarySize(summary) - roughTokens(request));
  return { ...plan, request, placed };
}

/** Notes are about the owner: none are saved from a conversation that only others spoke in. */
function savesNotes(events: readonly Kept[], { from }: Checkpoint, notes: NoteSettings): boolean {
  return notes.save_notes && notes.offered.has(noteTool) &&
    events.some(({ seq, event }) => seq >= from && event?.type === "message" && event.from.role === "owner");
}

function summarySize(summary: SummaryEvent | undefined): number {
  return summary ? tokensOf(summaryMessage(summary)) : 0;
}

/** The newest of these messages within a budget, a round and its results always together; one that is too large is cut. */
function newestOf(left: readonly Placed[], budget: number): Placed[] {
  const opening = noteAt(left[0]!.seq, words.continued);
  let kept: Placed[] = [];
  let spare = budget - opening.tokens;
  for (const block of blocksOf(left).reverse()) {
    const size = sizeOf(block);
    const fit = size <= spare ? { placed: block, tokens: size } : fitted(block, spare);
    if (fit.tokens <= spare) kept = [...fit.placed, ...kept];
    spare -= size;
    if (spare < 0) break;
  }
  return kept[0]?.message.role === "model" ? [opening, ...kept] : kept;
}

/** The start of the first message that stays. */
function quoteOf({ placed }: Window): string {
  const text = (placed[0]?.message.text ?? "").replace(/\s+/g, " ").trim();
  const characters = [...text.slice(0, 2 * limits.quoteCharsMax)].slice(0, limits.quoteCharsMax);
  return characters.join("").toWellFormed();
}

/** The words are the harness's own: what to keep is the model's to say. */
function requestFor(way: Plan["way"], plan: Plan, quote: string): string {
  const what = way === "continued"
    ? `Older messages are about to leave your window: all that stands before the message that begins with “${quote}”. That message and what follows it stay.`
    : `These messages leave your window. What stays begins with “${quote}”.`;
  const notes = plan.notes
    ? `First save with ${noteTool} what is new here and matters in every later conversation with your owner; where there is nothing, save nothing. Call no other tool. Then write`
    : "Call no tool. Write";
  return `[${what} ${notes} the summary that will stand in the place of what leaves: who is who, what was asked for, decided, ` +
    `found and done, with names, numbers, dates, paths and promises as they were given, and what is still open. ` +
    `Take over from an earlier summary what still matters. Answer with the summary alone, in at most ${
      Math.floor(plan.summaryMax / 2)
    } words.]`;
}

/** The request, its beginning the same bytes as the answer's where it is a continuation. Tools are offered as ever, and told in
 * words not to be called: a provider that is told otherwise reads its cache no more. */
export function summaryPrompt(plan: Plan, parts: Pick<Parts, "sections" | "tools">): Prompt {
  const { summary, placed, request, answerMax } = plan;
  return composePrompt({
    ...parts,
    placed,
    ...(summary ? { summary } : {}),
    request,
    choice: "auto",
    answerMax,
  });
}

/** The calls of an answer to it, by ids of ours, and whether each is to be made. Empty: nothing more is asked. */
export function noteCalls(plan: Plan, answer: Answer, round: number): { call: Call; runs: boolean }[] {
  if (!plan.notes || round > limits.noteRoundsMax || answer.stop === "length") return [];
  return answer.calls.map((call, at) => ({
    call: { id: `n${round}_${at}`, ...call },
    runs: call.tool === noteTool,
  }));
}

/** What a call is told that is not to be made. */
export const onlyNotes = `Only ${noteTool} may be called now.`;

/** The prompt that goes on after such calls. */
export function withNotes(
  prompt: Prompt,
  answer: Answer,
  results: readonly { call: Call; ok: boolean; text: string }[],
): Prompt {
  const { text, thinking, model, provider } = answer;
  const calls = results.map(({ call }) => call);
  return {
    ...prompt,
    messages: [
      ...prompt.messages,
      { role: "model", text, calls, ...(thinking ? { thinking } : {}), model, provider },
      ...results.map(({ call, ok, text }): PromptMessage => ({
        role: "result",
        call: call.id,
        tool: call.tool,
        text,
        ok,
      })),
    ],
  };
}

/** A summary, or why it is none: then all stays where it was, and the next turn asks again. */
export type Checked = { text: string } | { failed: string };

export function checkSummary(answer: Answer, plan: Plan): Checked {
  const text = answer.text.trim();
  if (answer.calls.length > 0) return { failed: `it called ${answer.calls[0]!.tool}` };
  if (answer.stop !== "end") return { failed: `it was cut short (${answer.stop})` };
  if (text === "") return { failed: "it is empty" };
  const tokens = roughTokens(text);
  return tokens > plan.summaryMax
    ? { failed: `it has ${tokens} tokens, and ${plan.summaryMax} is the most` }
    : { text };
}

/** What its event says beside who wrote it. */
export function summaryFields(
  plan: Plan,
  seq: number,
  checked: Checked,
): Pick<SummaryEvent, "from" | "to" | "keeps" | "text" | "window" | "failed"> {
  const { from, to, start } = plan;
  const covers = { from, to, keeps: start.from };
  return "failed" in checked
    ? { ...covers, text: "", failed: checked.failed }
    : { ...covers, text: checked.text, window: { ...start, summary: seq } };
}
