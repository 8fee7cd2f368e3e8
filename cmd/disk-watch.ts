/**
 * A disk that hangs, which takes a write and does not answer, for seconds or for ever; and one that refuses: a flash card at its end, whose file system is read-only from then on.
 * The store's readers notice neither, its writers wait or fail; whoever asks after the server's health is told, and so is the log. A full disk is told of by others: it takes deletes.
 */
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Log } from "../core/observe/log.ts";
import type { StoreError } from "../storage/store.ts";

export interface DiskWatch {
  /** As the store's `onDisk`. */
  readonly onDisk: (busy: boolean, refused?: StoreError) => void;
  /** Why nothing can be written; undefined: something can. */
  trouble(): string | undefined;
}

/** As long as upstream's health check waits for the store. */
const SLOW_MS = 2_000;
/** A flash card that collects its garbage takes seconds now and then. */
const HUNG_MS = 10_000;

interface Options {
  readonly path: string;
  readonly clock: Pick<Clock, "uptimeMs" | "after">;
  readonly log: Pick<Log, "error" | "info">;
  /** Who is told once that nothing can be written, and why. */
  readonly onRefused?: (reason: string) => void;
}

export function diskWatch({ path, clock, log, onRefused }: Options): DiskWatch {
  let busy: { readonly sinceMs: number; readonly alarm: { cancel(): void } } | undefined;
  let told = false;
  let refusedFor: string | undefined;
  const waitedMs = (): number => (busy ? clock.uptimeMs() - busy.sinceMs : 0);

  function answered(): void {
    busy?.alarm.cancel();
    if (told) log.info("the store's disk answers again", { path, afterSeconds: Math.round(waitedMs() / 1000) });
    busy = undefined;
    told = false;
  }

  function refuses(error: StoreError | undefined): void {
    if (error?.code === "full") return;
    const before = refusedFor;
    refusedFor = error && String(error.fields["reason"] ?? error.message);
    if (refusedFor !== undefined && before === undefined) {
      log.error("the store's disk refuses what is written: what is there can be read", { path, ...error?.fields });
      onRefused?.(refusedFor);
    }
    if (refusedFor === undefined && before !== undefined) log.info("the store's disk takes what is written again", { path });
  }

  function hung(): void {
    told = true;
    log.error("the store's disk does not answer: what is there can be read, writes wait", { path, remedy: "the system's log tells of the disk (dmesg); all goes on by itself once it answers" });
  }

  return {
    onDisk(isBusy, refused) {
      if (isBusy) busy = { sinceMs: clock.uptimeMs(), alarm: clock.after(HUNG_MS, hung) };
      else {
        answered();
        refuses(refused);
      }
    },
    trouble: () => (waitedMs() >= SLOW_MS ? `the disk has not answered for ${Math.floor(waitedMs() / 1000)} s` : refusedFor && `the disk refuses what is written: ${refusedFor}`),
  };
}
