// `chat show`: a conversation, printed from its events, whichever way it is kept.

import { Failure } from "../errors.ts";
import { transcript } from "../log/transcript.ts";
import type { Command, Given } from "./command.ts";
import { homeOf } from "./environment.ts";
import { openAgent } from "./open.ts";
import { homeOption } from "./options.ts";
import { write } from "./output.ts";

export const command: Command = {
  words: ["AGENT", "THREAD"],
  options: {
    ...homeOption,
    last: { value: "N", say: "only the last N events" },
    json: { say: "print the events themselves, a line each, as they are kept" },
  },
  say: `
Prints a conversation from its events: the owner's messages and the agent's answers, up to the last answer. With --json
the events themselves, calls and results included; docs/events.md says what is in them.`,
  run,
};

async function run(given: Given): Promise<void> {
  const [name, thread, last] = [given.agent(), given.thread(), given.count("last", 1)];
  const agent = await openAgent({ name, where: { home: homeOf(given.text("home")) }, make: false });
  try {
    const { conversations } = agent.store;
    const count = await conversations.last(thread);
    if (count === 0) throw new Failure("no_conversation", { agent: name, thread });
    const lines = conversations.read(thread, last === undefined ? 1 : Math.max(1, count - last + 1));
    if (given.flag("json")) { for await (const line of lines) write(`${line}\n`); }
    else for await (const text of transcript(lines)) write(text);
  } finally {
    await agent.close();
  }
}
