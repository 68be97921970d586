// Starting a tool: a session with its server and, each time, its list of calls. Which era of the protocol the server speaks is
// found here; an old verdict about it is never trusted past its first failure.

import { type Listing, readListing } from "./listing.ts";
import type { Era, Opening, Session } from "./session.ts";
import { Trouble } from "./trouble.ts";

export interface Started {
  session: Session;
  listing: Listing;
  /** The server was asked which era it speaks. */
  asked: boolean;
}

/** Opens a session and lists. `known`: the era that the server was last found to speak. Throws a `Trouble`. */
export async function startTool(opening: Opening, known: Era | undefined): Promise<Started> {
  const { openSession } = await import("./session.ts");
  let last: unknown;
  for (const era of tries(known)) {
    let session: Session | undefined;
    try {
      session = await openSession(opening, era);
      const opened = session;
      const listing = await readListing(
        (cursor) => opened.page(cursor, opening.signal),
        session.instructions,
      );
      return { session, listing, asked: era === undefined };
    } catch (error) {
      await session?.end();
      last = error;
      if (opening.signal.aborted || (error instanceof Trouble && error.final)) break;
    }
  }
  throw last;
}

/** What is tried in turn: what is known, then what the server says it speaks, then the older era: some never answer the question. */
function tries(known: Era | undefined): (Era | undefined)[] {
  const older: Era = { era: "2025" };
  if (known === undefined) return [undefined, older];
  return known.era === "2025" ? [older, undefined] : [known, undefined, older];
}
