// A turn's news as OpenAI's clients read them: a chat completion, or its chunks.

import type { News, TurnAnswer } from "../turn/news.ts";
import type { LastNews, Wire } from "./caller.ts";
import { openaiError } from "./openai_error.ts";

export interface CompletionParts {
  agent: string;
  thread: string;
  /** Seconds since 1970. */
  created: number;
  /** Whether the stream ends with a chunk of usage. */
  usage: boolean;
}

/** The wire of one completion. It waits for the turn however long it takes: these clients know no other way. */
export function completionWire(parts: CompletionParts): Wire {
  const stream = chunks(parts);
  return {
    headers: { "x-thread": encodeURIComponent(parts.thread) },
    // Kept is kept: asking again by itself would only ask for the same failure.
    failedHeaders: { "x-should-retry": "false" },
    frame: stream,
    body: (news) => bodyOf(parts, news),
  };
}

function bodyOf({ agent, created }: CompletionParts, news: LastNews): unknown {
  if (news.type === "error") {
    return { ...openaiError(news.error, news.status), ...(news.repeated ? { repeated: true } : {}) };
  }
  if (news.type === "joined") {
    return openaiError({ code: "turn_running", message: "The message joined a running turn." }, 409);
  }
  return {
    id: `chatcmpl-${news.id}`,
    object: "chat.completion",
    created,
    model: agent,
    choices: [{
      index: 0,
      message: { role: "assistant", content: news.text, refusal: null },
      logprobs: null,
      finish_reason: finishReason(news.stop),
    }],
    usage: usageOf(news),
  };
}

/**
 * Frames of the chunks. What these clients are sent cannot be taken back: after a restart, and after each round of calls, a
 * blank line follows, and what was streamed always ends with the answer whole.
 */
function chunks({ agent, created, usage }: CompletionParts): (news: News) => string | undefined {
  let id = "chatcmpl-", sent = "", apart = false;
  const chunk = (choices: unknown[], more: object = {}) =>
    `data: ${
      JSON.stringify({ id, object: "chat.completion.chunk", created, model: agent, choices, ...more })
    }\n\n`;
  const delta = (content: object, finish: string | null = null) =>
    chunk(
      [{ index: 0, delta: content, logprobs: null, finish_reason: finish }],
      usage ? { usage: null } : {},
    );
  const text = (more: string) => {
    const content = apart && sent !== "" ? `\n\n${more}` : more;
    apart = false;
    const role = sent === "" ? { role: "assistant" } : {};
    sent += content;
    return delta({ ...role, content });
  };
  return (news) => {
    switch (news.type) {
      case "start":
        id = `chatcmpl-${news.turn}`;
        apart = true;
        return undefined;
      case "text":
        return text(news.text);
      case "restart":
      case "call":
        apart = true;
        return undefined;
      case "result":
        return undefined;
      case "error":
        return `data: ${JSON.stringify(openaiError(news.error, news.status))}\n\n`;
      case "joined":
        return `data: ${JSON.stringify(bodyOf({ agent, created, usage, thread: news.thread }, news))}\n\n`;
      case "answer": {
        apart = true;
        const rest = sent.endsWith(news.text) ? "" : text(news.text);
        const last = delta({}, finishReason(news.stop));
        const counted = usage ? chunk([], { usage: usageOf(news) }) : "";
        return `${rest}${last}${counted}data: [DONE]\n\n`;
      }
    }
  };
}

function finishReason(stop: string): "stop" | "length" | "content_filter" {
  return stop === "length" ? "length" : stop === "filter" ? "content_filter" : "stop";
}

function usageOf({ tokens }: TurnAnswer): object {
  return {
    prompt_tokens: tokens.input,
    completion_tokens: tokens.output,
    total_tokens: tokens.input + tokens.output,
    prompt_tokens_details: { cached_tokens: tokens.cached ?? 0 },
    completion_tokens_details: { reasoning_tokens: tokens.reasoning ?? 0 },
  };
}
