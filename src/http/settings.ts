// The doors of an agent's settings: shown masked, replaced whole, or changed by a JSON merge patch.

import { effective, type Spec } from "../agent/settings.ts";
import { maskSpec } from "../agent/spec_change.ts";
import { readJson, readQuery } from "./body.ts";
import type { Door, Route } from "./door.ts";
import { settingsQuery } from "./schemas.ts";

export function settingsRoutes(): Route[] {
  const path = "/agents/:agent/asp/settings";
  return [
    { method: "GET", path, handle: async (door) => shown(door, await door.get("agent").config.spec()) },
    {
      method: "PUT",
      path,
      handle: async (door) => shown(door, await door.get("agent").config.put(await readJson(door.req.raw))),
    },
    {
      method: "PATCH",
      path,
      handle: async (door) => shown(door, await door.get("agent").config.patch(await readJson(door.req.raw))),
    },
  ];
}

/** What stands now; with `?effective=true` what it stands for, defaults included. */
function shown(door: Door, spec: Spec): Response {
  const query = readQuery(door.req.url, settingsQuery);
  return door.json(maskSpec(query.effective ? effective(spec) as Spec : spec));
}
