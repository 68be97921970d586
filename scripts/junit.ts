// Reads the JUnit reports that `deno test` and `node --test` write, as one list of tests.

export interface TestOutcome {
  /** With the names of the suites around it: `store > log > appends`. */
  name: string;
  outcome: "passed" | "failed" | "skipped";
  /** Why it was skipped, where the runtime tells. */
  reason?: string;
  /** What went wrong. */
  failure?: string;
}

/** The tests of a report. Suites are no tests: what is in them is counted. */
export function readJunit(xml: string): TestOutcome[] {
  const tests: TestOutcome[] = [];
  const suites: string[] = [];
  let current: TestOutcome | undefined;
  const add = (test: TestOutcome) => tests.push(test);
  for (const [, close, tag, attributes = "", empty, rest = ""] of xml.matchAll(tags)) {
    if (tag === "testsuite") {
      if (close) suites.pop();
      else suites.push(attribute(attributes, "name") ?? "");
    } else if (tag === "testcase") {
      if (close) {
        if (current) add(current);
        current = undefined;
        continue;
      }
      current = { name: nameOf(suites, attributes), outcome: "passed" };
      if (empty) {
        add(current);
        current = undefined;
      }
    } else if (current && tag === "skipped" && !close) {
      current.outcome = "skipped";
      const reason = attribute(attributes, "message");
      if (reason && reason !== "true") current.reason = reason;
    } else if (current && tag === "failure" && !close) {
      current.outcome = "failed";
      current.failure = unescape(rest.trim()) || attribute(attributes, "message") || "";
    }
  }
  return leaves(tests);
}

const tags = /<(\/)?(testsuite|testcase|skipped|failure)\b((?:\s+[\w:]+="[^"]*")*)\s*(\/)?>([^<]*)/g;

/** Deno writes the whole name into the case and the file into the suite; Node nests suites. */
function nameOf(suites: string[], attributes: string): string {
  const name = attribute(attributes, "name") ?? "";
  const byDeno = attribute(attributes, "line") !== undefined;
  return byDeno ? name : [...suites, name].join(" > ");
}

/** Deno lists a suite beside what is in it: it is counted only where nothing in it is. */
function leaves(tests: TestOutcome[]): TestOutcome[] {
  const suites = new Set<string>();
  for (const { name } of tests) {
    for (let at = name.indexOf(" > "); at > 0; at = name.indexOf(" > ", at + 1)) {
      suites.add(name.slice(0, at));
    }
  }
  const failing = tests.filter(({ outcome }) => outcome === "failed").map(({ name }) => name);
  return tests.filter(({ name, outcome }) => {
    if (!suites.has(name)) return true;
    // A suite that failed by itself (a hook threw) while nothing in it failed must not go unseen.
    return outcome === "failed" && !failing.some((other) => other.startsWith(`${name} > `));
  });
}

function attribute(attributes: string, name: string): string | undefined {
  const found = new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1];
  return found === undefined ? undefined : unescape(found);
}

function unescape(text: string): string {
  const named: Record<string, string> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };
  return text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (all, decimal, hex, name) => {
    if (decimal) return String.fromCodePoint(Number(decimal));
    if (hex) return String.fromCodePoint(parseInt(hex, 16));
    return named[name as string] ?? all;
  });
}
