// What the harness tells whoever runs it. Never a message's text, never a secret.

import type { Facts } from "./errors.ts";

export type Level = "debug" | "info" | "warn" | "error";

/** Tells one thing: a sentence, and facts for a program that reads it. */
export type Notify = (level: Level, sentence: string, facts?: Facts) => void;

/** Tells nobody. */
export const silent: Notify = () => {};
