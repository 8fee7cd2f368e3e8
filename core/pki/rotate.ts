/**
 * Renews certificates before they expire, and at once when the clock jumps to where they do not hold.
 * `onRenewed` hands them to who uses them: the HTTPS server reloads, clients make new connections.
 */
import type { Clock } from "../lifecycle/clock.ts";
import type { Runnable } from "../lifecycle/run-all.ts";
import type { Log } from "../observe/log.ts";
import type { Pki } from "./pki.ts";

/** Reading a few dates in memory and some small files; a clock that jumps leaves us without TLS for that long at most. */
const CHECK_MS = 60_000;

export interface RotationOptions {
  readonly pki: Pick<Pki, "renew">;
  readonly clock: Clock;
  readonly log: Log;
  /** Called again with the next check when it fails. */
  readonly onRenewed: (names: readonly string[]) => void | Promise<void>;
  readonly failed?: (() => void) | undefined;
}

export function certificateRotation({ pki, clock, log, onRenewed, failed }: RotationOptions): Runnable {
  return {
    name: "certificate rotation",
    async run(signal, ready) {
      ready();
      let renewed: readonly string[] = [];
      for await (const _ of clock.every(CHECK_MS, signal)) {
        try {
          renewed = [...renewed, ...await pki.renew()];
          if (renewed.length > 0) await onRenewed(renewed);
          renewed = [];
        } catch (error) {
          failed?.();
          log.error("certificates could not be renewed", { error }); // a full disk passes: the next check tries again
        }
      }
    },
  };
}
