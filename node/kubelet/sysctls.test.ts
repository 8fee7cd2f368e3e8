import { expect, test } from "vitest";
import type { Pod, PodSpec } from "../../core/api/gen/core.v1.ts";
import { allowedSysctlProblem, sysctlName, sysctlProblem } from "./sysctls.ts";

const setting = (name: string, spec: Partial<PodSpec> = {}): Pod => ({ metadata: {}, spec: { containers: [], securityContext: { sysctls: [{ name, value: "1" }] }, ...spec } }) as unknown as Pod;

test.each<[string, Partial<PodSpec>, string | undefined]>([
  ["net.ipv4.tcp_syncookies", {}, undefined],
  ["net/ipv4/tcp_syncookies", {}, undefined],
  ["net.ipv4.tcp_syncookies", { hostNetwork: true }, '"net.ipv4.tcp_syncookies" not allowed with host Net enabled'],
  ["kernel.shm_rmid_forced", { hostNetwork: true }, undefined],
  ["kernel.shm_rmid_forced", { hostIPC: true }, '"kernel.shm_rmid_forced" not allowed with host IPC enabled'],
  ["kernel.msgmax", {}, undefined],
  ["kernel.msgmax", { hostIPC: true }, '"kernel.msgmax" not allowed with host IPC enabled'],
  ["kernel.shmmni", {}, '"kernel.shmmni" not allowlisted'],
  ["net.ipv4.conf.eth0/1.forwarding", {}, undefined],
  ["net/ipv4/conf/eth0.1/forwarding", {}, undefined],
  ["net/ipv4/conf/eth0/1/forwarding", {}, '"net.ipv4.conf.eth0.1.forwarding" not allowlisted'],
])("%s of a pod with %j: %s", (name, spec, problem) => {
  expect(sysctlProblem(setting(name, spec), ["kernel.msg*", "net/ipv4/conf/eth0.1/forwarding"])).toBe(problem);
});

test("slashes and dots change places when a slash comes first", () => {
  expect(["a", "net.ipv4.conf.eno2/100.rp_filter", "net/ipv4/conf/eno2.100/rp_filter"].map(sysctlName)).toEqual(["a", "net.ipv4.conf.eno2/100.rp_filter", "net.ipv4.conf.eno2/100.rp_filter"]);
});

test.each<[string, string | undefined]>([
  ["kernel.msg*", undefined], ["kernel/shm*", undefined], ["net.*", undefined], ["fs.mqueue.msg_max", undefined], ["kernel.sem", undefined],
  ["vm.swappiness", 'the sysctls "vm.swappiness" are not known to be namespaced'], ["kernel.*", 'the sysctls "kernel." are not known to be namespaced'], ["net", 'the sysctls "net" are not known to be namespaced'],
  ["net.*.x", 'sysctl "net.*.x" must have at most 253 characters and match regex ([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]'], ["Net.a", 'sysctl "Net.a" must have'],
])("a node may allow %s: %s", (pattern, problem) => {
  const found = allowedSysctlProblem([pattern]);
  if (problem === undefined) expect(found).toBeUndefined();
  else expect(found).toContain(problem);
});
