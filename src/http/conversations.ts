// The doors of conversations: their list, one's events (once, or followed), its text for people; one
// copied up to a message, or removed.

import { asFailure, failedBy, Failure } from "../errors.ts";
import { limits } from "../limits.ts";
import { transcript } from "../log/transcript.ts";
import { checkThread } from "../names.ts";
import type { ConversationStore } from "../store/seams.ts";
import { wantsStream } from "./asp.ts";
import { readForm, readQuery } from "./body.ts";
import { streamHeaders } from "./caller.ts";
import { type Door, factsOf, type Parts, type Route } from "./door.ts";
import { eventsQuery, forkBody, listQuery } from "./schemas.ts";
import { comment, frame } from "./sse.ts";

export function conversationRoutes(parts: Parts): Route[] {
  const path = "/agents/:agent/asp/conversations";
  return [
    { method: "GET", path, handle: list },
    { method: "GET", path: `${path}/:thread/events`, handle: (door) => events(parts, door) },
    { method: "GET", path: `${path}/:thread/text`, handle: (door) => text(parts, door) },
    { method: "POST", path: `${path}/:thread/fork`, handle: (door) => fork(parts, door) },
    { method: "DELETE", path: `${path}/:thread`, handle: (door) => remove(parts, door) },
  ];
}

/** The thread of the path. */
export function threadIn(door: Door): string {
  return checkThread(door.req.param("thread") ?? "");
}

async function text(parts: Parts, door: Door): Promise<Response> {
  const { conversations: store } = door.get("agent").store;
  const thread = threadIn(door);
  await lastOf(store, thread);
  const pieces = transcript(store.read(thread, 1))[Symbol.asyncIterator]();
  return new Response(streamOf(readable(parts, await pieces.next(), pieces)), {
    headers: { "content-type": "text/markdown; charset=utf-8" },
  });
}

/** A text's pieces; damage met midway is told at its end. */
async function* readable(
  parts: Parts,
  first: IteratorResult<string>,
  pieces: AsyncIterator<string>,
): AsyncGenerator<string> {
  try {
    for (let next = first; !next.done; next = await pieces.next()) yield next.value;
  } catch (thrown) {
    yield `> ${told(parts, thrown).message}\n`;
  } finally {
    await pieces.return?.();
  }
}

async function fork(parts: Parts, door: Door): Promise<Response> {
  const body = await readForm(door.req.raw, forkBody);
  const { events } = await parts.turns.fork(door.get("agent"), threadIn(door), body);
  return door.json({ thread: body.as, events }, 201);
}

async function remove(parts: Parts, door: Door): Promise<Response> {
  await parts.turns.remove(door.get("agent"), threadIn(door));
  return door.body(null, 204);
}

async function list(door: Door): Promise<Response> {
  const { limit, after } = readQuery(door.req.url, listQuery);
  const { conversations: store } = door.get("agent").store;
  const [threads, open] = await Promise.all([store.threads(after, limit), store.open()]);
  const running = new Set(open.flatMap(({ thread, held }) => held && held.state !== "dead" ? [thread] : []));
  return door.json({
    conversations: threads.map(({ thread, events, storage, updated, damage }) => {
      const connection = /^([^:]+):/.exec(thread)?.[1];
      return {
        thread,
        ...(connection === undefined ? {} : { connection }),
        events,
        storage,
        updated,
        running: running.has(thread),
        ...(damage === undefined ? {} : { damage }),
      };
    }),
  });
}

async function events(parts: Parts, door: Door): Promise<Response> {
  const { conversations: store } = door.get("agent").store;
  const thread = threadIn(door);
  const query = readQuery(door.req.url, eventsQuery);
  const follows = wantsStream(door);
  const seen = follows ? Number(/^\d{1,15}$/.exec(door.req.header("last-event-id") ?? "")?.[0] ?? NaN) : NaN;
  const last = await lastOf(store, thread);
  let from = query.from ?? 1;
  if (query.last !== undefined) from = Math.max(from, last - query.last + 1);
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

/** Number of the last event. Throws `not_found` where there is no conversation. */
async function lastOf(store: ConversationStore, thread: string): Promise<number> {
  const last = await store.last(thread).catch((thrown) => {
    // Damaged at its end: what is whole can still be read.
    if (failedBy(thrown, "log_damaged")) return Infinity;
    throw thrown;
  });
  if (last === 0) throw new Failure("not_found", { what: "such conversation" });
  return last;
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

function told(parts: Parts, thrown: unknown): Failure {
  const failure = asFailure(thrown);
  if (failure.code === "internal") parts.notify("error", "Events could not be read.", factsOf(thrown));
  return failure;
}

/** A body of texts, made only as fast as they are read. */
function streamOf(texts: AsyncGenerator<string>): ReadableStream<Uint8Array> {
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
