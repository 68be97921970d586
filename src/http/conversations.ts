// The doors of conversations: their list, one's text for people; one copied up to a message, or removed. Its events are
// events.ts.

import { transcript } from "../log/transcript.ts";
import { readForm, readQuery } from "./body.ts";
import type { Door, Parts, Route } from "./door.ts";
import { checkThere, streamOf, threadIn, told } from "./events.ts";
import { forkBody, listQuery } from "./schemas.ts";

export function conversationRoutes(parts: Parts): Route[] {
  const path = "/agents/:agent/asp/conversations";
  return [
    { method: "GET", path, handle: list },
    { method: "GET", path: `${path}/:thread/text`, handle: (door) => text(parts, door) },
    { method: "POST", path: `${path}/:thread/fork`, handle: (door) => fork(parts, door) },
    { method: "DELETE", path: `${path}/:thread`, handle: (door) => remove(parts, door) },
  ];
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

async function text(parts: Parts, door: Door): Promise<Response> {
  const { conversations: store } = door.get("agent").store;
  const thread = threadIn(door);
  await checkThere(store, thread);
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
