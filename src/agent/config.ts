// Where an agent's spec is kept and changed: config.json in the agent's own folder, read at each turn; or memory alone, for
// a unit bound elsewhere.

import { createHash } from "node:crypto";
import { asFailure, failedBy, Failure, type Issue } from "../errors.ts";
import { limits } from "../limits.ts";
import type { FileStore } from "../store/seams.ts";
import { checkSpec, effective, type Settings, type Spec } from "./settings.ts";
import { mergePatch, unmaskSpec } from "./spec_change.ts";

/** An agent's spec, read and changed. A masked value sent back changes nothing. */
export interface Config {
  /** As it stands now; empty where nothing was ever configured. Throws `settings_broken`. */
  spec(): Promise<Spec>;
  /** What stands under it, defaults included. Throws `settings_broken`. */
  settings(): Promise<Settings>;
  /** Puts this in its place, even of a broken one. Throws `settings_invalid`; then nothing is changed. */
  put(spec: unknown): Promise<Spec>;
  /** Changes it by a JSON merge patch. Throws `settings_invalid` or `settings_broken`; then nothing is changed. */
  patch(patch: unknown): Promise<Spec>;
}

/** The spec kept as config.json. It is read each time, and parsed again only where its bytes have changed. */
export function configIn(own: FileStore): Config {
  let last: { text: string; spec: Spec; settings: Settings } | undefined;

  async function read(): Promise<{ bytes?: Uint8Array; spec: Spec; settings: Settings }> {
    const bytes = await own.read(file);
    if (!bytes) return { spec: {}, settings: effective({}) };
    const text = new TextDecoder().decode(bytes);
    if (text !== last?.text) {
      const spec = parseConfig(text);
      last = { text, spec, settings: effective(spec) };
    }
    return { bytes, ...last };
  }

  /** Writes what `make` gives of the kept spec, again where somebody wrote in between. */
  async function change(make: (kept: Spec) => unknown, overBroken: boolean): Promise<Spec> {
    for (let tries = 1;; tries++) {
      const kept = await read().catch(async (error) => {
        if (!overBroken || !failedBy(error, "settings_broken")) throw error;
        return { bytes: await own.read(file), spec: {} };
      });
      const spec = checkSpec(unmaskSpec(make(kept.spec), kept.spec));
      const bytes = new TextEncoder().encode(`${JSON.stringify(spec, null, 2)}\n`);
      try {
        await own.write(file, bytes, { expect: kept.bytes ? sha256(kept.bytes) : null, mode: 0o600 });
        return spec;
      } catch (error) {
        if (!failedBy(error, "exists") || tries >= limits.configTriesMax) throw error;
      }
    }
  }

  return {
    spec: async () => (await read()).spec,
    settings: async () => (await read()).settings,
    put: (spec) => change(() => spec, true),
    patch: (patch) => change((kept) => mergePatch(kept, patch), false),
  };
}

/** A spec that stands in memory only. */
export function configInMemory(first: Spec): Config {
  let spec = first;
  const change = (next: unknown) => spec = checkSpec(unmaskSpec(next, spec));
  return {
    spec: async () => spec,
    settings: async () => effective(spec),
    put: async (next) => change(next),
    patch: async (patch) => change(mergePatch(spec, patch)),
  };
}

const file = "config.json";

function parseConfig(text: string): Spec {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Failure("settings_broken", { file, why: `${file} is not JSON` }, { cause: error });
  }
  try {
    return checkSpec(value);
  } catch (error) {
    const issues = (asFailure(error).facts.issues ?? []) as Issue[];
    const why = issues.map(({ path, message }) => `${path || "the whole"}: ${message}`).join("; ");
    throw new Failure("settings_broken", { file, why: `${file}: ${why}`, issues }, { cause: error });
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
