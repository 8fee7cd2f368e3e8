import { heapStats } from "bun:jsc";
import { once } from "node:events";
import { createServer, connect, type AddressInfo, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import { type Clock, systemClock } from "../lifecycle/clock.ts";
import { webSocket, webSocketAnswer, type WebSocketPeer, webSocketProblem } from "./websocket.ts";

interface Pair { readonly client: Socket; readonly peer: WebSocketPeer; readonly messages: string[]; readonly closed: Promise<void>; [Symbol.dispose](): void }

async function pair(): Promise<Pair> {
  const messages: string[] = [];
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const { promise: accepted, resolve: accept } = Promise.withResolvers<WebSocketPeer>();
  const server = createServer((socket) => accept(webSocket(socket, { early: new Uint8Array(0), clock: systemClock, message: (data, type) => void messages.push(`${type} ${data}`), closed: resolve })));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  return { client, peer: await accepted, messages, closed, [Symbol.dispose]: () => { client.destroy(); server.close(); } };
}

function frame(opcode: number, text: string, { final = true, masked = true, length = text.length } = {}): Buffer {
  const payload = Buffer.from(text, "latin1");
  const mask = Buffer.from([1, 2, 3, 4]);
  const head = length < 126 ? Buffer.from([length]) : Buffer.from([126, length >> 8, length & 255]);
  head[0]! |= masked ? 0x80 : 0;
  if (masked) for (let i = 0; i < payload.length; i++) payload[i]! ^= mask[i % 4]!;
  return Buffer.concat([Buffer.from([(final ? 0x80 : 0) | opcode]), head, ...(masked ? [mask] : []), payload]);
}

test("the key of RFC 6455 gets the answer of RFC 6455", () => {
  expect(webSocketAnswer("dGhlIHNhbXBsZSBub25jZQ==", "v5.channel.k8s.io").toString()).toBe(
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n",
  );
  expect(webSocketProblem((name) => ({ "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" })[name])).toBeUndefined();
  expect(webSocketProblem((name) => ({ "sec-websocket-version": "13", "sec-websocket-key": "short" })[name])).toContain("16-byte");
});

test("messages arrive whole, however they are cut, with pings between the fragments", async () => {
  using link = await pair();
  const bytes = Buffer.concat([frame(2, "one"), frame(1, "tw", { final: false }), frame(9, "ping"), frame(0, "o"), frame(2, "x".repeat(300)), frame(2, "")]);
  for (const byte of bytes) link.client.write(Buffer.from([byte]));
  const pong = await new Promise<Buffer>((resolve) => link.client.once("data", resolve));
  expect(pong.toString("latin1")).toBe("\x8a\x04ping");
  await expect.poll(() => link.messages).toEqual(["binary one", "text two", `binary ${"x".repeat(300)}`, "binary "]);
});

test("pieces without anything in them cost nothing, however many come", async () => {
  using link = await pair();
  const empty = frame(0, "", { final: false });
  link.client.write(Buffer.concat([frame(2, "a", { final: false }), ...Array<Buffer>(50_000).fill(empty), frame(0, "b")]));
  await expect.poll(() => link.messages).toEqual(["binary ab"]);
});

test("a client that pings and does not read is not read from either, whatever the caller wants; it has all its answers once it takes them", async () => {
  const taken: Buffer[] = [];
  let release = (): void => undefined;
  const socket = new Duplex({ writableHighWaterMark: 1_000, read() {}, write(chunk: Buffer, _, done) { taken.push(chunk); release = done; } });
  const peer = webSocket(socket, { early: new Uint8Array(0), clock: systemClock, message: () => undefined, closed: () => undefined });
  const pings = Buffer.concat(Array<Buffer>(20).fill(frame(9, "x".repeat(125))));
  for (let i = 0; i < 50; i++) socket.push(pings);
  const quiet = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  await quiet();
  peer.pause();
  peer.resume();
  await quiet();
  expect([socket.isPaused(), socket.writableLength]).toEqual([true, 20 * 127]); // of one piece that was read
  for (let i = 0; taken.length < 50 * 20 && i < 10_000; i++) {
    release();
    await quiet();
  }
  expect(taken).toHaveLength(50 * 20);
  socket.destroy();
});

test("a message in very many pieces costs what it weighs", async () => {
  const messages: number[] = [], pieces = 300_000;
  const socket = new Duplex({ read() {}, write(_chunk, _, done) { done(); } });
  webSocket(socket, { early: new Uint8Array(0), clock: systemClock, message: (data) => void messages.push(data.length), closed: () => undefined });
  const count = (): number => {
    Bun.gc(true);
    return Object.values(heapStats().objectTypeCounts).reduce((sum, one) => sum + one, 0);
  };
  const before = count(), one = frame(0, "x", { final: false });
  socket.push(frame(2, "", { final: false }));
  socket.push(Buffer.concat(Array<Buffer>(pieces).fill(one)));
  await new Promise((resolve) => setImmediate(resolve));
  expect(count() - before).toBeLessThan(pieces / 10);
  socket.push(frame(0, "", { final: true }));
  await expect.poll(() => messages).toEqual([pieces]);
  socket.destroy();
});

test("what came with the upgrade is read when there is somebody to answer it, and before all else", async () => {
  const server = createServer((socket) => {
    const peer = webSocket(socket, { early: frame(2, "early"), clock: systemClock, message: (data) => void peer.send([data]), closed: () => undefined });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1", () => client.write(frame(2, "later")));
  let got = "";
  client.on("data", (chunk) => { got += chunk.toString("latin1"); });
  await expect.poll(() => got).toBe("\x82\x05early\x82\x05later");
  client.destroy();
  server.close();
});

test.each([
  ["a frame that is not masked", frame(2, "x", { masked: false }), 1002],
  ["a continuation of nothing", frame(0, "x"), 1002],
  ["a new message within another", Buffer.concat([frame(2, "x", { final: false }), frame(2, "y")]), 1002],
  ["a ping in pieces", frame(9, "x", { final: false }), 1002],
  ["an unknown kind", frame(3, "x"), 1002],
  ["reserved bits", Buffer.concat([Buffer.from([0xc2]), frame(2, "x").subarray(1)]), 1002],
  ["too much", Buffer.from([0x82, 0xff, 0, 0, 0, 0, 0xff, 0, 0, 0, 0, 0, 0, 0]), 1009],
])("%s ends the connection with its code", async (_, bytes, code) => {
  using link = await pair();
  link.client.write(bytes);
  const answer = await new Promise<Buffer>((resolve) => link.client.once("data", resolve));
  expect(answer[0]).toBe(0x88);
  expect(answer.readUInt16BE(2)).toBe(code);
  await link.closed;
});

test("a goodbye is answered with its code; nothing is sent after it", async () => {
  using link = await pair();
  const goodbye = Buffer.from([0x03, 0xe8]).toString("latin1");
  link.client.write(frame(8, goodbye));
  const answer = await new Promise<Buffer>((resolve) => link.client.once("data", resolve));
  expect([...answer]).toEqual([0x88, 2, 0x03, 0xe8]);
  expect(link.peer.send([Buffer.from("late")])).toBe(true);
  await link.closed;
});

test("after a goodbye a client has the time its link needs; one that breaks the rules has five seconds", async () => {
  for (const [code, limitMs] of [[1000, 60_000], [1002, 5_000]] as const) {
    const limits: number[] = [];
    const socket = new Duplex({ read: () => undefined, write: () => undefined }); // takes nothing
    const clock = { after(ms: number) { limits.push(ms); return { cancel: () => undefined }; } } as unknown as Clock;
    webSocket(socket, { early: new Uint8Array(0), clock, message: () => undefined, closed: () => undefined }).close(code);
    expect(limits).toEqual([limitMs]);
    expect(socket.isPaused()).toBe(false); // its answer is to be seen
    socket.destroy();
  }
});

test("what is sent has the length form its size needs", async () => {
  using link = await pair();
  link.peer.send([Uint8Array.of(1), Buffer.from("hi")]);
  link.peer.send([Buffer.alloc(126)]);
  link.peer.send([Buffer.alloc(65_536)]);
  const chunks: Buffer[] = [];
  link.client.on("data", (chunk: Buffer) => void chunks.push(chunk));
  await expect.poll(() => Buffer.concat(chunks).length).toBe(5 + 4 + 126 + 10 + 65_536);
  const bytes = Buffer.concat(chunks);
  expect([...bytes.subarray(0, 9)]).toEqual([0x82, 3, 1, 104, 105, 0x82, 126, 0, 126]);
  expect([...bytes.subarray(135, 145)]).toEqual([0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
});

test("a client that vanishes is told as closed", async () => {
  using link = await pair();
  link.client.destroy();
  await once(link.client, "close");
  await link.closed;
});
