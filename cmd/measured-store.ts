/**
 * How long the store takes, by what is done and to which resource; by upstream's names, whichever store it is.
 *
 * Source: kubernetes v1.36 apiserver/pkg/storage/etcd3/{metrics/metrics,latency_tracker,store}.go
 */
import { type Store, StoreError } from "../storage/store.ts";
import { type Metrics, seriesOf } from "../core/observe/metrics.ts";

const SECONDS = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60];

const OPERATIONS = ["create", "update", "delete", "get", "list"] as const;

/** `nowMs`: of a clock that never goes back. */
export function measuredStore(store: Store, { metrics, nowMs }: { readonly metrics: Metrics; readonly nowMs: () => number }): Store {
  const durations = metrics.histogram("etcd_request_duration_seconds", "[ALPHA] Etcd request latency in seconds for each operation and object type.", SECONDS);
  const requests = metrics.counter("etcd_requests_total", "[ALPHA] Etcd request counts for each operation and object type.");
  const errors = metrics.counter("etcd_request_errors_total", "[ALPHA] Etcd failed request counts for each operation and object type.");

  const operations = new Map(OPERATIONS.map((operation) => [operation, seriesOf((collection) => {
    const labels = { operation, ...resourceOf(collection) };
    return { labels, requests: requests.with(labels), durations: durations.with(labels) };
  })]));

  async function measured<T>(operation: (typeof OPERATIONS)[number], key: string, work: () => Promise<T>): Promise<T> {
    const series = operations.get(operation)!(collectionOf(key));
    const startMs = nowMs();
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreError && error.code === "conflict")) errors.inc(series.labels); // which is an answer
      throw error;
    } finally {
      series.requests.inc();
      series.durations.observe((nowMs() - startMs) / 1000);
    }
  }

  return {
    get revision() { return store.revision; },
    newestRevision: (signal) => store.newestRevision(signal),
    get: (key) => measured("get", key, () => store.get(key)),
    list: (options) => measured("list", options.prefix, () => store.list(options)),
    put: (key, value, expected, signal, drafted) => measured(expected === 0 ? "create" : "update", key, () => store.put(key, value, expected, signal, drafted)),
    delete: (key, expected, signal) => measured("delete", key, () => store.delete(key, expected, signal)),
    watch: (options, signal) => store.watch(options, signal),
    compact: (revision) => store.compact(revision),
    ...(store.claim ? { claim: (name: string, options: { readonly ttlSeconds: number }) => store.claim!(name, options) } : {}),
    close: () => store.close(),
  };
}

/** /registry/core/pods/ns/name is in /registry/core/pods/. */
function collectionOf(key: string): string {
  let end = 0;
  for (let slashes = 0; slashes < 4 && end >= 0; slashes++) end = key.indexOf("/", end) + 1 || -1;
  return end < 0 ? key : key.slice(0, end);
}

/** /registry/core/pods/ns/name is of the group "" and the resource pods. */
export function resourceOf(key: string): { readonly group: string; readonly resource: string } {
  const [, , group = "", resource = ""] = key.split("/", 4);
  return { group: group === "core" ? "" : group, resource };
}
