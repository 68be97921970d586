import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseSkill, readSkills, type SkillCache } from "../../src/prompt/skills.ts";
import { roughTokens } from "../../src/prompt/tokens.ts";
import { memoryFiles } from "./files.ts";

const skill = (head: string) => parseSkill("pdf", `---\n${head}\n---\nBody`);
const file = (name: string, description = "Does it") =>
  `---\nname: ${name}\ndescription: ${description}\n---\nBody`;

describe("a skill", () => {
  it("B69 is read with a colon in an unquoted description, and every other usual slip", async () => {
    const cases: [head: string, description: string][] = [
      ["name: pdf\ndescription: a: b", "a: b"],
      ["name: pdf\ndescription: Use when: x\nlicense: MIT: yes", "Use when: x"],
      ['name: "pdf"\ndescription: "say \\"hi\\": now"', 'say "hi": now'],
      ["name: 'pdf'\ndescription: 'it''s: so'", "it's: so"],
      ["name: pdf\ndescription: >-\n  folded\n  lines\n", "folded lines"],
      ["name: pdf\ndescription: |\n  literal\n  lines", "literal lines"],
      ["name: pdf\nbroken: a: b\ndescription: >\n  folded\n  lines", "folded lines"],
      ["name: pdf\ndescription: begins here\n  and: goes on", "begins here and: goes on"],
      ["name: pdf\ndescription: [draft] reads", "[draft] reads"],
      ["name: pdf\ndescription: @here `x`", "@here `x`"],
      ["name: pdf\ndescription: 漢字 🙂", "漢字 🙂"],
      ["name: pdf\ndescription: yes", "yes"],
      ["description: 1.0\nname: pdf\nmetadata:\n  a: 1", "1.0"],
    ];
    for (const [head, description] of cases) {
      assert.deepEqual(await skill(head), { name: "pdf", description }, head);
    }
  });

  it("B69 is read with CRLF, CR, a byte order mark, and spaces after the lines of ---", async () => {
    const text = file("pdf");
    for (
      const given of [
        text.replaceAll("\n", "\r\n"),
        text.replaceAll("\n", "\r"),
        `\uFEFF${text}`,
        text.replaceAll("---", "--- "),
      ]
    ) {
      assert.deepEqual(await parseSkill("pdf", given), { name: "pdf", description: "Does it" });
    }
  });

  it("S14 is left out, with its reason, without a matching name or a description", async () => {
    const why = async (folder: string, text: string) => {
      const read = await parseSkill(folder, text);
      return "why" in read ? read.why : "";
    };
    assert.match(await why("pdf", file("pdg")), /its name "pdg" is not that of its folder/);
    assert.match(await why("pdf", "---\ndescription: x\n---"), /its name "" is not/);
    assert.match(await why("pdf", "---\nname: pdf\n---"), /no description/);
    assert.match(await why("pdf", "---\nname: pdf\ndescription: '  '\n---"), /no description/);
    assert.match(await why("pdf", "---\nname: pdf\ndescription:\n---"), /no description/);
    assert.match(await why("pdf", file("pdf", "x".repeat(1025))), /over 1024 characters/);
    assert.match(await why("pdf", "# PDF"), /does not begin with a line of ---/);
    assert.match(await why("pdf", "---\nname: pdf\ndescription: x\n"), /no second line of ---/);
    assert.match(await why("PDF", file("PDF")), /its folder's name/);
    assert.match(await why("a--b", file("a--b")), /its folder's name/);
  });

  it("B69 names that YAML would make numbers or truths are kept as they are written", async () => {
    assert.deepEqual(await parseSkill("yes", file("yes")), { name: "yes", description: "Does it" });
    assert.deepEqual(await parseSkill("10", file("10")), { name: "10", description: "Does it" });
    assert.ok("why" in await parseSkill("1", file("1.0")));
  });

  it("B69 an anchor bomb, a name given twice and 2 MB cost little and break nothing", async () => {
    const bomb = ["a: &a [x,x,x,x,x,x,x,x,x]"];
    for (const [one, next] of ["ab", "bc", "cd", "de", "ef", "fg", "gh"]) {
      bomb.push(`${next}: &${next} [${Array(9).fill(`*${one}`).join(",")}]`);
    }
    assert.deepEqual(await skill(`${bomb.join("\n")}\nname: pdf\ndescription: still here`), {
      name: "pdf",
      description: "still here",
    });
    assert.deepEqual(await skill("name: pdf\nname: other\ndescription: x"), {
      name: "pdf",
      description: "x",
    });
    assert.ok("why" in await skill("name: other\nname: pdf\ndescription: x"));
    assert.ok("why" in await skill(`name: pdf\ndescription: ${"x".repeat(2_000_000)}`));
    assert.deepEqual(await parseSkill("pdf", file("pdf") + "y".repeat(2_000_000)), {
      name: "pdf",
      description: "Does it",
    });
  });
});

describe("the skills section", () => {
  it("S14 lists skills by name with the path that memory__read takes, and tells what it leaves out", async () => {
    const files = memoryFiles({
      "skills/b/SKILL.md": file("b"),
      "skills/a/SKILL.md": file("a"),
      "skills/a/scripts/SKILL.md": file("scripts"),
      "skills/SKILL.md": file("skills"),
      "skills/c/SKILL.md": file("x"),
    });
    const { text, left } = await readSkills(files, new Map(), 4000);
    assert.equal(
      text.split("\n").slice(1).join("\n"),
      "- a: Does it (skills/a/SKILL.md)\n- b: Does it (skills/b/SKILL.md)",
    );
    assert.deepEqual(left.map(({ what }) => what), ["skills/c/SKILL.md"]);
  });

  it("S14 a limit leaves out whole skills, and tells which", async () => {
    const files = memoryFiles();
    for (let n = 10; n < 60; n++) files.set(`skills/s${n}/SKILL.md`, file(`s${n}`, "word ".repeat(40)));
    const { text, left } = await readSkills(files, new Map(), 1000);
    assert.ok(roughTokens(text) <= 1000);
    const listed = text.split("\n").slice(1);
    assert.ok(listed.length > 5);
    for (const line of listed) assert.match(line, /^- s\d\d: (word ?){40} ?\(skills\/s\d\d\/SKILL\.md\)$/);
    assert.equal(listed.length + left.length, 50);
  });

  it("S14 a skill is read again only once its file changes, and forgotten when it is gone", async () => {
    const files = memoryFiles({ "skills/a/SKILL.md": file("a"), "skills/b/SKILL.md": file("b") });
    const cache: SkillCache = new Map();
    await readSkills(files, cache, 4000);
    await readSkills(files, cache, 4000);
    assert.equal(files.reads.length, 2);
    files.set("skills/b/SKILL.md", file("b", "Changed"));
    assert.match((await readSkills(files, cache, 4000)).text, /- b: Changed/);
    assert.deepEqual(files.reads.slice(2), ["skills/b/SKILL.md"]);
  });

  it("S9 a skill behind a symbolic link, or over 1 MiB, is told and not read", async () => {
    const files = memoryFiles({
      "skills/a/SKILL.md": file("a"),
      "skills/b/SKILL.md": file("b") + "y".repeat(2_000_000),
    });
    files.link("skills/a/SKILL.md");
    const { text, left } = await readSkills(files, new Map(), 4000);
    assert.equal(text, "");
    assert.match(left[0]!.why, /symbolic link/);
    assert.match(left[1]!.why, /2000041 bytes/);
  });
});
