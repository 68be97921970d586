// Why one try failed and what may be done about it, read from what providers say: their statuses, their forms of an error,
// and, where there is no code, their wording. What is done is retry.ts.

import { hide } from "../fetch.ts";
import { limits } from "../limits.ts";

/** What may be done about a failed try. */
export type TroubleKind =
  /** Throttled, overloaded, or broken on the way: the same request may well succeed. */
  | "again"
  /** Nothing came for too long. */
  | "silent"
  /** The prompt is longer than the model takes. */
  | "long"
  /** The content was refused, by the model or by a filter. */
  | "content"
  /** Thinking that was sent back is not accepted. */
  | "thinking"
  /** The field that says the longest answer has another name here. */
  | "answer_field"
  /** Nothing helps: a wrong key, an unknown model, a request that is not understood. */
  | "refused";

/** A failed try. */
export class Trouble extends Error {
  override readonly name = "Trouble";
  readonly kind: TroubleKind;
  readonly status: number | undefined;
  /** The provider asks to wait this long, ms. */
  readonly waitMs: number | undefined;

  constructor(
    kind: TroubleKind,
    why: string,
    more: { status?: number; waitMs?: number; cause?: unknown } = {},
  ) {
    super(why.slice(0, limits.modelErrorCharsMax).toWellFormed(), { cause: more.cause });
    this.kind = kind;
    this.status = more.status;
    this.waitMs = more.waitMs;
  }
}

/** What a provider said went wrong. `status` is 0 where an error came within a reply that began well. */
export interface Said {
  status: number;
  /** The body, or the data of an error event. */
  text: string;
  headers?: Headers;
  /** What must not be told. */
  secrets?: readonly string[];
  now: number;
}

/** The trouble that a provider's words mean. */
export function troubleOf(said: Said): Trouble {
  const { message, codes, status } = errorFormOf(said);
  const words = hide(message, said.secrets);
  const why = `${status ? `HTTP ${status}` : "an error"}${words ? `: ${words.replace(/[.\s]+$/, "")}` : ""}`;
  const waitMs = said.headers && retryAfter(said.headers, said.now);
  const kind = kindOf(status, message, codes);
  return new Trouble(kind, why, { status, ...(waitMs !== undefined ? { waitMs } : {}) });
}

function kindOf(status: number, message: string, codes: readonly string[]): TroubleKind {
  const all = `${message} ${codes.join(" ")}`;
  if (spent.test(all)) return "refused";
  // Throttling wins over length: both speak of too many tokens, and a prompt cut short does not help against it.
  if (status === 429 || status === 529 || throttled.test(all)) return "again";
  if (isTooLong(status, message, codes)) return "long";
  if (filtered.test(all)) return "content";
  if (status === 400 && /max_completion_tokens/.test(message) && /\bmax_tokens\b/.test(message)) {
    return "answer_field";
  }
  if (status === 400 && thinkingRefused.test(message)) return "thinking";
  // Code 0 is an error event that names no status: the request was accepted, so what broke is the answering.
  if (status === 0 || status === 408 || status === 409 || status >= 500) return "again";
  return "refused";
}

const spent = /insufficient_quota|billing_(hard_limit|not_active)|credit balance is too low/i;
const throttled =
  /rate.?limit|too many requests|tokens per (min|hour|day)|\b[TRI]P[MDH]\b|requests per|quota|resource.?exhausted|overloaded|please wait|slow down|throttl|concurren/i;
const filtered =
  /content.?(filter|policy|management)|responsibleai|safety (system|filter)|flagged|moderation|prohibited.?content|usage polic/i;
const thinkingRefused = /signature|thinking|reasoning_(content|details)|redacted/i;

/** How providers say that a prompt is too long: nobody has a common code for it. */
const tooLong: RegExp[] = [
  /prompt (is|was) too long/i, // Anthropic, Fireworks, Ollama
  /prompt too long/i, // Ollama
  /input length and `?max_tokens`? exceed context/i, // Anthropic
  /request exceeds the maximum size/i, // Anthropic, over its bytes
  /maximum context length/i, // OpenAI, OpenRouter, Mistral, vLLM, sglang, DeepSeek, Azure
  /(exceeds?|exceeded|longer than|larger than|beyond|fit into|fit in|overflows?).{0,60}context (window|length|size|limit)/i, // OpenAI, llama.cpp, sglang, vLLM
  /context (window|length|size|limit).{0,40}(exceed|overflow|reached|too (small|short))/i, // MiniMax, LM Studio
  /context the overflows|greater than the context length|larger context length/i, // LM Studio
  /exceed_context_size|context_length_exceeded|context_window_exceeded/i,
  /input token count.{0,40}exceeds/i, // Gemini
  /prompt token count.{0,40}exceeds/i, // GitHub
  /maximum prompt length/i, // xAI
  /reduce the length of (the|your|either) (messages|prompt|input|one)/i, // Groq, OpenAI
  /input is too long/i, // Bedrock
  /too many (input|prompt) tokens/i, // Bedrock
  /exceeded model token limit/i, // Kimi
  /prompt (超长|exceeds max length)|超长|超过.{0,12}(长度|上限)/i, // GLM
  /maximum (model length|allowed input length|input length)|max(imum)? input (length|tokens)/i, // vLLM, Poolside
  /range of input length should be/i, // Qwen
  /inputs` tokens \+ `max_new_tokens/i, // text-generation-inference, Together
  /total number of tokens in the prompt cannot exceed/i, // Cohere
  /current length is \d+ while limit is/i, // Cerebras
  /input.{0,30}too (long|large) for (the |this |requested )?model/i,
];

function isTooLong(status: number, message: string, codes: readonly string[]): boolean {
  // An empty 413 is a proxy's word for it.
  if (status === 413) return true;
  if (codes.includes("1261")) return true; // GLM
  if (codes.some((code) => /context_(length|window|size)|prompt_too_long|request_too_large/i.test(code))) {
    return true;
  }
  return tooLong.some((wording) => wording.test(message));
}

/** Message, codes and status of an error, out of the forms that providers give it. */
function errorFormOf(said: Said): { message: string; codes: string[]; status: number } {
  let value: unknown;
  try {
    value = JSON.parse(said.text);
  } catch {
    // A page of a proxy says little and is long; its title at most.
    const title = /<title>([^<]*)<\/title>/i.exec(said.text)?.[1];
    const message = title ?? (/^\s*</.test(said.text) ? "" : said.text);
    return { message, codes: [], status: said.status };
  }
  const messages: string[] = [], codes: string[] = [];
  let status = said.status;
  const visit = (at: unknown, depth: number): void => {
    if (typeof at === "string") messages.push(at);
    if (typeof at !== "object" || at === null || depth > 4) return;
    for (const [key, inner] of Object.entries(at)) {
      if ((key === "code" || key === "type" || key === "status") && /^(string|number)$/.test(typeof inner)) {
        codes.push(String(inner));
        const number = Number(inner);
        if (status === 0 && number >= 400 && number < 600) status = number;
      } else if (
        /^(message|detail|details|msg|error|errors|error_description|raw|reason|metadata|title|\d+)$/.test(
          key,
        )
      ) {
        visit(inner, depth + 1);
      }
    }
  };
  visit(value, 0);
  const words = { overloaded_error: 529, rate_limit_error: 429, api_error: 500, timeout_error: 504 };
  for (const code of codes) {
    if (status === 0 && Object.hasOwn(words, code)) status = words[code as keyof typeof words];
  }
  return { message: [...new Set(messages)].join("; "), codes, status };
}

/** The wait that `retry-after` asks for, ms: seconds, a date, or nothing where it is neither. */
export function retryAfter(headers: Headers, now: number): number | undefined {
  const ms = headers.get("retry-after-ms");
  if (ms && /^\d+(\.\d+)?$/.test(ms.trim())) return Number(ms);
  const text = headers.get("retry-after")?.trim();
  if (!text) return undefined;
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000;
  // A date has letters in it; a bare "-1" is one for some parsers.
  const date = /[a-z]/i.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
