// The turns of a process, as the doors see them. (Being written.)
import type { Agent } from "../agent/agent.ts";
import type { Caller, HandedOver, Say } from "./news.ts";

export interface Turns {
  /**
   * Takes a message. Resolves as soon as its fate is decided (kept and told to `caller` by `start` or `joined`, or repeated);
   * throws a Failure where nothing was kept. Everything after comes to `caller`. `work` is what goes on: hand it to `waitUntil`.
   */
  say(agent: Agent, say: Say, caller: Caller): Promise<{ work: Promise<void> }>;
  /** Asks the running turn to end, wherever it runs. */
  end(agent: Agent, thread: string): Promise<boolean>;
  /** What waits, and how many crashed turns are being finished; `handed` is called once the reply was taken whole. */
  recover(
    agent: Agent,
    request: { keep?: boolean; taken?: string[] },
  ): Promise<{ answers: HandedOver[]; finishing: number; handed(): Promise<void> }>;
  /** Turns of this agent that run in this process. */
  running(agent: string): number;
  /** Takes no new turn; resolves when all have ended, or at the deadline, when the rest are left to recovery. */
  drain(deadlineMs: number): Promise<{ left: number }>;
}
