// Simulated histories in CI: thousands of turns, the same ones each time. More of them: `deno task simulate --seeds N`.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { simulate } from "./simulate.ts";

describe("S1 S2 S3 D6 D9 T6 T10 whatever crashes, pauses, is late or is lost", () => {
  for (const from of [1, 101, 201]) {
    it(`seeds ${from} to ${from + 99}: accepted messages are kept once and answered once, calls are made once, outcomes are heard`, async () => {
      let turns = 0, kills = 0;
      for (let seed = from; seed < from + 100; seed++) {
        const history = await simulate(seed);
        assert.deepEqual(
          history.violations,
          [],
          `seed ${seed}; see it alone: deno task simulate --from ${seed} --seeds 1`,
        );
        turns += history.turns;
        kills += history.kills;
      }
      assert.ok(
        turns > 900 && kills > 300,
        `only ${turns} turns and ${kills} kills: the histories say nothing`,
      );
    });
  }

  it("a seed gives the same history each time", async () => {
    assert.deepEqual(await simulate(7), await simulate(7));
  });
});
