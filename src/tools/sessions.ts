// Which session serves which call: opened when a call needs one, kept for the turns after where the tool keeps nothing of one
// conversation in it, else ended with its turn. How one is opened, and what it is, are start.ts and session.ts.

import { clearTimeout, setTimeout } from "node:timers";
import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";
import type { Server } from "./servers.ts";
import type { Session } from "./session.ts";
import { Trouble } from "./trouble.ts";

export interface SessionsParts {
  clock: Clock;
  alarm: Alarm;
  /** Opens a session, its list read, unless `signal` gives it up. */
  start(server: Server, onListChanged: () => void, signal: AbortSignal): Promise<Session>;
  /** Reads the list again. */
  list(server: Server, session: Session): Promise<void>;
}

export interface Sessions {
  /** Opens a session that no turn has asked for yet: the first that calls the tool takes it. Where one is kept, lists in it. */
  open(server: Server): Promise<void>;
  /** Does `work` in the session that serves this turn. Where the server has forgotten it, once more in a new one. */
  use<T>(server: Server, turn: string, work: (session: Session) => Promise<T>): Promise<T>;
  /** Reads the list again where a session has said that it changed. */
  refresh(server: Server): Promise<void>;
  /** Ends what lives as long as this turn, and what was opened and not asked for. */
  turnEnded(turn: string): Promise<void>;
  /** Ends all. */
  close(): Promise<void>;
}

/** Rings once after `ms`, without keeping the process alive; what it gives stops it. */
export type Alarm = (ms: number, ring: () => void) => () => void;

export const alarm: Alarm = (ms, ring) => {
  const timer = setTimeout(ring, ms);
  timer.unref();
  return () => clearTimeout(timer);
};

interface Entry {
  server: Server;
  /** Undefined for one that is kept, or that nobody has asked for yet. */
  turn: string | undefined;
  opened: Promise<Session>;
  giveUp: AbortController;
  began: number;
  used: number;
  /** Calls under way. */
  busy: number;
  changed: boolean;
  /** Serves nobody any more; ends with its last call. */
  retired: boolean;
}

export function sessionsOf({ clock, alarm, start, list }: SessionsParts): Sessions {
  const entries = new Set<Entry>();
  const farewells = new Set<Promise<void>>();
  const refreshing = new Map<Entry, Promise<void>>();
  let silence = () => {};

  function open(server: Server, turn: string | undefined): Entry {
    const now = clock.mono(), giveUp = new AbortController();
    const entry: Entry = {
      server,
      turn: server.keeps ? undefined : turn,
      opened: start(server, () => void (entry.changed = true), giveUp.signal),
      giveUp,
      began: now,
      used: now,
      busy: 0,
      changed: false,
      retired: false,
    };
    entries.add(entry);
    entry.opened.then(arm, () => entries.delete(entry));
    return entry;
  }

  function find(server: Server, turn: string): Entry | undefined {
    let spare: Entry | undefined;
    for (const entry of entries) {
      if (entry.server.tool !== server.tool || entry.server.hash !== server.hash) continue;
      if (server.keeps && clock.mono() - entry.began >= limits.toolSessionMs) retire(entry);
      else if (server.keeps || entry.turn === turn) return entry;
      else if (entry.turn === undefined) spare = entry;
    }
    if (spare) spare.turn = turn;
    return spare;
  }

  /** It serves nobody any more, and ends once its last call is done. */
  function retire(entry: Entry): void {
    entries.delete(entry);
    entry.retired = true;
    if (entry.busy === 0) end(entry);
  }

  function end(entry: Entry): void {
    entries.delete(entry);
    entry.giveUp.abort();
    const farewell = (async () => {
      await refreshing.get(entry);
      await (await entry.opened).end();
    })().catch(() => {}).finally(() => farewells.delete(farewell));
    farewells.add(farewell);
  }

  /** Sets the alarm for the next session that will have been idle, or alive, for long enough. */
  function arm(): void {
    silence();
    let due = Infinity;
    for (const entry of entries) {
      if (entry.turn !== undefined || entry.busy > 0) continue;
      due = Math.min(due, entry.used + limits.toolIdleMs, entry.began + limits.toolSessionMs);
    }
    silence = due === Infinity ? () => {} : alarm(Math.max(0, due - clock.mono()), () => {
      const now = clock.mono();
      for (const entry of [...entries]) {
        const { turn, busy, used, began } = entry;
        const over = now - used >= limits.toolIdleMs || now - began >= limits.toolSessionMs;
        if (turn === undefined && busy === 0 && over) end(entry);
      }
      arm();
    });
  }

  /** Reads the list again, once for however many changes were told. */
  function refresh(entry: Entry): void {
    if (!entry.changed || refreshing.has(entry)) return;
    entry.changed = false;
    const work = entry.opened.then((session) => list(entry.server, session)).catch(() => {})
      .finally(() => refreshing.delete(entry));
    refreshing.set(entry, work);
  }

  return {
    async open(server) {
      const kept = server.keeps ? find(server, "") : undefined;
      if (kept) await list(server, await kept.opened);
      else await open(server, undefined).opened;
    },

    async use(server, turn, work) {
      for (let again = false;; again = true) {
        const entry = find(server, turn) ?? open(server, turn);
        entry.busy++;
        try {
          return await work(await entry.opened);
        } catch (error) {
          if (again || !(error instanceof Trouble) || error.kind !== "forgotten") throw error;
          if (!entry.retired) retire(entry);
        } finally {
          entry.busy--;
          entry.used = clock.mono();
          if (entry.retired && entry.busy === 0) end(entry);
          else if (entry.turn === undefined) arm();
        }
      }
    },

    async refresh({ tool }) {
      for (const entry of entries) if (entry.server.tool === tool) refresh(entry);
      await Promise.all([...refreshing].map(([entry, work]) => entry.server.tool === tool && work));
    },

    async turnEnded(turn) {
      for (const entry of [...entries]) {
        const { server, busy } = entry;
        if (entry.turn !== turn && (server.keeps || entry.turn !== undefined || busy > 0)) continue;
        refresh(entry);
        end(entry);
      }
      await Promise.all(farewells);
    },

    async close() {
      silence();
      for (const entry of [...entries]) end(entry);
      await Promise.all(farewells);
    },
  };
}
