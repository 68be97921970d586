// The form of input from outside: an object that takes its known keys only, and what is wrong with a value, all at once.

import * as v from "valibot";
import type { Issue } from "./errors.ts";

/**
 * An object that takes these keys only. As valibot's `strictObject`, but every unknown key is an issue, not just the first,
 * `__proto__` is one too, and an array is no object.
 */
export function strict<const Entries extends v.ObjectEntries>(
  entries: Entries,
): v.StrictObjectSchema<Entries, undefined> {
  const schema = v.objectWithRest(entries, unknownKey) as unknown as v.StrictObjectSchema<Entries, undefined>;
  return {
    ...schema,
    "~run"(dataset, config) {
      const { value } = dataset;
      if (Array.isArray(value)) return noArray["~run"](dataset, config) as ReturnType<typeof schema["~run"]>;
      const run = schema["~run"](dataset, config);
      if (typeof value !== "object" || value === null || !Object.hasOwn(value, "__proto__")) return run;
      // valibot passes this one key over.
      const [issue] = unknownKey["~run"]({ value: undefined }, config).issues!;
      const path = [{
        type: "object",
        origin: "key",
        input: value,
        key: "__proto__",
        value: undefined,
      }] as const;
      return { ...run, issues: [...run.issues ?? [], { ...issue, path }] } as unknown as typeof run;
    },
  };
}

const unknownKey = v.never("unknown key");
const noArray = v.custom(() => false, "Invalid type: Expected Object but received Array");

/** Whether this issue is of a key that its object does not take. */
export function isUnknownKey(issue: v.BaseIssue<unknown>): boolean {
  return issue.type === "never";
}

/** The issues of a value, as the wire tells them: `message.text` and what is wrong there. */
export function issuesOf(issues: readonly v.BaseIssue<unknown>[]): Issue[] {
  return issues.map((issue) => ({ path: v.getDotPath(issue) ?? "", message: issue.message }));
}
