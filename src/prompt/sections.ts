// The sections that a prompt begins with, in the order of how seldom they change: each with its owner, its source and its
// largest size, and what was left out of it and why. Read once a turn, through the store alone. How they are joined
// with the conversation is compose.ts.
//
//   const sections = await readSections(input)        // ten, in the order of `sectionNames`; text "" where it says nothing
//   const other = await replaceModel(sections, input) // the same with a fallback model's own instructions
//
// `[instructions]` may give each section another source: "" for its own, "none", a path below the files folder, or a link,
// whose text `configure` keeps at `keptLink(name)`.

import { limits } from "../limits.ts";
import type { ToolSpec } from "../tool.ts";
import { baseInstructions } from "./base.ts";
import { cutEnd } from "./cut.ts";
import { readRepository } from "./repository.ts";
import { readSkills, type SkillCache } from "./skills.ts";
import { type Draft, type LeftOut, readText, type SectionFiles } from "./source.ts";
import { roughTokens } from "./tokens.ts";

export const sectionNames = [
  "base",
  "model",
  "tools",
  "environment",
  "repository",
  "skills",
  "persona",
  "owner",
  "instruction",
  "notes",
] as const;
export type SectionName = typeof sectionNames[number];

export interface Section {
  name: SectionName;
  /** Whose words they are. */
  owner: "harness" | "owner" | "tools" | "repository" | "skills" | "agent";
  /** Where they come from: a path below the files folder, or what made them. */
  source: string;
  /** Largest size without its title, rough tokens. */
  max: number;
  text: string;
  tokens: number;
  left: LeftOut[];
}

export interface SectionInput {
  files: SectionFiles;
  /** The settings' `[instructions]`. */
  instructions: Readonly<Record<string, unknown>>;
  /** As the settings name it, `<maker>/<model>`. */
  model: string;
  /** What the turn offers, narrowed, and what each server says of itself. */
  tools: readonly ToolSpec[];
  toolInstructions: readonly { tool: string; text: string }[];
  /** The files folder, as tools name it. */
  workspace: string;
  connections?: readonly string[];
  /** Kept by the process between turns: see skills.ts. */
  skills: SkillCache;
}

/** Where `configure` keeps the text of a section's link. */
export function keptLink(name: SectionName): string {
  return `instructions/links/${name}.md`;
}

export function readSections(input: SectionInput): Promise<Section[]> {
  return Promise.all(sectionNames.map((name) => readSection(name, input)));
}

/** The sections for another model: its own instructions in the first one's place, all else as it was read. */
export async function replaceModel(sections: readonly Section[], input: SectionInput): Promise<Section[]> {
  const own = await readSection("model", input);
  return sections.map((section) => section.name === "model" ? own : section);
}

interface Kind {
  owner: Section["owner"];
  /** Rough tokens. */
  max: number;
  title?: string;
  own(input: SectionInput, max: number): Promise<Draft> | Draft;
}

const kinds: Record<SectionName, Kind> = {
  base: {
    owner: "harness",
    max: 2000,
    own: () => ({ source: "the harness", text: baseInstructions, left: [] }),
  },
  model: {
    owner: "owner",
    max: 2000,
    title: "# For the model that you run on",
    own: (input) => {
      const path = modelPath(input.model);
      return path === undefined
        ? {
          source: "instructions/models",
          text: "",
          left: [{ what: input.model, why: "its name is no path" }],
        }
        : readText(input.files, path);
    },
  },
  tools: {
    owner: "tools",
    max: 8000,
    title: "# What your tools say of themselves",
    own: ({ tools, toolInstructions }) => toolWords(tools, toolInstructions),
  },
  environment: {
    owner: "harness",
    max: 1000,
    title: "# Environment",
    own: ({ workspace, connections = [] }) => ({
      source: "the harness",
      text: [
        `- Files folder, where your tools work: ${workspace}`,
        ...(connections.length > 0 ? [`- Connections: ${[...connections].sort().join(", ")}`] : []),
      ].join("\n"),
      left: [],
    }),
  },
  repository: {
    owner: "repository",
    max: 8000,
    title: "# Repository instructions",
    own: ({ files }) => readRepository(files, ""),
  },
  skills: {
    owner: "skills",
    max: 4000,
    title: "# Skills",
    own: ({ files, skills }, max) => readSkills(files, skills, max),
  },
  persona: fileKind("# Who you are", "instructions/persona.md", 4000),
  owner: fileKind("# Who your owner is", "instructions/owner.md", 4000),
  instruction: fileKind("# Standing instructions", "instructions/instruction.md", 8000),
  notes: {
    owner: "agent",
    max: limits.notesBytesMax / 4,
    title: "# Your notes",
    own: ({ files }) => readText(files, "memory/notes.md"),
  },
};

function fileKind(title: string, path: string, max: number): Kind {
  return { owner: "owner", max, title, own: ({ files }) => readText(files, path) };
}

async function readSection(name: SectionName, input: SectionInput): Promise<Section> {
  const kind = kinds[name];
  const { source, max = kind.max } = chosen(input.instructions[name]);
  const heading = kind.title === undefined ? "" : `${kind.title}\n`;
  const draft = await draftOf(name, source, input, max);
  const body = draft.text.toWellFormed().trim();
  const text = body === "" ? "" : heading + cutEnd(body, max);
  const tokens = roughTokens(text);
  const whole = roughTokens(body);
  const cut = whole <= max ? [] : [{
    what: `the end of ${draft.source}`,
    why: `it has ${whole} tokens, and ${max} is the most`,
  }];
  return { name, owner: kind.owner, source: draft.source, max, text, tokens, left: [...draft.left, ...cut] };
}

async function draftOf(name: SectionName, source: string, input: SectionInput, max: number): Promise<Draft> {
  if (source === "") return await kinds[name].own(input, max);
  if (source === "none") return { source: "none", text: "", left: [] };
  if (/^https?:\/\//i.test(source)) {
    const kept = await readText(input.files, keptLink(name));
    const why = "its text is not kept here yet; run configure again";
    return {
      ...kept,
      source,
      left: kept.text === "" && kept.left.length === 0 ? [{ what: source, why }] : kept.left,
    };
  }
  // A folder: the repository's files on the way to it, nearest last.
  if (name === "repository" && source.endsWith("/")) return await readRepository(input.files, source);
  const draft = await readText(input.files, source);
  if (draft.text === "" && draft.left.length === 0) {
    draft.left.push({ what: source, why: "there is no such file, or it is empty" });
  }
  return draft;
}

/** What the settings say of a section. */
function chosen(value: unknown): { source: string; max?: number } {
  if (typeof value === "string") return { source: value };
  if (typeof value !== "object" || value === null) return { source: "" };
  const { source, max } = value as { source?: unknown; max?: unknown };
  return {
    source: typeof source === "string" ? source : "",
    ...(typeof max === "number" ? { max } : {}),
  };
}

/** `instructions/models/<maker>/<model>/instruction.md`; undefined where the name cannot be a path. */
function modelPath(model: string): string | undefined {
  const parts = model.split("/");
  const safe = parts.every((part) => part !== "" && part !== "." && part !== ".." && !/[\\\0]/.test(part));
  return safe ? `instructions/models/${model}/instruction.md` : undefined;
}

/** Each server's own words under its tool's name, for the tools that are offered. */
function toolWords(tools: readonly ToolSpec[], all: SectionInput["toolInstructions"]): Draft {
  const offered = new Set(tools.map(({ name }) => name.slice(0, name.indexOf("__"))));
  const said = all.filter(({ tool, text }) => offered.has(tool) && text.trim() !== "");
  const sorted = [...said].sort((a, b) => a.tool < b.tool ? -1 : a.tool > b.tool ? 1 : 0);
  return {
    source: "the tools' servers",
    text: sorted.map(({ tool, text }) => `## ${tool}\n${text.trim()}`).join("\n\n"),
    left: [],
  };
}
