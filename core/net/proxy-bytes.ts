/** Two connections as one: what comes in on either goes out on the other, no faster than it is taken. */
import type { Duplex } from "node:stream";
import type { Clock } from "../lifecycle/clock.ts";
import { endLingering } from "./linger.ts";
import { readFirst } from "./read-first.ts";

/** So much of what comes when nobody is there any more is read on the way to its end: who goes on regardless is cut off. More than what was under way, some MB. */
const UNHEARD_BYTES_MAX = 64 * 1024 * 1024;

interface Options {
  readonly clock: Clock;
  /** What `a` had sent before it was handed over. */
  readonly early?: Uint8Array;
  /** What of the bytes that `a` sends goes on to `b` by now. Throws for what must not: then both are cut off. */
  readonly gate?: (chunk: Uint8Array) => Buffer;
}

/** Both are closed when it resolves. `b` is the one that is asked: it may refuse what it is sent without reading it. */
export function proxyBytes(a: Duplex, b: Duplex, { clock, early, gate }: Options): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const closed = new Set<Duplex>();
  readFirst(b);
  if (early && early.length > 0) pass(a, b, early);
  forward(a, b);
  forward(b, a);
  return promise;

  function forward(from: Duplex, to: Duplex): void {
    from.on("data", (chunk: Buffer) => {
      if (!to.writable) return;
      if (!pass(from, to, chunk)) from.pause();
    });
    to.on("drain", () => from.resume());
    from.on("end", () => endLingering(to, clock));
    from.on("error", () => from.destroy()); // the close that follows says all there is to do
    from.on("close", () => onClose(from, to));
    if (from.destroyed) queueMicrotask(() => onClose(from, to));
    else from.resume();
  }

  /** False: no more for now. */
  function pass(from: Duplex, to: Duplex, chunk: Uint8Array): boolean {
    if (!gate || from !== a) return to.write(chunk);
    try {
      const through = gate(chunk);
      return through.length === 0 || to.write(through);
    } catch {
      a.destroy();
      b.destroy();
      return true;
    }
  }

  function onClose(from: Duplex, to: Duplex): void {
    closed.add(from);
    endLingering(to, clock);
    if (closed.size === 2) resolve();
    else {
      let unheard = 0;
      to.on("data", ({ length }: Buffer) => { if ((unheard += length) > UNHEARD_BYTES_MAX) to.destroy(); });
      to.resume(); // what comes now has nobody to go to, but its end is to be seen
    }
  }
}
