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

/** How a caller's news are written. `frames` gives what is sent of one piece of news, undefined for nothing. */
export interface Wire {
  frames(news: News): string | undefined;
  /** What goes out after the last news. */
  tail?: string;
  headers?: Record<string, string>;
  /** The body of a failure that comes before anything was streamed. */
  failed?(news: News & { type: "error" }): unknown;
}

/** A caller that reads server-sent events. What fails before anything was streamed is a status and JSON. */
export function streamCaller({ clock, signal }: CallerParts, wire: Wire): Answering {
  const flow = outflow({ signal, bytesMax: limits.streamBytesMax });
  const { promise: response, resolve } = Promise.withResolvers<Response>();
  const encoder = new TextEncoder();
  let begun = false, alive: KeepAlive | undefined;
  const begin = (status: number, headers: Record<string, string>) => {
    begun = true;
    resolve(new Response(flow.body, { status, headers: { ...wire.headers, ...headers } }));
  };
  const caller: Caller = {
    taken: flow.taken,
    drop: () => flow.drop(),
    tell(news) {
      if (news.type === "error" && !begun) {
        begin(news.status, jsonHeaders);
        flow.push(encoder.encode(JSON.stringify(wire.failed?.(news) ?? errorBody(news))));
        return flow.end();
      }
      if (!begun) begin(200, streamHeaders);
      alive ??= keepAlive(clock, flow);
      const text = wire.frames(news);
      if (text !== undefined) flow.push(encoder.encode(text));
      alive.sent();
      if (!isLast(news)) return;
      if (wire.tail) flow.push(encoder.encode(wire.tail));
      flow.end();
    },
  };
  // Gone before anything was told: the response goes nowhere, but whoever waits for it goes on.
  flow.taken.then(() => begun || begin(200, streamHeaders));
  return { caller, response };
}

/** A caller that waits for one JSON answer; past `limits.turnReplyMs` it is told `running` and counts as gone. */
export function jsonCaller(
  { clock, signal }: CallerParts,
  bodyOf: (news: News) => unknown,
  headers = {},
): Answering {
  const flow = outflow({ signal, bytesMax: Infinity });
  const { promise: response, resolve } = Promise.withResolvers<Response>();
  const { promise: taken, resolve: settle } = Promise.withResolvers<boolean>();
  const answered = new AbortController();
  let replied = false;
  const reply = (status: number, body: unknown) => {
    replied = true;
    answered.abort();
    flow.push(new TextEncoder().encode(JSON.stringify(body)));
    flow.end();
    resolve(new Response(flow.body, { status, headers: { ...jsonHeaders, ...headers } }));
  };
  let start: (News & { type: "start" }) | undefined, late = false;
  const running = () => {
    if (replied || !start) return;
    settle(false);
    const { turn, thread, seq } = start;
    reply(202, { running: true, turn, thread, seq });
  };
  clock.sleep(limits.turnReplyMs, answered.signal).then(() => {
    late = true;
    running();
  });
  flow.taken.then((whole) => {
    settle(whole);
    if (!replied) reply(200, {});
  });
  const caller: Caller = {
    taken,
    drop() {
      settle(false);
      flow.drop();
    },
    tell(news) {
      if (replied) return;
      if (news.type === "start") start ??= news;
      if (late) running();
      else if (isLast(news)) reply(statusOf(news), bodyOf(news));
    },
  };
  return { caller, response };
}

export const jsonHeaders = { "content-type": "application/json; charset=utf-8" };
export const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "x-accel-buffering": "no",
};

export function isLast(news: News): boolean {
  return news.type === "answer" || news.type === "joined" || news.type === "error";
}

function statusOf(news: News): number {
  return news.type === "error" ? news.status : news.type === "joined" ? 202 : 200;
}

/** The error form of a turn's failure, with what the wire says beside `error`. */
export function errorBody({ error, repeated }: News & { type: "error" }): object {
  return { error, ...(repeated ? { repeated } : {}) };
}
