// One request to a provider and its one reply: carried, bounded, stopped. Whether to try again is retry.ts.

import type { Clock } from "../clock.ts";
import { type Fetch, readText, sayWhy } from "../fetch.ts";
import { limits } from "../limits.ts";
import { ended, type Prompt } from "./model.ts";
import { eventReader } from "./stream.ts";
import { Trouble, troubleOf } from "./trouble.ts";
import type { Addressee, Decoder, Draft, Manner, Wire } from "./wire.ts";

/** Where a model is asked. */
export interface Target extends Addressee {
  wire: Wire;
  /** Full address of its requests. */
  url: string;
  headers: Record<string, string>;
  /** What no error may tell. */
  secrets: readonly string[];
}

export interface Carrier {
  /** Never sends a request twice. */
  fetch: Fetch;
  clock: Clock;
  /** Nothing from a provider for so long counts as silence. */
  silenceMs?: number;
}

/**
 * Asks once. Text is handed on as it comes, whole characters at a time.
 *
 * Throws a Trouble. Where `signal` is aborted with `ended`, gives what was said so far; else throws the signal's reason.
 */
export async function exchange(
  carrier: Carrier,
  target: Target,
  ask: { prompt: Prompt; manner: Manner; signal: AbortSignal; onText(text: string): void },
): Promise<Draft> {
  const decoder = target.wire.decoder(ask.prompt, target, ask.manner);
  const watch = watchSilence(carrier, ask.signal);
  const whole = characters(ask.onText);
  try {
    const response = await carrier.fetch(target.url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream", ...target.headers },
      body: target.wire.encode(ask.prompt, target, ask.manner),
      // A redirect would carry the key to another host.
      redirect: "manual",
      signal: watch.signal,
    });
    watch.heard();
    if (!response.ok) throw await refusal(response, target, carrier.clock.now());
    await takeReply(response, decoder, watch, whole);
    return decoder.answer();
  } catch (error) {
    if (ask.signal.aborted) {
      if (ask.signal.reason === ended) return decoder.soFar();
      throw ask.signal.reason;
    }
    if (error instanceof Trouble) throw error;
    if (watch.silent) throw new Trouble("silent", "nothing came for too long");
    throw new Trouble("again", sayWhy(error, target.secrets), { cause: error });
  } finally {
    watch.stop();
  }
}

async function refusal(response: Response, target: Target, now: number): Promise<Trouble> {
  const { status, headers } = response;
  if (status >= 300 && status < 400) {
    await response.body?.cancel();
    return new Trouble("refused", `HTTP ${status}: its address leads to another; set the one that answers`, {
      status,
    });
  }
  const text = await readText(response, limits.modelErrorBytesMax);
  return troubleOf({ status, headers, text, secrets: target.secrets, now });
}

/** Takes a reply as it comes: events, or one JSON of a server that does not stream. Which it is shows in its first
 * character, since what servers say of its type is often wrong. */
async function takeReply(
  response: Response,
  decoder: Decoder,
  watch: Watch,
  onText: (text: string) => void,
): Promise<void> {
  if (!response.body) throw new Trouble("again", "the reply is empty");
  const reader = response.body.getReader();
  const events = eventReader(limits.modelAnswerBytesMax);
  const json = wholeJson();
  let bytes = 0, isJson: boolean | undefined;
  try {
    while (!decoder.done) {
      const { value, done } = await nextChunk(reader, decoder, watch);
      watch.heard();
      bytes += value?.byteLength ?? 0;
      if (bytes > limits.modelAnswerBytesMax) {
        throw new Trouble("refused", `the answer is over ${limits.modelAnswerBytesMax} bytes`);
      }
      if (value) isJson ??= startsJson(value);
      if (isJson && done) onText(decoder.takeWhole(json.end()));
      else if (isJson && value) json.feed(value);
      else for (const event of value ? events.feed(value) : events.end()) onText(decoder.take(event));
      if (done) return;
    }
  } catch (error) {
    // What has its end is whole: a connection that breaks after it only took the count of the tokens with it.
    if (!decoder.finished || watch.aborted) throw error;
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Whether a reply that starts so is JSON; undefined where it starts with blanks. */
function startsJson(bytes: Uint8Array): boolean | undefined {
  const first = bytes.find((byte) => byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09);
  return first === undefined ? undefined : first === 0x7b;
}

function wholeJson() {
  const decoder = new TextDecoder();
  let text = "";
  return {
    feed: (bytes: Uint8Array) => {
      text += decoder.decode(bytes, { stream: true });
    },
    end: (): unknown => {
      try {
        return JSON.parse(text + decoder.decode());
      } catch (cause) {
        throw new Trouble("again", "the reply is no whole JSON", { cause });
      }
    },
  };
}

/** The next chunk. Once the answer has its end, only a short while is waited for more. */
async function nextChunk(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  decoder: Decoder,
  watch: Watch,
): Promise<{ done: boolean; value?: Uint8Array }> {
  if (!decoder.finished) return await reader.read();
  const off = new AbortController();
  const late = watch.clock.sleep(limits.modelLingerMs, off.signal).then(() => ({
    done: true,
    value: undefined,
  }));
  try {
    return await Promise.race([reader.read(), late]);
  } finally {
    off.abort();
  }
}

interface Watch {
  readonly signal: AbortSignal;
  readonly silent: boolean;
  /** Stopped from outside, or silent. */
  readonly aborted: boolean;
  readonly clock: Clock;
  heard(): void;
  stop(): void;
}

/** Aborts its signal once nothing was heard for too long, or with `outer`. */
function watchSilence({ clock, silenceMs = limits.modelSilenceMs }: Carrier, outer: AbortSignal): Watch {
  const own = new AbortController(), over = new AbortController();
  let last = clock.mono(), silent = false;
  const follow = () => own.abort(outer.reason);
  if (outer.aborted) follow();
  outer.addEventListener("abort", follow, { once: true });
  (async () => {
    while (!over.signal.aborted) {
      const left = last + silenceMs - clock.mono();
      if (left > 0) await clock.sleep(left, over.signal);
      else {
        silent = true;
        return own.abort(new Trouble("silent", "nothing came for too long"));
      }
    }
  })();
  return {
    signal: own.signal,
    clock,
    get silent() {
      return silent;
    },
    get aborted() {
      return own.signal.aborted;
    },
    heard: () => last = clock.mono(),
    stop: () => {
      over.abort();
      outer.removeEventListener("abort", follow);
    },
  };
}

/** Hands text on without ever ending a piece in half a surrogate pair. */
function characters(onText: (text: string) => void): (text: string) => void {
  let half = "";
  return (piece) => {
    const text = half + piece;
    half = /[\ud800-\udbff]$/.test(text) ? text.slice(-1) : "";
    const whole = half ? text.slice(0, -1) : text;
    if (whole) onText(whole.toWellFormed());
  };
}
