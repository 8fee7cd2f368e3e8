import { expect, test } from "vitest";
import { objectKey } from "../../api/meta/object-meta.ts";
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { mirrorMeter } from "./metrics.ts";

test("how many endpoints are mirrored, and what was added, changed and taken away, can be scraped under upstream's names", () => {
  const metrics = metricsRegistry();
  const meter = mirrorMeter(metrics);
  const ports = [{ name: "", port: 80, protocol: "TCP" as const }];
  const endpoint = (n: number, ready = true) => ({ addresses: [`10.0.0.${n}`], conditions: { ready } });
  const existing: EndpointSlice[] = [{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: "IPv4", ports, endpoints: [1, 2, 3].map((n) => endpoint(n)), metadata: { name: "a", namespace: "n", uid: "a", resourceVersion: "1", creationTimestamp: "" } }];
  const [web, db] = [objectKey("n", "web"), objectKey("n", "db")];
  meter.synced(web, [{ existing, groups: [{ ports, endpoints: [endpoint(1), endpoint(2, false), endpoint(4), endpoint(5)] }] }]);
  meter.synced(db, [{ existing: [], groups: [{ ports, endpoints: [endpoint(9)] }] }, { existing: [], groups: [] }]);
  const sample = (name: string): number => Number(new RegExp(`^endpoint_slice_mirroring_controller_${name} (\\S+)$`, "m").exec(metrics.render())?.[1] ?? -1);
  const gauges = () => ["endpoints_desired", "num_endpoint_slices", "desired_endpoint_slices"].map(sample);
  expect(gauges()).toEqual([5, 2, 2]);
  expect(["added", "updated", "removed"].map((what) => sample(`endpoints_${what}_per_sync_sum`))).toEqual([3, 1, 1]);
  meter.gone(web);
  expect(gauges()).toEqual([1, 1, 1]);
});
