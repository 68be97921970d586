// Names and ids that every provider takes, made from ours: the same each time, and mapped back.

import type { ToolSpec } from "../tool.ts";

const nameCharsMax = 64, idCharsMax = 40;

/** A tool's name as it is sent: as it is where providers take it, else cleaned, cut, and told apart by a hash of the whole. */
export function safeName(name: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_-]*$/.test(name) && name.length <= nameCharsMax) return name;
  const plain = name.replace(/[^A-Za-z0-9_-]/g, "_").replace(/^(?=[^A-Za-z_])/, "_");
  return `${plain.slice(0, nameCharsMax - 9)}_${hash(name)}`;
}

/** Names of one prompt's tools, both ways. */
export interface Names {
  /** As sent; also for a tool that is not offered. */
  sent(name: string): string;
  /** As ours; a name that was never sent stays as the model wrote it. */
  ours(sent: string): string;
}

/** The names of these tools. Two that would be sent alike are told apart by a number, in the order of the list. */
export function namesOf(tools: readonly ToolSpec[]): Names {
  const toSent = new Map<string, string>(), toOurs = new Map<string, string>();
  for (const { name } of tools) {
    if (toSent.has(name)) continue;
    const plain = safeName(name);
    let sent = plain;
    for (let again = 2; toOurs.has(sent); again++) sent = `${plain.slice(0, nameCharsMax - 4)}_${again}`;
    toSent.set(name, sent);
    toOurs.set(sent, name);
  }
  return {
    sent: (name) => toSent.get(name) ?? safeName(name),
    ours: (sent) => toOurs.get(sent) ?? sent,
  };
}

/** A call's id as it is sent, and put among `used`: ours where it is of a form that providers take, and used once. */
export function safeId(id: string, used: Set<string>): string {
  const plain = /^[A-Za-z0-9_-]+$/.test(id) && id.length <= idCharsMax ? id : `call_${hash(id)}`;
  let sent = plain;
  for (let again = 2; used.has(sent); again++) sent = `${plain.slice(0, idCharsMax - 6)}_${again}`;
  used.add(sent);
  return sent;
}

/** 32 bits of FNV-1a over UTF-16 units, as 8 hex digits: a name for a name, no protection against anyone. */
function hash(text: string): string {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) {
    value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  }
  return (value >>> 0).toString(16).padStart(8, "0");
}
