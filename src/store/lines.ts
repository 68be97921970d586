// Lines as bytes: where they begin, what number they carry, and what an unfinished one looks like. Pure. A line ends at byte
// 0x0A and nowhere else, whatever other ends its text holds.

export const lineFeed = 0x0a;

/** A line that is no event, and why. */
export interface BadLine {
  why: string;
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const roughly = new TextDecoder();

/** The event's line and number, or what is wrong with it. */
export function readLine(bytes: Uint8Array): { text: string; seq: number } | BadLine {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return { why: "not UTF-8" };
  }
  const seq = numberOf(text);
  return typeof seq === "number" ? { text, seq } : seq;
}

/** The number of an event's line, or what is wrong with the line. */
export function numberOf(text: string): number | BadLine {
  let value: { seq?: unknown } | null;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { why: `not JSON (${(error as Error).message.slice(0, 120)})` };
  }
  if (typeof value !== "object" || value === null) return { why: "no JSON object" };
  const { seq } = value;
  return typeof seq === "number" && Number.isSafeInteger(seq) && seq > 0 ? seq : { why: "no number `seq`" };
}

/** The number that a line begins with, without reading the rest of it; undefined where it begins otherwise. */
export function numberAtStart(bytes: Uint8Array): number | undefined {
  const match = /^\{"seq":(\d{1,15})[,}]/.exec(roughly.decode(bytes.subarray(0, 32)));
  return match ? Number(match[1]) : undefined;
}

/** Whether a byte says nothing: white space, a line end, or the zeros that a crash can leave. */
export function isBlank(byte: number): boolean {
  return byte === 0 || byte === 0x20 || byte === 0x09 || byte === 0x0d || byte === lineFeed;
}

export function isBlankLine(bytes: Uint8Array): boolean {
  return bytes.every(isBlank);
}

/**
 * Whether the bytes are the beginning of a JSON object that was never finished: what a write cut short leaves. A line that was whole
 * once and is damaged now breaks the grammar somewhere, and is not taken for one.
 */
export function isTorn(bytes: Uint8Array): boolean {
  const text = roughly.decode(bytes);
  const closers: string[] = [];
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (inString) {
      if (char === "\\") i++;
      else if (char === '"') inString = false;
    } else if (char === '"') inString = true;
    else if (char === "{") closers.push("}");
    else if (char === "[") closers.push("]");
    else if (char === "}" || char === "]") {
      if (closers.pop() !== char) return false;
    }
  }
  // An object whose brackets are all closed is whole, or whole with something behind it.
  if (text[0] !== "{" || closers.length === 0) return false;
  const close = closers.reverse().join("");
  return endings.some((ending) => isJson(text + ending + close));
}

/** What may be missing where a write stopped, before the brackets are closed: of a string, a key, a number, a word. */
const endings = [
  ...["", "0", ":0", '"":0', '"', '":0'],
  ...["n", "0", "00", "000", "0000"].flatMap((rest) => [`${rest}"`, `${rest}":0`]),
  ...["rue", "ue", "e", "alse", "lse", "se", "ull", "ll", "l"],
];

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Whole lines of `[at, end)`, in order, blank ones left out; `at` is where a line begins, `end` follows a line end. Each comes from one read. */
export function* linesFrom(
  read: (at: number, size: number) => Uint8Array,
  at: number,
  end: number,
  sizeFirst: number,
): Generator<{ at: number; bytes: Uint8Array }> {
  for (let size = sizeFirst; at < end;) {
    const block = read(at, Math.min(size, end - at));
    let start = 0;
    for (let feed; (feed = block.indexOf(lineFeed, start)) !== -1; start = feed + 1) {
      const bytes = block.subarray(start, feed);
      if (!isBlankLine(bytes)) yield { at: at + start, bytes };
    }
    if (start === 0) {
      if (at + block.length >= end) return;
      size *= 2;
    } else at += start;
  }
}

/** Whole lines of `[floor, end)`, the last first, blank ones left out; `end` follows a line end. Reads no more than it yields, about. */
export function* linesBack(
  read: (at: number, size: number) => Uint8Array,
  floor: number,
  end: number,
  sizeFirst: number,
): Generator<{ at: number; bytes: Uint8Array }> {
  let bytes = new Uint8Array(0);
  let low = end;
  for (let high = end, size = sizeFirst; high > floor;) {
    // `bytes` is [low, high); its last byte is a line end.
    const feed = high - low > 1 ? bytes.lastIndexOf(lineFeed, high - low - 2) : -1;
    if (feed === -1 && low > floor) {
      const from = Math.max(floor, low - size);
      const more = read(from, low - from);
      const joined = new Uint8Array(more.length + bytes.length);
      joined.set(more);
      joined.set(bytes, more.length);
      bytes = joined;
      low = from;
      size *= 2;
      continue;
    }
    const line = bytes.subarray(feed + 1, high - low - 1);
    if (!isBlankLine(line)) yield { at: low + feed + 1, bytes: line };
    high = low + feed + 1;
    bytes = bytes.subarray(0, feed + 1);
  }
}
