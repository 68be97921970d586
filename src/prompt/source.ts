// What a section is read from: the agent's files, through its store. A file that may not be read is told, not skipped.

import { failedBy } from "../errors.ts";
import { limits } from "../limits.ts";

/** What is not in a section, and why. */
export interface LeftOut {
  what: string;
  why: string;
}

/** The agent's files, as far as sections are read from them: the store's FileStore. */
export interface SectionFiles {
  read(path: string): Promise<Uint8Array | undefined>;
  list(prefix: string): Promise<{ path: string; bytes: number; version: string }[]>;
}

/** What a section holds before it is held to its size. */
export interface Draft {
  source: string;
  text: string;
  left: LeftOut[];
}

/** A file's text, without a byte order mark, its lines ended by LF; "" where there is none, or where it may not be read. */
export async function readText(files: SectionFiles, path: string): Promise<Draft> {
  try {
    const bytes = await files.read(path);
    if (!bytes) return { source: path, text: "", left: [] };
    if (bytes.length > limits.instructionBytesMax) {
      const why = `it has ${bytes.length} bytes, and ${limits.instructionBytesMax} is the most`;
      return { source: path, text: "", left: [{ what: path, why }] };
    }
    return { source: path, text: new TextDecoder().decode(bytes).replaceAll("\r\n", "\n"), left: [] };
  } catch (thrown) {
    if (!failedBy(thrown, "link_refused")) throw thrown;
    return { source: path, text: "", left: [{ what: path, why: "it lies behind a symbolic link" }] };
  }
}
