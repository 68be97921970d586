// Who answers: settings and an environment in, a model out. Whom there is to ask stands in providers.ts; how one is asked
// in retry.ts. Nothing here reads the process: the environment is an argument.

import { failedBy, Failure } from "../errors.ts";
import { addressUnder, type Fetch, getJson, onceFetch, originOf } from "../fetch.ts";
import { limits } from "../limits.ts";
import {
  type Candidate,
  type Environment,
  setCandidates,
  wayOf,
  type Where,
  withoutPrefix,
} from "./candidates.ts";
import { demoModel, demoName } from "./demo.ts";
import type { Target } from "./exchange.ts";
import { mergeFacts, shippedFacts, userFactsReader } from "./facts.ts";
import { runtimeFactsReader } from "./local.ts";
import type { Model, ModelFacts } from "./model.ts";
import { isLocal, mannerOf, type Runtime, runtimes, wireNamed } from "./providers.ts";
import { retriedModel, type Trying } from "./retry.ts";

/** The part of an agent's settings that says who answers. An empty text counts as unset. */
export interface Wanted {
  name?: string;
  via?: string;
  url?: string;
}

export interface ModelWorld extends Omit<Trying, "fetch"> {
  /** What providers.ts lists as `variables`, at least. */
  environment: Environment;
  /** The platform's; guarded here. */
  fetch: Fetch;
  /** The user's file of model facts, `~/.lnk/model-facts.toml`. */
  factsFile?: string;
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
  const { prefix, way, base, from } = candidate;
  const fetch = onceFetch(world.fetch);
  const known = prefix ? `${prefix}/${sent}` : name ?? sent;
  const user = userFactsReader(world.factsFile, world.notify);
  const runtime = isLocal(way)
    ? runtimeFactsReader({ way, base, called: from, fetch, clock: world.clock }, sent, { load: true })
    : undefined;
  return retriedModel({
    name: name ?? known,
    target,
    facts: async () => mergeFacts(await user(known), await runtime?.(), await shippedFacts(known)),
    manner: async () => ({ ...mannerOf(way), endless: (await user(known))?.facts.finish === false }),
    cutsSilently: runtime !== undefined,
    advice: `check ${from} and [model] name`,
  }, { ...world, fetch });
}

/** What is known of a model by its name, whether or not it can be asked now: for `model show`. Loads nothing. */
export async function factsOf(
  name: string,
  world: Pick<ModelWorld, "fetch" | "clock" | "notify" | "factsFile">,
): Promise<ModelFacts> {
  const found = runtimes.find(({ way }) => name.startsWith(`${way}/`));
  const runtime = found && runtimeFactsReader(
    { ...found, fetch: onceFetch(world.fetch), clock: world.clock },
    withoutPrefix(name, found.way),
    { load: false },
  );
  const user = userFactsReader(world.factsFile, world.notify);
  return mergeFacts(await user(name), await runtime?.(), await shippedFacts(name));
}

/**
 * The model that stands in: `[model] fallback`, reached as the first one is where that serves it, else by whatever does.
 * Undefined where none is set, or it is the first one itself.
 */
export async function chooseFallback(
  choose: (wanted: Wanted) => Promise<Model>,
  { name, fallback, via, url }: Wanted & { fallback?: string },
): Promise<Model | undefined> {
  if (!fallback || fallback === name) return undefined;
  if (!via && !url) return await choose({ name: fallback });
  try {
    return await choose({ name: fallback, via, url });
  } catch (failure) {
    if (!failedBy(failure, "no_model")) throw failure;
    return await choose({ name: fallback });
  }
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
