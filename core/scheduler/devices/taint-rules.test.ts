import { expect, test } from "vitest";
import type { ResourceSlice } from "../../api/gen/resource.v1.ts";
import type { DeviceTaintRule } from "../../api/gen/resource.v1alpha3.ts";
import { candidate, node, pod, schedulingCluster, stored } from "../../../test/scheduling-cluster.ts";
import { dynamicResources } from "./dynamic-resources.ts";
import { withTaintsOf } from "./taint-rules.ts";

const own = { key: "own", effect: "NoSchedule" as const }, said = { key: "said", effect: "NoExecute" as const };
const slice: ResourceSlice = stored("resource.k8s.io/v1", "ResourceSlice", "s", { spec: { driver: "d", nodeName: "a", pool: { name: "p", generation: 1, resourceSliceCount: 1 }, devices: [{ name: "x", taints: [own] }, { name: "y" }] } });
const rule = (deviceSelector: DeviceTaintRule["spec"]["deviceSelector"], taint: DeviceTaintRule["spec"]["taint"] = said): DeviceTaintRule => stored("resource.k8s.io/v1beta2", "DeviceTaintRule", "r", { spec: { ...(deviceSelector ? { deviceSelector } : {}), taint } });

test.each<[string, DeviceTaintRule[], taintsOfX: object[], taintsOfY: object[] | undefined]>([
  ["none", [], [own], undefined],
  ["of all devices", [rule(undefined)], [own, said], [said]],
  ["of another driver", [rule({ driver: "e" })], [own], undefined],
  ["of another pool", [rule({ driver: "d", pool: "q" })], [own], undefined],
  ["of the pool", [rule({ pool: "p" })], [own, said], [said]],
  ["of one device, whoever drives it", [rule({ device: "y" })], [own], [said]],
  ["two", [rule({ device: "y" }), rule({ driver: "d" }, own)], [own, own], [said, own]],
])("rules %s", (_, rules, taintsOfX, taintsOfY) => {
  const [seen] = [...withTaintsOf(rules, [slice])];
  expect(seen!.spec.devices!.map(({ taints }) => taints)).toEqual([taintsOfX, taintsOfY]);
  expect(slice.spec.devices!.map(({ taints }) => taints)).toEqual([[own], undefined]); // others hold it too
});

test("a device that a rule taints is not given out, where the gate is on", () => {
  const claim = stored("resource.k8s.io/v1", "ResourceClaim", "default/c", { spec: { devices: { requests: [{ name: "r", exactly: { deviceClassName: "gpu" } }] } } });
  const reasons = (gates: ReadonlySet<string>) => {
    const cluster = schedulingCluster({ nodes: [node("a")], gates, objects: [stored("resource.k8s.io/v1", "DeviceClass", "gpu", { spec: {} }), claim, slice, rule({ device: "y" })] });
    const check = dynamicResources().prepare(candidate(pod("p", { resourceClaims: [{ name: "c", resourceClaimName: "c" }] })), cluster)!;
    return "refused" in check ? check.refused : check.reject(cluster.nodes()[0]!)?.reasons;
  };
  expect([reasons(new Set()), reasons(new Set(["DRADeviceTaintRules"]))]).toEqual([undefined, ["cannot allocate all claims"]]);
});
