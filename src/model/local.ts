// What a runtime on this machine says of a model that it runs: the window above all, which is seldom the one that the model
// was trained for. A prompt longer than that is cut without a word.

import type { Clock } from "../clock.ts";
import { addressUnder, type Fetch, getJson, readText, within } from "../fetch.ts";
import { limits } from "../limits.ts";
import type { FactSource } from "./facts.ts";
import { countIn, type Fields, isObject } from "../json.ts";
import type { LocalWay, Runtime } from "./providers.ts";

export interface AskedRuntime extends Runtime {
  fetch: Fetch;
  clock: Clock;
}

/** Asks a runtime what it says of its model `name`; what it said stands for a while. */
export function runtimeFactsReader(
  runtime: AskedRuntime,
  name: string,
  options: { load: boolean },
): () => Promise<FactSource | undefined> {
  let said: Promise<FactSource | undefined> | undefined, until = 0;
  return () => {
    if (!said || runtime.clock.mono() >= until) {
      until = runtime.clock.mono() + limits.modelFactsMs;
      said = askers[runtime.way](runtime, name, options);
    }
    return said;
  };
}

type Asker = (
  runtime: AskedRuntime,
  name: string,
  options: { load: boolean },
) => Promise<FactSource | undefined>;

const askers: Record<LocalWay, Asker> = { ollama, lmstudio, llamacpp };

/** Ollama says in `/api/ps` what it runs. A model that does not run yet is loaded to know: the turn is about to, anyway. */
async function ollama(
  runtime: AskedRuntime,
  name: string,
  { load }: { load: boolean },
): Promise<FactSource | undefined> {
  const running = async () => {
    const { models } = objectOf(await get(runtime, "/api/ps"));
    const found = arrayOf(models).find((model) =>
      [model.name, model.model].some((known) => isSameModel(known, name))
    );
    return size(found?.context_length);
  };
  let window = await running();
  if (window === undefined && load) {
    await post(runtime, "/api/generate", { model: name, stream: false }, limits.modelLoadMs);
    window = await running();
  }
  const shown = objectOf(await post(runtime, "/api/show", { model: name }, limits.modelListMs));
  const info = objectOf(shown.model_info);
  const set = /^\s*num_ctx\s+(\d+)/m.exec(typeof shown.parameters === "string" ? shown.parameters : "");
  window ??= set ? size(Number(set[1])) : undefined;
  const trained = size(Object.entries(info).find(([key]) => key.endsWith(".context_length"))?.[1]);
  const can = Array.isArray(shown.capabilities) ? shown.capabilities : undefined;
  return {
    from: `${runtime.called}, which runs it`,
    facts: {
      ...(window !== undefined ? { window } : {}),
      ...(window === undefined && trained !== undefined ? { trained } : {}),
      ...(can
        ? { images: can.includes("vision"), tools: can.includes("tools"), thinking: can.includes("thinking") }
        : {}),
    },
  };
}

/** Ollama lists `qwen3` as `qwen3:latest`. */
function isSameModel(known: unknown, name: string): boolean {
  return known === name || known === `${name}:latest`;
}

async function lmstudio(runtime: AskedRuntime, name: string): Promise<FactSource | undefined> {
  const { data } = objectOf(await get(runtime, "/api/v0/models"));
  const found = arrayOf(data).find(({ id }) => id === name);
  const window = size(found?.loaded_context_length), trained = size(found?.max_context_length);
  return {
    from: `${runtime.called}, which runs it`,
    facts: {
      ...(window !== undefined ? { window } : trained !== undefined ? { trained } : {}),
      ...(found?.type === "vlm" ? { images: true } : {}),
    },
  };
}

async function llamacpp(runtime: AskedRuntime): Promise<FactSource | undefined> {
  const props = objectOf(await get(runtime, "/props"));
  const window = size(objectOf(props.default_generation_settings).n_ctx);
  const { vision } = objectOf(props.modalities);
  return {
    from: `${runtime.called}, which runs it`,
    facts: {
      ...(window !== undefined ? { window } : {}),
      ...(typeof vision === "boolean" ? { images: vision } : {}),
    },
  };
}

/** Its own address beside the OpenAI one. */
function own({ base }: AskedRuntime, path: string): string | undefined {
  return addressUnder(base.replace(/\/v1\/?$/, ""), path)?.url;
}

async function get(runtime: AskedRuntime, path: string): Promise<unknown> {
  const url = own(runtime, path);
  return url === undefined
    ? undefined
    : (await getJson(runtime.fetch, url, { ms: limits.modelListMs })).value;
}

async function post(runtime: AskedRuntime, path: string, body: unknown, ms: number): Promise<unknown> {
  const url = own(runtime, path);
  if (url === undefined) return undefined;
  try {
    const response = await runtime.fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      redirect: "manual",
      signal: within(ms),
    });
    const text = await readText(response, limits.modelListBytesMax);
    return response.ok ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

function objectOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}

function arrayOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.map(objectOf) : [];
}

function size(value: unknown): number | undefined {
  return countIn(value) || undefined;
}
