import { expect, test } from "vitest";
import type { PersistentVolume, PersistentVolumeClaim, Pod } from "../../../core/api/gen/core.v1.ts";
import { PERSISTENT_VOLUME_CLAIMS } from "../../../core/client/resources.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { fakeApi } from "../../../test/fake-api.ts";
import type { ExecResult } from "../../os/exec.ts";
import { claimExpander, failedStatus, GrowFailure, wantedSize } from "./expand-claim.ts";
import { growFileSystem } from "./format-and-mount.ts";

const { signal } = new AbortController();
const volume = { metadata: { name: "pv" }, spec: { capacity: { storage: "3Gi" } } } as unknown as PersistentVolume;
const pod = { metadata: { name: "p", namespace: "ns", uid: "u" } } as unknown as Pod;
const step = (storage: string) => ({ allocatedResourceStatuses: { storage } });

test.each<[string, object, string | undefined]>([
  ["its volume is larger", {}, "3Gi"],
  ["it is as large", { capacity: { storage: "3Gi" } }, undefined],
  ["the resizer is at it", { allocatedResources: { storage: "2Gi" } }, undefined],
  ["the resizer is at it, and says so", { allocatedResources: { storage: "2Gi" }, ...step("ControllerResizeInProgress") }, undefined],
  ["it is the node's turn", { allocatedResources: { storage: "2Gi" }, ...step("NodeResizePending") }, "2Gi"],
  ["the node has begun before", { allocatedResources: { storage: "2Gi" }, ...step("NodeResizeInProgress") }, "2Gi"],
  ["that was found impossible", { allocatedResources: { storage: "2Gi" }, ...step("NodeResizeInfeasible") }, undefined],
  ["it is not bound", { phase: "Lost" }, undefined],
])("how large a claim is to become on the node when %s", (_, status, expected) => {
  expect(wantedSize({ status: { phase: "Bound", capacity: { storage: "1Gi" }, ...status } } as unknown as PersistentVolumeClaim, volume)).toBe(expected);
});

test.each<[string, GrowFailure["kind"], string, string[], unknown]>([
  ["is told", "final", "3Gi", [], undefined],
  ["to a size that cannot be is the resizer's", "infeasible", "3Gi", [], "NodeResizeInfeasible"],
  ["once the user wants another size is the resizer's when it comes again", "final", "2Gi", ["NodeResizeError"], "NodeResizeInfeasible"],
  ["once the user wants another size is told first", "final", "2Gi", [], undefined],
])("a failure %s", (_, kind, asked, before, infeasible) => {
  const claim = { spec: { resources: { requests: { storage: asked } } }, status: { conditions: before.map((type) => ({ type, status: "True" })) } } as unknown as PersistentVolumeClaim;
  const status = failedStatus(claim, "3Gi", { kind, message: "no" }, "now") as { conditions: { type: string }[]; allocatedResourceStatuses?: { storage: string } };
  expect([status.conditions.map(({ type }) => type), status.allocatedResourceStatuses?.storage]).toEqual([["NodeResizeError"], infeasible]);
});

/** A claim of the node's turn, and who grows its volume. */
async function growing(grow: () => Promise<boolean>, rest: { readOnly?: boolean } = {}) {
  const api = fakeApi();
  const told: string[] = [];
  let uptimeMs = 0;
  const made = await api.client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "ns" }, spec: {}, status: { phase: "Bound", capacity: { storage: "1Gi" }, conditions: [{ type: "FileSystemResizePending", status: "True" }, { type: "Mine", status: "True" }], allocatedResources: { storage: "3Gi" }, ...step("NodeResizePending") } } as never, { signal });
  const expander = claimExpander({ client: api.client, events: { event: (on, _, reason) => void told.push(`${on.kind} ${reason}`) }, clock: { ...systemClock, uptimeMs: () => uptimeMs }, log: silentLog, nodeName: "n" });
  return { told, claim: () => api.all(PERSISTENT_VOLUME_CLAIMS)[0]!, wait: (ms: number) => { uptimeMs += ms; }, expander, of: () => ({ pod, claim: api.all(PERSISTENT_VOLUME_CLAIMS)[0] ?? made, volume, readOnly: false, grow, ...rest }) };
}

test.each<[string, object, number[]]>([
  ["of many nodes grows on each of them", { spec: { accessModes: ["ReadWriteMany"] } }, [3 * 2 ** 30]],
  ["of many nodes whose driver needs no help from nodes", { spec: { accessModes: ["ReadWriteMany"] }, metadata: { annotations: { "volume.kubernetes.io/node-expansion-not-required": "true" } } }, []],
  ["of one node is large enough when its claim says so", { spec: { accessModes: ["ReadWriteOnce"] } }, []],
])("a volume %s, once another node has told its claim", async (_, rest, expected) => {
  const grown: number[] = [], told: string[] = [];
  const expander = claimExpander({ client: fakeApi().client, events: { event: (on, _type, reason) => void told.push(`${on.kind} ${reason}`) }, clock: systemClock, log: silentLog, nodeName: "n" });
  const seen = (size: string, pv = size) => expander.inUse({ pod, claim: { kind: "PersistentVolumeClaim", spec: {}, status: { phase: "Bound", capacity: { storage: size } }, ...rest, metadata: { name: "c", ...(rest as Partial<PersistentVolumeClaim>).metadata } } as unknown as PersistentVolumeClaim, volume: { ...volume, spec: { capacity: { storage: pv } } } as unknown as PersistentVolume, readOnly: false, grow: async (bytes) => { grown.push(bytes); return true; } }, signal);
  await seen("1Gi");
  await seen("3Gi");
  await seen("3Gi");
  expect([grown, told.length]).toEqual([expected, 2 * expected.length]);
});

test("a claim that is expanded says so, and so do its events", async () => {
  const { told, claim, expander, of } = await growing(async () => true);
  await expander.beforeUse(of(), signal);
  expect([told, claim().status?.capacity, claim().status?.conditions?.map(({ type }) => type), claim().status?.allocatedResourceStatuses?.["storage"]]).toEqual([["Pod FileSystemResizeSuccessful", "PersistentVolumeClaim FileSystemResizeSuccessful"], { storage: "3Gi" }, ["Mine"], undefined]);
});

test("what is in use and cannot grow goes on, and is tried later and later; what is only to be mounted waits", async () => {
  let tries = 0;
  const { told, claim, wait, expander, of } = await growing(async () => { tries++; throw new GrowFailure("final", new Error("no space")); });
  await expander.inUse(of(), signal);
  await expander.inUse(of(), signal);
  expect([tries, told, claim().status?.allocatedResourceStatuses, claim().status?.conditions?.at(-1)]).toMatchObject([1, ["Pod VolumeResizeFailed"], { storage: "NodeResizeInProgress" }, { type: "NodeResizeError", message: "failed to expand pvc with no space" }]);
  wait(501);
  await expander.inUse(of(), signal);
  expect(tries).toBe(2);
  await expect(expander.beforeUse(of(), signal)).rejects.toThrow('MountVolume.Setup failed while expanding volume for volume "pv" : no space');
  const device = { ...of(), volume: { ...volume, spec: { ...volume.spec, volumeMode: "Block" as const } } };
  await expect(expander.beforeUse(device, signal)).rejects.toMatchObject({ reason: "FailedMapVolume", message: 'MapVolume.MarkVolumeAsMounted failed while expanding volume for volume "pv" : no space' });
});

test("a volume that cannot grow in use is left alone until it is mounted anew", async () => {
  let tries = 0;
  const { told, claim, wait, expander, of } = await growing(async () => { tries++; throw new GrowFailure("in-use", new Error("in use")); });
  await expander.inUse(of(), signal);
  wait(1e9);
  await expander.inUse(of(), signal);
  expect([tries, told]).toEqual([1, []]);
  expect(claim().status?.conditions?.find(({ type }) => type === "NodeResizeError")?.message).toBe("failed to expand pvc with in use");
});

test("a volume that a pod only reads does not grow for that; it is told where it is mounted", async () => {
  const { told, claim, expander, of } = await growing(async () => { throw new Error("not asked"); }, { readOnly: true });
  await expander.inUse(of(), signal);
  expect(told).toEqual([]);
  await expander.beforeUse(of(), signal);
  expect([told, claim().status?.capacity]).toEqual([["Pod FileSystemResizeFailed", "PersistentVolumeClaim FileSystemResizeFailed"], { storage: "1Gi" }]);
});

test("where the resizer does not tell its steps, a failure is tried again, and nothing is left to that", async () => {
  let tries = 0;
  const { claim, wait, expander, of } = await growing(async () => { tries++; throw new GrowFailure("infeasible", new Error("not there yet")); });
  const plain = () => ({ ...of(), claim: { ...claim(), status: { phase: "Bound", capacity: { storage: "1Gi" } } } as PersistentVolumeClaim });
  const before = claim().status;
  await expander.inUse(plain(), signal);
  wait(501);
  await expander.inUse(plain(), signal);
  expect([tries, claim().status]).toEqual([2, before]);
});

test.each<[string, string | undefined, string[]]>([
  ["ext4", "TYPE=ext4\n", ["resize2fs /dev/x"]], ["xfs", "TYPE=xfs\n", ["xfs_growfs -d /m"]], ["btrfs", "TYPE=btrfs\n", ["btrfs filesystem resize max /m"]], ["nothing yet", undefined, []],
])("a file system grows by its own tool: %s", async (_, blkid, expected) => {
  const did: string[] = [];
  const exec = async (program: string, args: readonly string[]): Promise<ExecResult> => {
    if (program !== "blkid") did.push([program, ...args].join(" "));
    return { exitCode: program === "blkid" && blkid === undefined ? 2 : 0, stdout: blkid ?? "", stderr: "" };
  };
  await growFileSystem(exec, { device: "/dev/x", target: "/m" }, signal);
  expect(did).toEqual(expected);
});

test("a file system that cannot grow says so", async () => {
  const exec = async (program: string): Promise<ExecResult> => (program === "blkid" ? { exitCode: 0, stdout: "TYPE=vfat\n", stderr: "" } : { exitCode: 1, stdout: "", stderr: "bad" });
  await expect(growFileSystem(exec, { device: "/dev/x", target: "/m" }, signal)).rejects.toThrow("ResizeFS.Resize - resize of format vfat is not supported for device /dev/x mounted at /m");
  const ext4 = async (program: string): Promise<ExecResult> => (program === "blkid" ? { exitCode: 0, stdout: "TYPE=ext4\n", stderr: "" } : { exitCode: 1, stdout: "", stderr: "bad" });
  await expect(growFileSystem(ext4, { device: "/dev/x", target: "/m" }, signal)).rejects.toThrow("resize of device /dev/x failed: exit status 1. resize2fs output: bad");
});

test("of a volume that no pod has any more nothing is remembered", async () => {
  const expander = claimExpander({ client: fakeApi().client, events: { event: () => undefined }, clock: systemClock, log: silentLog, nodeName: "n" });
  const use = (uid: string): Promise<void> => expander.inUse({
    pod: { ...pod, metadata: { ...pod.metadata, uid } }, volume: { ...volume, spec: { capacity: { storage: "3Gi" } } } as unknown as PersistentVolume, readOnly: false, grow: async () => true,
    claim: { kind: "PersistentVolumeClaim", metadata: { name: "c" }, spec: { accessModes: ["ReadWriteMany"] }, status: { phase: "Bound", capacity: { storage: "1Gi" } } } as unknown as PersistentVolumeClaim,
  }, signal).catch(() => undefined);
  await use("a");
  await use("b");
  expander.released("a");
  expect(expander.size).toBe(1);
  expander.released("b");
  expect(expander.size).toBe(0);
});
