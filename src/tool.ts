// A tool as it is offered: what the tools folder finds and the model folder sends.

/** `name` is `<tool>__<call>`; `schema` the JSON Schema of its arguments, as its server gave it. */
export interface ToolSpec {
  name: string;
  description: string;
  schema: Record<string, unknown>;
}
