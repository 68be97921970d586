// What a door is: the parts that every handler is made from, and a route with its handler. The doors themselves are the
// other files of this folder.

import type { Context } from "hono";
import type { Agent, AgentsHere } from "../agent/agent.ts";
import type { Presence } from "../agent/presence.ts";
import type { Clock, Ids } from "../clock.ts";
import type { Notify } from "../notices.ts";
import type { Turns } from "../turn/turns.ts";

/** What the doors are made from. */
export interface Parts {
  agents: AgentsHere;
  turns: Turns;
  presence: Presence;
  clock: Clock;
  ids: Ids;
  notify: Notify;
  version: string;
}

/** Where the platform takes work that outlives a response (an edge runtime's context). */
export interface HandlerContext {
  waitUntil?(work: Promise<unknown>): void;
}

/** A door's view of a request: the agent whose key was given, the work that goes on after, and the end of the process. */
export interface Env {
  Variables: { agent: Agent };
  Bindings: { context: HandlerContext | undefined; drained: AbortSignal };
}

export type Door = Context<Env>;

export interface Route {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** In Hono's form: `/agents/:agent/asp/turn`. */
  path: string;
  handle(door: Door): Response | Promise<Response>;
}

/** Work that goes on after the response; what it throws is told, not lost. */
export function goOn(door: Door, notify: Notify, work: Promise<unknown>): void {
  const watched = work.catch((thrown) => notify("error", "Work after a response failed.", factsOf(thrown)));
  door.env.context?.waitUntil?.(watched);
}

/** What may be told of something thrown: where it happened, never its message, which may quote what somebody wrote. */
export function factsOf(thrown: unknown): Record<string, unknown> {
  if (!(thrown instanceof Error)) return { thrown: typeof thrown };
  const { code } = thrown as { code?: unknown };
  const at = (thrown.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line)).slice(0, 8);
  return {
    name: thrown.name,
    ...(code === undefined ? {} : { code }),
    at: at.map((line) => line.trim()),
    ...(thrown.cause === undefined ? {} : { cause: factsOf(thrown.cause) }),
  };
}
