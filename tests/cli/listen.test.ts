import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { after, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { listen, type Listening } from "../../src/cli/listen.ts";
import { failedBy } from "../../src/errors.ts";

const open: Listening[] = [];
after(() => {
  for (const listening of open) {
    void listening.stop();
    listening.cut();
  }
});

async function started(fetch: (request: Request) => Response | Promise<Response>): Promise<Listening> {
  const listening = await listen({ host: "127.0.0.1", port: 0, fetch });
  open.push(listening);
  return listening;
}

/** A raw connection: what a client sees byte by byte. */
function raw(port: number) {
  const socket: Socket = connect(port, "127.0.0.1");
  let got = "", ended = false;
  let changed = () => {};
  socket.on("data", (chunk) => {
    got += chunk;
    changed();
  });
  socket.on("close", () => {
    ended = true;
    changed();
  });
  socket.on("error", () => {});
  const until = async (done: () => boolean) => {
    while (!done() && !ended) await new Promise<void>((next) => changed = next);
  };
  return {
    socket,
    connected: new Promise<void>((done) => socket.once("connect", () => done())),
    ask: (path: string) => socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`),
    /** Everything read so far, once `text` is in it or the connection is closed. */
    read: async (text: string) => {
      await until(() => got.includes(text));
      return got;
    },
    closed: () => until(() => false),
    isClosed: () => ended,
  };
}

const echo = (request: Request) => new Response(`said ${new URL(request.url).pathname}`);

describe("listen", () => {
  it("A4 closing, it refuses new connections and answers whatever comes on those it has, however long idle", async () => {
    const { port, stop, gone } = await started(echo);
    const used = raw(port), fresh = raw(port);
    await Promise.all([used.connected, fresh.connected]);
    used.ask("/one");
    assert.match(await used.read("said /one"), /^HTTP\/1\.1 200/);

    let settled = false;
    await stop();
    const closing = gone().then(() => settled = true);
    await sleep(6500); // past what the server announced as its keep-alive
    assert.equal(used.isClosed(), false);
    const late = raw(port);
    await late.closed();
    assert.equal(await late.read("never"), "");

    used.ask("/two");
    assert.match(await used.read("said /two"), /said \/two/);
    used.ask("/three");
    assert.match(await used.read("said /three"), /said \/three/);
    fresh.ask("/first");
    assert.match(await fresh.read("said /first"), /said \/first/);
    assert.equal(settled, false);

    used.socket.end();
    fresh.socket.end();
    await closing;
  });

  it("A4 a connection that the system had taken when it closes is answered", async () => {
    const { port, stop, gone } = await started(echo);
    const asked = raw(port);
    await asked.connected;
    asked.ask("/just-before");
    await stop();
    const closing = gone();
    assert.match(await asked.read("said"), /said \/just-before/);
    asked.socket.end();
    await closing;
  });

  it("cut ends what is left at once", async () => {
    const { port, stop, gone, cut } = await started(echo);
    const idle = raw(port);
    await idle.connected;
    idle.ask("/");
    await idle.read("said");
    await stop();
    const closing = gone();
    cut();
    await closing;
    await idle.closed();
  });

  it("B82 a port that is taken is told with its number and who asked for it", async () => {
    const { port } = await started(echo);
    await assert.rejects(
      listen({ host: "127.0.0.1", port, agent: "mia", fetch: echo }),
      (error) =>
        failedBy(error, "port_taken") && error.exit === 75 && error.message.includes(`Port ${port}`) &&
        error.message.includes("mia"),
    );
  });

  it("an address that is not this machine's is told as used wrongly", async () => {
    await assert.rejects(
      listen({ host: "192.0.2.1", port: 0, fetch: echo }),
      (error) => failedBy(error, "usage") && error.message.includes("192.0.2.1"),
    );
  });

  it("what is no valid request is answered in the form of every error", async () => {
    const { port } = await started(echo);
    const asked = raw(port);
    await asked.connected;
    asked.socket.write("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n");
    assert.match(await asked.read("}}"), /^HTTP\/1\.1 400 [\s\S]*"code":"invalid"/);
    asked.socket.destroy();
  });
});
