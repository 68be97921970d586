import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { eventsOf, makeRig, type Rig, serve, type Served } from "./rig.ts";

const base = "/agents/mia/asp/conversations";
const line = (seq: number) =>
  JSON.stringify({ seq, at: "2026-12-01T09:00:00.000Z", type: "message", text: `line ${seq}` });
const lines = (count: number) => Array.from({ length: count }, (_, i) => line(i + 1));

describe("conversations", () => {
  it("are listed in pages, each with its state, a damaged one too (B05)", async () => {
    const rig = makeRig();
    rig.logs.set("a:1", lines(2)).set("b", lines(1)).set("c:3", [line(1), "damaged"]);
    rig.open = [{
      thread: "a:1",
      marks: { untaken: [], done: [] },
      held: {
        tag: "t",
        state: "live",
        lease: { key: "k", turn: "t", taken: 0, deadline: 1, holder: { host: "h", process: 1, start: "s" } },
      },
    }];
    const all = await (await rig.ask("GET", base)).json();
    const updated = "2026-12-01T09:00:00.000Z";
    assert.deepEqual(all.conversations, [
      { thread: "a:1", connection: "a", events: 2, storage: "log", updated, running: true },
      { thread: "b", events: 1, storage: "log", updated, running: false },
      {
        thread: "c:3",
        connection: "c",
        events: 2,
        storage: "log",
        updated,
        running: false,
        damage: "line 2: no JSON",
      },
    ]);
    const threads = async (query: string) =>
      (await (await rig.ask("GET", `${base}?${query}`)).json()).conversations.map((one: { thread: string }) =>
        one.thread
      );
    assert.deepEqual(await threads("limit=2"), ["a:1", "b"]);
    assert.deepEqual(await threads("limit=2&after=b"), ["c:3"]);
    assert.deepEqual(await threads("after=zzz"), []);
  });
});

describe("a conversation's events", () => {
  const rig = makeRig();
  rig.logs.set("a:1", lines(5));
  rig.logs.set("torn", [line(1), line(2), "damaged"]);
  const read = async (query: string, thread = "a%3A1") => {
    const response = await rig.ask("GET", `${base}/${thread}/events${query}`);
    assert.equal(response.status, 200);
    assert.match(response.headers.get("content-type")!, /^application\/x-ndjson/);
    return (await response.text()).split("\n").filter((text) => text !== "");
  };

  it("are the very lines, from a number on, at most so many, or the last", async () => {
    assert.deepEqual(await read(""), lines(5));
    assert.deepEqual(await read("?from=3"), lines(5).slice(2));
    assert.deepEqual(await read("?from=2&limit=2"), lines(5).slice(1, 3));
    assert.deepEqual(await read("?last=2"), lines(5).slice(3));
    assert.deepEqual(await read("?last=99"), lines(5));
    assert.deepEqual(await read("?from=6"), []);
  });

  it("C2 damage met midway is told in a last line, after all that is whole; at the start it is a status", async () => {
    const got = await read("", "torn");
    assert.deepEqual(got.slice(0, 2), [line(1), line(2)]);
    assert.equal(JSON.parse(got[2]!).error.code, "log_damaged");
    assert.equal(got.length, 3);
    assert.equal((await rig.ask("GET", `${base}/torn/events?from=3`)).status, 500);
  });

  it("a thousand lines come whole, and a reader that leaves ends the reading", async () => {
    rig.logs.set("long", lines(3000));
    assert.deepEqual(await read("", "long"), lines(3000));
    const response = await rig.ask("GET", `${base}/long/events`);
    const reader = response.body!.getReader();
    await reader.read();
    await reader.cancel();
  });
});

describe("a conversation followed", () => {
  let rig: Rig, served: Served;
  before(async () => {
    rig = makeRig();
    served = await serve(rig.handler);
  });
  after(() => served.close());

  /** The first `count` events of a followed conversation. */
  async function follow(
    query: string,
    count: number,
    headers: Record<string, string> = {},
    meanwhile = () => {},
  ) {
    const leaving = new AbortController();
    const response = await fetch(`${served.url}${base}/a%3A1/events${query}`, {
      headers: {
        authorization: `Bearer ${rig.agents.get("mia")!.key}`,
        accept: "text/event-stream",
        ...headers,
      },
      signal: leaving.signal,
    });
    assert.match(response.headers.get("content-type")!, /^text\/event-stream/);
    let text = "";
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    while (eventsOf(text).length < count) {
      const { done, value } = await reader.read();
      if (done) break;
      text += value;
      meanwhile();
      meanwhile = () => {};
    }
    leaving.abort();
    await reader.cancel().catch(() => {});
    return eventsOf(text);
  }

  it("has each event as it comes, its number as the id", async () => {
    rig.logs.set("a:1", lines(2));
    const events = await follow("", 3, {}, () => void rig.logs.get("a:1")!.push(line(3)));
    assert.deepEqual(
      events,
      [1, 2, 3].map((seq) => ({ event: "event", id: String(seq), data: JSON.parse(line(seq)) })),
    );
  });

  it("goes on after Last-Event-ID, or from where it is told to", async () => {
    rig.logs.set("a:1", lines(5));
    assert.deepEqual((await follow("?from=1", 2, { "last-event-id": "3" })).map(({ id }) => id), ["4", "5"]);
    assert.deepEqual((await follow("?last=1", 1)).map(({ id }) => id), ["5"]);
    assert.deepEqual((await follow("?from=2&limit=2", 9)).map(({ id }) => id), ["2", "3"]);
  });

  it("A4 is let go, whole, when the process begins to end", async () => {
    rig.logs.set("a:1", lines(1));
    const events = await follow("", 99, {}, () => void rig.handler.drain());
    assert.deepEqual(events.map(({ id }) => id), ["1"]);
  });
});
