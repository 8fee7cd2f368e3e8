import { expect, test } from "vitest";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { staticInformer, stored } from "../../../test/static-informer.ts";
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from "../../api/gen/core.v1.ts";
import type { StorageClass } from "../../api/gen/storage.v1.ts";
import { EVENTS, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES } from "../../client/resources.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { silentLog } from "../../observe/log.ts";
import { PlanApplier } from "./apply.ts";
import { bestMatch, whyUnfit } from "./match.ts";
import { type ClaimFacts, planClaim, planVolume, reclaimFailure, withDriver } from "./plan.ts";
import { isDoneWithVolumes, volumeBinder } from "./volume.ts";

interface Given { size?: string; modes?: string[]; class?: string; ref?: { name: string; namespace: string; uid?: string }; phase?: string; labels?: Record<string, string>; annotations?: Record<string, string>; host?: string; policy?: string; mode?: string; going?: boolean; source?: object }
const volume = (name: string, given: Given = {}) => stored<PersistentVolume>("v1", "PersistentVolume", name, {
  metadata: { labels: given.labels, annotations: given.annotations, ...(given.going ? { deletionTimestamp: "2026-07-01T00:00:00Z" } : {}) },
  spec: {
    capacity: { storage: given.size ?? "1Gi" }, accessModes: given.modes ?? ["ReadWriteOnce"], storageClassName: given.class, claimRef: given.ref, persistentVolumeReclaimPolicy: given.policy ?? "Retain", volumeMode: given.mode, ...given.source,
    ...(given.host ? { nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: "host", operator: "In", values: [given.host] }] }] } } } : {}),
  },
  status: { phase: given.phase ?? "Available" },
});
const claim = (spec: object = {}, annotations?: Record<string, string>) => stored<PersistentVolumeClaim>("v1", "PersistentVolumeClaim", "ns/c", {
  metadata: { annotations }, spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, storageClassName: "", ...spec }, status: { phase: "Pending" },
});
const node = (host: string) => stored<Node>("v1", "Node", host, { metadata: { labels: { host } } });

test.each([
  ["the smallest that is enough", {}, [volume("huge", { size: "9Gi" }), volume("small", { size: "1Mi" }), volume("right", { size: "2Gi" })], "right"],
  ["fewest access modes before size", {}, [volume("many", { modes: ["ReadWriteOnce", "ReadOnlyMany"] }), volume("one", { size: "9Gi" })], "one"],
  ["another class", {}, [volume("a", { class: "fast" })], undefined],
  ["the class", { storageClassName: "fast" }, [volume("a"), volume("b", { class: "fast" })], "b"],
  ["labels", { selector: { matchLabels: { disk: "ssd" } } }, [volume("a"), volume("b", { labels: { disk: "ssd" } })], "b"],
  ["an access mode it has not", { accessModes: ["ReadWriteMany"] }, [volume("a")], undefined],
  ["somebody else's", {}, [volume("a", { ref: { namespace: "ns", name: "other" } })], undefined],
  ["meant for us, of whatever class", {}, [volume("a"), volume("ours", { size: "9Gi", class: "x", ref: { namespace: "ns", name: "c" } })], "ours"],
  ["meant for a claim of our name that is gone", {}, [volume("a", { ref: { namespace: "ns", name: "c", uid: "older" } })], undefined],
  ["a block device", { volumeMode: "Block" }, [volume("a"), volume("dev", { mode: "Block" })], "dev"],
  ["going or released", {}, [volume("a", { going: true }), volume("b", { phase: "Released" })], undefined],
] as const)("match: %s", (_, spec, volumes, wanted) => expect(bestMatch(claim(spec), volumes, { delayed: false })?.metadata.name).toBe(wanted));

test("with delayed binding only what names the claim, or what the pod's node can use", () => {
  const volumes = [volume("on-a", { host: "a", size: "1Gi" }), volume("on-b", { host: "b", size: "2Gi" })];
  expect(bestMatch(claim(), volumes, { delayed: true })).toBe(undefined);
  expect(bestMatch(claim(), volumes, { delayed: true, node: node("b") })?.metadata.name).toBe("on-b");
  expect(bestMatch(claim(), [volume("x", { ref: { namespace: "ns", name: "c" } })], { delayed: true })?.metadata.name).toBe("x");
});

test.each([
  ["requested PV is too small", volume("v", { size: "1Mi" }), {}],
  ["storageClassName does not match", volume("v", { class: "x" }), {}],
  ["incompatible volumeMode", volume("v", { mode: "Block" }), {}],
  ["incompatible accessMode", volume("v"), { accessModes: ["ReadWriteMany"] }],
  [`the volume is marked for deletion "v"`, volume("v", { going: true }), {}],
  [undefined, volume("v"), {}],
] as const)("unfit: %s", (why, one, spec) => expect(whyUnfit(one, claim(spec))).toBe(why));

const storageClass = (provisioner: string, volumeBindingMode = "Immediate") => stored<StorageClass>("storage.k8s.io/v1", "StorageClass", "sc", { provisioner, volumeBindingMode });
const facts = (given: Partial<ClaimFacts> = {}): ClaimFacts => ({ named: undefined, volumes: () => [], storageClass: undefined, defaultClass: () => undefined, users: [], ...given });
const bound = { "pv.kubernetes.io/bind-completed": "yes" };
const delayed = storageClass("x.io/p", "WaitForFirstConsumer");

test.each([
  ["nothing to give", claim(), facts(), { type: "pending", event: { type: "Normal", reason: "FailedBinding", message: "no persistent volumes available for this claim and no storage class is set" } }],
  ["a default class", claim({ storageClassName: undefined }), facts({ defaultClass: () => storageClass("p") }), { type: "set-class", name: "sc" }],
  ["nobody waits", claim({ storageClassName: "sc" }), facts({ storageClass: delayed }), { type: "pending", event: { reason: "WaitForFirstConsumer", message: "waiting for first consumer to be created before binding" } }],
  ["a pod waits", claim({ storageClassName: "sc" }), facts({ storageClass: delayed, users: [{ name: "p", placed: false, node: undefined }] }), { type: "pending", event: { reason: "WaitForPodScheduled", message: "waiting for pod p to be scheduled" } }],
  ["the pod is somewhere", claim({ storageClassName: "sc" }), facts({ storageClass: delayed, users: [{ name: "p", placed: true, node: node("a") }] }), { type: "select-node", name: "a" }],
  ["the scheduler has chosen", claim({ storageClassName: "sc" }, { "volume.kubernetes.io/selected-node": "a" }), facts({ storageClass: delayed }), { type: "provision", provisioner: "x.io/p", event: { reason: "ExternalProvisioning" } }],
  ["no such class", claim({ storageClassName: "sc" }), facts(), { type: "tell", event: { type: "Warning", reason: "ProvisioningFailed", message: `storageclass.storage.k8s.io "sc" not found` } }],
  ["a provisioner that a driver took the place of", claim({ storageClassName: "sc" }), facts({ storageClass: storageClass("kubernetes.io/aws-ebs") }), { type: "provision", provisioner: "ebs.csi.aws.com" }],
  ["no provisioner", claim({ storageClassName: "sc" }), facts({ storageClass: storageClass("kubernetes.io/no-provisioner") }), { type: "tell", event: { message: "no volume plugin matched name: kubernetes.io/no-provisioner" } }],
  ["asks for one that is not there yet", claim({ volumeName: "v" }), facts(), { type: "pending" }],
  ["asks for one that does not fit", claim({ volumeName: "v" }), facts({ named: volume("v", { size: "1Mi" }) }), { type: "pending", event: { reason: "VolumeMismatch", message: `Cannot bind to requested volume "v": requested PV is too small` } }],
  ["asks for somebody else's", claim({ volumeName: "v" }), facts({ named: volume("v", { ref: { namespace: "ns", name: "o", uid: "1" } }) }), { type: "pending", event: { reason: "FailedBinding", message: `volume "v" already bound to a different claim.` } }],
  ["its volume is gone", claim({ volumeName: "v" }, bound), facts(), { type: "lost", event: { reason: "ClaimLost", message: "Bound claim has lost its PersistentVolume. Data on the volume is lost!" } }],
  ["its volume is another's", claim({ volumeName: "v" }, bound), facts({ named: volume("v", { ref: { namespace: "ns", name: "o", uid: "1" } }) }), { type: "lost", event: { reason: "ClaimMisbound" } }],
] as const)("claim: %s", (_, one, given, plan) => expect(planClaim(one, given)).toMatchObject(plan));

const ref = { namespace: "ns", name: "c", uid: "uid-ns/c" };
test.each([
  ["nobody's", volume("v"), undefined, { type: "phase", phase: "Available" }],
  ["its claim is gone", volume("v", { ref }), undefined, { type: "reclaim" }],
  ["its claim knows it", volume("v", { ref }), claim({ volumeName: "v" }), { type: "phase", phase: "Bound" }],
  ["its claim does not know it yet", volume("v", { ref }), claim(), { type: "claim", key: "ns/c" }],
  ["its claim took another", volume("v", { ref }), claim({ volumeName: "w" }), { type: "unbind" }],
  ["its claim took another, and it was made for it", volume("v", { ref, policy: "Delete", annotations: { "pv.kubernetes.io/provisioned-by": "p" } }), claim({ volumeName: "w" }), { type: "reclaim" }],
] as const)("volume: %s", (_, one, of, plan) => expect(planVolume(one, of)).toEqual(plan));

test.each([
  ["Retain", {}, undefined],
  ["Delete", { annotations: { "pv.kubernetes.io/provisioned-by": "x.io/p" } }, undefined],
  ["Delete", { source: { local: { path: "/d" } } }, `error getting deleter volume plugin for volume "v": no volume plugin matched`],
  ["Delete", { source: { hostPath: { path: "/data" } } }, "host_path deleter only supports /tmp/.+ but received provided /data"],
  ["Delete", { source: { nfs: { server: "s", path: "/" } } }, `error getting deleter volume plugin for volume "v": no deletable volume plugin matched`],
  ["Delete", { annotations: { "pv.kubernetes.io/provisioned-by": "kubernetes.io/glusterfs" } }, "no volume plugin matched name: kubernetes.io/glusterfs"],
  ["Delete", { annotations: { "pv.kubernetes.io/provisioned-by": "kubernetes.io/glusterfs" }, source: { csi: { driver: "x.io", volumeHandle: "h" } } }, "no volume plugin matched name: kubernetes.io/glusterfs"],
  ["Delete", { annotations: { "pv.kubernetes.io/provisioned-by": "kubernetes.io/glusterfs" }, source: { hostPath: { path: "/data" } } }, "no volume plugin matched name: kubernetes.io/glusterfs"],
  ["Delete", { annotations: { "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs", "pv.kubernetes.io/migrated-to": "ebs.csi.aws.com" } }, undefined],
  ["Recycle", { annotations: { "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs", "pv.kubernetes.io/migrated-to": "ebs.csi.aws.com" } }, undefined],
  ["Recycle", {}, "No recycler plugin found for the volume!"],
] as const)("released, %s", (policy, given, message) => expect(reclaimFailure(volume("v", { ...(given as Given), policy }))?.message).toBe(message));

test.each<[string, Record<string, string>, Record<string, string> | undefined]>([
  ["the driver that took the place of its provisioner", { "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs" }, { "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs", "pv.kubernetes.io/migrated-to": "ebs.csi.aws.com" }],
  ["of it already", { "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs", "pv.kubernetes.io/migrated-to": "ebs.csi.aws.com" }, undefined],
  ["a driver of another's", { "pv.kubernetes.io/provisioned-by": "x.io/p", "pv.kubernetes.io/migrated-to": "ebs.csi.aws.com" }, { "pv.kubernetes.io/provisioned-by": "x.io/p" }],
  ["nobody's", { "pv.kubernetes.io/migrated-to": "ebs.csi.aws.com" }, undefined],
])("a volume tells: %s", (_, annotations, told) => expect(withDriver(volume("v", { annotations }))?.metadata.annotations).toEqual(told));

const [MINE, DRIVERS] = ["kubernetes.io/pv-controller", "external-provisioner.volume.kubernetes.io/finalizer"] as const;
test.each<[string, string, { provisioner?: string; policy?: string; going?: boolean; before: string[] }, string[] | undefined]>([
  ["a driver's", "as it is", { provisioner: "x.io/p", before: [MINE, DRIVERS] }, undefined],
  ["its maker was part of Kubernetes", "held for that", { before: ["own", DRIVERS] }, ["own", MINE]],
  ["so already", "as it is", { before: ["own", MINE] }, undefined],
  ["not to be deleted", "not held", { policy: "Retain", before: ["own", MINE] }, ["own"]],
  ["to be recycled", "not held", { policy: "Recycle", before: [MINE] }, []],
  ["going, and free to", "not held up", { going: true, before: ["own"] }, undefined],
  ["its maker has become a driver", "the driver's", { provisioner: "kubernetes.io/aws-ebs", before: [MINE, DRIVERS] }, [DRIVERS]],
  ["made by hand", "as it is", { provisioner: "", before: [DRIVERS] }, undefined],
])("a volume's finalizers: %s: %s", (_, __, { provisioner = "kubernetes.io/rbd", policy = "Delete", going = false, before }, after) => {
  const one = volume("v", { policy, going, annotations: provisioner === "" ? {} : { "pv.kubernetes.io/provisioned-by": provisioner } });
  expect(withDriver({ ...one, metadata: { ...one.metadata, finalizers: before } })?.metadata.finalizers).toEqual(after);
});

const RUNNING = { state: { running: {} } }, WAITING = { state: { waiting: {} } }, ENDED = { state: { terminated: { exitCode: 0 } } };
test.each<[string, boolean, boolean, object]>([
  ["runs", false, false, { containerStatuses: [RUNNING] }], ["has ended", true, false, { phase: "Failed", containerStatuses: [RUNNING] }], ["waits", false, false, { containerStatuses: [WAITING] }],
  ["is to go and runs", false, true, { containerStatuses: [ENDED, RUNNING] }], ["is to go and has not begun", true, true, { initContainerStatuses: [WAITING], containerStatuses: [WAITING] }],
  ["is to go and has nothing", true, true, {}], ["is to go, and someone looks into it", false, true, { containerStatuses: [ENDED], ephemeralContainerStatuses: [RUNNING] }],
])("a pod that %s needs no volumes: %s", (_, done, going, status) => expect(isDoneWithVolumes(stored<Pod>("v1", "Pod", "ns/p", { metadata: going ? { deletionTimestamp: "2026-07-01T00:00:00Z" } : {}, status }))).toBe(done));

test("of a volume whose file system is still to be expanded a claim has what that had before", () => withControllers((deps) => [volumeBinder(deps)], async (api, call) => {
  const before = { "volume.alpha.kubernetes.io/pre-resize-capacity": "1Gi" };
  await api.client.resource(PERSISTENT_VOLUMES).create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "v", annotations: before }, spec: { capacity: { storage: "2Gi" }, accessModes: ["ReadWriteOnce"], persistentVolumeReclaimPolicy: "Retain" } }, call);
  await api.client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "ns" }, spec: { accessModes: ["ReadWriteOnce"], storageClassName: "", resources: { requests: { storage: "1Gi" } } } }, call);
  const status = await eventually(() => api.all(PERSISTENT_VOLUME_CLAIMS)[0]?.status, (one) => one?.phase === "Bound");
  expect(status?.capacity).toEqual({ storage: "1Gi" });
}));

test("a claim finds its volume, both are bound; the claim goes, the volume is released; a claim of a delayed class follows its pod", () => withControllers((deps) => [volumeBinder(deps)], async (api, call) => {
  const [claims, volumes] = [api.client.resource(PERSISTENT_VOLUME_CLAIMS), api.client.resource(PERSISTENT_VOLUMES)];
  const draft = (name: string, storageClassName: string) => ({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name, namespace: "ns" }, spec: { accessModes: ["ReadWriteOnce" as const], storageClassName, resources: { requests: { storage: "1Gi" } } } });
  await claims.create(draft("a", ""), call);
  await eventually(() => api.all(EVENTS).map(({ reason }) => reason), (reasons) => reasons.includes("FailedBinding"));
  for (const name of ["one", "two"]) await volumes.create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name }, spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], persistentVolumeReclaimPolicy: "Retain" } }, call);
  await claims.create(draft("b", ""), call);
  const taken = await eventually(() => api.all(PERSISTENT_VOLUME_CLAIMS), (all) => all.length === 2 && all.every(({ status }) => status?.phase === "Bound"));
  expect(new Set(taken.map(({ spec }) => spec.volumeName))).toEqual(new Set(["one", "two"]));
  expect(taken[0]).toMatchObject({ metadata: { annotations: { "pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes" } }, status: { accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" } } });
  await eventually(() => api.all(PERSISTENT_VOLUMES).map(({ status }) => status?.phase).join(), (phases) => phases === "Bound,Bound");

  await claims.delete({ metadata: { name: "a", namespace: "ns" } }, {}, call);
  await eventually(() => api.all(PERSISTENT_VOLUMES).map(({ status }) => status?.phase).sort().join(), (phases) => phases === "Bound,Released");
  await volumes.delete({ metadata: { name: taken.find(({ metadata }) => metadata.name === "b")!.spec.volumeName! } }, {}, call);
  await eventually(() => api.all(PERSISTENT_VOLUME_CLAIMS)[0]?.status, (status) => status?.phase === "Lost" && status.capacity === undefined);

  await api.client.resource(STORAGE_CLASSES).create({ apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name: "late" }, provisioner: "x.io/p", volumeBindingMode: "WaitForFirstConsumer" }, call);
  await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n" }, spec: {} }, call);
  await claims.create(draft("c", "late"), call);
  await eventually(() => api.all(EVENTS).map(({ reason }) => reason), (reasons) => reasons.includes("WaitForFirstConsumer"));
  await api.client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "ns" }, spec: { nodeName: "n", containers: [], volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }] } }, call);
  await eventually(() => api.all(PERSISTENT_VOLUME_CLAIMS).find(({ metadata }) => metadata.name === "c")?.metadata.annotations, (annotations) => annotations?.["volume.kubernetes.io/selected-node"] === "n" && annotations["volume.kubernetes.io/storage-provisioner"] === "x.io/p");
}));

test("what a claim waits for is told again while it waits, not whenever something else changes", async () => {
  const told: string[] = [];
  let nowMs = 0;
  const { client } = fakeApi();
  const none = { signal: AbortSignal.timeout(60_000), log: silentLog };
  const applier = new PlanApplier({ client, clock: { ...systemClock, uptimeMs: () => nowMs }, recorder: { event: (_about, _type, reason) => void told.push(reason) }, claims: undefined as never, volumes: undefined as never });
  const say = (one: ReturnType<typeof claim>, reason = "FailedBinding") => applier.applyToClaim(one, { type: "tell", event: { type: "Normal", reason, message: reason } }, none);
  expect([await say(claim()), await say(claim()), told.length]).toEqual([{ againInMs: 15_000 }, { againInMs: 15_000 }, 1]);
  nowMs = 10_000;
  expect([await say(claim()), told.length]).toEqual([{ againInMs: 5000 }, 1]);
  nowMs = 15_000;
  await say(claim());
  const another = { ...claim(), metadata: { ...claim().metadata, resourceVersion: "another" } };
  await say(another);
  await say(another, "WaitForPodScheduled"); // in a quarter of a minute, if it still does
  await say(claim(), "WaitForFirstConsumer");
  expect(told).toEqual(["FailedBinding", "FailedBinding", "FailedBinding", "WaitForFirstConsumer"]);
});

test("twenty claims at once get twenty volumes, none twice", () => withControllers((deps) => [volumeBinder(deps)], async (api, call) => {
  const [claims, volumes] = [api.client.resource(PERSISTENT_VOLUME_CLAIMS), api.client.resource(PERSISTENT_VOLUMES)];
  await Promise.all(Array.from({ length: 20 }, async (_, i) => {
    await volumes.create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: `v${i}` }, spec: { capacity: { storage: `${1 + (i % 3)}Gi` }, accessModes: ["ReadWriteOnce"], persistentVolumeReclaimPolicy: "Retain" } }, call);
    await claims.create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: `c${i}`, namespace: "ns" }, spec: { accessModes: ["ReadWriteOnce"], storageClassName: "", resources: { requests: { storage: "1Gi" } } } }, call);
  }));
  const all = await eventually(() => api.all(PERSISTENT_VOLUME_CLAIMS), (some) => some.length === 20 && some.every(({ status }) => status?.phase === "Bound"));
  expect(new Set(all.map(({ spec }) => spec.volumeName)).size).toBe(20);
  expect(api.all(PERSISTENT_VOLUMES).every(({ spec, metadata }) => all.some((claim) => claim.metadata.uid === spec.claimRef?.uid && claim.spec.volumeName === metadata.name))).toBe(true);
}));

test("a claim without a class is given the default one when there is one, which is counted", () => {
  const metrics = metricsRegistry();
  return withControllers((deps) => [volumeBinder({ ...deps, metrics })], async (api, call) => {
    await api.client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "ns" }, spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } }, call);
    await eventually(() => api.all(EVENTS).map(({ reason }) => reason), (reasons) => reasons.includes("FailedBinding"));
    expect(metrics.render()).toContain("\nretroactive_storageclass_total 0");
    await api.client.resource(STORAGE_CLASSES).create({ apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name: "usual", annotations: { "storageclass.kubernetes.io/is-default-class": "true" } }, provisioner: "x.io/p" }, call);
    await eventually(() => api.all(PERSISTENT_VOLUME_CLAIMS)[0]?.spec.storageClassName, (name) => name === "usual");
    await eventually(() => metrics.render(), (text) => text.includes("\nretroactive_storageclass_total 1") && text.includes("\nretroactive_storageclass_errors_total 0"));
  });
});

test("how long it takes until a claim has the volume that it was made, and until that is gone, is counted", () => {
  const metrics = metricsRegistry();
  const shown = () => metrics.render().split("\n").filter((line) => line.startsWith("volume_operation_total_seconds_count"));
  return withControllers((deps) => [volumeBinder({ ...deps, metrics })], async (api, call) => {
    const { client } = api;
    const [claims, volumes] = [client.resource(PERSISTENT_VOLUME_CLAIMS), client.resource(PERSISTENT_VOLUMES)];
    await client.resource(STORAGE_CLASSES).create({ apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name: "fast" }, provisioner: "x.io/p" }, call);
    const claim = await claims.create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "ns" }, spec: { accessModes: ["ReadWriteOnce"], storageClassName: "fast", resources: { requests: { storage: "1Gi" } } } }, call);
    await eventually(() => api.all(PERSISTENT_VOLUME_CLAIMS)[0]?.metadata.annotations?.["volume.kubernetes.io/storage-provisioner"], (by) => by === "x.io/p");
    expect(shown()).toEqual([]);
    const claimRef = { namespace: "ns", name: "c", uid: claim.metadata.uid };
    const made = await volumes.create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "v", annotations: { "pv.kubernetes.io/provisioned-by": "x.io/p" } }, spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], storageClassName: "fast", persistentVolumeReclaimPolicy: "Delete", claimRef, csi: { driver: "x.io/p", volumeHandle: "h" } } }, call);
    await eventually(shown, (lines) => lines.join() === 'volume_operation_total_seconds_count{operation_name="provision",plugin_name="x.io/p"} 1');
    await claims.delete(claim, {}, call);
    await eventually(() => api.all(PERSISTENT_VOLUMES)[0]?.status?.phase, (phase) => phase === "Released");
    await volumes.delete(made, {}, call);
    await eventually(shown, (lines) => lines.includes('volume_operation_total_seconds_count{operation_name="delete",plugin_name="x.io/p"} 1'));
  });
});

test("a volume that is free wakes those that it would do for, not all that wait for one of its class", () => {
  const claims = staticInformer<PersistentVolumeClaim>(), volumes = staticInformer<PersistentVolume>(), others = staticInformer();
  const of = (ref: { readonly plural: string }): unknown => (ref === PERSISTENT_VOLUME_CLAIMS ? claims : ref === PERSISTENT_VOLUMES ? volumes : others);
  const binder = volumeBinder({ client: fakeApi().client, informers: { of } as never, events: { from: () => ({}) } as never, clock: systemClock });
  for (let i = 0; i < 100; i++) claims.put({ ...claim({ selector: { matchLabels: { disk: `d${i % 50}` } } }), metadata: { ...claim().metadata, name: `c${i}`, uid: `c${i}` } });
  const woken: string[] = [];
  for (const watch of binder.watches) watch.subscribe((key) => void woken.push(key));
  const since = (change: () => void): string[] => { woken.length = 0; change(); return [...new Set(woken)].toSorted(); };
  const free = stored<PersistentVolume>("v1", "PersistentVolume", "v", { metadata: { labels: { disk: "d7" } }, spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"] }, status: { phase: "Pending" } });
  const available = { ...free, status: { phase: "Available" as const } };
  expect(since(() => volumes.put(free))).toEqual(["v"]);
  expect(since(() => volumes.put(available))).toEqual(["ns/c57", "ns/c7", "v"]);
  expect(since(() => volumes.put({ ...available, spec: { ...available.spec, claimRef: { namespace: "ns", name: "c7" } } }))).toEqual(["ns/c7", "v"]);
  expect(since(() => claims.put({ ...claim(), metadata: { ...claim().metadata, name: "c7", uid: "c7 again" } }))).toEqual(["ns/c7", "v"]);
  expect(since(() => volumes.remove([...volumes.list()][0]!))).toEqual(["ns/c7", "v"]);
});
