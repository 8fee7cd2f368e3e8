import { expect, test } from "vitest";
import type { PersistentVolume, Pod, Volume } from "../../../core/api/gen/core.v1.ts";
import type { CSIDriver } from "../../../core/api/gen/storage.v1.ts";
import { withDriver } from "./csi-node.ts";
import { attachmentName, capabilityOf, checkLifecycle, type CsiVolume, groupOf, inlineVolume, persistentVolume, publishTarget, stagingDirectory, volumeKey } from "./csi-volume.ts";
import { versionProblem } from "./drivers.ts";

const pod = { metadata: { name: "p", namespace: "d", uid: "u1" }, spec: { securityContext: { fsGroup: 7 } } } as unknown as Pod;
const volume: CsiVolume = { specName: "pvc-1", driver: "hostpath.csi.k8s.io", handle: "h1", lifecycle: "Persistent", fsType: "ext4", readOnly: false, block: false, attributes: {}, accessMode: "ReadWriteOnce", forOneNode: true, mountOptions: ["noatime"], stageSecret: undefined, publishSecret: undefined, expandSecret: undefined };
const driver = (spec: CSIDriver["spec"]): CSIDriver => ({ spec }) as CSIDriver;

test("names and places are upstream's, which drivers and other components compute too", () => {
  expect(volumeKey(volume)).toBe("kubernetes.io/csi/hostpath.csi.k8s.io^h1");
  expect(attachmentName(volume, "n1")).toMatch(/^csi-[0-9a-f]{64}$/);
  expect(stagingDirectory("/k", volume).target).toMatch(/^\/k\/plugins\/kubernetes\.io\/csi\/hostpath\.csi\.k8s\.io\/[0-9a-f]{64}\/globalmount$/);
  expect(stagingDirectory("/k", { ...volume, block: true })).toEqual({ note: "/k/plugins/kubernetes.io/csi/volumeDevices/pvc-1/data", target: "/k/plugins/kubernetes.io/csi/volumeDevices/staging/pvc-1", around: "/k/plugins/kubernetes.io/csi/volumeDevices/pvc-1" });
  expect(publishTarget("/k", "u1", volume).target).toBe("/k/pods/u1/volumes/kubernetes.io~csi/pvc-1/mount");
  expect(publishTarget("/k", "u1", { ...volume, block: true }).target).toBe("/k/plugins/kubernetes.io/csi/volumeDevices/publish/pvc-1/u1");
  expect(inlineVolume(pod, { name: "v" } as Volume, { driver: "d" })).toMatchObject({ handle: expect.stringMatching(/^csi-[0-9a-f]{64}$/), lifecycle: "Ephemeral", specName: "v" });
});

test.each([
  ["ReadWriteOnce", false, "SINGLE_NODE_WRITER"], ["ReadWriteOnce", true, "SINGLE_NODE_MULTI_WRITER"], ["ReadWriteOncePod", true, "SINGLE_NODE_SINGLE_WRITER"], ["ReadWriteOncePod", false, "SINGLE_NODE_WRITER"],
  ["ReadOnlyMany", false, "MULTI_NODE_READER_ONLY"], ["ReadWriteMany", true, "MULTI_NODE_MULTI_WRITER"],
] as const)("access mode %s, of a driver that tells writers apart: %s, is %s", (accessMode, fineAccessModes, mode) => {
  expect(capabilityOf({ ...volume, accessMode }, { fineAccessModes }, undefined)).toEqual({ mount: { fs_type: "ext4", mount_flags: ["noatime"] }, access_mode: { mode } });
});

test.each([
  [{}, {}, false, { byUs: true, byDriver: undefined }], [{}, { fsType: "" }, false, { byUs: false, byDriver: undefined }], [{}, { accessMode: "ReadWriteMany", forOneNode: false }, false, { byUs: false, byDriver: undefined }],
  [{ fsGroupPolicy: "File" }, { accessMode: "ReadWriteMany", forOneNode: false, fsType: "" }, false, { byUs: true, byDriver: undefined }], [{ fsGroupPolicy: "None" }, {}, false, { byUs: false, byDriver: undefined }],
  [{}, {}, true, { byUs: false, byDriver: 7 }], [{}, { readOnly: true }, false, { byUs: false, byDriver: undefined }],
  [{}, { accessMode: "ReadWriteMany" }, false, { byUs: true, byDriver: undefined }], [{}, { lifecycle: "Ephemeral", fsType: "" }, false, { byUs: false, byDriver: undefined }], [{}, { lifecycle: "Ephemeral" }, false, { byUs: true, byDriver: undefined }],
] as const)("fsGroup with %j of %j, driver mounts with a group: %s", (spec, change, mountsGroup, expected) => {
  expect(groupOf(pod, { ...volume, ...change }, driver(spec), { mountsGroup })).toEqual(expected);
});

test("a volume is for one node if it is that among other things, and read-only by its pod's word: what its source says is for whoever attaches it", () => {
  const of = (accessModes: string[]) => persistentVolume({ metadata: { name: "pv" }, spec: { accessModes, csi: { driver: "d", volumeHandle: "h", readOnly: true } } } as unknown as PersistentVolume, { readOnly: false, block: false });
  expect(of(["ReadWriteMany", "ReadWriteOnce"])).toMatchObject({ accessMode: "ReadWriteMany", forOneNode: true, readOnly: false });
  expect([of(["ReadWriteOncePod"]).forOneNode, of(["ReadOnlyMany", "ReadWriteMany"]).forOneNode]).toEqual([true, false]);
});

test("an inline volume wants a driver that says it can", () => {
  const inline: CsiVolume = { ...volume, lifecycle: "Ephemeral" };
  expect(() => checkLifecycle(inline, driver({}))).toThrow('volume mode "Ephemeral" not supported by driver hostpath.csi.k8s.io (only supports ["Persistent"])');
  expect(() => checkLifecycle(inline, undefined)).toThrow("(no CSIDriver object)");
  checkLifecycle(inline, driver({ volumeLifecycleModes: ["Ephemeral"] }));
  checkLifecycle(volume, undefined);
});

test.each([
  [["v1.0.0"], undefined], [["0.2.0", "v1.2.3"], undefined], [["v1.2.3", "boo", "4.9.12", "v0.3.0", "2.0.1"], undefined], [["1.0.0-rc1"], undefined],
  [[], "Plugin returned an empty list for supported versions"],
  [["0.2.0", "v0.3.0"], 'None of the versions specified ["0.2.0" "v0.3.0"] are supported. err=highest supported version reported is 0.3.0, must be v1.x'],
  [["4.9.12", "2.0.1"], 'None of the versions specified ["4.9.12" "2.0.1"] are supported. err=could not find a highest supported version from versions ([4.9.12 2.0.1]) reported: <nil>'],
  [["var", "boo"], 'None of the versions specified ["var" "boo"] are supported. err=could not find a highest supported version from versions ([var boo]) reported: could not parse "var" as version'],
  [["1"], 'None of the versions specified ["1"] are supported. err=could not find a highest supported version from versions ([1]) reported: illegal version string "1"'],
] as const)("a driver that speaks %j: %s", (versions, problem) => expect(versionProblem(versions)).toBe(problem));

test("a driver stands once in the CSINode, and unchanged is not written", () => {
  const mine = { name: "d", nodeId: "n1", volumesMax: 3, topology: { "t/zone": "a" } };
  const first = withDriver([{ name: "other", nodeID: "x" }], mine);
  expect(first).toEqual([{ name: "other", nodeID: "x" }, { name: "d", nodeID: "n1", topologyKeys: ["t/zone"], allocatable: { count: 3 } }]);
  expect(withDriver(first, mine)).toBe(first);
  expect(withDriver(first, { ...mine, volumesMax: 0 })[1]).toEqual({ name: "d", nodeID: "n1", topologyKeys: ["t/zone"] });
});
