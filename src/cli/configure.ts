// `configure`: shows an agent's settings, or changes them through its store.

import { effective, type Spec } from "../agent/settings.ts";
import { maskSpec, mergePatch } from "../agent/spec_change.ts";
import { parseSet, parseSpec } from "../agent/spec_toml.ts";
import { type Command, type Given, misused } from "./command.ts";
import { homeOf } from "./environment.ts";
import { readText } from "./input.ts";
import { openAgent } from "./open.ts";
import { homeOption } from "./options.ts";
import { print } from "./output.ts";

export const command: Command = {
  words: ["AGENT"],
  options: {
    ...homeOption,
    spec: { value: "FILE", say: "a TOML spec, which becomes the agent's whole spec; - for stdin" },
    set: {
      value: "KEY=VALUE",
      many: true,
      say: "changes one key, e.g. window.max=100000; may be given often",
    },
    unset: {
      value: "KEY",
      many: true,
      say: "takes one key away, so that its default stands; may be given often",
    },
    effective: { say: "show the defaults, too" },
    json: { say: "print JSON, for programs; the same as without, since settings are shown as JSON" },
  },
  say: `
Changes an agent's settings, making the agent where there is none, and prints what stands then, with secrets and
addresses masked. Without --spec, --set and --unset it changes nothing. A change counts from the next turn, also in
processes that serve the agent now.`,
  run,
};

async function run(given: Given): Promise<void> {
  const name = given.agent();
  const file = given.text("spec"), sets = given.texts("set"), unsets = given.texts("unset");
  const changes = file !== undefined || sets.length > 0 || unsets.length > 0;
  const patches = [...await Promise.all(sets.map(parseSet)), ...unsets.map(removal)];
  const spec = file === undefined ? undefined : await parseSpec(await readText(file));
  const agent = await openAgent({ name, where: { home: homeOf(given.text("home")) }, make: changes });
  try {
    const { config } = agent;
    let stands: Spec;
    if (spec) stands = await config.put(patches.reduce<unknown>(applyPatch, spec));
    else if (changes) stands = await config.patch(patches.reduce(mergeDeep, {}));
    else stands = await config.spec();
    print(JSON.stringify(maskSpec(given.flag("effective") ? effective(stands) as Spec : stands), null, 2));
  } finally {
    await agent.close();
  }
}

const applyPatch = (whole: unknown, patch: Patch) => mergePatch(whole, patch);

type Patch = Record<string, unknown>;

/** The merge patch that removes a dotted key. */
function removal(key: string): Patch {
  const parts = key.split(".");
  if (parts.includes("")) {
    throw misused(`--unset takes a key such as window.max, not ${JSON.stringify(key)}`, "configure");
  }
  return parts.reduceRight<unknown>((inner, part) => ({ [part]: inner }), null) as Patch;
}

/** Two merge patches as one: unlike applying the second to the first, what removes stays. */
function mergeDeep(first: Patch, second: Patch): Patch {
  const merged = new Map(Object.entries(first));
  for (const [key, value] of Object.entries(second)) {
    const before = merged.get(key);
    merged.set(key, isPatch(before) && isPatch(value) ? mergeDeep(before, value) : value);
  }
  return Object.fromEntries(merged);
}

function isPatch(value: unknown): value is Patch {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
