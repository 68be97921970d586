import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import { ask, homeOf, isDeno, run, serve, start, turn } from "./program.ts";

const lines = (home: string, folder: string) =>
  readFileSync(join(home, "mia/files/chats", folder, "events.jsonl"), "utf8").trim().split("\n").map((line) =>
    JSON.parse(line)
  );

describe("serve", () => {
  it("A1 serves one agent with a key of its own, and says where in one line on stdout", async () => {
    const home = homeOf("mia");
    const serving = await serve("mia", [], { home });
    const { url, key, pid, out, err } = serving;
    assert.deepEqual(JSON.parse(out()), { agent: "mia", url, pid });
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/agents\/mia$/);
    assert.match(key, /^[0-9a-f]{64}$/);
    assert.equal(statSync(join(home, "mia/key")).mode & 0o777, 0o600);
    assert.equal((await ask(url, key)).body.agent, "mia");
    assert.equal((await ask(url)).status, 401);
    assert.match((await turn(serving, "a:1", "hi")).body.text, /^You said: hi/);
    serving.kill("SIGTERM");
    assert.equal(await serving.ended, 0);
    assert.match(err(), /^SIGTERM: ending\. .* 25 s at most/m);
    assert.equal(out().trim().split("\n").length, 1);
  });

  it("says the same in words where no program asks", async () => {
    const home = homeOf("mia");
    const { pid, kill, says, out, ended } = start(["serve", "mia"], { home });
    await says("\n");
    assert.match(
      out(),
      new RegExp(`^mia is served at http://127\\.0\\.0\\.1:\\d+/agents/mia \\(pid ${pid}\\)\n$`),
    );
    kill("SIGINT");
    assert.equal(await ended, 0);
  });

  it("B82 a taken port is told with its number and who asked for it, and has an exit code of its own", async () => {
    const home = homeOf("mia");
    const other = createServer().listen(0, "127.0.0.1");
    await new Promise((done) => other.once("listening", done));
    const { port } = other.address() as AddressInfo;
    const { code, out, err } = await run(["serve", "mia", "--json", "--port", String(port)], { home });
    other.close();
    assert.deepEqual([code, out], [75, ""]);
    assert.match(err, new RegExp(`^lnk-link-harness: Port ${port} is taken \\(asked for by mia\\)`));
  });

  it("B82 killed and started again at once on the same port, 20 times, it is served each time", async () => {
    const home = homeOf("mia");
    let port = 0;
    for (let times = 1; times <= 20; times++) {
      const serving = await serve("mia", ["--port", String(port)], { home });
      port = serving.port;
      assert.equal((await turn(serving, "a:1", `hi ${times}`)).status, 200);
      serving.kill("SIGKILL");
      await serving.ended;
    }
    const events = lines(home, "a-1");
    assert.deepEqual(events.map(({ seq }) => seq), Array.from({ length: 40 }, (_, at) => at + 1));
  });

  it("D9 two processes serve one agent at once: every message of one conversation is kept and answered once", async () => {
    const home = homeOf("mia");
    const both = await Promise.all([serve("mia", [], { home }), serve("mia", [], { home })]);
    const asked = await Promise.all(
      Array.from({ length: 12 }, (_, at) => turn(both[at % 2]!, "a:1", `text ${at}`, `m${at}`)),
    );
    for (const { status, body } of asked) {
      assert.ok(status === 200 || (status === 202 && body.joined), JSON.stringify(body));
    }
    // Whoever joined is answered by the turn it joined, or by one after.
    const settled = () => {
      const events = lines(home, "a-1");
      return Math.max(0, ...events.map(({ upto }) => upto ?? 0)) >=
        events.findLast(({ type }) => type === "message").seq;
    };
    while (!settled()) await new Promise((next) => setTimeout(next, 20));
    const events = lines(home, "a-1");
    assert.deepEqual(events.map(({ seq }) => seq), events.map((_, at) => at + 1));
    assert.equal(events.filter(({ type }) => type === "message").length, 12);
    for (const { kill, ended } of both) {
      kill("SIGTERM");
      assert.equal(await ended, 0);
    }
  });

  it("A5 with its agent asleep the process ends, exit 0: when it is told to, and when it is not used", async () => {
    const home = homeOf("mia");
    const told = await serve("mia", [], { home });
    const slept = await ask(`${told.url}/_link/sleep`, told.key, {});
    assert.deepEqual(slept.body, { state: "asleep", awake: 0 });
    assert.equal(await told.ended, 0);

    const unused = await serve("mia", ["--sleep-after", "300ms"], { home });
    assert.equal(await unused.ended, 0);
    assert.match(unused.err(), /Every agent is asleep/);
  });

  it(
    "keeps to Deno's smallest set of permissions",
    { skip: isDeno ? false : "Node has no such permissions" },
    async () => {
      const home = homeOf("mia");
      const allow = ["--allow-net", `--allow-read=${home}`, `--allow-write=${home}`, "--allow-env=LNK_*"];
      const serving = await serve("mia", ["--home", home], { home, allow });
      assert.equal((await turn(serving, "a:1", "hi")).status, 200);
      serving.kill("SIGTERM");
      assert.equal(await serving.ended, 0);
    },
  );
});

describe("start", () => {
  it("serves an agent, shows its first answer, and says how to go on", async () => {
    const home = homeOf("mia");
    const { code, out, err } = await run(["start", "--once", "--message", "Anybody there?"], { home });
    assert.equal(code, 0, err);
    assert.match(
      out,
      /^mia is served at http[\s\S]*> Anybody there\?\n\nYou said: Anybody there\?[\s\S]*demo\/echo/,
    );
    const log = /^ +log +(.*)/m.exec(out)![1]!;
    assert.match(readFileSync(log, "utf8"), /Anybody there\?/);
    assert.match(readFileSync(/^ +key +(.*)/m.exec(out)![1]!, "utf8"), /^[0-9a-f]{64}\n$/);
    assert.ok(out.includes("curl -N http"));
  });

  it("serves on after the first answer, and its curl line's request is answered", async () => {
    const home = homeOf("mia");
    const { kill, says, out, ended } = start(["start"], { home });
    await says("Serving until Ctrl-C.");
    const url = /curl -N (\S+)/.exec(out())![1]!;
    const body = JSON.parse(/-d '(.*)'/.exec(out())![1]!);
    const answer = await ask(url, readFileSync(join(home, "mia/key"), "utf8").trim(), body);
    assert.match(answer.body.text, /You said: And what can you do/);
    kill("SIGINT");
    assert.equal(await ended, 0);
  });

  it("ends with exit 1 and the model's own reason where the first answer fails", async () => {
    const { code, err } = await run(["start"], {
      home: homeOf("leo"),
      env: { LNK_MODEL_URL: "http://127.0.0.1:9/v1" },
    });
    assert.equal(code, 1);
    assert.match(err, /No model can be asked/);
  });
});
