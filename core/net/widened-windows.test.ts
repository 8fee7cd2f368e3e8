import * as http2 from "node:http2";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { expect, test } from "vitest";
import { frame } from "../../test/http2-frames.ts";
import { mayWiden } from "./widened-windows.ts";

const DATA = 0, HEADERS = 1, SETTINGS = 4, WINDOW_UPDATE = 8, ACK = 1, END = 5;
const WINDOW = 65_535, PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const u32 = (value: number): Buffer => Buffer.from(Uint32Array.of(value).buffer).swap32();
const allows = (stream: number, bytes: number): Buffer => frame(WINDOW_UPDATE, 0, stream, u32(bytes));
const windowsOf = (bytes: number): Buffer => frame(SETTINGS, 0, 0, Buffer.concat([Buffer.of(0, 4), u32(bytes)]));

/** Counts what comes of a stream. */
function dataOf(socket: Socket): Map<number, number> {
  const bytes = new Map<number, number>();
  let came = Buffer.alloc(0);
  socket.on("error", () => undefined).on("data", (more: Buffer) => {
    came = Buffer.concat([came, more]);
    while (came.length >= 9 && came.length >= 9 + came.readUIntBE(0, 3)) {
      const length = came.readUIntBE(0, 3), stream = came.readUInt32BE(5);
      if (came[3] === DATA) bytes.set(stream, (bytes.get(stream) ?? 0) + length);
      if (came[3] === SETTINGS && (came[4]! & ACK) === 0) socket.write(frame(SETTINGS, ACK, 0));
      came = came.subarray(9 + length);
    }
  });
  return bytes;
}

/** A client's connection to a server that has a megabyte to send on each of two streams. */
async function twoStreams(): Promise<{ readonly bytes: Map<number, number>; readonly write: (bytes: Buffer) => void } & AsyncDisposable> {
  const h2 = http2.createServer({}, (_request, response) => void response.end(Buffer.alloc(1_000_000)));
  let session: http2.ServerHttp2Session | undefined;
  h2.on("session", (made) => { session = made.on("error", () => undefined); });
  const server = createServer((socket) => void mayWiden(socket, () => {
    h2.emit("connection", socket);
    return session;
  }));
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1"), head = Buffer.from([0x82, 0x86, 0x84, 0x41, 1, 0x78]);
  const bytes = dataOf(socket);
  for (const piece of [Buffer.from(PREFACE), frame(SETTINGS, 0, 0), allows(0, 10_000_000), frame(HEADERS, END, 1, head), frame(HEADERS, END, 3, head)]) socket.write(piece);
  return { bytes, write: (piece) => void socket.write(piece), async [Symbol.asyncDispose]() {
    socket.destroy();
    await new Promise<void>((resolve) => void server.close(() => resolve()));
  } };
}

test.each([["at once", Number.POSITIVE_INFINITY], ["byte by byte", 1]])("windows that become larger under way are that much larger for each stream, whatever it was given before: what says so comes %s", async (_, bytesAtOnce) => {
  await using connection = await twoStreams();
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
