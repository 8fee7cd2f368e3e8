/**
 * Keeps the unpacked node components (unpack.ts) what they were: a bit that a worn card has flipped in runc, in a shim or in a plugin fails each pod of the node from then on, and the node
 * says that it is Ready. They are read a while after each start and once a day, slowly; and when containerd does not stay up, before it is started again.
 */
import type { Clock } from "../../core/lifecycle/clock.ts";
import { keyedTurns } from "../../core/lifecycle/keyed-turns.ts";
import type { Log } from "../../core/observe/log.ts";
import { mendBundle, type Unpacking } from "./unpack.ts";

/** A node that starts has other things to read. */
const FIRST_MS = 2 * 60_000;
const PERIOD_MS = 24 * 3_600_000;
/** Between two MiB: of 200 that takes some seconds, and nobody waits for it. */
const PAUSE_MS = 20;
/** containerd itself is among them. */
const CONTAINERD = "bin/containerd";

export interface WholeComponents {
  /** At once, for who cannot use them. Whatever goes wrong with it is logged. */
  mend(signal: AbortSignal): Promise<void>;
  /** Until `signal` aborts. */
  keep(signal: AbortSignal): Promise<void>;
}

/** `restart`: has containerd started anew, from what is whole again. */
export function wholeComponents(unpacking: Unpacking, { clock, log, restart }: { readonly clock: Clock; readonly log: Log; readonly restart: () => Promise<unknown> }): WholeComponents {
  const inTurn = keyedTurns();

  async function look(signal: AbortSignal, pauseMs: number): Promise<string | undefined> {
    return await inTurn("", async () => {
      try {
        return await mendBundle(unpacking, async () => {
          if (pauseMs > 0) await clock.sleep(pauseMs, signal);
          signal.throwIfAborted();
        });
      } catch (error) {
        if (!signal.aborted) log.error("node components cannot be looked at, or not unpacked anew", { error });
        return undefined;
      }
    });
  }

  return {
    mend: async (signal) => void (await look(signal, 0)),
    async keep(signal) {
      for (let waitMs = FIRST_MS; ; waitMs = PERIOD_MS) {
        await clock.sleep(waitMs, signal);
        if (signal.aborted) return;
        if ((await look(signal, PAUSE_MS)) === CONTAINERD) await restart();
      }
    },
  };
}
