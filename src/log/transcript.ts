// A conversation as people read it, in markdown: what the owner said and what the agent answered, up to its last answer. No calls,
// no thinking, no summaries, nothing that is still being answered. Pure.

import { isAnswer } from "./conversation.ts";
import { type Kept, type MessageEvent, type ModelEvent, parseLine } from "./event.ts";

/** The whole text, piece by piece, from a conversation's lines in order. */
export async function* transcript(lines: AsyncIterable<string>): AsyncIterable<string> {
  const add = transcriber();
  for await (const line of lines) {
    const text = add(parseLine(line));
    if (text !== "") yield text;
  }
}

/**
 * Takes events in order and gives what each adds to the text: nothing, but for an answer, which brings the messages that it covers
 * with it. So a text that was made up to one answer only grows by the next.
 */
export function transcriber(): (kept: Kept) => string {
  let waiting: MessageEvent[] = [];
  return ({ event }) => {
    if (event?.type === "message" && event.from.role === "owner") waiting.push(event);
    if (!isAnswer(event)) return "";
    const covered = waiting.filter((message) => message.seq <= event.upto);
    waiting = waiting.filter((message) => message.seq > event.upto);
    return covered.map(messageText).join("") + answerText(event);
  };
}

/** What an answer ends the text with. */
export function answerText({ at, text }: ModelEvent): string {
  return `**[${at.slice(0, 10)} ${at.slice(11, 19)} UTC · agent]**\n\n${text}\n\n`;
}

function messageText({ head, text }: MessageEvent): string {
  return `**${head}**\n\n${text}\n\n`;
}
