import { createServer, connect, type AddressInfo, type Socket } from "node:net";
import { constants, inflateSync } from "node:zlib";
import { expect, test } from "vitest";
import { spdyClient, type SpdyStreamEvents } from "./spdy.ts";

interface Server { readonly socket: Socket; readonly frames: string[]; readonly client: Socket; [Symbol.dispose](): void }

/** The other side, which writes down what it gets. */
async function server(): Promise<Server> {
  const frames: string[] = [];
  const { promise, resolve } = Promise.withResolvers<Socket>();
  const listener = createServer((socket) => {
    let bytes = Buffer.alloc(0);
    let headers = Buffer.alloc(0); // all header blocks are one zlib stream
    let inflated = 0;
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      while (bytes.length >= 8 && bytes.length >= 8 + (bytes.readUInt32BE(4) & 0xff_ffff)) {
        const payload = bytes.subarray(8, 8 + (bytes.readUInt32BE(4) & 0xff_ffff));
        const isControl = (bytes[0]! & 0x80) !== 0;
        const fin = bytes[4]! & 1 ? " fin" : "";
        if (!isControl) frames.push(`data ${bytes.readUInt32BE(0)} ${payload}${fin}`);
        else if (bytes.readUInt16BE(2) === 1) {
          headers = Buffer.concat([headers, payload.subarray(10)]);
          const all = inflateSync(headers, { finishFlush: constants.Z_SYNC_FLUSH });
          frames.push(`open ${payload.readUInt32BE(0)} ${headersOf(all.subarray(inflated))}${fin}`);
          inflated = all.length;
        } else frames.push(`control ${bytes.readUInt16BE(2)} ${payload.toString("hex")}`);
        bytes = bytes.subarray(8 + payload.length);
      }
    });
    resolve(socket);
  });
  await new Promise<void>((done) => listener.listen(0, "127.0.0.1", done));
  const client = connect((listener.address() as AddressInfo).port, "127.0.0.1");
  return { socket: await promise, frames, client, [Symbol.dispose]: () => { client.destroy(); listener.close(); } };
}

function headersOf(block: Buffer): string {
  const texts: string[] = [];
  for (let at = 4; at < block.length; ) {
    const length = block.readUInt32BE(at);
    texts.push(block.toString("utf8", at + 4, at + 4 + length));
    at += 4 + length;
  }
  expect(texts.length).toBe(2 * block.readUInt32BE(0));
  return texts.join("=");
}

function recorder(into: string[], name: string): SpdyStreamEvents {
  return { data: (bytes) => void into.push(`${name} ${bytes}`), end: () => void into.push(`${name} end`), reset: (status) => void into.push(`${name} reset ${status}`) };
}

const data = (id: number, text: string, fin = false): Buffer => Buffer.concat([word(id), Buffer.from([fin ? 1 : 0]), word(Buffer.byteLength(text)).subarray(1), Buffer.from(text)]);
const control = (type: number, payload: Buffer): Buffer => Buffer.concat([Buffer.from([0x80, 3, 0, type, 0]), word(payload.length).subarray(1), payload]);
function word(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

test("streams have odd numbers, headers an inflater can read one block at a time, and can be half-closed", async () => {
  using other = await server();
  const spdy = spdyClient(other.client, { early: new Uint8Array(0), drain: () => undefined, closed: () => undefined });
  const quiet = recorder([], "");
  const stdin = spdy.open({ streamType: "stdin" }, quiet);
  spdy.open({ streamtype: "stdout" }, quiet).reset();
  stdin.write(Buffer.from("hello"));
  stdin.end();
  stdin.write(Buffer.from("too late"));
  await expect.poll(() => other.frames).toEqual(["open 1 streamtype=stdin", "open 3 streamtype=stdout", "control 3 0000000300000005", "data 1 hello", "data 1  fin"]);
});

test("what comes back reaches its stream, however it is cut; pings are answered, streams of the other side refused", async () => {
  using other = await server();
  const got: string[] = [];
  let closed = 0;
  const spdy = spdyClient(other.client, { early: data(1, "unknown"), drain: () => undefined, closed: () => void closed++ });
  spdy.open({ a: "b" }, recorder(got, "one"));
  spdy.open({ a: "b" }, recorder(got, "two"));
  const bytes = Buffer.concat([control(2, word(1)), data(3, ""), control(6, word(2)), control(6, word(1)), control(1, Buffer.alloc(20, 2)), control(4, Buffer.alloc(12)), data(1, "x", true), control(3, Buffer.concat([word(3), word(5)])), data(3, "after")]);
  for (const byte of bytes) other.socket.write(Buffer.from([byte]));
  await expect.poll(() => got).toEqual(["one x", "one end", "two reset 5"]);
  await expect.poll(() => other.frames.slice(2)).toEqual(["control 6 00000002", "control 3 0202020200000003"]);
  other.socket.end();
  await expect.poll(() => closed).toBe(1);
});

test("what is not SPDY ends the connection", async () => {
  using other = await server();
  const { promise, resolve } = Promise.withResolvers<void>();
  spdyClient(other.client, { early: new Uint8Array(0), drain: () => undefined, closed: resolve });
  other.socket.write("\x80HTTP/1.1 200 OK\r\n\r\n", "latin1");
  await promise;
});
