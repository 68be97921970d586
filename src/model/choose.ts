// Who answers: settings and an environment in, a model out. Whom there is to ask stands in providers.ts; how one is asked
// in retry.ts. Nothing here reads the process: the environment is an argument.

import { failedBy, Failure } from "../errors.ts";
import { addressUnder, type Fetch, getJson, onceFetch, originOf } from "../fetch.ts";
import { limits } from "../limits.ts";
import { demoModel, demoName } from "./demo.ts";
import type { Target } from "./exchange.ts";
import type { Model, ModelFacts } from "./model.ts";
import {
  type Keyed,
  keyed,
  mannerOf,
  type Runtime,
  runtimes,
  type Way,
  ways,
  wireNamed,
} from "./providers.ts";
import { retriedModel, type Trying } from "./retry.ts";

/** The part of an agent's settings that says who answers. An empty text counts as unset. */
export interface Wanted {
  name?: string;
  via?: string;
  url?: string;
}

export interface ModelWorld extends Omit<Trying, "fetch"> {
  environment: Readonly<Record<string, string | undefined>>;
  /** The platform's; guarded here. */
  fetch: Fetch;
}

/**
 * The model that answers under these settings. May ask the network who is there; see `modelChooser`.
 *
 * Fails with `no_model`, saying what was looked for.
 */
export async function chooseModel(wanted: Wanted, world: ModelWorld): Promise<Model> {
  return (await choose(wanted, world)).model;
}

/** Chooses, and keeps what was chosen for as long as it can be expected to stand, so that a turn asks no network for it. */
export function modelChooser(world: ModelWorld): (wanted: Wanted) => Promise<Model> {
  const kept = new Map<string, { chosen: Promise<Chosen>; until: number }>();
  return async ({ name, via, url }) => {
    const key = JSON.stringify([name, via, url]);
    const known = kept.get(key);
    if (known && known.until > world.clock.mono()) return (await known.chosen).model;
    const forget = () => {
      if (kept.get(key) === entry) kept.delete(key);
    };
    const chosen = choose({ name, via, url }, world).then((chosen) => {
      if (!chosen.found) return chosen;
      if (chosen.model.name === demoName) entry.until = world.clock.mono() + limits.modelProbeAgainMs;
      return { ...chosen, model: forgotten(chosen.model, forget) };
    });
    const entry = { chosen, until: Infinity };
    if (kept.size >= limits.modelsKept) kept.clear();
    kept.set(key, entry);
    chosen.catch(forget);
    return (await chosen).model;
  };
}

/** A model that was found by looking around is looked for again once it fails. */
function forgotten(model: Model, forget: () => void): Model {
  return {
    ...model,
    ask: (ask) =>
      model.ask(ask).catch((failure) => {
        if (failedBy(failure, "model_failed", "model_timeout")) forget();
        throw failure;
      }),
  };
}

interface Chosen {
  model: Model;
  /** By looking at what is there, and not by what is set. */
  found: boolean;
}

/** Somebody who might answer. */
interface Candidate {
  way: Way;
  wire: "openai" | "anthropic";
  base: string;
  key?: string;
  /** Where the key or the address came from, for people. */
  from: string;
  /** The maker's or runtime's name before the model's own, which is not sent. */
  prefix?: string;
}

async function choose(wanted: Wanted, world: ModelWorld): Promise<Chosen> {
  const name = wanted.name || undefined, via = wayOf(wanted.via), url = wanted.url || undefined;
  if (via === "demo" || (!via && !url && name === demoName)) {
    return { model: demoModel(world.clock), found: false };
  }
  const missing: string[] = [];
  const set = setCandidates(world.environment, { name, via, url }, missing);
  for (const candidate of set) {
    const sent = name ? withoutPrefix(name, candidate.prefix) : await firstListed(candidate, world, missing);
    if (sent) return { model: await modelOf(candidate, name, sent, world), found: false };
  }
  // What is set is used or told: nothing that was found stands in for it, and the demo for nothing that was asked for.
  if (set.length === 0) {
    const local = await localModel({ name, via, url }, world, missing);
    if (local) return { model: local, found: true };
    if (!name && !via && !url) return { model: demoModel(world.clock), found: true };
  }
  throw new Failure("no_model", { why: whyNone(name, missing), model: name });
}

function whyNone(name: string | undefined, missing: string[]): string {
  const looked = missing.length > 0 ? missing.join("; ") : "nothing that could be asked";
  return `${
    name ? `${name} was looked for` : "a model was looked for"
  }: ${looked}; see [model] name, via and url`;
}

function wayOf(via: string | undefined): Way | undefined {
  if (!via) return undefined;
  const way = ways.find((known) => known === via);
  if (!way) {
    throw new Failure("no_model", {
      why: `[model] via is ${JSON.stringify(via)}, which is none of ${ways.join(", ")}`,
    });
  }
  return way;
}

interface Where {
  name: string | undefined;
  via: Way | undefined;
  url: string | undefined;
}

/** Whoever is set by settings or environment and may serve the model, in order. What is not is said in `missing`. */
function setCandidates(environment: ModelWorld["environment"], where: Where, missing: string[]): Candidate[] {
  const { name, via, url } = where;
  const runtime = runtimes.find(({ way }) => way === via);
  if (runtime) {
    return url
      ? [{ way: runtime.way, wire: "openai", base: url, from: "[model] url", prefix: runtime.way }]
      : [];
  }
  const named = !via && !url && runtimes.some(({ way }) => name?.startsWith(`${way}/`));
  const candidates: Candidate[] = [];
  const proxy = !via || via === "proxy" ? proxyCandidate(environment, url, missing) : undefined;
  if (proxy) candidates.push(proxy);
  // An address that settings name is asked and nobody else, lest a typing mistake sends a conversation elsewhere.
  if ((url && !via) || via === "proxy" || named) return candidates;
  for (const provider of keyed) {
    if (via && via !== provider.way) continue;
    const candidate = keyedCandidate(provider, environment, where, missing);
    if (candidate) candidates.push(candidate);
  }
  return candidates;
}

function proxyCandidate(
  environment: ModelWorld["environment"],
  url: string | undefined,
  missing: string[],
): Candidate | undefined {
  const proxy = environment.LNK_MODEL_URL || undefined;
  const base = url ?? proxy;
  if (!base) {
    missing.push("LNK_MODEL_URL is not set");
    return undefined;
  }
  const wire = environment.LNK_MODEL_WIRE || "openai";
  if (wire !== "openai" && wire !== "anthropic") {
    throw new Failure("no_model", {
      why: `LNK_MODEL_WIRE is ${JSON.stringify(wire)}; it is openai or anthropic`,
    });
  }
  // The proxy's key is not for an address of another host.
  const own = !url || !proxy || originOf(url) === originOf(proxy);
  const key = own ? keyIn(environment, "LNK_MODEL_KEY") : undefined;
  return { way: "proxy", wire, base, ...(key ? { key } : {}), from: url ? "[model] url" : "LNK_MODEL_URL" };
}

function keyedCandidate(
  provider: Keyed,
  environment: ModelWorld["environment"],
  { name, via, url }: Where,
  missing: string[],
): Candidate | undefined {
  const { way, maker, keyFrom, baseFrom, wire } = provider;
  const bare = name !== undefined && !name.includes("/");
  const serves = maker === undefined
    ? name === undefined || via === way || !bare
    : name === undefined || name.startsWith(`${maker}/`) || (via === way && bare);
  if (!serves) {
    if (via) missing.push(`${way} serves only ${maker}/… models`);
    return undefined;
  }
  const key = keyIn(environment, keyFrom);
  if (!key) {
    missing.push(`${keyFrom} is not set`);
    return undefined;
  }
  const other = baseFrom && environment[baseFrom.name];
  const base = url ?? (other ? other.replace(/\/+$/, "") + baseFrom.under : provider.base);
  return { way, wire, base, key, from: keyFrom, ...(maker ? { prefix: maker } : {}) };
}

/** A key from the environment. Some error texts tell the header they refuse, so that an unusable key is refused here. */
function keyIn(environment: ModelWorld["environment"], name: string): string | undefined {
  const key = environment[name]?.trim();
  if (!key) return undefined;
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new Failure("no_model", { why: `${name} holds characters that no key has` });
  }
  return key;
}

function withoutPrefix(name: string, prefix: string | undefined): string {
  return prefix && name.startsWith(`${prefix}/`) ? name.slice(prefix.length + 1) : name;
}

async function targetOf(candidate: Candidate, sent: string): Promise<Target> {
  const { way, base, key } = candidate;
  const wire = await wireNamed(candidate.wire);
  const address = addressUnder(base, wire.path);
  if (!address) throw new Failure("no_model", { why: `${candidate.from} is no http or https address` });
  return {
    model: sent,
    provider: way,
    wire,
    url: address.url,
    headers: { ...address.headers, ...wire.headers(key) },
    secrets: key ? [key] : [],
  };
}

async function modelOf(
  candidate: Candidate,
  name: string | undefined,
  sent: string,
  world: ModelWorld,
): Promise<Model> {
  const target = await targetOf(candidate, sent);
  const facts = (): Promise<ModelFacts> => Promise.resolve({});
  return retriedModel({
    name: name ?? (candidate.prefix ? `${candidate.prefix}/${sent}` : sent),
    target,
    facts,
    manner: mannerOf(candidate.way),
    advice: `check ${candidate.from} and [model] name`,
  }, { ...world, fetch: onceFetch(world.fetch) });
}

/** The first model that a provider lists, of those that answer in words. */
async function firstListed(
  candidate: Candidate,
  world: ModelWorld,
  missing: string[],
  ms: number = limits.modelListMs,
): Promise<string | undefined> {
  const { headers } = await targetOf(candidate, "");
  const address = addressUnder(candidate.base, "/models")!;
  const listed = await getJson(world.fetch, address.url, { ms, headers });
  const rows = (listed.value as { data?: unknown } | undefined)?.data;
  const names = (Array.isArray(rows) ? rows : []).flatMap((row: { id?: unknown } | null) =>
    typeof row?.id === "string" && row.id ? [row.id] : []
  );
  if (names.length > 0) return names.find((name) => !noTalker.test(name)) ?? names[0];
  missing.push(
    `${candidate.from}: GET ${originOf(address.url)}/…/models gave no model (${
      listed.why ?? "an empty list"
    })`,
  );
  return undefined;
}

/** Names of models that do not answer in words. */
const noTalker =
  /embed|whisper|tts|dall-e|moderation|audio|realtime|image|transcri|rerank|babbage|davinci|sora|guard|bge-|minilm/i;

/** A model of a runtime on this machine: the named one's, or the first that has any. All are asked at once, shortly. */
async function localModel(where: Where, world: ModelWorld, missing: string[]): Promise<Model | undefined> {
  const { name, via, url } = where;
  if (url) return undefined;
  const asked = runtimes.filter(({ way }) => via ? way === via : !name || name.startsWith(`${way}/`));
  const found = await Promise.all(asked.map(async (runtime) => {
    const candidate = runtimeCandidate(runtime);
    const first = await firstListed(candidate, world, missing, limits.modelProbeMs);
    return first === undefined
      ? undefined
      : { candidate, sent: name ? withoutPrefix(name, candidate.prefix) : first };
  }));
  const first = found.find((one) => one !== undefined);
  return first ? await modelOf(first.candidate, name, first.sent, world) : undefined;
}

function runtimeCandidate({ way, base, called }: Runtime): Candidate {
  return { way, wire: "openai", base, from: called, prefix: way };
}
