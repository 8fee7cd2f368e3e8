/**
 * The client's side of SPDY/3.1, as far as moby/spdystream speaks it: what container runtimes serve exec, attach and port-forward with.
 *
 *   const connection = spdyClient(socket, { early, drain, closed });
 *   const stdin = connection.open({ streamtype: "stdin" }, { data() {}, end() {}, reset() {} });
 *   if (!stdin.write(bytes)) …        the runtime does not keep up: wait for drain
 *   stdin.end();                      half-closed: the other direction goes on
 *
 * There is no flow control per stream (spdystream has none): a reader that cannot keep up pauses the connection.
 * Header blocks are sent as stored blocks of one endless zlib stream, which every inflater reads, with or without SPDY's dictionary; those
 * that come back carry nothing and are skipped. Streams the other side opens are refused: a runtime opens none.
 *
 * Source: SPDY draft 3.1; moby/spdystream spdy/{read,write}.go
 */
import type { Duplex } from "node:stream";

export interface SpdyStreamEvents {
  data(bytes: Buffer): void;
  /** The other side will send no more on it. */
  end(): void;
  /** The other side gave it up. */
  reset(status: number): void;
}

export interface SpdyStream {
  /** False: wait for `drain` before the next. */
  write(bytes: Uint8Array): boolean;
  end(): void;
  reset(): void;
}

export interface SpdyClient {
  open(headers: Readonly<Record<string, string>>, events: SpdyStreamEvents): SpdyStream;
  pause(): void;
  resume(): void;
  close(): void;
}

interface Options {
  /** What came behind the headers of the upgrade. */
  readonly early: Uint8Array;
  drain(): void;
  /** Once. */
  closed(): void;
}

const VERSION = 0x8003;
const SYN_STREAM = 1, RST_STREAM = 3, PING = 6;
const FIN = 1;
const REFUSED_STREAM = 3, CANCEL = 5;
/** A frame's length has 24 bits; smaller ones let streams take turns. */
const DATA_BYTES_MAX = 64 * 1024;
/** Control frames are small: replies without headers, pings, resets. */
const CONTROL_BYTES_MAX = 64 * 1024;

export function spdyClient(socket: Duplex, { early, drain, closed }: Options): SpdyClient {
  const streams = new Map<number, SpdyStreamEvents>();
  const deflate = storedBlocks();
  let nextId = 1; // a client's are odd
  let over = false;

  function end(): void {
    if (over) return;
    over = true;
    streams.clear();
    closed();
  }

  const send = (bytes: Uint8Array): boolean => (socket.writable && !over ? socket.write(bytes) : true);

  const onFrame = {
    data(id: number, bytes: Buffer): void { streams.get(id)?.data(bytes); },
    fin(id: number): void {
      const events = streams.get(id);
      streams.delete(id);
      events?.end();
    },
    control(type: number, flags: number, payload: Buffer): void {
      const id = payload.length >= 4 ? payload.readUInt32BE(0) & 0x7fff_ffff : 0;
      if (type === PING && id % 2 === 0) send(control(PING, 0, payload.subarray(0, 4)));
      else if (type === SYN_STREAM) send(control(RST_STREAM, 0, words(id, REFUSED_STREAM)));
      else if (type === RST_STREAM) {
        const events = streams.get(id);
        streams.delete(id);
        events?.reset(payload.length >= 8 ? payload.readUInt32BE(4) : 0);
      } else if ((flags & FIN) !== 0 && type !== PING) onFrame.fin(id); // a SYN_REPLY or HEADERS that ends its stream
    },
  };
  const read = frameReader(onFrame);

  function onData(chunk: Buffer): void {
    if (over) return;
    try {
      read(chunk);
    } catch {
      socket.destroy(); // not SPDY: there is nobody to tell but those who hear it close
    }
  }

  socket.on("data", onData);
  socket.on("drain", drain);
  socket.on("error", () => socket.destroy()); // its close follows
  socket.on("end", () => { end(); socket.end(); });
  socket.on("close", end);
  if (early.length > 0) onData(Buffer.from(early));
  socket.resume();

  return {
    open(headers, events) {
      const id = nextId;
      nextId += 2;
      streams.set(id, events);
      send(control(SYN_STREAM, 0, Buffer.concat([words(id, 0), Buffer.from([0, 0]), deflate(headerBlock(headers))])));
      let ended = false;
      return {
        write(bytes) {
          if (ended) return true;
          let more = true;
          for (let at = 0; at < bytes.length; at += DATA_BYTES_MAX) more = send(dataFrame(id, 0, bytes.subarray(at, at + DATA_BYTES_MAX)));
          return more;
        },
        end() {
          if (ended) return;
          ended = true;
          send(dataFrame(id, FIN, new Uint8Array(0)));
        },
        reset() {
          ended = true;
          streams.delete(id);
          send(control(RST_STREAM, 0, words(id, CANCEL)));
        },
      };
    },
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    close() {
      socket.destroy(); // what was not taken by now is for nobody
      end();
    },
  };
}

function words(...numbers: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * numbers.length);
  numbers.forEach((number, i) => bytes.writeUInt32BE(number, 4 * i));
  return bytes;
}

function control(type: number, flags: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt16BE(VERSION, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt32BE(payload.length, 4);
  head[4] = flags;
  return Buffer.concat([head, payload]);
}

function dataFrame(id: number, flags: number, bytes: Uint8Array): Buffer {
  const whole = Buffer.allocUnsafe(8 + bytes.length);
  whole.writeUInt32BE(id, 0);
  whole.writeUInt32BE(bytes.length, 4);
  whole[4] = flags;
  whole.set(bytes, 8);
  return whole;
}

function headerBlock(headers: Readonly<Record<string, string>>): Buffer {
  const entries = Object.entries(headers);
  const parts: Buffer[] = [words(entries.length)];
  for (const [name, value] of entries) {
    for (const text of [name.toLowerCase(), value]) {
      const bytes = Buffer.from(text);
      parts.push(words(bytes.length), bytes);
    }
  }
  return Buffer.concat(parts);
}

const FLUSH = Buffer.from([0, 0, 0, 0xff, 0xff]);

/** A zlib stream without compression: its header, then a stored block a call, and an empty one, at which inflaters hand out what they have. */
function storedBlocks(): (bytes: Uint8Array) => Buffer {
  let begun = false;
  return (bytes) => {
    const head = Buffer.alloc(5); // not final, stored; length; its complement
    head.writeUInt16LE(bytes.length, 1);
    head.writeUInt16LE(~bytes.length & 0xffff, 3);
    const block = Buffer.concat([...(begun ? [] : [Buffer.from([0x78, 0x01])]), head, bytes, FLUSH]);
    begun = true;
    return block;
  };
}

interface FrameEvents {
  /** A part of a data frame, as it comes. */
  data(id: number, bytes: Buffer): void;
  fin(id: number): void;
  control(type: number, flags: number, payload: Buffer): void;
}

function frameReader(events: FrameEvents): (chunk: Buffer) => void {
  let head = Buffer.alloc(0);
  let current: { readonly id: number; readonly fin: boolean; left: number } | undefined; // a data frame under way
  return (chunk) => {
    let at = 0;
    while (at < chunk.length) {
      if (current) {
        const part = chunk.subarray(at, at + current.left);
        at += part.length;
        current.left -= part.length;
        events.data(current.id, part);
        if (current.left > 0) return;
        if (current.fin) events.fin(current.id);
        current = undefined;
        continue;
      }
      const wanted = head.length < 8 ? 8 : 8 + (head.readUInt32BE(4) & 0xff_ffff);
      const part = chunk.subarray(at, at + wanted - head.length);
      head = Buffer.concat([head, part]);
      at += part.length;
      if (head.length < 8) return;
      const length = head.readUInt32BE(4) & 0xff_ffff;
      const isControl = (head[0]! & 0x80) !== 0;
      if (!isControl) {
        const id = head.readUInt32BE(0);
        const fin = (head[4]! & FIN) !== 0;
        head = Buffer.alloc(0);
        if (length > 0) current = { id, fin, left: length };
        else if (fin) events.fin(id);
        continue;
      }
      if (head.readUInt16BE(0) !== VERSION || length > CONTROL_BYTES_MAX) throw new Error("not a SPDY/3 frame");
      if (head.length < 8 + length) continue;
      const frame = head;
      head = Buffer.alloc(0);
      events.control(frame.readUInt16BE(2), frame[4]!, frame.subarray(8));
    }
  };
}
