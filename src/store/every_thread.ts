// All conversations of an agent, asked for page by page.

import { limits } from "../limits.ts";
import type { ConversationStore, ThreadInfo } from "./seams.ts";

/** Every conversation in order of thread. */
export async function* everyThread(store: ConversationStore): AsyncIterable<ThreadInfo> {
  let after: string | undefined;
  do {
    const page = await store.threads(after, limits.listLimitMax);
    yield* page;
    after = page.length < limits.listLimitMax ? undefined : page.at(-1)!.thread;
  } while (after !== undefined);
}
