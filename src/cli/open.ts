// Opens agents for a process: puts one together from its folder, its settings, its key, its tools and who answers.

import { mkdir, stat } from "node:fs/promises";
import { resolve } from "node:path";
import type { Agent } from "../agent/agent.ts";
import { configIn } from "../agent/config.ts";
import { keyIn } from "../agent/key_file.ts";
import { defaultSettings, durationMs, type Settings } from "../agent/settings.ts";
import { randomIds, systemClock } from "../clock.ts";
import { Failure } from "../errors.ts";
import type { Fetch } from "../fetch.ts";
import { modelChooser } from "../model/choose.ts";
import { agentPaths, type Where } from "../paths.ts";
import { loadDriver } from "../store/driver.ts";
import { openFolderStore } from "../store/folder.ts";
import { type OwnLocks, processLocks } from "../store/lock.ts";
import { type McpToolbox, openToolbox } from "../tools/toolbox.ts";
import { createTurns, type Turns } from "../turn/turns.ts";
import { environment, hostName } from "./environment.ts";
import { notices } from "./output.ts";

/** An agent, and what its process gives back at its end. */
export interface OpenAgent extends Agent {
  readonly tools: McpToolbox;
  close(): Promise<void>;
}

export interface OpenOptions {
  name: string;
  where: Where;
  /** Whether an agent that is not there yet is made. Else `no_agent`. */
  make: boolean;
  /** Shared by all agents of a process that have the same `run` folder. */
  locks?: OwnLocks;
  /** What stands in the place of the process's environment. */
  environment?: Readonly<Record<string, string | undefined>>;
  /** Addresses of its tools, by name: of the agents file, or of its binding. */
  addresses?: Readonly<Record<string, string>>;
}

/** What is the same for all agents of a process. */
export const processParts = { clock: systemClock, ids: randomIds, notify: notices };

/** Opens an agent kept in folders. */
export async function openAgent(options: OpenOptions): Promise<OpenAgent> {
  const { name, where, make } = options;
  const paths = agentPaths(name, where);
  if (make) await mkdir(paths.own, { recursive: true, mode: 0o700 });
  else if (!await isFolder(paths.own)) throw new Failure("no_agent", { agent: name, path: paths.own });
  const key = await keyIn(paths.key);

  const locks = options.locks ?? processLocks(paths.run, processParts.ids);
  const parts = { agent: name, where, locks, ...processParts };
  // How long a lease lasts is asked of the settings once; all else of them at each turn.
  const config = configIn(openFolderStore(parts).own);
  const { storage } = await config.settings().catch(() => defaultSettings);
  /** As the newest turn read them: a turn's writes ask no disk how they are to be kept. */
  let now: Settings | undefined;
  const store = openFolderStore({
    ...parts,
    term: durationMs(storage.lease),
    storage: async () => {
      const { storage } = now ?? await config.settings();
      return { way: storage.conversations, sync: storage.sync };
    },
    driver: async (driver) => {
      const { storage } = await config.settings();
      const table = storage[driver];
      const settings = typeof table === "object" ? table : {};
      return await loadDriver(driver, {
        ...processParts,
        agent: name,
        where,
        settings,
        sync: storage.sync,
        fetch: ask,
      });
    },
  });
  const variables = options.environment ?? environment;
  const choose = modelChooser({ ...processParts, environment: variables, fetch: ask });
  const tools = openToolbox({
    ...processParts,
    environment: variables,
    ...(options.addresses ? { addresses: options.addresses } : {}),
    own: store.own,
    fetch: ask,
  });

  return {
    name,
    key,
    store,
    tools,
    config,
    workspace: resolve(paths.files),
    settings: async () => now = await config.settings(),
    model: ({ model }) => choose(model),
    fallback: async ({ model: { fallback, via, url } }) =>
      fallback === undefined ? undefined : await choose({ name: fallback, via, url }),
    async close() {
      await tools.close();
      await store.conversations.close();
      if (!options.locks) locks.close();
    },
  };
}

/** The turns of this process. */
export function openTurns(): Turns {
  return createTurns({
    ...processParts,
    holder: { host: hostName(), process: process.pid, start: new Date().toISOString() },
    zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  });
}

const ask: Fetch = (input, init) => fetch(input, init);

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}
