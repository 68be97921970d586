// The copy for people, as a text and as the file beside a log.

import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { after, describe, it } from "node:test";
import { randomIds, systemClock } from "../../src/clock.ts";
import { type Kept, parseLine } from "../../src/log/event.ts";
import { transcript } from "../../src/log/transcript.ts";
import { silent } from "../../src/notices.ts";
import { agentPaths } from "../../src/paths.ts";
import { openFolderStore } from "../../src/store/folder.ts";
import { each } from "../contract/conversations.ts";
import { answer, message } from "../contract/events.ts";
import { temporaryFolder } from "../contract/places.ts";

const thread = "telegram:42";

const said = [
  message(1, "Where is my parcel?", { head: "[Tue · owner Ana]" }),
  `{"seq":2,"at":"2026-12-01T00:00:02.000Z","type":"model","turn":"t","round":1,"text":"looking","calls":[{"id":"c2_0","tool":"a__b","arguments":"{}"}],"model":"m","provider":"p","stop":"calls","tokens":{"input":1,"output":1},"ms":1}`,
  `{"seq":3,"at":"2026-12-01T00:00:03.000Z","type":"result","turn":"t","call":"c2_0","tool":"a__b","text":"SECRET","ok":true,"ms":1}`,
  message(4, "And my other one?", { head: "[Tue · owner Ana]" }),
  answer(5, 1, "On its way."),
  message(6, "done", { from: { role: "run", name: "run:1" } }),
  answer(7, 6, "Both are."),
  message(8, "Thanks", { head: "[Wed · owner Ana]" }),
];

const text1 =
  "**[Tue · owner Ana]**\n\nWhere is my parcel?\n\n**[2026-12-01 00:00:05 UTC · agent]**\n\nOn its way.\n\n";
const text2 =
  `${text1}**[Tue · owner Ana]**\n\nAnd my other one?\n\n**[2026-12-01 00:00:07 UTC · agent]**\n\nBoth are.\n\n`;

async function whole(lines: string[]): Promise<string> {
  let text = "";
  for await (const piece of transcript(each(lines))) text += piece;
  return text;
}

describe("the copy for people", () => {
  const homes: string[] = [];
  after(() => homes.forEach((home) => rmSync(home, { recursive: true, force: true })));

  /** A store whose thread holds `said` up to a number, and its copy's place. */
  async function opened(way = "log") {
    const home = temporaryFolder();
    homes.push(home);
    const store = openFolderStore({
      agent: "mia",
      where: { home },
      clock: systemClock,
      ids: randomIds,
      notify: silent,
      storage: () => ({ way, sync: false }),
    });
    const copy = agentPaths("mia", { home }).conversation(thread).copy;
    let last = 0;
    const upto = async (seq: number): Promise<Kept[]> => {
      const lines = said.slice(last, seq);
      if (lines.length > 0) {
        await store.conversations.append(thread, { seq: last + 1, lines, token: `${seq}` });
      }
      last = Math.max(last, seq);
      return said.slice(0, seq).map(parseLine);
    };
    return { store, copy, upto, read: () => readFileSync(copy, "utf8") };
  }

  it("C14 holds the owner's messages and the agent's answers up to the last answer, no call and no result", async () => {
    assert.equal(await whole(said), text2);
    assert.equal(await whole(said.slice(0, 4)), "");
    assert.equal(await whole(said.slice(0, 5)), text1);
  });

  it("C14 grows by each answer from the events that the turn holds", async () => {
    const { store, upto, read } = await opened();
    await store.copy!(thread, await upto(5));
    assert.equal(read(), text1);
    const held = (await upto(8)).filter(({ seq }) => seq > 1);
    await store.copy!(thread, held);
    assert.equal(read(), text2);
    await store.copy!(thread, held);
    assert.equal(read(), text2);
    await store.conversations.close();
  });

  it("C14 is made again where it does not end with the answer before: cut, changed, gone, written elsewhere", async () => {
    for (
      const spoil of [
        (copy: string) => truncateSync(copy, 10),
        (copy: string) => rmSync(copy),
        (copy: string) => writeFileSync(copy, "something else"),
        (copy: string) => writeFileSync(copy, text1.replace("On its", "Off its")),
        (copy: string) => writeFileSync(copy, text1.replace("On its", "In its")),
      ]
    ) {
      const { store, copy, upto, read } = await opened();
      await store.copy!(thread, await upto(5));
      spoil(copy);
      await store.copy!(thread, await upto(7));
      assert.equal(read(), text2);
      await store.conversations.close();
    }
  });

  it("C14 is made again where the turn does not hold all that was said since", async () => {
    const { store, copy, upto, read } = await opened();
    await store.copy!(thread, (await upto(7)).slice(-1));
    assert.equal(read(), text2);
    rmSync(copy);
    await store.conversations.close();
  });

  it("C14 holds nothing of a turn that is not answered yet", async () => {
    const { store, copy, upto } = await opened();
    await store.copy!(thread, await upto(4));
    assert.equal(existsSync(copy), false);
    await store.conversations.close();
  });
});
