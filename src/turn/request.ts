// What a turn asks its model: everything that is read once at its start, the prompt of each round, and what is tried where
// the prompt is too long or the model fails. How the turn goes on from there is turn.ts.
//
//   const request = await openRequest({ agent, thread, tail, skills, notify })
//   const { window, upto } = await request.window()
//   const answer = await request.ask(request.prompt(window, "auto"), signal, onPiece)

import type { Agent } from "../agent/agent.ts";
import type { Settings } from "../agent/settings.ts";
import { failedBy, type Failure } from "../errors.ts";
import type { Answer, Model, Piece, Prompt } from "../model/model.ts";
import { mayStandIn } from "../model/retry.ts";
import type { Notify } from "../notices.ts";
import { composePrompt } from "../prompt/compose.ts";
import { type Room, roomOf } from "../prompt/room.ts";
import { readSections, replaceModel, type Section, type SectionInput } from "../prompt/sections.ts";
import type { SkillCache } from "../prompt/skills.ts";
import { type NoteSettings, type Plan, planAfter, planBefore, summaryPrompt } from "../prompt/summary.ts";
import { findStart, type Start, type Window, windowOf } from "../prompt/window.ts";
import type { ToolSpec } from "../tool.ts";
import type { Tail } from "./tail.ts";

export interface RequestParts {
  agent: Agent;
  thread: string;
  tail: Tail;
  skills: SkillCache;
  notify: Notify;
  /** What was told of this conversation before, so that it is told once. */
  told?: Set<string>;
}

/** Who answers, the sections with its own instructions among them, and the room that its window leaves. */
interface Side {
  model: Model;
  sections: Section[];
  room: Room;
}

/** Reads what a turn is asked with. The same from its first round to its last. */
export async function openRequest(parts: RequestParts): Promise<TurnRequest> {
  const { agent, thread, skills } = parts;
  const { conversations, files } = agent.store;
  const settings = await agent.settings();
  const [model, offer, narrowed] = await Promise.all([
    agent.model(settings),
    agent.tools.offer(settings.tools),
    conversations.toolsRead(thread),
  ]);
  const tools = offer.tools.filter(({ name }) => !narrowed || narrowed.includes(name));
  const input: SectionInput = {
    files,
    instructions: settings.instructions,
    model: model.name,
    tools,
    toolInstructions: offer.instructions,
    workspace: agent.workspace,
    skills,
  };
  const [sections, facts] = await Promise.all([readSections(input), model.facts()]);
  const side = { model, sections, room: roomOf(facts, settings, sections, tools) };
  return new TurnRequest(parts, settings, input, side);
}

export class TurnRequest {
  readonly tools: readonly ToolSpec[];
  readonly settings: Settings;
  #parts: RequestParts;
  #input: SectionInput;
  #side: Side;
  #start: Start | undefined;
  /** The provider said once that the prompt is too long. */
  #isNarrowed = false;

  constructor(parts: RequestParts, settings: Settings, input: SectionInput, side: Side) {
    this.#parts = parts;
    this.settings = settings;
    this.#input = input;
    this.#side = side;
    this.tools = input.tools;
    this.#tell(side.room.tight);
  }

  get model(): Model {
    return this.#side.model;
  }

  get sections(): readonly Section[] {
    return this.#side.sections;
  }

  get room(): Room {
    return this.#side.room;
  }

  /** The window of all that is at hand, and the last number in it. */
  async window(): Promise<{ window: Window; upto: number }> {
    const { tail } = this.#parts;
    this.#start ??= await findStart(tail);
    const window = windowOf(tail.events, this.#start, this.room);
    tail.keepFrom(window.start.from);
    if (window.cut) {
      this.#tell(
        "A message, or a round of calls with its results, is larger than the conversation's room; its longest texts are sent cut.",
      );
    }
    return { window, upto: tail.last };
  }

  /** The window begins here from now on: what left it is dealt with. */
  moved(start: Start): void {
    this.#start = start;
  }

  /** What to summarise before a request whose window has outgrown its room. */
  planBefore(window: Window): Plan | undefined {
    return planBefore(this.#parts.tail.events, window, this.room, this.#notes);
  }

  /** What to summarise once the turn has answered. */
  async planAfter(): Promise<Plan | undefined> {
    const { window } = await this.window();
    return planAfter(this.#parts.tail.events, window, this.room, this.#notes);
  }

  get #notes(): NoteSettings {
    return {
      save_notes: this.settings.window.save_notes,
      offered: new Set(this.tools.map(({ name }) => name)),
    };
  }

  prompt(window: Window, choice: Prompt["choice"]): Prompt {
    const { placed, summary } = window;
    const { sections, room } = this.#side;
    const stands = summary ? { summary } : {};
    return composePrompt({ sections, tools: this.tools, placed, ...stands, choice, answerMax: room.answer });
  }

  summaryPrompt(plan: Plan): Prompt {
    return summaryPrompt(plan, { sections: this.sections, tools: this.tools });
  }

  ask(prompt: Prompt, signal: AbortSignal, onPiece: (piece: Piece) => void): Promise<Answer> {
    const { model, room } = this.#side;
    return model.ask({ prompt, window: { tokens: room.window, from: room.from }, signal, onPiece });
  }

  /**
   * After a request that failed: makes the next one smaller, once, where it was too long, or has the fallback stand in for the
   * rest of the turn. False where there is nothing else to try.
   */
  async mend(failure: Failure, window: Window): Promise<boolean> {
    if (failedBy(failure, "prompt_too_long") && !this.#isNarrowed) {
      this.#isNarrowed = true;
      this.#side = { ...this.#side, room: halved(this.room, window) };
      return true;
    }
    const { agent, notify } = this.#parts;
    const { fallback } = this.settings.model;
    if (!mayStandIn(failure) || this.model.name === fallback) return false;
    const model = await agent.fallback(this.settings);
    if (!model) return false;
    notify("warn", "The model failed; the fallback stands in.", {
      model: this.model.name,
      fallback: model.name,
      code: failure.code,
    });
    this.#input = { ...this.#input, model: model.name };
    const [sections, facts] = await Promise.all([
      replaceModel(this.#side.sections, this.#input),
      model.facts(),
    ]);
    this.#side = { model, sections, room: roomOf(facts, this.settings, sections, this.tools) };
    return true;
  }

  /** Reads the sections again, after notes were saved. */
  async reread(): Promise<void> {
    this.#side = { ...this.#side, sections: await readSections(this.#input) };
  }

  /** Names of the tools that may be called now: narrowing binds at once. */
  async callable(): Promise<ReadonlySet<string>> {
    const { agent, thread } = this.#parts;
    const now = await agent.store.conversations.toolsRead(thread);
    return new Set(this.tools.flatMap(({ name }) => !now || now.includes(name) ? [name] : []));
  }

  #tell(sentence: string | undefined): void {
    const { told, notify, thread } = this.#parts;
    if (sentence === undefined || told?.has(sentence)) return;
    told?.add(sentence);
    notify("warn", sentence, { thread });
  }
}

/** Half of what the conversation had in the request that was too long. */
function halved(room: Room, { tokens }: Window): Room {
  const share = Math.floor(Math.min(room.share, tokens) / 2);
  return { ...room, share, drop: Math.floor(share / 2) };
}
