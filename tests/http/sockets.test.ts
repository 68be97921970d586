import assert from "node:assert/strict";
import { once } from "node:events";
import type { Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import type { Caller, News } from "../../src/turn/news.ts";
import { answer, makeRig, rawTurn, type Rig, serve, type Served, start } from "./rig.ts";

const MiB = 1024 * 1024;

/** All that comes on a socket until `until` is seen in it, or until it closes. */
async function read(socket: Socket, until?: string): Promise<string> {
  let text = "";
  return await new Promise((done) => {
    socket.on("data", (bytes: Uint8Array) => {
      text += new TextDecoder().decode(bytes);
      if (until !== undefined && text.includes(until)) done(text);
    });
    socket.on("close", () => done(text));
  });
}

for (const overrideGlobalObjects of [false, true]) {
  describe(`a caller behind a real socket (${overrideGlobalObjects ? "the server's own" : "the web's"} Response)`, () => {
    const globals = { Request: globalThis.Request, Response: globalThis.Response };
    let rig: Rig, served: Served, key: string;
    let caller: Caller | undefined;
    before(async () => {
      rig = makeRig();
      key = rig.agents.get("mia")!.key;
      served = await serve(rig.handler, { overrideGlobalObjects });
    });
    after(async () => {
      await served.close();
      for (const [name, value] of Object.entries(globals)) {
        Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
      }
    });

    /** A turn that has started and is told the rest by the test. */
    const started = (told: Caller) => {
      caller = told;
      told.tell(start);
    };
    const callerThere = async () => {
      while (!caller) await new Promise((done) => setTimeout(done, 1));
      return caller;
    };

    it("S1 that reads to the end has taken the answer; the connection serves the next request", async () => {
      caller = undefined;
      rig.script = started;
      const socket = await served.send(rawTurn(key, { stream: true }));
      await read(socket, "event: start");
      const told = await callerThere();
      told.tell(answer);
      assert.equal(await told.taken, true);
      caller = undefined;
      const whole = read(socket, "event: start");
      socket.write(rawTurn(key, { stream: true }));
      assert.match(await whole, /200 OK/);
      socket.destroy();
      assert.equal(await (await callerThere()).taken, false);
    });

    it("S1 B32 that leaves at `start` is gone, whatever is told after", async () => {
      caller = undefined;
      rig.script = started;
      const socket = await served.send(rawTurn(key, { stream: true }));
      await read(socket, "event: start");
      socket.destroy();
      const told = await callerThere();
      assert.equal(await told.taken, false);
      told.tell(answer);
    });

    it("S1 that leaves while it waits for one JSON answer is gone", async () => {
      caller = undefined;
      rig.script = started;
      const socket = await served.send(rawTurn(key, { stream: false }));
      const told = await callerThere();
      socket.destroy();
      assert.equal(await told.taken, false);
    });

    it("B31 that reads nothing while 5 MB stream costs the turn nothing, and is cut off when it is dropped", async () => {
      caller = undefined;
      rig.script = started;
      const socket = await served.send(rawTurn(key, { stream: true }));
      socket.pause();
      const told = await callerThere();
      const piece: News = { type: "text", text: "x".repeat(MiB / 4) };
      for (let i = 0; i < 20; i++) told.tell(piece);
      told.tell(answer);
      // The kernel's buffers hold a part, our queue the rest; the last byte is not pulled.
      assert.equal(
        await Promise.race([told.taken, new Promise((done) => setTimeout(done, 50, "waiting"))]),
        "waiting",
      );
      told.drop();
      assert.equal(await told.taken, false);
      const text = await read(socket.resume());
      assert.ok(!text.includes("event: answer"), "it was cut");
      assert.ok(!text.endsWith("0\r\n\r\n"), "and can see that it was");
    });

    it("B31 that resets at each event leaves the server answering the next, every time", async () => {
      for (const event of ["start", "text", "restart", "call", "result", "answer"]) {
        caller = undefined;
        rig.script = started;
        const socket = await served.send(rawTurn(key, { stream: true }));
        const told = await callerThere();
        const pieces: News[] = [
          { type: "text", text: "x" },
          { type: "restart" },
          { type: "call", id: "c", tool: "a__b", arguments: {} },
          { type: "result", id: "c", tool: "a__b", ok: true, ms: 1, chars: 1 },
        ];
        const upto = pieces.findIndex(({ type }) => type === event);
        for (const piece of pieces.slice(0, upto + 1)) told.tell(piece);
        if (event === "answer") told.tell(answer);
        await read(socket, `event: ${event}`);
        socket.resetAndDestroy();
        if (event !== "answer") assert.equal(await told.taken, false, event);
      }
      rig.script = (told) => told.tell(answer);
      const response = await fetch(`${served.url}/agents/mia/asp/turn`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}` },
        body: JSON.stringify({ thread: "telegram:42", message: { text: "Hi" } }),
      });
      assert.equal((await response.json()).text, "Hello.");
    });

    it("S3 recover hands over once the body was read to its end, and not to a reader that has left", async () => {
      rig.handed = 0;
      const recover = (body: string) =>
        `POST /agents/mia/_link/recover HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
      const waiting = rig.waiting;
      rig.waiting = [{
        id: "a",
        thread: "t",
        turn: "u",
        seq: 1,
        text: "x".repeat(16 * MiB),
        at: "",
        messages: [],
        why: "crashed",
      }];
      const left = await served.send(recover(""));
      left.pause();
      await new Promise((done) => setTimeout(done, 20));
      left.destroy();
      await once(left, "close");
      rig.waiting = waiting;
      const response = await fetch(`${served.url}/agents/mia/_link/recover`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}` },
        body: "{}",
      });
      assert.deepEqual(await response.json(), { answers: [], finishing: 0 });
      while (rig.handed === 0) await new Promise((done) => setTimeout(done, 1));
      assert.equal(rig.handed, 1);
      const kept = await fetch(`${served.url}/agents/mia/_link/recover`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}` },
        body: JSON.stringify({ keep: true, taken: ["a"] }),
      });
      await kept.text();
      assert.deepEqual(rig.recovers.at(-1), { keep: true, taken: ["a"] });
      await new Promise((done) => setTimeout(done, 10));
      assert.equal(rig.handed, 1);
    });
  });
}
