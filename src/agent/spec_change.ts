// A spec changed and shown: the JSON merge patch (RFC 7396), and secrets and addresses masked and unmasked. Pure.

import { Failure, type Issue } from "../errors.ts";
import { masked, type Spec } from "./settings.ts";

type Table = Record<string, unknown>;

/** `target` after the merge patch. Neither is changed. */
export function mergePatch(target: unknown, patch: unknown, depth = 0): unknown {
  if (!isTable(patch)) return patch;
  if (depth > depthMax) {
    throw new Failure("invalid", { issues: [{ path: "", message: "nested too deeply" }] });
  }
  // A map, so that a key such as `__proto__` stays a key, which the schema then refuses.
  const merged = new Map(isTable(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, mergePatch(merged.get(key), value, depth + 1));
  }
  return Object.fromEntries(merged);
}

/** The spec with every secret and address masked. */
export function maskSpec<Shown extends Spec>(spec: Shown): Shown {
  return mapTexts(spec, [], (text, path) => text !== "" && isHidden(path) ? masked : text) as Shown;
}

/** `value` with every masked text put back from what is kept. Throws `settings_invalid` where nothing is kept there. */
export function unmaskSpec(value: unknown, kept: Spec): unknown {
  const issues: Issue[] = [];
  const whole = mapTexts(value, [], (text, path) => {
    if (text !== masked || !isHidden(path)) return text;
    const before = path.reduce<unknown>(
      (at, key) => isTable(at) && Object.hasOwn(at, key) ? at[key] : undefined,
      kept,
    );
    if (typeof before === "string") return before;
    issues.push({ path: path.join("."), message: "masked, and nothing is kept here; send the value itself" });
    return text;
  });
  if (issues.length > 0) throw new Failure("settings_invalid", { issues });
  return whole;
}

const depthMax = 16;

/** Keys of a driver's table whose texts are secrets or addresses. */
const hiddenKey = /key|secret|token|password|credential|endpoint|url|address|host|dsn/i;

function isHidden(path: readonly string[]): boolean {
  const [table, key] = path;
  if (table === "tools") return true;
  if (table === "model") return key === "url";
  return table === "storage" && path.length > 2 && path.slice(2).some((part) => hiddenKey.test(part));
}

function mapTexts(value: unknown, path: string[], map: (text: string, path: string[]) => string): unknown {
  if (typeof value === "string") return map(value, path);
  if (path.length > depthMax) return value;
  if (Array.isArray(value)) return value.map((item, index) => mapTexts(item, [...path, String(index)], map));
  if (!isTable(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, mapTexts(item, [...path, key], map)]),
  );
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
