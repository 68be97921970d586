// The OpenAI chat completions wire, as OpenAI, OpenRouter, Ollama, vLLM, llama.cpp, LM Studio and most proxies speak it:
// the request. The reply is openai_answer.ts.

import { type Step, stepsOf } from "./history.ts";
import type { Prompt } from "./model.ts";
import { namesOf } from "./names.ts";
import { openaiDecoder } from "./openai_answer.ts";
import { schemaRules, sendable } from "./schema.ts";
import { type Addressee, makerOf, type Manner, type Wire } from "./wire.ts";

export const openai: Wire = {
  name: "openai",
  path: "/chat/completions",
  headers: (key): Record<string, string> => key ? { authorization: `Bearer ${key}` } : {},
  rules: schemaRules,
  encode,
  decoder: openaiDecoder,
};

/** The request: what changes least first, so that its start stays the same from turn to turn; what is said of this one
 * request alone stands after the messages. */
function encode(prompt: Prompt, to: Addressee, manner: Manner): string {
  const tools = sendable(prompt.tools, schemaRules(to));
  const names = namesOf(tools.map(({ tool }) => tool));
  const steps = stepsOf(prompt, {
    names,
    maker: manner.thinking ? makerOf(to) : undefined,
    tools: tools.length > 0,
  });
  const system = prompt.instructions.filter((text) => text.trim() !== "").join("\n\n").toWellFormed();
  const messages: Message[] = system ? [{ role: "system", content: system }] : [];
  let marked: Message | undefined;
  for (const step of merged(steps)) {
    messages.push(...messagesOf(step));
    if (step.marked) marked = messages.at(-1);
  }
  return JSON.stringify({
    model: to.model,
    [manner.answerField]: prompt.answerMax,
    stream: true,
    stream_options: { include_usage: true },
    ...(tools.length > 0
      ? {
        tools: tools.map(({ tool, schema }) => ({
          type: "function",
          function: {
            name: names.sent(tool.name),
            description: tool.description.toWellFormed(),
            parameters: schema,
          },
        })),
      }
      : {}),
    messages: takesMarks(to) ? inParts(messages, marked) : messages,
    ...(prompt.choice === "none" && tools.length > 0 ? { tool_choice: "none" } : {}),
  });
}

interface Message {
  role: string;
  /** In parts where some of them are marked. */
  content: string | null | Record<string, unknown>[];
  [field: string]: unknown;
}

/** Steps of the user in a row as one, since the templates of many local models want the roles to take turns. */
function merged(steps: Step[]): Step[] {
  const out: Step[] = [];
  for (const step of steps) {
    const last = out.at(-1);
    if (last?.role === "user" && step.role === "user") {
      out[out.length - 1] = { ...step, text: `${last.text}\n\n${step.text}` };
    } else out.push(step);
  }
  return out;
}

/** The messages of a step; the last one ends it. */
function messagesOf(step: Step): Message[] {
  if (step.role === "user") return [{ role: "user", content: step.text }];
  const said: Message = { role: "assistant", content: step.text || null };
  if (step.thinking?.wire === "openai") Object.assign(said, thinkingFields(step.thinking.blocks));
  if (step.calls.length === 0) return [said];
  said.tool_calls = step.calls.map(({ id, name, arguments: given }) => ({
    id,
    type: "function",
    function: { name, arguments: given },
  }));
  return [
    said,
    ...step.calls.map(({ id, result }) => ({ role: "tool", tool_call_id: id, content: result.text })),
  ];
}

/** The fields that thinking came in. What Anthropic's models think is taken back signed or not at all. */
function thinkingFields(blocks: unknown[]): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const block of blocks) if (typeof block === "object" && block !== null) Object.assign(fields, block);
  if (Array.isArray(fields.reasoning_details) && fields.reasoning_details.some(isUnsigned)) return {};
  return fields;
}

function isUnsigned(detail: { type?: unknown; format?: unknown; signature?: unknown } | null): boolean {
  return detail?.type === "reasoning.text" && /^anthropic/.test(String(detail.format)) && !detail.signature;
}

/** OpenRouter hands cache marks on to Anthropic's models, which cache nothing without. */
function takesMarks({ provider, model }: Addressee): boolean {
  return provider === "openrouter" && model.startsWith("anthropic/");
}

/** Contents in parts, with marks at the end of the instructions, at the last message of the turn before, and at the newest. */
function inParts(messages: readonly Message[], marked: Message | undefined): Message[] {
  const marks = new Set([messages.find(({ role }) => role === "system"), marked, messages.at(-1)]);
  return messages.map((message) => {
    if (message.content === null) return message;
    const mark = marks.has(message) ? { cache_control: { type: "ephemeral" } } : {};
    return { ...message, content: [{ type: "text", text: message.content, ...mark }] };
  });
}
