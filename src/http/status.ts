// What a process and an agent are: `/healthz` without a key, `GET /agents/AGENT` with it.

import type { Agent } from "../agent/agent.ts";
import { failedBy, Failure } from "../errors.ts";
import { everyThread } from "../store/every_thread.ts";
import type { Door, Parts, Route } from "./door.ts";

export function statusRoutes(parts: Parts): Route[] {
  return [
    { method: "GET", path: "/healthz", handle: (door) => health(parts, door) },
    { method: "GET", path: "/agents/:agent", handle: (door) => agentStatus(parts, door) },
  ];
}

function health({ agents, presence, version }: Parts, door: Door): Response {
  const facts = { version, agents: [...agents.list()].length, awake: presence.awake() };
  if (!door.env.drained.aborted) return door.json({ ok: true, ...facts });
  return door.json({ ok: false, ...facts, ...new Failure("draining").form() }, 503);
}

async function agentStatus({ presence, version }: Parts, door: Door): Promise<Response> {
  const agent = door.get("agent");
  const settings = await agent.settings();
  return door.json({
    agent: agent.name,
    harness: "link",
    version,
    asp: "asp/1",
    state: presence.isAwake(agent.name) ? "awake" : "asleep",
    model: settings.model.name ?? await modelName(agent),
    storage: settings.storage.conversations,
    conversations: await countConversations(agent),
  });
}

/** The model that would answer where the settings name none; null where none can be asked. */
async function modelName(agent: Agent): Promise<string | null> {
  try {
    return (await agent.model(await agent.settings())).name;
  } catch (thrown) {
    if (failedBy(thrown, "no_model")) return null;
    throw thrown;
  }
}

async function countConversations({ store }: Agent): Promise<number> {
  let count = 0;
  for await (const _ of everyThread(store.conversations)) count++;
  return count;
}
