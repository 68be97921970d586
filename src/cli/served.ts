// A process that serves agents: one port each, one handler for all, and how it ends. What a command makes of it is serve.ts
// and start.ts.

import type { AgentsHere } from "../agent/agent.ts";
import { presenceOf } from "../agent/presence.ts";
import { Failure } from "../errors.ts";
import { createHandler } from "../http/handler.ts";
import { limits } from "../limits.ts";
import { version } from "../version.ts";
import { listen, type Listening } from "./listen.ts";
import { type OpenAgent, openTurns, processParts } from "./open.ts";
import { tell, tellFailure } from "./output.ts";
import { sleepiness } from "./sleep.ts";

export interface ServeOptions {
  host: string;
  /** The port of each agent, by name; 0 for any. */
  ports: ReadonlyMap<string, number>;
  /** How long the end may take. */
  drainMs?: number | undefined;
  /** An agent unused for that long falls asleep; never where left out. */
  sleepAfterMs?: number | undefined;
}

export interface Served {
  /** Base URLs by agent, of all that could be given a port. */
  urls: ReadonlyMap<string, string>;
  /** Ends the process's serving, as SIGTERM does. */
  end(why: string): void;
  /** Settled when all has ended: the exit code. */
  readonly ended: Promise<number>;
}

/**
 * Serves the agents until a signal, or until all are asleep. Throws where none of them could be given its port; else one
 * that could not is told and the others are served.
 *
 * SIGTERM, SIGINT and SIGHUP drain: no new connection, every request on those there are answered until their clients close
 * them, turns run to their ends, all within the deadline. A second signal of them ends at once: exit 1. Turns that had to
 * be left are finished by whoever recovers them.
 */
export async function serveAgents(agents: readonly OpenAgent[], options: ServeOptions): Promise<Served> {
  const drainMs = options.drainMs ?? limits.drainMs;
  const byName = new Map(agents.map((agent) => [agent.name, agent]));
  const here: AgentsHere = { get: (name) => byName.get(name), list: () => byName.values() };
  const turns = openTurns();
  const { promise: ended, resolve } = Promise.withResolvers<number>();
  const presence = presenceOf(here, processParts.clock, () => {
    if (presence.awake() === 0) end("Every agent is asleep.");
  });
  const sleep = sleepiness({ agents: here, presence, turns, sleepAfterMs: options.sleepAfterMs });
  const handler = createHandler({ ...processParts, agents: here, turns, presence, version });
  const listeners = new Map<string, Listening>();
  let ending = false, finished = false;

  function end(why: string): void {
    if (ending) return;
    ending = true;
    sleep.stop();
    void drain(why);
  }

  async function drain(why: string): Promise<void> {
    const listening = [...listeners.values()];
    await Promise.all(listening.map((one) => one.stop()));
    tell(
      `${why} No new connection is taken; what is asked on those there are is answered until their clients close them, ${
        drainMs / 1000
      } s at most. A second signal ends at once.`,
    );
    const connections = Promise.all(listening.map((one) => one.gone()));
    const { left } = await handler.drain({ deadlineMs: drainMs, connections });
    await finish(0, left);
  }

  /** At once: what runs is left to recovery. */
  async function cut(): Promise<void> {
    const { left } = await turns.drain(0);
    await finish(1, left);
  }

  async function finish(code: number, left: number): Promise<void> {
    if (finished) return;
    finished = true;
    for (const listening of listeners.values()) listening.cut();
    if (left > 0) {
      tell(
        `${left} ${
          left === 1 ? "turn is" : "turns are"
        } left unfinished; the next process that serves the agent finishes them.`,
      );
    }
    for (const agent of agents) {
      await agent.close().catch((thrown) =>
        processParts.notify("error", "A store could not be closed.", {
          agent: agent.name,
          why: String(thrown),
        })
      );
    }
    for (const signal of signals) process.off(signal, onSignal);
    resolve(code);
  }

  let signalled = -Infinity;
  const onSignal = (signal: string) => {
    // A terminal and whoever started the process may both send the one that was meant.
    const now = processParts.clock.mono();
    if (now - signalled < limits.signalTwiceMs) return;
    signalled = now;
    if (ending) void cut();
    else end(`${signal}: ending.`);
  };
  const troubles: Failure[] = [];
  for (const { name } of agents) {
    try {
      const port = options.ports.get(name) ?? 0;
      listeners.set(
        name,
        await listen({ host: options.host, port, agent: name, fetch: (request) => handler.fetch(request) }),
      );
    } catch (thrown) {
      if (!(thrown instanceof Failure)) throw thrown;
      troubles.push(thrown);
    }
  }
  if (listeners.size === 0) throw troubles[0] ?? new Failure("usage", { say: "There is no agent to serve." });
  for (const trouble of troubles) tellFailure(trouble);
  for (const signal of signals) process.on(signal, onSignal);
  sleep.start();
  void handler.recover().then(({ finishing }) => {
    if (finishing > 0) {
      tell(`${finishing} crashed ${finishing === 1 ? "turn is" : "turns are"} being finished.`);
    }
  });
  return {
    urls: new Map([...listeners].map(([name, { origin }]) => [name, `${origin}/agents/${name}`])),
    end,
    ended,
  };
}

const signals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;
