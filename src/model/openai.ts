// The OpenAI chat completions wire, as OpenAI, OpenRouter, Ollama, vLLM, llama.cpp, LM Studio and most proxies speak it:
// the request. The reply is openai_answer.ts.

import type { ToolSpec } from "../tool.ts";
import { type Step, stepsOf } from "./history.ts";
import type { Prompt } from "./model.ts";
import { namesOf } from "./names.ts";
import { openaiDecoder } from "./openai_answer.ts";
import { type Addressee, makerOf, type Manner, type Wire } from "./wire.ts";

export const openai: Wire = {
  name: "openai",
  path: "/chat/completions",
  headers: (key): Record<string, string> => key ? { authorization: `Bearer ${key}` } : {},
  encode,
  decoder: openaiDecoder,
};

/** The request: what changes least first, so that its start stays the same from turn to turn; what is said of this one
 * request alone stands after the messages. */
function encode(prompt: Prompt, to: Addressee, manner: Manner): string {
  const names = namesOf(prompt.tools);
  const system = prompt.instructions.filter((text) => text.trim() !== "").join("\n\n").toWellFormed();
  const steps = stepsOf(prompt, names, manner.thinking ? makerOf(to) : undefined);
  return JSON.stringify({
    model: to.model,
    [manner.answerField]: prompt.answerMax,
    stream: true,
    stream_options: { include_usage: true },
    ...(prompt.tools.length > 0
      ? { tools: prompt.tools.map((tool) => toolForm(tool, names.sent(tool.name))) }
      : {}),
    messages: [
      ...(system ? [{ role: "system", content: system }] : []),
      ...merged(steps).flatMap(messagesOf),
    ],
    ...(prompt.choice === "none" && prompt.tools.length > 0 ? { tool_choice: "none" } : {}),
  });
}

function toolForm(tool: ToolSpec, name: string) {
  return {
    type: "function",
    function: { name, description: tool.description.toWellFormed(), parameters: tool.schema },
  };
}

/** Steps of one role in a row as one, since the templates of many local models want the roles to take turns. */
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

function messagesOf(step: Step): Record<string, unknown>[] {
  if (step.role === "user") return [{ role: "user", content: step.text }];
  const calls = step.calls.map((call) => ({
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: call.arguments },
  }));
  return [
    {
      role: "assistant",
      content: step.text || null,
      ...(step.thinking?.wire === "openai" ? thinkingFields(step.thinking.blocks) : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    },
    ...step.calls.map((call) => ({ role: "tool", tool_call_id: call.id, content: call.result.text })),
  ];
}

/** The fields that thinking came in. */
function thinkingFields(blocks: unknown[]): Record<string, unknown> {
  return Object.assign({}, ...blocks.filter((block) => typeof block === "object" && block !== null));
}
