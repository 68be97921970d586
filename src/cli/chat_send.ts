// `chat send`: one message to an agent, its turn run in this process, its answer streamed to stdout. Whoever serves the agent
// meanwhile need not know: any process that shares the store can take a turn.

import { randomIds } from "../clock.ts";
import { exitOf } from "../errors.ts";
import { parseForm } from "../http/body.ts";
import { turnBody } from "../http/schemas.ts";
import { roles } from "../log/event.ts";
import type { Caller, News, Say } from "../turn/news.ts";
import { type Command, type Given, misused, program } from "./command.ts";
import { homeOf } from "./environment.ts";
import { readText } from "./input.ts";
import { openAgent, openTurns } from "./open.ts";
import { homeOption, jsonOption } from "./options.ts";
import { print, tell, write } from "./output.ts";

export const command: Command = {
  words: ["AGENT", "THREAD", "[TEXT…]"],
  options: {
    ...homeOption,
    id: { value: "ID", say: "the message's id: sent again with the same id it is not asked twice" },
    role: { value: "ROLE", say: `who speaks: ${roles.join(", ")} (owner)` },
    name: { value: "NAME", say: "the name of who speaks" },
    connection: { value: "NAME", say: "where the message came from, e.g. telegram" },
    tools: {
      value: "LIST",
      say: "narrows the conversation's tools for good, e.g. memory__search,files__read",
    },
    retry: { say: "with --id: a new turn on a message whose turn failed" },
    json: jsonOption.json,
  },
  say: `
Sends a message and prints the answer as it comes. The text is what follows the thread, else stdin. The turn is run here,
on the agent's store; where another process runs one in this thread, the message joins that turn. Ctrl-C asks the turn to
end and keeps what was said; a second one leaves the turn to be finished by another process.`,
  run,
};

async function run(given: Given): Promise<number> {
  const thread = given.thread();
  const [name, text] = [given.agent(), given.words.slice(2).join(" ") || await readText("-")];
  const message = sayOf(given, thread, text.replace(/\n$/, ""));
  const agent = await openAgent({ name, where: { home: homeOf(given.text("home")) }, make: true });
  const turns = openTurns();
  let asked = 0;
  const onInterrupt = () => {
    if (++asked === 1) void turns.end(agent, thread);
    else void turns.drain(0).then(() => process.exit(1));
  };
  process.on("SIGINT", onInterrupt);
  try {
    const { caller, last } = given.flag("json") ? jsonCaller() : wordsCaller();
    const { work } = await turns.say(agent, message, caller);
    const code = ended(await last, given.flag("json"));
    await work;
    return code;
  } finally {
    process.off("SIGINT", onInterrupt);
    await turns.drain(0);
    await agent.close();
  }
}

/** What the doors would take of it, by the same form. Throws `usage` or `invalid`. */
function sayOf(given: Given, thread: string, text: string): Say {
  const [role, name, id] = [given.text("role") ?? "owner", given.text("name"), given.text("id")];
  if (given.flag("retry") && id === undefined) throw misused("--retry needs --id", "chat send");
  const connection = given.text("connection");
  const tools = given.text("tools")?.split(",").map((tool) => tool.trim()).filter((tool) => tool !== "");
  return parseForm(turnBody, {
    thread,
    message: { id: id ?? randomIds("cli"), text, from: { role, ...(name === undefined ? {} : { name }) } },
    ...(connection === undefined ? {} : { connection }),
    ...(tools ? { tools } : {}),
    ...(given.flag("retry") ? { retry: true } : {}),
  });
}

type LastNews = News & { type: "answer" | "joined" | "error" };

/** A caller, and its last news. */
interface Calling {
  caller: Caller;
  last: Promise<LastNews>;
}

/** Tells `each` the news; counts as taken what was told last. */
function calling(each: (news: News) => void): Calling {
  const { promise: last, resolve } = Promise.withResolvers<LastNews>();
  return {
    last,
    caller: {
      taken: last.then(() => true),
      tell(news) {
        each(news);
        if (news.type === "answer" || news.type === "joined" || news.type === "error") resolve(news);
      },
      drop() {},
    },
  };
}

/** Prints the answer as it comes, and calls on stderr. */
function wordsCaller(): Calling {
  let streamed = "";
  return calling((news) => {
    switch (news.type) {
      case "text":
        streamed += news.text;
        return write(news.text);
      case "restart":
        if (streamed) tell("\n(what was said so far is void: the model is asked again)");
        streamed = "";
        return;
      case "call":
        return tell(
          `${streamed && !streamed.endsWith("\n") ? "\n" : ""}→ ${news.tool} ${
            JSON.stringify(news.arguments)
          }`,
        );
      case "result":
        return tell(`← ${news.tool}: ${news.ok ? "ok" : "failed"}, ${news.chars} characters, ${news.ms} ms`);
      case "answer":
        if (news.repeated) write(news.text);
        return write("\n");
      case "start":
      case "joined":
      case "error":
        return;
    }
  });
}

function jsonCaller(): Calling {
  return calling(() => {});
}

/** Tells how it ended; the exit code. */
function ended(news: LastNews, json: boolean): number {
  const { type, ...body } = news;
  if (news.type === "error") {
    const { code, message } = news.error;
    if (json) print(JSON.stringify(body));
    tell(`${program}: ${message}`);
    return exitOf(code);
  }
  if (json) print(JSON.stringify(type === "joined" ? { joined: true, ...body } : body));
  else if (type === "joined") {
    tell("The message joined a turn that runs in another process; see the answer with `chat show`.");
  }
  return 0;
}
