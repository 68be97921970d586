// What goes to one server and comes from it over HTTP: the `fetch` that the client is given. Adds the address's headers, bounds
// what a reply holds, and says which streams may be opened.

import { type Fetch, onceFetch, ReplyTooLong } from "../fetch.ts";
import { limits } from "../limits.ts";
import type { Reach } from "./servers.ts";

/**
 * A `fetch` for one session. No POST is sent twice by itself. `listens`: a stream for what the server has to say by itself
 * may be opened, a few times; else the client is told that there is none, as a server may say, too.
 */
export function wireFetch(fetch: Fetch, { headers }: Reach, listens: boolean): Fetch {
  const once = onceFetch(fetch);
  let listening = 0;
  return async (input, init = {}) => {
    const sent = new Headers(init.headers);
    for (const [name, value] of Object.entries(headers)) sent.set(name, value);
    if (init.method === "GET" && !sent.has("last-event-id")) {
      if (!listens || ++listening > limits.toolListensMax) return new Response(null, { status: 405 });
    }
    return bounded(await once(input, { ...init, headers: sent }));
  };
}

/** The reply, at most so long: past it, its stream fails. */
function bounded(response: Response): Response {
  if (!response.body) return response;
  const reader = response.body.getReader();
  let bytes = 0;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done } = await reader.read();
      if (done) return controller.close();
      bytes += value.byteLength;
      if (bytes > limits.toolReplyBytesMax) {
        reader.cancel().catch(() => {});
        throw new ReplyTooLong(`over ${limits.toolReplyBytesMax} bytes`);
      }
      controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}
