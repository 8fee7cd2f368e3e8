import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { Duplex, Readable } from "node:stream";
import { expect, test } from "vitest";
import { systemClock } from "../lifecycle/clock.ts";
import { askKept, KeptConnections } from "./kept-connections.ts";

const LONG = 300_000;

/** Answers each request with how many connections it has had, and how many requests came on this one; "/close" closes it afterwards, "/hang" before. */
async function server() {
  const sockets: Socket[] = [];
  const listening = createServer((socket) => {
    const connection = sockets.push(socket);
    let requests = 0;
    let seen = "";
    socket.on("error", () => undefined).on("data", (chunk) => {
      seen += String(chunk);
      for (let end = seen.indexOf("\r\n\r\n"); end >= 0; end = seen.indexOf("\r\n\r\n")) {
        const [, method, path] = /^(\S+) (\S+)/.exec(seen)!;
        const length = method === "POST" ? Number(/content-length: (\d+)/i.exec(seen)![1]) : 0;
        if (seen.length < end + 4 + length) return;
        seen = seen.slice(end + 4 + length);
        requests++;
        if (path === "/hang") return void socket.destroy();
        const text = `${connection}.${requests}`.padEnd(path === "/long" ? LONG : 0);
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n${path === "/close" ? "Connection: close\r\n" : ""}\r\n${text}`);
      }
    });
  });
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  const { port } = listening.address() as AddressInfo;
  return { sockets, dial: async () => connect(port, "127.0.0.1"), [Symbol.dispose]: () => { for (const socket of sockets) socket.destroy(); listening.close(); } };
}

const { signal } = new AbortController();

test("one connection carries one request after another, several at once have one each, and what is closed is not used again", async () => {
  using backend = await server();
  const kept = new KeptConnections(systemClock);
  const ask = async (target = "/", key = "a"): Promise<string> => {
    const headers = [["Host", "h"], ["Content-Length", "2"]] as const;
    const { body } = await askKept((fresh) => kept.open(key, backend.dial, { fresh }), () => ({ method: "POST", target, headers, body: Readable.from([Buffer.from("hi")]) }), signal);
    let text = "";
    for await (const chunk of body) text += String(chunk);
    return text;
  };
  expect([await ask(), await ask(), await ask()]).toEqual(["1.1", "1.2", "1.3"]);
  expect((await Promise.all([ask(), ask()])).sort()).toEqual(["1.4", "2.1"]);
  expect(kept.size).toBe(2);
  expect(await ask("/", "b")).toBe("3.1"); // another place
  const used = (await ask("/close")).split(".")[0]!;
  const other = used === "1" ? "2" : "1";
  expect((await ask()).split(".")[0]).toBe(other);
  backend.sockets[Number(other) - 1]!.destroy();
  expect(await ask()).toBe("4.1"); // whether its end was heard of or not
  await expect(ask("/hang")).rejects.toThrow("EOF"); // on the kept one, and on a new one
  kept.close();
  expect(kept.size).toBe(0);
});

test("a connection that brought a long answer, which was read late, brings the next one too", async () => {
  using backend = await server();
  const kept = new KeptConnections(systemClock);
  const ask = async (target: string) => (await askKept((fresh) => kept.open("a", backend.dial, { fresh }), () => ({ method: "GET", target, headers: [["Host", "h"]] }), signal)).body;
  for (let round = 1; round < 6; round += 2) {
    const long = await ask("/long");
    while (kept.size === 0) {
      await systemClock.sleep(1, signal);
      if (long.readableLength > 0) long.read();
    }
    let text = "";
    for await (const chunk of await ask("/")) text += String(chunk);
    expect(text).toBe(`1.${round + 1}`);
  }
  kept.close();
});

test("what nobody asks for is closed after a while", async () => {
  using backend = await server();
  let due: (() => void) | undefined;
  const kept = new KeptConnections({ uptimeMs: () => 0, after: (_, act) => { due = act; return { cancel: () => { due = undefined; } }; } });
  const { connection, release } = await kept.open("a", backend.dial);
  release(connection);
  expect([kept.size, connection.destroyed]).toEqual([1, false]);
  due!();
  expect([kept.size, connection.destroyed]).toEqual([0, true]);
});

test("who must not be kept waiting for an end is given none that has been quiet for long", async () => {
  using backend = await server();
  let nowMs = 0;
  const kept = new KeptConnections({ ...systemClock, uptimeMs: () => nowMs }, { idleMs: 1_000_000, perKey: 1, all: 9 });
  const first = await kept.open("a", backend.dial), second = await kept.open("a", backend.dial);
  for (const { connection, release } of [first, second]) release(connection);
  expect([kept.size, second.connection.destroyed]).toEqual([1, true]); // one for each key
  nowMs = 999;
  const again = await kept.open("a", backend.dial, { quietMs: 1_000 });
  expect(again).toMatchObject({ connection: first.connection, reused: true });
  again.release(again.connection);
  nowMs = 1_999;
  const anew = await kept.open("a", backend.dial, { quietMs: 1_000 });
  expect(anew.reused).toBe(false);
  anew.connection.on("error", () => undefined).destroy();
  kept.close();
});

test("one for which there is no room is closed, and what it says afterwards is heard by nobody", async () => {
  const kept = new KeptConnections(systemClock, { idleMs: 60_000, perKey: 0, all: 0 });
  const { promise, resolve } = Promise.withResolvers<void>();
  const connection = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done(), destroy: (_error, done) => { setImmediate(() => { done(new Error("write EPIPE")); setImmediate(resolve); }); } });
  (await kept.open("a", async () => connection)).release(connection);
  await promise; // an error that nobody handled would have ended the process
  expect([connection.destroyed, kept.size]).toEqual([true, 0]);
});
