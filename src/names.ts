// What an agent and a thread may be called. How a thread's name becomes a folder's is in store/.

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
