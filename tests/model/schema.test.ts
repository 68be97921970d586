import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { mend, notSent, sendable } from "../../src/model/schema.ts";
import type { ToolSpec } from "../../src/tool.ts";

const mended = (schema: unknown, rules: "strict" | "plain" = "plain") => mend(schema, rules).schema;

/** What every provider takes: an object at the top, nothing that refers, no bare true, and no array without items. */
function assertTaken(schema: unknown): void {
  const root = schema as Record<string, unknown>;
  assert.equal(root.type, "object");
  assert.ok(root.properties);
  for (const key of ["anyOf", "oneOf", "allOf"]) assert.ok(!(key in root), key);
  const text = JSON.stringify(schema);
  assert.doesNotMatch(text, /"\$ref"|"\$defs"|"definitions":|"\$schema"/);
  assert.ok(text.isWellFormed());
}

describe("schemas of tools", () => {
  it("B50 a good schema stays as it is", () => {
    const good = {
      type: "object",
      properties: {
        q: { type: "string", description: "What.", enum: ["a", "b"] },
        n: { type: ["integer", "null"] },
      },
      required: ["q"],
      additionalProperties: false,
    };
    assert.deepEqual(mended(good), good);
    assert.deepEqual(mended(good, "strict"), good);
  });

  const shapes: [string, unknown, unknown][] = [
    ["no type", { properties: { a: { type: "string" } } }, {
      type: "object",
      properties: { a: { type: "string" } },
    }],
    ["no properties", { type: "object" }, { type: "object", properties: {} }],
    ["nothing at all", {}, { type: "object", properties: {} }],
    ["true", true, { type: "object", properties: {} }],
    ["null", null, { type: "object", properties: {} }],
    ["true as a property", { type: "object", properties: { a: true, b: false } }, {
      type: "object",
      properties: { a: {} },
    }],
    [
      "an array without items",
      { type: "object", properties: { a: { type: "array" } } },
      { type: "object", properties: { a: { type: "array", items: {} } } },
    ],
    [
      "a tuple",
      {
        type: "object",
        properties: { a: { type: "array", prefixItems: [{ type: "string" }, { type: "number" }] } },
      },
      {
        type: "object",
        properties: { a: { type: "array", items: { anyOf: [{ type: "string" }, { type: "number" }] } } },
      },
    ],
    [
      "an enum with null",
      {
        type: "object",
        properties: { a: { type: "string", enum: ["x", null] }, b: { type: "null", enum: [null] } },
      },
      { type: "object", properties: { a: { type: "string", enum: ["x"] }, b: { type: "null" } } },
    ],
    [
      "required that names what is not there",
      { type: "object", properties: { a: {} }, required: ["a", "b"] },
      { type: "object", properties: { a: {} }, required: ["a"] },
    ],
    [
      "a reference",
      {
        type: "object",
        properties: { a: { $ref: "#/$defs/A~1b", description: "kept" } },
        $defs: { "A/b": { type: "string" } },
      },
      { type: "object", properties: { a: { type: "string", description: "kept" } } },
    ],
    [
      "a reference at the top",
      {
        $ref: "#/definitions/In",
        definitions: { In: { type: "object", properties: { a: { type: "string" } } } },
      },
      { type: "object", properties: { a: { type: "string" } } },
    ],
    [
      "a reference to elsewhere",
      { type: "object", properties: { a: { $ref: "https://example.com/s.json" } } },
      { type: "object", properties: { a: {} } },
    ],
    [
      "a choice at the top",
      {
        anyOf: [
          {
            type: "object",
            properties: { id: { type: "string" }, all: { type: "boolean" } },
            required: ["id", "all"],
          },
          { type: "object", properties: { id: { type: "number" } }, required: ["id"] },
        ],
      },
      {
        type: "object",
        properties: { id: { anyOf: [{ type: "string" }, { type: "number" }] }, all: { type: "boolean" } },
        required: ["id"],
      },
    ],
    [
      "a choice of what is required",
      {
        type: "object",
        properties: { p: { type: "string" }, t: { type: "string" }, d: { type: "string" } },
        required: ["p"],
        anyOf: [{ required: ["t"] }, { required: ["d"] }],
      },
      {
        type: "object",
        properties: { p: { type: "string" }, t: { type: "string" }, d: { type: "string" } },
        required: ["p"],
      },
    ],
    [
      "all of at the top",
      { allOf: [{ properties: { a: {} }, required: ["a"] }, { properties: { b: {} }, required: ["b"] }] },
      { type: "object", properties: { a: {}, b: {} }, required: ["a", "b"] },
    ],
  ];
  for (const [title, schema, expected] of shapes) {
    it(`B50 mended: ${title}`, () => {
      assert.deepEqual(mended(schema), expected);
      assertTaken(mended(schema));
    });
  }

  it("B50 recursion is cut where it comes back to itself", () => {
    const tree = {
      type: "object",
      properties: { root: { $ref: "#/$defs/Node" } },
      $defs: {
        Node: { type: "object", properties: { name: { type: "string" }, next: { $ref: "#/$defs/Node" } } },
      },
    };
    assert.deepEqual(mended(tree), {
      type: "object",
      properties: { root: { type: "object", properties: { name: { type: "string" }, next: {} } } },
    });
    assertTaken(mended({ $ref: "#" }));
    assertTaken(mended({ type: "object", properties: { self: { $ref: "#" } } }));
  });

  it("B50 references that multiply are not inlined without end", () => {
    const $defs: Record<string, unknown> = { L0: { type: "string" } };
    for (let level = 1; level < 30; level++) {
      const ref = { $ref: `#/$defs/L${level - 1}` };
      $defs[`L${level}`] = { type: "object", properties: { a: ref, b: ref } };
    }
    const result = mend({ type: "object", properties: { a: { $ref: "#/$defs/L29" } }, $defs }, "plain");
    assert.equal(result.schema, undefined);
    assert.match(result.lost[0]!, /too large/);
  });

  it("B50 a schema of 200 KB leaves its tool out, told, and the others stay", () => {
    const tools: ToolSpec[] = [
      {
        name: "a__big",
        description: "",
        schema: { type: "object", properties: { a: { type: "string", description: "x".repeat(200_000) } } },
      },
      { name: "a__good", description: "", schema: { type: "object", properties: {} } },
    ];
    assert.deepEqual(sendable(tools, "plain").map(({ tool }) => tool.name), ["a__good"]);
    assert.deepEqual(notSent(tools, "plain").map(({ tool }) => tool), ["a__big"]);
  });

  it("names of properties that Anthropic refuses are left out and told, or their tool where they are needed", () => {
    const schema = {
      type: "object",
      properties: { $filter: { type: "string" }, ok: { type: "object", properties: { "a b": {} } } },
    };
    assert.deepEqual(mended(schema), schema);
    const strict = mend(schema, "strict");
    assert.deepEqual(strict.schema, {
      type: "object",
      properties: { ok: { type: "object", properties: {} } },
    });
    assert.equal(strict.lost.length, 2);
    assert.equal(mend({ ...schema, required: ["$filter"] }, "strict").schema, undefined);
  });

  it("B42 lone surrogates in a schema are replaced", () => {
    assertTaken(
      mended({ type: "object", properties: { "a\ud83d": { default: "\udc00", description: "\ud83d" } } }),
    );
  });

  it("a property that is called like a keyword stays", () => {
    const schema = {
      type: "object",
      properties: { $defs: { type: "string" }, items: { type: "string" }, anyOf: { type: "string" } },
    };
    assert.deepEqual(mended(schema), schema);
  });
});
