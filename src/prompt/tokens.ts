// How many tokens a text is, roughly: counted before a provider counts, the same by every process for ever. Drop points
// stand on this count, so it never changes for what is once written; the window's margin covers what it misses.

import type { ToolSpec } from "../tool.ts";
import type { PromptMessage } from "../model/model.ts";

/** Four ASCII characters to a token, one token for any other character (a pair of surrogates is one). */
export function roughTokens(text: string): number {
  let ascii = 0, other = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) ascii++;
    // The second half of a pair was counted with its first.
    else if (unit < 0xdc00 || unit > 0xdfff) other++;
  }
  return Math.ceil(ascii / 4) + other;
}

/** What a provider's form adds to each message, and to each call or result. */
const messageTokens = 4, callTokens = 12;

const counted = new WeakMap<object, number>();

/** Tokens of a message as it is sent, its thinking included, whoever it is sent to. */
export function tokensOf(message: PromptMessage): number {
  let tokens = messageTokens + roughTokens(message.text);
  if (message.role === "result") tokens += callTokens;
  if (message.role === "model") {
    for (const call of message.calls) {
      tokens += callTokens + roughTokens(call.tool) + roughTokens(call.arguments);
    }
    if (message.thinking) tokens += once(message.thinking, () => JSON.stringify(message.thinking?.blocks));
  }
  return tokens;
}

/** Tokens of the tools as they are offered. */
export function toolsTokens(tools: readonly ToolSpec[]): number {
  return tools.reduce((sum, tool) => sum + callTokens + once(tool, () => JSON.stringify(tool)), 0);
}

/** Counts a value's text once: values of a prompt are never changed. */
function once(value: object, text: () => string): number {
  let tokens = counted.get(value);
  if (tokens === undefined) counted.set(value, tokens = roughTokens(text()));
  return tokens;
}
