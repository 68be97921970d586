// What the tests of the doors stand on: a handler over scripted turns and conversations in memory, asked directly or through
// a real socket. No test is here.

import { getRequestListener } from "@hono/node-server";
import { createParser } from "eventsource-parser";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { once } from "node:events";
import type { Agent } from "../../src/agent/agent.ts";
import { configInMemory } from "../../src/agent/config.ts";
import { newKey } from "../../src/agent/keys.ts";
import type { Spec } from "../../src/agent/settings.ts";
import type { Clock } from "../../src/clock.ts";
import { Failure } from "../../src/errors.ts";
import { createHandler, type Handler } from "../../src/http/handler.ts";
import type { ConversationStore, OpenConversation } from "../../src/store/seams.ts";
import { noTools } from "../../src/tools/tools.ts";
import type { Caller, HandedOver, News, Say } from "../../src/turn/news.ts";
import type { Turns } from "../../src/turn/turns.ts";

/** A script of one turn: tells its caller, and may go on after. Throwing before anything is told keeps nothing. */
export type Script = (caller: Caller, say: Say, agent: Agent) => Promise<void> | void;

export interface Rig {
  handler: Handler;
  agents: Map<string, Agent>;
  /** Lines of each agent's conversations, `damaged` ones failing at their last line. */
  logs: Map<string, string[]>;
  open: OpenConversation[];
  /** What the turns were asked. */
  said: Say[];
  ended: string[];
  recovers: { keep?: boolean; taken?: string[] }[];
  handed: number;
  script: Script;
  waiting: HandedOver[];
  running: number;
  notices: string[];
  ask(method: string, path: string, options?: AskOptions): Promise<Response>;
}

export interface AskOptions {
  key?: string | null;
  body?: unknown;
  raw?: BodyInit;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export const answer: News & { type: "answer" } = {
  type: "answer",
  id: "answer-1",
  turn: "turn_1",
  thread: "telegram:42",
  seq: 2,
  messages: ["m1"],
  text: "Hello.",
  model: "demo/echo",
  provider: "demo",
  tokens: { input: 3, output: 1 },
  ms: 5,
  rounds: 1,
  calls: 0,
  stop: "end",
};
export const start: News & { type: "start" } = {
  type: "start",
  turn: "turn_1",
  thread: "telegram:42",
  seq: 1,
};

export function makeRig(names: string[] = ["mia", "leo"], options: { clock?: Clock; spec?: Spec } = {}): Rig {
  const rig = {
    agents: new Map<string, Agent>(),
    logs: new Map<string, string[]>(),
    open: [],
    said: [],
    ended: [],
    recovers: [],
    handed: 0,
    waiting: [],
    running: 0,
    notices: [],
    script: (caller: Caller) => {
      caller.tell(start);
      caller.tell(answer);
    },
  } as unknown as Rig;
  for (const name of names) rig.agents.set(name, makeAgent(name, rig, options.spec ?? {}));
  const turns: Turns = {
    async say(agent, say, caller) {
      rig.said.push(say);
      await rig.script(caller, say, agent);
      return { work: Promise.resolve() };
    },
    end: async (_, thread) => rig.ended.push(thread) > 0,
    async recover(_, request) {
      rig.recovers.push(request);
      return {
        answers: rig.waiting,
        finishing: 0,
        handed: async (whole) => void (rig.handed += whole && !request.keep ? 1 : 0),
      };
    },
    fork: async () => ({ events: 1 }),
    remove: async () => {},
    whole: (_agent, _thread, work) => work(),
    running: () => rig.running,
    drain: async () => ({ left: 0 }),
    sweep: async () => ({ finishing: 0 }),
    drop: () => {},
  };
  rig.handler = createHandler({
    agents: { get: (name) => rig.agents.get(name), list: () => rig.agents.values() },
    turns,
    version: "0.0.0-test",
    notify: (_, sentence, facts) => void rig.notices.push(`${sentence} ${JSON.stringify(facts ?? {})}`),
    ...(options.clock ? { clock: options.clock } : {}),
  });
  rig.ask = (method, path, asked = {}) => {
    const agent = /^\/agents\/([^/?]*)/.exec(path)?.[1];
    const key = asked.key === undefined ? rig.agents.get(agent ?? "")?.key : asked.key ?? undefined;
    const body = asked.raw ?? (asked.body === undefined ? undefined : JSON.stringify(asked.body));
    return rig.handler.fetch(
      new Request(`http://127.0.0.1${path}`, {
        method,
        headers: { ...(key === undefined ? {} : { authorization: `Bearer ${key}` }), ...asked.headers },
        ...(body === undefined ? {} : { body, duplex: "half" }),
        ...(asked.signal ? { signal: asked.signal } : {}),
      } as RequestInit),
    );
  };
  return rig;
}

function makeAgent(name: string, rig: Rig, spec: Spec): Agent {
  const config = configInMemory(spec);
  const conversations: Partial<ConversationStore> = {
    last: async (thread) => rig.logs.get(thread)?.length ?? 0,
    async *read(thread, from, to) {
      const lines = rig.logs.get(thread) ?? [];
      for (const line of lines.slice(from - 1, to)) {
        if (line === "damaged") {
          throw new Failure("log_damaged", {
            where: `${thread}, line ${lines.indexOf(line) + 1}`,
            why: "no JSON",
          });
        }
        yield line;
      }
    },
    readBack: async (thread, before, limit) =>
      (rig.logs.get(thread) ?? []).slice(0, before && before - 1).slice(-limit),
    async threads(after, limit) {
      const names = [...rig.logs.keys()].sort().filter((thread) => after === undefined || thread > after)
        .slice(0, limit);
      return names.map((thread) => ({
        thread,
        events: rig.logs.get(thread)!.length,
        storage: "log",
        updated: "2026-12-01T09:00:00.000Z",
        ...(rig.logs.get(thread)!.includes("damaged") ? { damage: "line 2: no JSON" } : {}),
      }));
    },
    open: async () => rig.open,
    close: async () => {},
  };
  return {
    name,
    key: newKey(),
    store: { conversations: conversations as ConversationStore, own: never("own"), files: never("files") },
    tools: noTools,
    config,
    settings: () => config.settings(),
    model: () => Promise.reject(new Failure("no_model", { why: "this is a test" })),
    fallback: async () => undefined,
    workspace: "/nowhere",
  };
}

function never(what: string): never {
  return new Proxy({}, {
    get() {
      throw new Error(`no ${what} in this rig`);
    },
  }) as never;
}

/** A served handler, as the program serves it. */
export interface Served {
  port: number;
  url: string;
  /** A raw connection on which `text` was sent. */
  send(text: string): Promise<Socket>;
  close(): Promise<void>;
}

export async function serve(
  handler: Handler,
  options: { overrideGlobalObjects?: boolean } = {},
): Promise<Served> {
  const server = createServer(
    getRequestListener((request) => handler.fetch(request), { overrideGlobalObjects: false, ...options }),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const sockets = new Set<Socket>();
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    async send(text) {
      const socket = connect(port, "127.0.0.1");
      sockets.add(socket);
      socket.on("error", () => {});
      await once(socket, "connect");
      socket.write(text);
      return socket;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

/** A turn's request as raw HTTP. */
export function rawTurn(key: string, options: { stream: boolean; agent?: string }): string {
  const body = JSON.stringify({ thread: "telegram:42", message: { text: "Hi" } });
  return [
    `POST /agents/${options.agent ?? "mia"}/asp/turn HTTP/1.1`,
    "host: 127.0.0.1",
    `authorization: Bearer ${key}`,
    `content-length: ${body.length}`,
    ...(options.stream ? ["accept: text/event-stream"] : []),
    "",
    body,
  ].join("\r\n");
}

/** Events of a server-sent stream's text, comments included as `comment`; read by a parser of others. */
export function eventsOf(text: string): { event: string; data: unknown; id?: string }[] {
  const events: { event: string; data: unknown; id?: string }[] = [];
  const parser = createParser({
    onEvent: ({ event, data, id }) => {
      events.push({ event: event ?? "", data: JSON.parse(data), ...(id === undefined ? {} : { id }) });
    },
    onComment: (comment) => events.push({ event: "comment", data: comment.trim() }),
  });
  parser.feed(text);
  return events;
}
