// `start`: the first minute. Makes an agent, serves it, sends it a message by HTTP as any client would, shows the answer as it
// comes, and says how to go on.

import { createParser, type EventSourceMessage } from "eventsource-parser";
import { existsSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ErrorForm } from "../errors.ts";
import { agentPaths } from "../paths.ts";
import type { TurnAnswer } from "../turn/news.ts";
import { type Command, type Given, program, table } from "./command.ts";
import { environment } from "./environment.ts";
import { openAgent } from "./open.ts";
import { print, tell, write } from "./output.ts";
import { portOf } from "./serve.ts";
import { serveAgents } from "./served.ts";
import { isAgentName } from "../names.ts";
import { Failure } from "../errors.ts";

export const command: Command = {
  words: ["[AGENT]"],
  options: {
    home: { value: "DIR", say: "where the agent is kept (LNK_HOME, else a new temporary folder)" },
    port: { value: "N", say: "the port; 0, the default, is any that is free" },
    message: { value: "TEXT", say: "what to say first" },
    once: { say: "end after the first answer" },
  },
  say: `
Makes an agent (mia, unless another is named), serves it, sends it a first message by HTTP and prints the answer as it
comes, the address, where its key and its log are, and a curl line to go on with. Serves until Ctrl-C. The model is the
one that is found; see \`model show\`.`,
  run,
};

const thread = "start:hello";

async function run(given: Given): Promise<number> {
  const name = given.words[0] ?? "mia";
  if (!isAgentName(name)) throw new Failure("agent_invalid", { agent: name });
  const home = given.text("home") ?? environment.LNK_HOME ?? await mkdtemp(join(tmpdir(), "lnk-"));
  const agent = await openAgent({ name, where: { home }, make: true });
  const served = await serveAgents([agent], { host: "127.0.0.1", ports: new Map([[name, portOf(given)]]) });
  const url = served.urls.get(name)!;
  print(`${name} is served at ${url} (pid ${process.pid})\n`);

  const text = given.text("message") ?? "Hello! Who answers here?";
  print(`> ${text}\n`);
  const heard = await hear(`${url}/asp/turn`, agent.key, { thread, message: { text } });
  if ("error" in heard) tell(`${program}: ${heard.error.message}`);
  else print(`\n\n${goingOn(home, name, url, heard)}`);
  if ("error" in heard || given.flag("once")) served.end("The first turn is over.");
  else print("Serving until Ctrl-C.");
  const code = await served.ended;
  return "error" in heard ? 1 : code;
}

function goingOn(home: string, name: string, url: string, { model, provider }: TurnAnswer): string {
  const paths = agentPaths(name, { home });
  const { log, folder } = paths.conversation(thread);
  const body = JSON.stringify({ thread, message: { text: "And what can you do?" } });
  return table([
    ["model", `${model} (${provider})`],
    ["address", url],
    ["key", paths.key],
    ["log", existsSync(log) ? log : folder],
  ]) + `
Go on:

curl -N ${url}/asp/turn -H "Authorization: Bearer $(cat ${paths.key})" \\
  -H 'Content-Type: application/json' -H 'Accept: text/event-stream' -d '${body}'
`;
}

/** Sends the message and prints the answer's text as it comes; what came last. */
function hear(url: string, key: string, body: unknown): Promise<TurnAnswer | ErrorForm> {
  return new Promise((done, refuse) => {
    const onEvent = ({ event, data }: EventSourceMessage) => {
      const value = JSON.parse(data);
      if (event === "text") write(value.text);
      else if (event === "restart") write("\n(the model is asked again)\n");
      else if (event === "answer" || event === "error") done(value);
    };
    const parser = createParser({ onEvent });
    const headers = {
      authorization: `Bearer ${key}`,
      accept: "text/event-stream",
      "content-type": "application/json",
    };
    // A connection of its own, which is closed after: an idle one would keep the end waiting for it.
    const asked = request(url, { method: "POST", headers, agent: false }, async (response) => {
      try {
        let text = "";
        for await (const chunk of response.setEncoding("utf8")) {
          text += chunk;
          parser.feed(chunk);
        }
        // What fails before the stream begins is a status and JSON.
        if (response.statusCode !== 200) done(JSON.parse(text));
        refuse(new Error("the stream ended without an answer"));
      } catch (error) {
        refuse(error);
      }
    });
    asked.on("error", refuse);
    asked.end(JSON.stringify(body));
  });
}
