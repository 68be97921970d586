import assert from "node:assert/strict";
import { Validator } from "@seriousme/openapi-schema-validator";
import fc from "fast-check";
import { describe, it } from "node:test";
import * as v from "valibot";
import { allRoutes } from "../../src/http/app.ts";
import type { Parts } from "../../src/http/door.ts";
import { descriptions } from "../../src/http/openapi.ts";
import { errorReply } from "../../src/http/replies.ts";
import { answer, makeRig, start } from "./rig.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

async function description(): Promise<Json> {
  const response = await makeRig().ask("GET", "/openapi.json", { key: null });
  assert.equal(response.status, 200);
  return await response.json();
}

describe("/openapi.json", () => {
  it("is valid OpenAPI 3.1, by a validator", async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(await description());
    assert.ok(valid, JSON.stringify(errors));
    assert.equal(validator.version, "3.1");
  });

  it("describes every route and no other, each with an example, and says where a key is needed", async () => {
    const { paths } = await description();
    const told = Object.entries<Json>(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ":$1")}`)
    ).sort();
    const there = [
      ...allRoutes({} as Parts).map(({ method, path }) => `${method} ${path}`),
      "GET /openapi.json",
    ].sort();
    assert.deepEqual(told, there);
    for (const [path, methods] of Object.entries<Json>(paths)) {
      for (const operation of Object.values<Json>(methods)) {
        assert.equal(operation.security !== undefined, path.startsWith("/agents/"), path);
        const contents = [
          operation.requestBody?.content ?? {},
          ...Object.values<Json>(operation.responses).map((one) => one.content ?? {}),
        ];
        for (const content of contents) {
          for (const media of Object.values<Json>(content)) {
            assert.ok(media.example !== undefined && media.schema, path);
          }
        }
      }
    }
  });

  it("every example is of the form that it is an example of", () => {
    for (const [route, { body, replies }] of Object.entries(descriptions)) {
      const contents = Object.values(replies).flatMap((content) =>
        typeof content === "string" ? [] : Object.values(content)
      );
      for (const { schema, example } of [...body ? [body] : [], ...contents]) {
        if (!schema) continue;
        const parsed = v.safeParse(schema, example);
        assert.ok(
          parsed.success,
          `${route}: ${JSON.stringify(parsed.issues?.map((issue) => [v.getDotPath(issue), issue.message]))}`,
        );
      }
    }
  });

  it("what the doors send is what it says they send", async () => {
    const rig = makeRig();
    rig.logs.set("a:1", [
      JSON.stringify({
        seq: 1,
        at: "2026-12-01T09:00:00.000Z",
        type: "message",
        from: { role: "owner" },
        head: "h",
        text: "t",
      }),
    ]);
    rig.script = (caller) => {
      caller.tell(start);
      caller.tell(answer);
    };
    rig.waiting = [{
      id: "a",
      thread: "a:1",
      turn: "t",
      seq: 2,
      error: { code: "model_failed", message: "No." },
      at: "2026-12-01T09:00:00.000Z",
      messages: [],
      why: "failed",
    }];
    for (const [route, { body, replies }] of Object.entries(descriptions)) {
      const [method, path] = route.split(" ") as [string, string];
      if (!path.startsWith("/asp") && !path.startsWith("/_link") && !path.startsWith("/v1") && path !== "") {
        continue;
      }
      const example = path.includes("completions")
        ? { ...body!.example as object, model: "mia" }
        : body?.example;
      const response = await rig.ask(method, `/agents/mia${path.replace(":thread", "a%3A1")}`, {
        body: example,
      });
      const content = replies[response.status];
      assert.ok(content !== undefined, `${route}: ${response.status} ${await response.clone().text()}`);
      const type = response.headers.get("content-type")?.split(";")[0];
      const schema = typeof content === "string" ? undefined : content[type!]?.schema;
      if (typeof content !== "string") assert.ok(type! in content, `${route}: ${type}`);
      if (schema) {
        const parsed = v.safeParse(schema, await response.json());
        assert.ok(
          parsed.success,
          `${route}: ${JSON.stringify(parsed.issues?.map((issue) => [v.getDotPath(issue), issue.message]))}`,
        );
      }
    }
  });
});

describe("whatever is sent", () => {
  const seed = 20261201;

  it(`any method, path, query and body get an answer of the wire, and never a 5xx (seed ${seed})`, async () => {
    const rig = makeRig();
    rig.logs.set("a:1", ["{}"]);
    rig.script = (caller) => caller.tell(answer);
    const paths = allRoutes({} as Parts).map(({ path }) => path);
    const thread = fc.oneof(fc.constant("a:1"), fc.string({ unit: "grapheme" })).map((text) =>
      encodeURIComponent(text.toWellFormed())
    );
    const value = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.constantFrom(...Object.values(descriptions).map(({ body }) => body?.example ?? {})),
      },
      fc.json().map((text) => JSON.parse(text)),
      fc.record({
        thread: fc.oneof(fc.constant("a:1"), fc.anything()),
        message: fc.oneof(
          fc.record({ text: fc.oneof(fc.string(), fc.anything()), id: fc.anything() }, { requiredKeys: [] }),
          fc.anything(),
        ),
        tools: fc.oneof(fc.array(fc.string()), fc.anything()),
        before: fc.anything(),
        as: fc.anything(),
        keep: fc.anything(),
        model: fc.constantFrom("mia", "leo"),
        messages: fc.anything(),
      }, { requiredKeys: [] }),
    );
    const asked = fc.record({
      method: fc.constantFrom("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"),
      path: fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...paths) }, fc.webPath()),
      thread,
      query: fc.oneof(
        fc.constant(""),
        fc.webQueryParameters(),
        fc.constantFrom("from=1&limit=2", "last=9", "limit=-1", "effective=maybe", "after=%ff"),
      ),
      body: fc.oneof(value.map((one) => stringify(one)), fc.string()),
      accept: fc.constantFrom("*/*", "application/json", "text/event-stream"),
    });
    await fc.assert(
      fc.asyncProperty(asked, async ({ method, path, thread, query, body, accept }) => {
        const url = `${path.replace(":agent", "mia").replace(":thread", thread)}${
          query === "" ? "" : `?${query}`
        }`;
        const leaving = new AbortController();
        const response = await rig.ask(method, url.startsWith("/") ? url : `/${url}`, {
          ...(method === "GET" || method === "HEAD" ? {} : { raw: body }),
          key: rig.agents.get("mia")!.key,
          headers: { accept },
          signal: leaving.signal,
        });
        assert.ok(response.status < 500, `${method} ${url} ${body} → ${response.status}`);
        if (response.status >= 400 && method !== "HEAD") {
          assert.ok(v.is(errorReply, await response.json()), `${method} ${url}`);
        } else await response.body?.cancel();
        leaving.abort();
      }),
      { seed, numRuns: 400 },
    );
  });
});

function stringify(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "";
  }
}
