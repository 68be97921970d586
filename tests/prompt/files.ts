// The agent's files for the tests of sections: in memory, counting what is read.

import { Failure } from "../../src/errors.ts";
import type { SectionFiles } from "../../src/prompt/source.ts";

export interface MemoryFiles extends SectionFiles {
  /** Paths read, in order. */
  reads: string[];
  set(path: string, text: string | Uint8Array): void;
  /** From now on `path` is a symbolic link. */
  link(path: string): void;
}

export function memoryFiles(texts: Record<string, string | Uint8Array> = {}): MemoryFiles {
  const kept = new Map<string, { bytes: Uint8Array; version: string }>();
  const links = new Set<string>();
  let versions = 0;
  const files: MemoryFiles = {
    reads: [],
    read(path) {
      files.reads.push(path);
      if (links.has(path)) return Promise.reject(new Failure("link_refused", { path }));
      return Promise.resolve(kept.get(path)?.bytes);
    },
    list(prefix) {
      const found = [...kept].filter(([path]) => path.startsWith(prefix)).reverse();
      return Promise.resolve(
        found.map(([path, { bytes, version }]) => ({ path, bytes: bytes.length, version })),
      );
    },
    set(path, text) {
      const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
      kept.set(path, { bytes, version: String(++versions) });
    },
    link: (path) => void links.add(path),
  };
  for (const [path, text] of Object.entries(texts)) files.set(path, text);
  return files;
}
