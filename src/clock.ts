// Time and ids as values: whatever is not the same at every run comes in through these two.

/** Time. `now` is wall time in ms since 1970; `mono` never goes back; `sleep` ends early, without an error, on abort. */
export interface Clock {
  now(): number;
  mono(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** New names: `id("turn")` gives a short unguessable one with that prefix, e.g. `turn_3f9c…`. */
export type Ids = (prefix: string) => string;

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  mono: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((done) => {
      if (signal?.aborted) return done();
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", end);
        done();
      };
      const timer = setTimeout(end, ms);
      signal?.addEventListener("abort", end, { once: true });
    }),
};

/** Random names of 128 bits. */
export const randomIds: Ids = (prefix) => {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  let hex = "";
  for (const byte of bytes) hex += byte.toString(16).padStart(2, "0");
  return `${prefix}_${hex}`;
};

/** Wall time `ms` in RFC 3339, UTC, milliseconds. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString();
}

/** `30m`, `5s`, `250ms`, `2h`, `1d` in milliseconds; undefined where it is no duration. */
export function duration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim());
  if (!match) return undefined;
  const unit = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[match[2] as "ms"];
  return Number(match[1]) * unit;
}
