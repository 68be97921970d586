// One agent, opened: everything that a turn of it needs, passed in. Nobody keeps a "current agent".

import type { Model } from "../model/model.ts";
import type { AgentStore } from "../store/seams.ts";
import type { Toolbox } from "../tools/tools.ts";
import type { Config } from "./config.ts";
import type { Settings } from "./settings.ts";

/** An agent as a process holds it. Whatever may change between two turns is a function. */
export interface Agent {
  readonly name: string;
  /** 256 random bits, hex. */
  readonly key: string;
  readonly store: AgentStore;
  readonly tools: Toolbox;
  /** Its spec, as the doors read and change it. */
  readonly config: Config;
  /** As they stand now: read through the store at each turn. Throws `settings_broken`. */
  settings(): Promise<Settings>;
  /** Who answers under these settings. Throws `no_model`. */
  model(settings: Settings): Promise<Model>;
  /** The model that stands in, where `[model] fallback` names one. */
  fallback(settings: Settings): Promise<Model | undefined>;
  /** The files folder as tools name it, for the prompt's environment section. */
  readonly workspace: string;
}

/** The agents that a process serves. */
export interface AgentsHere {
  get(name: string): Agent | undefined;
  list(): Iterable<Agent>;
}
