import * as http2 from "node:http2";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { expect, test } from "vitest";
import { frame } from "../../test/http2-frames.ts";
import { clientMayWiden, serverMayWiden } from "./widened-windows.ts";

const DATA = 0, HEADERS = 1, SETTINGS = 4, WINDOW_UPDATE = 8, ACK = 1, END = 5;
const WINDOW = 65_535, PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/** Of a GET. */
const HEAD = Buffer.from([0x82, 0x86, 0x84, 0x41, 1, 0x78]);

const u32 = (value: number): Buffer => Buffer.from(Uint32Array.of(value).buffer).swap32();
const allows = (stream: number, bytes: number): Buffer => frame(WINDOW_UPDATE, 0, stream, u32(bytes));
const windowsOf = (bytes: number): Buffer => frame(SETTINGS, 0, 0, Buffer.concat([Buffer.of(0, 4), u32(bytes)]));

/** Counts what comes of a stream. */
function dataOf(socket: Socket, preface: number): Map<number, number> {
  const bytes = new Map<number, number>();
  let came = Buffer.alloc(0), begun = preface === 0;
  socket.on("error", () => undefined).on("data", (more: Buffer) => {
    came = Buffer.concat([came, more]);
    if (!begun && came.length >= preface) [came, begun] = [came.subarray(preface), true];
    while (begun && came.length >= 9 && came.length >= 9 + came.readUIntBE(0, 3)) {
      const length = came.readUIntBE(0, 3), stream = came.readUInt32BE(5);
      if (came[3] === DATA) bytes.set(stream, (bytes.get(stream) ?? 0) + length);
      if (came[3] === SETTINGS && (came[4]! & ACK) === 0) socket.write(frame(SETTINGS, ACK, 0));
      came = came.subarray(9 + length);
    }
  });
  return bytes;
}

/** A connection whose other side has a megabyte to send on each of two streams. */
type Side = () => Promise<{ readonly bytes: Map<number, number>; readonly write: (bytes: Buffer) => void } & AsyncDisposable>;

const fromServer: Side = async () => {
  const h2 = http2.createServer({}, (_request, response) => void response.end(Buffer.alloc(1_000_000)));
  let session: http2.ServerHttp2Session | undefined;
  h2.on("session", (made) => { session = made.on("error", () => undefined); });
  const server = createServer((socket) => void clientMayWiden(socket, () => {
    h2.emit("connection", socket);
    return session;
  }));
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const bytes = dataOf(socket, 0);
  for (const piece of [Buffer.from(PREFACE), frame(SETTINGS, 0, 0), allows(0, 10_000_000), frame(HEADERS, END, 1, HEAD), frame(HEADERS, END, 3, HEAD)]) socket.write(piece);
  return { bytes, write: (piece) => void socket.write(piece), async [Symbol.asyncDispose]() {
    socket.destroy();
    await new Promise<void>((resolve) => void server.close(() => resolve()));
  } };
};

const fromClient: Side = async () => {
  const sockets: Socket[] = [], bytes: Map<number, number>[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    bytes.push(dataOf(socket, PREFACE.length));
    socket.write(Buffer.concat([frame(SETTINGS, 0, 0), allows(0, 10_000_000)]));
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const session = http2.connect("http://x", { createConnection: () => connect((server.address() as AddressInfo).port, "127.0.0.1") }).on("error", () => undefined);
  serverMayWiden(session);
  for (let i = 0; i < 2; i++) session.request({ ":method": "POST", ":path": "/" }).on("error", () => undefined).end(Buffer.alloc(1_000_000));
  await expect.poll(() => bytes[0]?.size).toBe(2);
  return { bytes: bytes[0]!, write: (piece) => void sockets[0]!.write(piece), async [Symbol.asyncDispose]() {
    session.destroy();
    for (const socket of sockets) socket.destroy();
    await new Promise<void>((resolve) => void server.close(() => resolve()));
  } };
};

test.each([["a client's, at once", fromServer, Number.POSITIVE_INFINITY], ["a client's, byte by byte", fromServer, 1], ["a server's, at once", fromClient, Number.POSITIVE_INFINITY], ["a server's, byte by byte", fromClient, 1]] as const)("windows that become larger under way are that much larger for each stream, whatever it was given before: what says so is %s", async (_, side, bytesAtOnce) => {
  await using connection = await side();
  const { bytes, write } = connection;
  const say = async (said: Buffer): Promise<void> => {
    for (let at = 0; at < said.length; at += bytesAtOnce) {
      write(said.subarray(at, at + bytesAtOnce));
      if (bytesAtOnce < said.length) await Bun.sleep(1);
    }
  };
  const all = (): number[] => [1, 3].map((stream) => bytes.get(stream) ?? 0);
  await expect.poll(all).toEqual([WINDOW, WINDOW]);
  await say(allows(1, 70_000));
  await expect.poll(all).toEqual([WINDOW + 70_000, WINDOW]);
  await say(Buffer.concat([windowsOf(100_000), allows(1, 5)]));
  await expect.poll(all).toEqual([170_005, 100_000]);
  await say(Buffer.concat([allows(3, 10), windowsOf(120_000), windowsOf(150_000)]));
  await expect.poll(all).toEqual([220_005, 150_010]);
  await say(windowsOf(140_000)); // what was sent is sent
  await say(Buffer.concat([windowsOf(150_000), allows(1, 1), allows(3, 1)]));
  await expect.poll(all).toEqual([220_006, 150_011]);
});

test("a stream that begins in one piece with what it is given, and with larger windows, has all of it", async () => {
  await using connection = await fromServer();
  connection.write(Buffer.concat([frame(HEADERS, END, 5, HEAD), allows(5, 70_000), windowsOf(100_000)]));
  await expect.poll(() => connection.bytes.get(5)).toBe(170_000);
});
