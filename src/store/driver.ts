// Drivers by name: loaded when one is first used, ours from drivers/, any other as the package `lnk-NAME`. Not reached from
// mod.ts, so that whoever needs no driver carries none.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Failure } from "../errors.ts";
import { agentPaths, threadFolder, type Where } from "../paths.ts";
import type { Driver, DriverModule, DriverParts } from "./seams.ts";

/** What a driver is opened for and with. */
export interface LoadParts extends Omit<DriverParts, "file" | "threadFolder"> {
  where: Where;
  /** Address of the module beside whose packages a driver from outside is looked for; ours where left out. */
  from?: string;
}

/** Opens the driver `name`. Throws `driver_unknown`, `store_failed` where it cannot be loaded, or what its opening throws. */
export async function loadDriver(name: string, parts: LoadParts): Promise<Driver> {
  const { where, from = import.meta.url, ...rest } = parts;
  const { openDriver } = await (shipped.get(name)?.() ?? fromOutside(name, from));
  const paths = agentPaths(parts.agent, where);
  return await openDriver({ ...rest, file: { root: paths.own, path: paths.driver(name) }, threadFolder });
}

// Literals, so that every packager sees what is loaded.
const shipped = new Map<string, () => Promise<DriverModule>>([
  ["sqlite", () => import("../../drivers/sqlite/mod.ts")],
]);

async function fromOutside(name: string, from: string): Promise<DriverModule> {
  // A name goes into a specifier: one that could lead elsewhere names no driver.
  if (!/^[a-z0-9][a-z0-9_-]*$/.test(name)) throw new Failure("driver_unknown", { driver: name });
  const specifier = `lnk-${name}`;
  let module: Partial<DriverModule>;
  try {
    module = await import(located(specifier, from));
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    if (code === "ERR_MODULE_NOT_FOUND" && message.includes(specifier)) {
      throw new Failure("driver_unknown", { driver: name }, { cause: error });
    }
    throw new Failure("store_failed", { why: `${specifier} could not be loaded: ${message}` }, {
      cause: error,
    });
  }
  if (typeof module.openDriver !== "function") {
    throw new Failure("store_failed", { why: `${specifier} exports no function openDriver` });
  }
  return module as DriverModule;
}

/** The package's file, where one is installed beside `from`; else its name, for an import map to know. */
function located(specifier: string, from: string): string {
  try {
    return pathToFileURL(createRequire(from).resolve(specifier)).href;
  } catch {
    return specifier;
  }
}
