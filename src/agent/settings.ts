// An agent's settings: what its spec may say (one schema), what stands where it says nothing, and what is wrong with one.
// How a spec is changed and masked is spec_change.ts; where it is kept, config.ts; how its TOML is read, spec_toml.ts.

import * as v from "valibot";
import { duration } from "../clock.ts";
import { Failure, type Issue } from "../errors.ts";
import { isUnknownKey, strict } from "../form.ts";
import { nearestKey } from "./nearest_key.ts";

/** An agent's settings as a turn reads them: the spec over the defaults. Durations are texts such as `30m`, see `durationMs`. */
export interface Settings {
  /** Empty names are left out: `name`, `fallback`, `via` and `url` are undefined or say something. */
  model: { name?: string; fallback?: string; answer?: number; via?: string; url?: string; deadline: string };
  window: {
    max: number;
    unknown: number;
    compact_at: number | "never";
    margin: number;
    answer: number;
    save_notes: boolean;
  };
  storage: {
    conversations: string;
    sync: boolean;
    lease: string;
    [driver: string]: string | boolean | DriverTable;
  };
  instructions: Partial<Record<SectionName, SectionSpec>>;
  /** Addresses of MCP servers by tool, beside the environment's. */
  tools: Record<string, string>;
}

/** What `[storage.NAME]` says to the driver of that name: the driver checks it. */
export type DriverTable = Record<string, unknown>;

/** A section's source (a path below the files folder, a link, `none`, or `""` for its own) and its largest size in bytes. */
export type SectionSpec = string | { source?: string; max?: number };

/** The sections that `[instructions]` may replace, in the order of the prompt. */
export const sectionNames = [
  "base",
  "model",
  "tools",
  "environment",
  "repository",
  "skills",
  "persona",
  "owner",
  "instruction",
  "notes",
] as const;
export type SectionName = typeof sectionNames[number];

/** What stands where the spec says nothing. */
export const defaultSettings: Settings = {
  model: { deadline: "30m" },
  window: { max: 0, unknown: 32_768, compact_at: 0.75, margin: 0.05, answer: 0.25, save_notes: true },
  storage: { conversations: "log", sync: true, lease: "60s" },
  instructions: {},
  tools: {},
};

const durationMsMax = 2 ** 31 - 1; // what a timer takes

const durationText = v.pipe(
  v.union([v.string(), v.number()], "no duration; write a text such as `30m` or `90s`"),
  v.transform((given) => typeof given === "number" ? `${given}s` : given.trim()),
  v.check((text) => {
    const ms = duration(text);
    return ms !== undefined && ms > 0 && ms <= durationMsMax;
  }, "no duration; write a text such as `30m` or `90s`"),
);
const whole = (least: number) => v.pipe(v.number(), v.safeInteger(), v.minValue(least));
const share = v.pipe(v.number(), v.minValue(0), v.maxValue(1));
// Addresses carry secrets: what is wrong with one is told without it.
const address = v.pipe(
  v.string("no address; write a text such as `http://127.0.0.1:8000/mcp`"),
  v.check(
    (text) => text === masked || isWebAddress(text),
    "no address; write a text such as `http://127.0.0.1:8000/mcp`",
  ),
);
const driverName = v.regex(/^[a-z0-9][a-z0-9_-]*$/, "no name of a way or a driver; use a-z, 0-9, _ and -");

const source = v.pipe(
  v.string(),
  v.check(
    (text) => isWebAddress(text) || !/^([/\\]|[A-Za-z]:)|\\|\0|(^|\/)\.\.(\/|$)/.test(text),
    'no source; name a file below the files folder, a link (https://…), "none", or "" for its own',
  ),
);
const section = v.union([
  source,
  strict({ source: v.optional(source), max: v.optional(whole(1)) }),
]);

const known = {
  model: strict({
    name: v.optional(v.string()),
    fallback: v.optional(v.string()),
    answer: v.optional(whole(1)),
    via: v.optional(v.string()),
    url: v.optional(v.union([v.literal(""), address])),
    deadline: v.optional(durationText),
  }),
  window: strict({
    max: v.optional(whole(0)),
    unknown: v.optional(whole(1)),
    compact_at: v.optional(v.union([v.literal("never"), share], 'neither a share such as 0.75 nor "never"')),
    margin: v.optional(share),
    answer: v.optional(share),
    save_notes: v.optional(v.boolean()),
  }),
  storage: v.objectWithRest({
    conversations: v.optional(v.pipe(v.string(), driverName)),
    sync: v.optional(v.boolean()),
    lease: v.optional(durationText),
  }, v.record(v.string(), v.unknown())),
  instructions: strict(
    Object.fromEntries(sectionNames.map((name) => [name, v.optional(section)])) as Record<
      SectionName,
      v.OptionalSchema<typeof section, undefined>
    >,
  ),
  tools: v.record(
    v.pipe(
      v.string(),
      v.regex(/^[A-Za-z0-9](?:_?[A-Za-z0-9-])*_?$/, "no tool's name; use letters, digits, - and single _"),
    ),
    address,
  ),
};

/** What an agent's spec may say; every part may be left out. */
export const specSchema = strict({
  model: v.optional(known.model),
  window: v.optional(known.window),
  storage: v.optional(known.storage),
  instructions: v.optional(known.instructions),
  tools: v.optional(known.tools),
});
export type Spec = v.InferOutput<typeof specSchema>;

/** How a secret or an address is shown. Sent back, it changes nothing. */
export const masked = "********";

/** The spec, checked. Throws `settings_invalid` with every issue at once; an unknown key's names the nearest known one. */
export function checkSpec(value: unknown): Spec {
  const checked = v.safeParse(specSchema, value);
  if (checked.success) return checked.output;
  throw new Failure("settings_invalid", { issues: checked.issues.map(issueOf) });
}

/** The settings that stand under a spec. */
export function effective(spec: Spec): Settings {
  const settings: Settings = {
    model: { ...defaultSettings.model, ...spec.model },
    window: { ...defaultSettings.window, ...spec.window },
    storage: { ...defaultSettings.storage, ...spec.storage } as Settings["storage"],
    instructions: { ...spec.instructions },
    tools: { ...spec.tools },
  };
  for (const key of ["name", "fallback", "via", "url"] as const) {
    if (settings.model[key] === "") delete settings.model[key];
  }
  return settings;
}

/** Milliseconds of a duration that the schema has let through. */
export function durationMs(text: string): number {
  return duration(text) ?? 0;
}

function isWebAddress(text: string): boolean {
  return /^https?:\/\//i.test(text) && URL.canParse(text);
}

/** The settings' keys that have a name of their own, as `table.key`. */
const knownKeys: string[] = Object.entries(known).flatMap(([table, schema]) => [
  table,
  ...("entries" in schema ? Object.keys(schema.entries).map((key) => `${table}.${key}`) : []),
]);

function issueOf(issue: v.BaseIssue<unknown>): Issue {
  const path = v.getDotPath(issue) ?? "";
  // A key that `[storage]` does not know can only be a driver's table.
  const noTable = /^storage\.[^.]+$/.test(path) && !knownKeys.includes(path);
  if (isUnknownKey(issue) || noTable) {
    return { path, message: `unknown key; the nearest known one is \`${nearestKey(path, knownKeys)}\`` };
  }
  return { path, message: issue.message };
}
