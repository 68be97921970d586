// Makes docs/event.schema.json from the schema that the code checks events with, so that the two never differ.

import { toJsonSchema } from "@valibot/to-json-schema";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { eventSchemas } from "../src/log/event.ts";

export const eventSchemaFile = fileURLToPath(new URL("../docs/event.schema.json", import.meta.url));

/** The text of docs/event.schema.json: a JSON Schema of one event, for programs that read a log. */
export function eventJsonSchema(): string {
  const types = Object.entries(eventSchemas).map(([type, schema]) => {
    const { $schema: _, ...json } = toJsonSchema(schema);
    return [type, json] as const;
  });
  const schema = {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "An event of a conversation",
    description: "One line of a conversation. Readers keep keys and types that they do not know.",
    type: "object",
    properties: { seq: { type: "integer", minimum: 1 }, at: { type: "string" }, type: { type: "string" } },
    required: ["seq", "at", "type"],
    allOf: types.map(([type]) => ({
      if: { properties: { type: { const: type } } },
      then: { $ref: `#/definitions/${type}` },
    })),
    definitions: Object.fromEntries(types),
  };
  return JSON.stringify(schema, null, 2) + "\n";
}

if (import.meta.main) writeFileSync(eventSchemaFile, eventJsonSchema());
