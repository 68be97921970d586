// Where the stores under contract are kept, and how a process of its own opens the same one.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomIds, systemClock } from "../../src/clock.ts";
import { silent } from "../../src/notices.ts";
import { type FolderStoreParts, openFolderStore } from "../../src/store/folder.ts";
import type { ConversationStore } from "../../src/store/seams.ts";

/** A store in one place, opened as often as wanted; each opening stands for a process. */
export interface Place {
  open(): Promise<ConversationStore>;
  /** How another process opens it: the function `opener` of `module` is called with `args`. */
  opener: { module: string; name: string; args: unknown };
  /** Closes what is open and removes everything. */
  remove(): Promise<void>;
}

/** A folder of its own below the machine's temporary one. */
export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), "link-harness-"));
}

/** Opens a folder store's conversations, kept `way`. */
export function openFolder(
  { home, way = "log" }: { home: string; way?: string },
  parts: Partial<FolderStoreParts> = {},
): ConversationStore {
  return openFolderStore({
    agent: "mia",
    where: { home },
    clock: systemClock,
    ids: randomIds,
    notify: silent,
    storage: () => ({ way, sync: false }),
    ...parts,
  }).conversations;
}

/** A place in folders, conversations kept `way`. */
export function folderPlace(way: string): Promise<Place> {
  const args = { home: temporaryFolder(), way };
  return Promise.resolve(placeOf(
    () => Promise.resolve(openFolder(args)),
    { module: import.meta.url, name: "openFolder", args },
    () => rmSync(args.home, { recursive: true, force: true }),
  ));
}

/** A place of any store: remembers what was opened and closes it. */
export function placeOf(
  open: () => Promise<ConversationStore>,
  opener: Place["opener"],
  remove: () => void | Promise<void>,
): Place {
  const opened: ConversationStore[] = [];
  return {
    async open() {
      const store = await open();
      opened.push(store);
      return store;
    },
    opener,
    async remove() {
      for (const store of opened) await store.close();
      await remove();
    },
  };
}
