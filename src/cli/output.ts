// What the program says: facts to stdout, all else to stderr.

import type { Failure } from "../errors.ts";
import type { Notify } from "../notices.ts";
import { program } from "./command.ts";
import { environment } from "./environment.ts";

/** Writes to stdout as it is. */
export function write(text: string): void {
  process.stdout.write(text);
}

/** One line to stdout. */
export function print(line: string): void {
  write(`${line}\n`);
}

/** One line to stderr. */
export function tell(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** A failure for a person: its sentence, what is wrong in detail, and where it came from if LNK_DEBUG is set. */
export function tellFailure(failure: Failure): void {
  const inner = failure.code === "internal" ? failure.cause : undefined;
  tell(`${program}: ${failure.message}${inner instanceof Error ? ` (${inner.name}: ${inner.message})` : ""}`);
  for (const { path, message } of failure.facts.issues as { path: string; message: string }[] ?? []) {
    tell(`  ${path || "the whole"}: ${message}`);
  }
  if (!environment.LNK_DEBUG) return;
  for (let at: unknown = failure; at instanceof Error; at = at.cause) tell(at.stack ?? String(at));
}

/** The harness's own messages on stderr: a sentence and its facts. `debug` ones only where LNK_DEBUG is set. */
export const notices: Notify = (level, sentence, facts = {}) => {
  if (level === "debug" && !environment.LNK_DEBUG) return;
  const said = Object.keys(facts).length > 0 ? ` ${JSON.stringify(facts)}` : "";
  tell(`${new Date().toISOString()} ${level} ${sentence}${said}`);
};

/** A reader that has enough (`… | head`) ends the program quietly. */
export function endWithReader(): void {
  process.stdout.on("error", (error: Error & { code?: string }) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });
  process.stderr.on("error", () => {});
}
