// Places of drivers: alone, as a store bridge uses them, and as one way of the folders.

import { rmSync } from "node:fs";
import { randomIds, systemClock } from "../../src/clock.ts";
import { limits } from "../../src/limits.ts";
import { silent } from "../../src/notices.ts";
import { conversationsOver } from "../../src/store/conversations.ts";
import { loadDriver, type LoadParts } from "../../src/store/driver.ts";
import type { ConversationStore } from "../../src/store/seams.ts";
import { openFolder, type Place, placeOf, temporaryFolder } from "./places.ts";

/** A driver, and all that another process needs to open it, too. */
export interface DriverArgs {
  driver: string;
  home: string;
  settings?: Record<string, unknown>;
  from?: string;
}

export function loadPartsOf({ home, settings = {}, from }: DriverArgs): LoadParts {
  return {
    agent: "mia",
    where: { home },
    settings,
    sync: false,
    clock: systemClock,
    ids: randomIds,
    fetch,
    notify: silent,
    from,
  };
}

/** The driver alone keeps events and documents. */
export async function openDriverStore(args: DriverArgs): Promise<ConversationStore> {
  const driver = await loadDriver(args.driver, loadPartsOf(args));
  return conversationsOver(driver, { clock: systemClock, ids: randomIds, term: limits.leaseTermMs });
}

/** The folders name the driver as the way of a new conversation. */
export function openFolderWithDriver(args: DriverArgs): Promise<ConversationStore> {
  return Promise.resolve(openFolder({ home: args.home, way: args.driver }, {
    driver: (name) => loadDriver(name, loadPartsOf(args)),
  }));
}

export function driverPlace(driver: string, more: Partial<DriverArgs> = {}): Promise<Place> {
  return place("openDriverStore", openDriverStore, { driver, home: temporaryFolder(), ...more });
}

export function folderWithDriverPlace(driver: string, more: Partial<DriverArgs> = {}): Promise<Place> {
  return place("openFolderWithDriver", openFolderWithDriver, { driver, home: temporaryFolder(), ...more });
}

function place(
  name: string,
  open: (args: DriverArgs) => Promise<ConversationStore>,
  args: DriverArgs,
): Promise<Place> {
  return Promise.resolve(placeOf(
    () => open(args),
    { module: import.meta.url, name, args },
    () => rmSync(args.home, { recursive: true, force: true }),
  ));
}
