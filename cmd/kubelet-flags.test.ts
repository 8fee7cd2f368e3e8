import { expect, test } from "vitest";
import { isConfigurationFlag, kubeletFlags } from "./kubelet-flags.ts";

test("flags of the kubelet are fields of its configuration", () => {
  expect(kubeletFlags([
    ["eviction-hard", "memory.available<200Mi,nodefs.available<5%"], ["eviction-soft-grace-period", "memory.available=1m30s"], ["image-gc-high-threshold", "70"], ["node-status-update-frequency", "20s"],
    ["fail-swap-on", "false"], ["feature-gates", "NodeSwap=true"], ["allowed-unsafe-sysctls", "net.core.*,kernel.msg*"],
  ])).toEqual({
    evictionHard: { "memory.available": "200Mi", "nodefs.available": "5%" }, evictionSoftGracePeriod: { "memory.available": "1m30s" },
    imageGCHighThresholdPercent: 70, nodeStatusUpdateFrequency: "20s", failSwapOn: false, featureGates: { NodeSwap: true }, allowedUnsafeSysctls: ["net.core.*", "kernel.msg*"],
  });
});

test.each([["max-pods", "many", "must be a whole number"], ["eviction-hard", "memory.available=1Gi", "must be name<value"], ["fail-swap-on", "no", "must be true or false"], ["feature-gates", "NodeSwap=yes", "feature-gates NodeSwap must be true or false"]])("--kubelet-arg %s=%s is refused", (flag, value, why) => {
  expect(() => kubeletFlags([[flag, value]])).toThrow(why);
});

test("truth is read as Go reads it", () => {
  expect(kubeletFlags([["fail-swap-on", "F"], ["cpu-cfs-quota", "1"], ["feature-gates", "NodeSwap=True"]])).toMatchObject({ failSwapOn: false, cpuCFSQuota: true, featureGates: { NodeSwap: true } });
});

test("maps and lists are added to by each flag, and may have blanks in them; taints are those of the last", () => {
  expect(kubeletFlags([
    ["reserved-memory", "0:memory=1Gi"], ["reserved-memory", "1:memory=2Gi"], ["feature-gates", "NodeSwap=true, MemoryQoS=true"], ["feature-gates", "MemoryQoS=false"], ["eviction-hard", "memory.available<200Mi"], ["eviction-hard", " nodefs.available < 5%"],
    ["cluster-dns", "10.0.0.10"], ["cluster-dns", "10.0.0.11,10.0.0.12"], ["register-with-taints", "a=b:NoSchedule"], ["register-with-taints", "c=d:NoExecute"],
  ])).toMatchObject({
    reservedMemory: [{ numaNode: 0, limits: { memory: "1Gi" } }, { numaNode: 1, limits: { memory: "2Gi" } }], featureGates: { NodeSwap: true, MemoryQoS: false }, evictionHard: { "memory.available": "200Mi", "nodefs.available": "5%" },
    clusterDNS: ["10.0.0.10", "10.0.0.11", "10.0.0.12"], registerWithTaints: [{ key: "c", value: "d", effect: "NoExecute" }],
  });
});

test("names with capitals in a row are written as upstream writes them", () => {
  expect(kubeletFlags([["cluster-dns", "10.0.0.10"], ["cgroups-per-qos", "true"], ["cpu-cfs-quota", "true"]])).toMatchObject({ clusterDNS: ["10.0.0.10"], cgroupsPerQOS: true, cpuCFSQuota: true });
});

test("what is no flag of the kubelet is none here", () => {
  expect(isConfigurationFlag("eviction-hard")).toBe(true);
  expect(isConfigurationFlag("make-coffee")).toBe(false);
});
