import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import type { DeviceTaintRule } from "../../api/gen/resource.v1alpha3.ts";
import { DEVICE_TAINT_RULES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES } from "../../client/resources.ts";
import { deviceTaintEvictionControllers } from "./devicetainteviction.ts";
import { isOf, progress } from "./rule-status.ts";

const rule = (effect: string, deviceSelector: DeviceTaintRule["spec"]["deviceSelector"] = { device: "a" }) => ({ apiVersion: "resource.k8s.io/v1beta2", kind: "DeviceTaintRule", metadata: { name: "r", generation: 1 }, spec: { deviceSelector, taint: { key: "broken", effect, timeAdded: "2026-01-01T00:00:00Z" } } }) as unknown as DeviceTaintRule;

test.each<[DeviceTaintRule["spec"]["deviceSelector"], boolean]>([
  [undefined, false], [{}, true], [{ driver: "d" }, true], [{ driver: "e" }, false], [{ pool: "p", device: "a" }, true], [{ pool: "q", device: "a" }, false], [{ driver: "d", pool: "p", device: "b" }, false],
])("%j is about d/p/a: %j", (selector, expected) => expect(isOf({ ...rule("None"), spec: selector ? { deviceSelector: selector } : {} }, { driver: "d", pool: "p", device: "a" })).toBe(expected));

test.each<[what: string, effect: string, facts: { readonly evicted?: number; readonly pods?: number; readonly namespaces?: number; readonly published?: number; readonly allocated?: number }, status: string, reason: string, message: string]>([
  ["nothing yet", "NoExecute", {}, "False", "NotStarted", ""],
  ["one pod", "NoExecute", { pods: 1, namespaces: 1 }, "True", "PodsPendingEviction", "1 pod needs to be evicted in 1 namespace."],
  ["several, some have gone", "NoExecute", { pods: 3, namespaces: 2, evicted: 1 }, "True", "PodsPendingEviction", "3 pods need to be evicted in 2 different namespaces. 1 pod evicted since starting the controller."],
  ["all have gone", "NoExecute", { evicted: 10 }, "False", "Completed", "10 pods evicted since starting the controller."],
  ["another effect", "NoSchedule", { pods: 1, namespaces: 1 }, "False", "OtherEffect", "Eviction only happens for the NoExecute effect."],
  ["no effect any more", "None", { published: 1, allocated: 1, pods: 1, namespaces: 1, evicted: 2 }, "False", "NoEffect", "1 published device selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace if the effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger an update. 2 pods evicted since starting the controller."],
  ["no effect, and nothing there", "None", {}, "False", "NoEffect", "0 published devices selected. 0 allocated devices selected. 0 pods would be evicted in 0 different namespaces if the effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."],
])("a rule tells: %s", (_, effect, { evicted = 0, pods = 0, namespaces = 0, published = 0, allocated = 0 }, status, reason, message) => {
  expect(progress(rule(effect), { evicted, pending: () => ({ pods, namespaces }), devices: () => ({ published, allocated }) })).toEqual({ status, reason, message });
});

test("a rule says first what it would do; with the effect pods go that do not tolerate it, and that is counted", () => withControllers((deps) => deviceTaintEvictionControllers({ ...deps, gates: new Set(["DRADeviceTaintRules"]), statusPeriodMs: 300 }), async (api, call) => {
  await api.client.resource(RESOURCE_SLICES).create({ apiVersion: "resource.k8s.io/v1", kind: "ResourceSlice", metadata: { name: "s" }, spec: { driver: "d", nodeName: "n", pool: { name: "n", generation: 1, resourceSliceCount: 1 }, devices: [{ name: "a" }, { name: "b" }] } } as never, call);
  for (const [name, device, tolerations] of [["p", "a", undefined], ["tolerant", "a", [{ key: "broken", operator: "Exists", effect: "NoExecute" }]], ["elsewhere", "b", undefined]] as const) {
    const pod = await api.client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "ns" }, spec: { containers: [], nodeName: "n", resourceClaims: [{ name: "c", resourceClaimName: name }] } } as never, call);
    await api.client.resource(RESOURCE_CLAIMS).create({
      apiVersion: "resource.k8s.io/v1", kind: "ResourceClaim", metadata: { name, namespace: "ns" }, spec: {},
      status: { allocation: { devices: { results: [{ request: "r", driver: "d", pool: "n", device, tolerations }] } }, reservedFor: [{ resource: "pods", name, uid: pod.metadata.uid }] },
    } as never, call);
  }
  const rules = api.client.resource(DEVICE_TAINT_RULES);
  const condition = () => api.all(DEVICE_TAINT_RULES)[0]?.status?.conditions?.[0];
  const gone = () => api.all(PODS).filter(({ metadata }) => metadata.deletionTimestamp !== undefined).map(({ metadata }) => metadata.name);
  await Bun.sleep(30);
  const made = await rules.create(rule("None"), call);
  expect(await eventually(condition, (one) => one !== undefined)).toMatchObject({
    type: "EvictionInProgress", status: "False", reason: "NoEffect", observedGeneration: 1,
    message: "1 published device selected. 2 allocated devices selected. 1 pod would be evicted in 1 namespace if the effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger an update.",
  });
  expect(gone()).toEqual([]);
  await rules.update({ ...api.all(DEVICE_TAINT_RULES)[0]!, metadata: { ...made.metadata, generation: 2, resourceVersion: "" }, spec: rule("NoExecute").spec } as never, call);
  await eventually(gone, (names) => names.join() === "p");
  const done = await eventually(condition, (one) => one?.reason === "Completed");
  expect(done).toMatchObject({ status: "False", message: "1 pod evicted since starting the controller." });
}));

test("where the gate is off, rules are left alone", () => withControllers((deps) => deviceTaintEvictionControllers(deps), async (api, call) => {
  await api.client.resource(DEVICE_TAINT_RULES).create(rule("NoExecute"), call);
  await Bun.sleep(50);
  expect(api.requests.filter((request) => request.includes("devicetaintrules"))).toHaveLength(1);
}));
