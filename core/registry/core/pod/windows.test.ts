import { expect, test } from "vitest";
import { created, type Given } from "../../../../test/rehearse.ts";
import { pods } from "./pod.ts";

const c = { name: "c", image: "i" };
const errorsOf = (spec: Given) => created(pods, { spec: { containers: [c], ...spec } }).errors;
const no = "Forbidden: cannot be set for a windows pod";
const windows = { os: { name: "windows" } };

test.each<[string, unknown]>([["hostPID", true], ["hostIPC", true], ["shareProcessNamespace", true], ["hostUsers", true]])("a Windows pod has no %s", (field, value) =>
  expect(errorsOf({ ...windows, [field]: value })).toEqual([`spec.${field}: ${no}`]));

test.each<[string, unknown]>([
  ["seLinuxOptions", { level: "s0" }], ["seccompProfile", { type: "RuntimeDefault" }], ["appArmorProfile", { type: "RuntimeDefault" }], ["fsGroup", 1], ["fsGroupChangePolicy", "Always"],
  ["sysctls", [{ name: "kernel.shm_rmid_forced", value: "0" }]], ["runAsUser", 1], ["runAsGroup", 1], ["supplementalGroups", [1]], ["supplementalGroupsPolicy", "Merge"],
])("a Windows pod's security context has no %s", (field, value) => expect(errorsOf({ ...windows, securityContext: { [field]: value } })).toEqual([`spec.securityContext.${field}: ${no}`]));

test.each<[string, unknown]>([
  ["seLinuxOptions", { level: "s0" }], ["seccompProfile", { type: "RuntimeDefault" }], ["capabilities", { add: ["NET_ADMIN"] }], ["readOnlyRootFilesystem", true], ["privileged", false],
  ["allowPrivilegeEscalation", true], ["procMount", "Default"], ["runAsUser", 1], ["runAsGroup", 1],
])("no container of a Windows pod has %s", (field, value) => {
  const bad = { ...c, securityContext: { [field]: value } };
  expect(errorsOf({ ...windows, containers: [bad] })).toEqual([`spec.containers[0].securityContext.${field}: ${no}`]);
  expect(errorsOf({ ...windows, initContainers: [{ ...bad, name: "i" }] })).toEqual([`spec.initContainers[0].securityContext.${field}: ${no}`]);
});

test("a pod's operating system is linux or windows; a Linux pod has no options of Windows", () => {
  expect(errorsOf({ os: { name: "linux" } })).toEqual([]);
  expect(errorsOf({ ...windows, securityContext: { runAsNonRoot: true, windowsOptions: { runAsUserName: "ContainerUser" } } })).toEqual([]);
  expect(errorsOf({ os: { name: "beos" } })).toEqual([`spec.os: Unsupported value: "beos": supported values: "linux", "windows"`]);
  expect(errorsOf({ os: { name: "linux" }, securityContext: { windowsOptions: { runAsUserName: "a" } } })).toEqual(["spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod"]);
});

test("HostProcess: all containers or none, on the host's network", () => {
  const hostProcess = { windowsOptions: { hostProcess: true } };
  expect(errorsOf({ ...windows, hostNetwork: true, securityContext: hostProcess })).toEqual([]);
  expect(errorsOf({ ...windows, securityContext: hostProcess })).toEqual(["spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers"]);
  expect(errorsOf({ ...windows, hostNetwork: true, containers: [{ ...c, securityContext: hostProcess }, { name: "d", image: "i" }] }))
    .toEqual([`spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be HostProcess containers`]);
});
