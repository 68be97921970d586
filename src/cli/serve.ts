// `serve`: agents over HTTP, each on its own port, until a signal or until all are asleep.

import { processLocks } from "../store/lock.ts";
import { agentPaths } from "../paths.ts";
import type { Command, Given } from "./command.ts";
import { misused } from "./command.ts";
import { homeOf } from "./environment.ts";
import { openAgent, processParts } from "./open.ts";
import { homeOption, jsonOption } from "./options.ts";
import { print } from "./output.ts";
import { serveAgents } from "./served.ts";

export const command: Command = {
  words: ["AGENT"],
  options: {
    ...homeOption,
    host: { value: "HOST", say: "the address to listen on (127.0.0.1)" },
    port: { value: "N", say: "the port; 0, the default, is any that is free" },
    drain: { value: "TIME", say: "how long ending may take (25s)" },
    "sleep-after": {
      value: "TIME",
      say: "an agent unused for so long falls asleep; with all asleep the process ends",
    },
    ...jsonOption,
  },
  say: `
Serves an agent over HTTP; makes it where there is none. Once it can be asked it prints a line with its base URL to
stdout: with --json {"agent","url","pid"}. Its key is in HOME/AGENT/key. Turns of a process that died are finished.

SIGTERM, SIGINT and SIGHUP end it: no new connection is taken, what is asked on those there are is answered until their
clients close them, and turns run to their ends, within --drain. A second one ends it at once (exit 1).`,
  run,
};

async function run(given: Given): Promise<number> {
  const name = given.agent();
  const host = given.text("host") ?? "127.0.0.1";
  const port = portOf(given);
  const drainMs = given.ms("drain"), sleepAfterMs = given.ms("sleep-after");
  const where = { home: homeOf(given.text("home")) };
  const locks = processLocks(agentPaths(name, where).run, processParts.ids);
  const agent = await openAgent({ name, where, locks, make: true });
  const served = await serveAgents([agent], { host, ports: new Map([[name, port]]), drainMs, sleepAfterMs });
  for (const [agent, url] of served.urls) {
    print(
      given.flag("json")
        ? JSON.stringify({ agent, url, pid: process.pid })
        : `${agent} is served at ${url} (pid ${process.pid})`,
    );
  }
  const code = await served.ended;
  locks.close();
  return code;
}

/** `--port`, checked. */
export function portOf(given: Given): number {
  const port = given.count("port") ?? 0;
  if (port > 65_535) throw misused("--port takes a number up to 65535");
  return port;
}
