/**
 * How a connection ends from this side without loss: it gets what was written to it, however slow the way, and is closed when the other side has ended too.
 *
 * Closing earlier would lose what the network has not delivered yet: whatever the other side sends to a closed connection (a ping is enough) is answered with a reset, which
 * overtakes the data. So while something is heard of it, it is still reading.
 */
import type { Duplex } from "node:stream";
import type { Clock } from "../lifecycle/clock.ts";

/** So long it may take what waits here: as much as that goes over the slowest link meanwhile. Source: http-server.ts stalledMs */
const TAKE_MS = 60_000;
/** Then nothing has been heard of it for so long: clients of Kubernetes send a ping every five seconds. */
const SILENT_MS = 30_000;
/** Whatever it says: what the kernel holds of one connection, some MB, has gone over a slow link by then. */
const LINGER_MS_MAX = 600_000;

/** Nothing more will be written to `socket`; what it still sends is for those who listen. */
export function endLingering(socket: Duplex, clock: Clock): void {
  if (socket.destroyed || socket.writableEnded) return;
  const destroy = (): void => void socket.destroy();
  let late = clock.after(TAKE_MS, destroy);
  socket.once("close", () => late.cancel());
  socket.end(() => {
    late.cancel();
    if (socket.readableEnded) return destroy();
    if (socket.destroyed) return;
    const last = clock.after(LINGER_MS_MAX, destroy);
    const heard = (): void => {
      late.cancel();
      late = clock.after(SILENT_MS, destroy);
    };
    heard();
    socket.on("data", heard).once("close", () => last.cancel());
  });
}
