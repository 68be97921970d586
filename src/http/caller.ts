// Callers of a turn, as the doors make them: one that reads a stream of events, one that waits for one JSON answer. A turn
// tells them news and never waits for them.

import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";
import type { Caller, News } from "../turn/news.ts";
import { outflow } from "./outflow.ts";
import { type KeepAlive, keepAlive } from "./sse.ts";

/** A caller and what it is answered. `response` is decided once the turn's first news (for JSON: its last) is there. */
export interface Answering {
  caller: Caller;
  response: Promise<Response>;
}

export interface CallerParts {
  clock: Clock;
  signal: AbortSignal;
}

/** How a caller's news are written for one kind of client. */
export interface Wire {
  /** What a stream says of one piece of news; undefined for nothing. */
  frame(news: News): string | undefined;
  /** The one JSON answer, from the last news. */
  body(news: LastNews): unknown;
  /** Headers of every response. */
  headers?: Record<string, string>;
  /** Headers of a failure that is told after the message was kept. */
  failedHeaders?: Record<string, string>;
  /** Whether a JSON caller is answered `running` past `limits.turnReplyMs`; else it waits on. */
  running?: boolean;
}

export type LastNews = News & { type: "answer" | "joined" | "error" };

/** A caller that reads server-sent events. What fails before anything was streamed is a status and JSON. */
export function streamCaller({ clock, signal }: CallerParts, wire: Wire): Answering {
  const flow = outflow({ signal, bytesMax: limits.streamBytesMax });
  const { promise: response, resolve } = Promise.withResolvers<Response>();
  const encoder = new TextEncoder();
  let alive: KeepAlive | undefined;
  const caller: Caller = {
    taken: flow.taken,
    drop: () => flow.drop(),
    tell(news) {
      if (flow.over) return;
      if (news.type === "error" && !alive) {
        const headers = { ...jsonHeaders, ...wire.headers, ...wire.failedHeaders };
        resolve(new Response(flow.body, { status: news.status, headers }));
        flow.push(encoder.encode(JSON.stringify(wire.body(news))));
        return flow.end();
      }
      if (!alive) {
        alive = keepAlive(clock, flow);
        resolve(new Response(flow.body, { headers: { ...streamHeaders, ...wire.headers } }));
      }
      const text = wire.frame(news);
      if (text !== undefined) flow.push(encoder.encode(text));
      alive.sent();
      if (isLast(news)) flow.end();
    },
  };
  // Gone before anything was told: the response goes nowhere, but whoever waits for it goes on.
  flow.taken.then(() => resolve(nobody()));
  return { caller, response };
}

/** A caller that waits for one JSON answer. Once it is told that the turn is still running it counts as gone. */
export function jsonCaller({ clock, signal }: CallerParts, wire: Wire): Answering {
  const flow = outflow({ signal, bytesMax: Infinity });
  const { promise: response, resolve } = Promise.withResolvers<Response>();
  const { promise: taken, resolve: settle } = Promise.withResolvers<boolean>();
  const replied = new AbortController();
  const reply = (status: number, body: unknown, headers: Record<string, string> = {}) => {
    replied.abort("replied");
    flow.push(new TextEncoder().encode(JSON.stringify(body)));
    flow.end();
    resolve(new Response(flow.body, { status, headers: { ...jsonHeaders, ...wire.headers, ...headers } }));
  };
  let start: (News & { type: "start" }) | undefined, late = false;
  const running = ({ turn, thread, seq }: News & { type: "start" }) => {
    settle(false);
    reply(202, { running: true, turn, thread, seq });
  };
  const caller: Caller = {
    taken,
    drop() {
      settle(false);
      flow.drop();
    },
    tell(news) {
      if (replied.signal.aborted) return;
      if (news.type === "start") start ??= news;
      if (isLast(news)) {
        reply(statusOf(news), wire.body(news), news.type === "error" ? wire.failedHeaders : {});
      } else if (late && start) running(start);
    },
  };
  if (wire.running) {
    clock.sleep(limits.turnReplyMs, replied.signal).then(() => {
      late = true;
      if (start && !replied.signal.aborted) running(start);
    });
  }
  flow.taken.then((whole) => {
    settle(whole);
    replied.abort("replied");
    resolve(nobody());
  });
  return { caller, response };
}

export const jsonHeaders = { "content-type": "application/json; charset=utf-8" };
export const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "x-accel-buffering": "no",
};

function isLast(news: News): news is LastNews {
  return news.type === "answer" || news.type === "joined" || news.type === "error";
}

function statusOf(news: LastNews): number {
  return news.type === "error" ? news.status : news.type === "joined" ? 202 : 200;
}

/** A response to a caller that is not there any more. */
function nobody(): Response {
  return new Response(null, { status: 499 });
}

/** The error form of a turn's failure, with what the wire says beside `error`. */
export function errorBody({ error, repeated }: News & { type: "error" }): object {
  return { error, ...(repeated ? { repeated } : {}) };
}
