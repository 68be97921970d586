// Which session serves which call, how long it lives, and what becomes of one that its server has forgotten.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Behaviour, Exchange } from "../doubles/mcp.ts";
import { double, rig, until } from "./rig.ts";

const minute = 60_000;

/** A clock that stands still until it is set; its alarms ring as it passes them. */
function stoppedClock() {
  let ms = 0;
  const alarms = new Map<() => void, number>();
  return {
    alarms,
    nextRings: () => Math.min(...alarms.values()),
    set(next: number) {
      ms = next;
      for (const [ring, at] of [...alarms]) {
        if (at > ms) continue;
        alarms.delete(ring);
        ring();
      }
    },
    clock: {
      mono: () => ms,
      now: () => ms,
      sleep: (_: number, signal?: AbortSignal) =>
        new Promise<void>((done) => signal?.addEventListener("abort", () => done())),
    },
    alarm: (after: number, ring: () => void) => {
      alarms.set(ring, ms + after);
      return () => void alarms.delete(ring);
    },
  };
}

const sessionsOf = (server: { asked: { message?: { method?: string }; session?: string }[] }) =>
  server.asked.filter(({ message }) => message?.method === "tools/call").map(({ session }) => session);

describe("sessions", () => {
  it("T7 the session of any other tool ends with its turn, and no two turns share one", async () => {
    const server = await double();
    const { names, call, box } = rig({ LNK_TOOL_X: server.url });
    await names();
    await Promise.all([call("x__note"), call("x__note", {}, { turn: "turn_2" })]);
    await call("x__note");
    const used = sessionsOf(server);
    assert.equal(new Set(used).size, 2);
    assert.equal(used[2], used[0]);
    await box.turnEnded("turn_1");
    assert.deepEqual(server.ended, [used[0]]);
    await call("x__note", {}, { turn: "turn_2" });
    assert.equal(sessionsOf(server)[3], used[1], "the other turn goes on in its own");
    await box.turnEnded("turn_2");
    assert.equal(server.sessions.size, 0);
    assert.equal(server.count("DELETE"), 2);
  });

  it("T7 the first turn's calls use the sessions that listing opened; a later turn opens one only when it calls", async () => {
    const server = await double();
    const { names, call, box } = rig({ LNK_TOOL_X: server.url });
    await names();
    await call("x__note");
    await box.turnEnded("turn_1");
    assert.equal(server.count("initialize"), 1);
    await names();
    await box.turnEnded("turn_2");
    assert.equal(server.count("initialize"), 1);
    await call("x__note", {}, { turn: "turn_3" });
    assert.equal(server.count("initialize"), 2);
  });

  it("T7 one kept session serves all conversations; each call says its thread and its key", async () => {
    const server = await double();
    const { names, call, box } = rig({ LNK_MEMORY: server.url });
    await names();
    for (const turn of ["turn_1", "turn_2", "turn_3"]) {
      await call("memory__note", {}, { turn, key: `mia/t:1#${turn}` });
      await box.turnEnded(turn);
    }
    assert.equal(server.count("initialize"), 1);
    assert.equal(server.count("DELETE"), 0);
    assert.deepEqual(
      server.calls.map(({ params }) => [params?._meta?.["link/thread"], params?._meta?.["link/key"]]),
      [
        ["t:1", "mia/t:1#turn_1"],
        ["t:1", "mia/t:1#turn_2"],
        ["t:1", "mia/t:1#turn_3"],
      ],
    );
    await box.close();
    assert.equal(server.count("DELETE"), 1);
    await call("memory__note");
    assert.equal(server.count("initialize"), 2, "an agent that slept opens its tools again");
  });

  it("T7 a kept session ends once none has used it for 10 minutes, by one alarm and no polling", async () => {
    const server = await double();
    const time = stoppedClock();
    const { names, call } = rig({ LNK_FILE: server.url }, time);
    await names();
    time.set(4 * minute);
    await call("file__note");
    assert.equal(time.alarms.size, 1);
    assert.equal(time.nextRings(), 14 * minute);
    time.set(14 * minute);
    await until(() => server.sessions.size === 0);
    assert.equal(server.count("DELETE"), 1);
    assert.equal(time.alarms.size, 0);
  });

  it("T7 a kept session in steady use ends an hour after its start, not under a call that runs", async () => {
    let answer = () => {};
    const server = await double({
      on: {
        "tools/call": (x) => {
          if ((x.message!.params!.arguments as { wait?: boolean }).wait) {
            answer = () => x.result({ content: [] });
          } else return "default";
        },
      },
    });
    const time = stoppedClock();
    const { names, call } = rig({ LNK_RUN: server.url }, time);
    await names();
    for (let minutes = 9; minutes < 60; minutes += 9) {
      time.set(minutes * minute);
      await call("run__note");
    }
    assert.equal(server.count("initialize"), 1);
    const running = call("run__note", { wait: true });
    await until(() => server.calls.length === 7);
    time.set(60 * minute);
    await call("run__note");
    assert.equal(server.count("initialize"), 2);
    assert.equal(server.count("DELETE"), 0);
    answer();
    assert.equal((await running).ok, true);
    await until(() => server.count("DELETE") === 1);
    assert.equal(server.sessions.size, 1);
  });

  it("B61 a forgotten session is opened anew once, and the refused call made once in it", async () => {
    const ways: Record<string, Behaviour> = {
      "404 in JSON-RPC": (x) => x.error(-32001, "Session not found", 404),
      "404 as text": (x) => x.status(404, "no such session"),
      "404 as HTML": (x) => x.status(404, "<html><h1>404</h1></html>", "text/html"),
      "404 with nothing": (x) => x.status(404),
      "400 in JSON-RPC": (x) => x.error(-32000, "Bad Request: Server not initialized", 400),
      "400 as text": (x) => x.status(400, "bad session"),
    };
    for (const [way, refuse] of Object.entries(ways)) {
      for (const variable of ["LNK_MEMORY", "LNK_TOOL_X"]) {
        const server = await double();
        let ran = 0;
        server.script.on = {
          "tools/call": (x) => {
            if (!server.sessions.has(x.session!)) return refuse(x);
            ran++;
            return "default";
          },
        };
        const { names, call } = rig({ [variable]: server.url });
        const [name] = await names();
        server.restart();
        const results = await Promise.all([call(name!), call(name!), call(name!)]);
        assert.ok(results.every(({ ok }) => ok), way);
        assert.equal(ran, 3, way);
        assert.equal(server.count("initialize"), 2, `${way}: one new session for three calls`);
      }
    }
  });

  it("B61 a server that forgets at once is tried once more and no further, and the model is told that nothing was run", async () => {
    const server = await double({ on: { "tools/call": (x) => x.error(-32001, "Session not found", 404) } });
    const { names, call } = rig({ LNK_TOOL_X: server.url });
    await names();
    const { ok, text } = await call("x__note");
    assert.equal(ok, false);
    assert.match(text, /HTTP 404.*The call was not made\.$/);
    assert.equal(server.calls.length, 2);
  });

  it("B61 a refusal that is not about the session is told, and nothing is sent again", async () => {
    for (
      const refuse of [
        (x: Exchange) => x.error(-32602, "Invalid params", 400),
        (x: Exchange) => x.status(413, "too large"),
        (x: Exchange) => x.status(429, "slow down"),
      ]
    ) {
      const server = await double({ on: { "tools/call": refuse } });
      const { names, call } = rig({ LNK_MEMORY: server.url });
      await names();
      const { ok, text } = await call("memory__note");
      assert.equal(ok, false);
      assert.match(text, /HTTP 4.*The call was not made\.$/);
      assert.equal(server.calls.length, 1);
      assert.equal(server.count("initialize"), 1);
    }
  });

  it("B61 a restart in the middle of a call: it is told as unknown and not made again, the next one goes to a new session", async () => {
    const server = await double();
    server.script.on = {
      "tools/call": (x) => {
        if (server.calls.length > 1) return "default";
        server.restart();
        x.drop();
      },
    };
    const { names, call } = rig({ LNK_MEMORY: server.url });
    await names();
    const first = await call("memory__note");
    assert.equal(first.ok, false);
    assert.match(first.text, /outcome is unknown/);
    assert.equal(server.calls.length, 1);
    assert.deepEqual(
      await call("memory__note"),
      { ok: true, text: "call 3" },
      "refused in the old one, made in the new one",
    );
  });

  it("T9 a start that fails under a call is told as unavailable, and the next call tries again", async () => {
    const server = await double();
    const { names, call, box } = rig({ LNK_TOOL_X: server.url });
    await names();
    await box.turnEnded("turn_1");
    server.script.on = {
      initialize: (x) => x.status(503, "starting"),
      "server/discover": (x) => x.status(503),
    };
    assert.match(
      (await call("x__note")).text,
      /^The tool x is unavailable: it answered HTTP 503.*The call was not made\.$/,
    );
    delete server.script.on;
    assert.equal((await call("x__note")).ok, true);
  });

  it("a session that refuses to end, or never says whether it did, holds nobody", async () => {
    for (
      const end of [(x: Exchange) => x.status(405), (x: Exchange) => x.status(500), (x: Exchange) => x.drop()]
    ) {
      const server = await double({ on: { DELETE: end } });
      const { names, call, box } = rig({ LNK_TOOL_X: server.url });
      await names();
      await call("x__note");
      await box.turnEnded("turn_1");
      assert.equal(server.count("DELETE"), 1);
    }
  });
});
