// A response's body that we push and a reader pulls: bounded, and told when it was taken to its last byte. Nobody ever waits
// for a socket here: a reader that is slow, stuck or gone costs the one who pushes nothing.

/** The pushing side. */
export interface Outflow {
  readonly body: ReadableStream<Uint8Array>;
  /** Adds bytes; nothing where the reader has gone. Past the bound the reader is dropped. */
  push(bytes: Uint8Array): void;
  /** Nothing comes after. */
  end(): void;
  /** Cuts the reader off: it sees that the body is not whole. */
  drop(): void;
  /** True once the reader has pulled past the last byte; false once it has gone or was dropped. Never rejects. */
  readonly taken: Promise<boolean>;
  /** Whether the outcome stands: all was taken, or the reader has gone. */
  readonly over: boolean;
}

/** Opens one. `signal` aborts when the reader leaves; at most `bytesMax` bytes wait for it. */
export function outflow(options: { signal: AbortSignal; bytesMax: number }): Outflow {
  const waiting: Uint8Array[] = [];
  let bytes = 0, ended = false, over = false;
  let wake: () => void = () => {};
  const { promise: taken, resolve } = Promise.withResolvers<boolean>();
  let controller!: ReadableStreamDefaultController<Uint8Array>;

  const settle = (whole: boolean) => {
    if (over) return false;
    over = true;
    waiting.length = bytes = 0;
    options.signal.removeEventListener("abort", leave);
    resolve(whole);
    wake();
    return true;
  };
  const leave = () => {
    if (settle(false)) controller.close();
  };

  const body = new ReadableStream<Uint8Array>({
    start: (made) => void (controller = made),
    async pull() {
      while (!over && waiting.length === 0 && !ended) await new Promise<void>((go) => wake = go);
      if (over) return;
      if (waiting.length > 0) {
        const chunk = takeChunk(waiting);
        bytes -= chunk.length;
        return controller.enqueue(chunk);
      }
      // Asked for more after the last byte: it was taken whole.
      controller.close();
      settle(true);
    },
    cancel: () => void settle(false),
  }, { highWaterMark: 0 });

  if (options.signal.aborted) leave();
  else options.signal.addEventListener("abort", leave, { once: true });

  return {
    body,
    taken,
    get over() {
      return over;
    },
    push(more) {
      if (over || ended) return;
      waiting.push(more);
      bytes += more.length;
      if (bytes > options.bytesMax) this.drop();
      else wake();
    },
    end() {
      ended = true;
      wake();
    },
    drop() {
      if (settle(false)) controller.error(cut());
    },
  };
}

/** Small pieces go out together; a large one goes in parts, so that its end is pulled only as its start is taken. */
const chunkBytes = 64 * 1024;

/** Takes about a chunk off the front of `waiting`. */
function takeChunk(waiting: Uint8Array[]): Uint8Array {
  const first = waiting[0]!;
  if (first.length > chunkBytes) {
    waiting[0] = first.subarray(chunkBytes);
    return first.subarray(0, chunkBytes);
  }
  let count = 0, bytes = 0;
  while (count < waiting.length && bytes + waiting[count]!.length <= chunkBytes) {
    bytes += waiting[count++]!.length;
  }
  const pieces = waiting.splice(0, count);
  if (count === 1) return first;
  const chunk = new Uint8Array(bytes);
  let at = 0;
  for (const piece of pieces) {
    chunk.set(piece, at);
    at += piece.length;
  }
  return chunk;
}

/** Why a body ends early. Servers print it, so it has no stack. */
function cut(): Error {
  const error = new Error("The reader was too slow and is cut off; what it lost is kept for it.");
  error.stack = `${error.name}: ${error.message}`;
  return error;
}
