// An MCP server to be scripted: well-behaved until a script says otherwise, counting what it is asked. Speaks both eras of the
// protocol. It is written by hand, without any MCP package, so that it can also do what no such package would.
//
//   const server = await mcpDouble({ tools: [{ name: "note" }], on: { "tools/call": (x) => x.drop() } });
//   server.url, server.asked, server.calls, server.sessions, await server.close()
//
// Started as a program it is the same server in a process of its own, for tests that kill what calls it:
//
//   RUNTIME tests/doubles/mcp.ts CALLS_FILE
//
// prints one line `{"url","pid"}`. It offers `note` (answers with the count of its calls) and `never` (never answers). Each
// call is a line of JSON in CALLS_FILE, on the disk before it is answered: `{"name","arguments","thread","key"}`. The argument
// `ms` delays an answer, and `text` is said back in it.

import { appendFileSync, closeSync, fdatasyncSync, openSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { pathToFileURL } from "node:url";

/** A JSON-RPC message. */
export interface Message {
  jsonrpc?: string;
  id?: number | string;
  method?: string;
  params?: Record<string, unknown> & { _meta?: Record<string, unknown> };
  result?: unknown;
  error?: { code: number; message: string };
}

/** One HTTP request, as it came. */
export interface Asked {
  http: string;
  path: string;
  headers: IncomingMessage["headers"];
  session?: string;
  message?: Message;
}

/** A server's stream of events that answers a request. */
export interface Events {
  send(message: unknown, id?: string): void;
  raw(text: string): void;
  end(): void;
}

/** One request and the ways to answer it. */
export interface Exchange extends Asked {
  /** Resolves when the connection of this request has closed. */
  gone: Promise<void>;
  result(result: unknown): void;
  error(code: number, message: string, status?: number): void;
  status(status: number, body?: string, type?: string): void;
  redirect(to: string): void;
  events(): Events;
  /** Cuts the connection. */
  drop(): void;
}

/** Answers one kind of request; `"default"` leaves it to the double. */
export type Behaviour = (exchange: Exchange) => unknown;

export interface Script {
  era?: "legacy" | "modern" | "both";
  instructions?: string;
  tools?: unknown[];
  /** By JSON-RPC method, or by HTTP method for GET and DELETE. */
  on?: Record<string, Behaviour>;
}

export interface Double {
  readonly url: string;
  readonly script: Script;
  /** Every HTTP request, in order. */
  readonly asked: Asked[];
  /** The `tools/call` messages among them. */
  readonly calls: Message[];
  /** Sessions that live. */
  readonly sessions: Set<string>;
  /** Sessions that were ended by DELETE. */
  readonly ended: string[];
  /** How often this JSON-RPC or HTTP method was asked. */
  count(method: string): number;
  /** Forgets every session, as a server that was started anew. */
  restart(): void;
  close(): Promise<void>;
}

/** Starts a double on a free port of the loopback. */
export async function mcpDouble(script: Script = {}): Promise<Double> {
  const asked: Asked[] = [], calls: Message[] = [], ended: string[] = [], sessions = new Set<string>();
  let made = 0;

  const server = createServer(async (request, response) => {
    const session = request.headers["mcp-session-id"] as string | undefined;
    const one: Asked = {
      http: request.method!,
      path: request.url!,
      headers: request.headers,
      ...(session === undefined ? {} : { session }),
    };
    asked.push(one);
    if (request.method === "POST") {
      const body = await readBody(request);
      if (body === undefined) return;
      one.message = JSON.parse(body) as Message;
      if (one.message.method === "tools/call") calls.push(one.message);
    }
    const exchange = exchangeOf(one, request, response);
    const behaviour = script.on?.[one.message?.method ?? request.method!];
    if (behaviour && await behaviour(exchange) !== "default") return;
    standard(exchange, response);
  });

  function standard(x: Exchange, response: ServerResponse): void {
    const modern = isModern(x);
    if (modern && script.era !== "modern" && script.era !== "both") {
      return x.error(-32000, "Bad Request: no session", 400);
    }
    if (!modern && script.era === "modern") return x.error(-32022, "Unsupported protocol version", 400);
    if (x.message?.method === "initialize") {
      const id = `s${++made}`;
      sessions.add(id);
      response.setHeader("mcp-session-id", id);
      return x.result({
        protocolVersion: "2025-11-25",
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: "double", version: "1" },
        ...(script.instructions === undefined ? {} : { instructions: script.instructions }),
      });
    }
    if (!modern && (x.session === undefined || !sessions.has(x.session))) {
      return x.error(-32001, "Session not found", 404);
    }
    if (x.http === "DELETE") {
      sessions.delete(x.session!);
      ended.push(x.session!);
      return x.status(200);
    }
    if (x.http === "GET") {
      x.events();
      return;
    }
    if (x.message?.id === undefined || x.message.method === undefined) return x.status(202);
    switch (x.message.method) {
      case "server/discover":
        return x.result({
          supportedVersions: ["2026-07-28"],
          capabilities: { tools: { listChanged: true } },
          ...(script.instructions === undefined ? {} : { instructions: script.instructions }),
          ttlMs: 0,
          cacheScope: "private",
        });
      case "tools/list":
        return x.result({ tools: script.tools ?? [{ name: "note" }], ttlMs: 0, cacheScope: "private" });
      case "tools/call":
        return x.result({ content: [{ type: "text", text: `call ${calls.length}` }] });
      default:
        return x.error(-32601, "Method not found");
    }
  }

  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    script,
    asked,
    calls,
    sessions,
    ended,
    count: (method) => asked.filter((one) => (one.message?.method ?? one.http) === method).length,
    restart: () => sessions.clear(),
    close: () =>
      new Promise<void>((done) => {
        server.closeAllConnections();
        server.close(() => done());
      }),
  };
}

function exchangeOf(one: Asked, request: IncomingMessage, response: ServerResponse): Exchange {
  const id = one.message?.id;
  const json = (status: number, message: unknown) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(message));
  };
  return {
    ...one,
    gone: new Promise((done) => response.once("close", done)),
    result(result) {
      const whole = isModern(one) && isObject(result) ? { resultType: "complete", ...result } : result;
      json(200, { jsonrpc: "2.0", id, result: whole });
    },
    error: (code, message, status = 200) =>
      json(status, { jsonrpc: "2.0", id: id ?? null, error: { code, message } }),
    status: (status, body = "", type = "text/plain") => {
      response.writeHead(status, body === "" ? {} : { "content-type": type }).end(body);
    },
    redirect: (to) => {
      response.writeHead(307, { location: to }).end();
    },
    events() {
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
      return {
        send: (message, event) => {
          const head = event === undefined ? "" : `id: ${event}\n`;
          response.write(`${head}data: ${JSON.stringify(message)}\n\n`);
        },
        raw: (text) => response.write(text),
        end: () => response.end(),
      };
    },
    drop: () => request.socket.destroy(),
  };
}

/** Whether a request speaks the revision of 2026: it says its version in each message. */
function isModern({ headers, message }: Asked): boolean {
  const said = message?.params?._meta?.["io.modelcontextprotocol/protocolVersion"] ??
    headers["mcp-protocol-version"];
  return typeof said === "string" && said >= "2026";
}

/** The body; undefined where its sender went before its end. */
function readBody(request: IncomingMessage): Promise<string | undefined> {
  return new Promise((done) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk) => body += chunk);
    request.on("end", () => done(body));
    request.on("error", () => done(undefined));
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The program: notes each call in a file before it is answered. */
async function main(file: string): Promise<void> {
  const handle = openSync(file, "a");
  let count = 0;
  const server = await mcpDouble({
    tools: [
      {
        name: "note",
        description: "Counts its calls.",
        inputSchema: {
          type: "object",
          properties: { text: { type: "string" }, ms: { type: "number" } },
        },
      },
      { name: "never", description: "Never answers.", inputSchema: { type: "object", properties: {} } },
    ],
    on: {
      async "tools/call"(x) {
        const { name, arguments: given = {}, _meta = {} } = x.message!.params! as {
          name: string;
          arguments?: { text?: string; ms?: number };
          _meta?: Record<string, unknown>;
        };
        const line = { name, arguments: given, thread: _meta["link/thread"], key: _meta["link/key"] };
        appendFileSync(handle, `${JSON.stringify(line)}\n`);
        fdatasyncSync(handle);
        const said = `${given.text === undefined ? "" : `${given.text}: `}call ${++count}`;
        if (name === "never") return;
        if (given.ms) await new Promise((done) => setTimeout(done, given.ms));
        x.result({ content: [{ type: "text", text: said }] });
      },
    },
  });
  console.log(JSON.stringify({ url: server.url, pid: process.pid }));
  process.once("SIGTERM", async () => {
    await server.close();
    closeSync(handle);
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main(process.argv[2]!);
