import { expect, test } from "vitest";
import type { Container, Pod, ResourceRequirements } from "../../../core/api/gen/core.v1.ts";
import { containerResources } from "./linux-resources.ts";
import { actualResources, allocationOf, allocationTold, changedResources, infeasibleDetail, judgeResize, memoryShortfall, resizeOf, resizeOperations, swapRefusal, withAllocation } from "./resize.ts";

const machine = { memoryBytes: 16 * 1024 ** 3, hugepageSizes: [], countsSwap: false };
const of = (cpu: string, memory: string): ResourceRequirements => ({ requests: { cpu, memory }, limits: { cpu, memory } });
const pod = (resources: ResourceRequirements, more: Partial<Container> = {}): Pod => ({
  apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "d", uid: "u", resourceVersion: "", creationTimestamp: "" }, spec: { containers: [{ name: "c", resources, ...more }] },
});

test("what the node would not take in today waits; what it never does is told so", () => {
  const refusal = { reason: "Evicted", message: "Pod was rejected: The node had condition: [DiskPressure]. ", refused: true };
  expect(judgeResize({ os: "linux" })).toEqual({ fits: true });
  expect(judgeResize({ os: "linux", refusal })).toEqual({ fits: false, reason: "Deferred", what: "Evicted", message: "The node had condition: [DiskPressure]. " });
  expect(judgeResize({ os: "linux", impossible: "no", refusal })).toEqual({ fits: false, reason: "Infeasible", what: "Infeasible", message: "no" });
});

test("each thing that is wished otherwise is one", () => {
  const told = (before: ResourceRequirements, after: ResourceRequirements) => resizeOperations(allocationOf(pod(before)), allocationOf(pod(after))).map(({ resource, requirement, operation }) => `${resource} ${requirement} ${operation}`);
  expect(told(of("1", "1Gi"), of("1000m", "1024Mi"))).toEqual([]);
  expect(told({ requests: { cpu: "1" }, limits: { memory: "1Gi" } }, { requests: { cpu: "500m", memory: "1" }, limits: { cpu: "1" } })).toEqual(["memory requests add", "memory limits remove", "cpu requests decrease", "cpu limits add"]);
  expect(['Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"', "In-place resize of containers with swap is not supported.", "In-place pod resize is not supported on Windows"].map(infeasibleDetail)).toEqual(["guaranteed_pod_memory_manager_static_policy", "swap_limitation", "windows"]);
});

test("a container is updated, or restarted if it wants that", () => {
  const have = containerResources(pod(of("500m", "64Mi")), pod(of("500m", "64Mi")).spec.containers[0]!, machine);
  const decide = (wish: ResourceRequirements, more: Partial<Container> = {}) => {
    const wished = pod(wish, more);
    return resizeOf(wished.spec.containers[0]!, containerResources(wished, wished.spec.containers[0]!, machine), have);
  };
  const restartForMemory = { resizePolicy: [{ resourceName: "memory", restartPolicy: "RestartContainer" }, { resourceName: "cpu", restartPolicy: "NotRequired" }] };
  expect([decide(of("500m", "64Mi")), decide(of("0.5", "65536Ki")), decide(of("1", "64Mi")), decide(of("1", "64Mi"), restartForMemory), decide(of("500m", "128Mi"), restartForMemory)]).toEqual(["none", "none", "update", "update", "restart"]);
  expect(resizeOf({ name: "c" }, have, undefined)).toBe("none");
  expect(actualResources(of("500m", "65536Ki"), have)).toEqual(of("500m", "65536Ki"));
  expect(actualResources(of("1", "1Gi"), have)).toEqual({ requests: { cpu: "500m", memory: "1Gi" }, limits: { cpu: "500m", memory: "64Mi" } });
  const asks = (cpu: string, shares: number) => actualResources({ requests: { cpu } }, { cpu_shares: shares }).requests?.["cpu"];
  expect([asks("500m", 2), asks("1m", 2), asks("2m", 2), asks("1m", 512), asks("500m", 512), asks("500m", 0)]).toEqual(["2m", "1m", "2m", "500m", "500m", "500m"]); // the least is told of who is to have more
  const granted = allocationOf(pod(of("500m", "64Mi")));
  expect(withAllocation(pod(of("1", "1Gi")), granted).spec.containers[0]?.resources).toEqual(of("500m", "64Mi"));
});

test("what the pod as a whole was granted is kept like its containers' resources", () => {
  const whole = (cpu: string): Pod => ({ apiVersion: "v1", kind: "Pod", metadata: { name: "p", uid: "u" }, spec: { resources: { requests: { cpu }, limits: { cpu } }, containers: [{ name: "a" }] } } as unknown as Pod);
  const granted = withAllocation(whole("2"), allocationOf(whole("1")));
  expect(granted.spec.resources?.limits).toEqual({ cpu: "1" });
  expect(changedResources(whole("1"), whole("2"))).toEqual([]); // no container's
  expect(withAllocation(whole("2"), allocationOf({ ...whole("1"), spec: { containers: [{ name: "a" }] } })).spec.resources).toBeUndefined(); // it had nothing as a whole
});

test("a pod whose wish has changed while nobody looked was granted what its status tells", () => {
  const wish = pod({ requests: { cpu: "2", "example.com/gpu": "1" }, limits: { cpu: "2", memory: "1Gi", "example.com/gpu": "1" } });
  const told = (observedGeneration: number): Pod => ({ ...wish, metadata: { ...wish.metadata, generation: 2 }, status: { observedGeneration, containerStatuses: [{ name: "c", image: "", imageID: "", containerID: "containerd://1", ready: true, restartCount: 0, allocatedResources: { cpu: "500m", "example.com/gpu": "1" }, resources: { requests: { cpu: "500m" }, limits: { cpu: "500m", memory: "1024Mi" } } }] } });
  expect(allocationTold(told(1))).toEqual({ c: { requests: { cpu: "500m", "example.com/gpu": "1" }, limits: { cpu: "500m", memory: "1Gi", "example.com/gpu": "1" } } });
  expect(allocationTold(told(2))).toEqual(allocationOf(wish));
  expect(allocationTold(wish)).toEqual(allocationOf(wish));
  const whole = { ...told(1), spec: { ...wish.spec, resources: { requests: { cpu: "3" } } } };
  expect(allocationTold({ ...whole, status: { ...whole.status, allocatedResources: { cpu: "1", memory: "1Gi" } } })[""]).toEqual({ requests: { cpu: "1" }, limits: {} });
});

test("what a container has from its pod as a whole is told where it says something itself", () => {
  const shared = (resources: ResourceRequirements): ResourceRequirements => {
    const one = { ...pod(resources), spec: { containers: [{ name: "c", resources }], resources: { limits: { cpu: "2", memory: "1Gi" } } } };
    return actualResources(resources, containerResources(one, one.spec.containers[0]!, machine));
  };
  expect(shared({ limits: { memory: "64Mi" }, requests: { memory: "64Mi" } })).toEqual({ limits: { cpu: "2", memory: "64Mi" }, requests: { cpu: "2", memory: "64Mi" } });
  expect(shared({ limits: { cpu: "1" }, requests: { cpu: "1m" } })).toEqual({ limits: { cpu: "1", memory: "1Gi" }, requests: { cpu: "1m" } });
  expect(shared({})).toEqual({});
});

test("memory limits do not go below what is used", () => {
  expect(memoryShortfall([{ from: 200, to: 300, usedBytes: 250 }, { container: "a", from: 200, to: 100, usedBytes: 50 }])).toBeUndefined();
  expect(memoryShortfall([{ from: 200, to: 100, usedBytes: 150 }])).toBe("cannot decrease memory limits: attempting to set pod memory limit (100) below current usage (150)");
  expect(memoryShortfall([{ from: 0, to: 100, usedBytes: 150 }, { container: "a", from: 200, to: 100, usedBytes: 100 }])).toBe('cannot decrease memory limits: [attempting to set pod memory limit (100) below current usage (150), attempting to set container "a" memory limit (100) below current usage (100)]');
});

test("memory of a container that may swap is not resized, unless it restarts", () => {
  const swaps = { ...machine, podSwapBytes: 1024 ** 3 };
  const burstable = (memory: string, more: Partial<Container> = {}): Pod => pod({ requests: { memory }, limits: { memory: "1Gi" } }, more);
  expect(swapRefusal(burstable("64Mi"), burstable("128Mi"), swaps)).toBe("In-place resize of containers with swap is not supported.");
  const restarts: Partial<Container> = { resizePolicy: [{ resourceName: "memory", restartPolicy: "RestartContainer" }] };
  expect([swapRefusal(burstable("64Mi"), burstable("64Mi"), swaps), swapRefusal(burstable("64Mi"), burstable("128Mi"), machine), swapRefusal(burstable("64Mi", restarts), burstable("128Mi", restarts), swaps)]).toEqual([undefined, undefined, undefined]);
});
