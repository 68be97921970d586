// A server's list of calls: walked page by page, checked entry by entry, the same for the same server whatever order it lists
// in. One bad entry costs that entry alone, and what is left out is told.

import { type Fields, isObject } from "../json.ts";
import { limits } from "../limits.ts";

/** One call that a server offers. */
export interface ListedCall {
  name: string;
  description: string;
  /** JSON Schema of its arguments, as the server gave it. */
  schema: Record<string, unknown>;
}

/** What a server offers and says of itself. */
export interface Listing {
  /** Sorted by name. */
  calls: ListedCall[];
  leftOut: { name: string; why: string }[];
  /** At most 2 KB. */
  instructions?: string;
}

/** Walks the pages of a list. `page` gives one as it came; it throws what is wrong with the server. */
export async function readListing(
  page: (cursor: string | undefined) => Promise<unknown>,
  instructions: string | undefined,
): Promise<Listing> {
  const calls = new Map<string, ListedCall>();
  const leftOut: Listing["leftOut"] = [];
  const seen = new Set<string>();
  let bytes = 0, cursor: string | undefined;
  for (let pages = 1;; pages++) {
    const given = await page(cursor);
    const { tools, nextCursor } = isObject(given) ? given : {} as Fields;
    for (const entry of Array.isArray(tools) ? tools : []) {
      const call = readCall(entry, leftOut);
      if (!call || calls.has(call.name)) continue;
      bytes += JSON.stringify(call).length;
      if (calls.size >= limits.toolCallsListed || bytes > limits.toolListBytesMax) {
        leftOut.push({ name: call.name, why: "the server lists more than is taken" });
        return listed();
      }
      calls.set(call.name, call);
    }
    // An empty cursor says that there is no more, as servers mean it whose language has no absent text.
    if (typeof nextCursor !== "string" || nextCursor === "") return listed();
    if (seen.has(nextCursor) || pages >= limits.toolPagesMax) {
      const why = seen.has(nextCursor)
        ? "the list comes back to a page it had"
        : "the list has too many pages";
      leftOut.push({ name: "", why });
      return listed();
    }
    seen.add(cursor = nextCursor);
  }

  function listed(): Listing {
    const said = instructions?.trim() ? cutBytes(instructions.toWellFormed().trim()) : undefined;
    return {
      calls: [...calls.values()].sort((a, b) => a.name < b.name ? -1 : 1),
      leftOut,
      ...(said === undefined ? {} : { instructions: said }),
    };
  }
}

function readCall(entry: unknown, leftOut: Listing["leftOut"]): ListedCall | undefined {
  if (!isObject(entry) || typeof entry.name !== "string") {
    leftOut.push({ name: "", why: "an entry of the list has no name" });
    return undefined;
  }
  const { name, inputSchema } = entry;
  if (name === "" || name.length > limits.toolNameCharsMax || /[\p{C}\s,]/u.test(name)) {
    leftOut.push({
      name: name.toWellFormed().replace(/\p{C}/gu, "?").slice(0, limits.toolNameCharsMax),
      why: "its name is empty, too long, or has white space or commas in it",
    });
    return undefined;
  }
  const said = [entry.description, entry.title].find((text) =>
    typeof text === "string" && text.trim() !== ""
  );
  return {
    name,
    description: cutChars(String(said ?? "").toWellFormed(), limits.toolDescriptionCharsMax),
    schema: isObject(inputSchema) ? inputSchema : { type: "object" },
  };
}

/** The start of a text, and a mark that it was cut. */
function cutChars(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

/** The start of what a server says of itself, within its bytes. */
function cutBytes(text: string): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= limits.toolInstructionsBytesMax) return text;
  const kept = bytes.subarray(0, limits.toolInstructionsBytesMax - 3);
  return `${new TextDecoder().decode(kept, { stream: true })}…`;
}
