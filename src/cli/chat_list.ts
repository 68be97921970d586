// `chat list`: an agent's conversations, read from the end of each.

import { everyThread } from "../store/every_thread.ts";
import type { Command, Given } from "./command.ts";
import { homeOf } from "./environment.ts";
import { openAgent } from "./open.ts";
import { homeOption, jsonOption } from "./options.ts";
import { print } from "./output.ts";

export const command: Command = {
  words: ["AGENT"],
  options: { ...homeOption, ...jsonOption },
  say: `
Lists an agent's conversations in order of thread: how many events, how they are kept, when the last one came, and
whether a turn runs. With --json a line for each.`,
  run,
};

async function run(given: Given): Promise<void> {
  const agent = await openAgent({
    name: given.agent(),
    where: { home: homeOf(given.text("home")) },
    make: false,
  });
  try {
    const { conversations } = agent.store;
    const open = await conversations.open();
    const running = new Set(
      open.flatMap(({ thread, held }) => held && held.state !== "dead" ? [thread] : []),
    );
    if (!given.flag("json")) print(row("THREAD", "EVENTS", "STORAGE", "UPDATED", ""));
    for await (const info of everyThread(conversations)) {
      const runs = running.has(info.thread);
      if (given.flag("json")) print(JSON.stringify({ ...info, running: runs }));
      else {
        const more = info.damage ?? (runs ? "a turn runs" : "");
        print(row(info.thread, String(info.events), info.storage, info.updated, more));
      }
    }
  } finally {
    await agent.close();
  }
}

function row(thread: string, events: string, storage: string, updated: string, more: string): string {
  return `${thread.padEnd(32)}  ${events.padStart(8)}  ${storage.padEnd(8)}  ${updated.padEnd(24)}  ${more}`
    .trimEnd();
}
