import { expect, test } from "vitest";
import type { Container, Pod } from "../../../core/api/gen/core.v1.ts";
import { containerResources, cpuQuota, cpuShares, oomScoreAdj, sandboxResources } from "./linux-resources.ts";
import { podLimits, podRequests, qosClass } from "./pod-resources.ts";

const GI = 1024 ** 3;
const pod = (containers: Container[], more: Partial<Pod["spec"]> = {}): Pod => ({
  apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "d", uid: "u", resourceVersion: "", creationTimestamp: "" }, spec: { containers, ...more },
});
const asks = (name: string, requests: Record<string, string>, limits: Record<string, string> = {}, more: Partial<Container> = {}): Container => ({ name, resources: { requests, limits }, ...more });
const fromFile = (of: Pod): Pod => ({ ...of, metadata: { ...of.metadata, annotations: { "kubernetes.io/config.source": "file" } } });

test("knobs", () => {
  expect([0, 1, 250, 1000, 1e9].map(cpuShares)).toEqual([2, 2, 256, 1024, 262144]);
  expect([0, 1, 5, 500, 2000].map((milli) => cpuQuota(milli))).toEqual([0, 1000, 1000, 50000, 200000]);
  expect([1, 500].map((milli) => cpuQuota(milli, 10_000))).toEqual([1000, 5000]);
});

test.each<[string, Pod, string, number]>([
  ["nothing asked for", pod([{ name: "a" }]), "BestEffort", 1000],
  ["requests are limits", pod([asks("a", { cpu: "1", memory: "1Gi" }, { cpu: "1000m", memory: "1024Mi" })]), "Guaranteed", -997],
  ["half of the memory", pod([asks("a", { memory: "8Gi" })]), "Burstable", 500],
  ["a trifle", pod([asks("a", { cpu: "10m" })]), "Burstable", 999],
  ["more than there is", pod([asks("a", { memory: "20Gi" })]), "Burstable", 3],
  ["what the pod asks for as a whole is shared out", pod([asks("a", { memory: "2Gi" }), asks("b", { memory: "2Gi" })], { resources: { requests: { memory: "8Gi" } } }), "Burstable", 750],
  ["critical for the node", pod([{ name: "a" }], { priority: 2_000_001_000, priorityClassName: "system-node-critical" }), "BestEffort", -997],
  ["of the class of such pods, from a file", fromFile(pod([asks("a", { memory: "8Gi" })], { priorityClassName: "system-node-critical" })), "Burstable", -997],
  ["critical for the cluster, from a file", fromFile(pod([asks("a", { memory: "8Gi" })], { priorityClassName: "system-cluster-critical" })), "Burstable", 500],
  ["it says so, but nobody has found it to be", pod([asks("a", { memory: "8Gi" })], { priorityClassName: "system-node-critical" }), "Burstable", 500],
])("%s", (_, subject, qos, score) => {
  expect([qosClass(subject), oomScoreAdj(subject, subject.spec.containers[0]!, 16 * GI)]).toEqual([qos, score]);
});

test("who asks for no memory in so many words is not promised the limit", () => {
  const of = (requests: Record<string, string>) => qosClass({ metadata: {}, spec: { containers: [{ name: "c", resources: { requests, limits: { cpu: "1", memory: "1Gi" } } }] } } as unknown as Pod);
  expect([of({ cpu: "1" }), of({ cpu: "1", memory: "1Gi" }), of({ cpu: "1", memory: "0" })]).toEqual(["Guaranteed", "Guaranteed", "Burstable"]);
});

test("a pod asks for its apps and sidecars, or for its greediest init container and the sidecars before it", () => {
  const subject = pod([asks("a", { cpu: "100m" }), asks("b", { cpu: "200m", memory: "1Gi" })], {
    initContainers: [asks("i", { cpu: "1" }), asks("side", { cpu: "50m" }, {}, { restartPolicy: "Always" }), asks("j", { cpu: "990m", memory: "10Mi" })], overhead: { memory: "1Mi", cpu: "10m" },
  });
  expect([...podLimits(subject).keys()]).toEqual([]); // overhead limits nothing that is not limited
  const whole = pod([asks("a", { cpu: "1" })], { resources: { requests: { cpu: "2" } }, overhead: { cpu: "10m", memory: "1Mi" } });
  expect(Object.fromEntries([...podRequests(whole)].map(([name, quantity]) => [name, quantity.toString()]))).toEqual({ cpu: "2010m", memory: "1Mi" });
  expect(Object.fromEntries([...podRequests(subject)].map(([name, quantity]) => [name, quantity.toString()]))).toEqual({ cpu: "1050m", memory: "1025Mi" });
});

test("what the runtime is told", () => {
  const container = asks("a", { memory: "64Mi" }, { cpu: "500m", memory: "128Mi", "hugepages-2Mi": "4Mi" });
  expect(containerResources(pod([container]), container, { memoryBytes: 16 * GI, hugepageSizes: ["2MB", "1GB"], countsSwap: true })).toEqual({
    cpu_shares: 512, cpu_quota: 50000, cpu_period: 100000, memory_limit_in_bytes: 128 << 20, memory_swap_limit_in_bytes: 128 << 20, oom_score_adj: 997,
    hugepage_limits: [{ page_size: "2MB", limit: 4 << 20 }, { page_size: "1GB", limit: 0 }],
  });
});

test("a container whose limit is nothing has that of its pod as a whole", () => {
  const container = asks("a", {}, { cpu: "0", memory: "0" });
  const whole = pod([container], { resources: { limits: { cpu: "500m", memory: "128Mi" } } });
  expect(containerResources(whole, container, { memoryBytes: 16 * GI, hugepageSizes: [], countsSwap: false })).toMatchObject({ cpu_quota: 50_000, memory_limit_in_bytes: 128 << 20 });
});

test("where a group can end as a whole, a container that takes too much memory does, besides what it may swap", () => {
  const container = asks("a", { memory: "1Gi" }, { memory: "2Gi" });
  const quota = (cpuQuota: object) => {
    const { cpu_quota, cpu_period } = containerResources(pod([limited]), limited, { memoryBytes: GI, hugepageSizes: [], countsSwap: false, cpuQuota: cpuQuota as never });
    return [cpu_quota, cpu_period];
  };
  const limited = { name: "a", resources: { limits: { cpu: "2" } } };
  expect([quota({ on: true, periodUs: 10_000 }), quota({ on: false, periodUs: 100_000 })]).toEqual([[20_000, 10_000], [undefined, undefined]]);
  const told = (more: object) => containerResources(pod([container]), container, { memoryBytes: 16 * GI, hugepageSizes: [], countsSwap: true, ...more }).unified;
  expect(told({})).toBeUndefined();
  expect(told({ killsWholeContainer: true })).toEqual({ "memory.oom.group": "1" });
  expect(told({ killsWholeContainer: true, podSwapBytes: 0 })).toEqual({ "memory.oom.group": "1", "memory.swap.max": "0" });
});

test.each<[string, Pod]>([
  ["BestEffort", pod([{ name: "a" }])], ["Guaranteed", pod([asks("a", { cpu: "1", memory: "1Gi" }, { cpu: "1", memory: "1Gi" })])], ["critical", pod([asks("a", { memory: "1Gi" }, { memory: "2Gi" })], { priority: 2_000_000_000 })],
  ["asking for no memory", pod([asks("a", { cpu: "1" })])],
])("a %s pod does not swap", (_, subject) => {
  expect(containerResources(subject, subject.spec.containers[0]!, { memoryBytes: 16 * GI, hugepageSizes: [], countsSwap: true, podSwapBytes: 8 * GI }).unified).toEqual({ "memory.swap.max": "0" });
});

test("a burstable container may swap in proportion to what it asks for", () => {
  const machine = { memoryBytes: 16 * GI, hugepageSizes: [], countsSwap: true, podSwapBytes: 8 * GI };
  const burstable = asks("a", { memory: "1Gi" }, { memory: "2Gi" });
  expect(containerResources(pod([burstable]), burstable, machine)).toMatchObject({ unified: { "memory.swap.max": String(GI / 2) }, memory_swap_limit_in_bytes: 2 * GI + GI / 2 });
  const equal = asks("a", { memory: "1Gi" }, { memory: "1Gi" });
  expect(containerResources(pod([equal, asks("b", {}, {})]), equal, machine).unified).toEqual({ "memory.swap.max": "0" });
  expect(containerResources(pod([burstable]), burstable, { ...machine, podSwapBytes: 0 }).unified).toEqual({ "memory.swap.max": "0" });
});

test("a sandbox is told of its pod's processors as its containers are", () => {
  const one = pod([asks("a", { cpu: "2", memory: "128Mi" }, { cpu: "4", memory: "256Mi" })], { overhead: { cpu: "1", memory: "128Mi" } });
  const limits = (quotaUs: number, periodUs: number) => ({ cpu_quota: quotaUs, cpu_period: periodUs });
  const plain = { cpu_shares: 2048, memory_limit_in_bytes: 256 * 1024 ** 2 }, plainOverhead = { cpu_shares: 1024, memory_limit_in_bytes: 128 * 1024 ** 2 };
  expect(sandboxResources(one)).toEqual({ resources: { ...plain, ...limits(400_000, 100_000) }, overhead: { ...plainOverhead, ...limits(100_000, 100_000) } });
  expect(sandboxResources(one, { cpuQuota: { on: true, periodUs: 10_000 }, hasOwnCpus: true })).toEqual({ resources: { ...plain, ...limits(-1, 10_000) }, overhead: { ...plainOverhead, ...limits(10_000, 10_000) } });
  const unified = { "memory.oom.group": "1" };
  expect(sandboxResources(one, { cpuQuota: { on: false, periodUs: 100_000 }, killsWholeContainer: true, hasOwnCpus: true })).toEqual({ resources: { ...plain, unified }, overhead: { ...plainOverhead, unified } });
  expect(sandboxResources(pod([asks("a", { memory: "128Mi" })]))).toEqual({ resources: { cpu_shares: 2, ...limits(0, 100_000) }, overhead: {} });
});
