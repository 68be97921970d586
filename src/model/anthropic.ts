// The Anthropic Messages wire: the request. The reply is anthropic_answer.ts.

import { anthropicDecoder } from "./anthropic_answer.ts";
import { callNothing, type SentCall, type Step, stepsOf } from "./history.ts";
import { parsedObject } from "../json.ts";
import type { Prompt } from "./model.ts";
import { namesOf } from "./names.ts";
import { sendable } from "./schema.ts";
import { type Addressee, makerOf, type Manner, type Wire } from "./wire.ts";

export const anthropic: Wire = {
  name: "anthropic",
  path: "/messages",
  headers: (key): Record<string, string> => ({
    "anthropic-version": "2023-06-01",
    ...(key ? { "x-api-key": key } : {}),
  }),
  rules: () => "strict",
  encode,
  decoder: anthropicDecoder,
};

/** A part of the request's content. `cache_control` is last in each, so that marks move and leave all other bytes alone. */
interface Block {
  type: string;
  cache_control?: { type: "ephemeral" };
  [field: string]: unknown;
}

interface Turn {
  role: "user" | "assistant";
  content: Block[];
}

/**
 * The request: tools, sections and messages in the order in which the provider's cache reads them.
 *
 * That no tool is to be called is said in words after the last mark: a `tool_choice` would void the cache of all messages.
 */
function encode(prompt: Prompt, to: Addressee, manner: Manner): string {
  const tools = sendable(prompt.tools, "strict");
  const names = namesOf(tools.map(({ tool }) => tool));
  const steps = stepsOf(prompt, {
    names,
    maker: manner.thinking ? makerOf(to) : undefined,
    tools: tools.length > 0,
  });
  const toolBlocks = tools.map(({ tool, schema }): Record<string, unknown> => ({
    name: names.sent(tool.name),
    description: tool.description.toWellFormed(),
    input_schema: schema,
  }));
  const system = prompt.instructions.flatMap((text): Block[] =>
    text.trim() === "" ? [] : [{ type: "text", text: text.toWellFormed() }]
  );
  const { turns, marked } = turnsOf(steps);
  // One mark a place and four places in all, whatever the places hold.
  for (const block of new Set([toolBlocks.at(-1), system.at(-1), marked, turns.at(-1)?.content.at(-1)])) {
    if (block) block.cache_control = { type: "ephemeral" };
  }
  if (prompt.choice === "none" && tools.length > 0) sayCallNothing(turns);
  return JSON.stringify({
    model: to.model,
    max_tokens: prompt.answerMax,
    stream: true,
    ...(toolBlocks.length > 0 ? { tools: toolBlocks } : {}),
    ...(system.length > 0 ? { system } : {}),
    messages: turns,
  });
}

function sayCallNothing(turns: Turn[]): void {
  const notice: Block = { type: "text", text: callNothing };
  const last = turns.at(-1);
  if (last?.role === "user") last.content.push(notice);
  else turns.push({ role: "user", content: [notice] });
}

/** Steps as turns of user and model by turns, the user first; and the block that ends the step to mark. */
function turnsOf(steps: readonly Step[]): { turns: Turn[]; marked?: Block } {
  const turns: Turn[] = [];
  let marked: Block | undefined;
  const add = (role: Turn["role"], blocks: Block[]) => {
    const last = turns.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else turns.push({ role, content: blocks });
  };
  for (const step of steps) {
    if (step.role === "user") add("user", [{ type: "text", text: step.text }]);
    else {
      if (turns.length === 0) add("user", [{ type: "text", text: "(what was said before is not shown)" }]);
      add("assistant", spoken(step));
      if (step.calls.length > 0) add("user", step.calls.map(resultBlock));
    }
    if (step.marked) marked = turns.at(-1)?.content.at(-1);
  }
  return { turns, ...(marked ? { marked } : {}) };
}

/** What the model said: its thinking in the places where it came, if it may be sent at all. */
function spoken(step: Extract<Step, { role: "model" }>): Block[] {
  const calls = step.calls.map(callBlock);
  const plain = [...(step.text ? [textBlock(step.text)] : []), ...calls];
  const thinking = step.thinking?.wire === "anthropic" ? step.thinking.blocks : [];
  const whole = thinking.every((block) => isPlace(block) || isWholeThinking(block));
  if (thinking.length === 0 || !whole) return plain;
  const placed: Block[] = [];
  let text = 0, call = 0;
  for (const block of thinking as Block[]) {
    if (!isPlace(block)) placed.push({ ...block });
    else if (block.type === "place_text") {
      placed.push(textBlock(step.text.slice(text, text += block.chars)));
    } else if (call < calls.length) placed.push(calls[call++]!);
  }
  if (text < step.text.length) placed.push(textBlock(step.text.slice(text)));
  placed.push(...calls.slice(call));
  return placed.filter((block) => block.type !== "text" || (block.text as string).trim() !== "");
}

const textBlock = (text: string): Block => ({ type: "text", text: text.toWellFormed() });

/** Where a text or a call stood among thinking; made by the decoder where thinking did not come first. */
function isPlace(block: unknown): block is Block & { chars: number } {
  const { type } = (block ?? {}) as { type?: unknown };
  return type === "place_text" || type === "place_call";
}

/** Thinking that was cut, or is signed by nobody, is refused for ever: it is never sent. */
function isWholeThinking(block: unknown): boolean {
  const { type, signature, data } = (block ?? {}) as Record<string, unknown>;
  const proof = type === "thinking" ? signature : type === "redacted_thinking" ? data : undefined;
  return typeof proof === "string" && proof !== "";
}

function callBlock(call: SentCall): Block {
  return { type: "tool_use", id: call.id, name: call.name, input: parsedObject(call.arguments) ?? {} };
}

function resultBlock({ id, result }: SentCall): Block {
  return {
    type: "tool_result",
    tool_use_id: id,
    content: result.text,
    ...(result.ok ? {} : { is_error: true }),
  };
}
