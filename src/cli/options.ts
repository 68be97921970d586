// Options that several commands take.

import type { Option } from "./command.ts";

export const homeOption = {
  home: { value: "DIR", say: "where agents are kept (LNK_HOME, else ~/.lnk/agents)" },
} satisfies Record<string, Option>;

export const jsonOption = { json: { say: "print JSON, for programs" } } satisfies Record<string, Option>;
