// Makes src/model/facts_shipped.ts from a public catalogue of models: OpenRouter's listing, by its address or as a file.
//   deno run -A scripts/refresh_facts.ts [FILE | URL]
// What it takes: windows, longest answers and abilities of models that answer in words. What it never takes: prices.

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const catalogue = "https://openrouter.ai/api/v1/models";
export const shippedFile = fileURLToPath(new URL("../src/model/facts_shipped.ts", import.meta.url));

/** One row of the listing, as far as it is read. */
interface Listed {
  id: string;
  context_length?: number | null;
  architecture?: { input_modalities?: string[]; output_modalities?: string[] };
  top_provider?: { context_length?: number | null; max_completion_tokens?: number | null };
  supported_parameters?: string[];
}

/** The text of src/model/facts_shipped.ts. `on` is the day of the listing, e.g. 2026-12-01. */
export function shippedFacts(listing: { data: Listed[] }, on: string): string {
  const lines = new Map<string, string>();
  for (const row of listing.data) {
    const facts = factsLine(row);
    if (!facts) continue;
    for (const name of namesOf(row.id)) lines.set(name, `${name} ${facts}`);
  }
  const sorted = [...lines.keys()].sort().map((name) => lines.get(name));
  return `// Facts of today's common models, made by scripts/refresh_facts.ts: not edited by hand. A line says a model's name, its
// window and its longest answer in tokens (- where unknown), and what it can: i takes images, t calls tools, r thinks.

export const shippedOn = "${on}";

export const shipped = \`\\
${sorted.join("\n")}
\`;
`;
}

function factsLine(row: Listed): string | undefined {
  const { architecture, top_provider, supported_parameters: can = [] } = row;
  // Variants of one model have its facts, or are no models to talk to.
  if (!/^[a-z0-9][\w.-]*\/[\w.+-]+$/.test(row.id)) return undefined;
  if (!(architecture?.output_modalities ?? ["text"]).includes("text")) return undefined;
  const windows = [row.context_length, top_provider?.context_length].filter((size) => isSize(size));
  if (windows.length === 0) return undefined;
  // The provider that answers by default may run it with less than the largest that any has.
  const window = Math.min(...windows);
  const answer = top_provider?.max_completion_tokens;
  const abilities = [
    architecture?.input_modalities?.includes("image") ? "i" : "",
    can.includes("tools") ? "t" : "",
    can.includes("reasoning") ? "r" : "",
  ].join("");
  return `${window} ${isSize(answer) ? Math.min(answer, window) : "-"} ${abilities || "-"}`;
}

function isSize(size: number | null | undefined): size is number {
  return Number.isSafeInteger(size) && size! > 0;
}

/** A model's names: the catalogue's, and for Anthropic's its maker's own, which has dashes for dots. */
function namesOf(id: string): string[] {
  return id.startsWith("anthropic/") && id.includes(".") ? [id, id.replaceAll(".", "-")] : [id];
}

if (import.meta.main) {
  const from = process.argv[2] ?? catalogue;
  const text = /^https?:/.test(from) ? await (await fetch(from)).text() : readFileSync(from, "utf8");
  writeFileSync(shippedFile, shippedFacts(JSON.parse(text), new Date().toISOString().slice(0, 10)));
}
