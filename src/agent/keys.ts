// Keys: who a presented key belongs to, told in constant time. Where keys are kept is key_file.ts.

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Agent } from "./agent.ts";

/** The agent among `agents` whose key this is. Looks at every one, so that the time says nothing of which it was. */
export function ownerOf(key: string, agents: Iterable<Agent>): Agent | undefined {
  const presented = digest(key);
  let owner: Agent | undefined;
  for (const agent of agents) {
    if (timingSafeEqual(presented, digestOf(agent))) owner = agent;
  }
  return owner;
}

/** Whether two keys are the same, in constant time. */
export function sameKey(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other));
}

/** A new key: 256 random bits, hex. */
export function newKey(): string {
  return randomBytes(32).toString("hex");
}

const digests = new WeakMap<Agent, Buffer>();

function digestOf(agent: Agent): Buffer {
  let kept = digests.get(agent);
  if (!kept) digests.set(agent, kept = digest(agent.key));
  return kept;
}

function digest(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}
