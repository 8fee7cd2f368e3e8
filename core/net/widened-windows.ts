/**
 * HTTP/2 streams whose peer widens its windows while they run, as clients and servers of gRPC do once they have seen how fast the way is.
 *
 *   clientMayWiden(socket, () => begin(socket));     `begin` makes the server's connection of the socket
 *   serverMayWiden(http2.connect(…));                in the same turn
 *
 * A larger SETTINGS_INITIAL_WINDOW_SIZE is that much more for each stream (RFC 9113, 6.9.2). Bun 1.4.5 takes it for the least that a stream may have been given in all: where
 * WINDOW_UPDATE had given one more before, as after some megabytes, that is lost, and it stands still for ever if its peer waits for its end. So what comes on such a connection is looked
 * through for these two before the engine reads it, and what it will miss is given as one more WINDOW_UPDATE. The engine's own way from the socket to its frames, past JavaScript, is not
 * taken there: a megabyte costs half a millisecond more, and what comes in one piece is told of in one go, without a turn for whoever waits between head and end.
 */
import type { ClientHttp2Session, ServerHttp2Session } from "node:http2";
import { clientPrototypes, FRAMES } from "./engine-http2.ts";

interface Frames { read(data: Uint8Array): unknown; setNativeSocket(handle: unknown): unknown; getStreamContext(stream: number): unknown }
interface Handled { _handle: unknown }
/** What a stream has been allowed in all: by its peer, and as far as the engine knows, which a smaller window does not take back. */
interface Allowance { told: number; known: number }

const HEAD_BYTES = 9, PREFACE_BYTES = 24, SETTING_BYTES = 6;
const SETTINGS = 4, WINDOW_UPDATE = 8, ACK = 1, INITIAL_WINDOW_SIZE = 4;
const WINDOW_FIRST = 65_535, WINDOW_MAX = 2 ** 31 - 1;
/** Of SETTINGS: more than there are names for. A larger frame is not looked into. */
const PAYLOAD_BYTES_MAX = 1024;
/** Streams of which there is no more to say are forgotten once there are twice as many as there were open then, and so many at least. */
const STREAMS_KEPT = 256;

const byFrames = new WeakMap<Frames, PeerWindows>();

class PeerWindows {
  readonly #read: (bytes: Uint8Array) => void;
  readonly #isOpen: (stream: number) => boolean;
  readonly #streams = new Map<number, Allowance>();
  #streamsMax = STREAMS_KEPT;
  #initial = WINDOW_FIRST;
  /** The largest there was. */
  #highest = WINDOW_FIRST;
  /** Bytes that are of no interest, and go by. */
  #skip: number;
  /** Of a frame: its head, and what is in it once that is to be seen. */
  #kept: Buffer = Buffer.alloc(0);
  #wanted = HEAD_BYTES;

  /** `read`: the engine's. */
  constructor(read: (bytes: Uint8Array) => void, isOpen: (stream: number) => boolean, skip: number) {
    this.#read = read;
    this.#isOpen = isOpen;
    this.#skip = skip;
  }

  take(bytes: Uint8Array): void {
    let read = 0;
    for (let at = 0; at < bytes.length;) {
      if (this.#skip > 0) {
        const gone = Math.min(this.#skip, bytes.length - at);
        this.#skip -= gone;
        at += gone;
        continue;
      }
      const part = bytes.subarray(at, at + this.#wanted - this.#kept.length);
      this.#kept = Buffer.concat([this.#kept, part]);
      at += part.length;
      if (this.#kept.length < this.#wanted) break;
      const settings = this.#looked();
      if (settings === undefined) continue;
      this.#read(bytes.subarray(read, at)); // streams may have begun there
      read = at;
      const missing = this.#begin(settings);
      if (missing.length > 0) this.#read(missing);
    }
    if (read < bytes.length) this.#read(read === 0 ? bytes : bytes.subarray(read));
  }

  /** A head, or a frame, is there as a whole. Returns what is in one of SETTINGS. */
  #looked(): Buffer | undefined {
    const frame = this.#kept, lengthBytes = frame.readUIntBE(0, 3), type = frame[3], flags = frame[4]!, stream = frame.readUInt32BE(5) & WINDOW_MAX;
    const counts = (type === WINDOW_UPDATE && stream !== 0 && lengthBytes === 4) || (type === SETTINGS && (flags & ACK) === 0 && lengthBytes <= PAYLOAD_BYTES_MAX);
    if (counts && frame.length < HEAD_BYTES + lengthBytes) {
      this.#wanted = HEAD_BYTES + lengthBytes;
      return undefined;
    }
    this.#kept = Buffer.alloc(0);
    this.#wanted = HEAD_BYTES;
    if (!counts) this.#skip = lengthBytes;
    else if (type === WINDOW_UPDATE) this.#allow(stream, frame.readUInt32BE(HEAD_BYTES) & WINDOW_MAX);
    else return frame.subarray(HEAD_BYTES);
    return undefined;
  }

  #allow(stream: number, more: number): void {
    const allowance = this.#streams.get(stream);
    if (allowance) {
      allowance.told += more;
      allowance.known += more;
      return;
    }
    if (this.#streams.size >= this.#streamsMax) {
      for (const one of this.#streams.keys()) if (!this.#isOpen(one)) this.#streams.delete(one);
      this.#streamsMax = Math.max(STREAMS_KEPT, 2 * this.#streams.size);
    }
    this.#streams.set(stream, { told: this.#initial + more, known: this.#highest + more });
  }

  /** With the windows that SETTINGS say, which the engine has read. Returns what it is to be told behind them. */
  #begin(settings: Buffer): Buffer {
    const before = this.#initial, missing: Buffer[] = [];
    for (let at = 0; at + SETTING_BYTES <= settings.length; at += SETTING_BYTES) if (settings.readUInt16BE(at) === INITIAL_WINDOW_SIZE) this.#initial = settings.readUInt32BE(at + 2);
    if (this.#initial === before || this.#initial > WINDOW_MAX) return Buffer.alloc(0);
    this.#highest = Math.max(this.#highest, this.#initial);
    for (const [stream, allowance] of this.#streams) {
      allowance.told += this.#initial - before;
      allowance.known = Math.max(allowance.known, this.#initial);
      const more = allowance.told - allowance.known;
      if (more <= 0) continue;
      allowance.known = allowance.told;
      if (this.#isOpen(stream)) missing.push(windowUpdate(stream, more));
      else this.#streams.delete(stream);
    }
    return Buffer.concat(missing);
  }
}

function windowUpdate(stream: number, bytes: number): Buffer {
  const frame = Buffer.alloc(HEAD_BYTES + 4);
  frame.writeUIntBE(4, 0, 3);
  frame.writeUInt8(WINDOW_UPDATE, 3);
  frame.writeUInt32BE(stream, 5);
  frame.writeUInt32BE(bytes, HEAD_BYTES);
  return frame;
}

const engineRead = lookThrough();

function lookThrough(): Frames["read"] | undefined {
  const prototype = clientPrototypes().frames as Partial<Frames> | undefined, read = prototype?.read, setNativeSocket = prototype?.setNativeSocket;
  if (!read || !setNativeSocket) return undefined;
  prototype.read = function (this: Frames, data) {
    const windows = byFrames.get(this);
    return windows ? windows.take(data) : read.call(this, data);
  };
  prototype.setNativeSocket = function (this: Frames, handle) { return byFrames.has(this) ? undefined : setNativeSocket.call(this, handle); }; // or the engine reads from there itself
  return read;
}

export function clientMayWiden(socket: object, begin: () => ServerHttp2Session | undefined): void {
  const handled = socket as Handled, { _handle: handle } = handled;
  handled._handle = undefined; // or the engine reads from there itself
  try {
    lookInto(begin(), PREFACE_BYTES);
  } finally {
    handled._handle = handle;
  }
}

export function serverMayWiden(session: ClientHttp2Session): void { lookInto(session, 0); }

function lookInto(session: object | undefined, skip: number): void {
  const { [FRAMES]: frames } = (session ?? {}) as { readonly [FRAMES]?: Frames };
  if (frames && engineRead) byFrames.set(frames, new PeerWindows((bytes) => void engineRead.call(frames, bytes), (stream) => isOpen(frames, stream), skip));
}

function isOpen(frames: Frames, stream: number): boolean {
  try {
    frames.getStreamContext(stream);
    return true;
  } catch {
    return false;
  }
}
