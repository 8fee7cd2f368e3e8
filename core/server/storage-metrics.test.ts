import { expect, test } from "vitest";
import { apiServer } from "../../test/api-server.ts";
import { memoryRegistry } from "../../test/memory-registry.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { metricsRegistry } from "../observe/metrics.ts";
import { ResourceSizes } from "./fairness/work-estimate.ts";
import { storageMetrics } from "./storage-metrics.ts";

test("of each resource it is told how many objects there are, and how many events the store has had of those that had any", async () => {
  const registry = await memoryRegistry();
  const metrics = metricsRegistry();
  storageMetrics(metrics, { registry, all: { revision: 1_000_000_000_000_007 }, sizes: new ResourceSizes(systemClock) });
  const { cache } = registry.storeOf("", "configmaps")!;
  for (const type of ["put", "put", "delete"] as const)
    cache.apply({ type, row: { key: `${cache.prefix}a/b`, value: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "b", namespace: "a" } }, revision: 1n } } as never);
  const lines = metrics.render().split("\n");
  expect(lines).toContain('apiserver_resource_objects{group="",resource="configmaps"} 0');
  expect(lines).toContain('apiserver_storage_objects{resource="deployments.apps"} 0');
  expect(lines.filter((line) => line.startsWith("apiserver_storage_events_received_total"))).toEqual(['apiserver_storage_events_received_total{group="",resource="configmaps"} 3']);
  expect(lines).toContain('apiserver_watch_cache_resource_version{group="",resource="configmaps"} 7');
});

test("lists are counted by where they are served from and what they find; watches by what they begin with", async () => {
  await using api = await apiServer();
  const { metrics } = api;
  storageMetrics(metrics, { registry: api.registry, all: api.cache, sizes: new ResourceSizes(systemClock) });
  for (const name of ["a", "b", "c"]) await api.ask("POST", "/api/v1/namespaces/x/configmaps", { body: { metadata: { name, labels: { odd: String(name !== "b") } } } });
  const first = await api.ask("GET", "/api/v1/namespaces/x/configmaps", { query: { limit: "2" } });
  await api.ask("GET", "/api/v1/configmaps", { query: { labelSelector: "odd!=false", resourceVersion: "0" } });
  await api.ask("GET", "/api/v1/namespaces/x/configmaps", { query: { limit: "2", continue: first.body.metadata.continue } });
  await api.ask("GET", "/api/v1/pods", { query: { fieldSelector: "spec.nodeName=n" } });
  await api.events("/api/v1/configmaps", 3);
  const shown = metrics.render().split("\n").filter((line) => /^apiserver_(cache_list|storage_list|watch_cache_consistent|watch_cache_read_wait_seconds_count|init_events|watch_cache_init|watch_cache_events).*(configmaps|pods)/.test(line));
  expect(shown.toSorted()).toEqual([
    'apiserver_watch_cache_events_received_total{group="",resource="configmaps"} 3',
    'apiserver_watch_cache_events_dispatched_total{group="",resource="configmaps"} 3',
    'apiserver_watch_cache_initializations_total{group="",resource="configmaps"} 1',
    'apiserver_watch_cache_initializations_total{group="",resource="pods"} 1',
    'apiserver_init_events_total{group="",resource="configmaps"} 3',
    'apiserver_cache_list_total{group="",index="",resource="configmaps"} 2',
    'apiserver_cache_list_total{group="",index="f:spec.nodeName",resource="pods"} 1',
    'apiserver_cache_list_fetched_objects_total{group="",index="",resource="configmaps"} 6',
    'apiserver_cache_list_fetched_objects_total{group="",index="f:spec.nodeName",resource="pods"} 0',
    'apiserver_cache_list_returned_objects_total{group="",resource="configmaps"} 4',
    'apiserver_cache_list_returned_objects_total{group="",resource="pods"} 0',
    'apiserver_watch_cache_consistent_read_total{fallback="false",group="",resource="configmaps",success="true"} 1',
    'apiserver_watch_cache_consistent_read_total{fallback="false",group="",resource="pods",success="true"} 1',
    'apiserver_watch_cache_read_wait_seconds_count{group="",resource="configmaps"} 1',
    'apiserver_watch_cache_read_wait_seconds_count{group="",resource="pods"} 1',
    'apiserver_storage_list_total{group="",resource="configmaps"} 1',
    'apiserver_storage_list_fetched_objects_total{group="",resource="configmaps"} 1',
    'apiserver_storage_list_evaluated_objects_total{group="",resource="configmaps"} 1',
    'apiserver_storage_list_returned_objects_total{group="",resource="configmaps"} 1',
  ].sort());
});

test("it is told how large the objects of a resource are about, and how often one could not be read", async () => {
  await using api = await apiServer();
  const { metrics, registry } = api;
  storageMetrics(metrics, { registry, all: api.cache, sizes: new ResourceSizes(systemClock) });
  for (const name of ["a", "b"]) await api.ask("POST", "/api/v1/namespaces/x/configmaps", { body: { metadata: { name }, data: { note: "y".repeat(1000) } } });
  const { cache } = registry.storeOf("", "secrets")!;
  cache.counts.unreadable++;
  const found = Object.fromEntries(metrics.render().split("\n").filter((line) => /^apiserver_(resource_size_estimate_bytes|storage_decode_errors_total)\{.*"(configmaps|secrets|pods)"/.test(line)).map((line) => line.split(" ") as [string, string]));
  expect(found).toEqual({
    'apiserver_resource_size_estimate_bytes{group="",resource="configmaps"}': expect.stringMatching(/^2[2-9]\d\d$/), 'apiserver_resource_size_estimate_bytes{group="",resource="pods"}': "0",
    'apiserver_resource_size_estimate_bytes{group="",resource="secrets"}': "0", 'apiserver_storage_decode_errors_total{group="",resource="secrets"}': "1",
  });
});
