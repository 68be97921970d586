// The description of the wire, made from the very schemas that requests are checked with. Loaded when it is first asked for.

import { Hono } from "hono";
import { describeRoute, type DescribeRouteOptions, generateSpecs, resolver } from "hono-openapi";
import type * as v from "valibot";
import { specSchema } from "../agent/settings.ts";
import type { Route } from "./door.ts";
import * as reply from "./replies.ts";
import * as given from "./schemas.ts";

/** The OpenAPI 3.1 description of these routes. */
export async function describeWire(
  routes: readonly Pick<Route, "method" | "path">[],
  version: string,
): Promise<unknown> {
  const app = new Hono();
  for (const { method, path } of routes) {
    const told = descriptions[`${method} ${path.replace("/agents/:agent", "")}`];
    if (told) app.on(method, path, describeRoute(await described(told, path)), (door) => door.body(null));
  }
  return await generateSpecs(app, {
    documentation: {
      info: {
        title: "Link Harness",
        version,
        description:
          "Takes an AI agent's next turn. Every call below /agents needs the key of the agent that the path names.",
      },
      servers: [{ url: "/" }],
      components: { securitySchemes: { key: { type: "http", scheme: "bearer" } } },
    },
    excludeStaticFile: false,
  });
}

/** What is told of one route. */
interface Told {
  summary: string;
  body?: { schema: v.GenericSchema; example: unknown; optional?: true; type?: string };
  query?: Record<string, { schema: v.GenericSchema; says: string }>;
  headers?: Record<string, string>;
  /** By status; a text is a reply without a body. */
  replies: Record<number, Content | string>;
}
type Content = Record<string, { schema?: v.GenericSchema; example: unknown }>;

const json = (schema: v.GenericSchema, example: unknown): Content => ({
  "application/json": { schema, example },
});

const event = {
  seq: 1,
  at: "2026-12-01T09:00:00.120Z",
  type: "message",
  id: "tg-991",
  from: { role: "owner", name: "Ana" },
  connection: "telegram",
  head: "[Tue 2026-12-01 10:00 +01:00 · telegram · owner Ana]",
  text: "Where is my parcel?",
};
const answer = {
  id: "3f9c.2.5b1e",
  turn: "turn_3f9c",
  thread: "telegram:42",
  seq: 2,
  messages: ["tg-991"],
  text: "It left Lyon this morning.",
  model: "claude-opus-4-5",
  provider: "anthropic",
  tokens: { input: 412, output: 9, cached: 380 },
  cost: 0.0031,
  ms: 2291,
  rounds: 1,
  calls: 0,
  stop: "end",
};
const spec = { model: { name: "anthropic/claude-opus-4-5" }, window: { max: 100000 } };
const { entries: pages } = given.listQuery;
const { entries: parts } = given.eventsQuery;

/** By method and path below the agent's own. */
export const descriptions: Record<string, Told> = {
  "GET /healthz": {
    summary: "Whether the process takes turns; 503 while it ends.",
    replies: { 200: json(reply.healthReply, { ok: true, version: "0.1.0", agents: 2, awake: 1 }) },
  },
  "GET /openapi.json": {
    summary: "This description.",
    replies: { 200: { "application/json": { example: { openapi: "3.1.0" } } } },
  },
  "GET ": {
    summary: "The agent, and what answers for it.",
    replies: {
      200: json(reply.agentReply, {
        agent: "mia",
        harness: "link",
        version: "0.1.0",
        asp: "asp/1",
        state: "awake",
        model: "anthropic/claude-opus-4-5",
        storage: "log",
        conversations: 12,
      }),
    },
  },
  "POST /asp/turn": {
    summary: "Says a message to the agent; answers with the turn's answer, as JSON or as a stream of events.",
    body: {
      schema: given.turnBody,
      example: {
        thread: "telegram:42",
        message: { id: "tg-991", text: "Where is my parcel?", from: { role: "owner", name: "Ana" } },
      },
    },
    headers: {
      "Link-Tools": "Narrows the conversation's tools for good, e.g. `memory__search, file__read`.",
    },
    replies: {
      200: {
        ...json(reply.answerReply, answer),
        "text/event-stream": {
          example:
            'event: start\ndata: {"turn":"turn_3f9c","thread":"telegram:42","seq":1}\n\nevent: text\ndata: {"text":"It left"}\n\n',
        },
      },
      202: json(reply.acceptedReply, { joined: true, thread: "telegram:42", seq: 3, turn: "turn_3f9c" }),
    },
  },
  "POST /asp/end": {
    summary: "Asks the running turn to end; it keeps what it has said so far.",
    body: { schema: given.endBody, example: { thread: "telegram:42" } },
    replies: { 200: json(reply.endReply, { ended: true }) },
  },
  "POST /_link/recover": {
    summary: "Hands over answers that nobody took, and starts finishing crashed turns.",
    body: { schema: given.recoverBody, example: { keep: true, taken: ["3f9c.2.5b1e"] }, optional: true },
    replies: {
      200: json(reply.recoverReply, {
        answers: [{
          id: "3f9c.2.5b1e",
          thread: "telegram:42",
          connection: "telegram",
          turn: "turn_3f9c",
          seq: 2,
          text: "It left Lyon this morning.",
          at: "2026-12-01T09:00:02.480Z",
          messages: ["tg-991"],
          why: "caller_gone",
        }],
        finishing: 0,
      }),
    },
  },
  "POST /_link/sleep": {
    summary: "Puts the agent to sleep: it stays served, what it held is freed.",
    replies: { 200: json(reply.sleepReply, { state: "asleep", awake: 1 }) },
  },
  "GET /asp/conversations": {
    summary: "The conversations, in order of thread.",
    query: {
      limit: { schema: pages.limit, says: "At most so many." },
      after: { schema: pages.after, says: "Those after this thread." },
    },
    replies: {
      200: json(reply.conversationsReply, {
        conversations: [{
          thread: "telegram:42",
          connection: "telegram",
          events: 2,
          storage: "log",
          updated: "2026-12-01T09:00:02.480Z",
          running: false,
        }],
      }),
    },
  },
  "GET /asp/conversations/:thread/events": {
    summary: "A conversation's events, one a line; as a stream of events it is followed.",
    query: {
      from: { schema: parts.from, says: "From this number on, itself included." },
      limit: { schema: parts.limit, says: "At most so many." },
      last: { schema: parts.last, says: "The last so many." },
    },
    headers: { "Last-Event-ID": "Of a follower that comes back: goes on after this number." },
    replies: {
      200: {
        "application/x-ndjson": { schema: reply.eventReply, example: event },
        "text/event-stream": { example: `id: 1\nevent: event\ndata: ${JSON.stringify(event)}\n\n` },
      },
    },
  },
  "GET /asp/conversations/:thread/text": {
    summary: "A conversation as people read it.",
    replies: { 200: { "text/markdown": { example: `**${event.head}**\n\n${event.text}\n` } } },
  },
  "POST /asp/conversations/:thread/fork": {
    summary: "Copies every event before a message into a new conversation.",
    body: { schema: given.forkBody, example: { before: 7, as: "telegram:43" } },
    replies: { 201: json(reply.forkReply, { thread: "telegram:43", events: 6 }) },
  },
  "DELETE /asp/conversations/:thread": {
    summary: "Removes a conversation and all that is noted of it.",
    replies: { 204: "Removed." },
  },
  "GET /asp/settings": {
    summary: "The agent's settings, secrets and addresses masked.",
    query: { effective: { schema: given.settingsQuery.entries.effective, says: "With the defaults." } },
    replies: { 200: json(reply.settingsReply, spec) },
  },
  "PUT /asp/settings": {
    summary: "Replaces the settings.",
    body: { schema: specSchema, example: spec },
    replies: { 200: json(reply.settingsReply, spec) },
  },
  "PATCH /asp/settings": {
    summary: "Changes the settings by a JSON merge patch.",
    body: { schema: specSchema, example: { window: { max: 100000 } }, type: "application/merge-patch+json" },
    replies: { 200: json(reply.settingsReply, spec) },
  },
  "GET /v1/models": {
    summary: "The agent as a model, for OpenAI's clients.",
    replies: {
      200: json(reply.modelsReply, {
        object: "list",
        data: [{ id: "mia", object: "model", created: 0, owned_by: "link-harness" }],
      }),
    },
  },
  "POST /v1/chat/completions": {
    summary: "A turn, for OpenAI's clients: the last message of role `user` is said.",
    body: {
      schema: given.chatBody,
      example: { model: "mia", messages: [{ role: "user", content: "Where is my parcel?" }] },
    },
    headers: {
      "X-Thread": "The thread, percent-encoded.",
      "Idempotency-Key": "The message's id.",
      "Link-Tools": "Narrows the conversation's tools for good.",
    },
    replies: {
      200: {
        ...json(reply.completionReply, {
          id: "chatcmpl-3f9c.2.5b1e",
          object: "chat.completion",
          created: 1796115600,
          model: "mia",
          choices: [{
            index: 0,
            message: { role: "assistant", content: "It left Lyon this morning.", refusal: null },
            finish_reason: "stop",
          }],
          usage: { prompt_tokens: 412, completion_tokens: 9, total_tokens: 421 },
        }),
        "text/event-stream": { example: "data: [DONE]\n\n" },
      },
    },
  },
};

async function described(told: Told, path: string): Promise<DescribeRouteOptions> {
  const contents = (content: Content) =>
    Object.fromEntries(
      Object.entries(content).map((
        [type, { schema, example }],
      ) => [type, { schema: schema ? form(schema) : { type: "string" as const }, example }]),
    );
  const replies = Object.entries(told.replies).map(([status, content]) => [
    status,
    typeof content === "string"
      ? { description: content }
      : { description: "Done.", content: contents(content) },
  ]);
  const parameters = [
    ...await Promise.all(
      Object.entries(told.query ?? {}).map(async ([name, { schema, says }]) => ({
        name,
        in: "query" as const,
        description: says,
        schema: (await form(schema).toOpenAPISchema()).schema,
      })),
    ),
    ...Object.entries(told.headers ?? {}).map(([name, description]) => ({
      name,
      in: "header" as const,
      description,
      schema: { type: "string" as const },
    })),
  ];
  const { body } = told;
  return {
    summary: told.summary,
    ...(path.startsWith("/agents/") ? { security: [{ key: [] }] } : {}),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body
      ? {
        requestBody: {
          required: !body.optional,
          content: {
            [body.type ?? "application/json"]: { schema: form(body.schema), example: body.example },
          },
        },
      }
      : {}),
    responses: {
      ...Object.fromEntries(replies),
      default: {
        description: "It failed.",
        content: {
          "application/json": {
            schema: form(reply.errorReply),
            example: {
              error: {
                code: "forbidden",
                message: "This key is not that agent's; use the key of the agent that the path names.",
              },
            },
          },
        },
      },
    },
  } as DescribeRouteOptions;
}

/** A schema as it is taken in, before anything is made of it. */
function form(schema: v.GenericSchema) {
  return resolver(schema, { options: { typeMode: "input" } } as never);
}
