#!/usr/bin/env node
// The program: which command is meant, its help, and its exit code. Each command is a file of its own, loaded when it is used.

import { asFailure } from "../errors.ts";
import { version } from "../version.ts";
import { type Command, helpOf, misused, parseGiven, program, table } from "./command.ts";
import { endWithReader, print, tellFailure, write } from "./output.ts";

/** Every command: what it does in a line, and where it is. */
const commands: Record<string, { say: string; load: () => Promise<{ command: Command }> }> = {
  start: { say: "make an agent, serve it and show its first answer", load: () => import("./start.ts") },
  serve: { say: "serve agents over HTTP", load: () => import("./serve.ts") },
  configure: { say: "show or change an agent's settings", load: () => import("./configure.ts") },
  "chat send": { say: "send a message, print the answer", load: () => import("./chat_send.ts") },
  "chat show": { say: "print a conversation", load: () => import("./chat_show.ts") },
  "chat list": { say: "list an agent's conversations", load: () => import("./chat_list.ts") },
  "tools list": { say: "list an agent's tools and how they stand", load: () => import("./tools_list.ts") },
};

endWithReader();
process.exitCode = await run(process.argv.slice(2));

/** Runs one command line; the exit code. */
async function run(args: string[]): Promise<number> {
  try {
    const two = args.slice(0, 2).join(" ");
    const path = Object.hasOwn(commands, two) ? two : args[0] ?? "";
    if (!Object.hasOwn(commands, path)) return overview(args);
    const rest = args.slice(path.split(" ").length);
    const { command } = await commands[path]!.load();
    if (asksHelp(rest)) {
      write(helpOf(path, command));
      return 0;
    }
    return await command.run(parseGiven(path, command, rest)) ?? 0;
  } catch (thrown) {
    const failure = asFailure(thrown);
    tellFailure(failure);
    return failure.exit;
  }
}

/** What there is, where no single command is meant: of one group, or all. */
function overview(args: string[]): number {
  if (args[0] === "--version") {
    print(version);
    return 0;
  }
  const group = args[0]?.startsWith("-") ? "" : args[0] ?? "";
  const inGroup = Object.entries(commands).filter(([path]) => group === "" || path.startsWith(`${group} `));
  if (inGroup.length === 0) throw misused(`There is no command ${JSON.stringify(group)}`);
  if (!asksHelp(args)) {
    const what = args.length === 0
      ? "No command was given"
      : `${JSON.stringify(args.join(" "))} is no command`;
    throw misused(what, group);
  }
  const rows = inGroup.map(([path, { say }]) => [path, say] as const);
  write(`Usage: ${program} COMMAND …\n\nCommands:\n${table(rows)}\n`);
  write(`\`${program} COMMAND --help\` tells more of one.\n`);
  return 0;
}

/** Whether `--help` (or `-h`) stands before a `--`. */
function asksHelp(args: string[]): boolean {
  const end = args.indexOf("--");
  const before = end < 0 ? args : args.slice(0, end);
  return before.includes("--help") || before.includes("-h");
}
