// The repository's instructions: AGENTS.md, else CLAUDE.md, one for each folder from the files folder to the one named,
// the nearest last. Folders beside that way are not looked into.

import { limits } from "../limits.ts";
import { type Draft, type LeftOut, readText, type SectionFiles } from "./source.ts";

/** `folder` is below the files folder: "" for that folder itself, else `a/b/`. */
export async function readRepository(files: SectionFiles, folder: string): Promise<Draft> {
  const ways = [""];
  for (const part of folder.split("/")) if (part !== "") ways.push(`${ways.at(-1)}${part}/`);
  const left: LeftOut[] = ways.slice(limits.repositoryFoldersMax)
    .map((way) => ({ what: way, why: `only ${limits.repositoryFoldersMax} folders are looked into` }));
  const found = await Promise.all(
    ways.slice(0, limits.repositoryFoldersMax).map((way) => readFolder(files, way)),
  );
  const texts = found.filter(({ text }) => text !== "");
  return {
    source: texts.length > 0
      ? texts.map(({ source }) => source).join(", ")
      : `${folder}AGENTS.md, ${folder}CLAUDE.md`,
    text: texts.map(({ source, text }) => `## ${source}\n${text}`).join("\n\n"),
    left: [...found.flatMap(({ left }) => left), ...left],
  };
}

/** One file a folder, so that a CLAUDE.md that only points at AGENTS.md is not read beside it. */
async function readFolder(files: SectionFiles, folder: string): Promise<Draft> {
  const agents = await readText(files, `${folder}AGENTS.md`);
  if (agents.text.trim() !== "") return { ...agents, text: agents.text.trim() };
  const claude = await readText(files, `${folder}CLAUDE.md`);
  return { ...claude, text: claude.text.trim(), left: [...agents.left, ...claude.left] };
}
