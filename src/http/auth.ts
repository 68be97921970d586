// Who may ask: the agent of the path needs its own key. No key or nobody's: 401. The key of another agent served here: 403
// for any name that is not its own, served or not, so that a name says nothing.

import type { Agent, AgentsHere } from "../agent/agent.ts";
import { ownerOf } from "../agent/keys.ts";
import { Failure } from "../errors.ts";

/** The agent called `name`, if the header `authorization` carries its key. Throws `unauthorized` or `forbidden`. */
export function authorize(agents: AgentsHere, name: string, authorization: string | undefined): Agent {
  const key = bearer(authorization);
  const owner = key === undefined ? undefined : ownerOf(key, agents.list());
  if (!owner) throw new Failure("unauthorized");
  if (owner.name !== name) throw new Failure("forbidden");
  return owner;
}

/** The key of `Bearer KEY`; undefined where the header is absent or of another form. */
function bearer(authorization: string | undefined): string | undefined {
  return /^bearer +([A-Za-z0-9._~+/=-]+) *$/i.exec(authorization ?? "")?.[1];
}
