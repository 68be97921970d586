// The head of a message: one line that says when it was said, where, and by whom, made once and kept with the message, so
// that it reads the same at every later turn.

import { limits } from "../limits.ts";
import type { Speaker } from "../log/event.ts";

export interface Heading {
  /** When it was said, RFC 3339. */
  at: string;
  /** Zone of the machine: an IANA name, or an offset such as `+01:00`. */
  zone: string;
  connection?: string;
  from: Speaker;
}

/**
 * E.g. `[Tue 2026-12-01 10:00 +01:00 · telegram · owner Ana]`. The owner, a command in the background and a schedule are named;
 * a message of anyone else says itself who speaks.
 */
export function headOf({ at, zone, connection, from }: Heading): string {
  const parts = [localTime(Date.parse(at), zone)];
  if (connection !== undefined) parts.push(plain(connection));
  parts.push(speaker(from));
  return `[${parts.filter((part) => part !== "").join(" · ")}]`;
}

function speaker({ role, name }: Speaker): string {
  const named = plain(name ?? "");
  switch (role) {
    case "owner":
      return `owner ${named}`.trim();
    case "schedule":
      return `schedule ${named}`.trim();
    case "run":
      return named.startsWith("run:") ? named : `run:${named}`;
    case "other":
    case "agent":
      return "";
  }
}

/** A name as a piece of the line: nothing in it can end the line, close the bracket, or look like the next piece. */
function plain(name: string): string {
  const safe = name.toWellFormed().slice(0, 4 * limits.headNameCharsMax)
    .replace(/[\p{C}\p{Z}[\]·]+/gu, " ").trim();
  const characters = [...safe];
  return characters.length <= limits.headNameCharsMax
    ? safe
    : `${characters.slice(0, limits.headNameCharsMax - 1).join("")}…`;
}

const days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/** `Tue 2026-12-01 10:00 +01:00`, whatever the process's own zone and locale. */
function localTime(ms: number, zone: string): string {
  const minutes = offsetMinutes(ms, zone);
  const local = new Date(ms + minutes * 60_000);
  const [date, time] = local.toISOString().split("T") as [string, string];
  const size = Math.abs(minutes);
  const offset = `${minutes < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
  return `${days[local.getUTCDay()]} ${date} ${time.slice(0, 5)} ${offset}`;
}

function two(number: number): string {
  return String(number).padStart(2, "0");
}

/** Making a formatter costs more than all else here. */
const formatters = new Map<string, Intl.DateTimeFormat>();

/** Minutes that `zone` is ahead of UTC at that moment; 0 for a zone that nobody knows. */
function offsetMinutes(ms: number, zone: string): number {
  const offset = /^([+-])(\d\d):?(\d\d)$/.exec(zone);
  if (offset) return (offset[1] === "-" ? -1 : 1) * (Number(offset[2]) * 60 + Number(offset[3]));
  let formatter = formatters.get(zone);
  if (!formatter) {
    try {
      formatter = zoned(zone);
    } catch {
      formatter = zoned("UTC");
    }
    formatters.set(zone, formatter);
  }
  const part: Record<string, number> = {};
  for (const { type, value } of formatter.formatToParts(ms)) part[type] = Number(value);
  const wall = Date.UTC(part.year!, part.month! - 1, part.day!, part.hour!, part.minute!);
  return Math.round(wall / 60_000) - Math.floor(ms / 60_000);
}

function zoned(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat("en-US", {
    timeZone,
    calendar: "gregory",
    numberingSystem: "latn",
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
  });
}
