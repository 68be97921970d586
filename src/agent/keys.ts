// Keys: who a presented key belongs to, told in constant time. Where keys are kept is key_file.ts.

import { createHash, randomBytes } from "node:crypto";
import type { Agent } from "./agent.ts";

/** The agent among `agents` whose key this is. Looks at every one, so that the time says nothing of which it was. */
export function ownerOf(key: string, agents: Iterable<Agent>): Agent | undefined {
  const presented = digest(key);
  let owner: Agent | undefined;
  for (const agent of agents) {
    if (sameDigest(presented, digestOf(agent))) owner = agent;
  }
  return owner;
}

/** Whether two keys are the same, in constant time. */
export function sameKey(one: string, other: string): boolean {
  return sameDigest(digest(one), digest(other));
}

/** A new key: 256 random bits, hex. */
export function newKey(): string {
  return randomBytes(32).toString("hex");
}

/** Keys are compared by their digests, which say nothing of how much of a key was right. */
type Digest = Uint32Array;

const digests = new WeakMap<Agent, Digest>();

function digestOf(agent: Agent): Digest {
  let kept = digests.get(agent);
  if (!kept) digests.set(agent, kept = digest(agent.key));
  return kept;
}

function digest(key: string): Digest {
  return new Uint32Array(new Uint8Array(createHash("sha256").update(key).digest()).buffer);
}

/** All eight words are looked at, whatever they are. Word by word, since a thousand agents are compared at each request. */
function sameDigest(one: Digest, other: Digest): boolean {
  let different = 0;
  for (let word = 0; word < 8; word++) different |= one[word]! ^ other[word]!;
  return different === 0;
}
