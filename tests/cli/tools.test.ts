// Tools as the program has them: a whole turn that calls one, narrowing, and `tools list`.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { double } from "../tools/rig.ts";
import { ask, homeOf, run, serve } from "./program.ts";

const tool = (name: string) => ({ name, description: `Does ${name}.`, inputSchema: { type: "object" } });

describe("tools of the program", () => {
  it("T1 T7 a served agent offers its tools, calls one in a turn, and ends its session with the turn", async () => {
    const server = await double({ tools: [tool("note"), tool("other")] });
    const home = homeOf("mia");
    const { url, key } = await serve("mia", [], { home, env: { LNK_TOOL_X: server.url } });
    const turn = (text: string, tools?: string[]) =>
      ask(`${url}/asp/turn`, key, { thread: "a:1", message: { text }, ...(tools ? { tools } : {}) });
    const first = await turn('use x__note {"a":1}');
    assert.equal(first.status, 200);
    assert.match(first.body.text, /x__note gave:\ncall 1/);
    assert.equal(first.body.calls, 1);
    const { arguments: given, _meta } = server.calls[0]!.params!;
    assert.deepEqual([given, _meta!["link/thread"]], [{ a: 1 }, "a:1"]);
    assert.match(String(_meta!["link/key"]), /^mia\/a:1#c\d+_0$/);
    // The session ends after the turn's answer is given: a turn that calls nothing is the next thing asked.
    const asked = server.count("initialize");
    await turn("hello");
    assert.equal(server.count("initialize"), asked, "a turn that calls no tool opens no session");
    // T5: narrowed for good, and a call to what is not offered is answered as one there isn't.
    const narrowed = await turn("use x__note {}", ["x__other"]);
    assert.doesNotMatch(narrowed.body.text, /gave:/);
    assert.match((await turn("use x__other {}")).body.text, /x__other gave:\ncall 2/);
    assert.equal(server.calls.length, 2);
  });

  it("D4 tools of the settings are there from the next turn, and are gone from the one after they are taken away", async () => {
    const server = await double();
    const home = homeOf("mia");
    const { url, key } = await serve("mia", [], { home });
    const config = (tools: Record<string, string>) =>
      writeFileSync(
        join(home, "mia", "config.json"),
        JSON.stringify({ model: { name: "demo/echo" }, tools }),
      );
    const turn = () =>
      ask(`${url}/asp/turn`, key, { thread: "a:1", message: { text: "use files__note {}" } });
    assert.doesNotMatch((await turn()).body.text, /gave:/);
    config({ files: server.url });
    assert.match((await turn()).body.text, /files__note gave:\ncall 1/);
    config({});
    assert.doesNotMatch((await turn()).body.text, /gave:/);
  });

  it("tools list shows each server, its state, calls and tokens, and what was left out; no address", async () => {
    const odd = {
      name: "odd",
      inputSchema: { type: "object", properties: { "a b": {} }, required: ["a b"] },
    };
    const server = await double({ tools: [tool("note"), tool("has space"), odd], instructions: "Be brief." });
    const home = homeOf("mia");
    writeFileSync(
      join(home, "mia", "config.json"),
      JSON.stringify({ model: { name: "anthropic/claude-opus-4-5" }, tools: { files: server.url } }),
    );
    const down = await double();
    await down.close();
    const env = {
      LNK_TOOL_DOWN: down.url.replace("/mcp", "/s3cr3t-path"),
      LNK_MEMORY: `${server.url}?key=t0psecret`,
    };
    const rows = async (...args: string[]) => {
      const { code, out, err } = await run(["tools", "list", "mia", "--json", ...args], { home, env });
      assert.equal(code, 0, err);
      assert.doesNotMatch(out + err, /s3cr3t|t0psecret|127\.0\.0\.1/);
      return out.trim().split("\n").map((line) => JSON.parse(line));
    };
    const first = await rows();
    assert.deepEqual(first.map(({ tool, state, source }) => [tool, state, source]), [
      ["down", "absent", "environment"],
      ["files", "up", "settings"],
      ["memory", "up", "environment"],
    ]);
    assert.match(first[0].why, /refused/);
    const [, files] = first;
    assert.deepEqual(files.calls.map(({ name }: { name: string }) => name), ["files__note", "files__odd"]);
    assert.ok(
      files.calls[0].tokens > 10 && files.tokens >= files.calls[0].tokens && files.instructions === 3,
    );
    assert.equal(files.left_out.length, 2);
    assert.match(files.left_out[0].why, /white space/);
    assert.match(files.left_out[1].why, /"a b"/);
    const asked = server.asked.length;
    assert.deepEqual((await rows()).map(({ state }) => state), ["absent", "kept", "kept"]);
    assert.equal(server.asked.length, asked, "what is kept is shown without asking");
    assert.deepEqual((await rows("--refresh")).map(({ state }) => state), ["absent", "up", "up"]);
    assert.deepEqual(server.sessions.size, 0);
    const lists = readFileSync(join(home, "mia", "tool-lists.json"), "utf8");
    assert.doesNotMatch(lists, /s3cr3t|t0psecret|127\.0\.0\.1/);
    await server.close();
    const words = await run(["tools", "list", "mia", "--refresh"], { home, env });
    assert.match(words.out, /^files: down \(the connection was refused\); 2 calls, \d+ tokens/m);
    assert.match(words.out, /^ {2}left out of files__odd: /m);
  });

  it("an agent without tools loads nothing for them and keeps no file of lists", async () => {
    const home = homeOf("mia");
    const { out } = await run(["tools", "list", "mia"], { home });
    assert.match(out, /^No tools/);
    await run(["chat", "send", "mia", "a:1", "hello"], { home });
    assert.equal(existsSync(join(home, "mia", "tool-lists.json")), false);
  });
});
