// Makes the npm package in npm/: ESM, types and the program, from the sources as they are. package.json comes from
// npm/package.template.json and deno.json; dependencies are the packages that the built code imports.
//
// TypeScript itself does the work. dnt would do more, but is published on JSR only; `deno pack` (2.9) writes no `bin`,
// leaves computed imports at `.ts`, and drops all types for one slow one. Either would take this file's place once it does not.

import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Builds the package in `folder`, in place of what was built there. Throws where the sources have type errors. */
export function buildNpm(folder: string): void {
  for (const built of ["esm", "bin"]) rmSync(join(folder, built), { recursive: true, force: true });
  compile(join(folder, "esm"));
  mkdirSync(join(folder, "bin"), { recursive: true });
  writeFileSync(join(folder, "bin", "lnk-link-harness.js"), bin, { mode: 0o755 });
  writeFileSync(join(folder, "package.json"), packageJson(join(folder, "esm")));
  for (const file of ["LICENSE", "CHANGELOG.md", "npm/README.md"]) {
    const to = join(folder, file.split("/").at(-1)!);
    if (join(root, file) !== to) cpSync(join(root, file), to);
  }
}

function compile(outDir: string): void {
  const config = JSON.parse(read("deno.json"));
  const { options, errors } = ts.convertCompilerOptionsFromJson({
    ...config.compilerOptions,
    target: "es2023",
    lib: ["es2024", "esnext"],
    module: "nodenext",
    rewriteRelativeImportExtensions: true,
    declaration: true,
    skipLibCheck: true,
    rootDir: root,
    outDir,
  }, root);
  const program = ts.createProgram(entries(), options);
  const { diagnostics } = program.emit();
  const found = [...errors, ...ts.getPreEmitDiagnostics(program), ...diagnostics];
  if (found.length > 0) throw new Error(ts.formatDiagnostics(found, host));
}

/** What must be in the package, though nothing imports it statically. */
function entries(): string[] {
  const drivers = readdirSync(join(root, "drivers")).map((name) => join("drivers", name, "mod.ts"));
  return ["mod.ts", "src/cli/main.ts", ...drivers].map((file) => join(root, file));
}

function packageJson(esm: string): string {
  const { version, license, imports } = JSON.parse(read("deno.json"));
  const dependencies: Record<string, string> = {};
  for (const name of packagesOf(esm)) {
    const range = /^npm:.+@(.+)$/.exec(imports[name] ?? "")?.[1];
    if (!range) throw new Error(`The code imports ${name}, which the imports of deno.json do not name.`);
    dependencies[name] = range;
  }
  const { name, ...template } = JSON.parse(read("npm/package.template.json"));
  return JSON.stringify({ name, version, license, ...template, dependencies }, null, 2) + "\n";
}

/** The packages that the built code imports, sorted. */
function packagesOf(esm: string): string[] {
  const names = new Set<string>();
  for (const file of readdirSync(esm, { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".js")) continue;
    const { importedFiles } = ts.preProcessFile(readFileSync(join(esm, file), "utf8"), true, true);
    for (const { fileName } of importedFiles) {
      const name = /^(@[^/]+\/[^/]+|[^./][^/]*)/.exec(fileName)?.[1];
      if (name && !name.startsWith("node:")) names.add(name);
    }
  }
  return [...names].sort();
}

const bin = `#!/usr/bin/env node
// Says so where this Node is too old to load the program at all.
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 15)) {
  console.error(\`lnk-link-harness: Node \${process.versions.node} is too old; use 22.15 or later.\`);
  process.exit(1);
}
await import("../esm/src/cli/main.js");
`;

const host: ts.FormatDiagnosticsHost = {
  getCanonicalFileName: (name) => name,
  getCurrentDirectory: () => root,
  getNewLine: () => "\n",
};

function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

if (import.meta.main) {
  buildNpm(join(root, "npm"));
  console.log("npm/ holds the package; try `npm pack ./npm`.");
}
