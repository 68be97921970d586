// What an agent and a thread may be called, and the one order of threads. Where they are kept is paths.ts.

import { Failure } from "./errors.ts";
import { limits } from "./limits.ts";

/** What is wrong with `thread` as a thread's whole name; undefined where nothing is. */
export function threadFault(thread: string): string | undefined {
  if (thread.length === 0) return "it is empty";
  // A code point has at most two UTF-16 units, so that only what may be short enough is counted.
  if (thread.length > 2 * limits.threadPointsMax || [...thread].length > limits.threadPointsMax) {
    return `it has more than ${limits.threadPointsMax} characters`;
  }
  if (!thread.isWellFormed()) return "it is not well-formed Unicode";
  if (/\p{Cc}/u.test(thread)) return "it has control characters";
  if (thread === "." || thread === "..") return "it is a dot name";
  return undefined;
}

/** The thread as it came, or `thread_invalid`. */
export function checkThread(thread: string): string {
  const why = threadFault(thread);
  if (why !== undefined) throw new Failure("thread_invalid", { why });
  return thread;
}

/** Whether `name` may be an agent's. */
export function isAgentName(name: string): boolean {
  return /^[a-z0-9][a-z0-9_-]{0,62}$/.test(name);
}

/** The agent's name, checked. Throws `agent_invalid`. */
export function checkAgent(agent: string): string {
  if (isAgentName(agent)) return agent;
  throw new Failure("agent_invalid", { agent });
}

/** Order of threads wherever they are listed: by code points, which is also the order of their UTF-8 bytes. */
export function byThread(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i), y = b.charCodeAt(i);
    if (x === y) continue;
    // Half of a pair stands for a code point above every single unit.
    const pairX = x >= 0xd800 && x <= 0xdfff, pairY = y >= 0xd800 && y <= 0xdfff;
    return pairX === pairY ? x - y : pairX ? 1 : -1;
  }
  return a.length - b.length;
}
