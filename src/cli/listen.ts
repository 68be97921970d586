// A port: listens, hands each request to a handler, and stops in a way that loses none. The same on Deno and Node.

import { getRequestListener, RequestError } from "@hono/node-server";
import { createServer } from "node:http";
import type { AddressInfo, Server, Socket } from "node:net";
import { asFailure, Failure } from "../errors.ts";

export interface Listening {
  host: string;
  port: number;
  /** `http://HOST:PORT`. */
  origin: string;
  /** Takes no new connection, once it resolves. Requests on the connections there are are answered still. */
  stop(): Promise<void>;
  /** Settled when the clients of a stopped port have closed all their connections. */
  gone(): Promise<void>;
  /** Cuts what is left. */
  cut(): void;
}

export interface ListenOptions {
  host: string;
  /** 0: any. */
  port: number;
  /** Who asked for the port, for the message where it is taken. */
  agent?: string;
  fetch(request: Request): Response | Promise<Response>;
}

/** Throws `port_taken`, or `usage` where that address cannot be listened on at all. */
export async function listen({ host, port, agent, fetch }: ListenOptions): Promise<Listening> {
  const server = createServer(getRequestListener(fetch, { overrideGlobalObjects: false, errorHandler }));
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  await opened(server, host, port, agent);
  const address = server.address() as AddressInfo;
  const name = address.family === "IPv6" ? `[${address.address}]` : address.address;

  return {
    host: address.address,
    port: address.port,
    origin: `http://${name}:${address.port}`,
    stop: () => stopped(server, sockets),
    gone: () => gone(sockets),
    cut() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

function opened(server: Server, host: string, port: number, agent: string | undefined): Promise<void> {
  return new Promise((done, refuse) => {
    server.once("error", (error: Error & { code?: string }) => {
      if (error.code === "EADDRINUSE") refuse(new Failure("port_taken", { port, agent }, { cause: error }));
      else {
        const say = `Cannot listen on ${host} port ${port} (${
          error.code ?? error.message
        }); choose others with --host and --port.`;
        refuse(new Failure("usage", { say }, { cause: error }));
      }
    });
    server.listen(port, host, done);
  });
}

/** Stops listening. The platform's own `close` would close the idle connections at once. */
async function stopped(server: Server, sockets: Set<Socket>): Promise<void> {
  // Whoever connected before the stop is taken first: the system may hold some that the loop has not come to.
  for (let turns = 0; turns < 2; turns++) await new Promise((next) => setImmediate(next));
  const { _handle: handle } = server as { _handle?: { close(): void } | null };
  if (handle) handle.close();
  else server.close();
  // An idle connection is its client's to close.
  (server as { keepAliveTimeout?: number }).keepAliveTimeout = 0;
  for (const socket of sockets) socket.setTimeout(0);
}

async function gone(sockets: Set<Socket>): Promise<void> {
  await Promise.all([...sockets].map((socket) => new Promise((done) => socket.once("close", done))));
}

/** What never became a request of ours (a broken Host header, say), in the form of every error. */
function errorHandler(error: unknown): Response {
  const failure = error instanceof RequestError
    ? new Failure("invalid", { say: `The request is not valid HTTP (${error.message}); mend it.` })
    : asFailure(error);
  return Response.json(failure.form(), { status: failure.status });
}
