// Failures: what can go wrong, as a code and facts. One table says, for each code, the HTTP status, the exit
// code of the program and the sentence a person reads. Nobody branches on a sentence; everybody may on a code.

/** The facts of a failure: values that its sentence names and that a program may read. */
export type Facts = Record<string, unknown>;

interface Row {
  /** HTTP status. */
  status: number;
  /** Exit code of the program; 1 where left out. */
  exit?: number;
  /** One sentence: what is wrong and what to do. */
  say: (facts: Facts) => string;
}

const table = {
  // The doors
  unauthorized: {
    status: 401,
    say: () =>
      "No valid key was given; send `Authorization: Bearer KEY` with the agent's key (HOME/AGENT/key).",
  },
  forbidden: {
    status: 403,
    say: () => "This key is not that agent's; use the key of the agent that the path names.",
  },
  not_found: {
    status: 404,
    say: (f) => `There is no ${f.what ?? "such path"} here; see /openapi.json for what there is.`,
  },
  method_not_allowed: {
    status: 405,
    say: (f) => `This path does not take ${f.method}; see /openapi.json for what it takes.`,
  },
  not_json: { status: 400, say: (f) => `The body is not JSON (${f.why}); send one JSON object in UTF-8.` },
  invalid: {
    status: 400,
    exit: 2,
    say: (f) => String(f.say ?? "The input has not the right form; mend what `issues` lists."),
  },
  body_too_large: { status: 413, say: (f) => `The body is over ${f.bytesMax} bytes; send less.` },
  id_reused: {
    status: 409,
    say: (f) =>
      `The message id ${JSON.stringify(f.id)} was used in this thread with another text; use a new id.`,
  },
  draining: {
    status: 503,
    say: () => "This process is ending and takes no new turn; ask again in a moment.",
  },
  // Conversations and their store
  thread_invalid: { status: 400, exit: 2, say: (f) => `The thread is not valid: ${f.why}.` },
  agent_invalid: {
    status: 400,
    exit: 2,
    say: (f) =>
      `The agent name ${
        JSON.stringify(f.agent)
      } is not valid; use a-z, 0-9, _ and -, 63 characters at most, starting with a letter or digit.`,
  },
  exists: { status: 409, say: (f) => `${f.what ?? "It"} is already there; choose another name.` },
  seq_taken: { status: 409, say: (f) => `Number ${f.seq} is not the next one; the next is ${f.next}.` },
  lease_lost: {
    status: 409,
    exit: 3,
    say: () => "Another process took this conversation over; its turn goes on there.",
  },
  turn_running: {
    status: 409,
    exit: 3,
    say: (f) => `A turn runs in ${f.thread ?? "a conversation"}; wait for it or end it with asp/end.`,
  },
  event_invalid: { status: 400, say: (f) => `Not an event: ${f.why}.` },
  log_damaged: {
    status: 500,
    say: (f) =>
      `The conversation is damaged at ${f.where}: ${f.why}; everything before it is whole. Mend or remove that line by hand, or restore the file.`,
  },
  store_busy: {
    status: 503,
    exit: 75,
    say: (f) => `The store is held by another process (${f.what}); nothing was written, try again.`,
  },
  store_full: {
    status: 507,
    say: (f) => `The disk is full (${f.what}); nothing was kept of this, free some space and send it again.`,
  },
  store_failed: {
    status: 503,
    say: (f) => `The store could not be used (${f.why}); what was kept before is whole, try again.`,
  },
  store_unsafe: { status: 500, say: (f) => `The store does not do what a conversation needs: ${f.why}.` },
  link_refused: {
    status: 500,
    say: (f) =>
      `${f.path} is or lies behind a symbolic link, which is never followed; replace it by the real file or folder.`,
  },
  driver_unknown: {
    status: 500,
    exit: 2,
    say: (f) =>
      `There is no store driver ${
        JSON.stringify(f.driver)
      } here; install the package lnk-${f.driver} or choose another in [storage] conversations.`,
  },
  importing: { status: 503, exit: 75, say: () => "This agent is being imported; ask again in a moment." },
  agent_not_empty: {
    status: 409,
    exit: 1,
    say: () =>
      "The agent has conversations or files already; pass replace to put the imported state in their place.",
  },
  state_incomplete: {
    status: 400,
    say: (f) => `The state is not whole (${f.why}); nothing was changed, export it again.`,
  },
  // Settings
  settings_invalid: {
    status: 400,
    exit: 2,
    say: (f) => String(f.say ?? "The settings are not valid; mend what `issues` lists."),
  },
  settings_broken: {
    status: 500,
    say: (f) => `The agent's settings cannot be read (${f.why}); mend config.json or run configure again.`,
  },
  key_broken: {
    status: 500,
    say: (f) => `${f.path} holds no key; remove it to have a new one made.`,
  },
  // The turn
  no_model: { status: 502, say: (f) => `No model can be asked: ${f.why}.` },
  model_failed: { status: 502, say: (f) => `The model gave no answer: ${f.why}.` },
  model_refused: { status: 502, say: (f) => `The model refused: ${f.why}.` },
  model_timeout: { status: 504, say: (f) => `The model did not answer in time (${f.why}).` },
  prompt_too_long: {
    status: 413,
    say: (f) =>
      `The prompt is longer than the model takes (${
        f.window ? `window sent: ${f.window} tokens, from ${f.from}; ` : ""
      }its provider said: ${f.said ?? "nothing more"}); set a smaller [window] max.`,
  },
  recovery_exhausted: {
    status: 502,
    say: (f) =>
      `The turn crashed ${f.tries} times and is given up; send the message again to have another try.`,
  },
  turn_forked: {
    status: 409,
    say: () =>
      "The conversation was forked before this message was answered; send it again to have it answered.",
  },
  turn_exported: {
    status: 409,
    say: () =>
      "The conversation was exported before this message was answered; send it again to have it answered.",
  },
  // The program
  no_agent: {
    status: 404,
    say: (f) =>
      `There is no agent ${f.agent} at ${f.path}; make it with configure, chat send or serve, or say with --home where it is.`,
  },
  no_conversation: {
    status: 404,
    say: (f) =>
      `${f.agent} has no conversation ${JSON.stringify(f.thread)}; see \`chat list\` for those there are.`,
  },
  usage: { status: 400, exit: 2, say: (f) => String(f.say) },
  port_taken: {
    status: 500,
    exit: 75,
    say: (f) =>
      `Port ${f.port} is taken${
        f.agent ? ` (asked for by ${f.agent})` : ""
      }; choose another with --port or end the process that has it.`,
  },
  already_bound: { status: 409, say: () => "This unit is bound already; start another one." },
  internal: {
    status: 500,
    say: () => "Something went wrong inside; see the harness's own messages, and report it.",
  },
} satisfies Record<string, Row>;

/** Every code of a failure. */
export type FailureCode = keyof typeof table;

/** All of them. */
export const failureCodes = Object.keys(table) as FailureCode[];

/** One thing wrong with an input: where, and what. */
export interface Issue {
  path: string;
  message: string;
}

/** A failure: a code and facts, its sentence made from both. `facts.issues` lists what is wrong with an input. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly code: FailureCode;
  readonly facts: Facts;

  constructor(code: FailureCode, facts: Facts = {}, options?: { cause?: unknown }) {
    super((table[code] as Row).say(facts), options);
    this.code = code;
    this.facts = facts;
  }

  /** HTTP status of this failure. */
  get status(): number {
    return table[this.code].status;
  }

  /** Exit code of the program that ends by it. */
  get exit(): number {
    return exitOf(this.code);
  }

  /** The error form of the wire: `{ error: { code, message, issues? } }`. */
  form(): ErrorForm {
    const issues = this.facts.issues as Issue[] | undefined;
    return { error: { code: this.code, message: this.message, ...(issues ? { issues } : {}) } };
  }
}

/** What every error looks like on the wire. */
export interface ErrorForm {
  error: { code: string; message: string; issues?: Issue[] };
}

/** Whether `code` is one of ours. */
export function isFailureCode(code: string): code is FailureCode {
  return Object.hasOwn(table, code);
}

/** HTTP status of a code; 500 for one that is not ours. */
export function statusOf(code: string): number {
  return isFailureCode(code) ? table[code].status : 500;
}

/** Exit code of a code; 1 for one that is not ours. */
export function exitOf(code: string): number {
  return isFailureCode(code) ? (table[code] as Row).exit ?? 1 : 1;
}

/** Whatever was thrown, as a Failure: ours as it is, anything else as `internal` with its cause. */
export function asFailure(thrown: unknown): Failure {
  return thrown instanceof Failure ? thrown : new Failure("internal", {}, { cause: thrown });
}

/** Whether `thrown` is a Failure with one of these codes. */
export function failedBy<Code extends FailureCode>(
  thrown: unknown,
  ...codes: Code[]
): thrown is Failure & { readonly code: Code } {
  return thrown instanceof Failure && (codes as FailureCode[]).includes(thrown.code);
}
