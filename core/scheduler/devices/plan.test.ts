import { expect, test } from "vitest";
import type { ResourceClaim, ResourceSlice } from "../../api/gen/resource.v1.ts";
import { candidate, node, pod, schedulingCluster, stored } from "../../../test/scheduling-cluster.ts";
import type { CompiledSelector } from "../../cel/device-selector.ts";
import { atOnce } from "../../lifecycle/breather.ts";
import { ClaimBinder } from "./claim-binder.ts";
import { devicePlan, dynamicResources } from "./dynamic-resources.ts";
import { type DevicePlan, Unfinished } from "./plan.ts";
import { type Pool, poolsFor } from "./pools.ts";

const AT = "2026-01-01T00:00:00Z";
const using = pod("p", { resourceClaims: [{ name: "gpu", resourceClaimName: "c" }] });
const classes = [stored("resource.k8s.io/v1", "DeviceClass", "gpu", { spec: {} })];

function claim(status: ResourceClaim["status"], spec: ResourceClaim["spec"] = { devices: { requests: [{ name: "gpu", exactly: { deviceClassName: "gpu" } }] } }): ResourceClaim {
  return stored("resource.k8s.io/v1", "ResourceClaim", "default/c", { spec, status });
}

const result = { request: "gpu", driver: "d", pool: "p", device: "x" };
const preparing = (conditions: readonly object[]): ResourceClaim["status"] => ({
  allocation: { allocationTimestamp: AT, devices: { results: [{ ...result, bindingConditions: ["Attached"], bindingFailureConditions: ["Broken"] }] } },
  devices: [{ driver: "d", pool: "p", device: "x", conditions: conditions as never }],
});
const is = (type: string, status: string) => ({ type, status, reason: "R", message: "m", lastTransitionTime: AT });
const elsewhere = { nodeSelector: { nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In" as const, values: ["b"] }] }] } };

test.each<[string, ResourceClaim | undefined, number, string | undefined]>([
  ["no claim of that name", undefined, 0, 'refused: could not find ResourceClaim "default/c"'],
  ["a claim on its way out", { ...claim(undefined), metadata: { ...claim(undefined).metadata, deletionTimestamp: AT } }, 0, 'refused: resourceclaim "c" is being deleted'],
  ["a class that does not exist", claim(undefined, { devices: { requests: [{ name: "r", exactly: { deviceClassName: "none" } }] } }), 0, "refused: request r: device class none does not exist"],
  ["used by as many as may", claim({ allocation: {}, reservedFor: Array.from({ length: 256 }, (_, i) => ({ resource: "pods", name: `p${i}`, uid: `${i}` })) }), 0, "refused: resourceclaim in use"],
  ["no devices at all", claim(undefined), 0, "cannot allocate all claims"],
  ["allocated, for every node", claim({ allocation: { devices: { results: [result] } } }), 0, undefined],
  ["allocated on another node", claim({ allocation: { ...elsewhere, devices: { results: [result] } } }), 0, "resourceclaim not available on the node"],
  ["allocated, being made ready", claim(preparing([])), 30_000, undefined],
  ["allocated and ready", claim(preparing([is("Attached", "True")])), 3_600_000, undefined],
  ["not ready in time", claim(preparing([])), 61_000, "resourceclaim not available on the node"],
  ["its driver has failed", claim(preparing([is("Broken", "True")])), 0, "resourceclaim not available on the node"],
])("%s", (_, one, afterMs, expected) => {
  const cluster = { ...schedulingCluster({ nodes: [node("a")], objects: [...classes, ...(one ? [one] : [])] }), clocks: { nowMs: () => Date.parse(AT) + afterMs, uptimeMs: () => 0 } };
  const check = dynamicResources({ bindingTimeoutMs: 60_000, filterTimeoutMs: 10_000 }).prepare(candidate(using), cluster)!;
  expect("refused" in check ? `refused: ${check.refused}` : check.reject(cluster.nodes()[0]!)?.reasons[0]).toBe(expected);
});

test("a claim under the name of one that is made for the pod, but made for another, is none of the pod's", () => {
  const made = pod("p", { resourceClaims: [{ name: "gpu", resourceClaimTemplateName: "t" }], status: { resourceClaimStatuses: [{ name: "gpu", resourceClaimName: "c" }] } });
  expect(devicePlan(candidate(made), schedulingCluster({ objects: [claim(undefined)] }))).toEqual({ refused: "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)" });
});

test("a claim that is allocated elsewhere is only given back where the pod's others could be had", () => {
  const both = pod("p", { resourceClaims: ["c", "d"].map((name) => ({ name, resourceClaimName: name })) });
  const other = stored<ResourceClaim>("resource.k8s.io/v1", "ResourceClaim", "default/d", { spec: claim(undefined).spec });
  const slice = stored("resource.k8s.io/v1", "ResourceSlice", "s", { spec: { driver: "d", allNodes: true, pool: { name: "p", generation: 1, resourceSliceCount: 1 }, devices: [{ name: "y" }] } });
  const thought = (...slices: (typeof slice)[]): readonly [reason: string | undefined, said: string] => {
    const cluster = schedulingCluster({ nodes: [node("a")], objects: [...classes, claim({ allocation: { ...elsewhere, devices: { results: [result] } } }), other, ...slices] });
    const plan = devicePlan(candidate(both), cluster) as DevicePlan;
    const here = plan.on(cluster.nodes()[0]!.node);
    return ["reason" in here ? here.reason : undefined, new ClaimBinder({} as never).deallocation(both, plan)];
  };
  expect(thought()).toEqual(["cannot allocate all claims", "still not schedulable"]);
  expect(thought(slice)).toEqual(["resourceclaim not available on the node", "deallocation of ResourceClaim completed"]);
});

test("what an earlier attempt has left is deleted before anything else is thought of", () => {
  const asking = pod("p", { container: { resources: { requests: { "example.com/gpu": "1" } } } });
  const left = stored<ResourceClaim>("resource.k8s.io/v1", "ResourceClaim", "default/p-1", {
    metadata: { annotations: { "resource.kubernetes.io/extended-resource-claim": "true" }, ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "p", uid: asking.metadata.uid, controller: true }] },
    spec: claim(undefined).spec, status: { allocation: { ...elsewhere, devices: { results: [result] } } },
  } as never);
  const cluster = schedulingCluster({ nodes: [node("a")], objects: [stored("resource.k8s.io/v1", "DeviceClass", "gpu", { spec: { extendedResourceName: "example.com/gpu" } }), left] });
  const plan = devicePlan(candidate(asking), cluster) as DevicePlan;
  expect(plan.on(cluster.nodes()[0]!.node)).toEqual({ reason: "cannot schedule extended resource claim" });
  expect(new ClaimBinder({} as never).deallocation(asking, plan)).toBe("deletion of ResourceClaim completed");
});

test("thinking about a node ends when its time is over, and the attempt with it", () => {
  const devices = Array.from({ length: 24 }, (_, i) => ({ name: `x${i}`, attributes: { "d/card": { string: `card ${i % 3}` } } }));
  const slice = stored("resource.k8s.io/v1", "ResourceSlice", "s", { spec: { driver: "d", nodeName: "a", pool: { name: "p", generation: 1, resourceSliceCount: 1 }, devices } });
  const nine = claim(undefined, { devices: { requests: [{ name: "gpu", exactly: { deviceClassName: "gpu", count: 9 } }], constraints: [{ matchAttribute: "d/card" }] } }); // of eight on a card
  let nowMs = 0;
  const cluster = { ...schedulingCluster({ nodes: [node("a")], objects: [...classes, slice, nine] }), clocks: { nowMs: () => nowMs, uptimeMs: () => (nowMs += 100) } };
  const check = dynamicResources({ bindingTimeoutMs: 60_000, filterTimeoutMs: 1_000 }).prepare(candidate(using), cluster)!;
  expect(() => "refused" in check || check.reject(cluster.nodes()[0]!)).toThrow('running "DynamicResources" filter plugin: node a: timed out trying to allocate devices');
  expect(nowMs).toBe(1_200);
});

test("where a pool contradicts itself and nothing else will do, that is why", () => {
  const slice = (name: string, pool: string, size: number, device: string) => stored("resource.k8s.io/v1", "ResourceSlice", name, { spec: { driver: "d", nodeName: "a", pool: { name: pool, generation: 1, resourceSliceCount: size }, devices: [{ name: device }] } });
  const twice = [slice("s1", "p", 2, "x"), slice("s2", "p", 2, "x")];
  const rejections = (objects: readonly ReturnType<typeof slice>[]): readonly (string | undefined)[] => {
    const cluster = schedulingCluster({ nodes: [node("a"), node("b")], objects: [...classes, claim(undefined), ...objects] });
    const check = dynamicResources().prepare(candidate(using), cluster)!;
    return cluster.nodes().map((one) => ("refused" in check ? check.refused : check.reject(one)?.reasons[0]));
  };
  expect(rejections(twice)).toEqual(["invalid resource pools were encountered", "cannot allocate all claims"]);
  expect(rejections([...twice, slice("s3", "q", 1, "y")])).toEqual([undefined, "cannot allocate all claims"]);
});

test("a claim that is deleted while its devices are waited for ends the wait; one just made need not be known yet", async () => {
  const held = claim({ ...preparing([]), reservedFor: [{ resource: "pods", name: "p", uid: using.metadata.uid }] });
  const waitFor = async (known: readonly (ResourceClaim | undefined)[], made: object = {}): Promise<string> => {
    const left = [...known];
    const devices = { claims: { get: () => (left.length > 1 ? left.shift() : left[0]) } };
    const clock = { nowMs: () => Date.parse(AT), uptimeMs: () => 0, sleep: async () => {} };
    const bound = new ClaimBinder({ devices, clock } as never).bind({ pod: using, claims: [{ claim: held, allocation: undefined, made: true, ...made }] }, { timeoutMs: 60_000, waiting: () => {}, signal: new AbortController().signal });
    return await bound.then(() => "ready", (error: Error) => error.message);
  };
  const ready = claim({ ...preparing([is("Attached", "True")]) });
  expect([await waitFor([held, ready]), await waitFor([held, undefined]), await waitFor([undefined])]).toEqual(["ready", 'could not find ResourceClaim "default/c"', 'could not find ResourceClaim "default/c"']);
  expect([await waitFor([undefined, undefined, ready], { mappings: [] }), await waitFor([undefined, held, undefined], { mappings: [] })]).toEqual(["ready", 'could not find ResourceClaim "default/c"']);
});

test.each<[what: string, conditions: readonly object[], nowMs: number, status: string, message: string | undefined]>([
  ["ready", [is("Attached", "True")], 0, "success", undefined],
  ["broken", [is("Broken", "True")], 0, "failure", 'device binding failed: claim=c, reason=R, message="m"'],
  ["too late", [], 61_000, "timeout", "device binding timeout: claim=c"],
  ["interrupted", [], 0, "error", "stopped"],
])("how a wait for devices has ended is told: %s", async (_, conditions, afterMs, status, message) => {
  const stop = new AbortController();
  const held = claim({ ...preparing(conditions), reservedFor: [{ resource: "pods", name: "p", uid: using.metadata.uid }] });
  let uptimeMs = 0;
  const clock = { nowMs: () => Date.parse(AT) + afterMs, uptimeMs: () => (uptimeMs += 1000), sleep: async () => stop.abort(new Error("stopped")) };
  const waits: unknown[] = [];
  const binder = new ClaimBinder({ devices: schedulingCluster({ objects: [held] }).devices, clock } as never);
  const bound = binder.bind({ pod: using, claims: [{ claim: held, allocation: undefined, made: true }] }, { timeoutMs: 60_000, waiting: () => {}, waited: (wait) => void waits.push(wait), signal: stop.signal });
  expect(await bound.then(() => undefined, (error: Error) => error.message)).toBe(message);
  expect(waits).toEqual([{ status, ms: expect.any(Number) as number, devices: [{ driver: "d", hasConditions: true }] }]);
});

test("what selectors say of a device that all nodes reach is asked once, not for each node", () => {
  const spec = { driver: "d", allNodes: true, devices: ["x", "y", "z"].map((name) => ({ name })) };
  const slice = stored("resource.k8s.io/v1", "ResourceSlice", "s", { spec: { ...spec, pool: { name: "p", generation: 1, resourceSliceCount: 1 } } });
  const picky = claim(undefined, { devices: { requests: [{ name: "gpu", exactly: { deviceClassName: "gpu", selectors: [{ cel: { expression: "false" } }] } }] } });
  const cluster = schedulingCluster({ nodes: Array.from({ length: 20 }, (_, i) => node(`n${i}`)), objects: [...classes, picky, slice] });
  let asked = 0;
  const selector = (): CompiledSelector => ({ maxCost: 0n, matches: () => { asked++; return false; } });
  const plan = devicePlan(candidate(using), { ...cluster, devices: { ...cluster.devices, selector } }) as DevicePlan;
  for (const one of cluster.nodes()) expect(plan.on(one.node)).toEqual({ reason: "cannot allocate all claims" });
  expect(asked).toBe(3);
});

test("a pool is the same for all nodes only where all of its slices are", () => {
  const slice = (name: string, pool: string, rest: object): ResourceSlice => stored("resource.k8s.io/v1", "ResourceSlice", name, { spec: { driver: "d", pool: { name: pool, generation: 1, resourceSliceCount: 2 }, devices: [{ name }], ...rest } });
  const slices = [slice("a1", "a", { allNodes: true }), slice("a2", "a", { allNodes: true }), slice("b1", "b", { allNodes: true }), slice("b2", "b", { nodeName: "n1" })];
  const known = new Map<ResourceSlice, Pool>();
  const [one, other] = ["n1", "n2"].map((name) => poolsFor(node(name), slices, known)) as [Pool[], Pool[]];
  expect(one[0]).toBe(other[0]);
  expect([one, other].map((pools) => pools.map(({ devices }) => devices.map(({ id }) => id).join(" ")))).toEqual([["d/a/a1 d/a/a2", "d/b/b1 d/b/b2"], ["d/a/a1 d/a/a2", "d/b/b1"]]);
});

test("what takes long to find out is left unfinished where whoever asks can go on with it, and has its answer then", () => {
  const devices = Array.from({ length: 5 }, (_, i) => ({ name: `d${i}`, attributes: { "d/numa": { int: 0 } } }));
  const slice = stored("resource.k8s.io/v1", "ResourceSlice", "s", { spec: { driver: "d", nodeName: "a", pool: { name: "p", generation: 1, resourceSliceCount: 1 }, devices } });
  const six = claim(undefined, { devices: { requests: Array.from({ length: 6 }, (_, i) => ({ name: `r${i}`, exactly: { deviceClassName: "gpu" } })), constraints: [{ matchAttribute: "d/numa" }] } });
  let uptimeMs = 0;
  const cluster = { ...schedulingCluster({ nodes: [node("a")], objects: [...classes, six, slice] }), clocks: { nowMs: () => 0, uptimeMs: () => uptimeMs++ } };
  const plan = devicePlan(candidate(using), cluster) as DevicePlan;
  plan.mayPause = true;
  const { node: here } = cluster.nodes()[0]!;
  let left: unknown;
  try {
    plan.on(here);
  } catch (error) {
    left = error;
  }
  expect(left).toBeInstanceOf(Unfinished);
  atOnce((left as Unfinished).rest);
  expect(plan.on(here)).toEqual({ reason: "cannot allocate all claims" });
  const unasked = devicePlan(candidate(using), cluster) as DevicePlan; // nobody goes on with it
  expect(unasked.on(here)).toEqual({ reason: "cannot allocate all claims" });
});

test("what takes little on each of many nodes is left unfinished, too, once all together have taken long", () => {
  const names = Array.from({ length: 20 }, (_, i) => `n${i}`);
  const slices = names.map((name) => stored("resource.k8s.io/v1", "ResourceSlice", name, { spec: { driver: "d", nodeName: name, pool: { name, generation: 1, resourceSliceCount: 1 }, devices: [{ name: "x" }, { name: "y" }] } }));
  const three = claim(undefined, { devices: { requests: ["a", "b", "c"].map((name) => ({ name, exactly: { deviceClassName: "gpu" } })) } });
  let uptimeMs = 0;
  const cluster = { ...schedulingCluster({ nodes: names.map((name) => node(name)), objects: [...classes, three, ...slices] }), clocks: { nowMs: () => 0, uptimeMs: () => uptimeMs++ } };
  const plan = devicePlan(candidate(using), cluster) as DevicePlan;
  plan.mayPause = true;
  let unfinished = 0;
  for (const { node: here } of cluster.nodes()) {
    try {
      plan.on(here);
    } catch (error) {
      unfinished++;
      atOnce((error as Unfinished).rest);
    }
    expect(plan.on(here)).toEqual({ reason: "cannot allocate all claims" });
  }
  expect(unfinished).toBeGreaterThan(0);
  expect(unfinished).toBeLessThan(names.length);
});
