/**
 * Events are forgotten some time after they were last written, an hour unless --event-ttl says otherwise. Nobody is asked and nothing is recorded: it is the store that lets go of them.
 *
 * How long ago that was is told by our own clock from when a revision was first seen; for what was there before us, by the times the server wrote into it.
 *
 * Source: kubernetes v1.36 pkg/registry/core/event/storage/storage.go, apiserver/pkg/storage/etcd3 (leases of keys, shared by those of a minute)
 */
import { parseTime } from "../../api/meta/time.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { breather } from "../../lifecycle/breather.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Runnable } from "../../lifecycle/run-all.ts";
import type { Log } from "../../observe/log.ts";
import { type Revision, type Store, StoreError } from "../../../storage/store.ts";
import type { CacheEvent } from "../generic/audience.ts";
import type { WatchCache } from "../generic/watch-cache.ts";

export const EVENT_TTL_MS = 3_600_000;

const PREFIX = "/registry/core/events/";
const LOOK_MS_MAX = 60_000;
/** At once; many more may have come together. */
const DELETES_MAX = 100;

interface Deps {
  readonly store: Pick<Store, "delete">;
  readonly cache: Pick<WatchCache, "resource">;
  readonly ttlMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** `writtenMs`: of our uptime. */
interface Written { readonly revision: Revision; readonly writtenMs: number }

/** Several servers of one store may do it at the same time. */
export function eventExpiry({ store, cache, ttlMs, clock, log }: Deps): Runnable {
  const written = new Map<string, Written>(); // in the order of their times, so that nothing is looked at that is not due

  function note({ type, entry: { key, revision } }: CacheEvent): void {
    written.delete(key);
    if (type !== "DELETED") written.set(key, { revision, writtenMs: clock.uptimeMs() });
  }

  /** From here on what is written is noted, and what there is already: it may have been there for long. Returns what ends that. */
  async function begin(): Promise<() => void> {
    const events = cache.resource(PREFIX), breathe = breather(clock), old: (Written & { readonly key: string })[] = [];
    const there = [...events.values()], stop = events.listen(note);
    for (const { key, revision, object } of there) {
      old.push({ key, revision, writtenMs: clock.uptimeMs() - ageMs(object, clock.nowMs()) });
      await breathe();
    }
    const noted = [...written];
    written.clear();
    for (const { key, ...one } of old.toSorted((a, b) => a.writtenMs - b.writtenMs)) written.set(key, one);
    for (const [key, one] of noted) {
      written.delete(key);
      written.set(key, one);
    }
    return stop;
  }

  /** Keys that are due, with their revisions. */
  function due(): (readonly [key: string, revision: Revision])[] {
    const nowMs = clock.uptimeMs(), found: (readonly [string, Revision])[] = [];
    for (const [key, { revision, writtenMs }] of written) {
      if (nowMs - writtenMs < ttlMs) break;
      found.push([key, revision]);
    }
    return found;
  }

  async function forget(keys: readonly (readonly [string, Revision])[], signal: AbortSignal): Promise<void> {
    const breathe = breather(clock); // no delete waits for the disk
    for (let at = 0; at < keys.length && !signal.aborted; at += DELETES_MAX) {
      await breathe();
      await Promise.all(keys.slice(at, at + DELETES_MAX).map(async ([key, revision]) => await store.delete(key, revision).catch((error: unknown) => {
        if (!(error instanceof StoreError) || error.code !== "conflict") throw error;
        if (written.get(key)?.revision === revision) written.delete(key); // written again, or forgotten by another server
      })));
    }
  }

  return {
    name: "events expire",
    async run(signal, ready) {
      ready();
      let stop: (() => void) | undefined;
      try {
        for await (const _ of clock.every(Math.min(LOOK_MS_MAX, ttlMs), signal)) {
          stop ??= await begin();
          await forget(due(), signal).catch((error: unknown) => { if (!signal.aborted) log.warn("old events could not be forgotten, next try soon", { error }); });
        }
      } finally {
        stop?.();
      }
    },
  };
}

/** Since the server wrote it last; not less than nothing, should the clock have been set back. */
function ageMs({ metadata: { creationTimestamp, managedFields = [] } }: Readonly<ApiObject>, nowMs: number): number {
  const times = [creationTimestamp, ...managedFields.map(({ time }) => time)].flatMap((text) => parseTime(text ?? "") ?? []);
  return Math.max(0, nowMs - Math.max(...times));
}
