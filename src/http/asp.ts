// The doors of a turn: `asp/turn` and `asp/end`. What a turn does is turn/; how its caller is answered is caller.ts.

import type { News, Say } from "../turn/news.ts";
import { parseForm, readForm } from "./body.ts";
import { type Answering, errorBody, jsonCaller, streamCaller, type Wire } from "./caller.ts";
import { type Door, goOn, type Parts, type Route } from "./door.ts";
import { endBody, toolNames, turnBody } from "./schemas.ts";
import { frame } from "./sse.ts";

export function aspRoutes(parts: Parts): Route[] {
  return [
    { method: "POST", path: "/agents/:agent/asp/turn", handle: (door) => turn(parts, door) },
    { method: "POST", path: "/agents/:agent/asp/end", handle: (door) => end(parts, door) },
  ];
}

async function turn(parts: Parts, door: Door): Promise<Response> {
  const body = await readForm(door.req.raw, turnBody);
  const tools = narrowing(body.tools, door.req.header("link-tools"));
  const say: Say = { ...body, ...(tools ? { tools } : {}) };
  const callerParts = { clock: parts.clock, signal: door.req.raw.signal };
  const make = wantsStream(door) ? streamCaller : jsonCaller;
  return await answered(parts, door, say, make(callerParts, aspWire));
}

/** Says it to the agent of the path; the response that its caller is answered by. */
export async function answered(
  parts: Parts,
  door: Door,
  say: Say,
  { caller, response }: Answering,
): Promise<Response> {
  const agent = door.get("agent");
  parts.presence.use(agent.name);
  try {
    const { work } = await parts.turns.say(agent, say, caller);
    // Its idle time begins where the turn ends.
    const used = () => parts.presence.isAwake(agent.name) && parts.presence.use(agent.name);
    goOn(door, parts.notify, work.finally(used));
  } catch (thrown) {
    // Nothing was kept: a status and JSON.
    caller.drop();
    throw thrown;
  }
  return await response;
}

async function end(parts: Parts, door: Door): Promise<Response> {
  const { thread } = await readForm(door.req.raw, endBody);
  return door.json({ ended: await parts.turns.end(door.get("agent"), thread) });
}

export function wantsStream(door: Door): boolean {
  return /(^|[\s,])text\/event-stream\b/i.test(door.req.header("accept") ?? "");
}

/** What narrows the conversation: the body's list, the header's, or what is in both. */
export function narrowing(listed: string[] | undefined, header: string | undefined): string[] | undefined {
  if (header === undefined) return listed;
  const named = header.split(",").map((name) => name.trim()).filter((name) => name !== "");
  const checked = parseForm(toolNames, named);
  return listed ? listed.filter((name) => checked.includes(name)) : checked;
}

const aspWire: Wire = {
  running: true,
  frame(news) {
    if (news.type !== "error") return frame(news.type, JSON.stringify(plain(news)));
    return frame(
      "error",
      JSON.stringify({ ...errorBody(news), ...(news.turn === undefined ? {} : { turn: news.turn }) }),
    );
  },
  body(news) {
    if (news.type === "error") return errorBody(news);
    return news.type === "joined" ? { joined: true, ...plain(news) } : plain(news);
  },
};

function plain({ type: _, ...body }: News): object {
  return body;
}
