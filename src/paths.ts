// Every path of an agent, from one function of it. Pure: nothing here touches a disk. Nobody else joins paths to its home.

import { createHash } from "node:crypto";
import { dirname, join, resolve, sep } from "node:path";
import { limits } from "./limits.ts";
import { checkAgent } from "./names.ts";

/** Where an agent is kept: below a home of many, or in a folder that is its own. */
export type Where = { home: string } | { own: string };

/** The paths of one agent. */
export interface AgentPaths {
  agent: string;
  /** The agent's own folder, the root that no path of it leaves. */
  own: string;
  /** One file for each live process of this machine; beside the agents' folders, shared by all of them. */
  run: string;
  /** The lock that serves all conversations of the agent. */
  lock: string;
  settings: string;
  key: string;
  toolLists: string;
  /** A record for each conversation that has something open. */
  turns: string;
  turn(thread: string): string;
  /** The workspace. */
  files: string;
  chats: string;
  /** The one file that a driver of this machine keeps conversations in. */
  driver(name: string): string;
  conversation(thread: string): ConversationPaths;
}

/** What may stand in one conversation's folder. */
export interface ConversationPaths {
  folder: string;
  /** The `log`; beside frames, the events since the last one. */
  log: string;
  /** `compact`: the frames. */
  frames: string;
  /** Bytes of torn last lines, set aside before they were cut. */
  torn: string;
  /** The copy for people. */
  copy: string;
  /** Narrowed tools. */
  tools: string;
  /** The whole thread, where the folder's name does not say it. */
  thread: string;
  /** The older layout: one file per event. */
  older: string;
  /** The empty file that says that a driver keeps the events. */
  marker(driver: string): string;
}

/** All paths of `agent`. Throws `agent_invalid`. */
export function agentPaths(agent: string, where: Where): AgentPaths {
  checkAgent(agent);
  const own = "own" in where ? resolve(where.own) : resolve(where.home, agent);
  const files = join(own, "files"), chats = join(files, "chats"), turns = join(own, "turns");
  return {
    agent,
    own,
    run: join(dirname(own), "run"),
    lock: join(own, "lock"),
    settings: join(own, "config.json"),
    key: join(own, "key"),
    toolLists: join(own, "tool-lists.json"),
    turns,
    turn: (thread) => turns + sep + threadFolder(thread),
    files,
    chats,
    driver: (name) => join(chats, `events.${name}`),
    conversation: (thread) => conversationPaths(chats + sep + threadFolder(thread)),
  };
}

/** What may stand in `folder`, a conversation's. */
export function conversationPaths(folder: string): ConversationPaths {
  const at = (name: string) => folder + sep + name;
  return {
    folder,
    log: at("events.jsonl"),
    frames: at("events.zst"),
    torn: at("events.torn"),
    copy: at("chat.md"),
    tools: at("tools.json"),
    thread: at("thread"),
    older: at("events"),
    marker: (driver) => at(markerPrefix + driver),
  };
}

const markerPrefix = "store.";

/** The driver that a file of a conversation's folder names; undefined where it is no marker. */
export function markedDriver(name: string): string | undefined {
  return name.startsWith(markerPrefix) && name.length > markerPrefix.length
    ? name.slice(markerPrefix.length)
    : undefined;
}

const plainThread = /^[a-z0-9_]+:[a-z0-9_-]+$/;
const hashChars = 26; // 130 bits

/**
 * The folder of a thread: `telegram-42` for `telegram:42`; for any thread that this would make ambiguous, too long or unsafe on some
 * file system, a readable prefix, `~` and a hash of the thread. No two threads share one, whatever the file system makes of upper and
 * lower case or of normal forms: a plain name has no `~`, and both kinds hold only a-z, 0-9, `_`, `-` and that `~`. A name with a `-`
 * or a `~` in it is no device name anywhere.
 */
export function threadFolder(thread: string): string {
  if (plainThread.test(thread) && thread.length <= limits.folderCharsMax) return thread.replace(":", "-");
  const prefix = thread.slice(0, 64).toLowerCase().replace(/[^a-z0-9_]+/g, "-").replace(/^-+/, "")
    .slice(0, 24).replace(/-+$/, "");
  return `${prefix || "thread"}~${base32(createHash("sha256").update(thread).digest()).slice(0, hashChars)}`;
}

/** The thread of a plain folder name; undefined where the name does not say it whole. */
export function folderThread(folder: string): string | undefined {
  const thread = folder.replace("-", ":");
  return plainThread.test(thread) && threadFolder(thread) === folder ? thread : undefined;
}

/** Whether a name has the form of a thread's folder that does not say its thread whole. */
export function isHashedFolder(folder: string): boolean {
  return /^[a-z0-9_][a-z0-9_-]*~[a-z2-7]{26}$/.test(folder);
}

function base32(bytes: Uint8Array): string {
  let text = "", bits = 0, held = 0;
  for (const byte of bytes) {
    held = (held << 8) | byte;
    for (bits += 8; bits >= 5; bits -= 5) {
      text += "abcdefghijklmnopqrstuvwxyz234567"[(held >> (bits - 5)) & 31];
    }
    held &= (1 << bits) - 1;
  }
  return text;
}
