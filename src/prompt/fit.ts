// Messages made to fit a room that they are too large for: the longest texts are cut, all to the same size, which is halved
// until it is enough; so the next message rarely changes what was cut for this one. Where they are too many for even that,
// the newest of them stay, and the first. No call loses its result.

import { limits } from "../limits.ts";
import type { PromptMessage } from "../model/model.ts";
import { cutMiddle } from "./cut.ts";
import { blocksOf, noteAt, type Placed, sizeOf, words } from "./messages.ts";
import { roughTokens, tokensOf } from "./tokens.ts";

export interface Fitted {
  placed: Placed[];
  /** What they have now: more than the room only where one round alone has. */
  tokens: number;
}

/** The messages with every text, every call's arguments and all thinking within one size. */
export function fitted(placed: readonly Placed[], room: number): Fitted {
  let cap = Math.max(room, limits.cutTokensMin);
  for (;;) {
    cap = Math.max(limits.cutTokensMin, Math.floor(cap / 2));
    const cut = placed.map((one) => one.tokens <= cap ? one : cutTo(one, cap));
    const tokens = sizeOf(cut);
    if (tokens <= room) return { placed: cut, tokens };
    if (cap === limits.cutTokensMin) return newest(cut, room);
  }
}

/** The first, and of what follows the newer half, until it fits or one round is left. */
function newest(placed: Placed[], room: number): Fitted {
  const [first = [], ...blocks] = blocksOf(placed);
  for (let count = blocks.length; count > 1;) {
    count = Math.ceil(count / 2);
    const kept = [...first, noteAt(first[0]!.seq, words.leftOut), ...blocks.slice(-count).flat()];
    const tokens = sizeOf(kept);
    if (tokens <= room || count === 1) return { placed: kept, tokens };
  }
  return { placed, tokens: sizeOf(placed) };
}

function cutTo(one: Placed, cap: number): Placed {
  const message = cutMessage(one.message, cap);
  return { ...one, message, tokens: tokensOf(message) };
}

function cutMessage(message: PromptMessage, cap: number): PromptMessage {
  const text = cutMiddle(message.text, cap);
  if (message.role !== "model") return { ...message, text };
  const { thinking, ...rest } = message;
  const calls = message.calls.map((call) =>
    roughTokens(call.arguments) <= cap
      ? call
      : { ...call, arguments: JSON.stringify({ left_out: `${call.arguments.length} characters` }) }
  );
  const keeps = thinking && roughTokens(JSON.stringify(thinking.blocks)) <= cap;
  return { ...rest, text, calls, ...(keeps ? { thinking } : {}) };
}
