// The doors for programs that speak to OpenAI: an agent is a model of its name, and a chat completion is a turn. Which
// message and which conversation a request means is decided here; how a turn reads as a completion is completion.ts.

import { createHash } from "node:crypto";
import * as v from "valibot";
import { asFailure, Failure } from "../errors.ts";
import { limits } from "../limits.ts";
import { parseLine } from "../log/event.ts";
import { checkThread, threadFault } from "../names.ts";
import type { ConversationStore } from "../store/seams.ts";
import type { Say } from "../turn/news.ts";
import { answered, narrowing } from "./asp.ts";
import { readForm } from "./body.ts";
import { jsonCaller, streamCaller } from "./caller.ts";
import { completionWire } from "./completion.ts";
import type { Door, Parts, Route } from "./door.ts";
import { isPrefix, type Spoken } from "./history.ts";
import { openaiError } from "./openai_error.ts";
import { chatBody, messageId, messageText } from "./schemas.ts";

export function openaiRoutes(parts: Parts): Route[] {
  return [
    { method: "GET", path: "/agents/:agent/v1/models", handle: models },
    {
      method: "POST",
      path: "/agents/:agent/v1/chat/completions",
      handle: (door) => complete(parts, door).catch((thrown) => refusedAsOpenai(thrown)),
    },
  ];
}

function models(door: Door): Response {
  return door.json({
    object: "list",
    data: [{ id: door.get("agent").name, object: "model", created: 0, owned_by: "link-harness" }],
  });
}

async function complete(parts: Parts, door: Door): Promise<Response> {
  const agent = door.get("agent");
  const request = await readForm(door.req.raw, chatBody);
  if (request.model !== agent.name) {
    throw new Failure("not_found", {
      what: `model ${JSON.stringify(request.model)}; the agent's own name is the only one`,
    });
  }
  const { text, history } = messageOf(request.messages);
  const { conversations } = agent.store;
  const thread = await threadOf(door, request, history, text, conversations);
  const id = await idOf(parts, door, conversations, thread, text);
  const tools = narrowing(undefined, door.req.header("link-tools"));
  const say: Say = {
    thread,
    message: { id, text, from: { role: "owner" } },
    connection: "openai",
    ...(tools ? { tools } : {}),
    waitMs: limits.chatWaitMs,
  };
  const usage = request.stream_options?.include_usage === true;
  const wire = completionWire({
    agent: agent.name,
    thread,
    created: Math.floor(parts.clock.now() / 1000),
    usage,
  });
  const make = request.stream ? streamCaller : jsonCaller;
  return await answered(parts, door, say, make({ clock: parts.clock, signal: door.req.raw.signal }, wire));
}

type Given = v.InferOutput<typeof chatBody>["messages"][number];

/** The newest message that a user spoke, and what was said before it. Throws `invalid` for what is no text. */
function messageOf(messages: readonly Given[]): { text: string; history: Spoken[] } {
  const newest = messages.findLastIndex(({ role }) => role === "user");
  if (newest < 0) throw invalid("messages", "no message of role `user`");
  const { content } = messages[newest]!;
  const checked = v.safeParse(messageText, textOf(content, `messages.${newest}.content`));
  if (!checked.success) throw invalid(`messages.${newest}.content`, checked.issues[0].message);
  const history = messages.slice(0, newest).flatMap(({ role, content }): Spoken[] =>
    role === "user" || role === "assistant" ? [{ role, text: plainText(content) }] : []
  );
  return { text: checked.output, history };
}

function textOf(content: unknown, path: string): string {
  if (!Array.isArray(content)) return typeof content === "string" ? content : "";
  const other = content.findIndex((part) => part?.type !== "text" || typeof part.text !== "string");
  if (other >= 0) throw invalid(`${path}.${other}`, "no text part; an agent is sent text only");
  return content.map((part) => part.text).join("\n");
}

/** The text of an earlier message, whatever else is in it: it is only compared. */
function plainText(content: unknown): string {
  if (!Array.isArray(content)) return typeof content === "string" ? content : "";
  return content.flatMap((part) => typeof part?.text === "string" ? [part.text] : []).join("\n");
}

/** Which conversation: the header, the metadata, the user; else the default one where this goes on with it, else the chat's own. */
async function threadOf(
  door: Door,
  request: v.InferOutput<typeof chatBody>,
  history: Spoken[],
  text: string,
  store: ConversationStore,
): Promise<string> {
  const header = door.req.header("x-thread");
  if (header !== undefined) return checkThread(decoded(header));
  for (
    const [path, named] of [["metadata.thread", request.metadata?.thread], ["user", request.user]] as const
  ) {
    if (named === undefined || named === null || named === "") continue;
    const fault = threadFault(named);
    if (fault !== undefined) throw invalid(path, `no thread: ${fault}`);
    return named;
  }
  if (await isPrefix(history, store, defaultThread)) return defaultThread;
  const first = history[0]?.text ?? text;
  return `openai:${createHash("sha256").update(first).digest("hex").slice(0, 16)}`;
}

const defaultThread = "openai:default";

function decoded(header: string): string {
  try {
    return decodeURIComponent(header);
  } catch (error) {
    throw new Failure("thread_invalid", { why: "the header X-Thread is not percent-encoded UTF-8" }, {
      cause: error,
    });
  }
}

/** The message's id: the client's key; or, where a client library sends the newest message again, that one's. */
async function idOf(
  parts: Parts,
  door: Door,
  store: ConversationStore,
  thread: string,
  text: string,
): Promise<string> {
  const key = door.req.header("idempotency-key");
  if (key !== undefined) {
    const checked = v.safeParse(messageId, key);
    if (!checked.success) throw invalid("Idempotency-Key", checked.issues[0].message);
    return checked.output;
  }
  if (Number(door.req.header("x-stainless-retry-count") ?? 0) > 0) {
    const newest = (await store.readBack(thread, undefined, limits.retryEventsBack))
      .map((line) => parseLine(line).event)
      .findLast((event) => event?.type === "message");
    if (newest?.type === "message" && newest.id !== undefined && newest.text === text) return newest.id;
  }
  return parts.ids("chat");
}

function invalid(path: string, message: string): Failure {
  return new Failure("invalid", { issues: [{ path, message }] });
}

/** A failure before anything was kept, with the fields that OpenAI's libraries read. */
function refusedAsOpenai(thrown: unknown): Response {
  const failure = asFailure(thrown);
  // What failed inside is told and hidden where every door's is.
  if (failure.code === "internal") throw thrown;
  return Response.json(openaiError(failure.form().error, failure.status), { status: failure.status });
}
