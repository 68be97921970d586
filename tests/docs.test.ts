// What the pages in docs/ promise, held against the code.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { checkLine, eventSchemas } from "../src/log/event.ts";
import { version } from "../src/version.ts";
import { eventJsonSchema, eventSchemaFile } from "../scripts/event_schema.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");

describe("docs", () => {
  it("S6 docs/event.schema.json is what the code's schema makes (else run `deno task docs`)", () => {
    assert.equal(readFileSync(eventSchemaFile, "utf8"), eventJsonSchema());
  });

  it("S6 docs/events.md shows lines that are events, and names every type and each of its fields", () => {
    const page = read("docs/events.md");
    const lines = /```json\n([\s\S]*?)```/.exec(page)![1]!.trim().split("\n");
    assert.ok(lines.length >= 2);
    for (const line of lines) assert.ok(checkLine(line).event);
    for (const [type, schema] of Object.entries(eventSchemas)) {
      const row = page.split("\n").find((line) => line.startsWith(`| \`${type}\``));
      assert.ok(row, `a row for ${type}`);
      if (type === "summary") continue; // refers to `model` for the rest
      for (const field of Object.keys(schema.entries)) {
        if (!["seq", "at", "type"].includes(field)) {
          assert.ok(row.includes(`\`${field}\``), `${type}.${field}`);
        }
      }
    }
  });

  it("src/version.ts is the version of deno.json", () => {
    assert.equal(version, JSON.parse(read("deno.json")).version);
  });

  it("every link between pages leads to a file", () => {
    const pages = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", ...markdown("docs")];
    for (const page of pages) {
      for (const [, target] of read(page).matchAll(/\]\((?!https?:|#)([^)#\s]+)[^)]*\)/g)) {
        assert.ok(existsSync(join(root, dirname(page), target!)), `${page} → ${target}`);
      }
    }
  });
});

function markdown(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md")).map((name) => join(folder, name));
}
