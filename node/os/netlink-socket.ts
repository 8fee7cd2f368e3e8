/**
 * A netlink socket, through the C library: neither Bun nor Node has one. Calls block, but the kernel answers a request before `send` returns.
 */
import { CString, dlopen, type Pointer, ptr, read } from "bun:ffi";
import { NLM, NLMSG, readMessages, writeMessage } from "./netlink-message.ts";

export interface NetlinkSocket {
  /** Throws NetlinkError with the kernel's errno. */
  request(type: number, flags: number, payload: Uint8Array): void;
  /** What `write` makes of the sequence number: messages of which only the last is acknowledged. */
  batch(write: (sequence: number) => Uint8Array): void;
  /** The payloads that answer a question about one object. */
  get(type: number, payload: Uint8Array): Uint8Array[];
  /** The payloads of all objects of a kind. */
  dump(type: number, payload: Uint8Array): Uint8Array[];
  /** The same, as the kernel hands them over, of kinds of which there may be a hundred thousand. What changes meanwhile may be missing. No other call before it has come to its end: the kernel takes none. */
  dumpInParts(type: number, payload: Uint8Array): Iterable<readonly Uint8Array[]>;
  close(): void;
}

export class NetlinkError extends Error {
  readonly errno: number;
  constructor(message: string, errno: number) {
    super(message);
    this.name = "NetlinkError";
    this.errno = errno;
  }
}

const AF_NETLINK = 16, SOCK_RAW = 3, SOCK_CLOEXEC = 0o2000000, NETLINK_ROUTE = 0, SOL_SOCKET = 1, SO_RCVTIMEO = 20, EINTR = 4;
/** More than the kernel puts into one datagram of a dump. */
const DATAGRAM_BYTES_MAX = 1 << 16;
const TIMEOUT_SECONDS = 5;
/** A dump during which something changed is marked as such, and made again. */
const DUMP_INTERRUPTED = 0x10, TRIES_MAX = 5;

/** `protocol`: absent, the network configuration's. */
export function netlinkSocket(protocol: number = NETLINK_ROUTE): NetlinkSocket {
  const { symbols: c } = dlopen("libc.so.6", {
    socket: { args: ["i32", "i32", "i32"], returns: "i32" },
    setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
    send: { args: ["i32", "ptr", "usize", "i32"], returns: "i64" },
    recv: { args: ["i32", "ptr", "usize", "i32"], returns: "i64" },
    close: { args: ["i32"], returns: "i32" },
    strerror: { args: ["i32"], returns: "ptr" },
    __errno_location: { args: [], returns: "ptr" },
  });
  const errno = (): number => read.i32(c.__errno_location() as Pointer, 0);
  const describe = (number: number): string => new CString(c.strerror(number) as Pointer).toString();
  const fd = c.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
  if (fd < 0) throw new NetlinkError(`netlink socket: ${describe(errno())}`, errno());
  const timeout = new BigInt64Array([BigInt(TIMEOUT_SECONDS), 0n]);
  c.setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, ptr(timeout), timeout.byteLength);
  const buffer = new Uint8Array(DATAGRAM_BYTES_MAX);
  let sequence = 0;

  function send(type: number, flags: number, payload: Uint8Array): void {
    sendBytes(writeMessage({ type, flags, sequence: ++sequence, payload }));
  }

  function sendBytes(message: Uint8Array): void {
    if (Number(c.send(fd, ptr(message), message.length, 0)) < 0) throw new NetlinkError(`netlink send: ${describe(errno())}`, errno());
  }

  function receive(): Uint8Array {
    for (;;) {
      const length = Number(c.recv(fd, ptr(buffer), buffer.length, 0));
      if (length >= 0) return buffer.slice(0, length);
      const number = errno();
      if (number !== EINTR) throw new NetlinkError(`netlink receive: ${describe(number)}`, number);
    }
  }

  /** Payloads that answer the last request, datagram by datagram, until the kernel says that it was the last. Returns whether something changed meanwhile. */
  function* answers(): Generator<readonly Uint8Array[], boolean> {
    let interrupted = false, isLast = false;
    while (!isLast) {
      const payloads: Uint8Array[] = [];
      for (const message of readMessages(receive())) {
        if (message.sequence !== sequence) continue; // of a request that was given up
        if ((message.flags & DUMP_INTERRUPTED) !== 0) interrupted = true;
        isLast ||= message.type === NLMSG.DONE || message.type === NLMSG.ERROR;
        if (message.type === NLMSG.ERROR) checkError(message.payload);
        else if (message.type !== NLMSG.DONE) payloads.push(message.payload);
      }
      yield payloads;
    }
    return interrupted;
  }

  function checkError(payload: Uint8Array): void {
    const number = -new DataView(payload.buffer, payload.byteOffset).getInt32(0, true);
    if (number !== 0) throw new NetlinkError(`netlink: ${describe(number)}`, number);
  }

  function collect(): { readonly payloads: Uint8Array[]; readonly interrupted: boolean } {
    const payloads: Uint8Array[] = [], coming = answers();
    for (;;) {
      const { done, value } = coming.next();
      if (done) return { payloads, interrupted: value };
      for (const payload of value) payloads.push(payload);
    }
  }

  return {
    request(type, flags, payload) {
      send(type, flags, payload);
      collect();
    },
    batch(write) {
      sendBytes(write(++sequence));
      collect();
    },
    get(type, payload) {
      send(type, NLM.REQUEST | NLM.ACK, payload);
      return collect().payloads;
    },
    dump(type, payload) {
      for (let tries = 1; ; tries++) {
        send(type, NLM.REQUEST | NLM.DUMP, payload);
        const { payloads, interrupted } = collect();
        if (!interrupted || tries >= TRIES_MAX) return payloads;
      }
    },
    *dumpInParts(type, payload) {
      send(type, NLM.REQUEST | NLM.DUMP, payload);
      yield* answers();
    },
    close: () => void c.close(fd),
  };
}
