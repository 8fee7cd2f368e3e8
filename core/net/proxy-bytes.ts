/** Two connections as one: what comes in on either goes out on the other, no faster than it is taken. */
import type { Duplex } from "node:stream";
import type { Clock } from "../lifecycle/clock.ts";

/** The other side gets this long to end too, once one side has and it has taken all there was for it. */
const LINGER_MS = 10_000;
/** So long it may take that: as much as waits here goes over the slowest link meanwhile. Source: http-server.ts stalledMs */
const TAKE_MS = 60_000;

/** Both are closed when it resolves. `early` is what `a` had sent before it was handed over. */
export function proxyBytes(a: Duplex, b: Duplex, { clock, early }: { readonly clock: Clock; readonly early?: Uint8Array }): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const closed = new Set<Duplex>();
  if (early && early.length > 0) b.write(early);
  forward(a, b);
  forward(b, a);
  return promise;

  function forward(from: Duplex, to: Duplex): void {
    from.on("data", (chunk: Buffer) => {
      if (!to.writable) return;
      if (!to.write(chunk)) from.pause();
    });
    to.on("drain", () => from.resume());
    from.on("end", () => finish(to));
    from.on("error", () => from.destroy()); // the close that follows says all there is to do
    from.on("close", () => onClose(from, to));
    if (from.destroyed) queueMicrotask(() => onClose(from, to));
    else from.resume();
  }

  function onClose(from: Duplex, to: Duplex): void {
    closed.add(from);
    finish(to);
    if (closed.size === 2) resolve();
  }

  /** Nothing more will be written to it: it ends with what it has. */
  function finish(socket: Duplex): void {
    if (socket.destroyed || socket.writableEnded) return;
    let late = clock.after(TAKE_MS, () => socket.destroy());
    socket.once("close", () => late.cancel());
    socket.end(() => {
      late.cancel();
      if (socket.readableEnded) socket.destroy();
      else if (!socket.destroyed) late = clock.after(LINGER_MS, () => socket.destroy());
    });
  }
}
