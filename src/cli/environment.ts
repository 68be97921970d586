// The environment of the process, as a value. A runtime that was not allowed to show a variable, or to list them, hides it
// here instead of failing.

import { homedir, hostname } from "node:os";
import { join } from "node:path";
import { Failure } from "../errors.ts";

/** Variables by name; an empty one counts as unset. Its keys are those that may be seen. */
export const environment: Readonly<Record<string, string | undefined>> = new Proxy({}, {
  get: (_, name) => typeof name === "string" ? variable(name) : undefined,
  has: (_, name) => typeof name === "string" && variable(name) !== undefined,
  ownKeys: () => allowed(() => Object.keys(process.env)) ?? [],
  getOwnPropertyDescriptor: (_, name) => ({
    configurable: true,
    enumerable: true,
    value: variable(String(name)),
  }),
});

/** The folder that holds agents' homes: `--home`, else LNK_HOME, else ~/.lnk/agents. */
export function homeOf(given: string | undefined): string {
  if (given) return given;
  if (environment.LNK_HOME) return environment.LNK_HOME;
  const user = allowed(homedir);
  if (user) return join(user, ".lnk", "agents");
  throw new Failure("usage", {
    say: "There is no home folder here; say where agents are kept with --home or LNK_HOME.",
  });
}

/** This machine's name, where it may be known. */
export function hostName(): string {
  return allowed(hostname) ?? "unknown";
}

function variable(name: string): string | undefined {
  return allowed(() => process.env[name]) || undefined;
}

function allowed<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
