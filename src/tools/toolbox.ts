// An agent's tools over MCP: what they offer to a turn, their calls, and how each of them stands. Which servers there are and what
// is known of them is roster.ts; which session serves a call, sessions.ts.

import type { Clock } from "../clock.ts";
import type { Fetch } from "../fetch.ts";
import { type Notify, silent } from "../notices.ts";
import type { ToolSpec } from "../tool.ts";
import type { OwnFolder } from "./catalog.ts";
import type { ListedCall, Listing } from "./listing.ts";
import { resultOf } from "./result.ts";
import { rosterOf } from "./roster.ts";
import { type Server, type ServerSources, toolVariables } from "./servers.ts";
import { type Alarm, alarm } from "./sessions.ts";
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
  alarm?: Alarm;
}

/** A toolbox that tells how each of its tools stands. */
export interface McpToolbox extends Toolbox {
  /** How every server stands, as far as it is known, or, with `refresh`, asked now. One of which nothing is kept is asked. */
  states(addresses?: ServerSources["settings"], options?: { refresh?: boolean }): Promise<ToolState[]>;
}

/** One server as it stands, for people: nothing of its address. */
export interface ToolState {
  tool: string;
  /** SHA-256 of the address. */
  address: string;
  source: Server["source"];
  /**
   * `up`: listed by this process. `kept`: offered as it was listed before, and not asked now. `down`: the same, for it does
   * not answer. `absent`: never listed, not offered.
   */
  state: "up" | "kept" | "down" | "absent";
  /** Why it is down or absent. */
  why?: string;
  tools: ToolSpec[];
  instructions?: string;
  leftOut: Listing["leftOut"];
}

export function openToolbox(parts: ToolboxParts): McpToolbox {
  const { environment, addresses: agent, own, fetch, clock, notify = silent } = parts;
  const sources = {
    ...(environment ? { environment: toolVariables(environment) } : {}),
    ...(agent ? { agent } : {}),
  };
  const roster = rosterOf({ sources, own, fetch, clock, notify, alarm: parts.alarm ?? alarm });
  const { catalog, sessions } = roster;
  /** What the newest offer holds, by name. */
  let offered = new Map<string, { server: Server; call: ListedCall }>();

  return {
    async offer(addresses) {
      const names: typeof offered = new Map();
      const offer: Offer = { tools: [], instructions: [] };
      for (const server of await roster.look(addresses)) {
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
        roster.save();
      }
    },

    turnEnded: (turn) => sessions.turnEnded(turn),

    async close() {
      await sessions.close();
      await roster.save();
    },

    async states(addresses, { refresh = false } = {}) {
      const servers = await roster.look(addresses, refresh ? "all" : "unknown");
      return servers.map((server): ToolState => {
        const known = catalog.get(server), why = roster.trouble(server);
        const { instructions, leftOut = [] } = known?.listing ?? {};
        return {
          tool: server.tool,
          address: server.hash,
          source: server.source,
          state: !known ? "absent" : why !== undefined ? "down" : known.fresh ? "up" : "kept",
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

const specsOfListing = new WeakMap<Listing, ToolSpec[]>();

/** A list's calls as they are offered: the same objects each time, so that what is made of each is made once. */
function specsOf(server: Server, listing: Listing): ToolSpec[] {
  let specs = specsOfListing.get(listing);
  if (!specs) {
    specs = listing.calls.map((call) => ({ ...call, name: nameOf(server, call) }));
    specsOfListing.set(listing, specs);
  }
  return specs;
}

/** What the model is told of a call that gave no result: above all, whether it may have been made. */
function sayTrouble(tool: string, error: unknown): string {
  const { kind, message } = error instanceof Trouble
    ? error
    : { kind: "unknown" as const, message: "something went wrong inside" };
  switch (kind) {
    case "told":
      return `The tool ${tool} gave no result: ${message}.`;
    case "unmade":
    case "forgotten":
      return `The tool ${tool} is unavailable: ${message}. The call was not made.`;
    case "unknown":
      return `The call to ${tool} was given up: ${message}. Its outcome is unknown: it may have been made or not, and was not made again.`;
  }
}
