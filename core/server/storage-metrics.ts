/** How many objects of each resource there are. Source: kubernetes v1.36 apiserver/pkg/storage/etcd3/metrics/metrics.go */
import type { Labels, Metrics } from "../observe/metrics.ts";
import type { ResourceCache } from "../registry/generic/watch-cache.ts";
import type { Registry } from "../registry/registry.ts";

export function storageMetrics(metrics: Metrics, registry: Registry): void {
  function* counted(count: (cache: ResourceCache) => number = ({ size }) => size): Iterable<readonly [{ readonly group: string; readonly resource: string }, number]> {
    const seen = new Set<string>();
    for (const { group, plural } of registry.rows()) {
      const key = `${group}/${plural}`;
      const store = seen.has(key) ? undefined : registry.storeOf(group, plural);
      seen.add(key);
      if (store) yield [{ group, resource: plural }, count(store.cache)];
    }
  }
  metrics.gaugeFrom("apiserver_resource_objects", "[ALPHA] Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.", () => counted());
  metrics.counterFrom("apiserver_storage_events_received_total", "[BETA] Number of etcd events received split by kind.", function* () {
    for (const sample of counted(({ received }) => received)) if (sample[1] > 0) yield sample;
  });
  metrics.gaugeFrom("apiserver_storage_objects", "[STABLE] (Deprecated since 1.34.0) [DEPRECATED, consider using apiserver_resource_objects instead] Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.", function* () {
    for (const [{ group, resource }, count] of counted()) yield [{ resource: group === "" ? resource : `${resource}.${group}` }, count] as readonly [Labels, number];
  });
}
