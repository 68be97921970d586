// Server-sent events from bytes, whatever way they are cut. What the events say is the wires' matter.

import { createParser } from "eventsource-parser";

/** One event: its name where it has one, and its data. */
export interface StreamEvent {
  event?: string;
  data: string;
}

/** Turns chunks of bytes into events. */
export interface EventReader {
  feed(bytes: Uint8Array): StreamEvent[];
  /** What a stream that ends with no blank line still holds. */
  end(): StreamEvent[];
}

/**
 * A reader of one stream: LF, CRLF or CR, with or without a byte order mark, characters cut anywhere.
 *
 * An event that the stream's end cuts short is given all the same: many servers end with no blank line, and whether the
 * data is whole shows in the data.
 */
export function eventReader(charsMax: number): EventReader {
  let ready: StreamEvent[] = [];
  // The decoder keeps the mark: the parser takes it off, and off the start only.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const parser = createParser({
    maxBufferSize: charsMax,
    onEvent: ({ event, data }) => ready.push({ ...(event ? { event } : {}), data }),
    onError: (error) => {
      if (error.type === "max-buffer-size-exceeded") throw error;
    },
  });
  const taken = (text: string) => {
    parser.feed(text);
    const events = ready;
    ready = [];
    return events;
  };
  return {
    feed: (bytes) => taken(decoder.decode(bytes, { stream: true })),
    end: () => taken(decoder.decode() + "\n\n"),
  };
}
