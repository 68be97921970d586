// `deno task test`: types, lint and format, then every test on Deno and on Node 22 and 24, two at a time. Prints what was
// skipped and why, and closes with one line of counts. Exits 1 where anything failed, or where a skip tells no reason.
//
//   deno task test [check] [deno] [node] [22] [24] [-- FILE…]      which parts and files; all where none is named

import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readJunit, type TestOutcome } from "./junit.ts";
import { bringNode, type Major, majors, type NodeBinary } from "./nodes.ts";

/** A suite that has not ended by then is stopped and counts as failed. */
const suiteMsMax = 10 * 60_000;
const root = fileURLToPath(new URL("..", import.meta.url));

/** One way to run every test. */
interface Suite {
  title: string;
  command: (report: string, files: string[]) => { path: string; args: string[] };
}

interface Ran {
  title: string;
  tests: TestOutcome[];
}

await main(process.argv.slice(2));

async function main(args: string[]): Promise<void> {
  const split = args.indexOf("--");
  const parts = split < 0 ? args : args.slice(0, split);
  const files = split < 0 ? testFiles() : args.slice(split + 1);
  const wants = (...names: string[]) => parts.length === 0 || names.some((name) => parts.includes(name));

  const troubles: string[] = [];
  if (wants("check") && (await run(process.execPath, ["task", "check"], true)).code !== 0) {
    troubles.push("deno task check");
  }

  const nodes: NodeBinary[] = [];
  for (const major of Object.keys(majors).map(Number) as Major[]) {
    if (!wants("node", String(major))) continue;
    try {
      nodes.push(await bringNode(major));
    } catch (error) {
      troubles.push(`Node ${major} could not be had: ${(error as Error).message}`);
    }
  }
  process.env.LNK_TEST_NODES = nodes.map(({ path }) => path).join("\n");
  const suites = [...(wants("deno") ? [onDeno()] : []), ...nodes.map(onNode)];
  const ran = await twoAtATime(suites.map((suite) => () => runSuite(suite, files)));
  report(ran, troubles);
}

function onDeno(): Suite {
  return {
    title: `Deno ${process.versions.deno}`,
    command: (report, files) => ({
      path: process.execPath,
      args: ["test", "-A", "--no-check", "--quiet", `--junit-path=${report}`, ...files],
    }),
  };
}

function onNode({ path, version }: NodeBinary): Suite {
  return {
    title: `Node ${version}`,
    command: (report, files) => ({
      path,
      args: [
        "--experimental-strip-types",
        "--disable-warning=ExperimentalWarning",
        "--test",
        "--test-reporter=spec",
        "--test-reporter-destination=stdout",
        "--test-reporter=junit",
        `--test-reporter-destination=${report}`,
        ...files,
      ],
    }),
  };
}

async function runSuite(suite: Suite, files: string[]): Promise<Ran> {
  const folder = mkdtempSync(join(tmpdir(), "lnk-test-"));
  const began = performance.now();
  try {
    const report = join(folder, "report.xml");
    const { path, args } = suite.command(report, files);
    const { code, output } = await run(path, args);
    const tests = readReport(report);
    const failed = tests.filter(({ outcome }) => outcome === "failed").length;
    if (code !== 0 && failed === 0) {
      tests.push({ name: `the whole run (exit ${code})`, outcome: "failed", failure: output.slice(-8000) });
    }
    if (tests.length === 0) {
      tests.push({ name: "no test was run", outcome: "failed", failure: output.slice(-8000) });
    }
    console.log(`${suite.title}: ${counts(tests)} (${Math.round((performance.now() - began) / 1000)} s)`);
    return { title: suite.title, tests };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readReport(path: string): TestOutcome[] {
  try {
    return readJunit(readFileSync(path, "utf8"));
  } catch {
    return [];
  }
}

/** Failures whole, skips with their reasons, and the closing line. */
function report(ran: Ran[], troubles: string[]): void {
  for (const { title, tests } of ran) {
    for (const { name, outcome, failure } of tests) {
      if (outcome === "failed") console.log(`\nFAILED on ${title}: ${name}\n${indent(failure ?? "")}`);
    }
  }
  const skips = skipsOf(ran);
  if (skips.size > 0) console.log("\nSkipped:");
  for (const [name, { reason, titles }] of skips) {
    if (reason === undefined) troubles.push(`a skip that tells no reason: ${name}`);
    console.log(`  ${name} (${titles.join(", ")}): ${reason ?? "no reason told"}`);
  }
  for (const trouble of troubles) console.log(`\nFAILED: ${trouble}`);
  const all = ran.flatMap(({ tests }) => tests);
  const failed = troubles.map((name): TestOutcome => ({ name, outcome: "failed" }));
  console.log(`\n${counts([...all, ...failed])}`);
  process.exitCode = [...all, ...failed].some(({ outcome }) => outcome === "failed") ? 1 : 0;
}

/** Skipped tests by name. Deno does not tell the reason: it is the one that Node tells for the same test. */
function skipsOf(ran: Ran[]): Map<string, { reason?: string; titles: string[] }> {
  const skips = new Map<string, { reason?: string; titles: string[] }>();
  for (const { title, tests } of ran) {
    for (const { name, outcome, reason } of tests) {
      if (outcome !== "skipped") continue;
      const skip = skips.get(name) ?? { titles: [] };
      skip.titles.push(title);
      skip.reason ??= reason;
      skips.set(name, skip);
    }
  }
  return skips;
}

function counts(tests: TestOutcome[]): string {
  const count = (outcome: TestOutcome["outcome"]) => tests.filter((test) => test.outcome === outcome).length;
  return `${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped`;
}

function testFiles(): string[] {
  return readdirSync(join(root, "tests"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".test.ts")).map((name) => join("tests", name)).sort();
}

/** Runs a program to its end; `show` lets its output through at once. */
function run(path: string, args: string[], show = false): Promise<{ code: number; output: string }> {
  return new Promise((done) => {
    const env = { ...process.env, NO_COLOR: "1" };
    const child = spawn(path, args, { cwd: root, env, stdio: show ? "inherit" : ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout?.on("data", (chunk) => output += chunk);
    child.stderr?.on("data", (chunk) => output += chunk);
    const late = setTimeout(() => {
      output += `\nstopped after ${suiteMsMax / 60_000} minutes`;
      child.kill("SIGKILL");
    }, suiteMsMax);
    const end = (code: number) => {
      clearTimeout(late);
      done({ code, output });
    };
    child.on("error", (error) => {
      output += String(error);
      end(1);
    });
    child.on("close", (code) => end(code ?? 1));
  });
}

async function twoAtATime<T>(works: (() => Promise<T>)[]): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const lane = async () => {
    for (let at = next++; at < works.length; at = next++) results[at] = await works[at]!();
  };
  await Promise.all([lane(), lane()]);
  return results;
}

function indent(text: string): string {
  return text.split("\n").map((line) => `    ${line}`).join("\n");
}
