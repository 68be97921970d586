import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "../../src/clock.ts";
import { Failure } from "../../src/errors.ts";
import { limits } from "../../src/limits.ts";
import type { Caller, News } from "../../src/turn/news.ts";
import { answer, type AskOptions, eventsOf, makeRig, start } from "./rig.ts";

const path = "/agents/mia/asp/turn";
const body = { thread: "telegram:42", message: { text: "Hi" } };
const stream = { accept: "text/event-stream" };
const failure: News & { type: "error" } = {
  type: "error",
  status: 502,
  turn: "turn_1",
  error: { code: "model_failed", message: "The model gave no answer: it is a test." },
};

/** Time that moves when it is told to. */
function handClock(): Clock & { pass(ms: number): Promise<void> } {
  let now = 0;
  const sleepers = new Set<{ at: number; wake(): void }>();
  return {
    now: () => now,
    mono: () => now,
    sleep: (ms, signal) =>
      new Promise((done) => {
        if (signal?.aborted) return done();
        const sleeper = { at: now + ms, wake: done };
        sleepers.add(sleeper);
        signal?.addEventListener("abort", () => (sleepers.delete(sleeper), done()), { once: true });
      }),
    async pass(ms) {
      const until = now + ms;
      for (;;) {
        await new Promise((done) => setTimeout(done));
        const due = [...sleepers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
        if (!due) break;
        now = Math.max(now, due.at);
        sleepers.delete(due);
        due.wake();
      }
      now = until;
      await new Promise((done) => setTimeout(done));
    },
  };
}

describe("asp/turn, one JSON answer", () => {
  const rig = makeRig();
  const post = (options: AskOptions = {}) => rig.ask("POST", path, { body, ...options });

  it("is 200 with the answer whole", async () => {
    const response = await post();
    assert.equal(response.status, 200);
    assert.match(response.headers.get("content-type")!, /^application\/json/);
    const { type: _, ...expected } = answer;
    assert.equal(await response.text(), JSON.stringify(expected));
  });

  it("S3 a repeated answer says so", async () => {
    rig.script = (caller) => caller.tell({ ...answer, repeated: true });
    assert.equal((await (await post()).json()).repeated, true);
  });

  it("is 202 for a message that joined", async () => {
    rig.script = (caller) => caller.tell({ type: "joined", thread: "telegram:42", seq: 3, turn: "turn_0" });
    const response = await post();
    assert.equal(response.status, 202);
    assert.deepEqual(await response.json(), { joined: true, thread: "telegram:42", seq: 3, turn: "turn_0" });
  });

  it("is the failure's status and error form, with `repeated` beside it where it is a repeat", async () => {
    rig.script = (caller) => {
      caller.tell(start);
      caller.tell(failure);
    };
    const response = await post();
    assert.equal(response.status, 502);
    assert.deepEqual(await response.json(), { error: failure.error });
    rig.script = (caller) => caller.tell({ ...failure, repeated: true });
    assert.deepEqual(await (await post()).json(), { error: failure.error, repeated: true });
  });

  it("is the failure's status where nothing was kept", async () => {
    rig.script = () => {
      throw new Failure("id_reused", { id: "m1" });
    };
    const response = await post();
    assert.equal(response.status, 409);
    assert.equal((await response.json()).error.code, "id_reused");
  });

  it("S1 the caller is taken once its reader pulled past the last byte, and gone where it leaves before", async () => {
    const taken = async (read: (response: Response) => Promise<unknown>) => {
      let caller!: Caller;
      rig.script = (told) => {
        caller = told;
        caller.tell(answer);
      };
      await read(await post());
      return await caller.taken;
    };
    assert.equal(await taken((response) => response.text()), true);
    assert.equal(await taken((response) => response.body!.cancel()), false);
    assert.equal(
      await taken(async (response) => {
        const reader = response.body!.getReader();
        await reader.read();
        await reader.cancel();
      }),
      false,
    );
  });

  it("S1 a caller whose request is aborted while it waits is gone, and the turn is not", async () => {
    const leaving = new AbortController();
    let caller!: Caller;
    rig.script = (told) => {
      caller = told;
      caller.tell(start);
    };
    const asked = post({ signal: leaving.signal });
    await new Promise((done) => setTimeout(done, 5));
    leaving.abort();
    assert.equal(await caller.taken, false);
    caller.tell(answer);
    await asked.catch(() => {});
  });

  it("past 240 s is 202 running, and the caller counts as gone", async () => {
    const clock = handClock();
    const slow = makeRig(["mia"], { clock });
    let caller!: Caller;
    slow.script = (told) => {
      caller = told;
      caller.tell(start);
    };
    const asked = slow.ask("POST", path, { body });
    await clock.pass(limits.turnReplyMs - 1);
    assert.equal(await Promise.race([asked, "waiting"]), "waiting");
    await clock.pass(1);
    const response = await asked;
    assert.equal(response.status, 202);
    assert.deepEqual(await response.json(), { running: true, turn: "turn_1", thread: "telegram:42", seq: 1 });
    assert.equal(await caller.taken, false);
    caller.tell(answer);
  });

  it("work that goes on is handed to the platform's waitUntil", async () => {
    const given: Promise<unknown>[] = [];
    const request = new Request(`http://127.0.0.1${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${rig.agents.get("mia")!.key}` },
      body: JSON.stringify(body),
    });
    rig.script = (caller) => caller.tell(answer);
    await rig.handler.fetch(request, { waitUntil: (work) => void given.push(work) });
    assert.equal(given.length, 1);
    await given[0];
  });
});

describe("asp/turn, a stream", () => {
  const rig = makeRig();
  const post = (options: AskOptions = {}) => rig.ask("POST", path, { body, headers: stream, ...options });

  it("has each piece of news as an event of its name, the answer last", async () => {
    const news: News[] = [
      start,
      { type: "text", text: "Hel\nlo\r\u2028" },
      { type: "restart" },
      { type: "call", id: "c2_0", tool: "memory__search", arguments: { query: "x" } },
      { type: "result", id: "c2_0", tool: "memory__search", ok: true, ms: 3, chars: 9, cut: 40000 },
      { ...start, seq: 5 },
      { type: "text", text: "Hello." },
      answer,
    ];
    rig.script = (caller) => news.forEach((one) => caller.tell(one));
    const response = await post();
    assert.equal(response.status, 200);
    assert.match(response.headers.get("content-type")!, /^text\/event-stream/);
    const events = eventsOf(await response.text());
    assert.deepEqual(events, news.map(({ type, ...data }) => ({ event: type, data })));
  });

  it("what fails before anything was streamed is a status and JSON, a repeated failure too", async () => {
    rig.script = (caller) => caller.tell({ ...failure, repeated: true });
    const repeated = await post();
    assert.equal(repeated.status, 502);
    assert.match(repeated.headers.get("content-type")!, /^application\/json/);
    assert.deepEqual(await repeated.json(), { error: failure.error, repeated: true });
    rig.script = () => {
      throw new Failure("store_full", { what: "the disk" });
    };
    assert.equal((await post()).status, 507);
  });

  it("a failure after the start is its last event, with the turn beside the error form", async () => {
    rig.script = (caller) => {
      caller.tell(start);
      caller.tell(failure);
      caller.tell({ type: "text", text: "never" });
    };
    const events = eventsOf(await (await post()).text());
    assert.deepEqual(events.map(({ event }) => event), ["start", "error"]);
    assert.deepEqual(events[1]!.data, { error: failure.error, turn: "turn_1" });
  });

  it("joined is the only event of a message that joined", async () => {
    rig.script = (caller) => caller.tell({ type: "joined", thread: "telegram:42", seq: 3 });
    const events = eventsOf(await (await post()).text());
    assert.deepEqual(events, [{ event: "joined", data: { thread: "telegram:42", seq: 3 } }]);
  });

  it("says keep-alive after each 15 s of silence, and not before", async () => {
    const clock = handClock();
    const slow = makeRig(["mia"], { clock });
    let caller!: Caller;
    slow.script = (told) => {
      caller = told;
      caller.tell(start);
    };
    const response = await slow.ask("POST", path, { body, headers: stream });
    await clock.pass(limits.keepAliveMs - 1);
    caller.tell({ type: "text", text: "a" });
    await clock.pass(limits.keepAliveMs - 1);
    caller.tell({ type: "text", text: "b" });
    await clock.pass(2 * limits.keepAliveMs);
    caller.tell(answer);
    const names = eventsOf(await response.text()).map(({ event }) => event);
    assert.deepEqual(names, ["start", "text", "text", "comment", "comment", "answer"]);
  });

  it("S1 B31 telling never waits and never throws: to a reader that never reads, one that leaves, one that is dropped", async () => {
    const outcome = async (then: (response: Response, caller: Caller) => Promise<unknown> | void) => {
      let caller!: Caller;
      rig.script = (told) => {
        caller = told;
        caller.tell(start);
      };
      const response = await post();
      await then(response, caller);
      for (let i = 0; i < 100; i++) caller.tell({ type: "text", text: "more" });
      caller.tell(answer);
      const taken = await Promise.race([caller.taken, new Promise((done) => setTimeout(done, 5, "waiting"))]);
      caller.drop();
      return taken;
    };
    assert.equal(await outcome(() => {}), "waiting");
    assert.equal(await outcome((response) => response.body!.cancel()), false);
    assert.equal(await outcome((_, caller) => caller.drop()), false);
  });

  it("B31 past 8 MiB that nobody reads the caller is dropped, and its stream ends in an error, not in silence", async () => {
    let caller!: Caller;
    rig.script = (told) => {
      caller = told;
      caller.tell(start);
    };
    const response = await post();
    const piece: News = { type: "text", text: "x".repeat(1024 * 1024) };
    for (let i = 0; i < 7; i++) caller.tell(piece);
    assert.equal(await Promise.race([caller.taken, "waiting"]), "waiting");
    caller.tell(piece);
    caller.tell(piece);
    assert.equal(await caller.taken, false);
    await assert.rejects(response.text());
  });
});

describe("asp/end", () => {
  it("asks the turns, and says whether one was running", async () => {
    const rig = makeRig();
    const response = await rig.ask("POST", "/agents/mia/asp/end", { body: { thread: "telegram:42" } });
    assert.deepEqual(await response.json(), { ended: true });
    assert.deepEqual(rig.ended, ["telegram:42"]);
    assert.equal((await rig.ask("POST", "/agents/mia/asp/end", { body: {} })).status, 400);
  });
});
