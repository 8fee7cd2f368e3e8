import { rmSync } from "node:fs";
import * as net from "node:net";
import * as tls from "node:tls";
import { createSocket } from "node:dgram";
import { Duplex, PassThrough } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { listeners } from "../../core/dns/listeners.ts";
import { forwarder } from "../../core/dns/forwarder.ts";
import { nameBytes, readQuery, writeQuery, writeReply } from "../../core/dns/wire.ts";
import { systemClock as clock } from "../../core/lifecycle/clock.ts";
import { systemRandom as random } from "../../core/lifecycle/random.ts";
import { dialTcp } from "../../core/net/dial-tcp.ts";
import { dialTls } from "../../core/net/dial-tls.ts";
import { http1Request } from "../../core/net/http1-client.ts";
import { httpServer, httpsServer, type HttpsServer } from "../../core/net/http-server.ts";
import { webSocket, webSocketAnswer } from "../../core/net/websocket.ts";
import { silentLog as log } from "../../core/observe/log.ts";
import type { Answer } from "../../core/server/answer.ts";
import { httpFront } from "../../core/server/http.ts";
import { checkGrpcHealth } from "../../node/cri/grpc-health.ts";
import { H2Upstreams } from "../../node/ingress/h2-upstreams.ts";
import { Upstreams } from "../../node/ingress/upstreams.ts";
import { httpGetAction } from "../../node/kubelet/probes/http-get.ts";
import { translateStreams, V5 } from "../../node/kubelet/server/stream-translator.ts";
import { AgentSession } from "../../node/tunnel/agent-session.ts";
import { spdyClient } from "../../core/net/spdy/spdy.ts";
import { NodeSession } from "../../core/tunnel/node-session.ts";
import { encodePacket } from "../../core/tunnel/packet.ts";
import { servingMaterial, testPki } from "../certificates.ts";
import { ingressFront, talk } from "../ingress-front.ts";
import { garbledBytes } from "./chance.ts";
import { askHostile, garbledSeed, h2Frame, rounds, sendHostile, unhandled } from "./hostile.ts";

const SEED = 20_261_120;
const text = (...lines: readonly string[]): Buffer => Buffer.from(lines.join("\r\n"));

let pki: Awaited<ReturnType<typeof testPki>>;
let identity: { key: string; cert: string };
beforeAll(async () => {
  pki = await testPki();
  identity = servingMaterial(pki);
});
afterAll(() => rmSync(pki.dir, { recursive: true, force: true }));

/** A connection whose other end says nothing by itself: a PassThrough would say everything again. */
function sink(): Duplex { return new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() }); }

async function bytesOf(body: AsyncIterable<Uint8Array>): Promise<void> { for await (const _ of body); }

describe("answers of pods", () => {
  const HTTP1 = [
    text("HTTP/1.1 200 OK", "Content-Length: 5", "", "hello"), text("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "", "5", "hello", "0", "x: y", "", ""), text("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "", "-6", "hello"),
    text("HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "", "abc"), text("HTTP/1.1 100 Continue", "", "HTTP/1.1 302 Found", "Location: http://[::1:", "", ""), Buffer.from("HTTP/1.0 200\nA:b\n\nx"),
  ];
  const BEGIN = Buffer.concat([h2Frame(4, 0, 0), h2Frame(4, 1, 0)]), OK = [0x88], TRAILERS = [0, 1, 0x78, 1, 0x79];
  const HTTP2 = [
    Buffer.concat([BEGIN, h2Frame(1, 4, 1, OK), h2Frame(0, 0, 1, "hello"), h2Frame(1, 5, 1, TRAILERS)]), Buffer.concat([BEGIN, h2Frame(1, 5, 1, OK)]), Buffer.concat([BEGIN, h2Frame(3, 0, 1, [0, 0, 0, 2]), h2Frame(7, 0, 0, [0, 0, 0, 0, 0, 0, 0, 1])]),
    Buffer.concat([BEGIN, h2Frame(1, 4, 2, OK), h2Frame(1, 0, 0, "x")]), // a stream nobody asked for, and then the connection's end
    Buffer.concat([BEGIN, h2Frame(5, 4, 1, [0, 0, 0, 2, 0x88]), h2Frame(8, 0, 0, [0, 0, 0, 0]), h2Frame(6, 0, 0, Buffer.alloc(8)), h2Frame(9, 4, 1, OK)]),
  ];
  const probe = (scheme: string) => async (port: number, signal: AbortSignal) => await httpGetAction({ port, path: "/", scheme } as never, { name: "c" } as never, { podIp: "127.0.0.1", purpose: "probe", version: "1.36", timeoutMs: 50, clock, signal });
  const request = { method: "GET", target: "/", headers: [["Host", "x"]] } as const;
  const ANYBODY = { key: "", ca: undefined, serverName: undefined, names: [] };
  const throughIngress = (secure: boolean) => async (port: number, signal: AbortSignal) => {
    const upstreams = new Upstreams(clock, () => []), endpoint = { address: "127.0.0.1", port } as never;
    const { connection, release } = await upstreams.acquire(endpoint, { tls: secure ? ANYBODY : undefined, fresh: true, signal });
    await bytesOf((await http1Request(connection, { ...request, release }, signal)).body);
    setTimeout(() => upstreams.close(), 3);
  };

  test.each<[string, readonly Buffer[], boolean, (port: number, signal: AbortSignal) => Promise<unknown>]>([
    ["an HTTP probe", HTTP1, false, probe("HTTP")],
    ["an HTTPS probe", HTTP1, true, probe("HTTPS")],
    ["a gRPC probe", HTTP2, false, async (port) => await checkGrpcHealth({ host: "127.0.0.1", port, service: "", timeoutMs: 50, userAgent: "x", nowMs: clock.nowMs })],
    ["a proxy of the API server", HTTP1, true, async (port, signal) => {
      const connection = await dialTls(await dialTcp({ host: "127.0.0.1", port, timeoutMs: 50 }, { clock, signal }), { ca: undefined, serverName: "x", insecure: true, signal });
      await bytesOf((await http1Request(connection, request, signal)).body);
    }],
    ["the ingress over HTTP", HTTP1, false, throughIngress(false)],
    ["the ingress over HTTPS", HTTP1, true, throughIngress(true)],
    ["the ingress over h2c", HTTP2, false, async (port, signal) => {
      const upstreams = new H2Upstreams(clock, new Upstreams(clock, () => []));
      const ask = await upstreams.connect({ address: "127.0.0.1", port } as never, undefined);
      await bytesOf((await ask({ ...request, headers: [["host", "x"]] }, signal)).body).finally(() => upstreams.sweep(0));
    }],
    ["the ingress, whose client is served", HTTP1, false, async (port) => {
      const { port: to, close } = await ingressFront({ ports: [port] });
      await talk(to, "GET / HTTP/1.1\r\nHost: x\r\n\r\nPOST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n").finally(close);
    }],
  ])("%s fails, or does not", async (_, seeds, secure, ask) => {
    using seen = unhandled();
    await rounds(SEED, 96, async (chance) => await askHostile(chance, { bytes: garbledSeed(chance, seeds), ...(secure && { identity }) }, ask));
    expect(seen.errors).toEqual([]);
  });
});

describe("what clients send to the servers of HTTP", () => {
  const stop = new AbortController();
  const lives: Promise<void>[] = [];
  let secure: HttpsServer, plain: HttpsServer;
  const front = httpFront({
    clock, log, stopping: () => stop.signal, columnTexts: () => Promise.resolve(undefined) as never,
    handler: async (request): Promise<Answer> => {
      if (request.method !== "GET") await request.body();
      return { type: "raw", status: 200, headers: { "content-type": "text/plain" }, body: "x".repeat(5_000) };
    },
  });
  beforeAll(async () => {
    const common: Parameters<typeof httpServer>[0] = {
      host: "127.0.0.1", port: 0, portFlag: "x", log, clock, handler: front.request, limits: { drainMs: 100 },
      upgrade(request, socket, { head }) {
        socket.write(webSocketAnswer("x", undefined));
        if (request.url === "/exec") return void translateStreams({ protocol: V5, client: { socket, early: head }, runtime: { socket: new PassThrough(), early: new Uint8Array(0) }, options: { stdin: true, stdout: true, stderr: true, tty: false }, clock });
        const peer = webSocket(socket, { early: head, clock, message: (data, type) => void peer.send([data], type), closed: () => undefined });
      },
    };
    secure = httpsServer({ ...common, tls: () => servingMaterial(pki) });
    plain = httpServer(common);
    for (const server of [secure, plain]) await new Promise<void>((ready) => void lives.push(server.run(stop.signal, ready)));
  });
  afterAll(async () => {
    stop.abort();
    await Promise.all(lives);
  });

  const masked = (opcode: number, payload: readonly number[] | string): Buffer => Buffer.concat([Buffer.from([0x80 | opcode, 0x80 | payload.length, 0, 0, 0, 0]), Buffer.from(payload as string)]);
  const upgrade = (path: string, to = "websocket"): Buffer => Buffer.concat([
    text(`GET ${path} HTTP/1.1`, "Host: x", "Connection: Upgrade", `Upgrade: ${to}`, "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13", "", ""),
    masked(2, "\0abc"), masked(1, "text"), masked(9, "ping"), masked(2, [255, 0]), masked(8, [3, 232]),
  ]);
  const HTTP1 = [
    text("GET /a HTTP/1.1", "Host: x", "", "POST /b HTTP/1.1", "Host: x", "Content-Length: 4", "", "bodyGET /c HTTP/1.1", "Host: x", "", ""), text("POST / HTTP/1.1", "Host: x", "Transfer-Encoding: chunked", "Content-Length: 3", "", "4", "body", "0", "t: u", "", ""),
    text("CONNECT x:1 HTTP/1.1", "Host: x", "Expect: 100-continue", "", "abc"), text("PUT http://[::1/x%zz HTTP/1.0", "Expect: foo", "Connection: keep-alive", "Content-Length: 99", "", "short"), text("GET / HTTP/1.1", "Host: x", `X: ${"a".repeat(70_000)}`, "", ""),
    upgrade("/exec"), upgrade("/echo"), upgrade("/echo", "SPDY/3.1"), upgrade("/echo", "h2c"),
  ];
  const BEGIN = Buffer.concat([text("PRI * HTTP/2.0", "", "SM", "", ""), h2Frame(4, 0, 0)]);
  const GET = [0x82, 0x84, 0x87, 0x41, 1, 0x78], POST = [0x83, ...GET.slice(1)], CONNECT = [2, 7, ...Buffer.from("CONNECT"), 0x41, 1, 0x78], TRAILERS = [0, 1, 0x78, 1, 0x79];
  const HTTP2 = [
    Buffer.concat([BEGIN, h2Frame(1, 5, 1, GET), h2Frame(1, 4, 3, POST), h2Frame(0, 1, 3, "body"), h2Frame(8, 0, 0, [0, 0, 1, 0]), h2Frame(3, 0, 1, [0, 0, 0, 8])]), Buffer.concat([BEGIN, h2Frame(1, 4, 1, POST), h2Frame(0, 0, 1, "body"), h2Frame(1, 5, 1, TRAILERS), h2Frame(6, 0, 0, Buffer.alloc(8))]),
    Buffer.concat([BEGIN, h2Frame(1, 4, 1, CONNECT), h2Frame(0, 0, 1, "body"), h2Frame(1, 4, 2, GET), h2Frame(7, 0, 0, Buffer.alloc(8)), h2Frame(2, 0, 5, [0, 0, 0, 5, 1])]), Buffer.concat([BEGIN, h2Frame(1, 0, 1, POST), h2Frame(9, 4, 1, TRAILERS), h2Frame(8, 0, 1, [0, 0, 0, 0]), h2Frame(5, 4, 1, [0, 0, 0, 2, 0x82])]),
  ];
  const overTls = (protocol: string) => (): net.Socket => tls.connect({ port: secure.address()!.port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: [protocol] });
  const ports = { secure: (): net.Socket => net.connect(secure.address()!.port, "127.0.0.1"), plain: (): net.Socket => net.connect(plain.address()!.port, "127.0.0.1") };
  /** What a client of TLS says first. */
  const clientHello = async (): Promise<Buffer> => await new Promise((resolve) => {
    const server = net.createServer((socket) => void socket.on("error", () => undefined).once("data", (data) => {
      resolve(data as Buffer);
      socket.destroy();
      server.close();
    })).listen(0, "127.0.0.1", () => tls.connect({ port: (server.address() as net.AddressInfo).port, host: "127.0.0.1", servername: "localhost", ALPNProtocols: ["h2"] }).on("error", () => undefined));
  });

  test.each<[string, () => Promise<readonly Buffer[]>, () => net.Socket, "connect" | "secureConnect"]>([
    ["HTTP/1.1", async () => HTTP1, ports.plain, "connect"], ["HTTP/1.1 over TLS", async () => HTTP1, overTls("http/1.1"), "secureConnect"], ["HTTP/2", async () => HTTP2, overTls("h2"), "secureConnect"],
    ["the beginning of TLS", async () => [await clientHello(), HTTP1[0]!], ports.secure, "connect"],
  ])("%s: others are served as before", async (_, seeds, connect, ready) => {
    using seen = unhandled();
    const given = await seeds();
    await rounds(SEED, 128, async (chance) => await sendHostile(chance, garbledSeed(chance, given), connect, ready));
    expect(seen.errors).toEqual([]);
    const { port } = secure.address()!;
    expect(await fetch(`https://127.0.0.1:${port}/`, { tls: { rejectUnauthorized: false } }).then((answer) => answer.status)).toBe(200);
  });
});

test("what clients send to the ingress: others are served as before, and endpoints are asked only what has a meaning", async () => {
  using seen = unhandled();
  const heads: string[] = [];
  const server = net.createServer((socket) => void socket.on("error", () => undefined).on("data", (chunk) => {
    heads.push(chunk.toString("latin1"));
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  }));
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  const { port, close } = await ingressFront({ ports: [(server.address() as net.AddressInfo).port] });
  const h2c = text("GET / HTTP/1.1", "Host: x", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk", "", "");
  const preface = Buffer.concat([text("PRI * HTTP/2.0", "", "SM", "", ""), h2Frame(4, 0, 0), h2Frame(1, 5, 3, [0x82, 0x84, 0x86, 0x41, 1, 0x78])]);
  const seeds = [
    text("GET /a HTTP/1.1", "Host: x", "", "POST /b HTTP/1.1", "Host: x", "Content-Length: 4", "", "bodyGET /c HTTP/1.1", "Host: x", "", ""), text("POST /smuggled HTTP/1.1", "Host: x", "Transfer-Encoding: chunked", "Content-Length: 3", "", "4", "body", "0", "t: u", "", ""),
    text("POST / HTTP/1.1", "Host: x", "Transfer-Encoding: chunked", "Expect: 100-continue", "", "4", "body", "0", "t: u", "", "GET / HTTP/1.0", "", ""), text("GET / HTTP/1.1", "Host: x", `X: ${"a".repeat(70_000)}`, "", ""), text("GET / HTTP/1.1", "Host: x", "Connection: Upgrade", "Upgrade: websocket", "", "abc"),
    h2c, Buffer.concat([h2c, preface]), preface,
  ];
  await rounds(SEED, 192, async (chance) => await sendHostile(chance, garbledSeed(chance, seeds), () => net.connect(port, "127.0.0.1"), "connect"));
  expect(seen.errors).toEqual([]);
  expect(await talk(port, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*ok$/);
  expect(heads.filter((head) => /content-length[\s\S]*transfer-encoding: chunked/i.test(head.split("\r\n\r\n")[0]!)), "one length or the other").toEqual([]);
  await close();
  server.close();
});

describe("DNS", () => {
  const question = { name: "a.test", nameBytes: nameBytes("a.test"), type: 1, class: 1 };
  const query = { id: 7, opcode: 0, recursionDesired: true, checkingDisabled: false, edns: undefined, question };

  test("questions over UDP and TCP", async () => {
    using seen = unhandled();
    const stop = new AbortController();
    const open = listeners({ clock, log, signal: stop.signal, mayAsk: () => true, async respond(message) {
      await Bun.sleep(1);
      return writeReply(readQuery(message) ?? query, { rcode: 0, authoritative: false, answers: [], authorities: [], additionals: [] }, 512);
    } });
    const port = await new Promise<number>((resolve) => { const free = net.createServer().listen(0, "127.0.0.1", () => { resolve((free.address() as net.AddressInfo).port); free.close(); }); });
    await open.update([{ address: "127.0.0.1", port }]);
    const asked = writeQuery(7, query), framed = Buffer.concat([Buffer.from([0, asked.length]), asked]);
    const udp = createSocket("udp4");
    await rounds(SEED, 64, async (chance) => {
      udp.send(garbledSeed(chance, [asked]), port, "127.0.0.1");
      await sendHostile(chance, garbledSeed(chance, [framed]), () => net.connect(port, "127.0.0.1"), "connect");
    });
    await open.update([]);
    udp.close();
    stop.abort();
    expect(seen.errors).toEqual([]);
  });

  test("answers of other name servers", async () => {
    using seen = unhandled();
    const reply = (message: Uint8Array): Uint8Array => writeReply(readQuery(message) ?? query, { rcode: 0, authoritative: false, answers: [{ type: "A", name: "a.test", ttl: 5, address: Uint8Array.of(1, 2, 3, 4) }], authorities: [], additionals: [] }, 512);
    await rounds(SEED, 64, async (chance) => {
      const udp = createSocket("udp4");
      await new Promise<void>((resolve) => udp.bind(0, "127.0.0.1", resolve));
      const { port } = udp.address();
      udp.on("message", (message, from) => {
        const bytes = garbledBytes(chance, reply(message));
        bytes.set(message.subarray(0, 2)); // whose id is right, at least
        for (let times = 1 + chance.below(3); times > 0; times--) udp.send(bytes, from.port, from.address, () => undefined);
        if (chance.is(0.2)) udp.send(reply(message), from.port, from.address, () => undefined);
      });
      const isThere = chance.is(0.9);
      if (!isThere) udp.close();
      const late = new AbortController();
      await Promise.race([forwarder({ upstreams: () => ["127.0.0.1"], port, clock, random }).ask(query, 512, { from: "127.0.0.1", signal: late.signal }).catch(() => undefined), Bun.sleep(10)]);
      late.abort();
      if (isThere) udp.close();
    });
    expect(seen.errors).toEqual([]);
  });
});

test("packets of the tunnel", async () => {
  using seen = unhandled();
  const packets = [
    { type: "DIAL_REQ", protocol: "tcp", address: "127.0.0.1:1", random: 5n }, { type: "DATA", connectId: 1, error: "", data: Buffer.from("x") }, { type: "FLOW", connectId: 1, credit: 9, end: true }, { type: "CLOSE_REQ", connectId: 1 }, { type: "DRAIN" },
  ] as const;
  const bytes = Buffer.concat(packets.map((packet) => encodePacket(packet as never)));
  await rounds(SEED, 128, async (chance) => {
    const stream = new PassThrough();
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const session = new AgentSession({ stream, peerWindowBytes: chance.is(0.5) ? 1000 : undefined, allowed: () => ({ host: "127.0.0.1", port: 1 }), onDial: () => undefined, onClose: resolve, clock, log });
    stream.write(garbledSeed(chance, [bytes]));
    await Bun.sleep(5);
    session.destroy();
    await promise;
  });
  expect(seen.errors).toEqual([]);
});

test("what agents of nodes answer over the tunnel: every dial comes to an end, and no connection is left", async () => {
  using seen = unhandled();
  const answers = [
    { type: "DIAL_RSP", random: 0n, connectId: 1, error: "" }, { type: "DIAL_RSP", random: 1n, connectId: 1, error: "" }, { type: "DIAL_RSP", random: 2n, connectId: 2, error: "refused" }, { type: "DIAL_RSP", random: 7n, connectId: 9, error: "" },
    { type: "DATA", connectId: 1, error: "", data: Buffer.from("x".repeat(200)) }, { type: "DATA", connectId: 1, error: "reset", data: Buffer.alloc(0) }, { type: "DATA", connectId: 77, error: "", data: Buffer.from("y") },
    { type: "FLOW", connectId: 1, credit: 9, end: false }, { type: "FLOW", connectId: 1, credit: 0, end: true }, { type: "CLOSE_RSP", connectId: 1, error: "" }, { type: "CLOSE_REQ", connectId: 1 }, { type: "DIAL_CLS", random: 3n }, { type: "DRAIN" },
    { type: "DIAL_REQ", protocol: "tcp", address: "127.0.0.1:1", random: 5n },
  ] as const;
  await rounds(SEED, 128, async (chance) => {
    const stream = sink();
    const closed = Promise.withResolvers<unknown>();
    let asked = 0n; // the ids of dials are known to who answers them
    const session = new NodeSession({
      nodeName: "n", stream, peerWindowBytes: chance.is(0.5) ? 1000 : undefined, onClose: closed.resolve, clock, random: { ...random, bytes: () => { const id = Buffer.alloc(8); id.writeBigUInt64BE(asked++ << 1n); return id; } },
    });
    const ends: Promise<unknown>[] = [];
    const dials = Array.from({ length: 4 }, async () => {
      const connection = await session.dial({ host: "10.0.0.1", port: 80, signal: AbortSignal.timeout(chance.below(20) + 1) });
      if (!connection.closed) ends.push(new Promise((resolve) => connection.on("close", resolve)));
      connection.on("error", () => undefined).on("data", () => undefined).write("hello");
      const how = chance.below(4);
      if (how === 0) connection.end("bye");
      else if (how === 1) connection.destroy();
    }).map(async (dial) => await dial.catch(() => undefined));
    const packets = Array.from({ length: 1 + chance.below(12) }, () => Buffer.from(encodePacket(chance.one(answers) as never)));
    stream.push(chance.is(0.4) ? Buffer.concat(packets) : garbledSeed(chance, [Buffer.concat(packets)]));
    await Bun.sleep(5);
    if (chance.is(0.3)) stream.destroy();
    else session.destroy();
    await closed.promise;
    await Promise.all(dials);
    await Promise.all(ends);
    expect([session.dialCount, session.connectionCount]).toEqual([0, 0]);
  });
  expect(seen.errors).toEqual([]);
});

test("what runtimes answer over SPDY", async () => {
  using seen = unhandled();
  const frame = (type: number, flags: number, payload: readonly number[]): number[] => [0x80, 3, 0, type, flags, 0, 0, payload.length, ...payload];
  const data = (stream: number, flags: number, content: string): number[] => [0, 0, 0, stream, flags, 0, 0, content.length, ...Buffer.from(content)];
  const seeds = [
    [...frame(2, 0, [0, 0, 0, 1, 0, 0, 0, 0]), ...data(1, 0, "out"), ...data(3, 1, "error"), ...data(1, 1, "")], [...frame(3, 0, [0, 0, 0, 1, 0, 0, 0, 5]), ...frame(3, 0, [0, 0])], [...frame(6, 0, [0, 0, 0, 2]), ...frame(6, 0, []), ...frame(7, 0, [])],
    [...frame(1, 0, [0, 0, 0, 2, 0, 0, 0, 0]), ...frame(1, 2, [0x80])], [...frame(8, 1, [0, 0, 0, 3]), ...frame(2, 1, [0, 0, 0, 99])], [...data(0, 1, "nobody's"), ...data(127, 0, "nor this")], [0x80, 2, 0, 1, 0, 0xff, 0xff, 0xff],
  ].map((bytes) => Uint8Array.from(bytes));
  await rounds(SEED, 128, async (chance) => {
    const runtime = sink(), client = sink();
    let ended = 0;
    const spdy = spdyClient(runtime, { early: chance.is(0.2) ? garbledSeed(chance, seeds) : new Uint8Array(0), drain: () => undefined, closed: () => ended++ });
    const told = new Map<number, string[]>();
    const streams = [0, 1, 2].map((i) => {
      const events: string[] = [];
      told.set(i, events);
      return spdy.open({ streamtype: "stdin" }, { data: () => void events.push("data"), end: () => void events.push("end"), reset: () => void events.push("end") });
    });
    runtime.resume();
    for (let k = 0; k < 3; k++) runtime.push(garbledSeed(chance, seeds));
    streams[0]!.write(Buffer.from("x"));
    streams[1]!.end();
    streams[2]!.reset();
    if (chance.is(0.5)) void translateStreams({ protocol: V5, client: { socket: client, early: Buffer.from("garbage") }, runtime: { socket: sink(), early: garbledSeed(chance, seeds) }, options: { stdin: true, stdout: true, stderr: true, tty: chance.is(0.5) }, clock });
    await Bun.sleep(5);
    spdy.close();
    for (const one of [runtime, client]) one.destroy();
    await Bun.sleep(5);
    expect(ended).toBe(1);
    for (const events of told.values()) expect(events.indexOf("end") < 0 || events.indexOf("end") === events.length - 1, "nothing comes after a stream's end").toBe(true);
  });
  expect(seen.errors).toEqual([]);
});
