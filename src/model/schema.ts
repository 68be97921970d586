// Tools' schemas as providers take them. One schema that is refused takes the whole request with it, for a "hi": each is
// mended on its own, the same way each time, and one that cannot be mended leaves its tool out, which is told.

import { limits } from "../limits.ts";
import type { ToolSpec } from "../tool.ts";
import { type Fields, isObject } from "../json.ts";

type Schema = Fields;

/** `strict` also holds names of properties to what Anthropic's models take. */
export type SchemaRules = "strict" | "plain";

/** Anthropic's models are as strict behind another's address. */
export function schemaRules({ model }: { model: string }): SchemaRules {
  return /anthropic|claude/i.test(model) ? "strict" : "plain";
}

/** A tool that can be sent, with its mended schema, which is one object for as long as the tool is. */
export interface Sendable {
  tool: ToolSpec;
  schema: Schema;
}

/** The tools that can be sent. Of two with one name, the first. */
export function sendable(tools: readonly ToolSpec[], rules: SchemaRules): Sendable[] {
  const names = new Set<string>();
  return tools.flatMap((tool) => {
    const { schema } = mendedOf(tool, rules);
    if (!schema || names.has(tool.name)) return [];
    names.add(tool.name);
    return [{ tool, schema }];
  });
}

/** What of these tools is not sent, in words: the whole tool, or a property. */
export function notSent(tools: readonly ToolSpec[], rules: SchemaRules): { tool: string; what: string }[] {
  return tools.flatMap((tool) => mendedOf(tool, rules).lost.map((what) => ({ tool: tool.name, what })));
}

interface Mended {
  /** Undefined where the tool is left out. */
  schema?: Schema;
  lost: string[];
}

/** By tool: a schema is mended once, however many requests it is sent in. */
const memo: Record<SchemaRules, WeakMap<ToolSpec, Mended>> = { strict: new WeakMap(), plain: new WeakMap() };

function mendedOf(tool: ToolSpec, rules: SchemaRules): Mended {
  let mended = memo[rules].get(tool);
  if (!mended) memo[rules].set(tool, mended = mend(tool.schema, rules));
  return mended;
}

/** A schema of a tool's arguments, mended. */
export function mend(schema: unknown, rules: SchemaRules): Mended {
  try {
    const walk: Walk = { root: schema, nodes: 0 };
    const root = asArguments(node(walk, schema, [], 0) ?? {});
    const lost: string[] = [];
    if (rules === "strict") {
      const named = plainNames(root);
      if (named.needed) {
        return {
          lost: [`the tool: its property ${JSON.stringify(named.needed)} has a name that is refused`],
        };
      }
      lost.push(...named.left.map((name) => `its property ${JSON.stringify(name)}`));
    }
    const text = JSON.stringify(root);
    if (text.length > limits.toolSchemaCharsMax) throw new Unmendable("too large");
    // Objects as a parser makes them are written much faster, and these are written in every request.
    return { schema: JSON.parse(text), lost };
  } catch (error) {
    if (error instanceof Unmendable) return { lost: [`the tool: its schema is ${error.message}`] };
    throw error;
  }
}

class Unmendable extends Error {}

interface Walk {
  root: unknown;
  nodes: number;
}

const schemaKeys = new Set([
  "additionalProperties",
  "contains",
  "not",
  "if",
  "then",
  "else",
  "propertyNames",
  "unevaluatedProperties",
  "unevaluatedItems",
]);
const mapKeys = new Set(["properties", "patternProperties", "dependentSchemas"]);
const listKeys = new Set(["anyOf", "oneOf", "allOf"]);
/** Said of the document, or resolved here. */
const leftKeys = new Set([
  "$schema",
  "$id",
  "$anchor",
  "$comment",
  "$defs",
  "definitions",
  "$dynamicAnchor",
  "$dynamicRef",
  "$recursiveAnchor",
  "$recursiveRef",
  "$vocabulary",
  "prefixItems",
  "additionalItems",
]);

/** One schema within another; undefined for one that nothing fits. `refs` are the references that led here. */
function node(walk: Walk, value: unknown, refs: readonly string[], depth: number): Schema | undefined {
  if (value === false) return undefined;
  if (!isObject(value)) return {};
  if (++walk.nodes > limits.toolSchemaNodesMax) {
    throw new Unmendable("too large once its references are inlined");
  }
  // What is nested deeper is still an argument, of any form.
  if (depth > limits.toolSchemaDepthMax) return {};
  if (typeof value.$ref === "string") return referred(walk, value, value.$ref, refs, depth);
  const out: Schema = {};
  if (Array.isArray(value.prefixItems)) value = { ...value, items: value.prefixItems };
  for (const [key, inner] of Object.entries(value as Schema)) {
    const mended = keyword(walk, key, inner, refs, depth);
    if (mended !== undefined) out[key.toWellFormed()] = mended;
  }
  return completed(out);
}

/** A reference, inlined with what stands beside it. One to elsewhere, or back into itself, is a value of any form. */
function referred(
  walk: Walk,
  value: Schema,
  ref: string,
  refs: readonly string[],
  depth: number,
): Schema | undefined {
  const { $ref: _, ...beside } = value;
  const target = refs.includes(ref) ? undefined : pointed(walk.root, ref);
  if (target === undefined) return node(walk, beside, refs, depth + 1);
  if (target === false) return undefined;
  return node(walk, { ...(isObject(target) ? target : {}), ...beside }, [...refs, ref], depth + 1);
}

function pointed(root: unknown, ref: string): unknown {
  if (ref === "#") return root;
  if (!ref.startsWith("#/")) return undefined;
  let at: unknown = root;
  for (const part of ref.slice(2).split("/")) {
    const key = decoded(part).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Schema)[key];
  }
  return at;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** One keyword's value, mended; undefined leaves the keyword out. */
function keyword(walk: Walk, key: string, inner: unknown, refs: readonly string[], depth: number): unknown {
  const deeper = (value: unknown) => node(walk, value, refs, depth + 1);
  if (leftKeys.has(key)) return undefined;
  if (schemaKeys.has(key)) return typeof inner === "boolean" ? inner : deeper(inner);
  if (mapKeys.has(key)) {
    if (!isObject(inner)) return undefined;
    const kept: [string, Schema][] = [];
    for (const [name, schema] of Object.entries(inner)) {
      const mended = deeper(schema);
      if (mended) kept.push([name.toWellFormed(), mended]);
    }
    return Object.fromEntries(kept);
  }
  if (listKeys.has(key)) return options(Array.isArray(inner) ? inner : [], deeper);
  switch (key) {
    case "items":
      // A tuple says what each place holds; providers take one schema for all.
      return Array.isArray(inner)
        ? anyOf(options(inner, deeper))
        : typeof inner === "boolean"
        ? {}
        : deeper(inner);
    case "type":
      return typeof inner === "string" ? inner : Array.isArray(inner) ? typesOf(inner) : undefined;
    case "enum": {
      const values = Array.isArray(inner) ? inner.filter((one) => one !== null) : [];
      return values.length > 0 ? wellFormed(values) : undefined;
    }
    case "required":
      return Array.isArray(inner) ? inner.filter((name) => typeof name === "string") : undefined;
    case "description":
    case "title":
      return typeof inner === "string" ? inner.toWellFormed() : undefined;
    default:
      return wellFormed(inner);
  }
}

function typesOf(types: unknown[]): unknown {
  const known = types.filter((type) => typeof type === "string");
  return known.length > 1 ? known : known[0];
}

function options(list: unknown[], deeper: (value: unknown) => Schema | undefined): Schema[] | undefined {
  const kept = list.map(deeper).filter((one) => one !== undefined);
  return kept.length > 0 ? kept : undefined;
}

function anyOf(list: Schema[] | undefined): Schema {
  return !list ? {} : list.length === 1 ? list[0]! : { anyOf: list };
}

/** Adds what some providers miss: a type that the other keywords imply, properties of an object, items of an array. */
function completed(out: Schema): Schema {
  if (out.type === undefined && isObject(out.properties)) out.type = "object";
  if (out.type === undefined && out.items !== undefined) out.type = "array";
  if (out.type === "object" && out.properties === undefined) out.properties = {};
  if (out.type === "array" && out.items === undefined) out.items = {};
  if (Array.isArray(out.required) && isObject(out.properties)) {
    const { properties } = out;
    out.required = out.required.filter((name: string) => Object.hasOwn(properties, name));
    if ((out.required as string[]).length === 0) delete out.required;
  }
  return out;
}

/** The form that arguments have: one object. Choices at its top, which providers refuse, become one object that allows any. */
function asArguments(root: Schema): Schema {
  const { anyOf, oneOf, allOf, ...rest } = root;
  const properties: Schema = { ...(isObject(rest.properties) ? rest.properties : {}) };
  const required = new Set(Array.isArray(rest.required) ? rest.required as string[] : []);
  for (const [list, every] of [[anyOf, false], [oneOf, false], [allOf, true]] as const) {
    const branches = (Array.isArray(list) ? list as Schema[] : []).map(asArguments);
    for (const branch of branches) {
      for (const [name, schema] of Object.entries(branch.properties as Schema)) {
        properties[name] = eitherOf(properties[name], schema);
      }
    }
    const sets = branches.map((branch) =>
      new Set(Array.isArray(branch.required) ? branch.required as string[] : [])
    );
    for (const name of new Set(sets.flatMap((set) => [...set]))) {
      if (every || sets.every((set) => set.has(name))) required.add(name);
    }
  }
  const { type: _, properties: __, required: ___, items: ____, enum: _____, ...others } = rest;
  return { type: "object", properties, ...(required.size > 0 ? { required: [...required] } : {}), ...others };
}

function eitherOf(one: unknown, other: unknown): unknown {
  if (one === undefined || JSON.stringify(one) === JSON.stringify(other)) return other;
  const known = isObject(one) && Object.keys(one).length === 1 && Array.isArray(one.anyOf)
    ? one.anyOf as Schema[]
    : [one];
  return known.some((schema) => JSON.stringify(schema) === JSON.stringify(other))
    ? one
    : { anyOf: [...known, other] };
}

/** Takes properties with names that are refused out, at any depth. `needed` is one of the arguments' own that is required. */
function plainNames(root: Schema): { left: string[]; needed?: string } {
  const left: string[] = [];
  let needed: string | undefined;
  const visit = (at: unknown): void => {
    if (Array.isArray(at)) return at.forEach(visit);
    if (!isObject(at)) return;
    if (isObject(at.properties)) {
      const { properties } = at;
      for (const name of Object.keys(properties)) {
        if (/^[A-Za-z0-9_.-]{1,64}$/.test(name)) continue;
        if (at === root && (at.required as string[] | undefined)?.includes(name)) needed ??= name;
        delete properties[name];
        left.push(name);
      }
      completed(at);
    }
    for (const [key, inner] of Object.entries(at)) {
      if (mapKeys.has(key) && isObject(inner)) Object.values(inner).forEach(visit);
      else if (schemaKeys.has(key) || listKeys.has(key) || key === "items") visit(inner);
    }
  };
  visit(root);
  return { left, ...(needed !== undefined ? { needed } : {}) };
}

function wellFormed(value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key.toWellFormed(), wellFormed(inner)]),
  );
}
