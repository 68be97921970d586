// Which MCP servers an agent has: from the environment, the agent's own table and its settings. Pure. An address is a secret
// (paths, queries and passwords in it let a caller in): it stands behind a function, so that no print of a server shows it.

import { createHash } from "node:crypto";

/** One MCP server, by the name that its tool is offered under. */
export interface Server {
  tool: string;
  /** SHA-256 of its address, hex: what it is told apart by. */
  hash: string;
  source: keyof ServerSources;
  /** Its session is kept between turns. */
  keeps: boolean;
  /** Where it is. Never printed. */
  reach(): Reach;
}

export interface Reach {
  url: URL;
  headers: Record<string, string>;
  /** Parts of the address that nobody may see, wherever a text repeats them. */
  secrets: string[];
}

/** Where servers are named, by tool; a later source counts over an earlier one. */
export interface ServerSources {
  /** `LNK_TOOL_<NAME>`, `LNK_MEMORY` and so on. */
  environment?: Readonly<Record<string, string | undefined>>;
  /** The agent's own table: of the agents file, or of its binding. */
  agent?: Readonly<Record<string, string>>;
  /** The settings' `[tools]`. */
  settings?: Readonly<Record<string, string>>;
}

/** The servers, sorted by tool, and the names that could not be taken. */
export function serversOf(
  sources: ServerSources,
): { servers: Server[]; refused: { name: string; why: string }[] } {
  const servers = new Map<string, Server>();
  const refused: { name: string; why: string }[] = [];
  const add = (source: keyof ServerSources, name: string, tool: string, address: string) => {
    const why = faultOf(tool, address);
    if (why === undefined) servers.set(tool, serverAt(source, tool, address));
    else refused.push({ name, why });
  };
  for (const [variable, address] of Object.entries(sources.environment ?? {}).sort(byName)) {
    const tool = toolOf(variable);
    if (tool !== undefined && address) add("environment", variable, tool, address);
  }
  for (const source of ["agent", "settings"] as const) {
    for (const [name, address] of Object.entries(sources[source] ?? {}).sort(byName)) {
      if (address) add(source, name, name.toLowerCase(), address);
    }
  }
  return { servers: [...servers.values()].sort((a, b) => a.tool < b.tool ? -1 : 1), refused };
}

/**
 * Those of a process's variables that name tools. Asked for by name where they have one: a process that may not list its
 * variables may still be allowed to see these.
 */
export function toolVariables(
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string | undefined> {
  const names = Object.keys(environment).filter((name) => name.startsWith(prefix));
  return Object.fromEntries([...names, ...ownVariables].map((name) => [name, environment[name]]));
}

const prefix = "LNK_TOOL_";

/** Variables that name a tool without the prefix. */
const ownVariables = ["LNK_MEMORY", "LNK_SCHEDULER", "LNK_RUN", "LNK_FILE", "LNK_CODE"];

/** Tools that keep nothing of one conversation in their session, so that one of them serves all conversations. */
const keptTools = new Set(["memory", "scheduler", "run", "file", "code", "task"]);

/** The tool that a variable names: `LNK_TOOL_ATLAS_MEMORY` is `atlas_memory`. */
function toolOf(variable: string): string | undefined {
  if (ownVariables.includes(variable)) return variable.slice("LNK_".length).toLowerCase();
  return variable.startsWith(prefix) ? variable.slice(prefix.length).toLowerCase() : undefined;
}

function faultOf(tool: string, address: string): string | undefined {
  if (!/^[a-z0-9](?:_?[a-z0-9-])*$/.test(tool)) return "no tool's name: a-z, 0-9, - and single _";
  if (!/^https?:$/.test(URL.parse(address)?.protocol ?? "")) return "no http or https address";
  return undefined;
}

function serverAt(source: keyof ServerSources, tool: string, address: string): Server {
  return {
    tool,
    hash: createHash("sha256").update(address).digest("hex"),
    source,
    keeps: keptTools.has(tool),
    reach: () => reachOf(address),
  };
}

/**
 * An address, taken apart. A user and password in it become a header, for `fetch` refuses an address with a password and
 * would name it. Further headers stand in its fragment, which is never sent: `http://…/mcp#Authorization=Bearer+abc`.
 */
function reachOf(address: string): Reach {
  const url = new URL(address);
  const headers: Record<string, string> = {};
  const [user, password] = [decoded(url.username), decoded(url.password)];
  if (user || password) {
    const pair = new TextEncoder().encode(`${user}:${password}`);
    headers.authorization = `Basic ${btoa(String.fromCharCode(...pair))}`;
  }
  for (const [name, value] of new URLSearchParams(url.hash.slice(1))) {
    if (/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) && /^[\x20-\x7e\x80-\xff]*$/.test(value)) {
      headers[name.toLowerCase()] = value;
    }
  }
  const long = url.pathname.split("/").filter((part) => part.length >= 12);
  const secrets = [
    ...[address, url.host, user, password, ...url.searchParams.values()],
    ...[url.username, url.password, ...long, ...long.map(decoded)],
    ...Object.values(headers).flatMap((value) => [value, value.replace(/^\w+ /, "")]),
  ];
  url.username = url.password = url.hash = "";
  secrets.push(url.href);
  return { url, headers, secrets: secrets.filter((secret) => secret.length >= 4) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function byName([a]: [string, unknown], [b]: [string, unknown]): number {
  // The variables without the prefix come last, and so count over `LNK_TOOL_MEMORY`.
  const own = Number(ownVariables.includes(a)) - Number(ownVariables.includes(b));
  return own || (a < b ? -1 : a > b ? 1 : 0);
}
