import { expect, test } from "vitest";
import { memoryRegistry } from "../../test/memory-registry.ts";
import { metricsRegistry } from "../observe/metrics.ts";
import { storageMetrics } from "./storage-metrics.ts";

test("of each resource it is told how many objects there are, and how many events the store has had of those that had any", async () => {
  const registry = await memoryRegistry();
  const metrics = metricsRegistry();
  storageMetrics(metrics, registry);
  const { cache } = registry.storeOf("", "configmaps")!;
  for (const type of ["put", "put", "delete"] as const)
    cache.apply({ type, row: { key: `${cache.prefix}a/b`, value: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "b", namespace: "a" } }, revision: 1n } } as never);
  const lines = metrics.render().split("\n");
  expect(lines).toContain('apiserver_resource_objects{group="",resource="configmaps"} 0');
  expect(lines).toContain('apiserver_storage_objects{resource="deployments.apps"} 0');
  expect(lines.filter((line) => line.startsWith("apiserver_storage_events_received_total"))).toEqual(['apiserver_storage_events_received_total{group="",resource="configmaps"} 3']);
});
