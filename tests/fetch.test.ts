import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, describe, it } from "node:test";
import { addressUnder, hide, onceFetch, readText, ReplyTooLong, sayWhy } from "../src/fetch.ts";

const servers: Server[] = [];
after(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});

function listen(server: Server): Promise<string> {
  servers.push(server);
  return new Promise((done) =>
    server.listen(0, "127.0.0.1", () => done(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
  );
}

/** Answers the first request, so that its connection can be reused, and drops all after it, having read them whole. */
function droppingServer() {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => body += chunk);
    request.on("end", () => {
      bodies.push(body);
      if (bodies.length > 1) return request.socket.destroy();
      response.end(body);
    });
  });
  return { server, bodies };
}

describe("fetch", () => {
  it("a POST on a reused connection that is dropped reaches the server once, and the drop is told", async () => {
    const { server, bodies } = droppingServer();
    const url = await listen(server);
    const once = onceFetch(fetch);
    assert.equal(await (await once(url, { method: "POST", body: "first" })).text(), "first");
    await assert.rejects(async () => await (await once(url, { method: "POST", body: "second" })).text());
    assert.deepEqual(bodies, ["first", "second"]);
  });

  it("a POST with no body is guarded too", async () => {
    const { server, bodies } = droppingServer();
    const url = await listen(server);
    const once = onceFetch(fetch);
    await (await once(url, { method: "POST" })).text();
    await assert.rejects(() => once(url, { method: "POST" }));
    assert.equal(bodies.length, 2);
  });

  it("bodies of every kind arrive whole with their type", async () => {
    const got: [string | undefined, string][] = [];
    const url = await listen(createServer((request, response) => {
      let body = "";
      request.setEncoding("utf8").on("data", (chunk) => body += chunk);
      request.on("end", () => {
        got.push([request.headers["content-type"], body]);
        response.end();
      });
    }));
    const once = onceFetch(fetch);
    const bodies = [
      "tëxt",
      new TextEncoder().encode("bytes"),
      new URLSearchParams({ a: "1" }),
      new Response("streamed").body!,
    ];
    for (const body of bodies) await (await once(url, { method: "POST", body })).text();
    await (await once(url, { method: "post", body: "{}", headers: { "content-type": "application/json" } }))
      .text();
    assert.deepEqual(got.map(([, body]) => body), ["tëxt", "bytes", "a=1", "streamed", "{}"]);
    assert.equal(got[4]![0], "application/json");
    assert.match(got[2]![0]!, /urlencoded/);
  });

  it("a reply is read up to its bound, strictly or cut", async () => {
    assert.equal(await readText(new Response("abcdef"), 4), "abcd");
    assert.equal(await readText(new Response("abcd"), 4), "abcd");
    await assert.rejects(() => readText(new Response("abcdef"), 4, { strict: true }), ReplyTooLong);
  });

  it("an error names neither an address's path and query nor a key", async () => {
    const gone = createServer();
    const url = await listen(gone);
    await new Promise((done) => gone.close(done));
    for (const address of [`${url}/secret/path?key=secret`, "http://secret.invalid/secret"]) {
      const why = await fetch(address).then(() => "", sayWhy);
      assert.notEqual(why, "");
      assert.doesNotMatch(why, /secret/);
    }
    assert.equal(
      hide("no model at http://user:pw@h:1/secret?k=v for sk-12345678\n(really)", ["sk-12345678"]),
      "no model at http://h:1 for … (really)",
    );
  });

  it("an address with a password becomes one without, and a header", () => {
    assert.deepEqual(addressUnder("http://u:p%40@h/v1/?k=1", "/models"), {
      url: "http://h/v1/models?k=1",
      headers: { authorization: `Basic ${btoa("u:p@")}` },
    });
    assert.equal(addressUnder("file:///etc", "/x"), undefined);
    assert.equal(addressUnder("nonsense", "/x"), undefined);
  });
});
