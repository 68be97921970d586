// The door of a conversation's events: read once as lines, or followed as server-sent events.

import { asFailure, failedBy, Failure } from "../errors.ts";
import { limits } from "../limits.ts";
import { checkThread } from "../names.ts";
import type { ConversationStore } from "../store/seams.ts";
import { wantsStream } from "./asp.ts";
import { readQuery } from "./body.ts";
import { streamHeaders } from "./caller.ts";
import { type Door, factsOf, type Parts, type Route } from "./door.ts";
import { eventsQuery } from "./schemas.ts";
import { comment, frame } from "./sse.ts";

export function eventRoutes(parts: Parts): Route[] {
  const path = "/agents/:agent/asp/conversations/:thread/events";
  return [{ method: "GET", path, handle: (door) => events(parts, door) }];
}

async function events(parts: Parts, door: Door): Promise<Response> {
  const { conversations: store } = door.get("agent").store;
  const thread = threadIn(door);
  const query = readQuery(door.req.url, eventsQuery);
  const follows = wantsStream(door);
  const seen = follows ? Number(/^\d{1,15}$/.exec(door.req.header("last-event-id") ?? "")?.[0] ?? NaN) : NaN;
  await checkThere(store, thread);
  let from = query.from ?? 1;
  if (query.last !== undefined) from = Math.max(from, await store.last(thread) - query.last + 1);
  if (!isNaN(seen)) from = seen + 1;
  const to = query.limit === undefined ? undefined : from + query.limit - 1;
  const gone = AbortSignal.any([door.req.raw.signal, door.env.drained]);
  if (follows) {
    return new Response(streamOf(follow(parts, store, thread, { from, to }, gone)), {
      headers: streamHeaders,
    });
  }
  const lines = store.read(thread, from, to)[Symbol.asyncIterator]();
  // What is wrong before the first line is a status; what is met midway, a last line.
  const first = await lines.next();
  return new Response(streamOf(ndjson(parts, first, lines)), {
    headers: { "content-type": "application/x-ndjson; charset=utf-8" },
  });
}

/** The thread of the path. */
export function threadIn(door: Door): string {
  return checkThread(door.req.param("thread") ?? "");
}

/** Throws `not_found` where there is no such conversation. One that is damaged at its end is there: what is whole can be read. */
export async function checkThere(store: ConversationStore, thread: string): Promise<void> {
  const last = await store.last(thread).catch((thrown) => {
    if (failedBy(thrown, "log_damaged")) return Infinity;
    throw thrown;
  });
  if (last === 0) throw new Failure("not_found", { what: "such conversation" });
}

async function* ndjson(
  parts: Parts,
  first: IteratorResult<string>,
  lines: AsyncIterator<string>,
): AsyncGenerator<string> {
  let batch = "";
  try {
    for (let next = first; !next.done; next = await lines.next()) {
      batch += `${next.value}\n`;
      if (batch.length < chunkChars) continue;
      yield batch;
      batch = "";
    }
  } catch (thrown) {
    batch += `${JSON.stringify(told(parts, thrown).form())}\n`;
  } finally {
    await lines.return?.();
  }
  if (batch !== "") yield batch;
}

const chunkChars = 64 * 1024;

/** Each event as it comes, until the reader leaves, `to` is reached, or the process ends. */
async function* follow(
  parts: Parts,
  store: ConversationStore,
  thread: string,
  { from, to = Infinity }: { from: number; to?: number | undefined },
  gone: AbortSignal,
): AsyncGenerator<string> {
  let next = from, said = parts.clock.mono();
  try {
    while (!gone.aborted && next <= to) {
      if (await store.last(thread) >= next) {
        for await (const line of store.read(thread, next, to === Infinity ? undefined : to)) {
          yield frame("event", line, next++);
          if (gone.aborted) return;
        }
        said = parts.clock.mono();
      } else if (parts.clock.mono() - said >= limits.keepAliveMs) {
        said = parts.clock.mono();
        yield comment;
      }
      await parts.clock.sleep(limits.followMs, gone);
    }
  } catch (thrown) {
    yield frame("error", JSON.stringify(told(parts, thrown).form()));
  }
}

/** What was thrown while a body was on its way, as the body's end tells it. */
export function told(parts: Parts, thrown: unknown): Failure {
  const failure = asFailure(thrown);
  if (failure.code === "internal") parts.notify("error", "Events could not be read.", factsOf(thrown));
  return failure;
}

/** A body of texts, made only as fast as they are read. */
export function streamOf(texts: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await texts.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    // Not awaited: a generator that sleeps ends at its next step.
    cancel: () => void texts.return(undefined),
  }, { highWaterMark: 0 });
}
