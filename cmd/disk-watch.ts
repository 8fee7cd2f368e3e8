/**
 * A disk that hangs: it takes a write and does not answer, for seconds or for ever. The store's readers do not notice, its writers wait; whoever asks after the server's health is told,
 * and so is the log.
 */
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Log } from "../core/observe/log.ts";

export interface DiskWatch {
  /** As the store's `onDisk`. */
  readonly onDisk: (busy: boolean) => void;
  /** Why nothing can be written; undefined: something can. */
  trouble(): string | undefined;
}

/** As long as upstream's health check waits for the store. */
const SLOW_MS = 2_000;
/** A flash card that collects its garbage takes seconds now and then. */
const HUNG_MS = 10_000;

export function diskWatch({ path, clock, log }: { readonly path: string; readonly clock: Pick<Clock, "uptimeMs" | "after">; readonly log: Pick<Log, "error" | "info"> }): DiskWatch {
  let busy: { readonly sinceMs: number; readonly alarm: { cancel(): void } } | undefined;
  let told = false;
  const waitedMs = (): number => (busy ? clock.uptimeMs() - busy.sinceMs : 0);

  function answered(): void {
    busy?.alarm.cancel();
    if (told) log.info("the store's disk answers again", { path, afterSeconds: Math.round(waitedMs() / 1000) });
    busy = undefined;
    told = false;
  }

  function hung(): void {
    told = true;
    log.error("the store's disk does not answer: what is there can be read, writes wait", { path, remedy: "the system's log tells of the disk (dmesg); all goes on by itself once it answers" });
  }

  return {
    onDisk(isBusy) {
      if (isBusy) busy = { sinceMs: clock.uptimeMs(), alarm: clock.after(HUNG_MS, hung) };
      else answered();
    },
    trouble: () => (waitedMs() >= SLOW_MS ? `the disk has not answered for ${Math.floor(waitedMs() / 1000)} s` : undefined),
  };
}
