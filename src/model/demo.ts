// `demo/echo`: a model of a few rules that needs no key and no network, so that a first message has an answer. It streams,
// calls a tool where the message names one, and says in each answer what it is.

import type { Clock } from "../clock.ts";
import { parsedObject } from "../json.ts";
import { type Answer, type Ask, ended, type Model, type Prompt, type PromptMessage } from "./model.ts";

export const demoName = "demo/echo";

const sign = "— demo/echo, a built-in set of rules and no real model; set a key or [model] name for one.";

export function demoModel(clock: Clock): Model {
  return {
    name: demoName,
    provider: "demo",
    facts: () => Promise.resolve({ window: 32_768, answerMax: 4096, from: "demo/echo itself" }),
    ask: (ask) => answer(clock, ask),
  };
}

async function answer(clock: Clock, { prompt, signal, onPiece }: Ask): Promise<Answer> {
  const from = clock.mono();
  const said = sayTo(prompt);
  let text = "";
  for (const word of said.text.match(/\S+\s*|\s+/g) ?? []) {
    if (signal.aborted) break;
    text += word;
    onPiece({ type: "text", text: word });
    // Lets a reader see it come, and an abort arrive.
    await clock.sleep(0, signal);
  }
  if (signal.aborted && signal.reason !== ended) throw signal.reason;
  const whole = !signal.aborted;
  return {
    text,
    calls: whole ? said.calls : [],
    model: demoName,
    provider: "demo",
    stop: whole ? (said.calls.length > 0 ? "calls" : "end") : "asked",
    tokens: { input: tokensOf(prompt), output: Math.ceil(text.length / 4) },
    ms: Math.max(0, Math.round(clock.mono() - from)),
  };
}

/** What the rules say to a prompt. */
function sayTo(prompt: Prompt): Pick<Answer, "text" | "calls"> {
  const last = prompt.messages.at(-1);
  if (last?.role === "result") {
    const results = newestResults(prompt.messages);
    return {
      text: `${results.map((result) => `${result.tool} gave:\n${result.text}`).join("\n\n")}\n\n${sign}`,
      calls: [],
    };
  }
  const asked = last?.role === "user" ? last.text : "";
  const calls = prompt.choice === "auto" ? callsIn(asked, prompt) : [];
  if (calls.length > 0) return { text: "", calls };
  const offered = prompt.tools.length > 0
    ? ` Write \`use ${prompt.tools[0]!.name} {}\` and I call that tool; ${prompt.tools.length} are offered.`
    : "";
  return { text: `You said: ${spoken(asked)}\n\n${sign}${offered}`, calls: [] };
}

/** Lines `use <tool__call> {json}` that name a tool that is offered; without JSON, with nothing. */
function callsIn(text: string, prompt: Prompt): Answer["calls"] {
  const offered = new Set(prompt.tools.map((tool) => tool.name));
  return [...text.matchAll(/^\s*use\s+(\S+)[ \t]*(\{.*\})?[ \t]*$/gm)].flatMap(([, tool, args]) =>
    offered.has(tool!) && (args === undefined || parsedObject(args))
      ? [{ tool: tool!, arguments: args ?? "{}" }]
      : []
  );
}

/** A message without the head line that the harness set before it. */
function spoken(text: string): string {
  return text.replace(/^\[[^\n]*\]\n/, "");
}

function newestResults(messages: readonly PromptMessage[]) {
  const results: Extract<PromptMessage, { role: "result" }>[] = [];
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at]!;
    if (message.role !== "result") break;
    results.unshift(message);
  }
  return results;
}

function tokensOf(prompt: Prompt): number {
  const chars = prompt.instructions.join("").length +
    prompt.messages.reduce((sum, { text }) => sum + text.length, 0);
  return Math.ceil(chars / 4);
}
