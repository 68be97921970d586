import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  keptLink,
  readSections,
  replaceModel,
  type Section,
  type SectionInput,
  type SectionName,
  sectionNames,
} from "../../src/prompt/sections.ts";
import { roughTokens } from "../../src/prompt/tokens.ts";
import { type MemoryFiles, memoryFiles } from "./files.ts";

const everything = {
  "instructions/models/anthropic/claude-opus-4-5/instruction.md": "Think first.",
  "instructions/models/ollama/qwen3:8b/instruction.md": "Be brief.",
  "instructions/persona.md": "You are Mia.",
  "instructions/owner.md": "Ana lives in Lyon.",
  "instructions/instruction.md": "Say tu.",
  "memory/notes.md": "- likes tea",
  "AGENTS.md": "Use tabs.",
  "skills/pdf/SKILL.md": "---\nname: pdf\ndescription: Reads PDF files\n---\nHow.",
};

function input(files: MemoryFiles, more: Partial<SectionInput> = {}): SectionInput {
  return {
    files,
    instructions: {},
    model: "anthropic/claude-opus-4-5",
    tools: [{ name: "memory__read", description: "", schema: {} }],
    toolInstructions: [{ tool: "web", text: "Not offered." }, { tool: "memory", text: "Search first." }],
    workspace: "/home/mia/files",
    connections: ["telegram", "mail"],
    skills: new Map(),
    ...more,
  };
}

const named = (sections: Section[], name: SectionName) => sections.find((one) => one.name === name)!;

describe("the sections", () => {
  it("S7 stand in the order of how seldom they change, each with owner, source, size", async () => {
    const sections = await readSections(input(memoryFiles(everything)));
    assert.deepEqual(sections.map(({ name }) => name), [...sectionNames]);
    for (const { text, tokens, max, owner, source, left } of sections) {
      assert.ok(text.length > 0 && owner.length > 0 && source.length > 0);
      assert.equal(tokens, roughTokens(text));
      assert.ok(tokens <= max + 20);
      assert.deepEqual(left, []);
    }
    assert.equal(
      sections.slice(1).map(({ text }) => text).join("\n\n"),
      `# For the model that you run on
Think first.

# What your tools say of themselves
## memory
Search first.

# Environment
- Files folder, where your tools work: /home/mia/files
- Connections: mail, telegram

# Repository instructions
## AGENTS.md
Use tabs.

# Skills
Read a skill's file with memory__read, by the path given here, before you do what it is for.
- pdf: Reads PDF files (skills/pdf/SKILL.md)

# Who you are
You are Mia.

# Who your owner is
Ana lives in Lyon.

# Standing instructions
Say tu.

# Your notes
- likes tea`,
    );
  });

  it("say nothing where there is nothing", async () => {
    const sections = await readSections(
      input(memoryFiles({ "memory/notes.md": " \n", "instructions/persona.md": "" })),
    );
    const said = sections.filter(({ text }) => text !== "").map(({ name }) => name);
    assert.deepEqual(said, ["base", "tools", "environment"]);
    assert.deepEqual(sections.flatMap(({ left }) => left), []);
  });

  it("the base is short: 600 tokens at most", async () => {
    const [base] = await readSections(input(memoryFiles()));
    assert.ok(base!.tokens <= 600, String(base!.tokens));
  });

  it("B52 S8 are the same bytes from another process, zone, locale and order of files and servers", async () => {
    const texts = Object.entries({
      ...everything,
      "skills/a1/SKILL.md": "---\nname: a1\ndescription: One\n---",
    });
    const turned = input(memoryFiles(Object.fromEntries(texts.reverse())));
    const zone = process.env.TZ;
    const first = await readSections(input(memoryFiles(Object.fromEntries(texts))));
    process.env.TZ = "Asia/Tokyo";
    const second = await readSections({
      ...turned,
      toolInstructions: [...turned.toolInstructions].reverse(),
      connections: [...turned.connections!].reverse(),
    });
    if (zone === undefined) delete process.env.TZ;
    else process.env.TZ = zone;
    assert.deepEqual(second, first);
  });

  it("no file is read twice in a turn", async () => {
    const files = memoryFiles(everything);
    await readSections(input(files));
    assert.equal(new Set(files.reads).size, files.reads.length);
  });

  it("S9 can each be replaced by a file, a link's kept text, or nothing, the base included", async () => {
    for (const name of sectionNames) {
      const files = memoryFiles({
        ...everything,
        "mine/text.md": "\uFEFFMine.\r\nAll mine.",
        [keptLink(name)]: "From afar.",
      });
      const read = async (value: unknown) =>
        named(await readSections(input(files, { instructions: { [name]: value } })), name);
      const mine = await read("mine/text.md");
      assert.ok(mine.text.endsWith("Mine.\nAll mine."));
      assert.equal(mine.source, "mine/text.md");
      const link = await read({ source: "https://example.com/a.md" });
      assert.ok(link.text.endsWith("From afar."));
      assert.equal(link.source, "https://example.com/a.md");
      assert.equal((await read("none")).text, "");
      assert.ok((await read("")).text.length > 0);
      assert.ok((await read(undefined)).text.length > 0);
    }
  });

  it("S9 tell a source that is missing, a link not kept yet, and what lies behind a symbolic link", async () => {
    const files = memoryFiles(everything);
    files.link("instructions/persona.md");
    files.link("AGENTS.md");
    files.set("CLAUDE.md", "Use spaces.");
    const instructions = { owner: "gone.md", instruction: "https://example.com/x" };
    const sections = await readSections(input(files, { instructions }));
    const told = (name: SectionName) => named(sections, name).left.map(({ what, why }) => `${what}: ${why}`);
    assert.deepEqual(told("persona"), ["instructions/persona.md: it lies behind a symbolic link"]);
    assert.deepEqual(told("owner"), ["gone.md: there is no such file, or it is empty"]);
    assert.deepEqual(told("instruction"), [
      "https://example.com/x: its text is not kept here yet; run configure again",
    ]);
    assert.deepEqual(told("repository"), ["AGENTS.md: it lies behind a symbolic link"]);
    assert.ok(named(sections, "repository").text.endsWith("## CLAUDE.md\nUse spaces."));
  });

  it("S7 a section past its size is cut at a line's end, and both the model and its owner are told", async () => {
    const files = memoryFiles({ "instructions/instruction.md": "One line of words.\n".repeat(100) });
    const instructions = { instruction: { max: 100 } };
    const section = named(await readSections(input(files, { instructions })), "instruction");
    assert.match(
      section.text,
      /^# Standing instructions\n(One line of words\.\n)+\[Cut here: 1899 characters in all\.\]$/,
    );
    assert.ok(section.tokens <= 100 + roughTokens("# Standing instructions\n"));
    assert.deepEqual(section.left, [{
      what: "the end of instructions/instruction.md",
      why: "it has 475 tokens, and 100 is the most",
    }]);
  });

  it("S13 notes are held to 4 KB", async () => {
    const whole = named(
      await readSections(input(memoryFiles({ "memory/notes.md": "x".repeat(4096) }))),
      "notes",
    );
    assert.equal(whole.text, `# Your notes\n${"x".repeat(4096)}`);
    const more = named(
      await readSections(input(memoryFiles({ "memory/notes.md": "a note\n".repeat(600) }))),
      "notes",
    );
    assert.ok(new TextEncoder().encode(more.text).length <= 4096 + "# Your notes\n".length);
    assert.equal(more.left.length, 1);
  });

  it("S10 the repository's file is AGENTS.md, else CLAUDE.md, one for each folder on the way, nearest last", async () => {
    const files = memoryFiles({
      "CLAUDE.md": "Top.",
      "app/AGENTS.md": "App.",
      "app/CLAUDE.md": "See AGENTS.md",
      "app/web/CLAUDE.md": "Web.",
      "other/AGENTS.md": "Other.",
    });
    const own = named(await readSections(input(files)), "repository");
    assert.equal(own.text, "# Repository instructions\n## CLAUDE.md\nTop.");
    const near = named(
      await readSections(input(files, { instructions: { repository: "app/web/" } })),
      "repository",
    );
    assert.equal(
      near.text,
      "# Repository instructions\n## CLAUDE.md\nTop.\n\n## app/AGENTS.md\nApp.\n\n## app/web/CLAUDE.md\nWeb.",
    );
    const deep = await readSections(input(files, { instructions: { repository: "a/".repeat(40) } }));
    assert.equal(named(deep, "repository").left.length, 25);
  });

  it("S11 a model's own instructions are found by its name, never guessed; a fallback's stand in their place", async () => {
    const files = memoryFiles(everything);
    const sections = await readSections(input(files));
    const other = await replaceModel(sections, input(files, { model: "ollama/qwen3:8b" }));
    assert.ok(named(other, "model").text.endsWith("Be brief."));
    assert.deepEqual(
      other.filter(({ name }) => name !== "model"),
      sections.filter(({ name }) => name !== "model"),
    );
    for (const model of ["anthropic/claude-opus-4.5", "claude-opus-4-5", "demo/echo"]) {
      assert.equal(named(await readSections(input(files, { model })), "model").text, "");
    }
  });

  it("S11 a model's name that climbs out of its folder reads nothing", async () => {
    for (const model of ["../../secret", "a/../../b", "/etc/passwd", "a//b", "a\\b", "", "."]) {
      const files = memoryFiles(everything);
      const section = named(await readSections(input(files, { model })), "model");
      assert.equal(section.text, "");
      assert.equal(section.left.length, 1);
      assert.equal(files.reads.some((path) => path.startsWith("instructions/models")), false);
    }
  });

  it("S12 the tools' own words stand sorted under their names, only for tools that are offered", async () => {
    const toolInstructions = [
      { tool: "web", text: "W" },
      { tool: "a", text: "A" },
      { tool: "b", text: " " },
      {
        tool: "we",
        text: "no",
      },
    ];
    const tools = ["web__get", "a__x", "b__y"].map((name) => ({ name, description: "", schema: {} }));
    const section = named(await readSections(input(memoryFiles(), { tools, toolInstructions })), "tools");
    assert.equal(section.text, "# What your tools say of themselves\n## a\nA\n\n## web\nW");
    const none = named(await readSections(input(memoryFiles(), { tools: [], toolInstructions })), "tools");
    assert.equal(none.text, "");
  });

  it("a file of bytes that are no text, or far too large, does not break the prompt", async () => {
    const files = memoryFiles({
      "instructions/persona.md": new Uint8Array([0xff, 0xfe, 0x41]),
      "instructions/owner.md": new Uint8Array(3_000_000),
    });
    const sections = await readSections(input(files));
    assert.ok(named(sections, "persona").text.isWellFormed());
    assert.equal(named(sections, "owner").text, "");
    assert.match(named(sections, "owner").left[0]!.why, /3000000 bytes/);
  });
});
