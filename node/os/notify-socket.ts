/** One datagram to a unix socket, through the C library: neither Bun nor Node sends them. */
import { CString, dlopen, type Pointer, ptr, read } from "bun:ffi";

const AF_UNIX = 1, SOCK_DGRAM = 2, SOCK_CLOEXEC = 0o2000000, MSG_NOSIGNAL = 0x4000;
/** sizeof(sun_path) */
const PATH_BYTES_MAX = 108;
const FAMILY_BYTES = 2;

/** `socket`: a path, or @name in the abstract namespace. Throws with the system's words. */
export function sendDatagram(socket: string, text: string): void {
  const path = Buffer.from(socket.startsWith("@") ? `\0${socket.slice(1)}` : socket);
  if (path.length >= PATH_BYTES_MAX) throw new Error(`unix socket ${socket}: the path is too long`);
  const address = new Uint8Array(FAMILY_BYTES + path.length + (socket.startsWith("@") ? 0 : 1));
  new DataView(address.buffer).setUint16(0, AF_UNIX, true);
  address.set(path, FAMILY_BYTES);
  const message = Buffer.from(text);
  const { symbols: c } = dlopen("libc.so.6", {
    socket: { args: ["i32", "i32", "i32"], returns: "i32" },
    sendto: { args: ["i32", "ptr", "usize", "i32", "ptr", "u32"], returns: "i64" },
    close: { args: ["i32"], returns: "i32" },
    strerror: { args: ["i32"], returns: "ptr" },
    __errno_location: { args: [], returns: "ptr" },
  });
  const problem = (): Error => new Error(`unix socket ${socket}: ${new CString(c.strerror(read.i32(c.__errno_location() as Pointer, 0)) as Pointer).toString()}`);
  const fd = c.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw problem();
  try {
    if (Number(c.sendto(fd, ptr(message), message.length, MSG_NOSIGNAL, ptr(address), address.length)) < 0) throw problem();
  } finally {
    c.close(fd);
  }
}
