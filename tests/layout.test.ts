// The layout of the source, checked against ARCHITECTURE.md: who may import whom, and what each folder may touch.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix, relative, sep } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Files that may be longer than 400 lines, each with its reason. */
const longFiles: Record<string, string> = {};

/** Platform modules that only the program and the folder store may need; the public surface is to run without them. */
const onlyFetch = /^node:(fs|http|https|net|child_process|worker_threads|sqlite|os|tty|readline)\b/;

interface Import {
  from: string;
  /** As written. */
  to: string;
  typeOnly: boolean;
  dynamic: boolean;
}

const layers = readLayers();
const files = ["mod.ts", ...sources("src"), ...sources("drivers")];
const imports = files.flatMap(importsOf);

describe("layout", () => {
  it("names in ARCHITECTURE.md every folder of src", () => {
    const folders = new Set(files.filter((file) => file.startsWith("src/")).map(layerOf));
    assert.deepEqual([...folders].filter((folder) => !layers.has(folder)), []);
  });

  it("imports only downwards, as ARCHITECTURE.md draws it; folders in braces never import one another", () => {
    const wrong = imports.filter(({ from, to }) => {
      const target = resolve(from, to);
      if (!from.startsWith("src/") || !target?.startsWith("src/")) return false;
      const [here, there] = [layerOf(from), layerOf(target)];
      return here !== there && layers.get(there)! >= layers.get(here)!;
    });
    assert.deepEqual(wrong, []);
  });

  it("gives each relative import the ending of its file, so that Node runs the source as it is", () => {
    const wrong = imports.filter(({ from, to }) =>
      to.startsWith(".") && (!/\.(ts|json)$/.test(to) || !existsSync(join(root, resolve(from, to)!)))
    );
    assert.deepEqual(wrong, []);
  });

  it("lets a driver import the store's types and the ground, and nobody import a driver statically", () => {
    const wrong = imports.filter(({ from, to, typeOnly, dynamic }) => {
      const target = resolve(from, to);
      if (target === undefined) return false;
      if (!from.startsWith("drivers/")) return target.startsWith("drivers/") && !dynamic;
      const [, own] = from.split("/");
      if (target.startsWith(`drivers/${own}/`)) return false;
      if (target === "src/store/seams.ts") return !typeOnly;
      return target !== "src/errors.ts" && target !== "src/limits.ts";
    });
    assert.deepEqual(wrong, []);
  });

  it("keeps mod.ts free of servers, files and drivers: nothing that it loads at once needs more than fetch", () => {
    const seen = new Set<string>(), wrong: Import[] = [];
    const visit = (file: string) => {
      if (seen.has(file)) return;
      seen.add(file);
      for (const found of imports.filter(({ from }) => from === file)) {
        if (found.typeOnly || found.dynamic) continue;
        if (onlyFetch.test(found.to) || found.to === "@hono/node-server") wrong.push(found);
        const target = resolve(file, found.to);
        if (target) visit(target);
      }
    };
    visit("mod.ts");
    assert.deepEqual(wrong, []);
  });

  it("leaves ports, sockets and the environment to the program alone", () => {
    const ports = imports.filter(({ from, to, typeOnly }) =>
      from.startsWith("src/") && layerOf(from) !== "cli" && !typeOnly &&
      /^(node:(http|https|net|tls)|@hono\/node-server)$/.test(to)
    );
    assert.deepEqual(ports, []);
    const environment = files.filter((file) =>
      file.startsWith("src/") && layerOf(file) !== "cli" && /\bprocess\.env\b/.test(code(file))
    );
    assert.deepEqual(environment, []);
  });

  it("speaks of `Deno` in one file at most", () => {
    const speaking = files.filter((file) => /\bDeno\./.test(code(file)));
    assert.ok(speaking.length <= 1, speaking.join(", "));
  });

  it("holds one idea a file: none over 400 lines without a reason, and each opens with what lives there", () => {
    const long = files.filter((file) => text(file).split("\n").length > 401 && !longFiles[file]);
    assert.deepEqual(long, []);
    assert.deepEqual(Object.keys(longFiles).filter((file) => !files.includes(file)), []);
    const mute = files.filter((file) => !/^(#!.*\n)?(\/\/|\/\*\*)/.test(text(file)));
    assert.deepEqual(mute, []);
  });
});

/** Each folder's place in the direction block: an import goes from a higher number to a lower one. */
function readLayers(): Map<string, number> {
  const block = /```direction\n([\s\S]*?)```/.exec(text("ARCHITECTURE.md"));
  assert.ok(block, "ARCHITECTURE.md has a block ```direction");
  const places = new Map<string, number>();
  block[1]!.split("<").forEach((names, place) => {
    for (const name of names.match(/[a-z]+/g) ?? []) places.set(name, place);
  });
  return places;
}

function layerOf(file: string): string {
  const parts = file.split("/");
  return parts.length === 2 ? "ground" : parts[1]!;
}

function resolve(from: string, to: string): string | undefined {
  return to.startsWith(".") ? posix.normalize(posix.join(posix.dirname(from), to)) : undefined;
}

function sources(folder: string): string[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .sort();
}

function text(file: string): string {
  return readFileSync(join(root, file), "utf8");
}

/** The file without its comments. */
function code(file: string): string {
  return ts.transpileModule(text(file), {
    compilerOptions: { removeComments: true, target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext },
  }).outputText;
}

function importsOf(file: string): Import[] {
  const tree = ts.createSourceFile(join(dirname(file), file), text(file), ts.ScriptTarget.ESNext);
  const found: Import[] = [];
  const visit = (node: ts.Node) => {
    if (
      (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier &&
      ts.isStringLiteral(node.moduleSpecifier)
    ) {
      found.push({
        from: file,
        to: node.moduleSpecifier.text,
        typeOnly: onlyTypes(node),
        dynamic: false,
      });
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      const [to] = node.arguments;
      if (to && ts.isStringLiteral(to)) {
        found.push({ from: file, to: to.text, typeOnly: false, dynamic: true });
      }
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      const { literal } = node.argument;
      if (ts.isStringLiteral(literal)) {
        found.push({ from: file, to: literal.text, typeOnly: true, dynamic: false });
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return found;
}

function onlyTypes(node: ts.ImportDeclaration | ts.ExportDeclaration): boolean {
  if (ts.isExportDeclaration(node)) {
    const named = node.exportClause && ts.isNamedExports(node.exportClause) ? node.exportClause.elements : [];
    return node.isTypeOnly || (named.length > 0 && named.every((element) => element.isTypeOnly));
  }
  const clause = node.importClause;
  if (!clause) return false;
  if (clause.isTypeOnly) return true;
  const named = clause.namedBindings && ts.isNamedImports(clause.namedBindings)
    ? clause.namedBindings.elements
    : [];
  return !clause.name && named.length > 0 && named.every((element) => element.isTypeOnly);
}
