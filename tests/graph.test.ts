import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";

const root = join(import.meta.dirname!, "..");

/** Every module that loading `entry` loads: static imports and exports, types left out. By path, or by name. */
async function graphOf(entry: string): Promise<Map<string, string>> {
  const seen = new Map<string, string>();
  const todo: [string, string][] = [[entry, "the entry"]];
  for (let next = todo.pop(); next; next = todo.pop()) {
    const [module, from] = next;
    if (seen.has(module)) continue;
    seen.set(module, from);
    if (!module.startsWith("/")) continue;
    const source = await readFile(module, "utf8");
    const statement = /^(?:import|export)\s+(?!type\b)(?:[^"';]*?\sfrom\s+)?"([^"]+)"/gm;
    for (const [, specifier] of source.matchAll(statement)) {
      todo.push([specifier!.startsWith(".") ? join(dirname(module), specifier!) : specifier!, module]);
    }
  }
  return seen;
}

describe("the handler elsewhere", () => {
  it("loading mod.ts loads no file system, no database, no server and no driver", async () => {
    const graph = await graphOf(join(root, "mod.ts"));
    assert.ok(graph.has(join(root, "src/http/app.ts")), "the walk sees the doors");
    assert.ok(graph.has("hono") && graph.has("valibot"), "the walk sees packages");
    const unwanted = [...graph].filter(([module]) =>
      /^(node:)?(fs|fs\/promises|sqlite|http|https|http2|net|child_process|worker_threads|cluster|zlib|process)$/
        .test(module) ||
      module === "@hono/node-server" || module.startsWith(join(root, "drivers")) ||
      module.startsWith(join(root, "src/cli"))
    );
    assert.deepEqual(unwanted, []);
  });
});
