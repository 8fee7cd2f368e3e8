/**
 * The server's side of a WebSocket (RFC 6455) on a connection that left HTTP.
 *
 *   const { accept } = webSocketAnswer(key, "v5.channel.k8s.io");      what to write before the first frame
 *   const peer = webSocket(socket, { early, clock, message, drain, closed });
 *   if (!peer.send(bytes)) …                                           the client does not keep up: wait for drain
 *
 * Pings are answered, as fast as the client takes the answers; fragments are joined. A client that breaks the rules or sends a message of more than MESSAGE_BYTES_MAX is sent
 * away with the code the RFC has for it. Extensions are not offered: what Kubernetes sends does not compress well or is small.
 */
import { createHash } from "node:crypto";
import type { Duplex } from "node:stream";
import type { Clock } from "../lifecycle/clock.ts";
import { ArrivedBytes } from "./arrived-bytes.ts";
import { endLingering } from "./linger.ts";

export interface WebSocketEvents {
  message(data: Buffer, type: "binary" | "text"): void;
  /** After a send returned false: there is room again. */
  drain?(): void;
  /** Once, whoever closed. Nothing is sent after it. */
  closed(): void;
}

export interface WebSocketPeer {
  /** One message of these parts. False: wait for `drain` before the next. */
  send(parts: readonly Uint8Array[], type?: "binary" | "text"): boolean;
  /** Says goodbye after what was sent, and closes. */
  close(code: number, reason?: string): void;
  /** Takes no more messages, but for those already read, until `resume`. */
  pause(): void;
  resume(): void;
}

/** The largest that clients of Kubernetes send is 32 kB and a byte. */
const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;
/** A client that breaks the rules and does not answer our goodbye. */
const CLOSE_MS = 5_000;
const NORMAL = 1000;
const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; // RFC 6455, section 1.3

const CONTINUATION = 0, TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10;

/** The bytes that accept an upgrade with this Sec-WebSocket-Key. */
export function webSocketAnswer(key: string, protocol: string | undefined): Buffer {
  const accept = createHash("sha1").update(key + GUID).digest("base64");
  const lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade", `Sec-WebSocket-Accept: ${accept}`];
  if (protocol !== undefined) lines.push(`Sec-WebSocket-Protocol: ${protocol}`);
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`);
}

/** Why a request cannot become a WebSocket, if it cannot. */
export function webSocketProblem(header: (name: string) => string | undefined): string | undefined {
  if (header("sec-websocket-version") !== "13") return "websocket: unsupported version: 13 not found in 'Sec-Websocket-Version' header";
  const key = header("sec-websocket-key") ?? "";
  return Buffer.from(key, "base64").length === 16 ? undefined : "websocket: not a websocket handshake: 'Sec-WebSocket-Key' header must be Base64 encoded value of 16-byte in length";
}

export function webSocket(socket: Duplex, { early, clock, ...events }: WebSocketEvents & { readonly early: Uint8Array; readonly clock: Clock }): WebSocketPeer {
  const reader = new FrameReader();
  const fragments = new ArrivedBytes(); // each costs what it weighs
  let isWithin = false; // a message whose end is still to come
  let fragmentsType: "binary" | "text" = "binary";
  let closing = false; // a close frame was sent
  let over = false;
  let paused = false; // by the caller
  let stopped = false;
  let unread = false; // the client does not take what answers its pings: nothing more of it is read, so that it cannot have us keep them

  function flow(): void {
    const stops = paused || (unread && !closing);
    if (stops === stopped) return; // one that flows and is told to again is not heard to end
    stopped = stops;
    if (stops) socket.pause();
    else socket.resume();
  }

  function end(): void {
    if (over) return;
    over = true;
    events.closed();
  }

  function write(opcode: number, parts: readonly Uint8Array[]): boolean {
    return socket.writable && !closing ? socket.write(frame(opcode, parts)) : true;
  }

  function close(code: number, reason = ""): void {
    if (closing) return;
    const payload = Buffer.alloc(2 + Buffer.byteLength(reason));
    payload.writeUInt16BE(code, 0);
    payload.write(reason, 2);
    write(CLOSE, [payload]);
    closing = true;
    if (code === NORMAL) { // what was sent may be under way for long
      endLingering(socket, clock);
      socket.resume();
    } else {
      const late = clock.after(CLOSE_MS, () => socket.destroy());
      socket.once("close", () => late.cancel());
      socket.end();
    }
    end();
  }

  function onFrame({ opcode, final, payload }: Frame): void {
    if (opcode >= 8) {
      if (!final || payload.length > 125) throw new WebSocketError(1002, "bad control frame");
      if (opcode === PING) {
        unread = !write(PONG, [payload]);
        flow();
      } else if (opcode === CLOSE) close(payload.length >= 2 ? payload.readUInt16BE(0) : NORMAL);
      else if (opcode !== PONG) throw new WebSocketError(1002, "bad opcode");
      return;
    }
    if ((opcode === CONTINUATION) !== isWithin || opcode > BINARY) throw new WebSocketError(1002, "bad opcode");
    if (opcode !== CONTINUATION) fragmentsType = opcode === TEXT ? "text" : "binary";
    if (!isWithin && final) return events.message(payload, fragmentsType);
    isWithin = !final;
    if (payload.length > 0) fragments.add(payload);
    if (fragments.bytes.length > MESSAGE_BYTES_MAX) throw new WebSocketError(1009, "message too big");
    if (final) events.message(fragments.take(), fragmentsType);
  }

  function onData(chunk: Buffer): void {
    try {
      for (const found of reader.read(chunk)) {
        if (over) return;
        onFrame(found);
      }
    } catch (error) {
      if (!(error instanceof WebSocketError)) throw error;
      close(error.code, error.message);
    }
  }

  if (early.length > 0) socket.unshift(early); // read like all else, once the caller has what is returned here
  socket.on("data", onData);
  socket.on("drain", () => {
    unread = false;
    flow();
    events.drain?.();
  });
  socket.on("error", () => socket.destroy()); // its close follows
  socket.on("end", () => { end(); socket.end(); });
  socket.on("close", end);
  socket.resume();

  return {
    send: (parts, type = "binary") => write(type === "text" ? TEXT : BINARY, parts),
    close,
    pause() {
      paused = true;
      flow();
    },
    resume() {
      paused = false;
      flow();
    },
  };
}

class WebSocketError extends Error {
  override readonly name = "WebSocketError";
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** A frame of the server: not masked. */
function frame(opcode: number, parts: readonly Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const head = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const bytes = Buffer.allocUnsafe(head + length);
  bytes[0] = 0x80 | opcode;
  bytes[1] = head === 2 ? length : head === 4 ? 126 : 127;
  if (head === 4) bytes.writeUInt16BE(length, 2);
  if (head === 10) bytes.writeBigUInt64BE(BigInt(length), 2);
  let at = head;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

interface Frame { readonly opcode: number; readonly final: boolean; readonly payload: Buffer }

/** Cuts a stream of bytes into frames. */
class FrameReader {
  readonly #came = new ArrivedBytes();
  /** Nothing can be read before there are so many. */
  #needed = 2;

  *read(chunk: Buffer): Generator<Frame> {
    this.#came.add(chunk);
    while (this.#came.bytes.length >= this.#needed) {
      const found = this.#frame(this.#came.bytes);
      if (!found) continue;
      const rest = this.#came.take().subarray(found.end);
      if (rest.length > 0) this.#came.add(rest);
      this.#needed = 2;
      yield found;
    }
  }

  /** Undefined, with #needed set, if there is no whole frame yet. */
  #frame(bytes: Buffer): (Frame & { readonly end: number }) | undefined {
    const first = bytes[0]!, second = bytes[1]!;
    if ((first & 0x70) !== 0) throw new WebSocketError(1002, "reserved bits are set");
    if ((second & 0x80) === 0) throw new WebSocketError(1002, "frames of a client must be masked");
    const short = second & 0x7f;
    const lengthBytes = short < 126 ? 0 : short === 126 ? 2 : 8;
    const head = 2 + lengthBytes + 4;
    if (bytes.length < head) return this.#wait(head);
    const length = lengthBytes === 0 ? short : lengthBytes === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    if (length > MESSAGE_BYTES_MAX) throw new WebSocketError(1009, "message too big");
    if (bytes.length < head + length) return this.#wait(head + length);
    return { opcode: first & 0x0f, final: (first & 0x80) !== 0, payload: unmask(bytes, head, length), end: head + length };
  }

  #wait(bytes: number): undefined {
    this.#needed = bytes;
    return undefined;
  }
}

function unmask(bytes: Buffer, head: number, length: number): Buffer {
  const a = bytes[head - 4]!, b = bytes[head - 3]!, c = bytes[head - 2]!, d = bytes[head - 1]!;
  const payload = Buffer.allocUnsafe(length);
  let i = 0;
  for (; i + 3 < length; i += 4) {
    payload[i] = bytes[head + i]! ^ a;
    payload[i + 1] = bytes[head + i + 1]! ^ b;
    payload[i + 2] = bytes[head + i + 2]! ^ c;
    payload[i + 3] = bytes[head + i + 3]! ^ d;
  }
  const mask = [a, b, c];
  for (let k = 0; i < length; i++, k++) payload[i] = bytes[head + i]! ^ mask[k]!;
  return payload;
}
