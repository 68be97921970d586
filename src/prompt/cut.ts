// A text made to fit: what is left out is told where it stood, and no character is cut in two.

import { roughTokens } from "./tokens.ts";

/** The start of `text`, whole lines where it has any, within `tokens`, with a last line that tells what is missing. */
export function cutEnd(text: string, tokens: number): string {
  if (fits(text, tokens)) return text;
  const told = `[Cut here: ${text.length} characters in all.]`;
  const end = reach(text, Math.max(0, tokens - roughTokens(told) - 1));
  const line = text.lastIndexOf("\n", end);
  return `${text.slice(0, line > end / 2 ? line : end)}\n${told}`;
}

/** The start and the end of `text` within `tokens`, what is missing told between. */
export function cutMiddle(text: string, tokens: number): string {
  if (fits(text, tokens)) return text;
  const told = (left: number) => `\n[… ${left} characters left out here, for they do not fit …]\n`;
  const spare = Math.max(0, tokens - roughTokens(told(text.length)) - 2);
  const head = reach(text, Math.ceil(spare / 2));
  const tail = reachBack(text, Math.floor(spare / 2), head);
  return `${text.slice(0, head)}${told(tail - head)}${text.slice(tail)}`;
}

/** Four ASCII characters are the most that a token takes, so that a long text need not be counted. */
function fits(text: string, tokens: number): boolean {
  return text.length <= 4 * tokens && roughTokens(text) <= tokens;
}

/** How far into `text` so many tokens go, in UTF-16 units, never between two halves of a character. */
function reach(text: string, tokens: number): number {
  let quarters = 4 * tokens;
  for (let at = 0; at < text.length;) {
    const point = text.codePointAt(at)!;
    quarters -= point < 0x80 ? 1 : 4;
    if (quarters < 0) return at;
    at += point > 0xffff ? 2 : 1;
  }
  return text.length;
}

/** The same from the end, not before `least`. */
function reachBack(text: string, tokens: number, least: number): number {
  let quarters = 4 * tokens;
  for (let at = text.length; at > least;) {
    const pair = at - 2 >= least && text.codePointAt(at - 2)! > 0xffff;
    const unit = text.charCodeAt(at - 1);
    quarters -= unit < 0x80 ? 1 : 4;
    if (quarters < 0) return at;
    at -= pair ? 2 : 1;
  }
  return least;
}
