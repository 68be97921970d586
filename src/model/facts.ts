// What is known of a model, field by field: what the user says of it, then what a runtime on this machine says it runs it
// with, then the file of today's common models that is shipped. What a window is used for is the prompt folder's.

import * as v from "valibot";
import { limits } from "../limits.ts";
import type { Notify } from "../notices.ts";
import type { FactName, ModelFacts } from "./model.ts";

/** One source of facts: what it is called, for people, and what it says. */
export interface FactSource {
  from: string;
  facts: Omit<ModelFacts, "from" | "sources">;
}

const factNames = [
  "window",
  "answerMax",
  "trained",
  "images",
  "tools",
  "thinking",
  "finish",
] as const satisfies FactName[];

/** The facts of these sources, an earlier one's before a later one's in every field, each with where it came from. */
export function mergeFacts(...sources: readonly (FactSource | undefined)[]): ModelFacts {
  const merged: Record<string, number | boolean> = {};
  const from: Partial<Record<FactName, string>> = {};
  for (const source of sources) {
    for (const name of factNames) {
      const value = source?.facts[name];
      if (value === undefined || from[name] !== undefined) continue;
      merged[name] = value;
      from[name] = source!.from;
    }
  }
  return { ...merged, ...(from.window ? { from: from.window } : {}), sources: from };
}

/** The shipped facts of a model; undefined where it is not among them. */
export async function shippedFacts(name: string): Promise<FactSource | undefined> {
  const { shipped, shippedOn } = await import("./facts_shipped.ts");
  const at = shipped.indexOf(`\n${name} `);
  const start = at >= 0 ? at + 1 : shipped.startsWith(`${name} `) ? 0 : -1;
  if (start < 0 || name.includes(" ")) return undefined;
  const [, window, answer, abilities] = shipped.slice(start, shipped.indexOf("\n", start)).split(" ");
  const can = (letter: string) => abilities!.includes(letter);
  return {
    from: `the facts shipped on ${shippedOn}`,
    facts: {
      window: Number(window),
      ...(answer === "-" ? {} : { answerMax: Number(answer) }),
      images: can("i"),
      tools: can("t"),
      thinking: can("r"),
    },
  };
}

const size = v.pipe(v.number(), v.safeInteger(), v.minValue(1));

/** A table of the user's file: `["anthropic/claude-opus-5-5"]` and these keys, each of which may be left out. */
const userSchema = v.record(
  v.string(),
  v.strictObject({
    window: v.optional(size),
    answer: v.optional(size),
    images: v.optional(v.boolean()),
    tools: v.optional(v.boolean()),
    thinking: v.optional(v.boolean()),
    finish: v.optional(v.boolean()),
  }),
);

type UserFacts = v.InferOutput<typeof userSchema>;

/** Reads the user's facts of a model from their file, as it stands at each call. */
export type UserFactsReader = (name: string) => Promise<FactSource | undefined>;

/** A reader of the user's facts at `path`; of no facts without one. A file that cannot be read is told, and says nothing. */
export function userFactsReader(path: string | undefined, notify: Notify): UserFactsReader {
  if (path === undefined) return () => Promise.resolve(undefined);
  let last: { stamp: string; facts: UserFacts } | undefined;
  return async (name) => {
    const { readFile, stat } = await import("node:fs/promises");
    try {
      const { mtimeMs, size, ino } = await stat(path);
      const stamp = `${mtimeMs} ${size} ${ino}`;
      if (last?.stamp !== stamp) {
        if (size > limits.factsFileBytesMax) throw new Error(`it is over ${limits.factsFileBytesMax} bytes`);
        last = { stamp, facts: {} };
        last = { stamp, facts: await parseUserFacts(await readFile(path, "utf8")) };
      }
    } catch (error) {
      if ((error as { code?: unknown }).code === "ENOENT") last = undefined;
      else {notify(
          "warn",
          `The file of model facts says nothing (${(error as Error).message}); mend ${path}.`,
        );}
    }
    const facts = last && Object.hasOwn(last.facts, name) ? last.facts[name] : undefined;
    if (!facts) return undefined;
    const { answer, ...same } = facts;
    return { from: path, facts: { ...same, ...(answer === undefined ? {} : { answerMax: answer }) } };
  };
}

async function parseUserFacts(text: string): Promise<UserFacts> {
  const { parse } = await import("smol-toml");
  const checked = v.safeParse(userSchema, parse(text));
  if (checked.success) return checked.output;
  const [issue] = checked.issues;
  throw new Error(`${v.getDotPath(issue) ?? "the file"}: ${issue.message}`);
}
