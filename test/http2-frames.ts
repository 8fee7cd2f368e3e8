/** A server of HTTP/2 that says what a test says, frame by frame: what no library would send. */
import { type AddressInfo, createServer, type Socket } from "node:net";

const PREFACE_BYTES = 24, HEAD_BYTES = 9;
const HEADERS = 1, SETTINGS = 4, ACK = 1;

export interface FrameServer extends AsyncDisposable { readonly port: number; readonly connectionCount: number }

export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** `requested`: with the connection and the number of each stream that a client begins. */
export async function frameServer(requested: (socket: Socket, stream: number) => void, settings: Buffer = Buffer.alloc(0)): Promise<FrameServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let came = Buffer.alloc(0), begun = false;
    socket.on("error", () => undefined).write(frame(SETTINGS, 0, 0, settings));
    socket.on("data", (bytes: Buffer) => {
      came = Buffer.concat([came, bytes]);
      if (!begun && came.length < PREFACE_BYTES) return;
      if (!begun) came = came.subarray(PREFACE_BYTES);
      begun = true;
      while (came.length >= HEAD_BYTES && came.length >= HEAD_BYTES + came.readUIntBE(0, 3)) {
        const type = came.readUInt8(3), flags = came.readUInt8(4), stream = came.readUInt32BE(5);
        came = came.subarray(HEAD_BYTES + came.readUIntBE(0, 3));
        if (type === SETTINGS && (flags & ACK) === 0) socket.write(frame(SETTINGS, ACK, 0));
        if (type === HEADERS) requested(socket, stream);
      }
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    get connectionCount() { return sockets.size; },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}
