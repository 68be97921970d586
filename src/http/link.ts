// The doors of the Link project's bridge: `_link/recover` and `_link/sleep`. Neither wakes an agent, but for a turn that
// recovery finishes.

import { Failure } from "../errors.ts";
import { readForm } from "./body.ts";
import { jsonHeaders } from "./caller.ts";
import { type Door, goOn, type Parts, type Route } from "./door.ts";
import { outflow } from "./outflow.ts";
import { recoverBody } from "./schemas.ts";

export function linkRoutes(parts: Parts): Route[] {
  return [
    { method: "POST", path: "/agents/:agent/_link/recover", handle: (door) => recover(parts, door) },
    { method: "POST", path: "/agents/:agent/_link/sleep", handle: (door) => sleep(parts, door) },
  ];
}

async function recover(parts: Parts, door: Door): Promise<Response> {
  const agent = door.get("agent");
  const request = await readForm(door.req.raw, recoverBody, { orEmpty: true });
  const { answers, finishing, handed } = await parts.turns.recover(agent, request);
  if (finishing > 0) parts.presence.use(agent.name);
  const flow = outflow({ signal: door.req.raw.signal, bytesMax: Infinity });
  flow.push(new TextEncoder().encode(JSON.stringify({ answers, finishing })));
  flow.end();
  // With `keep` an answer stays until it is named as taken; without, once the body was pulled to its end.
  goOn(door, parts.notify, flow.taken.then(handed));
  return new Response(flow.body, { headers: jsonHeaders });
}

async function sleep(parts: Parts, door: Door): Promise<Response> {
  const agent = door.get("agent");
  if (parts.turns.running(agent.name) > 0) throw new Failure("turn_running");
  parts.turns.drop(agent.name);
  await parts.presence.sleep(agent);
  return door.json({ state: "asleep", awake: parts.presence.awake() });
}
