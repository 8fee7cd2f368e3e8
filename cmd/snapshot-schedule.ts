/** Snapshots that the server takes by itself, each day or with --snapshot-every, counted from the newest one that is there, so that a restart neither adds one nor leaves one out. */
import { join } from "node:path";
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Runnable } from "../core/lifecycle/run-all.ts";
import { until } from "../core/lifecycle/until.ts";
import { parseDurationMs } from "../core/api/meta/duration.ts";
import type { Log } from "../core/observe/log.ts";
import { inspectBackup, saveBackup } from "../storage/backup.ts";
import { REVISIONS_SKIPPED } from "../storage/check.ts";
import type { Revision } from "../storage/store.ts";
import { ConfigError } from "./config/config.ts";
import type { Settings } from "./config/flags.ts";
import { newestSnapshot, newestSnapshotMs, newSnapshotFile, pruneSnapshots } from "./snapshot-files.ts";

/** A server that has just started has better things to do. */
const SETTLE_MS = 60_000;
const RETRY_MS = 10 * 60_000;
const EVERY_MS_MIN = 60_000;
/** Of the built-in store: a damaged one is mended with the newest (storage/mend.ts). A small cluster's snapshot has some 100 kB. */
const DEFAULT_EVERY = "24h";
/** What the store itself needs to go on (storage/leveldb), twice: a snapshot that nobody asked for takes nobody's last room. */
const FREE_BYTES_MIN = 64 * 1024 * 1024;

interface Options {
  readonly settings: Pick<Settings, "snapshotEvery" | "snapshotKeep">;
  /** The store is etcd's, which has its own ways. */
  readonly isShared: boolean;
  readonly directory: string;
  readonly freeBytesMin?: number;
  /** The store's. */
  revision(): Revision;
  /** The bytes of a snapshot. */
  take(): Promise<AsyncIterable<Uint8Array>>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Infinity: never. Throws ConfigError. */
export function snapshotEveryMs({ snapshotEvery, snapshotKeep }: Options["settings"], { isShared }: Pick<Options, "isShared">): number {
  const every = snapshotEvery ?? (isShared ? "0" : DEFAULT_EVERY);
  if (every === "0") return Number.POSITIVE_INFINITY;
  const everyMs = intervalMs(every);
  if (snapshotKeep < 1) throw new ConfigError(`--snapshot-keep ${snapshotKeep}: must be at least 1`);
  return everyMs;
}

/** Throws ConfigError. */
export function snapshotSchedule({ settings, isShared, directory, freeBytesMin = FREE_BYTES_MIN, revision, take, clock, log }: Options): Runnable[] {
  const everyMs = snapshotEveryMs(settings, { isShared });
  if (everyMs === Number.POSITIVE_INFINITY) return [];
  const keep = settings.snapshotKeep;

  async function snapshot(): Promise<boolean> {
    try {
      const nowMs = clock.nowMs();
      const file = await newSnapshotFile(directory, nowMs);
      const { rows, revision } = await saveBackup(takenNow(take), file, { freeBytesMin });
      log.info("a snapshot was taken", { file, rows, revision, deleted: await pruneSnapshots(directory, keep, file) });
      return true;
    } catch (error) {
      log.error("no snapshot could be taken, trying again", { directory, error, retryInMs: RETRY_MS });
      return false;
    }
  }

  /** Undefined: it is not known when one was taken last. A directory that cannot be read, a stick that was pulled out, is no reason for the server to end. */
  async function dueInMs(): Promise<number | undefined> {
    try {
      const nowMs = clock.nowMs(), newestMs = await newestSnapshotMs(directory, nowMs);
      return newestMs === undefined ? 0 : newestMs + everyMs - nowMs;
    } catch (error) {
      log.error("the directory of snapshots cannot be read, trying again", { directory, error, retryInMs: RETRY_MS });
      return undefined;
    }
  }

  /** The store was restored or mended since the newest was taken: what that one holds is another past than the store's, and a mending could take it for this one's. */
  async function isOfAnotherPast(): Promise<boolean> {
    let newest: string | undefined;
    try {
      newest = await newestSnapshot(directory, clock.nowMs());
      if (newest === undefined) return false;
      return revision() - (await inspectBackup(join(directory, newest))).revision >= REVISIONS_SKIPPED / 2;
    } catch (error) {
      log.warn("the newest snapshot cannot be read", { newest, error });
      return true;
    }
  }

  /** Undefined: it was not waited for to the end. Whoever began it again would wait beside it. */
  async function answerOf<T>(asked: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
    let answer: T | undefined;
    const alarm = clock.after(RETRY_MS, () => log.error("the directory of snapshots does not answer, or the disk is very slow: it is waited for, and no snapshot is taken", { directory }));
    await until(signal, (done) => void asked.then((value) => { answer = value; done(); }));
    alarm.cancel();
    return answer;
  }

  return [{
    name: "snapshots",
    async run(signal, ready) {
      ready();
      await clock.sleep(SETTLE_MS, signal);
      let isDue = (await answerOf(isOfAnotherPast(), signal)) ?? false;
      while (!signal.aborted) {
        const waitMs = isDue ? 0 : await answerOf(dueInMs(), signal);
        isDue = false;
        if (waitMs === undefined) {
          await clock.sleep(RETRY_MS, signal);
          continue;
        }
        if (waitMs > 0) await clock.sleep(waitMs, signal);
        if (!signal.aborted && !(await answerOf(snapshot(), signal))) await clock.sleep(RETRY_MS, signal);
      }
    },
  }];
}

function intervalMs(text: string): number {
  const ms = (() => {
    try {
      return parseDurationMs(text.replace(/^(\d+)d$/, (_, days: string) => `${Number(days) * 24}h`));
    } catch {
      return 0; // refused below, in our words
    }
  })();
  if (ms < EVERY_MS_MIN) throw new ConfigError(`--snapshot-every ${JSON.stringify(text)}: must be a time such as 30m, 12h or 7d, at least 1m, or 0 for never`);
  return ms;
}

/** What goes wrong is the backup's to clean up after, from the first on. */
async function* takenNow(take: Options["take"]): AsyncGenerator<Uint8Array> { yield* await take(); }
