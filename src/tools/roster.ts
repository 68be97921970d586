// Which servers an agent has now, and that what each of them offers is known: listed anew where it must be, waited for no longer
// than a turn may be held, and what failed told once. What is offered of it, and the calls, are toolbox.ts.

import type { Clock } from "../clock.ts";
import { asFailure, type Facts } from "../errors.ts";
import type { Fetch } from "../fetch.ts";
import { limits } from "../limits.ts";
import type { Notify } from "../notices.ts";
import { type Catalog, catalogOf, type OwnFolder } from "./catalog.ts";
import { type Listing, readListing } from "./listing.ts";
import { type Server, serversOf, type ServerSources } from "./servers.ts";
import type { Session } from "./session.ts";
import { type Alarm, type Sessions, sessionsOf } from "./sessions.ts";
import { startTool } from "./start.ts";
import { Trouble } from "./trouble.ts";

export interface RosterParts {
  sources: Omit<ServerSources, "settings">;
  own: OwnFolder;
  fetch: Fetch;
  clock: Clock;
  notify: Notify;
  alarm: Alarm;
}

export interface Roster {
  /** The servers that stand under these settings, each one's list known as far as it can be. Never rejects. */
  look(settings: ServerSources["settings"], asks?: Asks): Promise<Server[]>;
  readonly sessions: Sessions;
  readonly catalog: Catalog;
  /** Keeps what sessions have listed since. */
  save(): Promise<void>;
  /** Why a server's last start failed, where it did. */
  trouble(server: Server): string | undefined;
}

/**
 * Which servers are asked for their list: `once`, what a turn needs: those that this process has not listed or tried to;
 * `unknown`, only those of which nothing is kept; `all`.
 */
export type Asks = "once" | "unknown" | "all";

/** How the last start of a server went. */
interface Attempt {
  why?: string;
  /** A turn waited for it as long as one does. */
  late?: boolean;
}

export function rosterOf({ sources, own, fetch, clock, notify, alarm }: RosterParts): Roster {
  const catalog = catalogOf({ own, clock, notify });
  const sessions = sessionsOf({ clock, alarm, start, list });
  const attempts = new Map<string, Attempt>();
  /** Starts under way: turns that begin together share them. */
  const openings = new Map<string, Promise<void>>();
  const told = new Map<string, string>();
  let here: Server[] = [];

  /** Opens a session and notes what the server lists. */
  async function start(server: Server, onListChanged: () => void, signal: AbortSignal): Promise<Session> {
    const bound = boundOf(clock, limits.toolStartMs, signal);
    try {
      const { session, listing, asked } = await startTool(
        { reach: server.reach(), fetch, clock, listens: server.keeps, signal: bound.signal, onListChanged },
        catalog.get(server)?.era,
      );
      note(server, listing);
      catalog.put(server, listing, { era: session.spoken, asked });
      attempts.set(idOf(server), {});
      return session;
    } catch (error) {
      const why = error instanceof Trouble ? error.message : asFailure(error).message;
      attempts.set(idOf(server), { ...attempts.get(idOf(server)), why });
      tell("A tool did not start.", server, { why });
      throw new Trouble("unmade", why, { cause: error });
    } finally {
      bound.over();
    }
  }

  /** Reads the list again in a session that is open. */
  async function list(server: Server, session: Session): Promise<void> {
    const bound = boundOf(clock, limits.toolStartMs);
    try {
      const listing = await readListing((cursor) => session.page(cursor, bound.signal), session.instructions);
      note(server, listing);
      catalog.put(server, listing, { era: session.spoken, asked: false });
    } finally {
      bound.over();
    }
  }

  function note(server: Server, { leftOut }: Listing): void {
    if (leftOut.length > 0) tell("A tool's list was not taken whole.", server, { leftOut });
  }

  /** Tells something of a server once, and again where it is something else. */
  function tell(sentence: string, server: Server, facts: Facts): void {
    const key = `${idOf(server)} ${sentence}`, now = JSON.stringify(facts);
    if (told.get(key) === now) return;
    told.set(key, now);
    notify("warn", sentence, { tool: server.tool, address: server.hash, ...facts });
  }

  /** Sees to it that a server's list is known, as far as it can be without holding a turn for longer than it may be held. */
  async function bring(server: Server, asks: Asks): Promise<void> {
    await sessions.refresh(server);
    const known = catalog.get(server), before = attempts.get(idOf(server));
    // One that was listed before is offered as it was; its next call starts it.
    if (known && asks !== "all" && (known.fresh || before || asks === "unknown")) return;
    const over = new AbortController();
    const late = clock.sleep(before?.late ? limits.toolStartAgainMs : limits.toolStartMs, over.signal).then(
      () => {
        if (over.signal.aborted) return;
        attempts.set(idOf(server), { why: before?.why ?? "it did not answer in time", late: true });
      },
    );
    await Promise.race([opening(server), late]);
    over.abort();
  }

  function opening(server: Server): Promise<void> {
    const id = idOf(server);
    let work = openings.get(id);
    if (!work) {
      work = sessions.open(server).catch(() => {}).finally(() => openings.delete(id));
      openings.set(id, work);
    }
    return work;
  }

  return {
    sessions,
    catalog,

    async look(settings, asks = "once") {
      const { servers, refused } = serversOf({ ...sources, ...(settings ? { settings } : {}) });
      here = servers;
      for (const { name, why } of refused) {
        if (told.get(name) === why) continue;
        told.set(name, why);
        notify("warn", "A tool's address was not taken.", { name, why });
      }
      await catalog.load();
      await Promise.all(servers.map((server) => bring(server, asks)));
      await catalog.save(servers);
      return servers;
    },

    save: () => catalog.save(here),

    trouble: (server) => attempts.get(idOf(server))?.why,
  };
}

function idOf({ tool, hash }: Server): string {
  return `${tool} ${hash}`;
}

/** A signal that gives up after `ms`, or with `signal`; `over` ends its wait. */
function boundOf(clock: Clock, ms: number, signal?: AbortSignal): { signal: AbortSignal; over(): void } {
  const giveUp = new AbortController(), over = new AbortController();
  signal?.addEventListener("abort", () => giveUp.abort(), { once: true, signal: over.signal });
  clock.sleep(ms, over.signal).then(() => {
    if (!over.signal.aborted) giveUp.abort();
  });
  return { signal: giveUp.signal, over: () => over.abort() };
}
