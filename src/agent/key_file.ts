// The file that holds an agent's key: read, or made at first use, whole even where two processes make it at once.

import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { link, open, unlink } from "node:fs/promises";
import { Failure } from "../errors.ts";
import { newKey } from "./keys.ts";

/** The key in the file `path`, made there (mode 0600) where there is none. Its folder must be there. Throws `key_broken`. */
export async function keyIn(path: string): Promise<string> {
  return await read(path) ?? await make(path);
}

async function read(path: string): Promise<string | undefined> {
  let handle;
  try {
    handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === "ENOENT") return undefined;
    if (code === "ELOOP") throw new Failure("link_refused", { path }, { cause: error });
    throw error;
  }
  try {
    const key = (await handle.readFile("utf8")).trim();
    if (!/^[\x21-\x7e]{16,512}$/.test(key)) throw new Failure("key_broken", { path });
    // A key that others of this machine can read is none: closed again, as ssh would ask for.
    if (((await handle.stat()).mode & 0o077) !== 0) await handle.chmod(0o600);
    return key;
  } finally {
    await handle.close();
  }
}

/** Written aside and put in place by a link, which fails where another was first: nobody ever reads half a key. */
async function make(path: string): Promise<string> {
  const aside = `${path}.${randomBytes(6).toString("hex")}`;
  const handle = await open(aside, "wx", 0o600);
  try {
    await handle.writeFile(`${newKey()}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  try {
    await link(aside, path);
  } catch (error) {
    if ((error as { code?: string }).code !== "EEXIST") throw error;
  } finally {
    await unlink(aside);
  }
  const key = await read(path);
  if (key === undefined) throw new Failure("key_broken", { path });
  return key;
}
