// A model behind a wire, asked until it answers: what is tried again, how often, and after what wait. One try is exchange.ts;
// the model that stands in when this one gives up is the turn's to ask, since it has instructions of its own.

import { Failure } from "../errors.ts";
import { hide } from "../fetch.ts";
import { limits } from "../limits.ts";
import type { Notify } from "../notices.ts";
import { type Carrier, exchange, type Target } from "./exchange.ts";
import { type Answer, type Ask, ended, type Model, type ModelFacts, type Prompt } from "./model.ts";
import { notSent } from "./schema.ts";
import { Trouble } from "./trouble.ts";
import type { Draft, Manner } from "./wire.ts";

export interface AskedModel {
  /** As settings name it. */
  name: string;
  target: Target;
  facts(): Promise<ModelFacts>;
  /** How it is asked at first, as it stands now. */
  manner(): Promise<Manner>;
  /** It is a runtime that cuts a prompt over its window without a word. */
  cutsSilently?: boolean;
  /** What to do where the key or the model's name is refused, for people. */
  advice?: string;
}

export interface Trying extends Carrier {
  notify: Notify;
  /** 0 to 1, for the jitter of waits. */
  random?: () => number;
}

/** The model, asked with retries. */
export function retriedModel(model: AskedModel, trying: Trying): Model {
  // What a provider wants asked otherwise is found once.
  let answerField: Manner["answerField"] | undefined;
  const told = new Set<string>();
  const tellOnce = (sentence: string) => {
    if (!told.has(sentence)) trying.notify("warn", sentence);
    told.add(sentence);
  };
  return {
    name: model.name,
    provider: model.target.provider,
    facts: model.facts,
    async ask(ask) {
      const rules = model.target.wire.rules(model.target);
      for (const { tool, what } of notSent(ask.prompt.tools, rules)) {
        tellOnce(`Of the tool ${tool}, ${what} is not sent to ${model.name}.`);
      }
      const manner = await model.manner();
      const course = new Course(model, trying, ask, {
        ...manner,
        answerField: answerField ?? manner.answerField,
      });
      const answer = await course.run();
      if (course.otherField) answerField = course.manner.answerField;
      if (model.cutsSilently && wasCut(ask.prompt, answer)) {
        tellOnce(
          `${model.name} read only a part of its prompt: the window it is run with is too small; see [window] max.`,
        );
      }
      return answer;
    },
  };
}

/** Whether far fewer tokens were read than any tokenizer makes of the prompt: eight characters to a token are too many. */
function wasCut({ instructions, messages }: Prompt, { tokens }: Answer): boolean {
  const chars = [...instructions, ...messages.map(({ text }) => text)].reduce(
    (sum, text) => sum + text.length,
    0,
  );
  return tokens.input > 0 && tokens.input < chars / 8;
}

/** One ask from its first try to its end. */
class Course {
  manner: Manner;
  /** The longest answer is named otherwise here than it was at first. */
  otherField = false;
  readonly #model: AskedModel;
  readonly #trying: Trying;
  readonly #ask: Ask;
  /** Text of the try that runs, or of the last one. */
  #text = "";
  #tries = 0;

  constructor(model: AskedModel, trying: Trying, ask: Ask, manner: Manner) {
    this.#model = model;
    this.#trying = trying;
    this.#ask = ask;
    this.manner = manner;
  }

  async run(): Promise<Answer> {
    for (;;) {
      try {
        return await this.#once();
      } catch (thrown) {
        if (!(thrown instanceof Trouble)) throw stopped(thrown);
        if (this.#mannerFor(thrown)) continue;
        if (thrown.kind !== "again" || this.#tries >= limits.modelTriesMax) throw this.#failure(thrown);
        if (!await this.#wait(thrown)) return this.#endedWaiting();
      }
    }
  }

  async #once(): Promise<Answer> {
    const { clock } = this.#trying;
    const { prompt, signal, onPiece } = this.#ask;
    const from = clock.mono();
    if (this.#text) onPiece({ type: "restart" });
    this.#text = "";
    this.#tries++;
    const draft = await exchange(this.#trying, this.#model.target, {
      prompt,
      manner: this.manner,
      signal,
      onText: (text) => {
        this.#text += text;
        onPiece({ type: "text", text });
      },
    });
    // Some models call though they were told to call nothing.
    if (prompt.choice === "none" && draft.calls.length > 0) {
      Object.assign(
        draft,
        { calls: [], stop: draft.stop === "calls" ? "end" : draft.stop } satisfies Partial<Draft>,
      );
    }
    const ms = Math.max(0, Math.round(clock.mono() - from));
    return { ...draft, provider: this.#model.target.provider, ms };
  }

  /** Whether the same may be asked in another way, each of which is tried once. */
  #mannerFor(trouble: Trouble): boolean {
    if (trouble.kind === "thinking" && this.manner.thinking) {
      this.manner = { ...this.manner, thinking: false };
    } else if (
      trouble.kind === "answer_field" && !this.otherField
    ) {
      this.otherField = true;
      const other = this.manner.answerField === "max_tokens" ? "max_completion_tokens" : "max_tokens";
      this.manner = { ...this.manner, answerField: other };
    } else return false;
    this.#tries--;
    return true;
  }

  /** Waits before the next try; false where the turn was asked to end meanwhile. */
  async #wait(trouble: Trouble): Promise<boolean> {
    const { clock, notify, random = Math.random } = this.#trying;
    const { signal } = this.#ask;
    if ((trouble.waitMs ?? 0) > limits.modelRetryMsMax) throw this.#failure(trouble);
    const step = Math.min(limits.modelRetryMsMax, limits.modelRetryMs * 2 ** (this.#tries - 1));
    const ms = Math.round(Math.max(trouble.waitMs ?? 0, step / 2 + random() * step / 2));
    notify(
      "warn",
      `${this.#model.name} did not answer (${this.#told(trouble)}); it is asked again in ${ms} ms.`,
    );
    await clock.sleep(ms, signal);
    if (signal.aborted && signal.reason !== ended) throw stopped(signal.reason);
    return !signal.aborted;
  }

  /** Asked to end between two tries: what the caller saw is what was said. */
  #endedWaiting(): Answer {
    const { model, provider } = this.#model.target;
    const tokens = { input: 0, output: 0 };
    return { text: this.#text, calls: [], model, provider, stop: "asked", tokens, ms: 0 };
  }

  /** What may be told of it: an error within a reply can repeat a key. */
  #told(trouble: Trouble): string {
    return hide(trouble.message, this.#model.target.secrets);
  }

  #failure(trouble: Trouble): Failure {
    const { name, target, advice } = this.#model;
    const facts = { model: name, provider: target.provider, status: trouble.status, tries: this.#tries };
    const words = this.#told(trouble);
    const said = `${target.provider}: ${words}`;
    const fail = (code: "model_failed" | "model_refused" | "model_timeout", why: string) =>
      new Failure(code, { ...facts, why }, { cause: trouble });
    switch (trouble.kind) {
      case "silent":
        return fail("model_timeout", said);
      case "content":
        return fail("model_refused", said);
      case "long": {
        const { tokens, from } = this.#ask.window ?? {};
        return new Failure("prompt_too_long", { ...facts, window: tokens, from, said: words }, {
          cause: trouble,
        });
      }
      case "again": {
        const wait = trouble.waitMs ?? 0;
        const long = wait > limits.modelRetryMsMax ? ` and asks to wait ${Math.round(wait / 1000)} s` : "";
        return fail("model_failed", `${said}${long}${this.#tries > 1 ? `, ${this.#tries} times` : ""}`);
      }
      case "refused":
      case "thinking":
      case "answer_field":
        return fail(
          "model_failed",
          advice && [401, 402, 403, 404].includes(trouble.status ?? 0) ? `${said}; ${advice}` : said,
        );
      default:
        throw trouble.kind satisfies never;
    }
  }
}

function stopped(reason: unknown): Failure {
  return reason instanceof Failure
    ? reason
    : new Failure("model_failed", { why: "its call was stopped" }, { cause: reason });
}

/** Whether another model may answer where this one failed so: not where the content was refused or the prompt too long. */
export function mayStandIn(failure: Failure): boolean {
  return failure.code === "model_failed" || failure.code === "model_timeout" || failure.code === "no_model";
}
