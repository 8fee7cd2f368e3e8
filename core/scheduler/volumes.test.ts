import { expect, test } from "vitest";
import type { PersistentVolume, PersistentVolumeClaim, Pod } from "../api/gen/core.v1.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import type { Client } from "../client/client.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { candidate, first, node, pod, schedulingCluster, stored } from "../../test/scheduling-cluster.ts";
import { growth } from "../../test/reads.ts";
import { place } from "./place.ts";
import { DEFAULT_PROFILE } from "./plugins.ts";
import { VolumeBinder } from "./volume-binder.ts";
import { volumeChoice } from "./volume-choice.ts";
import { volumeBindingScore } from "./scores/volumes.ts";
import { planVolumes, podVolumes } from "./volume-plan.ts";

const nodes = [node("a", { labels: { "topology.kubernetes.io/zone": "z1" } }), node("b", { labels: { "topology.kubernetes.io/zone": "z2" } })];

const wait = (provisioner = "kubernetes.io/no-provisioner", more: object = {}): ApiObject => stored("storage.k8s.io/v1", "StorageClass", "wait", { provisioner, volumeBindingMode: "WaitForFirstConsumer", ...more });
const immediate: ApiObject = stored("storage.k8s.io/v1", "StorageClass", "now", { provisioner: "x", volumeBindingMode: "Immediate" });

function claim(name: string, { storageClassName = "wait", size = "1Gi", volumeName, annotations = {}, accessModes = ["ReadWriteOnce"] }: { storageClassName?: string; size?: string; volumeName?: string; annotations?: Record<string, string>; accessModes?: string[] } = {}): PersistentVolumeClaim {
  const bound = volumeName ? { "pv.kubernetes.io/bind-completed": "yes" } : {};
  return stored("v1", "PersistentVolumeClaim", `default/${name}`, { metadata: { annotations: { ...bound, ...annotations } }, spec: { storageClassName, accessModes, ...(volumeName && { volumeName }), resources: { requests: { storage: size } } } });
}

function volume(name: string, { on, size = "1Gi", labels = {}, driver, claimRef }: { on?: string; size?: string; labels?: Record<string, string>; driver?: string; claimRef?: object } = {}): PersistentVolume {
  const nodeAffinity = on && { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: [on] }] }] } };
  return stored("v1", "PersistentVolume", name, {
    metadata: { labels },
    spec: { storageClassName: "wait", capacity: { storage: size }, accessModes: ["ReadWriteOnce"], ...(nodeAffinity && { nodeAffinity }), ...(driver && { csi: { driver, volumeHandle: name } }), ...(claimRef && { claimRef }) },
    status: { phase: "Available" },
  });
}

function bound(on: string): PersistentVolume { return volume("v", { on, claimRef: { name: "c", namespace: "default", uid: "c" } }); }

const using = (...claims: string[]): Pod => pod("p", { volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })) });

function placed(wanted: Pod, objects: readonly ApiObject[], running: readonly (readonly [Pod, string])[] = [], gates: ReadonlySet<string> = new Set()): string {
  const result = place(candidate(wanted), schedulingCluster({ nodes, objects, placed: running, gates }), DEFAULT_PROFILE, { random: first, start: { next: 0 } });
  return result.type === "node" ? result.node : result.message;
}

const NO_VOLUME = "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind.";

test.each<[what: string, wanted: Pod, objects: ApiObject[], result: string]>([
  ["no such claim", using("c"), [], `0/2 nodes are available: persistentvolumeclaim "c" not found.`],
  ["an ephemeral claim is on its way", pod("p", { volumes: [{ name: "v", ephemeral: {} }] }), [], `0/2 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v".`],
  ["unbound, and not for us to bind", using("c"), [immediate, claim("c", { storageClassName: "now" })], "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."],
  ["bound to a volume of a node", using("c"), [claim("c", { volumeName: "v" }), volume("v", { on: "b" })], "b"],
  ["bound to a volume that is gone", using("c"), [claim("c", { volumeName: "v" })], `0/2 nodes are available: persistentvolume "v" not found.`],
  ["bound in a zone", using("c"), [claim("c", { volumeName: "v" }), volume("v", { labels: { "topology.kubernetes.io/zone": "z2" } })], "b"],
  ["a volume to be found", using("c"), [wait(), claim("c"), volume("v", { on: "b" })], "b"],
  ["none large enough", using("c"), [wait(), claim("c", { size: "2Gi" }), volume("v", { on: "b" })], NO_VOLUME],
  ["one claim too many", using("c", "d"), [wait(), claim("c"), claim("d"), volume("v", { on: "b" })], NO_VOLUME],
  ["meant for another", using("c"), [wait(), claim("c"), volume("v", { claimRef: { name: "other", namespace: "default" } })], NO_VOLUME],
  ["to be provisioned where it is allowed", using("c"), [wait("csi", { allowedTopologies: [{ matchLabelExpressions: [{ key: "topology.kubernetes.io/zone", values: ["z2"] }] }] }), claim("c")], "b"],
  ["provisioned already for a node", using("c"), [wait("csi"), claim("c", { annotations: { "volume.kubernetes.io/selected-node": "b" } })], "b"],
  ["no space left", using("c"), [wait("csi"), stored("storage.k8s.io/v1", "CSIDriver", "csi", { spec: { storageCapacity: true } }), claim("c")], "0/2 nodes are available: 2 node(s) did not have enough free storage."],
  ["space in one zone", using("c"), [
    wait("csi"), stored("storage.k8s.io/v1", "CSIDriver", "csi", { spec: { storageCapacity: true } }), claim("c"),
    stored("storage.k8s.io/v1", "CSIStorageCapacity", "default/s", { storageClassName: "wait", capacity: "5Gi", nodeTopology: { matchLabels: { "topology.kubernetes.io/zone": "z2" } } }),
  ], "b"],
])("%s", (_what, wanted, objects, result) => {
  expect(placed(wanted, objects)).toBe(result);
});

test("a claim for one pod only is used by one pod in the whole cluster", () => {
  const objects = [claim("c", { volumeName: "v", accessModes: ["ReadWriteOncePod"] }), volume("v")];
  expect(placed(using("c"), objects)).toBe("a");
  const other = { ...using("c"), metadata: { ...using("c").metadata, name: "other", uid: "other" } };
  expect(placed(using("c"), objects, [[other, "b"]])).toBe("0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod.");
});

test("a pod whose node is gone keeps its claim from nobody", () => {
  const other = { ...using("c"), metadata: { ...using("c").metadata, name: "other", uid: "other" } };
  expect(placed(using("c"), [claim("c", { volumeName: "v", accessModes: ["ReadWriteOncePod"] }), volume("v")], [[other, "gone"]])).toBe("a");
});

test("a claim made for the pod is where its volume says, not where its labels do", () => {
  const wanted = pod("p", { volumes: [{ name: "v", ephemeral: {} }] });
  const own = claim("p-v", { volumeName: "v" });
  const made = { ...own, metadata: { ...own.metadata, ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "p", uid: wanted.metadata.uid, controller: true }] } };
  expect(placed(wanted, [made, volume("v", { on: "a", labels: { "topology.kubernetes.io/zone": "z2" } })])).toBe("a");
});

test("a volume may have its class as an annotation", () => {
  const old = volume("v", { on: "b" });
  const { storageClassName: _class, ...spec } = old.spec;
  expect(placed(using("c"), [wait(), claim("c"), { ...old, metadata: { ...old.metadata, annotations: { "volume.beta.kubernetes.io/storage-class": "wait" } }, spec } as ApiObject])).toBe("b");
});

test.each<[what: string, objects: readonly ApiObject[], on: string, message: string]>([
  ["its node is gone", [], "gone", 'failed to get node "gone": node "gone" not found'],
  ["its volume is gone", [], "a", 'failed to check binding: persistentvolumes "v" not found'],
  ["its claim is gone", [bound("a")], "a", 'failed to check binding: persistentvolumeclaims "default/c" not found'],
  ["its volume is elsewhere", [bound("b"), claim("c")], "a", 'pv "v" node affinity doesn\'t match node "a": no matching NodeSelectorTerms'],
])("a pod does not get its volume: %s", async (_what, objects, on, message) => {
  const cluster = schedulingCluster({ nodes, objects });
  const client = { resource: () => ({ update: (object: ApiObject) => Promise.resolve(object) }) } as unknown as Client;
  const binder = new VolumeBinder({ client, clock: systemClock, storage: cluster.storage, node: (name) => cluster.node(name) });
  const reservation = binder.reserve({ bind: [{ claim: claim("c"), volume: volume("v") }], provision: [] }, on)!;
  await expect(binder.bind(reservation, 1000, new AbortController().signal)).rejects.toThrow(new Error(`binding volumes: ${message}`));
});

test("a driver attaches only so many volumes to a node", () => {
  const limit = (name: string, count: number): ApiObject => stored("storage.k8s.io/v1", "CSINode", name, { spec: { drivers: [{ name: "csi", nodeID: name, allocatable: { count } }] } });
  const objects = [claim("c", { volumeName: "v" }), volume("v", { driver: "csi" }), claim("d", { volumeName: "w" }), volume("w", { driver: "csi" })];
  const other = { ...using("d"), metadata: { ...using("d").metadata, name: "other", uid: "other" } };
  expect(placed(using("c"), [...objects, limit("a", 1), limit("b", 0)], [[other, "a"]])).toBe("0/2 nodes are available: 2 node(s) exceed max volume count.");
  expect(placed(using("d"), [...objects, limit("a", 1), limit("b", 0)], [[other, "a"]])).toBe("a");
});

test("the smallest volume that will do, the smallest claim first", () => {
  const cluster = schedulingCluster({ nodes, objects: [wait(), claim("c", { size: "2Gi" }), claim("d"), volume("v5", { size: "5Gi" }), volume("v2", { size: "2Gi" }), volume("v1")] });
  const volumes = podVolumes(using("c", "d"), cluster.storage);
  const plan = "refused" in volumes ? volumes : planVolumes(volumes, nodes[0]!, cluster.storage);
  expect("bind" in plan && plan.bind.map((one) => [one.claim.metadata.name, one.volume.metadata.name])).toEqual([["d", "v1"], ["c", "v2"]]);
});

test("of volumes of one node, of several and of any the smallest that reaches the node, of equal ones the first", () => {
  const among = (...hosts: string[]): object => ({ matchExpressions: [{ key: "zone", operator: "Exists" }, { key: "kubernetes.io/hostname", operator: "In", values: hosts }] });
  const reaching = (name: string, size: string, ...nodeSelectorTerms: object[]): PersistentVolume => ({ ...volume(name, { size }), spec: { ...volume(name, { size }).spec, nodeAffinity: { required: { nodeSelectorTerms } } } }) as PersistentVolume;
  const volumes = [
    volume("any", { size: "9Gi" }), volume("a2", { on: "a", size: "2Gi" }), volume("a1", { on: "a" }), volume("a1-too", { on: "a", size: "1024Mi" }), reaching("b-or-c", "5Gi", among("b"), among("c")), reaching("c-by-name", "3Gi", { matchFields: [{ key: "metadata.name", operator: "In", values: ["c"] }] }),
    reaching("nowhere", "1Gi", { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: [] }] }), reaching("not-a", "8Gi", { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "NotIn", values: ["a"] }] }),
  ];
  const choice = volumeChoice(claim("c"), volumes);
  const on = (name: string, ...taken: string[]): string | undefined => choice(node(name, { labels: { zone: "z" } }), new Set(taken))?.metadata.name;
  expect([on("a"), on("a", "a1"), on("a", "a1", "a1-too", "a2"), on("b"), on("b", "b-or-c"), on("c"), on("c", "c-by-name"), on("d"), on("d", "not-a", "any")]).toEqual(["a1", "a1-too", "any", "b-or-c", "not-a", "c-by-name", "b-or-c", "not-a", undefined]);
  const meant = volumeChoice(claim("c"), [...volumes, volume("mine", { on: "b", size: "20Gi", claimRef: { name: "c", namespace: "default" } })]);
  expect(["a", "b"].map((name) => meant(node(name), new Set())?.metadata.name)).toEqual([undefined, "mine"]);
});

test("volumes of many nodes are looked at once for a pod, not once for each node", () => {
  const { storage } = schedulingCluster({ nodes, objects: [wait(), claim("c")] });
  expect(growth((n, reads) => {
    const volumes = podVolumes(using("c"), { ...storage, volumesOfClass: () => reads.of(Array.from({ length: n }, (_, i) => volume(`v${i}`, { on: `n${i}` }))) });
    for (let i = 0; i < n; i++) planVolumes(volumes as Exclude<typeof volumes, { refused: string }>, node(`n${i}`), storage);
  })).toBeLessThan(3);
});

test.each<[string, Record<string, string>, string]>([
  ["it says so by taking away the node, and has nothing else to say", {}, 'selectedNode annotation reset for PVC "c"'],
  ["it says so by taking away the node", { "volume.kubernetes.io/storage-provisioner": "x" }, 'provisioning failed for PVC "c"'],
])("a provisioner that cannot: %s", async (_what, annotations, message) => {
  const told = { ...claim("c"), metadata: { ...claim("c").metadata, annotations } } as PersistentVolumeClaim;
  const cluster = schedulingCluster({ nodes, objects: [told] });
  const client = { resource: () => ({ update: (object: ApiObject) => Promise.resolve(object) }) } as unknown as Client;
  const binder = new VolumeBinder({ client, clock: systemClock, storage: cluster.storage, node: (name) => cluster.node(name) });
  const reservation = binder.reserve({ bind: [], provision: [told] }, "a")!;
  await expect(binder.bind(reservation, 1000, new AbortController().signal)).rejects.toThrow(new Error(`binding volumes: ${message}`));
});

test("a driver that says so keeps pods with its volumes off nodes that lack it, where its gate is on", () => {
  const on = (name: string): ApiObject => stored("storage.k8s.io/v1", "CSINode", name, { spec: { drivers: [{ name: "csi", nodeID: name }] } });
  const driver = (preventPodSchedulingIfMissing: boolean): ApiObject => stored("storage.k8s.io/v1", "CSIDriver", "csi", { spec: { preventPodSchedulingIfMissing } });
  const objects = [claim("c", { volumeName: "v" }), volume("v", { driver: "csi" })];
  const scaling = (...more: ApiObject[]) => placed(using("c"), [...objects, ...more], [], new Set(["VolumeLimitScaling"]));
  expect([scaling(), scaling(driver(false)), placed(using("c"), [...objects, driver(true)])]).toEqual(["a", "a", "a"]);
  const none: ApiObject = stored("storage.k8s.io/v1", "CSINode", "a", { spec: { drivers: null } }); // as it is without any
  expect(scaling(driver(true), none)).toBe("0/2 nodes are available: 2 csi CSI driver is not installed on the node.");
  expect([scaling(driver(true)), scaling(driver(true), on("b")), scaling(driver(true), on("a"), on("b"))]).toEqual(["0/2 nodes are available: 2 csi CSI driver is not installed on the node.", "b", "a"]);
});

const LEAST = [{ utilization: 0, score: 10 }, { utilization: 100, score: 0 }], MOST = [{ utilization: 0, score: 0 }, { utilization: 100, score: 10 }];
const of = (name: string): ApiObject => stored("storage.k8s.io/v1", "StorageClass", name, { provisioner: "csi", volumeBindingMode: "WaitForFirstConsumer" });
const room = (name: string, on: string, capacity: string): ApiObject => stored("storage.k8s.io/v1", "CSIStorageCapacity", `default/${name}-${on}`, { storageClassName: name, capacity, nodeTopology: { matchLabels: { "kubernetes.io/hostname": on } } });
const csi = stored("storage.k8s.io/v1", "CSIDriver", "csi", { spec: { storageCapacity: true } });

test.each<[what: string, shape: typeof LEAST, wanted: Pod, objects: ApiObject[], scores: number[] | undefined]>([
  ["no claims", LEAST, pod("p"), [], undefined],
  ["bound already", LEAST, using("c"), [claim("c", { volumeName: "v" }), volume("v")], undefined],
  ["volumes that are there", MOST, using("c"), [wait(), claim("c", { size: "30Gi" }), volume("v", { on: "a", size: "100Gi" }), volume("w", { on: "b", size: "60Gi" })], [30, 50]],
  ["two of one class", MOST, using("c", "d"), [wait(), claim("c", { size: "30Gi" }), claim("d", { size: "40Gi" }), volume("v", { on: "a", size: "60Gi" }), volume("u", { on: "a", size: "80Gi" }), volume("w", { on: "b", size: "40Gi" }), volume("x", { on: "b", size: "60Gi" })], [50, 70]],
  ["room for what is to be provisioned: most of it left", LEAST, using("c"), [of("wait"), csi, claim("c", { size: "30Gi" }), room("wait", "a", "100Gi"), room("wait", "b", "40Gi")], [70, 25]],
  ["least of it left", MOST, using("c"), [of("wait"), csi, claim("c", { size: "30Gi" }), room("wait", "a", "100Gi"), room("wait", "b", "40Gi")], [30, 75]],
  ["two in one room", LEAST, using("c", "d"), [of("wait"), csi, claim("c", { size: "50Gi" }), claim("d", { size: "50Gi" }), room("wait", "a", "200Gi"), room("wait", "b", "60Gi")], [50, 0]],
  ["two classes", MOST, using("c", "d"), [of("wait"), of("ssd"), csi, claim("c", { size: "30Gi" }), claim("d", { size: "60Gi", storageClassName: "ssd" }), room("wait", "a", "100Gi"), room("ssd", "a", "100Gi"), room("wait", "b", "30Gi"), room("ssd", "b", "60Gi")], [45, 100]],
  ["a driver that does not tell", LEAST, using("c"), [of("wait"), claim("c")], [0, 0]],
])("storage is scored: %s", (_, shape, wanted, objects, scores) => {
  const cluster = schedulingCluster({ nodes: ["a", "b"].map((name) => node(name, { labels: { "kubernetes.io/hostname": name } })), objects });
  const judge = volumeBindingScore(shape).prepare(candidate(wanted), cluster, cluster.nodes());
  expect(judge && cluster.nodes().toSorted((a, b) => (a.name < b.name ? -1 : 1)).map((one) => judge.score(one))).toEqual(scores);
});
