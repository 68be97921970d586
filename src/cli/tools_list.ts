// `tools list`: an agent's tools, how each of their servers stands, what their calls weigh in a prompt, and what was left out.

import { namesOf } from "../model/names.ts";
import { notSent, schemaRules } from "../model/schema.ts";
import { roughTokens, toolsTokens } from "../prompt/tokens.ts";
import type { ToolState } from "../tools/toolbox.ts";
import type { Command, Given } from "./command.ts";
import { homeOf } from "./environment.ts";
import { openAgent } from "./open.ts";
import { homeOption, jsonOption } from "./options.ts";
import { print } from "./output.ts";

export const command: Command = {
  words: ["AGENT"],
  options: {
    ...homeOption,
    ...jsonOption,
    refresh: { say: "ask every server now, instead of showing what it last listed" },
  },
  say: `
Lists an agent's tools: for each server its state (up; kept, as it was listed before and not asked now; down; absent), its
calls as the model sees them with what each weighs in tokens, and what was left out and why. A server of which nothing is
kept is asked. Addresses are secrets and are not shown: each is told by the start of its SHA-256. With --json a line for
each server.`,
  run,
};

/** One server, as it is printed. */
interface Row {
  tool: string;
  state: ToolState["state"];
  why?: string;
  source: ToolState["source"];
  address: string;
  calls: { name: string; tokens: number }[];
  /** Of all its calls, and of what it says of itself. */
  tokens: number;
  instructions: number;
  left_out: ToolState["leftOut"];
}

async function run(given: Given): Promise<void> {
  const agent = await openAgent({
    name: given.agent(),
    where: { home: homeOf(given.text("home")) },
    make: false,
  });
  try {
    const settings = await agent.settings();
    const states = await agent.tools.states(settings.tools, { refresh: given.flag("refresh") });
    const rows = rowsOf(states, settings.model.name ?? "");
    if (given.flag("json")) rows.forEach((row) => print(JSON.stringify(row)));
    else if (rows.length === 0) print("No tools: docs/tools.md says how to name some.");
    else rows.forEach(tellRow);
  } finally {
    await agent.close();
  }
}

/** What is printed of these servers, for an agent that `model` answers for. */
export function rowsOf(states: readonly ToolState[], model: string): Row[] {
  const names = namesOf(states.flatMap(({ tools }) => tools));
  return states.map(({ tool, state, why, source, address, tools, instructions, leftOut }) => ({
    tool,
    state,
    ...(why === undefined ? {} : { why }),
    source,
    address,
    calls: tools.map((spec) => ({ name: names.sent(spec.name), tokens: toolsTokens([spec]) })),
    tokens: toolsTokens(tools),
    instructions: roughTokens(instructions ?? ""),
    left_out: [
      ...leftOut,
      ...notSent(tools, schemaRules({ model })).map(({ tool, what }) => ({ name: tool, why: what })),
    ],
  }));
}

function tellRow({ tool, state, why, source, address, calls, tokens, instructions, left_out }: Row): void {
  const weight = `${calls.length} calls, ${tokens} tokens${
    instructions > 0 ? ` and ${instructions} of instructions` : ""
  }`;
  print(
    `${tool}: ${state}${why === undefined ? "" : ` (${why})`}; ${weight}; from the ${place[source]}, ${
      address.slice(0, 12)
    }…`,
  );
  for (const { name, tokens } of calls) print(`  ${name.padEnd(48)}  ${String(tokens).padStart(6)}`);
  for (const { name, why } of left_out) print(`  left out${name === "" ? "" : ` of ${name}`}: ${why}`);
}

const place: Record<ToolState["source"], string> = {
  environment: "environment",
  agent: "agents file",
  settings: "settings",
};
