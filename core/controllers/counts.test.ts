import { expect, test } from "vitest";
import type { PersistentVolume, PersistentVolumeClaim } from "../api/gen/core.v1.ts";
import { notFound } from "../api/meta/status-error.ts";
import { silentLog } from "../observe/log.ts";
import { metricsRegistry } from "../observe/metrics.ts";
import { parseCidr } from "../net/cidr.ts";
import { measured } from "./measured-controller.ts";
import { FreeRanges } from "./nodeipam/free-ranges.ts";
import { volumeCounts } from "./volume/volume-counts.ts";

test("a controller's reconciles are told of with how long they took and what went wrong", async () => {
  let nowMs = 0;
  const told: [number, unknown][] = [];
  const wrong = notFound({ group: "", resource: "pods" }, "a");
  const controller = measured({ name: "x", workers: 1, watches: [], reconcile: (key) => { nowMs += 250; return key === "bad" ? Promise.reject(wrong) : Promise.resolve(); } }, { uptimeMs: () => nowMs }, (seconds, error) => void told.push([seconds, error]));
  const call = { signal: new AbortController().signal, log: silentLog };
  await controller.reconcile("good" as never, call);
  await expect(controller.reconcile("bad" as never, call)).rejects.toBe(wrong);
  expect(told).toEqual([[0.25, undefined], [0.25, wrong]]);
});

test("volumes and claims are told of by what they are and whether they have found each other", () => {
  const metrics = metricsRegistry();
  const volume = (spec: object, phase: string) => ({ spec: { storageClassName: "fast", ...spec }, status: { phase } }) as unknown as PersistentVolume;
  const claim = (phase: string) => ({ metadata: { name: "c", namespace: "a" }, spec: { storageClassName: "fast" }, status: { phase } }) as unknown as PersistentVolumeClaim;
  volumeCounts(metrics, { volumes: () => [volume({ csi: { driver: "d.example.com", volumeHandle: "" } }, "Bound"), volume({ hostPath: { path: "/" }, volumeMode: "Block" }, "Available")], claims: () => [claim("Bound"), claim("Bound"), claim("Pending")] });
  expect(metrics.render().split("\n").filter((line) => line.startsWith("pv_collector")).sort()).toEqual([
    'pv_collector_total_pv_count{plugin_name="kubernetes.io/csi:d.example.com",volume_mode="Filesystem"} 1', 'pv_collector_total_pv_count{plugin_name="kubernetes.io/host-path",volume_mode="Block"} 1',
    'pv_collector_bound_pv_count{storage_class="fast"} 1', 'pv_collector_bound_pvc_count{namespace="a",storage_class="fast",volume_attributes_class=""} 2',
    'pv_collector_unbound_pv_count{storage_class="fast"} 1', 'pv_collector_unbound_pvc_count{namespace="a",storage_class="fast",volume_attributes_class=""} 1',
  ].sort());
});

test("of a cluster's range it is known how many nodes it has room for, and how many parts are in use", () => {
  const range = new FreeRanges(parseCidr("10.42.0.0/16")!, 24);
  range.take(parseCidr("10.42.3.0/24")!);
  range.take(parseCidr("10.42.8.0/22")!);
  expect([range.count, range.used]).toEqual([256, 5]);
});
