import { expect, test } from "vitest";
import type { DeviceTaint, DeviceToleration } from "../../api/gen/resource.v1.ts";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { EVENTS, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES } from "../../client/resources.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { deviceTaintEvictionControllers, evictionMs } from "./devicetainteviction.ts";

const effect = "NoExecute";
const taint: DeviceTaint = { key: "broken", effect, timeAdded: "2026-01-01T00:00:00Z" };
const addedMs = Date.parse("2026-01-01T00:00:00Z");

test.each<[string, DeviceTaint[], DeviceToleration[], number | undefined]>([
  ["not tolerated", [taint], [], addedMs],
  ["of another effect", [{ ...taint, effect: "NoSchedule" }], [], undefined],
  ["tolerated for ever", [taint], [{ key: "broken", operator: "Exists", effect }], undefined],
  ["tolerated by what names no effect", [taint], [{ key: "broken", operator: "Exists" }], addedMs],
  ["tolerated for a while: the shortest counts", [taint], [{ operator: "Exists", effect, tolerationSeconds: 60 }, { key: "broken", operator: "Exists", effect, tolerationSeconds: 30 }], addedMs + 30_000],
  ["tolerated for longer than a double tells", [taint], [{ operator: "Exists", effect, tolerationSeconds: (2n ** 63n - 1n) as unknown as number }], addedMs + 2 ** 63 * 1000],
  ["tolerated for a while and for ever", [taint], [{ operator: "Exists", effect, tolerationSeconds: 60 }, { operator: "Exists", effect }], undefined],
  ["one of two is not tolerated", [taint, { ...taint, key: "gone", timeAdded: "2026-01-01T00:01:00Z" }], [{ key: "broken", operator: "Exists", effect }], addedMs + 60_000],
])("%s", (_, taints, tolerations, atMs) => {
  expect(evictionMs(taints, tolerations)).toBe(atMs);
});

const metrics = metricsRegistry();

test("a pod goes when its device is tainted, and others stay", () => withControllers((deps) => deviceTaintEvictionControllers({ ...deps, metrics }), async (api, call) => {
  const slices = api.client.resource(RESOURCE_SLICES);
  const slice = await slices.create({ apiVersion: "resource.k8s.io/v1", kind: "ResourceSlice", metadata: { name: "s" }, spec: { driver: "d", nodeName: "n", pool: { name: "n", generation: 1_767_225_600_000_000_001n, resourceSliceCount: 1 }, devices: [{ name: "a" }, { name: "b" }] } } as never, call);
  for (const device of ["a", "b"]) {
    const pod = await api.client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name: `pod-${device}`, namespace: "ns" }, spec: { containers: [], nodeName: "n", resourceClaims: [{ name: "c", resourceClaimName: device }] } } as never, call);
    await api.client.resource(RESOURCE_CLAIMS).create({
      apiVersion: "resource.k8s.io/v1", kind: "ResourceClaim", metadata: { name: device, namespace: "ns" }, spec: {},
      status: { allocation: { devices: { results: [{ request: "r", driver: "d", pool: "n", device }] } }, reservedFor: [{ resource: "pods", name: pod.metadata.name, uid: pod.metadata.uid }] },
    } as never, call);
  }
  await slices.update({ ...slice, spec: { ...slice.spec, devices: [{ name: "a", taints: [taint] }, { name: "b" }] } } as never, call);
  await eventually(() => api.all(PODS).filter(({ metadata }) => metadata.deletionTimestamp !== undefined).map(({ metadata }) => metadata.name), (names) => names.join() === "pod-a");
  await eventually(() => api.all(EVENTS).map(({ source, reason, message }) => `${source?.component} ${reason} ${message}`), (all) => all.includes("device-taint-eviction-controller DeviceTaintManagerEviction Marking for deletion"));
  await eventually(() => metrics.render(), (text) => text.includes("device_taint_eviction_controller_pod_deletions_total 1\n") && text.includes('pod_deletion_duration_seconds_bucket{le="+Inf"} 1\n'));
}));

test("what a newer generation of a pool hides does not count, until that goes", () => withControllers((deps) => deviceTaintEvictionControllers(deps), async (api, call) => {
  const slices = api.client.resource(RESOURCE_SLICES);
  const slice = (name: string, generation: number, taints: DeviceTaint[]) => slices.create({ apiVersion: "resource.k8s.io/v1", kind: "ResourceSlice", metadata: { name }, spec: { driver: "d", nodeName: "n", pool: { name: "n", generation, resourceSliceCount: 1 }, devices: [{ name: "a", taints }] } } as never, call);
  const newer = await slice("newer", 2, []);
  await slice("older", 1, [taint]);
  const pod = await api.client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name: "pod", namespace: "ns" }, spec: { containers: [], nodeName: "n", resourceClaims: [{ name: "c", resourceClaimName: "a" }] } } as never, call);
  await api.client.resource(RESOURCE_CLAIMS).create({
    apiVersion: "resource.k8s.io/v1", kind: "ResourceClaim", metadata: { name: "a", namespace: "ns" }, spec: {},
    status: { allocation: { devices: { results: [{ request: "r", driver: "d", pool: "n", device: "a" }] } }, reservedFor: [{ resource: "pods", name: "pod", uid: pod.metadata.uid }] },
  } as never, call);
  await Bun.sleep(50);
  expect(api.all(PODS)[0]!.metadata.deletionTimestamp).toBeUndefined();
  await slices.delete(newer, {}, call);
  await eventually(() => api.all(PODS), ([one]) => one?.metadata.deletionTimestamp !== undefined);
}));

test("a pod goes that was placed before it said which claims are its own", () => withControllers((deps) => deviceTaintEvictionControllers(deps), async (api, call) => {
  const pods = api.client.resource(PODS);
  await api.client.resource(RESOURCE_SLICES).create({ apiVersion: "resource.k8s.io/v1", kind: "ResourceSlice", metadata: { name: "s" }, spec: { driver: "d", nodeName: "n", pool: { name: "n", generation: 1, resourceSliceCount: 1 }, devices: [{ name: "a", taints: [taint] }] } } as never, call);
  const made = [await pods.create({ apiVersion: "v1", kind: "Pod", metadata: { name: "own", namespace: "ns" }, spec: { containers: [], nodeName: "n", resourceClaims: [{ name: "c", resourceClaimTemplateName: "t" }] } } as never, call), await pods.create({ apiVersion: "v1", kind: "Pod", metadata: { name: "extended", namespace: "ns" }, spec: { containers: [], nodeName: "n" } } as never, call)];
  for (const { metadata: { name, uid } } of made) await api.client.resource(RESOURCE_CLAIMS).create({
    apiVersion: "resource.k8s.io/v1", kind: "ResourceClaim", metadata: { name: `${name}-c`, namespace: "ns" }, spec: {},
    status: { allocation: { devices: { results: [{ request: "r", driver: "d", pool: "n", device: "a" }] } }, reservedFor: [{ resource: "pods", name, uid }] },
  } as never, call);
  await Bun.sleep(50);
  expect(api.all(PODS).every(({ metadata }) => metadata.deletionTimestamp === undefined)).toBe(true);
  await pods.updateStatus({ ...made[0]!, status: { resourceClaimStatuses: [{ name: "c", resourceClaimName: "own-c" }] } } as never, call);
  await pods.updateStatus({ ...made[1]!, status: { extendedResourceClaimStatus: { resourceClaimName: "extended-c", requestMappings: [] } } } as never, call);
  await eventually(() => api.all(PODS), (all) => all.every(({ metadata }) => metadata.deletionTimestamp !== undefined));
}));
