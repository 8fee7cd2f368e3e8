/**
 * One connection through the tunnel, the same at both ends: a Duplex whose bytes travel as DATA packets.
 *
 * What has arrived waits here until it is read, never more than the window (window.ts); what is written waits in the Duplex until there is credit for it
 * and a turn on the stream (multiplexer.ts). Once the peer has closed, what it sent can still be read; what is written then goes nowhere, as on a
 * socket nobody reads.
 */
import { Duplex } from "node:stream";

/** What a connection needs of the multiplexer it belongs to. */
export interface Line {
  /** `connection` would send. Its `sendPiece` is called when it is its turn. */
  wantsToSend(connection: TunnelConnection): void;
  sendData(connection: TunnelConnection, data: Buffer): void;
  sendEnd(connection: TunnelConnection): void;
  onRead(connection: TunnelConnection, bytes: number): void;
  /** It is destroyed. */
  onGone(connection: TunnelConnection): void;
}

/** Far less than what comes at once from the network; and what small pieces that wait are joined to. */
const SMALL_BYTES = 4 * 1024, JOINED_BYTES_MAX = 16 * 1024;
const EMPTY = Buffer.alloc(0);
/** At most this much in one packet, so that others get their turn soon. */
const PIECE_BYTES_MAX = 32 * 1024;

export class TunnelConnection extends Duplex {
  readonly connectId: number;
  readonly #line: Line;
  /** What may be sent. Infinity: the peer knows no credit. */
  #credit: number;
  #arrived: Buffer[] = [];
  /** Of which the last that has arrived is the beginning, if it was joined: more may be put behind it. */
  #store = EMPTY;
  #arrivedBytes = 0;
  #wanted = false;
  #pending: { data: Buffer; done: () => void } | undefined;
  #endSent = false;
  #endReceived = false;
  #closedByPeer = false;
  #peerError: Error | undefined;

  constructor(connectId: number, line: Line, credit: number) {
    super({ readableHighWaterMark: 64 * 1024, writableHighWaterMark: 64 * 1024 });
    this.connectId = connectId;
    this.#line = line;
    this.#credit = credit;
  }

  /** Arrived and not read. */
  get arrivedBytes(): number { return this.#arrivedBytes; }
  get closedByPeer(): boolean { return this.#closedByPeer; }
  /** Both ends have said that no more comes: nothing is left to be said. */
  get ended(): boolean { return this.#endSent && this.#endReceived; }
  get canSend(): boolean { return this.#pending !== undefined && this.#credit > 0; }

  // from the peer

  takeData(data: Buffer): void {
    if (this.destroyed || this.#endReceived || this.#closedByPeer || data.length === 0) return; // of nothing there may be as much as the peer likes
    this.#keep(data);
    this.#arrivedBytes += data.length;
    this.#deliver();
  }

  /** What is small is copied: a byte would keep all that has come beside it, and of those that wait each would be an object of its own. What waits is not copied again for each. */
  #keep(data: Buffer): void {
    const last = this.#arrived.at(-1), length = (last?.length ?? 0) + data.length;
    if (data.length >= SMALL_BYTES) return void this.#arrived.push(data);
    if (!last || length > JOINED_BYTES_MAX) return void this.#arrived.push(Buffer.from(data));
    if (last.buffer !== this.#store.buffer || last.byteOffset !== this.#store.byteOffset || length > this.#store.length) {
      this.#store = Buffer.allocUnsafe(Math.min(2 * length, JOINED_BYTES_MAX));
      last.copy(this.#store);
    }
    data.copy(this.#store, last.length);
    this.#arrived[this.#arrived.length - 1] = this.#store.subarray(0, length);
  }

  takeCredit(bytes: number): void {
    this.#credit += bytes;
    if (this.canSend) this.#line.wantsToSend(this);
  }

  takeEnd(): void {
    this.#endReceived = true;
    this.#deliver();
  }

  /** `error`: why, if it did not end well. */
  takeClose(error: string): void {
    if (this.#closedByPeer) return;
    this.#closedByPeer = true;
    if (error !== "") this.#peerError = new Error(error);
    const { done } = this.#pending ?? {};
    this.#pending = undefined;
    done?.();
    if (!this.writableEnded) this.end();
    this.#deliver();
  }

  /** The next piece, at its turn. */
  sendPiece(): void {
    if (!this.#pending || this.#credit <= 0) return;
    const { data, done } = this.#pending;
    const length = Math.min(data.length, this.#credit, PIECE_BYTES_MAX);
    this.#credit -= length;
    this.#pending = length < data.length ? { data: data.subarray(length), done } : undefined; // first: what is sent may be answered before sendData returns
    this.#line.sendData(this, data.subarray(0, length));
    if (length === data.length) done();
  }

  #deliver(): void {
    while (this.#wanted && this.#arrived.length > 0) {
      const data = this.#arrived.shift()!;
      this.#arrivedBytes -= data.length;
      this.#wanted = false;
      if (this.push(data)) this.#wanted = true;
      this.#line.onRead(this, data.length);
    }
    if (this.#arrived.length > 0 || !(this.#endReceived || this.#closedByPeer)) return;
    if (this.#peerError) this.destroy(this.#peerError);
    else if (!this.readableEnded) this.push(null);
  }

  // of the Duplex

  override _read(): void {
    this.#wanted = true;
    this.#deliver();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.#closedByPeer || chunk.length === 0) return done();
    this.#pending = { data: chunk, done };
    if (this.canSend) this.#line.wantsToSend(this);
  }

  override _final(done: () => void): void {
    if (!this.#closedByPeer) {
      this.#endSent = true;
      this.#line.sendEnd(this);
    }
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#arrived = [];
    this.#store = EMPTY;
    this.#arrivedBytes = 0;
    this.#pending = undefined;
    this.#line.onGone(this);
    done(error);
  }
}
