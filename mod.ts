// The public surface: the handler and what it is made from. Imports no server, no file system and no driver by itself.

export { asFailure, type ErrorForm, Failure, type FailureCode, type Issue } from "./src/errors.ts";
export { type Clock, type Ids, randomIds, systemClock } from "./src/clock.ts";
export type { Agent } from "./src/agent/agent.ts";
export type { AgentStore, ConversationStore, Driver, FileStore } from "./src/store/seams.ts";
export type { Model, Prompt } from "./src/model/model.ts";
export type { Toolbox } from "./src/tools/tools.ts";
export { createHandler, type Handler, type HandlerParts } from "./src/http/handler.ts";
export type { HandlerContext } from "./src/http/door.ts";
export type { AgentsHere } from "./src/agent/agent.ts";
export { type Config, configIn, configInMemory } from "./src/agent/config.ts";
export { checkSpec, type Settings, type Spec } from "./src/agent/settings.ts";
export { type Presence, presenceOf } from "./src/agent/presence.ts";
export type { Turns } from "./src/turn/turns.ts";
