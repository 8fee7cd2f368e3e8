import * as net from "node:net";
import * as tls from "node:tls";
import { afterEach, expect, test } from "vitest";
import { Chance, garbledBytes } from "../../test/fuzz/chance.ts";
import { servingMaterial, testPki } from "../../test/certificates.ts";
import { hastyServer } from "../../test/hasty-server.ts";
import { systemClock as clock } from "../../core/lifecycle/clock.ts";
import { silentLog as log } from "../../core/observe/log.ts";
import { serverNameOf } from "./client-hello.ts";
import { passthroughServer } from "./passthrough.ts";
import { Upstreams } from "./upstreams.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => { for (const close of closing.splice(0).reverse()) await close(); });

const portOf = (server: net.Server): Promise<number> => new Promise((resolve) => void server.listen(0, "127.0.0.1", () => {
  closing.push(() => server.close());
  resolve((server.address() as net.AddressInfo).port);
}));
/** What a client of TLS says first. */
async function helloFor(options: tls.ConnectionOptions): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  const port = await portOf(net.createServer((socket) => void socket.on("error", () => undefined).once("data", (bytes) => {
    resolve(bytes as Buffer);
    socket.destroy();
  })));
  tls.connect({ port, host: "127.0.0.1", ...options }).on("error", () => undefined);
  return await promise;
}

test("the name a client asks for, however its first words are cut", async () => {
  const hello = await helloFor({ servername: "Web.Example", ALPNProtocols: ["h2", "http/1.1"] });
  expect(serverNameOf(hello)).toEqual({ name: "web.example" });
  for (const cut of [0, 1, 5, 6, 9, 50, hello.length - 1]) expect(serverNameOf(hello.subarray(0, cut)), `${cut}`).toBe("more");
  const record = (part: Buffer): Buffer => Buffer.concat([Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part]);
  const body = hello.subarray(5);
  expect(serverNameOf(Buffer.concat([record(body.subarray(0, 2)), record(body.subarray(2, 100)), record(body.subarray(100))])), "in several records").toEqual({ name: "web.example" });
  expect(serverNameOf(Buffer.concat([...body].map((byte) => record(Buffer.from([byte]))))), "in more records than it may").toBeUndefined();
  expect(serverNameOf(await helloFor({}))).toEqual({ name: "" });
  const short = Buffer.from(hello);
  short.writeUInt16BE(60_000, 5 + 4 + 34 + 1 + short[5 + 4 + 34]!);
  expect([serverNameOf(Buffer.from("GET / HTTP/1.1\r\n")), serverNameOf(Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 1])), serverNameOf(Buffer.from([22, 3, 1, 0, 4, 1, 255, 255, 255])), serverNameOf(short)]).toEqual([undefined, undefined, undefined, undefined]);
});

test("whatever else comes is no name, and no error", async () => {
  const hello = await helloFor({ servername: "web.example" });
  for (let seed = 1; seed <= 2_000; seed++) expect(() => serverNameOf(Buffer.from(garbledBytes(new Chance(seed), hello))), `seed ${seed}`).not.toThrow();
});

test("a connection is joined with an endpoint's by its name; others are hung up on", async () => {
  const identity = servingMaterial(await testPki());
  const endpoint = await portOf(tls.createServer(identity, (socket) => void socket.on("error", () => undefined).on("data", (bytes) => void socket.end(`seen ${(socket as tls.TLSSocket & { servername?: string }).servername} ${bytes}`))));
  const plain = await portOf(net.createServer((socket) => void socket.on("error", () => undefined).on("data", (bytes) => void socket.end(`plain ${bytes}`))));
  const free = net.createServer(), port = await portOf(free);
  await new Promise<void>((done) => void free.close(() => done()));
  const stop = new AbortController(), under: string[] = [];
  const server = passthroughServer({
    host: "127.0.0.1", door: port, port: 443, named: true, clock, log, connectionsMax: 2, upstreams: Object.assign(new Upstreams(clock, () => []), { begin: () => void under.push("+"), end: () => void under.push("-") }),
    router: {
      planName: (name) => (name === "web.example" ? { endpoints: [{ address: "127.0.0.1", port: endpoint }], tls: undefined } : name.endsWith("ended.example") ? { endpoints: [{ address: "127.0.0.1", port: plain }], tls: undefined } : undefined),
      listenerOf: (name) => name, pick: (endpoints) => endpoints[0]!,
    },
    ends: (listener) => listener.endsWith("ended.example"), contextFor: (name) => (name === "ended.example" ? tls.createSecureContext(identity) : undefined), web: () => undefined,
  });
  const { promise: ready, resolve } = Promise.withResolvers<void>();
  const life = server.run(stop.signal, resolve);
  await ready;
  const ask = (servername: string): Promise<string> => new Promise((done) => {
    let text = "";
    const socket = tls.connect({ port, host: "127.0.0.1", servername, rejectUnauthorized: false }, () => void socket.write("hello"));
    socket.on("data", (bytes) => (text += bytes.toString())).on("error", () => undefined).on("close", () => done(text));
  });
  expect([await ask("web.example"), await ask("other.example"), await ask("ended.example"), await ask("un.ended.example")], "passed on, refused, ended here, without a certificate").toEqual(["seen web.example hello", "", "plain hello", ""]);
  expect(await new Promise((done) => void net.connect(port, "127.0.0.1").on("error", () => undefined).on("close", () => done("closed")).write("GET / HTTP/1.1\r\n\r\n"))).toBe("closed");
  const silent = await Promise.all([0, 1, 2].map(() => new Promise<net.Socket>((done) => { const socket = net.connect(port, "127.0.0.1", () => done(socket)).on("error", () => undefined); closing.push(() => socket.destroy()); })));
  expect(await ask("web.example"), "beside more that say nothing than there may be").toBe("seen web.example hello");
  expect(silent.filter((socket) => !socket.destroyed).length).toBeLessThan(3);
  stop.abort();
  await life;
  await expect.poll(() => under.join("")).toBe("+-+-+-");
});

test("connections of a listener for TCP are joined with an endpoint's as they are, whoever speaks first", async () => {
  const endpoint = await portOf(net.createServer((socket) => {
    socket.on("error", () => undefined).write("220 ready\r\n");
    socket.on("data", (bytes) => void socket.end(`seen ${bytes}`));
  }));
  const free = net.createServer(), port = await portOf(free);
  await new Promise<void>((done) => void free.close(() => done()));
  const stop = new AbortController();
  const server = passthroughServer({
    host: "127.0.0.1", door: port, port: 25, named: false, clock, log, upstreams: new Upstreams(clock, () => []), ends: () => true, contextFor: () => undefined, web: () => undefined,
    router: { planName: (name) => (name === "" ? { endpoints: [{ address: "127.0.0.1", port: endpoint }], tls: undefined } : undefined), listenerOf: () => "", pick: (endpoints) => endpoints[0]! },
  });
  const { promise: ready, resolve } = Promise.withResolvers<void>();
  const life = server.run(stop.signal, resolve);
  await ready;
  const ask = (early: boolean): Promise<string> => new Promise((done) => {
    let text = "";
    const socket = net.connect(port, "127.0.0.1", () => { if (early) socket.write("hello"); });
    socket.on("data", (bytes) => {
      text += bytes.toString();
      if (!early && text === "220 ready\r\n") socket.write("hello");
    }).on("close", () => done(text));
  });
  expect([await ask(true), await ask(false)]).toEqual(["220 ready\r\nseen hello", "220 ready\r\nseen hello"]);
  stop.abort();
  await life;
});

test("what an endpoint says last that closes without having read all, while more comes, is heard", async () => {
  await using hasty = await hastyServer();
  const free = net.createServer(), port = await portOf(free);
  await new Promise<void>((done) => void free.close(() => done()));
  const stop = new AbortController(), { promise: ready, resolve } = Promise.withResolvers<void>();
  const life = passthroughServer({
    host: "127.0.0.1", door: port, port: 25, named: false, clock, log, upstreams: new Upstreams(clock, () => []), ends: () => true, contextFor: () => undefined, web: () => undefined,
    router: { planName: () => ({ endpoints: [{ address: "127.0.0.1", port: hasty.port }], tls: undefined }), listenerOf: () => "", pick: (endpoints) => endpoints[0]! },
  }).run(stop.signal, resolve);
  await ready;
  const client = net.connect(port, "127.0.0.1"), { promise: heard, resolve: closed } = Promise.withResolvers<string>();
  let text = "";
  client.on("data", (bytes) => { text += bytes.toString(); }).on("error", () => undefined).on("close", () => closed(text));
  client.write("unread");
  const peer = await hasty.peer;
  await clock.sleep(20, stop.signal);
  client.write("more");
  peer.write("421 busy\r\n", () => void peer.destroy());
  expect(await heard).toBe("421 busy\r\n");
  stop.abort();
  await life;
});
