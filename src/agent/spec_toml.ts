// A spec as a person writes it: TOML, and `key=value` pairs over it.

import { Failure } from "../errors.ts";
import { checkSpec, type Spec } from "./settings.ts";
import { mergePatch } from "./spec_change.ts";

/** The spec that TOML text and `sets` (each `key=value`, the key dotted) say together, checked. Throws `settings_invalid`. */
export async function parseSpec(toml: string, sets: readonly string[] = []): Promise<Spec> {
  let spec: unknown = await parseToml(toml);
  for (const set of sets) spec = mergePatch(spec, await parseSet(set));
  return checkSpec(spec);
}

/** What one `key=value` says, as a table. The value is TOML where it is some, else text: `model.name=openai/gpt-5.1` needs no quotes. */
export async function parseSet(set: string): Promise<Record<string, unknown>> {
  const cut = set.indexOf("=");
  const keys = cut < 0 ? [] : set.slice(0, cut).split(".").map((key) => key.trim());
  if (keys.length === 0 || keys.includes("")) {
    throw new Failure("settings_invalid", {
      say: "--set takes key=value, such as window.max=100000.",
      issues: [{ path: "", message: "not of the form key=value" }],
    });
  }
  const text = set.slice(cut + 1).trim();
  const value = await parseToml(`value = ${text}`).then((table) => table.value, () => text);
  return keys.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Record<string, unknown>;
}

/** A table of TOML text; `settings_invalid` naming the line where it is none, and never quoting it: a spec may hold secrets. */
export async function parseToml(text: string): Promise<Record<string, unknown>> {
  const { parse, TomlError } = await import("smol-toml");
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const why = error.message.split("\n")[0]!.replace(/^Invalid TOML document: /, "");
    throw new Failure("settings_invalid", {
      say: `The spec is no TOML at line ${error.line}, column ${error.column}: ${why}.`,
      issues: [{ path: "", message: `line ${error.line}, column ${error.column}: ${why}` }],
    }, { cause: error });
  }
}
