// The client that the official conformance suite asks for: a program that is given a server's address and uses what is there.
// It is the toolbox as a turn uses it: offered, called once each, the turn ended.

import process from "node:process";
import { systemClock } from "../../src/clock.ts";
import { openToolbox } from "../../src/tools/toolbox.ts";

const box = openToolbox({
  environment: { LNK_TOOL_SUITE: process.argv.at(-1)! },
  own: { read: async () => undefined, write: async () => {} },
  fetch: (input, init) => fetch(input, init),
  clock: systemClock,
});
const { tools } = await box.offer();
for (const { name } of tools) {
  const signal = new AbortController().signal;
  const call = { thread: "suite:1", turn: "turn_1", key: name, name, arguments: { a: 5, b: 3 }, signal };
  console.log(name, JSON.stringify(await box.call(call)));
}
await box.turnEnded("turn_1");
await box.close();
