import assert from "node:assert/strict";
import { connect } from "node:net";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ask, newHome, serve, slowModel, turn } from "./program.ts";

/** A connection of its own: what it gets, once all of `text` has come or the other side has closed it. */
function raw(port: number) {
  const socket = connect(port, "127.0.0.1");
  let got = "", over = false;
  let changed = () => {};
  socket.setEncoding("utf8").on("data", (chunk) => {
    got += chunk;
    changed();
  });
  socket.on("close", () => {
    over = true;
    changed();
  });
  socket.on("error", () => {});
  return {
    connected: new Promise<void>((done) => socket.once("connect", () => done())),
    health: () => socket.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"),
    turn(key: string, thread: string) {
      const body = JSON.stringify({ thread, message: { text: "hi" } });
      const head = [
        "POST /agents/mia/asp/turn HTTP/1.1",
        "host: x",
        `authorization: Bearer ${key}`,
        `content-length: ${body.length}`,
      ];
      socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
    },
    async reads(text: string) {
      while (!got.includes(text) && !over) await new Promise<void>((next) => changed = next);
      return got;
    },
    end: () => socket.end(),
  };
}

describe("drain", () => {
  it("A4 B26 on SIGTERM it refuses new connections, answers what comes on those it has, ends its turns, then ends", async () => {
    const home = newHome(), model = await slowModel();
    const serving = await serve("mia", [], { home, env: model.env });
    const { port, key, kill, says, ended } = serving;
    const idle = raw(port), asking = raw(port);
    await Promise.all([idle.connected, asking.connected]);
    asking.turn(key, "a:1");
    await model.asked(1);

    kill("SIGTERM");
    await says("25 s at most");
    const late = raw(port);
    assert.equal(await late.reads("never"), "");
    await sleep(2000);
    idle.health();
    assert.match(await idle.reads("draining"), /^HTTP\/1\.1 503/);
    idle.turn(key, "a:2");
    await model.asked(2);
    model.answer();
    assert.match(await asking.reads('"stop":"end"'), /HTTP\/1\.1 200 [\s\S]*"text":"said \d"/);
    assert.match(await idle.reads('"stop":"end"'), /"text":"said \d"/);
    idle.end();
    asking.end();
    assert.equal(await ended, 0);
  });

  it("S2 B25 B26 past the deadline an unfinished turn is left whole; the next process finishes it and hands its answer over once", async () => {
    const home = newHome(), model = await slowModel();
    const first = await serve("mia", ["--drain", "300ms"], { home, env: model.env });
    const asked = turn(first, "a:1", "slow", "m1").catch(() => "cut");
    await model.asked(1);
    first.kill("SIGTERM");
    assert.equal(await first.ended, 0);
    assert.match(first.err(), /0\.3 s at most/);
    assert.match(first.err(), /1 turn is left unfinished/);
    assert.equal(await asked, "cut");

    const second = await serve("mia", [], { home, env: model.env });
    await second.says("1 crashed turn is being finished.");
    await model.asked(2);
    model.answer();
    const recover = async () => (await ask(`${second.url}/_link/recover`, second.key, {})).body;
    let found = await recover();
    while (found.answers.length === 0) found = await sleep(20).then(recover);
    assert.deepEqual(
      found.answers.map(({ messages, why }: { messages: string[]; why: string }) => [messages, why]),
      [
        [["m1"], "crashed"],
      ],
    );
    assert.deepEqual((await recover()).answers, []);
    second.kill("SIGTERM");
    assert.equal(await second.ended, 0);
  });

  it("a second signal ends it at once, exit 1; SIGINT and SIGHUP drain as SIGTERM does", async () => {
    const model = await slowModel();
    for (const signal of ["SIGINT", "SIGHUP"] as const) {
      const home = newHome();
      const serving = await serve("mia", [], { home, env: model.env });
      const { kill, says, err, ended } = serving;
      const asked = turn(serving, `a:${signal}`, "slow").catch(() => "cut");
      await model.asked(signal === "SIGINT" ? 1 : 2);
      kill(signal);
      await says(`${signal}: ending.`);
      await sleep(600);
      kill("SIGTERM");
      assert.equal(await ended, 1);
      assert.match(err(), /1 turn is left unfinished/);
      assert.equal(await asked, "cut");
    }
  });

  it("a signal that arrives twice at once, from a terminal and from whoever started it, is one", async () => {
    const { kill, ended } = await serve("mia", [], { home: newHome() });
    kill("SIGINT");
    kill("SIGINT");
    assert.equal(await ended, 0);
  });

  it("S1 kill -9 in the middle of a turn: the message is kept, and answered once by the next process", async () => {
    const home = newHome(), model = await slowModel();
    const first = await serve("mia", [], { home, env: model.env });
    const asked = turn(first, "a:1", "slow", "m1").catch(() => "cut");
    await model.asked(1);
    first.kill("SIGKILL");
    assert.equal(await first.ended, "SIGKILL");
    assert.equal(await asked, "cut");

    const second = await serve("mia", [], { home, env: model.env });
    await model.asked(2);
    model.answer();
    // Sent again with its id it is answered by the turn that finishes it, and asked no model of its own.
    const again = await turn(second, "a:1", "slow", "m1");
    assert.equal(again.status, 200);
    assert.deepEqual(again.body.messages, ["m1"]);
    second.kill("SIGTERM");
    assert.equal(await second.ended, 0);
  });
});
