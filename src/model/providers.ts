// Whom a model can be asked of: providers with a key, and runtimes on this machine. A table; who of them answers is choose.ts.

import { openai } from "./openai.ts";
import type { Manner, Wire } from "./wire.ts";

/** The names that `[model] via` takes. */
export const ways = [
  "proxy",
  "anthropic",
  "openai",
  "openrouter",
  "ollama",
  "lmstudio",
  "llamacpp",
  "demo",
] as const;
export type Way = (typeof ways)[number];
export type LocalWay = "ollama" | "lmstudio" | "llamacpp";

/** Whether it is a runtime on this machine. */
export function isLocal(way: Way): way is LocalWay {
  return runtimes.some((runtime) => runtime.way === way);
}

/** A provider with a key of its own. */
export interface Keyed {
  way: Way;
  keyFrom: string;
  base: string;
  /** Where the environment may name another base address, as this provider's own programs let it. */
  baseFrom?: { name: string; under: string };
  wire: "openai" | "anthropic";
  /** The one maker whose models its key serves; its prefix is not sent. Left out: every maker's, named whole. */
  maker?: string;
}

/** A runtime on this machine. Its models stand under its name, which is not sent. */
export interface Runtime {
  way: LocalWay;
  base: string;
  called: string;
}

/** In the order of choice. */
export const keyed: readonly Keyed[] = [
  {
    way: "anthropic",
    keyFrom: "ANTHROPIC_API_KEY",
    base: "https://api.anthropic.com/v1",
    baseFrom: { name: "ANTHROPIC_BASE_URL", under: "/v1" },
    wire: "anthropic",
    maker: "anthropic",
  },
  {
    way: "openai",
    keyFrom: "OPENAI_API_KEY",
    base: "https://api.openai.com/v1",
    baseFrom: { name: "OPENAI_BASE_URL", under: "" },
    wire: "openai",
    maker: "openai",
  },
  { way: "openrouter", keyFrom: "OPENROUTER_API_KEY", base: "https://openrouter.ai/api/v1", wire: "openai" },
];

/** In the order of choice. All speak the OpenAI wire. */
export const runtimes: readonly Runtime[] = [
  { way: "ollama", base: "http://127.0.0.1:11434/v1", called: "Ollama" },
  { way: "lmstudio", base: "http://127.0.0.1:1234/v1", called: "LM Studio" },
  { way: "llamacpp", base: "http://127.0.0.1:8080/v1", called: "llama.cpp" },
];

/** Every variable of the environment that is read to choose a model. */
export const variables: readonly string[] = [
  "LNK_MODEL_URL",
  "LNK_MODEL_KEY",
  "LNK_MODEL_WIRE",
  ...keyed.flatMap(({ keyFrom, baseFrom }) => baseFrom ? [keyFrom, baseFrom.name] : [keyFrom]),
];

/** Wires by name. The other one is loaded where it is spoken. */
export async function wireNamed(name: "openai" | "anthropic"): Promise<Wire> {
  return name === "openai" ? openai : (await import("./anthropic.ts")).anthropic;
}

/** How a provider is asked at first. */
export function mannerOf(way: Way): Manner {
  return {
    thinking: true,
    answerField: way === "openai" ? "max_completion_tokens" : "max_tokens",
    endless: false,
  };
}
