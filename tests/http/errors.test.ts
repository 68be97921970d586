import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { Failure, type FailureCode, failureCodes } from "../../src/errors.ts";

/** Codes that no door answers with: they end the program, or are said on the control socket. */
const elsewhere: FailureCode[] = [
  "usage",
  "port_taken",
  "agent_invalid",
  "key_broken",
  "already_bound",
  "no_agent",
  "no_conversation",
];

describe("the errors' table", () => {
  const page = readFileSync(new URL("../../docs/api.md", import.meta.url), "utf8");
  const rows = new Map(
    [...page.matchAll(/^\| `(\w+)`\s*\| (\d{3})\s*\|/gm)].map(([, code, status]) => [code!, Number(status)]),
  );

  it("docs/api.md has every code that a client can meet, and no other", () => {
    const met = failureCodes.filter((code) => !elsewhere.includes(code));
    assert.deepEqual(
      [...rows.keys()].sort(),
      met.sort(),
      "a new code needs a row in docs/api.md, or stands in `elsewhere` here",
    );
  });

  for (const [code, status] of rows) {
    it(`${code} is ${status}`, () => assert.equal(new Failure(code as FailureCode).status, status));
  }

  it("every code says one sentence, also without facts", () => {
    for (const code of failureCodes.filter((code) => code !== "usage")) {
      const { error } = new Failure(code).form();
      assert.equal(error.code, code);
      assert.match(error.message, /.{10}\.$/s, code);
    }
  });
});
