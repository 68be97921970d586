// The skills section: name and description of each `skills/NAME/SKILL.md` (the Agent Skills format), sorted by name, with
// the path at which the model reads the rest. What was left out is told with its reason.

import { failedBy } from "../errors.ts";
import { limits } from "../limits.ts";
import type { Draft, LeftOut, SectionFiles } from "./source.ts";
import { parseFrontmatter } from "./frontmatter.ts";
import { roughTokens } from "./tokens.ts";

/** Skills of one agent as they were last read, by path; kept until their file changes. One for each agent and process. */
export type SkillCache = Map<string, { version: string; skill: Skill }>;

/** A skill, or why there is none. */
export type Skill = { name: string; description: string } | { why: string };

const file = /^skills\/([^/]+)\/SKILL\.md$/;

/** The section within `max` rough tokens: a skill that does not fit is left out whole. */
export async function readSkills(files: SectionFiles, cache: SkillCache, max: number): Promise<Draft> {
  const listed = (await files.list("skills/")).filter(({ path }) => file.test(path));
  const paths = new Set(listed.map(({ path }) => path));
  for (const path of cache.keys()) if (!paths.has(path)) cache.delete(path);
  const read = await Promise.all(
    listed.map(async (info) => ({ path: info.path, skill: await readSkill(files, cache, info) })),
  );
  read.sort((a, b) => a.path < b.path ? -1 : 1);

  const left: LeftOut[] = [];
  const lines: string[] = [];
  let tokens = roughTokens(intro) + 1;
  for (const { path, skill } of read) {
    if ("why" in skill) {
      left.push({ what: path, why: skill.why });
      continue;
    }
    const line = `- ${skill.name}: ${skill.description} (${path})`;
    const size = roughTokens(line) + 1;
    if (tokens + size > max) {
      left.push({ what: path, why: `the section has room for ${max} tokens, and they are used` });
    } else {
      lines.push(line);
      tokens += size;
    }
  }
  return { source: "skills/", text: lines.length === 0 ? "" : `${intro}\n${lines.join("\n")}`, left };
}

const intro = "Read a skill's file with memory__read, by the path given here, before you do what it is for.";

async function readSkill(
  files: SectionFiles,
  cache: SkillCache,
  { path, bytes, version }: { path: string; bytes: number; version: string },
): Promise<Skill> {
  const known = cache.get(path);
  if (known?.version === version) return known.skill;
  const skill = bytes > limits.instructionBytesMax
    ? { why: `it has ${bytes} bytes, and ${limits.instructionBytesMax} is the most` }
    : await parsed(files, path);
  cache.set(path, { version, skill });
  return skill;
}

async function parsed(files: SectionFiles, path: string): Promise<Skill> {
  try {
    const bytes = await files.read(path);
    return bytes
      ? await parseSkill(file.exec(path)![1]!, new TextDecoder().decode(bytes))
      : { why: "it is gone" };
  } catch (thrown) {
    if (failedBy(thrown, "link_refused")) return { why: "it lies behind a symbolic link" };
    throw thrown;
  }
}

/** A skill from the text of its file, in the folder of that name. */
export async function parseSkill(folder: string, text: string): Promise<Skill> {
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(folder) || folder.length > limits.skillNameCharsMax) {
    return { why: "its folder's name is not made of a-z, 0-9 and single -, 64 characters at most" };
  }
  const head = await parseFrontmatter(text);
  if ("why" in head) return head;
  const { name, description } = head.fields;
  if (name !== folder) {
    return { why: `its name ${JSON.stringify(name?.slice(0, 80) ?? "")} is not that of its folder` };
  }
  const line = (description ?? "").toWellFormed().replace(/[\p{Cc}\p{Z}\s]+/gu, " ").trim();
  if (line === "") return { why: "it has no description" };
  if ([...line].length > limits.skillDescriptionCharsMax) {
    return { why: `its description is over ${limits.skillDescriptionCharsMax} characters` };
  }
  return { name, description: line };
}
