// `deno task requirements`: lists each requirement id that no test names. A test names an id in its title ("C6: a torn last
// frame is not read"). Exits 1 where one is missing.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** How many requirements each chapter has: D is the design, A agents, S what is kept, C conversations, W the window, T tools. */
const chapters = { D: 9, A: 8, S: 15, C: 16, W: 13, T: 10 } as const;

const tests = fileURLToPath(new URL("../tests/", import.meta.url));
const named = new Set(
  readdirSync(tests, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .flatMap((path) => titles(readFileSync(join(tests, path), "utf8")))
    .flatMap((title) => title.match(/\b[DASCWT]\d{1,2}\b/g) ?? []),
);
const all = Object.entries(chapters).flatMap(([chapter, count]) =>
  Array.from({ length: count }, (_, index) => `${chapter}${index + 1}`)
);
const missing = all.filter((id) => !named.has(id));
if (missing.length > 0) console.error(`No test names ${missing.join(", ")}.`);
else console.log(`Each of the ${all.length} requirements is named by a test.`);
process.exitCode = missing.length > 0 ? 1 : 0;

/** The titles of a file's tests, also of those that a function of the suite is given as a string. */
function titles(source: string): string[] {
  return [...source.matchAll(/\b(?:describe|it|test)\(\s*(["'`])((?:\\.|(?!\1)[^\\])*)\1/g)].map((found) =>
    found[2]!
  );
}
