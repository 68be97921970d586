// The head of a markdown file: fields between two lines of `---`. Read as YAML, and, where it is not strictly that (a colon
// in a description is the usual slip), line by line.

import { limits } from "../limits.ts";

/** The fields, all as texts; or why there are none. */
export async function parseFrontmatter(
  text: string,
): Promise<{ fields: Record<string, string | undefined> } | { why: string }> {
  const lines = text.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  if (!/^---[ \t]*\n/.test(lines)) return { why: "it does not begin with a line of ---" };
  const start = lines.indexOf("\n") + 1;
  const rest = lines.slice(start, start + limits.skillHeadCharsMax + 1);
  const end = /^---[ \t]*$/m.exec(rest);
  if (!end) {
    return { why: `no second line of --- ends its head within ${limits.skillHeadCharsMax} characters` };
  }
  const head = rest.slice(0, end.index);
  return { fields: await strictly(head) ?? lineByLine(head) };
}

/** As YAML, every plain word a text (`1.0`, `yes`). Undefined where it is none, names a key twice, or would unfold without end. */
async function strictly(head: string): Promise<Record<string, string | undefined> | undefined> {
  const { parseDocument } = await import("yaml");
  try {
    const document = parseDocument(head, { schema: "failsafe", logLevel: "silent" });
    if (document.errors.length > 0) return undefined;
    const value: unknown = document.toJS({ maxAliasCount: 10 });
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    const texts = Object.entries(value).filter((entry): entry is [string, string] =>
      typeof entry[1] === "string"
    );
    return Object.fromEntries(texts);
  } catch {
    return undefined;
  }
}

/** Each `key: value` at a line's start; lines set in go with the key before. The first of two alike counts. */
function lineByLine(head: string): Record<string, string | undefined> {
  const fields = new Map<string, string[]>();
  let open: string[] | undefined;
  for (const line of head.split("\n")) {
    const field = /^([A-Za-z][\w-]*):(?:[ \t]+(.*))?$/.exec(line);
    if (field) {
      open = [field[2] ?? ""];
      if (!fields.has(field[1]!)) fields.set(field[1]!, open);
    } else if (/^[ \t]/.test(line) || line === "") open?.push(line.trim());
    else open = undefined;
  }
  return Object.fromEntries([...fields].map(([key, [first, ...more]]) => {
    const block = /^[|>][+-]?\d?$/.test(first!.trim());
    return [key, unquoted([...(block ? [] : [first!]), ...more].join(" ").trim())];
  }));
}

function unquoted(text: string): string {
  const quote = text[0];
  if (text.length < 2 || (quote !== '"' && quote !== "'") || !text.endsWith(quote)) return text;
  const inner = text.slice(1, -1);
  return quote === "'" ? inner.replaceAll("''", "'") : inner.replace(/\\(["\\])/g, "$1");
}
