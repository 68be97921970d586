// Whom settings and an environment name to be asked: pure. Whether anyone answers there is choose.ts.

import { Failure } from "../errors.ts";
import { originOf } from "../fetch.ts";
import { type Keyed, keyed, runtimes, type Way, ways } from "./providers.ts";

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Somebody who might answer. */
export interface Candidate {
  way: Way;
  wire: "openai" | "anthropic";
  base: string;
  key?: string;
  /** Where the key or the address came from, for people. */
  from: string;
  /** The maker's or runtime's name before the model's own, which is not sent. */
  prefix?: string;
}

export function wayOf(via: string | undefined): Way | undefined {
  if (!via) return undefined;
  const way = ways.find((known) => known === via);
  if (!way) {
    throw new Failure("no_model", {
      why: `[model] via is ${JSON.stringify(via)}, which is none of ${ways.join(", ")}`,
    });
  }
  return way;
}

export interface Where {
  name: string | undefined;
  via: Way | undefined;
  url: string | undefined;
}

/** Whoever is set by settings or environment and may serve the model, in order. What is not is said in `missing`. */
export function setCandidates(environment: Environment, where: Where, missing: string[]): Candidate[] {
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
  environment: Environment,
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
  environment: Environment,
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
function keyIn(environment: Environment, name: string): string | undefined {
  const key = environment[name]?.trim();
  if (!key) return undefined;
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new Failure("no_model", { why: `${name} holds characters that no key has` });
  }
  return key;
}

export function withoutPrefix(name: string, prefix: string | undefined): string {
  return prefix && name.startsWith(`${prefix}/`) ? name.slice(prefix.length + 1) : name;
}
