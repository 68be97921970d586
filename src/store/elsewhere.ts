// Conversations that a driver keeps off this machine, beside those of the folders: who of the two is asked. Off the machine the
// driver keeps leases, marks and tools too; its conversations' folders here hold a marker and nothing else.

import { byThread } from "../names.ts";
import type { Directory, Storage } from "./directory.ts";
import type { ConversationStore, Driver, OpenConversation, ThreadInfo, Way } from "./seams.ts";

export interface ElsewhereParts {
  storage(): Storage | Promise<Storage>;
  driver(name: string): Promise<Driver>;
  /** The store made of a driver alone. */
  over(driver: Driver): ConversationStore;
}

/** One store of `here` and of every shared driver that a folder or the settings name. */
export function dispatched(
  here: ConversationStore,
  directory: Directory,
  parts: ElsewhereParts,
): ConversationStore {
  const shared = new Map<Way, ConversationStore>();

  /** The shared driver's store of that name; undefined where it is a way of this machine. */
  async function elsewhere(way: Way): Promise<ConversationStore | undefined> {
    if (way === "log" || way === "compact") return undefined;
    const known = shared.get(way);
    if (known) return known;
    const driver = await parts.driver(way);
    if (!driver.shared) return undefined;
    const store = parts.over(driver);
    shared.set(way, store);
    return store;
  }

  /** Who keeps a thread; what is not kept yet, or is known elsewhere only, is the settings' to say. */
  async function storeOf(thread: string): Promise<ConversationStore> {
    const way = directory.way(thread) ?? (await parts.storage()).way;
    return await elsewhere(way) ?? here;
  }

  /** Shared stores in use: the settings' own, and those that a conversation was found with. */
  async function inUse(): Promise<ConversationStore[]> {
    await elsewhere((await parts.storage()).way);
    return [...shared.values()];
  }

  return {
    // A store elsewhere says so by the term of the lease that it gives.
    term: here.term,
    last: async (thread) => (await storeOf(thread)).last(thread),
    async *read(thread, from, to) {
      yield* (await storeOf(thread)).read(thread, from, to);
    },
    readBack: async (thread, before, limit) => (await storeOf(thread)).readBack(thread, before, limit),
    async append(thread, append) {
      const way = directory.way(thread);
      if (way === undefined) {
        const { way } = await parts.storage();
        if (await elsewhere(way)) await directory.mark(thread, way);
      }
      return (await storeOf(thread)).append(thread, append);
    },

    leaseRead: async (thread) => (await storeOf(thread)).leaseRead(thread),
    leaseTake: async (thread, lease, replaces) => (await storeOf(thread)).leaseTake(thread, lease, replaces),
    leaseRenew: async (thread, key, change) => (await storeOf(thread)).leaseRenew(thread, key, change),
    leaseFree: async (thread, key, mark) => (await storeOf(thread)).leaseFree(thread, key, mark),
    mark: async (thread, mark) => (await storeOf(thread)).mark(thread, mark),
    marksRead: async (thread) => (await storeOf(thread)).marksRead(thread),
    toolsNarrow: async (thread, tools) => (await storeOf(thread)).toolsNarrow(thread, tools),
    toolsRead: async (thread) => (await storeOf(thread)).toolsRead(thread),

    async threads(after, limit) {
      const found = new Map<string, ThreadInfo>();
      for (const store of [...await inUse(), here]) {
        for (const info of await store.threads(after, limit)) found.set(info.thread, info);
      }
      return [...found.values()].sort((a, b) => byThread(a.thread, b.thread)).slice(0, limit);
    },

    async open() {
      const open: OpenConversation[] = [];
      for (const store of [...await inUse(), here]) open.push(...await store.open());
      return open;
    },

    async put(thread, lines, options = {}) {
      const way = options.way ?? (await parts.storage()).way;
      const store = await elsewhere(way);
      if (!store) return here.put(thread, lines, options);
      const put = await store.put(thread, lines, options);
      await directory.mark(thread, way);
      return put;
    },

    async forget(thread) {
      const store = await storeOf(thread);
      await store.forget(thread);
      if (store !== here) await directory.unmark(thread);
    },

    close: () => here.close(),
  };
}
