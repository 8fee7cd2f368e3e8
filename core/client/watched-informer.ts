/**
 * The informer: one list, then a watch from that list's revision, for as long as it runs.
 *
 *   list ─▶ replace the copy ─▶ watch ─▶ event by event ─▶ the watch ends ─▶ watch again from the newest revision seen
 *    ▲                                                       │
 *    └──────────────── 410: that history is gone ────────────┘
 *
 * A failure is retried after 0.8 s, doubling to 30 s, each with up to as much again at random so that many clients do not return at once.
 * A watch on which nothing at all arrives for three minutes, not even a bookmark, is taken for a dead connection.
 *
 * Source: kubernetes v1.36 client-go/tools/cache/reflector.go (behaviour and figures)
 */
import { isExpired, isNotFound, isTooLarge, isTooManyRequests, suggestedDelaySeconds } from "../api/meta/status-error.ts";
import { type ApiObject, keyOf, type ObjectKey } from "../api/meta/object-meta.ts";
import { backoffMs } from "../lifecycle/backoff.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import type { Runnable } from "../lifecycle/run-all.ts";
import type { Log } from "../observe/log.ts";
import type { ListQuery, ResourceClient } from "./client.ts";
import type { Index, Informer } from "./informer.ts";
import { BY_NAMESPACE, BY_OWNER, ObjectCache, revisionOf } from "./object-cache.ts";

export type InformerQuery = Pick<ListQuery, "namespace" | "labelSelector" | "fieldSelector">;

export interface InformerDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly query?: InformerQuery | undefined;
}

const RETRY = { minMs: 800, maxMs: 30_000 };
/** A watch that lived this long counts as a success: the next failure starts the backoff anew. */
const RETRY_RESET_MS = 120_000;
/** A watch shorter than this is no ordinary one: it is not taken up again at once. */
const SHORT_MS = 1_000;
const PAUSE_MS = 100;
/** The server sends bookmarks every minute, more or less. */
const QUIET_MS_MAX = 180_000;
/** How long the server is asked to keep a watch: this, and up to as much again. */
const WATCH_SECONDS_MIN = 300;
/** What a caller of caughtUp waits at most: client-go's ExpectationsTimeout. */
const CAUGHT_UP_MS_MAX = 300_000;

export function watchedInformer<T extends ApiObject>(client: ResourceClient<T>, { clock, random, log: parentLog, query = {} }: InformerDeps): Informer<T> & Runnable {
  const log = parentLog.with({ resource: client.ref.plural });
  const cache = new ObjectCache<T>(log);
  let synced = false;
  const firstList = Promise.withResolvers<void>();

  async function run(signal: AbortSignal, ready: () => void): Promise<void> {
    let failures = 0;
    let from: string | undefined; // the revision to watch from; undefined: list first
    let listAtLeast = "0"; // any copy the server has will do, at first
    while (!signal.aborted) {
      const startMs = clock.uptimeMs();
      try {
        if (from === undefined) {
          from = await list(listAtLeast, signal);
          ready();
        }
        const events = await watch(from, signal);
        from = String(Math.max(Number(from), cache.revision));
        listAtLeast = from;
        const short = clock.uptimeMs() - startMs < SHORT_MS;
        if (short && events === 0) throw new Error("the watch ended at once, without an event");
        failures = 0;
        if (short) await clock.sleep(PAUSE_MS, signal);
      } catch (error) {
        if (signal.aborted) return;
        if (clock.uptimeMs() - startMs > RETRY_RESET_MS) failures = 0;
        failures++;
        if (from !== undefined) from = String(Math.max(Number(from), cache.revision));
        if (isExpired(error)) {
          if (from === undefined) listAtLeast = ""; // even the list was too old: only the newest will do
          else listAtLeast = from;
          from = undefined;
          if (failures === 1) continue;
        }
        if (isTooLarge(error)) listAtLeast = ""; // the server has lost what it had told: what it has now is the truth
        if (isExpired(error)) failures = 1; // no fault of the server's, which tells more than this can follow: waiting longer would not help
        const delayMs = (suggestedDelaySeconds(error) ?? 0) * 1000 + backoffMs(failures, RETRY) * (1 + random.next());
        const quiet = isTooManyRequests(error) || failures === 1;
        if (quiet) log.debug("list or watch failed", { error, retryInMs: delayMs });
        else if (isNotFound(error)) log.debug("list or watch failed: no such resource", { retryInMs: delayMs });
        else log.warn("list or watch failed", { error, retryInMs: delayMs });
        await clock.sleep(delayMs, signal);
      }
    }
  }

  async function list(resourceVersion: string, signal: AbortSignal): Promise<string> {
    const { items, metadata } = await client.list({ ...query, resourceVersion }, { signal });
    cache.replace(items, revisionOf({ metadata }));
    synced = true;
    firstList.resolve();
    return metadata.resourceVersion;
  }

  /** Applies events until the server ends the watch or it goes quiet; returns how many there were. */
  async function watch(resourceVersion: string, signal: AbortSignal): Promise<number> {
    const dead = new AbortController();
    let heardMs = clock.uptimeMs();
    const look = (): void => {
      const leftMs = heardMs + QUIET_MS_MAX - clock.uptimeMs();
      if (leftMs <= 0) dead.abort(new Error("the watch has gone quiet"));
      else alarm = clock.after(leftMs, look);
    };
    let alarm = clock.after(QUIET_MS_MAX, look);
    let count = 0;
    try {
      const timeoutSeconds = Math.floor(WATCH_SECONDS_MIN * (1 + random.next()));
      const call = { signal: AbortSignal.any([signal, dead.signal]) };
      for await (const { type, object } of client.watch({ ...query, resourceVersion, allowWatchBookmarks: true, timeoutSeconds }, call)) {
        if (signal.aborted) break;
        heardMs = clock.uptimeMs();
        count++;
        if (type === "BOOKMARK") cache.reached(revisionOf(object));
        else if (type === "DELETED") cache.remove(object);
        else cache.put(object);
      }
      return count;
    } finally {
      alarm.cancel();
    }
  }

  /** Waits for `arrived`, but no longer than CAUGHT_UP_MS_MAX. */
  async function wait(arrived: () => boolean, signal: AbortSignal): Promise<void> {
    if (arrived()) return;
    const late = new AbortController();
    const alarm = clock.after(CAUGHT_UP_MS_MAX, () => late.abort());
    await cache.waitUntil(arrived, AbortSignal.any([signal, late.signal]));
    alarm.cancel();
    if (late.signal.aborted) log.warn("own writes did not come back by watch", { afterMs: CAUGHT_UP_MS_MAX });
  }

  return {
    name: `informer ${client.ref.plural}`,
    ref: client.ref,
    run,
    get synced() { return synced; },
    async whenSynced(signal) {
      if (synced) return;
      const quit = Promise.withResolvers<void>();
      const stop = (): void => quit.resolve();
      signal.addEventListener("abort", stop, { once: true });
      if (signal.aborted) stop();
      await Promise.race([firstList.promise, quit.promise]);
      signal.removeEventListener("abort", stop);
    },
    get: (key: ObjectKey) => cache.get(key),
    list: () => cache.list(),
    inNamespace: (namespace) => cache.each(BY_NAMESPACE as Index<T>, namespace),
    ownedBy: (uid) => cache.by(BY_OWNER as Index<T>, uid),
    by: (index, value) => cache.by(index, value),
    onChange: (handler) => cache.onChange(handler),
    async caughtUp(written, signal) {
      const revision = Math.max(0, ...written.map(revisionOf));
      await wait(() => cache.revision >= revision, signal);
    },
    async sawDeleted(deleted, signal) {
      const left = new Map(deleted.map((object) => [object.metadata.uid, object]));
      await wait(() => {
        for (const [uid, object] of left) if (!isLive(cache, object)) left.delete(uid);
        return left.size === 0;
      }, signal);
    },
  };
}

function isLive<T extends ApiObject>(cache: ObjectCache<T>, object: Readonly<T>): boolean {
  const held = cache.get(keyOf(object));
  return held !== undefined && held.metadata.uid === object.metadata.uid && held.metadata.deletionTimestamp == null;
}
