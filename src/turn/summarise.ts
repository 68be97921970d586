// A summary within a turn: the model is asked, the notes that it saves first are saved, and what came of it is kept as an
// event, a failure too. When one is due and what counts as one is prompt/summary.ts.

import { timestamp } from "../clock.ts";
import { asFailure, failedBy } from "../errors.ts";
import type { Call, SummaryEvent, Tokens } from "../log/event.ts";
import type { Answer } from "../model/model.ts";
import {
  type Checked,
  checkSummary,
  noteCalls,
  onlyNotes,
  type Plan,
  summaryFields,
  withNotes,
} from "../prompt/summary.ts";
import { argumentsOf } from "../tools/arguments.ts";
import type { TurnRequest } from "./request.ts";
import type { Held } from "./turn.ts";

interface Said {
  checked: Checked;
  answer: Pick<Answer, "model" | "provider" | "response" | "stop" | "tokens" | "cost" | "ms">;
  /** The calls by which notes were saved. */
  calls: Call[];
}

/**
 * Asks for the summary and keeps it; the request's window then begins with it. One that fails is kept as failed and moves
 * nothing. Returns nothing where the turn was asked to end meanwhile. Throws where the store or the lease fails.
 */
export async function summarise(
  held: Held,
  request: TurnRequest,
  plan: Plan,
  signal: AbortSignal,
): Promise<SummaryEvent | undefined> {
  const { parts, desk, running, holder } = held;
  const said = await ask(held, request, plan, signal);
  if (said.answer.stop === "asked") return undefined;
  const { checked, calls, answer: { model, provider, response, stop, tokens, cost, ms } } = said;
  const event = await holder.append((seq): SummaryEvent => ({
    seq,
    at: timestamp(parts.clock.now()),
    type: "summary",
    turn: running.turn,
    ...summaryFields(plan, seq, checked),
    model,
    provider,
    ...(response === undefined ? {} : { response }),
    stop,
    tokens,
    ms: Math.round(ms),
    ...(cost === undefined ? {} : { cost }),
    ...(calls.length > 0 ? { calls } : {}),
  }));
  if (event.window) request.moved({ start: event.window, summary: event });
  else {
    parts.notify("warn", "A summary failed; what it was to stand for is left as it is.", {
      thread: desk.thread,
      why: event.failed,
    });
  }
  if (calls.length > 0) await request.reread();
  return event;
}

async function ask(held: Held, request: TurnRequest, plan: Plan, signal: AbortSignal): Promise<Said> {
  const { parts: { clock }, holder } = held;
  const began = clock.mono();
  const { name, provider } = request.model;
  const spent: Said["answer"] = {
    model: name,
    provider,
    stop: "end",
    tokens: { input: 0, output: 0 },
    ms: 0,
  };
  const calls: Call[] = [];
  let prompt = request.summaryPrompt(plan);
  for (let round = 1;; round++) {
    let answer: Answer;
    try {
      answer = await request.ask(prompt, signal, () => {});
    } catch (thrown) {
      const failure = asFailure(thrown);
      if (signal.aborted || failedBy(failure, "lease_lost", "draining")) throw failure;
      // The model's own trouble: the conversation goes on without the summary.
      return { checked: { failed: failure.code }, answer: { ...spent, ms: clock.mono() - began }, calls };
    }
    holder.check();
    const { model, provider, response, stop, tokens, cost } = answer;
    Object.assign(spent, { model, provider, response, stop, tokens: added(spent.tokens, tokens) });
    if (cost !== undefined) spent.cost = (spent.cost ?? 0) + cost;
    spent.ms = clock.mono() - began;
    const wanted = noteCalls(plan, answer, round);
    if (wanted.length === 0) return { checked: checkSummary(answer, plan), answer: spent, calls };
    const results = await Promise.all(wanted.map(async ({ call, runs }) => ({
      call,
      ...await saveNote(held, request, call, runs, signal),
    })));
    calls.push(...wanted.flatMap(({ call, runs }) => runs ? [call] : []));
    prompt = withNotes(prompt, answer, results);
  }
}

async function saveNote(
  { desk, running }: Held,
  request: TurnRequest,
  call: Call,
  runs: boolean,
  signal: AbortSignal,
): Promise<{ ok: boolean; text: string }> {
  const args = argumentsOf(call.arguments);
  if (!runs || !(await request.callable()).has(call.tool)) return { ok: false, text: onlyNotes };
  if (args === undefined) {
    return { ok: false, text: "The arguments are not one whole JSON object: nothing was saved." };
  }
  return await desk.agent.tools.call({
    thread: desk.thread,
    turn: running.turn,
    key: `${desk.agent.name}/${desk.thread}#${running.turn}.${call.id}`,
    name: call.tool,
    arguments: args,
    signal,
  });
}

function added(one: Tokens, other: Tokens): Tokens {
  const sum: Tokens = { ...one };
  for (const key of ["input", "output", "cached", "written", "reasoning"] as const) {
    if (other[key] !== undefined) sum[key] = (sum[key] ?? 0) + other[key];
  }
  return sum;
}
