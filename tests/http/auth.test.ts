import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newKey } from "../../src/agent/keys.ts";
import { makeRig } from "./rig.ts";

describe("who may ask", () => {
  const rig = makeRig(["mia", "leo"]);
  const [mia, leo] = ["mia", "leo"].map((name) => rig.agents.get(name)!.key) as [string, string];

  // Rows: what the header says. Columns: the agent named. Cells: the status.
  const names = { own: "mia", other: "leo", unserved: "zoe", noName: "No%20Name", broken: "%ZZ" };
  const rows: [string, string | undefined, Record<keyof typeof names, number>][] = [
    ["no header", undefined, { own: 401, other: 401, unserved: 401, noName: 401, broken: 401 }],
    ["an empty header", "", { own: 401, other: 401, unserved: 401, noName: 401, broken: 401 }],
    ["another scheme", `Basic ${mia}`, { own: 401, other: 401, unserved: 401, noName: 401, broken: 401 }],
    ["no key after Bearer", "Bearer ", { own: 401, other: 401, unserved: 401, noName: 401, broken: 401 }],
    ["the bare key", mia, { own: 401, other: 401, unserved: 401, noName: 401, broken: 401 }],
    ["two keys", `Bearer ${mia} ${leo}`, { own: 401, other: 401, unserved: 401, noName: 401, broken: 401 }],
    ["a key of nobody", `Bearer ${newKey()}`, {
      own: 401,
      other: 401,
      unserved: 401,
      noName: 401,
      broken: 401,
    }],
    ["half a key", `Bearer ${mia.slice(0, 32)}`, {
      own: 401,
      other: 401,
      unserved: 401,
      noName: 401,
      broken: 401,
    }],
    ["mia's key", `Bearer ${mia}`, { own: 200, other: 403, unserved: 403, noName: 403, broken: 403 }],
    ["mia's key, scheme in lower case", `bearer ${mia}`, {
      own: 200,
      other: 403,
      unserved: 403,
      noName: 403,
      broken: 403,
    }],
    ["leo's key", `Bearer ${leo}`, { own: 403, other: 200, unserved: 403, noName: 403, broken: 403 }],
  ];

  for (const [title, header, cells] of rows) {
    it(`A3 with ${title}: ${JSON.stringify(cells)}`, async () => {
      for (const [column, status] of Object.entries(cells)) {
        for (
          const path of ["", "/asp/settings", "/asp/turn", "/no/such/path", "/asp/conversations/%ZZ/events"]
        ) {
          const name = names[column as keyof typeof names];
          const response = await rig.ask("GET", `/agents/${name}${path}`, {
            key: null,
            headers: header === undefined ? {} : { authorization: header },
          });
          const allowed = { "": 200, "/asp/settings": 200, "/asp/turn": 405, "/no/such/path": 404 }[path] ??
            400;
          assert.equal(response.status, status === 200 ? allowed : status, `${column} ${path}`);
          const { error } = await response.json();
          if (status === 401) assert.equal(error.code, "unauthorized");
          if (status === 403) assert.equal(error.code, "forbidden");
          assert.equal(response.headers.get("www-authenticate"), status === 401 ? "Bearer" : null);
        }
      }
    });
  }

  it("A3 a name that is served cannot be told from one that is not, by the key of another", async () => {
    const ask = async (name: string) => {
      const response = await rig.ask("GET", `/agents/${name}`, { key: leo });
      const headers = [...response.headers].filter(([name]) => name !== "date");
      return { status: response.status, headers, body: await response.text() };
    };
    assert.deepEqual(await ask("mia"), await ask("zoe"));
  });

  it("without a key there is only /healthz; everything outside the agents is not found", async () => {
    assert.equal((await rig.ask("GET", "/healthz", { key: null })).status, 200);
    for (const path of ["/", "/agents", "/agents/", "/metrics", "/asp/turn", "/healthz/"]) {
      const response = await rig.ask("GET", path, { key: null });
      assert.equal(response.status, 404, path);
      assert.equal((await response.json()).error.code, "not_found");
    }
    assert.equal((await rig.ask("GET", "/%ZZ", { key: null })).status, 400);
  });
});
