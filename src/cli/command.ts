// What a command is: its words, its options, its help, and how the words of a command line become what it is given. The
// table of all commands is main.ts.

import { parseArgs } from "node:util";
import { duration } from "../clock.ts";
import { Failure } from "../errors.ts";
import { checkThread, isAgentName } from "../names.ts";

/** What the program is called by who types it. */
export const program = "lnk-link-harness";

export interface Option {
  /** What stands for the value in the help, e.g. `DIR`; a flag where left out. */
  value?: string;
  many?: boolean;
  /** One line of the help. */
  say: string;
}

/** One command. `words` are its arguments as the help shows them: `AGENT`, `[THREAD]`, `TEXT…` (the last may be many). */
export interface Command {
  words: string[];
  options: Record<string, Option>;
  /** What it does, in a few lines. */
  say: string;
  /** The exit code; 0 where it returns nothing. */
  run(given: Given): Promise<number | void>;
}

type Values = Record<string, string | boolean | (string | boolean)[] | undefined>;

/** What a command was given, checked against its words and options. */
export class Given {
  readonly words: string[];
  readonly #values: Values;

  constructor(words: string[], values: Values) {
    this.words = words;
    this.#values = values;
  }

  flag(name: string): boolean {
    return this.#values[name] === true;
  }

  text(name: string): string | undefined {
    const value = this.#values[name];
    return typeof value === "string" ? value : undefined;
  }

  texts(name: string): string[] {
    const value = this.#values[name];
    return Array.isArray(value) ? value.map(String) : [];
  }

  /** A whole number of at least `least`. */
  count(name: string, least = 0): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (!/^\d+$/.test(text) || Number(text) < least || !Number.isSafeInteger(Number(text))) {
      throw misused(`--${name} takes a whole number from ${least}, not ${JSON.stringify(text)}`);
    }
    return Number(text);
  }

  /** A duration in ms. */
  ms(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const ms = duration(text);
    if (ms === undefined || ms > 2 ** 31 - 1) {
      throw misused(`--${name} takes a duration such as 5s or 10m, not ${JSON.stringify(text)}`);
    }
    return ms;
  }

  /** The first word, an agent's name. */
  agent(): string {
    const [name = ""] = this.words;
    if (!isAgentName(name)) throw new Failure("agent_invalid", { agent: name });
    return name;
  }

  /** The second word, a thread; undefined where there is none. */
  optionalThread(): string | undefined {
    const thread = this.words[1];
    return thread === undefined ? undefined : checkThread(thread);
  }

  thread(): string {
    return checkThread(this.words[1] ?? "");
  }
}

/** A command line used wrongly: exit code 2. */
export function misused(what: string, path?: string): Failure {
  return new Failure("usage", { say: `${what}; see \`${program}${path ? ` ${path}` : ""} --help\`.` });
}

/** The command's words and options in `args`. Throws `usage`. */
export function parseGiven(path: string, command: Command, args: string[]): Given {
  const options = Object.fromEntries(
    Object.entries(command.options).map(([name, { value, many }]) => [
      name,
      { type: value === undefined ? "boolean" as const : "string" as const, multiple: many === true },
    ]),
  );
  let parsed;
  try {
    parsed = parseArgs({ args, options, allowPositionals: true, strict: true });
  } catch (error) {
    const [sentence] = (error as Error).message.split(/\. |\n/);
    throw misused(sentence!.replace(/\.$/, ""), path);
  }
  const { words } = command;
  const least = words.filter((word) => !word.startsWith("[")).length;
  const most = words.at(-1)?.includes("…") ? Infinity : words.length;
  if (parsed.positionals.length < least) {
    throw misused(`${words[parsed.positionals.length]} is missing`, path);
  }
  if (parsed.positionals.length > most) {
    throw misused(`${JSON.stringify(parsed.positionals[most])} is one word too many`, path);
  }
  return new Given(parsed.positionals, parsed.values);
}

/** The help of one command. */
export function helpOf(path: string, { words, options, say }: Command): string {
  const rows = Object.entries({ ...options, help: { say: "this text" } })
    .map(([name, { value, say }]: [string, Option]) =>
      [`--${name}${value ? ` ${value}` : ""}`, say] as const
    );
  const usage = [program, path, ...words, ...(rows.length > 1 ? ["[OPTIONS]"] : [])].filter(Boolean).join(
    " ",
  );
  return `Usage: ${usage}\n\n${say.trim()}\n\nOptions:\n${table(rows)}`;
}

/** Two columns, the left one as wide as it must be. */
export function table(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}\n`).join("");
}
