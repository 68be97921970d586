// An agent's tools over MCP: what they offer to a turn, and their calls. Which servers there are is servers.ts, what they were
// found to offer catalog.ts, which session serves a call sessions.ts.

import type { Clock } from "../clock.ts";
import type { Fetch } from "../fetch.ts";
import { limits } from "../limits.ts";
import { type Notify, silent } from "../notices.ts";
import type { ToolSpec } from "../tool.ts";
import { catalogOf, type OwnFolder } from "./catalog.ts";
import { type ListedCall, type Listing, readListing } from "./listing.ts";
import { resultOf } from "./result.ts";
import { type Server, serversOf, type ServerSources } from "./servers.ts";
import type { Session } from "./session.ts";
import { type Alarm, alarm, sessionsOf } from "./sessions.ts";
import { startTool } from "./start.ts";
import { type CallResult, noSuchTool, type Offer, type Toolbox } from "./tools.ts";
import { Trouble } from "./trouble.ts";

/** What a toolbox is made from. */
export interface ToolboxParts {
  /** Where the servers are, beside the settings' `[tools]`. */
  environment?: ServerSources["environment"];
  addresses?: ServerSources["agent"];
  /** The agent's own folder, where `tool-lists.json` is kept. */
  own: OwnFolder;
  fetch: Fetch;
  clock: Clock;
  notify?: Notify;
  /** Of the harness: what servers are told. */
  version: string;
  alarm?: Alarm;
}

/** One server as it stands, for people: nothing of its address. */
export interface ToolState {
  tool: string;
  /** SHA-256 of the address. */
  address: string;
  source: Server["source"];
  /** `up`: listed by this process. `down`: offered as it was listed before. `absent`: never listed, not offered. */
  state: "up" | "down" | "absent";
  /** Why it is not `up`. */
  why?: string;
  tools: ToolSpec[];
  instructions?: string;
  leftOut: Listing["leftOut"];
}

/** A toolbox that tells how each of its tools stands. */
export interface McpToolbox extends Toolbox {
  /** Looks at every server; `refresh` asks all of them anew. */
  states(addresses?: Readonly<Record<string, string>>, options?: { refresh?: boolean }): Promise<ToolState[]>;
}

/** How the starts of a server went in this process. */
interface Attempt {
  hash: string;
  why?: string;
  /** Somebody waited for it as long as one waits. */
  late?: boolean;
}

export function openToolbox(parts: ToolboxParts): McpToolbox {
  const { clock, own, notify = silent } = parts;
  const catalog = catalogOf({ own, clock, notify });
  const sessions = sessionsOf({ clock, alarm: parts.alarm ?? alarm, start, list });
  const attempts = new Map<string, Attempt>();
  /** Starts under way, by hash: turns that begin together share them. */
  const openings = new Map<string, Promise<void>>();
  const told = new Map<string, string>();
  let here: Server[] = [];
  let offered = new Map<string, { server: Server; call: ListedCall }>();

  /** Opens a session and notes what the server lists. */
  async function start(server: Server, onListChanged: () => void, signal: AbortSignal): Promise<Session> {
    const over = new AbortController();
    const giveUp = new AbortController();
    signal.addEventListener("abort", () => giveUp.abort(), { once: true, signal: over.signal });
    clock.sleep(limits.toolStartMs, over.signal).then(() => !over.signal.aborted && giveUp.abort());
    try {
      const reach = server.reach();
      const { fetch, version } = parts;
      const started = await startTool(
        { reach, fetch, clock, version, listens: server.keeps, signal: giveUp.signal, onListChanged },
        catalog.get(server)?.era,
      );
      const { session, listing, asked } = started;
      note(server, listing);
      catalog.put(server, listing, { era: session.spoken, asked });
      attempts.set(server.tool, { hash: server.hash });
      return session;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const { late } = attempts.get(server.tool) ?? {};
      attempts.set(server.tool, { hash: server.hash, why, ...(late ? { late } : {}) });
      tell("A tool did not start.", server, { why });
      throw new Trouble("unmade", why, { cause: error });
    } finally {
      over.abort();
    }
  }

  async function list(server: Server, session: Session): Promise<void> {
    const listing = await readListing(
      (cursor) => session.page(cursor, AbortSignal.timeout(limits.toolStartMs)),
      session.instructions,
    );
    note(server, listing);
    catalog.put(server, listing, { era: session.spoken, asked: false });
  }

  /** What was left out of a list is told once. */
  function note(server: Server, { leftOut }: Listing): void {
    if (leftOut.length > 0) tell("A tool's list was not taken whole.", server, { leftOut });
  }

  function tell(sentence: string, { tool, hash }: Server, facts: Record<string, unknown>): void {
    const key = `${hash} ${sentence}`, now = JSON.stringify(facts);
    if (told.get(key) === now) return;
    told.set(key, now);
    notify("warn", sentence, { tool, address: hash, ...facts });
  }

  /** Sees to it that a server's list is known, as far as it can be without holding the turn for longer than it may be held. */
  async function bring(server: Server, refresh = false): Promise<void> {
    await sessions.refresh(server);
    const known = catalog.get(server);
    const attempt = attempts.get(server.tool);
    const tried = attempt?.hash === server.hash;
    // One that was listed before is offered as it was; its next call starts it.
    if (!refresh && (known?.fresh || (known && tried))) return;
    const over = new AbortController();
    const waitMs = tried && attempt.late ? limits.toolStartAgainMs : limits.toolStartMs;
    const late = clock.sleep(waitMs, over.signal).then(() => {
      if (over.signal.aborted) return;
      const why = attempt?.why ?? "it did not answer in time";
      attempts.set(server.tool, { hash: server.hash, why, late: true });
    });
    await Promise.race([opening(server), late]);
    over.abort();
  }

  function opening(server: Server): Promise<void> {
    let work = openings.get(server.hash);
    if (!work) {
      work = sessions.open(server).catch(() => {}).finally(() => openings.delete(server.hash));
      openings.set(server.hash, work);
    }
    return work;
  }

  async function look(
    settings: Readonly<Record<string, string>> | undefined,
    refresh?: boolean,
  ): Promise<Server[]> {
    const { environment, addresses: agent } = parts;
    const { servers, refused } = serversOf({
      ...(environment ? { environment } : {}),
      ...(agent ? { agent } : {}),
      ...(settings ? { settings } : {}),
    });
    for (const { name, why } of refused) {
      if (told.get(name) === why) continue;
      told.set(name, why);
      notify("warn", "A tool's address was not taken.", { name, why });
    }
    here = servers;
    await catalog.load();
    await Promise.all(servers.map((server) => bring(server, refresh)));
    await catalog.save(servers);
    return servers;
  }

  return {
    async offer(addresses) {
      const servers = await look(addresses);
      const names = new Map<string, { server: Server; call: ListedCall }>();
      const offer: Offer = { tools: [], instructions: [] };
      for (const server of servers) {
        const listing = catalog.get(server)?.listing;
        if (!listing || listing.calls.length === 0) continue;
        for (const call of listing.calls) names.set(nameOf(server, call), { server, call });
        offer.tools.push(...specsOf(server, listing));
        if (listing.instructions) offer.instructions.push({ tool: server.tool, text: listing.instructions });
      }
      offered = names;
      return offer;
    },

    async call({ thread, turn, key, name, arguments: given, signal }): Promise<CallResult> {
      const found = offered.get(name);
      if (!found) return noSuchTool(name);
      const { server, call: { name: call, schema } } = found;
      const asked = { name: call, schema, arguments: given, thread, key, signal };
      try {
        return resultOf(await sessions.use(server, turn, (session) => session.call(asked)));
      } catch (error) {
        return { ok: false, text: sayTrouble(server.tool, error) };
      } finally {
        // A session that was opened for it has listed.
        catalog.save(here);
      }
    },

    turnEnded: (turn) => sessions.turnEnded(turn),

    close: () => sessions.close(),

    async states(addresses, { refresh = false } = {}) {
      const servers = await look(addresses, refresh);
      return servers.map((server): ToolState => {
        const known = catalog.get(server);
        const { why } = attempts.get(server.tool) ?? {};
        const { instructions, leftOut = [] } = known?.listing ?? {};
        return {
          tool: server.tool,
          address: server.hash,
          source: server.source,
          state: why === undefined && known?.fresh ? "up" : known ? "down" : "absent",
          ...(why === undefined ? {} : { why }),
          tools: known ? specsOf(server, known.listing) : [],
          ...(instructions === undefined ? {} : { instructions }),
          leftOut,
        };
      });
    },
  };
}

function nameOf({ tool }: Server, { name }: ListedCall): string {
  return `${tool}__${name}`;
}

/** A list's calls as they are offered. The same objects each time, so that what is made of each is made once. */
function specsOf(server: Server, listing: Listing): ToolSpec[] {
  let specs = specsByListing.get(listing);
  if (!specs) {
    specs = listing.calls.map((call) => ({
      name: nameOf(server, call),
      description: call.description,
      schema: call.schema,
    }));
    specsByListing.set(listing, specs);
  }
  return specs;
}

const specsByListing = new WeakMap<Listing, ToolSpec[]>();

/** What the model is told of a call that gave no result: above all, whether it may have been made. */
function sayTrouble(tool: string, error: unknown): string {
  const kind = error instanceof Trouble ? error.kind : "unknown";
  const why = error instanceof Trouble ? error.message : "something went wrong inside";
  switch (kind) {
    case "told":
      return `The tool ${tool} gave no result: ${why}.`;
    case "unmade":
    case "forgotten":
      return `The tool ${tool} is unavailable: ${why}. The call was not made.`;
    case "unknown":
      return `The call to ${tool} was given up: ${why}. Its outcome is unknown: it may have been made or not, and was not made again.`;
  }
}
