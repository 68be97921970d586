// Runs simulated histories and tells each seed that broke a promise: deno task simulate [--seeds N] [--from SEED] [--trace]

import process from "node:process";
import { parseArgs } from "node:util";
import { simulate, trace } from "../tests/simulation/simulate.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "1000" },
    from: { type: "string", default: "1" },
    trace: { type: "boolean", default: false },
  },
});
trace.on = values.trace;
const from = Number(values.from), until = from + Number(values.seeds);
const began = performance.now();
let turns = 0, kills = 0, summaries = 0, broken = 0;

for (let seed = from; seed < until; seed++) {
  const history = await simulate(seed);
  turns += history.turns;
  kills += history.kills;
  summaries += history.summaries;
  if (history.violations.length > 0) {
    broken++;
    console.log(`seed ${seed}:`);
    for (const violation of history.violations) console.log(`  ${violation}`);
  }
  if ((seed - from + 1) % 1000 === 0) console.log(`… ${turns} turns, ${kills} kills, ${broken} broken seeds`);
}
const seconds = Math.round((performance.now() - began) / 1000);
console.log(
  `${
    until - from
  } seeds from ${from}: ${turns} turns, ${kills} kills, ${summaries} summaries, ${broken} broken seeds, ${seconds} s`,
);
process.exit(broken > 0 ? 1 : 0);
