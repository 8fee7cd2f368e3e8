import { expect, test } from "vitest";
import { metricsRegistry } from "../core/observe/metrics.ts";
import { memoryStore } from "../storage/memory.ts";
import { measuredStore, resourceOf } from "./measured-store.ts";

test("what the store is asked is counted and timed by resource; a conflict is an answer, not a failure", async () => {
  const metrics = metricsRegistry();
  let ms = 0;
  const store = measuredStore(await memoryStore(), { metrics, nowMs: () => (ms += 30) });
  const key = "/registry/apps/deployments/ns/web";
  const made = await store.put(key, { a: 1 }, 0);
  const changed = await store.put(key, { a: 2 }, made);
  await expect(store.put(key, { a: 3 }, made)).rejects.toMatchObject({ code: "conflict", current: { revision: changed } });
  expect([(await store.get(key))?.value, (await store.list({ prefix: "/registry/core/pods/" })).rows, store.revision]).toEqual([{ a: 2 }, [], changed]);
  await store.delete(key, changed);
  await store.close();
  await expect(store.get(key)).rejects.toMatchObject({ code: "closed" });
  const lines = metrics.render().split("\n").filter((line) => /^etcd_(requests|request_errors)_total|seconds_(count|sum)/.test(line));
  const of = (operation: string) => `{group="apps",operation="${operation}",resource="deployments"}`;
  expect(lines).toEqual(expect.arrayContaining([
    `etcd_requests_total${of("create")} 1`, `etcd_requests_total${of("update")} 2`, `etcd_requests_total${of("delete")} 1`, `etcd_requests_total${of("get")} 2`, 'etcd_requests_total{group="",operation="list",resource="pods"} 1',
    `etcd_request_errors_total${of("get")} 1`, `etcd_request_duration_seconds_sum${of("update")} 0.06`, `etcd_request_duration_seconds_count${of("create")} 1`,
  ]));
  expect(lines.filter((line) => line.startsWith("etcd_request_errors_total"))).toHaveLength(1);
});

test.each([["/registry/core/pods/ns/name", "", "pods"], ["/registry/apps/deployments/", "apps", "deployments"], ["/registry/", "", ""]])("%s is of a resource", (key, group, resource) => expect(resourceOf(key)).toEqual({ group, resource }));
