// The program as its users have it: a process of its own on the runtime that runs the test, in a home that is removed after.
// Beside it a model of the test's own, which answers when it is told to.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

export const isDeno = "deno" in process.versions;
const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

const homes: string[] = [];
const children = new Set<ChildProcess>();
const models: Server[] = [];
after(async () => {
  for (const child of children) child.kill("SIGKILL");
  for (const model of models) {
    model.closeAllConnections();
    model.close();
  }
  for (const home of homes) rmSync(home, { recursive: true, force: true });
});

/** A new, empty home. */
export function newHome(): string {
  const home = mkdtempSync(join(tmpdir(), "lnk-cli-"));
  homes.push(home);
  return home;
}

/** A home with an agent in it that is answered by the built-in model, whatever this machine has. */
export function homeOf(agent: string): string {
  const home = newHome();
  mkdirSync(join(home, agent));
  writeFileSync(join(home, agent, "config.json"), JSON.stringify({ model: { name: "demo/echo" } }));
  return home;
}

export interface RunOptions {
  home: string;
  env?: Record<string, string>;
  stdin?: string;
  /** What Deno is allowed, in place of everything. */
  allow?: string[];
}

export interface Running {
  pid: number;
  /** Sends it a signal. Not by the child's own `kill`, after which Deno reports the signal whatever the exit code was. */
  kill(signal: NodeJS.Signals): void;
  out(): string;
  err(): string;
  /** Once `text` stands in stdout or stderr. Fails where the process ends before. */
  says(text: string | RegExp): Promise<void>;
  /** Its exit code; the signal's name where one ended it. */
  readonly ended: Promise<number | string>;
}

/** Starts the program with these arguments. */
export function start(args: string[], { home, env = {}, stdin, allow = ["-A"] }: RunOptions): Running {
  const [path, before] = isDeno
    ? [process.execPath, ["run", "--quiet", "--no-prompt", ...allow]]
    : [process.execPath, ["--experimental-strip-types", "--disable-warning=ExperimentalWarning"]];
  const child = spawn(path, [...before, main, ...args], {
    env: { ...bareEnvironment(), LNK_HOME: home, ...env },
    stdio: [stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
  });
  children.add(child);
  let out = "", err = "", over = false;
  let changed = () => {};
  const watch = (add: (text: string) => void) => (chunk: string) => {
    add(chunk);
    changed();
  };
  child.stdout!.setEncoding("utf8").on("data", watch((text) => out += text));
  child.stderr!.setEncoding("utf8").on("data", watch((text) => err += text));
  child.stdin?.end(stdin);
  const ended = new Promise<number | string>((done) =>
    child.on("close", (code, signal) => {
      children.delete(child);
      over = true;
      changed();
      done(code ?? signal ?? "?");
    })
  );
  return {
    pid: child.pid!,
    kill: (signal) => void process.kill(child.pid!, signal),
    out: () => out,
    err: () => err,
    ended,
    async says(text) {
      const said = () =>
        [out, err].some((all) => typeof text === "string" ? all.includes(text) : text.test(all));
      while (!said()) {
        assert.ok(!over, `ended without saying ${text}:\n${out}\n${err}`);
        await new Promise<void>((next) => changed = next);
      }
    },
  };
}

/** Runs it to its end. */
export async function run(
  args: string[],
  options: RunOptions,
): Promise<{ code: number | string; out: string; err: string }> {
  const running = start(args, options);
  const code = await running.ended;
  return { code, out: running.out(), err: running.err() };
}

export interface Serving extends Running {
  url: string;
  port: number;
  key: string;
}

/** Starts `serve --json` and waits until it can be asked. */
export async function serve(agent: string, args: string[], options: RunOptions): Promise<Serving> {
  const running = start(["serve", agent, "--json", ...args], options);
  await running.says(/"url":.*\n/);
  const { url } = JSON.parse(running.out().split("\n")[0]!);
  const key = readFileSync(join(options.home, agent, "key"), "utf8").trim();
  return { ...running, url, port: Number(new URL(url).port), key };
}

export interface Asked {
  status: number;
  // deno-lint-ignore no-explicit-any -- tests look into it freely
  body: any;
}

/** Asks on a connection of its own, closed after: an idle one would keep a process that ends waiting for it. */
export function ask(url: string, key?: string, body?: unknown): Promise<Asked> {
  const headers = { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}) };
  return new Promise((done, refuse) => {
    const method = body === undefined ? "GET" : "POST";
    const asked = request(url, { method, headers, agent: false }, async (response) => {
      try {
        let text = "";
        for await (const chunk of response.setEncoding("utf8")) text += chunk;
        done({ status: response.statusCode!, body: JSON.parse(text) });
      } catch (error) {
        refuse(error);
      }
    });
    asked.on("error", refuse);
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** Sends a message to a served agent. */
export function turn(
  to: { url: string; key: string },
  thread: string,
  text: string,
  id?: string,
): Promise<Asked> {
  return ask(`${to.url}/asp/turn`, to.key, {
    thread,
    message: { text, ...(id === undefined ? {} : { id }) },
  });
}

/** A model that answers `said N` once it is let; its address for LNK_MODEL_URL. */
export async function slowModel(): Promise<
  { env: Record<string, string>; asked(count: number): Promise<void>; answer(): void }
> {
  const waiting: ServerResponse[] = [];
  let count = 0, open = false;
  let came = () => {};
  const answer = (response: ServerResponse) => {
    const chunk = {
      id: "r",
      model: "slow",
      choices: [{ index: 0, delta: { content: `said ${++count}` }, finish_reason: "stop" }],
    };
    response.end(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
  };
  let asks = 0;
  const server = createServer((request, response) => {
    request.resume();
    if (request.method === "GET") return response.end(JSON.stringify({ data: [{ id: "slow" }] }));
    asks++;
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    if (open) answer(response);
    else waiting.push(response);
    came();
  });
  models.push(server);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    env: { LNK_MODEL_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` },
    async asked(wanted) {
      while (asks < wanted) await new Promise<void>((next) => came = next);
    },
    /** Answers whatever waits and comes. */
    answer() {
      open = true;
      for (const response of waiting.splice(0)) answer(response);
    },
  };
}

/** No model's key and no agent's home of whoever runs the tests; no model found on this machine. */
function bareEnvironment(): Record<string, string> {
  const kept = ["PATH", "HOME", "DENO_DIR", "TMPDIR", "SystemRoot"];
  return Object.fromEntries(kept.flatMap((name) => process.env[name] ? [[name, process.env[name]!]] : []));
}
