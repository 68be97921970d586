// Whether what a chat program remembers is the start of a conversation that is kept here.

import { isAnswer } from "../log/conversation.ts";
import { parseLine } from "../log/event.ts";
import type { ConversationStore } from "../store/seams.ts";

/** One message of a chat program's history. */
export interface Spoken {
  role: "user" | "assistant";
  text: string;
}

/** Whether `history` is a prefix of what was said in `thread`. Reads no more of it than that takes. */
export async function isPrefix(
  history: readonly Spoken[],
  store: ConversationStore,
  thread: string,
): Promise<boolean> {
  const remembered = merged(history);
  if (remembered.length === 0) return true;
  const kept: Spoken[] = [];
  for await (const line of store.read(thread, 1)) {
    const { event } = parseLine(line);
    if (event?.type === "message") add(kept, { role: "user", text: event.text });
    else if (isAnswer(event)) add(kept, { role: "assistant", text: event.text });
    // One more than is remembered: what is compared is whole then.
    if (kept.length > remembered.length) break;
  }
  return remembered.length <= kept.length && remembered.every((one, index) => isSame(one, kept[index]!));
}

/** A program may remember more of an answer than it was: what the model said between its calls was streamed too. */
function isSame(remembered: Spoken, kept: Spoken): boolean {
  if (remembered.role !== kept.role) return false;
  const [given, own] = [remembered.text.trim(), kept.text.trim()];
  return given === own || (kept.role === "assistant" && given.endsWith(own));
}

/** Neighbours of one role as one. */
function merged(all: readonly Spoken[]): Spoken[] {
  const one: Spoken[] = [];
  for (const spoken of all) add(one, spoken);
  return one;
}

function add(all: Spoken[], { role, text }: Spoken): void {
  const last = all.at(-1);
  if (last?.role === role) last.text += `\n\n${text}`;
  else all.push({ role, text });
}
