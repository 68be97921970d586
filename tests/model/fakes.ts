// A provider of our own for tests: what each reply is, byte for byte, and what was asked.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after } from "node:test";
import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/clock.ts";
import type { Prompt, PromptMessage } from "../../src/model/model.ts";

/** What came with a request. */
export interface Asked {
  method: string;
  path: string;
  headers: IncomingMessage["headers"];
  text: string;
  // deno-lint-ignore no-explicit-any -- tests look into it freely
  body: any;
}

export type Reply = (response: ServerResponse, asked: Asked) => void;

const open = new Set<Server>();
after(() => {
  for (const server of open) {
    server.closeAllConnections();
    server.close();
  }
});

/** A server that gives these replies in turn, the last one again and again. */
export async function provider(...replies: Reply[]): Promise<{ url: string; asked: Asked[]; port: number }> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    const chunks: Uint8Array[] = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString("utf8");
      const one = {
        method: request.method ?? "",
        path: request.url ?? "",
        headers: request.headers,
        text,
        body: text ? JSON.parse(text) : undefined,
      };
      asked.push(one);
      replies[Math.min(asked.length, replies.length) - 1]!(response, one);
    });
  });
  open.add(server);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/v1`, asked, port };
}

export const status =
  (code: number, body: unknown = "", headers: Record<string, string> = {}): Reply => (response) => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    response.writeHead(code, {
      "content-type": typeof body === "string" ? "text/plain" : "application/json",
      ...headers,
    });
    response.end(text);
  };

export const json = (body: unknown): Reply => status(200, body);

/** A stream of these events; `drop` cuts the connection after them. */
export function stream(events: (string | object)[], { drop = false, hang = false } = {}): Reply {
  return (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of events) {
      response.write(typeof event === "string" ? event : `data: ${JSON.stringify(event)}\n\n`);
    }
    if (drop) setTimeout(() => response.destroy(), 20);
    else if (!hang) response.end();
  };
}

/** Chunks of the OpenAI wire. */
export const delta = (fields: object, finish: string | null = null) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  model: "fake-1",
  choices: [{ index: 0, delta: fields, finish_reason: finish }],
});
export const done = "data: [DONE]\n\n";
export const said = (text: string, finish = "stop"): Reply =>
  stream([delta({ content: text }), delta({}, finish), done]);

/** A clock whose waits are told and pass at once. */
export function hastyClock(): Clock & { waits: number[] } {
  const waits: number[] = [];
  return {
    now: systemClock.now,
    mono: systemClock.mono,
    waits,
    sleep(ms, signal) {
      // The watch for silence and the wait for a count of tokens stay real; a wait between two tries does not.
      if (ms > 60_000 || ms === 5000) return systemClock.sleep(ms, signal);
      waits.push(ms);
      return systemClock.sleep(0, signal);
    },
  };
}

export function promptOf(...messages: (string | PromptMessage)[]): Prompt {
  return {
    instructions: ["You are a test."],
    tools: [],
    choice: "auto",
    messages: messages.map((message) =>
      typeof message === "string" ? { role: "user", text: message } : message
    ),
    markAt: -1,
    answerMax: 100,
  };
}
