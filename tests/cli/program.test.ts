import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { version } from "../../src/version.ts";
import { homeOf, newHome, run } from "./program.ts";

describe("the program", () => {
  it("D1 lists its commands, and each of them tells its own usage", async () => {
    const home = newHome();
    const overview = await run(["--help"], { home });
    assert.equal(overview.code, 0);
    const commands = [...overview.out.matchAll(/^ {2}((?:[a-z-]+ )+) +\S/gm)].map(([, name]) => name!.trim());
    assert.ok(commands.length >= 6 && commands.includes("chat send"), overview.out);
    for (const command of commands) {
      const { code, out, err } = await run([...command.split(" "), "--help"], { home });
      assert.deepEqual([code, err], [0, ""], command);
      assert.ok(out.startsWith(`Usage: lnk-link-harness ${command}`), out);
    }
    const group = await run(["chat", "--help"], { home });
    assert.ok(group.out.includes("chat show") && !group.out.includes("serve"));
    assert.deepEqual(await run(["--version"], { home }), { code: 0, out: `${version}\n`, err: "" });
  });

  it("exits 2 where it is used wrongly, with one sentence on stderr that says what to do and no stack", async () => {
    const home = newHome();
    const wrong: string[][] = [
      [],
      ["bogus"],
      ["chat"],
      ["chat", "sing"],
      ["--home"],
      ["serve"],
      ["serve", "mia", "leo"],
      ["serve", "../x"],
      ["serve", "mia", "--prot", "1"],
      ["serve", "mia", "--port", "seventy"],
      ["serve", "mia", "--port", "70000"],
      ["serve", "mia", "--drain", "soon"],
      ["serve", "mia", "--json=yes"],
      ["configure", "mia", "--set", "window"],
      ["configure", "mia", "--set", "window.mox=1"],
      ["configure", "mia", "--spec", "/nowhere/spec.toml"],
      ["chat", "send", "mia", "..", "hello"],
      ["chat", "send", "mia", "a:1", "hello", "--role", "king"],
      ["chat", "send", "mia", "a:1", "\u200b"],
      ["chat", "show", "mia", ""],
    ];
    for (const args of wrong) {
      const { code, out, err } = await run(args, { home, stdin: "" });
      assert.deepEqual([code, out], [2, ""], `${args.join(" ")}: ${out}${err}`);
      assert.match(err, /^lnk-link-harness: [^\n]+[.;][^\n]*\n( {2}[^\n]+\n)*$/, args.join(" "));
      assert.doesNotMatch(err, /^\s+at /m);
    }
    assert.equal(existsSync(join(home, "mia", "files")), false);
  });

  it("names an agent or a conversation that is not there, and makes none of it", async () => {
    const home = homeOf("mia");
    const noAgent = await run(["chat", "list", "leo"], { home });
    assert.equal(noAgent.code, 1);
    assert.match(noAgent.err, /no agent leo at .*leo;/);
    assert.equal(existsSync(join(home, "leo")), false);
    const none = await run(["chat", "show", "mia", "telegram:1"], { home });
    assert.deepEqual([none.code, none.out], [1, ""]);
    assert.match(none.err, /no conversation "telegram:1"/);
  });
});

describe("configure", () => {
  it("S4 D4 takes a TOML spec and single keys, shows what stands, and changes nothing where anything is wrong", async () => {
    const home = newHome();
    const spec = join(home, "spec.toml");
    writeFileSync(spec, `[model]\nname = "openai/gpt-5.1"\n[tools]\nfiles = "http://127.0.0.1:1/secret"\n`);
    const put = await run(["configure", "mia", "--spec", spec, "--set", "window.max=100000"], { home });
    assert.equal(put.code, 0, put.err);
    assert.deepEqual(JSON.parse(put.out), {
      model: { name: "openai/gpt-5.1" },
      tools: { files: "********" },
      window: { max: 100_000 },
    });

    const changed = await run([
      "configure",
      "mia",
      "--set",
      "model.name=openai/gpt-5.2",
      "--set",
      "model.answer=100",
      "--unset",
      "window.max",
    ], { home });
    assert.deepEqual(JSON.parse(changed.out).model, { name: "openai/gpt-5.2", answer: 100 });
    const kept = readFileSync(join(home, "mia", "config.json"), "utf8");
    assert.equal(JSON.parse(kept).tools.files, "http://127.0.0.1:1/secret");

    const wrong = await run(["configure", "mia", "--set", "model.nam=x", "--set", "window.max=-1"], { home });
    assert.equal(wrong.code, 2);
    assert.match(wrong.err, /model\.nam: .*`model\.name`/);
    assert.match(wrong.err, /window\.max: /);
    assert.equal(readFileSync(join(home, "mia", "config.json"), "utf8"), kept);

    const shown = await run(["configure", "mia", "--effective"], { home });
    assert.equal(JSON.parse(shown.out).storage.conversations, "log");
    const stdin = await run(["configure", "mia", "--spec", "-"], { home, stdin: "[window]\nmax = 5\n" });
    assert.deepEqual(JSON.parse(stdin.out), { window: { max: 5 } });
  });
});

describe("chat", () => {
  it("C8 sends a message, streams its answer, and prints the conversation from its events", async () => {
    const home = homeOf("mia");
    const sent = await run(["chat", "send", "mia", "telegram:42", "Where", "is", "my parcel?"], { home });
    assert.equal(sent.code, 0, sent.err);
    assert.match(sent.out, /^You said: Where is my parcel\?/);
    assert.equal(sent.err, "");

    const piped = await run(
      [
        "chat",
        "send",
        "mia",
        "telegram:42",
        "--json",
        "--id",
        "m2",
        "--connection",
        "telegram",
        "--name",
        "Ana",
      ],
      { home, stdin: "From stdin\n" },
    );
    const answer = JSON.parse(piped.out);
    assert.deepEqual([answer.thread, answer.seq, answer.messages, answer.stop], [
      "telegram:42",
      4,
      ["m2"],
      "end",
    ]);

    const shown = await run(["chat", "show", "mia", "telegram:42"], { home });
    assert.match(
      shown.out,
      /Where is my parcel\?[\s\S]*You said: Where[\s\S]*telegram · owner Ana[\s\S]*From stdin/,
    );
    const events = await run(["chat", "show", "mia", "telegram:42", "--json"], { home });
    assert.equal(events.out, readFileSync(join(home, "mia/files/chats/telegram-42/events.jsonl"), "utf8"));
    const last = await run(["chat", "show", "mia", "telegram:42", "--json", "--last", "1"], { home });
    assert.equal(JSON.parse(last.out).seq, 4);

    const listed = await run(["chat", "list", "mia", "--json"], { home });
    const { updated, ...row } = JSON.parse(listed.out);
    assert.deepEqual(row, { thread: "telegram:42", events: 4, storage: "log", running: false });
    assert.match(updated, /^\d{4}-.*Z$/);
    assert.match((await run(["chat", "list", "mia"], { home })).out, /^THREAD .*\ntelegram:42 +4 +log/);
  });

  it("asks a message with the same id once, and refuses the id with another text", async () => {
    const home = homeOf("mia");
    const send = (text: string) => run(["chat", "send", "mia", "a:1", text, "--id", "x", "--json"], { home });
    const first = JSON.parse((await send("one")).out);
    const again = JSON.parse((await send("one")).out);
    assert.deepEqual([again.repeated, again.id, again.text], [true, first.id, first.text]);
    const other = await send("two");
    assert.equal(other.code, 1);
    assert.match(other.err, /used in this thread with another text/);
  });

  it("tells on stderr why no model can be asked, and exits 1", async () => {
    const home = newHome();
    const { code, out, err } = await run(["chat", "send", "mia", "a:1", "hi"], {
      home,
      env: { LNK_MODEL_URL: "http://127.0.0.1:9/v1" },
    });
    assert.deepEqual([code, out], [1, ""]);
    assert.match(err, /^lnk-link-harness: No model can be asked: .*LNK_MODEL_URL/);
  });
});
