// What a process does for turns that nobody waits for here: hands over answers that nobody took, and finishes the turns
// that crashed, a bounded number at once.

import type { Agent } from "../agent/agent.ts";
import { duration } from "../clock.ts";
import { asFailure } from "../errors.ts";
import { limits } from "../limits.ts";
import { owed } from "../log/conversation.ts";
import type { HeldLease, OpenConversation } from "../store/seams.ts";
import type { Here } from "./desk.ts";
import { finishHere } from "./follow.ts";
import type { HandedOver } from "./news.ts";
import { waiting } from "./recovery.ts";

export interface Recovery {
  answers: HandedOver[];
  finishing: number;
  /** Says whether the reply was taken whole: without `keep` its answers are then done with. */
  handed(whole: boolean): Promise<void>;
}

export async function recover(
  here: Here,
  agent: Agent,
  request: { keep?: boolean; taken?: string[] },
): Promise<Recovery> {
  const store = agent.store.conversations;
  const taken = new Set(request.taken ?? []);
  const open = await store.open();
  const answers: HandedOver[] = [];
  for (const { thread, marks } of open) {
    const named = marks.untaken.filter(({ id }) => taken.has(id));
    for (const { seq } of named) await store.mark(thread, { done: seq });
    const rest = marks.untaken.filter((one) => !named.includes(one) && !here.handing.has(one.id));
    if (rest.length > 0) answers.push(...await handable(here, agent, thread, rest));
  }
  const dead = open.filter((one): one is OpenConversation & { held: HeldLease } =>
    one.held?.state === "dead"
  );
  if (!here.left && dead.length > 0) finishAll(here, agent, dead, await deadlineOf(agent));
  const counted = [...here.finishing.keys()].filter((key) => key.startsWith(`${agent.name}\n`)).length;
  if (!request.keep) { for (const { id } of answers) here.handing.add(id); }
  return {
    answers,
    finishing: counted,
    handed: async (whole) => {
      if (request.keep) return;
      try {
        if (whole) { for (const { thread, seq } of answers) await store.mark(thread, { done: seq }); }
      } finally {
        for (const { id } of answers) here.handing.delete(id);
      }
    },
  };
}

async function handable(
  here: Here,
  agent: Agent,
  thread: string,
  untaken: OpenConversation["marks"]["untaken"],
): Promise<HandedOver[]> {
  try {
    return await waiting(here.desks.at(agent, thread), untaken);
  } catch (thrown) {
    here.parts.notify("error", "A waiting answer could not be read.", {
      thread,
      why: asFailure(thrown).message,
    });
    return [];
  }
}

/** Finishes conversations in the background, a bounded number at once; counts those under way. */
function finishAll(
  here: Here,
  agent: Agent,
  threads: { thread: string; held?: HeldLease }[],
  deadlineMs: number,
): void {
  const fresh = threads.filter(({ thread }) => !here.finishing.has(`${agent.name}\n${thread}`));
  const queue = fresh.map(({ thread, held }) => () =>
    finishHere(here, here.desks.at(agent, thread), held, "crashed", deadlineMs)
  );
  const settle = fresh.map(({ thread }) => {
    const done = Promise.withResolvers<void>();
    const key = `${agent.name}\n${thread}`;
    here.finishing.set(key, done.promise);
    return () => (here.finishing.delete(key), done.resolve());
  });
  let at = 0;
  const worker = async () => {
    while (at < queue.length && !here.left) {
      const one = at++;
      await queue[one]!().catch((thrown) =>
        here.parts.notify("error", "A crashed turn could not be finished.", {
          why: asFailure(thrown).message,
        })
      );
      settle[one]!();
    }
  };
  for (let i = 0; i < Math.min(limits.recoverParallel, queue.length); i++) void worker();
}

export async function sweep(here: Here, agent: Agent): Promise<{ finishing: number }> {
  const store = agent.store.conversations;
  const crashed: { thread: string; held?: HeldLease }[] = [];
  let after: string | undefined;
  for (;;) {
    const page = await store.threads(after, limits.listLimitMax);
    for (const { thread, damage } of page) {
      if (damage !== undefined) continue;
      const { tail } = here.desks.at(agent, thread);
      await tail.refresh();
      await tail.reachOutcome();
      const held = owed(tail.events).length > 0 ? await store.leaseRead(thread) : undefined;
      if (owed(tail.events).length > 0 && (!held || held.state === "dead")) {
        crashed.push({ thread, ...(held ? { held } : {}) });
      }
    }
    after = page.at(-1)?.thread;
    if (page.length < limits.listLimitMax) break;
  }
  if (crashed.length > 0) finishAll(here, agent, crashed, await deadlineOf(agent));
  return { finishing: crashed.length };
}

async function deadlineOf(agent: Agent): Promise<number> {
  const settings = await agent.settings().catch(() => undefined);
  return duration(settings?.model.deadline ?? "") ?? limits.turnDeadlineMs;
}
