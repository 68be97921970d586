// Whole conversations: copied up to a message, removed, or worked on by somebody else (convert, import), each under the
// conversation's lease for its whole run, so that no turn is in between.

import type { Agent } from "../agent/agent.ts";
import { duration, timestamp } from "../clock.ts";
import { asFailure, failedBy, Failure } from "../errors.ts";
import { limits } from "../limits.ts";
import { isAnswer } from "../log/conversation.ts";
import { encodeEvent, parseLine } from "../log/event.ts";
import type { Here } from "./desk.ts";
import { takeLease } from "./holder.ts";

/** Runs `work` while nobody else works on the conversation, in this process or another. Throws `turn_running`. */
export async function whole<Value>(
  here: Here,
  agent: Agent,
  thread: string,
  work: () => Promise<Value>,
): Promise<Value> {
  const desk = here.desks.at(agent, thread);
  if (desk.running || desk.next) throw new Failure("turn_running", { thread });
  return await desk.accept(async () => {
    const store = agent.store.conversations;
    const settings = await agent.settings();
    const deadlineMs = duration(settings.model.deadline) ?? limits.turnDeadlineMs;
    const held = await store.leaseRead(thread);
    if (held && held.state !== "dead") throw new Failure("turn_running", { thread });
    const claim = { turn: here.parts.ids("whole"), deadlineMs, ...(held ? { replaces: held } : {}) };
    const holder = await takeLease({ ...here.parts, store, tail: desk.tail }, claim);
    if (!holder) throw new Failure("turn_running", { thread });
    try {
      return await work();
    } finally {
      // A dead turn's lease was taken over and its turn not finished: that is left to recovery still.
      await (held ? holder.leave() : holder.free()).catch((thrown) => {
        if (failedBy(thrown, "lease_lost")) return; // removed with its conversation
        here.parts.notify("warn", "A lease could not be freed and is left to recovery.", {
          code: asFailure(thrown).code,
        });
      });
    }
  });
}

/** Removes a conversation. Throws `not_found` or `turn_running`. */
export async function remove(here: Here, agent: Agent, thread: string): Promise<void> {
  const store = agent.store.conversations;
  if (await store.last(thread).catch(() => 1) === 0) {
    throw new Failure("not_found", { what: "such conversation" });
  }
  await whole(here, agent, thread, () => store.forget(thread));
}

/** The new conversation, and the number of the message that it is cut before. */
export interface Fork {
  before: number;
  as: string;
}

/**
 * Copies every event before message number `before` into the new conversation `as`, line by line, its narrowed tools too. Where
 * the copy ends with a message that nothing answered, an `ended` event says so. Throws `not_found`, `invalid` or `exists`.
 */
export async function fork(
  here: Here,
  agent: Agent,
  thread: string,
  { before, as }: Fork,
): Promise<{ events: number }> {
  const store = agent.store.conversations;
  const taken = () => new Failure("exists", { what: `A conversation ${JSON.stringify(as)}` });
  if (await store.last(thread) === 0) throw new Failure("not_found", { what: "such conversation" });
  if (await store.last(as) > 0) throw taken();
  if (!await isMessage(agent, thread, before)) {
    throw new Failure("invalid", {
      issues: [{ path: "before", message: `event ${before} is no message of this conversation` }],
    });
  }
  // The events before a message are never changed, so that only the new conversation needs to be held.
  return await whole(here, agent, as, async () => {
    if (await store.last(as) > 0) throw taken();
    const tools = await store.toolsRead(thread);
    if (before === 1) {
      if (tools) await store.toolsNarrow(as, tools);
      return { events: 0 };
    }
    return await store.put(as, prefix(here, agent, thread, before), tools ? { tools } : {});
  });
}

async function isMessage(agent: Agent, thread: string, seq: number): Promise<boolean> {
  for await (const line of agent.store.conversations.read(thread, seq, seq)) {
    return parseLine(line).event?.type === "message";
  }
  return false;
}

/** The lines before number `before`; one more where they end with a message that nothing answered. */
async function* prefix(here: Here, agent: Agent, thread: string, before: number): AsyncIterable<string> {
  let said = 0, settled = 0;
  for await (const line of agent.store.conversations.read(thread, 1, before - 1)) {
    const { seq, event } = parseLine(line);
    if (event?.type === "message") said = seq;
    if (isAnswer(event) || event?.type === "ended") settled = Math.max(settled, event.upto);
    yield line;
  }
  if (said <= settled) return;
  const { code, message } = new Failure("turn_forked");
  const { ids, clock } = here.parts;
  yield encodeEvent({
    seq: before,
    at: timestamp(clock.now()),
    type: "ended",
    turn: ids("turn"),
    upto: before - 1,
    reason: "forked",
    code,
    message,
  });
}
