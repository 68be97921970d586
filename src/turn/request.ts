// What a turn asks its model: everything that is read once at its start, the prompt of each round, and who stands in for
// a model that fails.

import { asFailure, type Failure } from "../errors.ts";
import { limits } from "../limits.ts";
import type { Checkpoint } from "../log/event.ts";
import type { Answer, Model, Piece, Prompt } from "../model/model.ts";
import { mayStandIn } from "../model/retry.ts";
import { composePrompt } from "../prompt/compose.ts";
import { type Placed, placedMessages } from "../prompt/messages.ts";
import { readSections, replaceModel, type Section, type SectionInput } from "../prompt/sections.ts";
import type { Desk, Running, TurnParts } from "./desk.ts";
import type { Tail } from "./tail.ts";

export interface Asking {
  tail: Tail;
  signal: AbortSignal;
  onPiece(piece: Piece): void;
}

/** Who answers, and the sections with its own instructions among them. */
interface Side {
  model: Model;
  sections: Section[];
}

export interface TurnRequest {
  /** Asks for the next round; past the last one the model may call nothing (`final`). */
  ask(asking: Asking): Promise<{ answer: Answer; final: boolean }>;
  /** Names of the tools that may be called now: narrowing binds at once. */
  callable(): Promise<ReadonlySet<string>>;
  /** Where the window of the newest request begins. */
  checkpoint(): Checkpoint | undefined;
}

/** Reads what the turn is asked with. The same from its first round to its last. */
export async function openRequest(parts: TurnParts, desk: Desk, running: Running): Promise<TurnRequest> {
  const { agent, thread } = desk;
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
    skills: desk.skills,
  };
  let side: Side = { model, sections: await readSections(input) };
  const answerMax = settings.model.answer ?? limits.answerTokens;

  /** The model that stands in for the rest of the turn, with its own instructions in the first one's place. */
  async function standIn(failure: Failure): Promise<Side> {
    const model = side.model.name === settings.model.fallback ? undefined : await agent.fallback(settings);
    if (!model) throw failure;
    parts.notify("warn", "The model failed; the fallback stands in.", {
      model: side.model.name,
      fallback: model.name,
      code: failure.code,
    });
    return { model, sections: await replaceModel(side.sections, { ...input, model: model.name }) };
  }

  return {
    async ask({ tail, signal, onPiece }) {
      const rounds =
        tail.events.filter(({ event }) =>
          event?.type === "model" && event.turn === running.turn && event.calls
        ).length;
      const final = rounds >= limits.roundsMax;
      const placed = windowOf(tail);
      for (;;) {
        const prompt: Prompt = composePrompt({
          sections: side.sections,
          tools,
          placed,
          choice: final ? "none" : "auto",
          answerMax,
        });
        try {
          return { answer: await side.model.ask({ prompt, signal, onPiece }), final };
        } catch (thrown) {
          const failure = asFailure(thrown);
          if (signal.aborted || !mayStandIn(failure)) throw failure;
          side = await standIn(failure);
          onPiece({ type: "restart" });
        }
      }
    },

    async callable() {
      const now = await conversations.toolsRead(thread);
      return new Set(tools.flatMap(({ name }) => !now || now.includes(name) ? [name] : []));
    },

    checkpoint: () => undefined,
  };
}

/** The newest messages, from one at which a window may begin. */
function windowOf({ events }: Tail): Placed[] {
  const placed = placedMessages(events.slice(-2 * limits.windowMessages));
  const begin = placed.findIndex(({ begins }, at) => begins && at >= placed.length - limits.windowMessages);
  return begin > 0 ? placed.slice(begin) : placed;
}
