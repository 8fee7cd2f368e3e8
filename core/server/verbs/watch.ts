/** watch: what there is, if that is asked for, then what happens, and bookmarks between. It ends with its time, with its definition, or when what it follows is forgotten. */
import { isExpired, isTooLarge, resourceExpired, StatusError } from "../../api/meta/status-error.ts";
import { isTrue } from "../../api/request/query.ts";
import type { CacheEvent } from "../../registry/generic/audience.ts";
import type { Cached } from "../../registry/generic/cached.ts";
import { Changes } from "../../registry/generic/changes.ts";
import type { Selection } from "../../registry/generic/selection.ts";
import type { Answer, BookmarkItem, ErrorItem, WatchItem } from "../answer.ts";
import type { Scope } from "../scope.ts";
import type { Span } from "../tracing/tracer.ts";
import { BookmarkTimer } from "./bookmark-timer.ts";
import { integer, listingOf } from "./options.ts";
import { reach } from "./reach.ts";
import { converted, initialized, selectedNow } from "./selected-now.ts";
import { cachePart } from "./traced.ts";
import { itemsOf } from "./watch-items.ts";

/** Watches end after this long if nothing else is set, so that clients spread over servers; each adds up to as much again. Source: --min-request-timeout */
const WATCH_MS_MIN = 1_800_000;
/** Initial events sent at once: whoever reads slowly need not have all of them in our memory. */
const INITIAL_EVENTS_MAX = 250;
/** How long a watch waits for a conversion that fails. Source: kubernetes v1.36 apiserver/pkg/storage/cacher/cacher.go MaxInternalErrorRetryDuration */
const CONVERTING_MS_MAX = 30_000;
/** How long after a conversion has failed it is asked for again. */
const CONVERT_AGAIN_MS = 1_000;

export function watchObjects(scope: Scope): Promise<Answer> {
  const part = cachePart(scope, "cacher.Watch");
  const watch = watchOf(scope, part);
  return part ? watch.finally(() => part.end()) : watch;
}

async function watchOf(scope: Scope, part: Span | undefined): Promise<Answer> {
  const { request, served, server } = scope;
  const { query } = request;
  const startMs = server.clock.uptimeMs();
  const { options, selection } = listingOf(scope);
  const sendInitial = query.has("sendInitialEvents") ? isTrue(query.get("sendInitialEvents")) : options.resourceVersion === "" || options.resourceVersion === "0";
  const bookmarks = isTrue(query.get("allowWatchBookmarks"));
  const streaming = sendInitial && bookmarks; // asked for or not: who takes bookmarks is told when there is no more of the beginning
  const fromNow = sendInitial || options.resourceVersion === "" || options.resourceVersion === "0";
  const unreached = fromNow ? await reach(scope, options.resourceVersion).then(() => undefined, tooLarge) : undefined;
  if (unreached) return { type: "watch", served, batches: refusedWatch(scope, unreached), eventSized: scope.watched?.eventSized };
  if (fromNow) part?.event("watchCache fresh enough");
  if (sendInitial) await initialized(scope);
  const { revision, found: initial } = sendInitial ? await selectedNow(scope, selection) : { revision: server.cache.revision, found: [] };
  const after = fromNow ? revision : Number(options.resourceVersion);
  served.store!.cache.counts.initial += initial.length;
  await converted(scope, initial, true);

  const seconds = integer(query, "timeoutSeconds");
  const timeoutMs = seconds ? Math.max(0, seconds) * 1000 : (server.watchMsMin ?? WATCH_MS_MIN) * (1 + server.random.next());
  return { type: "watch", served, eventSized: scope.watched?.eventSized, batches: watchBatches(scope, { startMs, selection, after, initial, streaming, bookmarks, timeoutMs }) };
}

function tooLarge(error: unknown): Error {
  if (!isTooLarge(error)) throw error;
  return error as Error;
}

/** What does not come is told of as an event: upstream waits for it in its cache, where a watch has begun already. */
async function* refusedWatch({ watched }: Scope, error: Error): AsyncIterable<readonly ErrorItem[]> {
  watched?.began();
  try {
    yield [{ type: "ERROR", error }];
  } finally {
    watched?.ended();
  }
}

interface WatchPlan {
  /** Of the server's uptime. */
  readonly startMs: number;
  readonly selection: Selection;
  /** What happened after this revision is told. */
  readonly after: number;
  /** What is told of before that. */
  readonly initial: readonly Cached[];
  /** A bookmark says when that was all. */
  readonly streaming: boolean;
  /** Of a quiet watch, too. */
  readonly bookmarks: boolean;
  readonly timeoutMs: number;
}

async function* watchBatches(scope: Scope, plan: WatchPlan): AsyncIterable<readonly (WatchItem | BookmarkItem | ErrorItem)[]> {
  const { served, server } = scope;
  const { cache } = served.store!, topic = served.store!.topicOf(plan.selection);
  const ended = new AbortController();
  const signal = AbortSignal.any([scope.signal, ended.signal]);
  const retired = served.custom?.retired;
  const timer = server.clock.after(plan.timeoutMs, () => ended.abort());
  let changes: Changes | undefined;
  const bookmark = new BookmarkTimer(server.clock, { endMs: server.clock.uptimeMs() + plan.timeoutMs, ring: () => changes?.wake() });
  const retire = (): void => {
    changes?.stop();
    changes?.wake();
  };
  retired?.addEventListener("abort", retire, { once: true });
  scope.watched?.began();
  try {
    if (plan.timeoutMs === 0) return; // it was over before it began
    await reachToFollow(scope, plan.after);
    changes = new Changes(cache, { after: plan.after, signal, topic }); // from here on nothing is missed, however long it takes to send what there is already
    if (retired?.aborted) changes.stop();
    for (let i = 0; i < plan.initial.length; i += INITIAL_EVENTS_MAX) {
      const entries = plan.initial.slice(i, i + INITIAL_EVENTS_MAX);
      scope.watched?.events(entries.length);
      yield entries.map((entry) => ({ type: "ADDED", entry }) as const);
    }
    if (plan.streaming) {
      scope.watched?.events(1);
      yield [{ type: "BOOKMARK", resourceVersion: String(plan.after), initialEventsEnd: true }];
      scope.watched?.listed(server.clock.uptimeMs() - plan.startMs);
    }
    if (plan.bookmarks) bookmark.wait();
    while (!changes.isOver) {
      const batch = changes.take();
      if (!batch) {
        if (retired?.aborted) return; // what happened before is told: that the last objects went with their definition
        if (!bookmark.isDue) {
          await changes.happens();
          continue;
        }
        scope.watched?.events(1);
        yield [{ type: "BOOKMARK", resourceVersion: String(server.cache.revision) }];
        bookmark.wait();
        continue;
      }
      const items = served.custom ? await convertedItems(scope, batch, plan.selection, retired ? AbortSignal.any([signal, retired]) : signal) : itemsOf(batch, plan.selection);
      if (!items) return;
      if (items.length > 0) {
        scope.watched?.events(items.length);
        yield items;
      }
    }
  } catch (error) {
    if (signal.aborted || retired?.aborted) return;
    if (!isExpired(error)) throw error;
    yield [{ type: "ERROR", error }];
  } finally {
    timer.cancel();
    bookmark.cancel();
    retired?.removeEventListener("abort", retire);
    changes?.stop();
    ended.abort();
    scope.watched?.ended();
  }
}

/** What happened is told once it can be converted: a webhook that fails for a while costs a watch nothing but that. Undefined: it has failed for too long, and who watches is to list again. */
async function convertedItems({ served, server: { clock } }: Scope, batch: readonly CacheEvent[], selection: Selection, signal: AbortSignal): Promise<readonly WatchItem[] | undefined> {
  const startMs = clock.uptimeMs();
  for (;;) {
    try {
      if (selection.matches) await served.ready(batch.flatMap(({ entry, previous }) => (previous ? [entry.object, previous.object] : [entry.object])), signal);
      const items = itemsOf(batch, selection);
      await served.ready(items.map(({ entry }) => entry.object), signal);
      return items;
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      if (clock.uptimeMs() - startMs >= CONVERTING_MS_MAX) return undefined;
      await clock.sleep(CONVERT_AGAIN_MS, signal);
      signal.throwIfAborted();
    }
  }
}

/** A version that does not come is of a history that is lost: the disk had not kept what it said it had. Upstream waits for it, and misses what happens meanwhile; here it is 410, so that the client lists again. */
async function reachToFollow(scope: Scope, revision: number): Promise<void> {
  try {
    await reach(scope, String(revision));
  } catch (error) {
    throw isTooLarge(error) ? resourceExpired(`Too large resource version: ${revision}, current: ${scope.server.cache.revision}`) : error;
  }
}
