// What the program reads: its stdin, and files that its user names.

import { readFile } from "node:fs/promises";
import { Failure } from "../errors.ts";
import { misused } from "./command.ts";

/** The text of a file that a person names, or of stdin for `-`. Throws `usage` where it cannot be read, or is no UTF-8. */
export async function readText(file: string): Promise<string> {
  const bytes = file === "-" ? await readStdin() : await readNamed(file);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw misused(`${file === "-" ? "What came on stdin" : file} is not UTF-8`);
  }
}

async function readStdin(): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function readNamed(file: string): Promise<Uint8Array> {
  try {
    return await readFile(file);
  } catch (error) {
    const { code } = error as { code?: string };
    throw new Failure("usage", { say: `${file} cannot be read (${code}); name a file that is there.` }, {
      cause: error,
    });
  }
}
