/**
 * Of each resource: how many objects there are, and what is counted of the cache they are read from.
 *
 * What upstream tells of a watch cache's capacity is not told: the window of events here has none.
 *
 * Source: kubernetes v1.36 apiserver/pkg/storage/etcd3/metrics/metrics.go, apiserver/pkg/storage/cacher/metrics/metrics.go
 */
import type { Labels, Metrics } from "../observe/metrics.ts";
import type { CacheCounts } from "../registry/generic/cache-counts.ts";
import type { ResourceCache } from "../registry/generic/resource-cache.ts";
import type { WatchCache } from "../registry/generic/watch-cache.ts";
import type { Registry } from "../registry/registry.ts";
import type { ResourceSizes } from "./fairness/work-estimate.ts";

/** Of a version only so many digits are told. */
const VERSION_DIGITS = 1e15;

export function storageMetrics(metrics: Metrics, { registry, all, sizes }: { readonly registry: Registry; readonly all: Pick<WatchCache, "revision">; readonly sizes: ResourceSizes }): void {
  function* caches(): Iterable<readonly [{ readonly group: string; readonly resource: string }, ResourceCache]> {
    const seen = new Set<string>();
    for (const { group, plural } of registry.rows()) {
      const key = `${group}/${plural}`;
      const store = seen.has(key) ? undefined : registry.storeOf(group, plural);
      seen.add(key);
      if (store) yield [{ group, resource: plural }, store.cache];
    }
  }

  /** Of what nothing has been counted, nothing is told. */
  function counter(name: string, help: string, count: (counts: CacheCounts) => number): void {
    metrics.counterFrom(name, help, function* () {
      for (const [labels, { counts }] of caches()) if (count(counts) > 0) yield [labels, count(counts)];
    });
  }

  metrics.gaugeFrom("apiserver_resource_objects", "[ALPHA] Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.", function* () {
    for (const [labels, { size }] of caches()) yield [labels, size];
  });
  metrics.gaugeFrom("apiserver_storage_objects", "[STABLE] (Deprecated since 1.34.0) [DEPRECATED, consider using apiserver_resource_objects instead] Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.", function* () {
    for (const [{ group, resource }, { size }] of caches()) yield [{ resource: group === "" ? resource : `${resource}.${group}` }, size] as readonly [Labels, number];
  });
  metrics.gaugeFrom("apiserver_resource_size_estimate_bytes", "[ALPHA] Estimated size of stored objects in database. Estimate is based on sum of last observed sizes of serialized objects. In case of a fetching error, the value will be -1.", function* () {
    for (const [labels, cache] of caches()) yield [labels, sizes.bytesOf(cache)];
  });
  metrics.gaugeFrom("apiserver_watch_cache_resource_version", "[ALPHA] Current resource version of watch cache broken by resource type. This is truncated to the 15 least significant digits.", function* () {
    for (const [labels] of caches()) yield [labels, all.revision % VERSION_DIGITS];
  });

  counter("apiserver_storage_events_received_total", "[BETA] Number of etcd events received split by kind.", ({ received }) => received);
  counter("apiserver_storage_decode_errors_total", "[ALPHA] Number of stored object decode errors split by object type", ({ unreadable }) => unreadable);
  counter("apiserver_watch_cache_events_received_total", "[ALPHA] Counter of events received in watch cache broken by resource type.", ({ received }) => received);
  counter("apiserver_watch_cache_events_dispatched_total", "[ALPHA] Counter of events dispatched in watch cache broken by resource type.", ({ dispatched }) => dispatched);
  counter("apiserver_watch_cache_initializations_total", "[ALPHA] Counter of watch cache initializations broken by resource type.", ({ loads }) => loads);
  counter("apiserver_init_events_total", "[ALPHA] Counter of init events processed in watch cache broken by resource type.", ({ initial }) => initial);
  counter("apiserver_terminated_watchers_total", "[ALPHA] Counter of watchers closed due to unresponsiveness broken by resource type.", ({ terminated }) => terminated);
  for (const [name, help, value] of [
    ["apiserver_cache_list_total", "[ALPHA] Number of LIST requests served from watch cache", "count"],
    ["apiserver_cache_list_fetched_objects_total", "[ALPHA] Number of objects read from watch cache in the course of serving a LIST request", "fetched"],
  ] as const)
    metrics.counterFrom(name, help, function* () {
      for (const [{ group, resource }, { counts }] of caches()) for (const [index, counted] of counts.lists.byIndex) yield [{ group, index, resource }, counted[value]] as readonly [Labels, number];
    });
  metrics.counterFrom("apiserver_cache_list_returned_objects_total", "[ALPHA] Number of objects returned for a LIST request from watch cache", function* () {
    for (const [labels, { counts }] of caches()) if (counts.lists.byIndex.size > 0) yield [labels, counts.lists.returned];
  });
  metrics.counterFrom("apiserver_watch_cache_consistent_read_total", "[ALPHA] Counter for consistent reads from cache.", function* () {
    for (const [{ group, resource }, { counts }] of caches())
      for (const [success, count] of [["true", counts.consistentReads.served], ["false", counts.consistentReads.failed]] as const)
        if (count > 0) yield [{ fallback: "false", group, resource, success }, count] as readonly [Labels, number];
  });
  metrics.histogramFrom("apiserver_watch_cache_read_wait_seconds", "[ALPHA] Histogram of time spent waiting for a watch cache to become fresh.", function* () {
    for (const [, { counts }] of caches()) if (counts.waits) yield counts.waits;
  });
  for (const [name, help, value] of [
    ["apiserver_storage_list_total", "[ALPHA] Number of LIST requests served from storage", "count"],
    ["apiserver_storage_list_fetched_objects_total", "[ALPHA] Number of objects read from storage in the course of serving a LIST request", "fetched"],
    ["apiserver_storage_list_evaluated_objects_total", "[ALPHA] Number of objects tested in the course of serving a LIST request from storage", "fetched"],
    ["apiserver_storage_list_returned_objects_total", "[ALPHA] Number of objects returned for a LIST request from storage", "returned"],
  ] as const)
    metrics.counterFrom(name, help, function* () {
      for (const [labels, { counts }] of caches()) if (counts.storeLists.count > 0) yield [labels, counts.storeLists[value]];
    });
}
