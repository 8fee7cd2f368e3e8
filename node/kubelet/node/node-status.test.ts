import { expect, test } from "vitest";
import type { NodeStatus } from "../../../core/api/gen/core.v1.ts";
import { changedFacts, isSameStatus, newNode, type NodeFacts, nodeStatusOf, nodeStatusPatch } from "./node-status.ts";

const facts = (before: NodeStatus | undefined): NodeFacts => ({
  before, problems: [], pressures: new Set(), runtimeVersion: undefined, runtimeStatus: undefined, images: [], nowMs: 0,
  settings: { nodeIps: ["10.0.0.1"], hostname: "n", port: 10250, version: "v1.36.0", dataDir: "/", nodeName: "n", placement: { gates: {} } } as unknown as NodeFacts["settings"],
  machine: { machineId: "", systemUuid: "", bootId: "", kernelVersion: "", osImage: "", os: "linux", architecture: "amd64", swapBytes: 0 } as unknown as NodeFacts["machine"],
  capacity: { machine: { os: "linux", cpus: 2, memoryBytes: 2 ** 30, hugepages: [] }, diskBytes: 0, maxPods: 110, reserved: {} },
});

test("resources that others advertise on the node become allocatable, and go with the capacity", () => {
  const written = nodeStatusOf(facts({ capacity: { cpu: "1", "example.com/dongle": "4" } }));
  expect([written.capacity?.["example.com/dongle"], written.allocatable?.["example.com/dongle"], written.capacity?.["cpu"]]).toEqual(["4", "4", "2"]);
  const before: NodeStatus = { ...written, capacity: { cpu: "2" } };
  expect(nodeStatusPatch(before, nodeStatusOf(facts(before)))).toMatchObject({ status: { allocatable: { cpu: "2", "example.com/dongle": null } } });
});

test.each(["feature.node.kubernetes.io/sgx.epc", "notkubernetes.io/thing", "widgets"])("%s, too, which is in a domain of Kubernetes' own, is allocatable as far as somebody says the node has it", (name) => {
  const written = nodeStatusOf(facts({ capacity: { cpu: "2", [name]: "123" }, allocatable: { cpu: "2", [name]: "1" } }));
  expect([written.capacity?.[name], written.allocatable?.[name]]).toEqual(["123", "123"]);
  expect(isSameStatus(written, nodeStatusOf(facts(written)))).toBe(true); // or it would be written at each look
  const before: NodeStatus = { ...written, capacity: { cpu: "2" } };
  const after = nodeStatusOf(facts(before));
  expect([after.capacity?.[name], after.allocatable?.[name]]).toEqual([undefined, "123"]); // stays, as upstream's: whoever wrote the capacity takes both away
  expect(nodeStatusPatch(before, after)).not.toMatchObject({ status: { allocatable: { [name]: null } } });
});

test("pages of a size that the machine has no more are told no more", () => {
  const before: NodeStatus = { capacity: { "hugepages-1Gi": "0" }, allocatable: { "hugepages-1Gi": "0" } };
  expect(nodeStatusPatch(before, nodeStatusOf(facts(before)))).toMatchObject({ status: { capacity: { "hugepages-1Gi": null }, allocatable: { "hugepages-1Gi": null } } });
});

test("swap is told where there is any, and what only newer nodes can do is declared", () => {
  const { machine } = facts(undefined);
  expect([nodeStatusOf(facts(undefined)).nodeInfo?.swap, nodeStatusOf({ ...facts(undefined), machine: { ...machine, swapBytes: 4096 } }).nodeInfo?.swap]).toEqual([undefined, { capacity: 4096 }]);
  expect(nodeStatusOf(facts(undefined)).declaredFeatures).toContain("RestartAllContainersOnContainerExits");
});

test("swap that was switched off is taken away from what the node says, which it has said then", () => {
  const { machine } = facts(undefined);
  const before = nodeStatusOf({ ...facts(undefined), machine: { ...machine, swapBytes: 4096, bootId: "a" } });
  expect(nodeStatusPatch(before, nodeStatusOf({ ...facts(before), machine: { ...machine, bootId: "b" } }))).toMatchObject({ status: { nodeInfo: { bootID: "b", swap: null } } });
});

test("pods with ids of their own on the host's network are declared where the node is told to and the runtime can", () => {
  const declared = (gate: boolean, can: boolean) => nodeStatusOf({
    ...facts(undefined), settings: { ...facts(undefined).settings, placement: { gates: { UserNamespacesHostNetworkSupport: gate } } as unknown as NodeFacts["settings"]["placement"] }, runtimeStatus: { features: { user_namespaces_host_network: can } },
  }).declaredFeatures!.includes("UserNamespacesHostNetworkSupport");
  expect([declared(true, true), declared(true, false), declared(false, true)]).toEqual([true, false, false]);
});

test("handlers of the runtime are told of by name, in whatever order it tells of them", () => {
  const told = (...names: string[]) => nodeStatusOf({ ...facts(undefined), runtimeStatus: { runtime_handlers: names.map((name) => ({ name })) } }).runtimeHandlers?.map(({ name }) => name);
  expect([told("runc", "", "crun"), told("", "crun", "runc")]).toEqual([["", "crun", "runc"], ["", "crun", "runc"]]);
});

test("conditions say how the node is, in upstream's words, and keep the time they changed", () => {
  const [fine, ill] = [nodeStatusOf(facts(undefined)), nodeStatusOf({ ...facts(undefined), problems: ["a is not ready", "b is not ready"], pressures: new Set(["MemoryPressure", "DiskPressure", "PIDPressure"]), nowMs: 60_000 })];
  const lines = ({ conditions }: NodeStatus) => conditions?.map(({ type, status, reason, message }) => `${type} ${status} ${reason}: ${message}`);
  expect(lines(fine)).toEqual([
    "MemoryPressure False KubeletHasSufficientMemory: kubelet has sufficient memory available", "DiskPressure False KubeletHasNoDiskPressure: kubelet has no disk pressure",
    "PIDPressure False KubeletHasSufficientPID: kubelet has sufficient PID available", "Ready True KubeletReady: kubelet is posting ready status",
  ]);
  expect(lines(ill)).toEqual([
    "MemoryPressure True KubeletHasInsufficientMemory: kubelet has insufficient memory available", "DiskPressure True KubeletHasDiskPressure: kubelet has disk pressure",
    "PIDPressure True KubeletHasInsufficientPID: kubelet has insufficient PID available", "Ready False KubeletNotReady: [a is not ready, b is not ready]",
  ]);
  const later = nodeStatusOf({ ...facts(fine), nowMs: 120_000 });
  expect(later.conditions?.[3]).toMatchObject({ lastHeartbeatTime: "1970-01-01T00:02:00Z", lastTransitionTime: "1970-01-01T00:00:00Z" });
  expect([isSameStatus(fine, later), isSameStatus(fine, ill)]).toEqual([true, false]); // a heartbeat alone is no news
});

test("what a node is registered with", () => {
  const { settings, machine } = facts(undefined);
  const given = { ...settings, labels: { rack: "7" }, annotations: {}, taints: [{ key: "os", value: "windows", effect: "NoSchedule" as const }], unschedulable: false, providerId: undefined };
  expect(newNode({ settings: given, machine })).toEqual({
    apiVersion: "v1", kind: "Node", spec: { taints: [{ key: "os", value: "windows", effect: "NoSchedule" }] },
    metadata: { name: "n", annotations: { "volumes.kubernetes.io/controller-managed-attach-detach": "true" }, labels: { "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": "n", "kubernetes.io/os": "linux", rack: "7" } },
  });
  expect(newNode({ settings: given, machine: { ...machine, os: "windows", windowsBuild: "10.0.20348" } }).metadata.labels).toMatchObject({ "kubernetes.io/os": "windows", "node.kubernetes.io/windows-build": "10.0.20348" });
});

test("of so many images as are wanted the largest are told, or all", () => {
  const image = (name: string, size: number) => ({ id: name, repo_tags: [name], size });
  const told = (statusImagesMax: number) => nodeStatusOf({ ...facts(undefined), settings: { ...facts(undefined).settings, statusImagesMax }, images: [image("small", 1), image("large", 3), image("middle", 2)] }).images?.map(({ names }) => names?.[0]);
  expect([told(2), told(-1), told(0)]).toEqual([["large", "middle"], ["large", "middle", "small"], []]);
  const equal = (images: string[]) => nodeStatusOf({ ...facts(undefined), settings: { ...facts(undefined).settings, statusImagesMax: 1 }, images: images.map((name) => image(name, 1)) }).images;
  expect(equal(["a", "b"])).toEqual(equal(["b", "a"])); // in whatever order the runtime tells of them
});

test("an image that has lost its names, as what has another of its tag now, counts and is told by its size", () => {
  const { settings } = facts(undefined), images = [{ id: "sha256:a", repo_tags: [], repo_digests: [], size: 3 }, { id: "sha256:b", repo_tags: ["b"], size: 2 }, { id: "sha256:c", repo_tags: ["c"], size: 1 }];
  const status = nodeStatusOf({ ...facts(undefined), settings: { ...settings, statusImagesMax: 2 }, images });
  expect(status.images).toEqual([{ names: [], sizeBytes: 3 }, { names: ["b"], sizeBytes: 2 }]);
  expect(isSameStatus({ ...status, images: [{ sizeBytes: 3 }, { names: ["b"], sizeBytes: 2 }] }, status), "as a server keeps it").toBe(true);
});

test("a runtime that does not say which version it is of is of an unknown one", () => {
  expect(nodeStatusOf(facts(undefined)).nodeInfo?.containerRuntimeVersion).toBe("containerd://Unknown");
});

test("what somebody has made of the node's system and processor is put right, other labels are theirs", () => {
  const machine = { os: "linux", architecture: "arm64" } as const;
  expect(changedFacts({ "kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64", "beta.kubernetes.io/os": "beos" }, machine)).toBeUndefined();
  expect(changedFacts({ "kubernetes.io/os": "beos", "kubernetes.io/arch": "arm64" }, machine)).toEqual({ "kubernetes.io/os": "linux" });
  expect(changedFacts(undefined, machine)).toEqual({ "kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64" });
});
