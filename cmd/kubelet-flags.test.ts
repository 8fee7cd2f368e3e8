import { expect, test } from "vitest";
import { isConfigurationFlag, kubeletFlags } from "./kubelet-flags.ts";

test("flags of the kubelet are fields of its configuration", () => {
  expect(kubeletFlags([
    ["eviction-hard", "memory.available<200Mi,nodefs.available<5%"], ["eviction-soft-grace-period", "memory.available=1m30s"], ["image-gc-high-threshold", "70"], ["node-status-update-frequency", "20s"],
    ["fail-swap-on", "false"], ["feature-gates", "NodeSwap=true"], ["allowed-unsafe-sysctls", "net.core.*,kernel.msg*"],
  ])).toEqual({
    apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration", evictionHard: { "memory.available": "200Mi", "nodefs.available": "5%" }, evictionSoftGracePeriod: { "memory.available": "1m30s" },
    imageGCHighThresholdPercent: 70, nodeStatusUpdateFrequency: "20s", failSwapOn: false, featureGates: { NodeSwap: true }, allowedUnsafeSysctls: ["net.core.*", "kernel.msg*"],
  });
});

test.each([["max-pods", "many", "must be a whole number"], ["eviction-hard", "memory.available=1Gi", "must be name<value"], ["fail-swap-on", "no", "must be true or false"], ["feature-gates", "NodeSwap=yes", "feature-gates NodeSwap must be true or false"]])("--kubelet-arg %s=%s is refused", (flag, value, why) => {
  expect(() => kubeletFlags([[flag, value]])).toThrow(why);
});

test("truth is read as Go reads it", () => {
  expect(kubeletFlags([["fail-swap-on", "F"], ["cpu-cfs-quota", "1"], ["feature-gates", "NodeSwap=True"]])).toMatchObject({ failSwapOn: false, cpuCFSQuota: true, featureGates: { NodeSwap: true } });
});

test("names with capitals in a row are written as upstream writes them", () => {
  expect(kubeletFlags([["cluster-dns", "10.0.0.10"], ["cgroups-per-qos", "true"], ["cpu-cfs-quota", "true"]])).toMatchObject({ clusterDNS: ["10.0.0.10"], cgroupsPerQOS: true, cpuCFSQuota: true });
});

test("what is no flag of the kubelet is none here", () => {
  expect(isConfigurationFlag("eviction-hard")).toBe(true);
  expect(isConfigurationFlag("make-coffee")).toBe(false);
});
