// What each of an agent's tools was last found to offer, kept in the process and beside the agent's settings, so that a tool
// which is down is offered as it was, and a restart changes nothing of the prompt. Derived: without it the tools are listed.

import * as v from "valibot";
import { type Clock, timestamp } from "../clock.ts";
import { type Fields, isObject } from "../json.ts";
import { limits } from "../limits.ts";
import type { Notify } from "../notices.ts";
import type { Listing } from "./listing.ts";
import type { Server } from "./servers.ts";
import type { Era } from "./session.ts";

/** What is known of one server. */
export interface Known {
  /** Of its address: a server that moved is another one. */
  hash: string;
  listing: Listing;
  /** Undefined where it must be asked, or was asked too long ago. */
  era: Era | undefined;
  /** Listed by this process, not only read from the file. */
  fresh: boolean;
}

/** The agent's own folder, as far as it is needed here. */
export interface OwnFolder {
  read(path: string): Promise<Uint8Array | undefined>;
  write(path: string, bytes: Uint8Array, options?: { mode?: number }): Promise<void>;
}

export interface Catalog {
  /** Reads the file, the first time that it is called. */
  load(): Promise<void>;
  get(server: Server): Known | undefined;
  put(server: Server, listing: Listing, spoken: { era: Era; asked: boolean }): void;
  /** Writes the file where it would change; of the tools that are `here`, nothing else. Never rejects. */
  save(here: readonly Server[]): Promise<void>;
}

const file = "tool-lists.json";

export function catalogOf({ own, clock, notify }: {
  own: OwnFolder;
  clock: Clock;
  notify: Notify;
}): Catalog {
  const known = new Map<string, Omit<Known, "era"> & { era?: Era; eraAt: number }>();
  let loading: Promise<void> | undefined;
  let saving = Promise.resolve();
  let written = "";
  /** Counts what may have changed the file; and what of it, for which tools, was last written. */
  let changes = 0, saved = "";

  async function read(): Promise<void> {
    const bytes = await own.read(file);
    if (!bytes) return;
    written = new TextDecoder().decode(bytes);
    for (
      const [tool, { address, era, asked, instructions, calls, leftOut = [] }] of Object.entries(
        parse(written).lists,
      )
    ) {
      known.set(tool, {
        hash: address,
        listing: { calls, leftOut, ...(instructions === undefined ? {} : { instructions }) },
        // What a server of the newer era says of itself is asked again by each process.
        ...(era === "2025" ? { era: { era } } : {}),
        eraAt: Date.parse(asked),
        fresh: false,
      });
    }
  }

  function text(here: readonly Server[]): string {
    const lists: v.InferInput<typeof fileSchema>["lists"] = {};
    for (const server of here) {
      const one = known.get(server.tool);
      if (one?.hash !== server.hash) continue;
      const { calls, leftOut, instructions } = one.listing;
      lists[server.tool] = {
        address: server.hash,
        era: one.era?.era ?? "2026",
        asked: timestamp(one.eraAt),
        ...(instructions === undefined ? {} : { instructions }),
        calls,
        ...(leftOut.length > 0 ? { leftOut } : {}),
      };
    }
    return `${JSON.stringify({ lists })}\n`;
  }

  return {
    load: () =>
      loading ??= read().catch((error) => {
        notify("warn", `${file} cannot be read; the tools are listed anew.`, { why: String(error) });
      }),

    get(server) {
      const one = known.get(server.tool);
      if (one?.hash !== server.hash) return undefined;
      const { hash, listing, era, eraAt, fresh } = one;
      return { hash, listing, fresh, era: clock.now() - eraAt < limits.toolEraMs ? era : undefined };
    },

    put(server, listing, { era, asked }) {
      const before = known.get(server.tool);
      const same = before?.hash === server.hash ? before : undefined;
      known.set(server.tool, {
        hash: server.hash,
        // The same object for the same list: what is made of each of its calls is made once.
        listing: same && JSON.stringify(same.listing) === JSON.stringify(listing) ? same.listing : listing,
        era,
        eraAt: asked || !same ? clock.now() : same.eraAt,
        fresh: true,
      });
      changes++;
    },

    save(here) {
      saving = saving.then(async () => {
        const now = `${changes} ${here.map(({ tool, hash }) => `${tool} ${hash}`)}`;
        if (now === saved) return;
        const next = text(here);
        if (next !== written && (written !== "" || here.length > 0)) {
          await own.write(file, new TextEncoder().encode(next), { mode: 0o600 });
          written = next;
        }
        saved = now;
      }).catch((error) => {
        notify("warn", `${file} cannot be written; a new process lists the tools anew.`, {
          why: String(error),
        });
      });
      return saving;
    },
  };
}

const fileSchema = v.object({
  lists: v.record(
    v.string(),
    v.object({
      /** SHA-256 of the address, hex. */
      address: v.string(),
      era: v.picklist(["2025", "2026"]),
      /** When the server was last asked which era it speaks. */
      asked: v.pipe(v.string(), v.check((text) => !Number.isNaN(Date.parse(text)), "no time")),
      instructions: v.optional(v.string()),
      leftOut: v.optional(v.array(v.object({ name: v.string(), why: v.string() }))),
      calls: v.array(
        // The schema stays as it is read, so that its bytes in a prompt are those of a fresh list.
        v.object({
          name: v.string(),
          description: v.string(),
          schema: v.custom<Fields>(isObject, "no object"),
        }),
      ),
    }),
  ),
});

/** The file's lists; none where it is not of its form, for then the tools are listed anew. */
function parse(text: string): v.InferOutput<typeof fileSchema> {
  try {
    return v.parse(fileSchema, JSON.parse(text));
  } catch {
    return { lists: {} };
  }
}
