// One session with an MCP server. The only file that knows the official client, and so never imported but at first use of a
// tool: it is by far the heaviest thing here. The client speaks both eras of the protocol; what is done around it: no result
// is thrown away for one bad part, a call is bounded, and one that is given up is told apart from one that was never made.

import { Client, type JSONRPCMessage, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { Clock } from "../clock.ts";
import { type Fetch, within } from "../fetch.ts";
import { limits } from "../limits.ts";
import { version } from "../version.ts";
import type { Reach } from "./servers.ts";
import { Trouble, troubleOf } from "./trouble.ts";
import { wireFetch } from "./wire.ts";

/** What a session is opened with. */
export interface Opening {
  reach: Reach;
  fetch: Fetch;
  clock: Clock;
  /** Whether it may hold a stream open for what the server says by itself. */
  listens: boolean;
  /** Gives up the opening. */
  signal: AbortSignal;
  onListChanged(): void;
}

/** Which era a server speaks: of `initialize` and session ids, or since 2026-07-28; there `discover` is what it said of itself. */
export type Era = { era: "2025" } | { era: "2026"; discover: unknown };

/** A session as the rest of this folder sees it. Every failure is a `Trouble`. */
export interface Session {
  readonly spoken: Era;
  readonly instructions: string | undefined;
  /** One page of the list of calls, as it came. */
  page(cursor: string | undefined, signal: AbortSignal): Promise<unknown>;
  /** A call's whole result, as it came. */
  call(call: SessionCall): Promise<unknown>;
  /** Ends it, at the server too. Never rejects. */
  end(): Promise<void>;
}

export interface SessionCall {
  name: string;
  arguments: Record<string, unknown>;
  /** Schema of its arguments: parts of them may be sent as headers, too. */
  schema: Record<string, unknown>;
  thread: string;
  key: string;
  signal: AbortSignal;
}

/** Opens a session in the era that is known, or in the one that the server says it speaks. */
export async function openSession(opening: Opening, known: Era | undefined): Promise<Session> {
  const { reach, clock, signal } = opening;
  const client = new Client({ name: "link-harness", version }, {
    versionNegotiation: { mode: "auto", probe: { timeoutMs: limits.toolProbeMs } },
    inputRequired: { autoFulfill: false },
  });
  const fetch = wireFetch(opening.fetch, reach, opening.listens);
  const wire = new Wire(reach.url, {
    fetch,
    reconnectionOptions: {
      initialReconnectionDelay: limits.toolResumeMs,
      maxReconnectionDelay: limits.toolProbeMs,
      reconnectionDelayGrowFactor: 2,
      maxRetries: limits.toolResumesMax,
    },
    reconnectionScheduler(reconnect, ms) {
      const timer = setTimeout(reconnect, Math.max(ms, limits.toolResumeMs));
      return () => clearTimeout(timer);
    },
  });
  client.setNotificationHandler("notifications/tools/list_changed", () => opening.onListChanged());
  client.fallbackRequestHandler = () => Promise.reject(refusal);

  const trouble = (error: unknown) =>
    troubleOf(error, { session: wire.sessionId !== undefined, secrets: reach.secrets });
  const end = async () => {
    // Not by the client, which cannot once it has closed a session that it could not open whole.
    const { sessionId, protocolVersion } = wire;
    if (sessionId !== undefined) {
      const headers = {
        "mcp-session-id": sessionId,
        "mcp-protocol-version": protocolVersion ?? firstVersion,
      };
      await fetch(reach.url, { method: "DELETE", headers, signal: within(limits.toolEndMs) })
        .then((response) => response.body?.cancel()).catch(() => {});
    }
    await wire.close().catch(() => {});
  };
  try {
    await orAborted(client.connect(wire, { signal, prior: priorOf(known) }), signal);
  } catch (error) {
    await end();
    throw trouble(error);
  }
  const discover = client.getDiscoverResult();
  return {
    spoken: discover === undefined ? { era: "2025" } : { era: "2026", discover },
    instructions: client.getInstructions(),
    async page(cursor, signal) {
      if (!client.getServerCapabilities()?.tools) return { tools: [] };
      try {
        const params = cursor === undefined ? {} : { cursor };
        return wholeOf(await orAborted(client.request({ method: "tools/list", params }, { signal }), signal));
      } catch (error) {
        throw trouble(error);
      }
    },
    call: (call) => makeCall(client, wire, clock, call, trouble),
    end,
  };
}

/** Makes a call, within its bounds. */
async function makeCall(
  client: Client,
  wire: Wire,
  clock: Clock,
  { name, arguments: given, schema, thread, key, signal }: SessionCall,
  trouble: (error: unknown) => Trouble,
): Promise<unknown> {
  if (signal.aborted) throw new Trouble("unmade", "the turn was stopped");
  const giveUp = new AbortController(), over = new AbortController();
  const stop = () => giveUp.abort("the turn was stopped");
  signal.addEventListener("abort", stop, { once: true });
  const bounds = boundsOf(clock, (why) => giveUp.abort(why), over.signal);
  wire.pending.set(key, { signal: over.signal, lost: () => giveUp.abort("its answer broke off") });
  try {
    const result = await client.callTool(
      { name, arguments: given, _meta: { "link/thread": thread, "link/key": key } },
      {
        // No schema of the output: a result is data, whatever the server promised.
        toolDefinition: { name, inputSchema: { ...schema, type: "object" } },
        signal: giveUp.signal,
        timeout: timerMsMax,
        onprogress: bounds.heard,
      },
    );
    return wholeOf(result);
  } catch (error) {
    if (giveUp.signal.aborted) throw new Trouble("unknown", String(giveUp.signal.reason), { cause: error });
    throw trouble(error);
  } finally {
    signal.removeEventListener("abort", stop);
    wire.pending.delete(key);
    over.abort();
  }
}

/** Gives a call up after a silence, and in the end however much it tells of its progress. */
function boundsOf(
  clock: Clock,
  giveUp: (why: string) => void,
  over: AbortSignal,
): { heard: () => void } {
  const began = clock.mono();
  let heard = began;
  const watch = async () => {
    while (!over.aborted) {
      const silent = heard + limits.toolSilenceMs, long = began + limits.toolCallMs;
      const left = Math.min(silent, long) - clock.mono();
      if (left <= 0) {
        const ms = silent <= long ? limits.toolSilenceMs : limits.toolCallMs;
        return giveUp(`no answer came within ${ms / 1000} seconds`);
      }
      await clock.sleep(left, over);
    }
  };
  watch();
  return { heard: () => void (heard = clock.mono()) };
}

/** A call under way, as its connection knows it. */
interface Pending {
  /** Closes its connection, which a server that hangs would keep open. */
  signal: AbortSignal;
  /** Its answer's stream has ended and will not go on. */
  lost(): void;
}

/** The client's way over HTTP, with what the client itself does not look after. */
class Wire extends StreamableHTTPClientTransport {
  /** By key. */
  readonly pending = new Map<unknown, Pending>();
  #whole = new Set<unknown>();
  #refusals = 0;

  constructor(...given: ConstructorParameters<typeof StreamableHTTPClientTransport>) {
    super(...given);
    this.onmessage = (message) => this.#carry(message);
  }

  override async send(
    message: JSONRPCMessage,
    options: Parameters<StreamableHTTPClientTransport["send"]>[1] = {},
  ): Promise<void> {
    const { method, id, params } = message as { method?: string; id?: unknown; params?: CallParams };
    if (method === undefined && ++this.#refusals > limits.toolRefusalsMax) return;
    if (method === undefined || id === undefined) {
      return await super.send(message, { ...options, requestSignal: within(limits.toolEndMs) });
    }
    if (method === "tools/list" || method === "tools/call") this.#whole.add(id);
    const pending = method === "tools/call" ? this.pending.get(params?._meta?.["link/key"]) : undefined;
    if (!pending) return await super.send(message, options);
    const requestSignal = options.requestSignal
      ? AbortSignal.any([options.requestSignal, pending.signal])
      : pending.signal;
    await super.send(message, { ...options, requestSignal, onRequestStreamEnd: pending.lost });
  }

  /**
   * The client checks a list, or a result, whole, and throws all of it away for one bad part. So it is handed a form that
   * always passes, and what came is carried in it.
   */
  #carry(message: JSONRPCMessage): void {
    const answer = message as { id?: unknown; result?: unknown };
    if (!this.#whole.delete(answer.id)) return;
    const { result } = answer;
    if (typeof result !== "object" || result === null || "inputRequests" in result) return;
    const { resultType } = result as { resultType?: unknown };
    answer.result = {
      ...(resultType === undefined ? {} : { resultType }),
      ...{ tools: [], content: [], ttlMs: 0, cacheScope: "private" },
      [carried]: result,
    };
  }
}

type CallParams = { _meta?: Record<string, unknown> };

const carried = "link/whole";

/** What a server asks of us is refused in these words, never left waiting. */
const refusal = Object.assign(
  new Error(
    "Nobody can be asked here: this client takes no questions, lends no model and shares no folders.",
  ),
  { code: -32601 },
);

/** What a session speaks before it has said more. */
const firstVersion = "2025-11-25";

/** The longest that a timer takes; bounds of ours end a call before. */
const timerMsMax = 2 ** 31 - 1;

function wholeOf(result: unknown): unknown {
  return (result as Record<string, unknown>)[carried];
}

function priorOf(known: Era | undefined) {
  if (known === undefined) return undefined;
  if (known.era === "2025") return { kind: "legacy" } as const;
  return { kind: "modern", discover: known.discover as never } as const;
}

/** As `work`, but no longer than until `signal`: the client itself does not stop everywhere. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(new Trouble("unmade", "it did not answer in time", { final: true }));
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
