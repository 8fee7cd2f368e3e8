import { existsSync, mkdirSync, readdirSync, statSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { PersistentVolume, PersistentVolumeClaim, Pod } from "../../../core/api/gen/core.v1.ts";
import type { VolumeAttachment } from "../../../core/api/gen/storage.v1.ts";
import { badRequest, serviceUnavailable } from "../../../core/api/meta/status-error.ts";
import type { NewObject } from "../../../core/api/meta/object-meta.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import { CSI_DRIVERS, CSI_NODES, NODES, PERSISTENT_VOLUME_CLAIMS, VOLUME_ATTACHMENTS } from "../../../core/client/resources.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { systemRandom } from "../../../core/lifecycle/random.ts";
import { type Runnable, runAll } from "../../../core/lifecycle/run-all.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import { serviceMethods } from "../../cri/facts.ts";
import { RpcFailure, rpcServer } from "../../cri/rpc-server.ts";
import { type Exec, exec } from "../../os/exec.ts";
import type { Mounts } from "../../os/mount.ts";
import csiFacts from "../plugins/csi-facts.txt" with { type: "text" };
import type { Methods as Csi } from "../plugins/gen/csi.v1.ts";
import type { Methods as Registration } from "../plugins/gen/registration.v1.ts";
import { pluginWatcher } from "../plugins/plugin-watcher.ts";
import registrationFacts from "../plugins/registration-facts.txt" with { type: "text" };
import { AttachLimitReached } from "../volumes/mount-failure.ts";
import { csiAllocatable } from "./allocatable.ts";
import { claimExpander } from "../volumes/expand-claim.ts";
import { csiNodeWriter } from "./csi-node.ts";
import { attachmentName, type CsiVolume, publishTarget, stagingDirectory } from "./csi-volume.ts";
import { type CsiVolumes, csiVolumes } from "./csi-volumes.ts";
import { driverCallMeter } from "./driver-calls.ts";
import { csiDrivers } from "./drivers.ts";
import { writeNote } from "./volume-note.ts";
import { figuresOf, namesInPod, volumeStats } from "./volume-stats.ts";

const DRIVER = "fake.csi.example.com";
const signal = new AbortController().signal;
const volume: CsiVolume = { specName: "pv-1", driver: DRIVER, handle: "h1", lifecycle: "Persistent", fsType: "ext4", readOnly: false, block: false, attributes: { a: "b" }, accessMode: "ReadWriteOnce", forOneNode: true, mountOptions: [], stageSecret: undefined, publishSecret: undefined, expandSecret: undefined };
const pod = (uid: string): Pod => ({ metadata: { name: `pod-${uid}`, namespace: "d", uid }, spec: { serviceAccountName: "sa", containers: [] } }) as unknown as Pod;

let dataDir = "";
beforeEach(() => { dataDir = mkdtempSync(join(tmpdir(), "csi-")); });
afterEach(() => rmSync(dataDir, { recursive: true }));

/** A node with a driver that has registered; what the driver was asked, in order. */
async function startNode() {
  const api = fakeApi();
  const calls: string[] = [];
  const requests: Record<string, any>[] = [];
  const notified: object[] = [];
  const events: string[][] = [];
  const mounted = new Set<string>();
  const fail: { next: RpcFailure | undefined; method?: string; empty?: boolean } = { next: undefined }; // of the method, or whatever comes next; what is published is not there
  const room = { volumes: 4 };
  const told = (method: string, request: object): object => {
    calls.push(method);
    requests.push(request);
    if (fail.next && (fail.method ?? method) === method) {
      const failure = fail.next;
      fail.next = undefined;
      throw failure;
    }
    return {};
  };
  const driverSocket = join(dataDir, "driver.sock");
  const driver = rpcServer<Csi>({
    name: "driver", socket: driverSocket, methods: serviceMethods(csiFacts, "csi.v1"), log: silentLog,
    calls: {
      "Node/NodeGetInfo": () => ({ node_id: "id-1", max_volumes_per_node: room.volumes, accessible_topology: { segments: { "topology.fake/zone": "z" } } }),
      "Node/NodeGetCapabilities": () => ({ capabilities: (["STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME", "GET_VOLUME_STATS", "VOLUME_CONDITION"] as const).map((type) => ({ rpc: { type } })) }),
      "Node/NodeStageVolume": (request) => told("stage", request),
      "Node/NodePublishVolume": (request) => { if (!fail.empty) mkdirSync(request.target_path!, { recursive: true }); const answer = told("publish", request); mounted.add(request.target_path!); return answer; },
      "Node/NodeUnpublishVolume": (request) => { mounted.delete(request.target_path!); return told("unpublish", request); },
      "Node/NodeUnstageVolume": (request) => told("unstage", request),
      "Node/NodeGetVolumeStats": () => ({ usage: [{ unit: "BYTES", total: 100, used: 40, available: 60 }, { unit: "INODES", total: 10, used: 1, available: 9 }], volume_condition: { abnormal: true, message: "sick" } }),
      "Node/NodeExpandVolume": (request) => told("expand", request),
    },
  });
  const registrar = rpcServer<Registration>({
    name: "registrar", socket: join(dataDir, "plugins_registry", "fake-reg.sock"), methods: serviceMethods(registrationFacts, "pluginregistration"), log: silentLog,
    calls: {
      "Registration/GetInfo": () => ({ type: "CSIPlugin", name: DRIVER, endpoint: driverSocket, supported_versions: ["1.0.0"] }),
      "Registration/NotifyRegistrationStatus": (status) => { notified.push(status); return {}; },
    },
  });
  await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" }, spec: {} }, { signal });
  const common = { client: api.client, clock: systemClock, log: silentLog, nodeName: "n1" };
  const node = csiNodeWriter(common);
  const metrics = metricsRegistry();
  const drivers = csiDrivers({ node, clock: systemClock, log: silentLog, metered: driverCallMeter(metrics, systemClock), onRegistered: () => undefined });
  const watcher = pluginWatcher({ directory: join(dataDir, "plugins_registry"), handlers: [drivers.handler], clock: systemClock, log: silentLog, metrics: metricsRegistry() });
  const mounts = { isMountPoint: (path: string) => mounted.has(path), unmount: (path: string) => void mounted.delete(path) } as unknown as Mounts;
  const tokens = { held: async () => ({ token: "t", expiresMs: 0 }), token: async () => "t", forget: () => undefined };
  const stop = new AbortController();
  const running: Runnable[] = [driver, registrar, node, watcher];
  const ended = runAll(running, stop.signal);
  await eventually(() => notified.length, (count) => count > 0);
  const recorder: EventRecorder = { event: (_about, type, reason, message) => void events.push([type, reason, message]) };
  const hears = { all: true }; // the cluster, of what is in use
  const restart = () => {
    const volumes: CsiVolumes = csiVolumes({ ...common, dataDir, drivers, mounts, tokens, expander: claimExpander({ ...common, events: recorder }), events: recorder, signal, known: (path) => path, onInUse: () => { if (hears.all) volumes.told([`kubernetes.io/csi/${DRIVER}^h1`]); } });
    return volumes;
  };
  return { api, metrics, drivers, calls, requests, notified, events, fail, room, hears, restart, volumes: restart(), [Symbol.asyncDispose]: async () => { stop.abort(); await ended; } };
}

test("a driver registers, and a volume of it is attached, staged once, published for each pod, and taken back", async () => {
  await using node = await startNode();
  const { api, calls, volumes } = node;
  expect(node.notified).toEqual([{ plugin_registered: true }]);
  expect(api.all(CSI_NODES)[0]).toMatchObject({ metadata: { name: "n1", ownerReferences: [{ kind: "Node" }] }, spec: { drivers: [{ name: DRIVER, nodeID: "id-1", topologyKeys: ["topology.fake/zone"], allocatable: { count: 4 } }] } });
  expect(api.all(NODES)[0]?.metadata).toMatchObject({ labels: { "topology.fake/zone": "z" }, annotations: { "csi.volume.kubernetes.io/nodeid": `{"${DRIVER}":"id-1"}` } });

  await expect(volumes.setUp(pod("u1"), volume, undefined, signal)).rejects.toMatchObject({ name: "VolumePending" });
  expect(await volumes.inUse()).toEqual([`kubernetes.io/csi/${DRIVER}^h1`]);
  await api.client.resource(VOLUME_ATTACHMENTS).create({ apiVersion: "storage.k8s.io/v1", kind: "VolumeAttachment", metadata: { name: attachmentName(volume, "n1") }, spec: { attacher: DRIVER, nodeName: "n1", source: {} }, status: { attached: true, attachmentMetadata: { device: "sdx" } } } as NewObject<VolumeAttachment>, { signal });
  const target = await volumes.setUp(pod("u1"), volume, undefined, signal);
  await volumes.setUp(pod("u1"), volume, undefined, signal);
  await volumes.setUp(pod("u2"), volume, undefined, signal);
  expect(calls).toEqual(["stage", "publish", "publish"]);
  expect(node.metrics.render()).toContain(`csi_operations_seconds_count{driver_name="${DRIVER}",grpc_status_code="OK",method_name="/csi.v1.Node/NodePublishVolume",migrated="false"} 2`);
  expect(node.requests[1]).toMatchObject({ volume_id: "h1", publish_context: { device: "sdx" }, target_path: target, staging_target_path: stagingDirectory(dataDir, volume).target, volume_context: { a: "b" }, volume_capability: { mount: { fs_type: "ext4" }, access_mode: { mode: "SINGLE_NODE_WRITER" } } });

  await volumes.tearDown("u1", signal);
  expect(calls.slice(3)).toEqual(["unpublish"]);
  await volumes.tearDown("u2", signal);
  let keys: readonly string[] = ["not asked yet"];
  await eventually(() => { void volumes.inUse().then((now) => { keys = now; }); return keys; }, (now) => now.length === 0);
  expect(calls.slice(4)).toEqual(["unpublish", "unstage"]);
  expect([existsSync(target), existsSync(stagingDirectory(dataDir, volume).note)]).toEqual([false, false]);
});

test("a volume whose secret is not there is not begun to be staged, and the user is told which field names it", async () => {
  await using node = await startNode();
  await node.api.client.resource(VOLUME_ATTACHMENTS).create({ apiVersion: "storage.k8s.io/v1", kind: "VolumeAttachment", metadata: { name: attachmentName(volume, "n1") }, spec: { attacher: DRIVER, nodeName: "n1", source: {} }, status: { attached: true } } as NewObject<VolumeAttachment>, { signal });
  const failed = node.volumes.setUp(pod("u1"), { ...volume, stageSecret: { name: "key", namespace: "vault" } }, undefined, signal);
  await expect(failed).rejects.toThrow('MountVolume.MountDevice failed for volume "pv-1" : fetching NodeStageSecretRef vault/key failed: kubernetes.io/csi: failed to find the secret key in the namespace vault with error: ');
  expect([node.calls, existsSync(stagingDirectory(dataDir, volume).note)]).toEqual([[], false]);
  const device = { ...volume, block: true };
  const why = "kubernetes.io/csi: failed to find the secret key in the namespace vault with error: ";
  await expect(node.volumes.setUp(pod("u2"), { ...device, stageSecret: { name: "key", namespace: "vault" } }, undefined, signal)).rejects.toThrow(`MapVolume.SetUpDevice failed for volume "pv-1" : kubernetes.io/csi: failed to get NodeStageSecretRef vault/key: ${why}`);
  await expect(node.volumes.setUp(pod("u2"), { ...device, publishSecret: { name: "key", namespace: "vault" } }, undefined, signal)).rejects.toThrow(`MapVolume.MapPodDevice failed for volume "pv-1" : kubernetes.io/csi: blockMapper.publishVolumeForBlock failed to get NodePublishSecretRef vault/key: ${why}`);
  await node.api.client.resource(CSI_DRIVERS).create({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec: {} }, { signal });
  await expect(node.volumes.setUp(pod("u3"), { ...volume, lifecycle: "Ephemeral" }, undefined, signal)).rejects.toThrow('MountVolume.SetUp failed for volume "pv-1" : kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: volume mode "Ephemeral" not supported by driver');
});

test("a volume for one pod is refused to another until the first is gone", async () => {
  await using node = await startNode();
  const { api, calls, volumes } = node;
  await api.client.resource(VOLUME_ATTACHMENTS).create({ apiVersion: "storage.k8s.io/v1", kind: "VolumeAttachment", metadata: { name: attachmentName(volume, "n1") }, spec: { attacher: DRIVER, nodeName: "n1", source: {} }, status: { attached: true } } as NewObject<VolumeAttachment>, { signal });
  const alone: CsiVolume = { ...volume, accessMode: "ReadWriteOncePod" };
  await volumes.setUp(pod("u1"), alone, undefined, signal);
  await expect(volumes.setUp(pod("u2"), alone, undefined, signal)).rejects.toThrow('MountVolume.SetUp failed for volume "pv-1" : volume uses the ReadWriteOncePod access mode and is already in use by another pod');
  await volumes.setUp(pod("u1"), alone, undefined, signal);
  await expect(node.restart().setUp(pod("u2"), alone, undefined, signal), "the pod that has it has not been looked at yet").rejects.toThrow("is already in use by another pod");
  await volumes.tearDown("u1", signal);
  await volumes.setUp(pod("u2"), alone, undefined, signal);
  expect(calls.filter((call) => call === "publish" || call === "unpublish")).toEqual(["publish", "unpublish", "publish"]);
});

test("a kubelet that starts anew takes over what is published, and ends what nobody uses", async () => {
  await using node = await startNode();
  await node.api.client.resource(CSI_DRIVERS).create({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec: { attachRequired: false, podInfoOnMount: true, tokenRequests: [{ audience: "b" }, { audience: "aud" }] } }, { signal });
  await node.volumes.setUp(pod("u1"), volume, undefined, signal);
  expect(node.requests[1]!["volume_context"]).toEqual({
    a: "b", "csi.storage.k8s.io/pod.name": "pod-u1", "csi.storage.k8s.io/pod.namespace": "d", "csi.storage.k8s.io/pod.uid": "u1", "csi.storage.k8s.io/serviceAccount.name": "sa", "csi.storage.k8s.io/ephemeral": "false",
    "csi.storage.k8s.io/serviceAccount.tokens": '{"aud":{"token":"t","expirationTimestamp":"1970-01-01T00:00:00Z"},"b":{"token":"t","expirationTimestamp":"1970-01-01T00:00:00Z"}}',
  });
  const after = node.restart();
  await after.sweep(signal);
  await after.setUp(pod("u1"), volume, undefined, signal);
  expect(node.calls).toEqual(["stage", "publish"]);
  await node.restart().tearDown("u1", signal); // another one still: knows it from the disk alone
  await eventually(() => node.calls.slice(2).join(), (all) => all === "unpublish,unstage");
});

test("a volume that is staged still when the kubelet was killed is in use until it is not: nobody detaches it meanwhile", async () => {
  await using node = await startNode();
  await node.api.client.resource(VOLUME_ATTACHMENTS).create({ apiVersion: "storage.k8s.io/v1", kind: "VolumeAttachment", metadata: { name: attachmentName(volume, "n1") }, spec: { attacher: DRIVER, nodeName: "n1", source: {} }, status: { attached: true } } as NewObject<VolumeAttachment>, { signal });
  await node.volumes.setUp(pod("u1"), volume, undefined, signal);
  rmSync(publishTarget(dataDir, "u1", volume).note, { recursive: true }); // unpublished, and then it was killed
  const after = node.restart();
  expect(await after.inUse()).toEqual([`kubernetes.io/csi/${DRIVER}^h1`]);
  await after.sweep(signal);
  expect([node.calls, await after.inUse()]).toEqual([["stage", "publish", "unstage"], []]);
});

test("a disk that could not be read once tells later who used what before", async () => {
  await using node = await startNode();
  const note = join(publishTarget(dataDir, "u1", { specName: "v", block: false }).note, "vol_data.json");
  mkdirSync(note, { recursive: true });
  const volumes = node.restart();
  await expect(volumes.inUse()).rejects.toThrow("EISDIR");
  rmSync(note, { recursive: true });
  await writeNote(dirname(note), { driverName: DRIVER, volumeHandle: "h7", attachmentID: "a" });
  expect(await volumes.inUse()).toEqual([`kubernetes.io/csi/${DRIVER}^h7`]);
});

test("a driver that is gone keeps no volume of another one from being taken back", async () => {
  await using node = await startNode();
  await node.api.client.resource(CSI_DRIVERS).create({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec: { attachRequired: false } }, { signal });
  await node.volumes.setUp(pod("u1"), volume, undefined, signal);
  await writeNote(publishTarget(dataDir, "u1", { specName: "of-another", block: false }).note, { driverName: "gone.example.com", volumeHandle: "h2" });
  for (let tries = 0; tries < 2; tries++) await expect(node.volumes.tearDown("u1", signal)).rejects.toThrow("driver name gone.example.com not found in the list of registered CSI drivers");
  await eventually(() => node.calls.join(), (all) => all === "stage,publish,unpublish,unstage");
});

test("a driver that may still be at it is asked to end it; one that has refused is not", async () => {
  await using node = await startNode();
  await node.api.client.resource(CSI_DRIVERS).create({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec: { attachRequired: false } }, { signal });
  node.fail.next = new RpcFailure("InvalidArgument", "no such thing");
  await expect(node.volumes.setUp(pod("u1"), volume, undefined, signal)).rejects.toThrow('MountVolume.MountDevice failed for volume "pv-1" : rpc error: code = InvalidArgument desc = no such thing');
  await node.volumes.tearDown("u1", signal);
  expect(node.calls).toEqual(["stage"]);
  node.fail.next = new RpcFailure("Unavailable", "later");
  await expect(node.volumes.setUp(pod("u1"), volume, undefined, signal)).rejects.toThrow("later");
  await node.restart().sweep(signal);
  expect(node.calls.slice(1)).toEqual(["stage", "unstage"]);
  expect(existsSync(publishTarget(dataDir, "u1", volume).note)).toBe(false);
});

test("a driver that refuses to publish has what it made taken away, so that it does not take it for a volume; one that may still be at it has not", async () => {
  await using node = await startNode();
  await node.api.client.resource(CSI_DRIVERS).create({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec: { attachRequired: false, requiresRepublish: true } }, { signal });
  const { note, target } = publishTarget(dataDir, "u1", volume);
  node.fail.method = "publish";
  node.fail.next = new RpcFailure("Unknown", "no such class");
  await expect(node.volumes.setUp(pod("u1"), volume, undefined, signal)).rejects.toThrow('MountVolume.SetUp failed for volume "pv-1" : rpc error: code = Unknown desc = no such class');
  expect([existsSync(target), existsSync(note)]).toEqual([false, false]);
  node.fail.next = new RpcFailure("Unavailable", "later");
  await expect(node.volumes.setUp(pod("u1"), volume, undefined, signal)).rejects.toThrow("later");
  expect([existsSync(target), existsSync(note)]).toEqual([true, true]);
  await node.volumes.setUp(pod("u1"), volume, undefined, signal);
  await node.volumes.tearDown("u1", signal);
  expect(node.calls).toEqual(["stage", "publish", "publish", "publish", "unpublish"]);
});

test("a volume that has grown is expanded on the node, its claim says so, and its driver is asked how full it is; a local one's file system is", async () => {
  await using node = await startNode();
  const { client } = node.api;
  await client.resource(CSI_DRIVERS).create({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec: { attachRequired: false } }, { signal });
  const pv = { metadata: { name: "pv-1" }, spec: { capacity: { storage: "2Gi" }, accessModes: ["ReadWriteOnce"] } } as unknown as PersistentVolume;
  const claim = await client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "d" }, spec: {}, status: { phase: "Bound", capacity: { storage: "1Gi" }, conditions: [{ type: "FileSystemResizePending", status: "True" }] } } as never, { signal }) as PersistentVolumeClaim;
  const small = { ...claim, status: { ...claim.status, capacity: { storage: "2Gi" } } } as PersistentVolumeClaim;
  await node.volumes.setUp(pod("u1"), volume, { claim: small, volume: pv }, signal);
  await node.volumes.setUp(pod("u1"), volume, { claim, volume: pv }, signal);
  expect(node.calls).toEqual(["stage", "publish", "expand"]);
  const metrics = metricsRegistry();
  const figures = volumeStats({ volumes: node.volumes, drivers: node.drivers, pods: () => ["u1"], mounted: () => [{ podUid: "u2", name: "v", namespace: "d", claim: "mine", path: dataDir }, { podUid: "u3", name: "v", namespace: "d", claim: "gone", path: join(dataDir, "gone") }], exec, known: (path) => path, periodMs: 60_000, tellsHealth: false, onAbnormal: () => undefined, clock: systemClock, log: silentLog, metrics });
  const stop = new AbortController();
  const ended = figures.run(stop.signal, () => undefined);
  await eventually(() => figures.of("u1").length, (count) => count === 1);
  for (const source of [DRIVER, "statfs"]) expect(metrics.render()).toMatch(new RegExp(`kubelet_volume_metric_collection_duration_seconds_count\\{metric_source="${source}"\\} [12]`));
  expect(figures.of("u1")).toEqual([{ podUid: "u1", namespace: "d", claim: "c", availableBytes: 60, capacityBytes: 100, usedBytes: 40, inodesFree: 9, inodes: 10, inodesUsed: 1 }]);
  expect(metrics.render()).toMatch(/kubelet_volume_stats_available_bytes\{namespace="d",persistentvolumeclaim="c"\} 60/);
  const [local] = figures.of("u2");
  expect([local?.claim, local!.capacityBytes! >= local!.availableBytes!, local!.inodes! - local!.inodesFree! === local!.inodesUsed]).toEqual(["mine", true, true]);
  expect(figures.of("u3")).toEqual([]);
  expect(metrics.render()).toContain(`kubelet_volume_stats_capacity_bytes{namespace="d",persistentvolumeclaim="mine"} ${local?.capacityBytes}`);
  stop.abort();
  await ended;
  expect(node.requests[2]).toMatchObject({ capacity_range: { required_bytes: 2 * 1024 ** 3 }, volume_path: publishTarget(dataDir, "u1", volume).target });
  expect(node.api.all(PERSISTENT_VOLUME_CLAIMS)[0]).toMatchObject({ status: { capacity: { storage: "2Gi" }, conditions: [] } });
});

test("a driver that does not answer does not take the place of the one that is there, nor one in the CSINode", async () => {
  await using node = await startNode();
  const plugin = { name: DRIVER, endpoint: join(dataDir, "nobody.sock"), versions: ["1.0.0"] };
  await expect(node.drivers.handler.register(plugin, signal)).rejects.toThrow("Unavailable");
  expect(await node.drivers.get(DRIVER).can("STAGE_UNSTAGE_VOLUME", signal)).toBe(true); // it answers still
  expect(node.api.all(CSI_NODES)[0]?.spec.drivers.map(({ name }) => name)).toEqual([DRIVER]);
  await node.drivers.handler.deregister({ ...plugin, endpoint: join(dataDir, "driver.sock") }, signal);
  const [left] = node.api.all(CSI_NODES);
  await node.api.client.resource(CSI_NODES).update({ ...left!, spec: { drivers: [{ name: DRIVER, nodeID: "of before" }] } }, { signal });
  await expect(node.drivers.handler.register(plugin, signal)).rejects.toThrow("Unavailable");
  expect(node.api.all(CSI_NODES)[0]?.spec.drivers).toEqual([]);
});

test("a driver that registers while the server is away is there, and the cluster is told of it later; what the server refuses is refused", async () => {
  await using node = await startNode();
  const added: string[] = [];
  const answer: { problem: Error | undefined } = { problem: serviceUnavailable("cannot reach the server") };
  const writer = { name: "", run: async () => undefined, remove: async () => undefined, add: async ({ name }: { name: string }) => { if (answer.problem) throw answer.problem; added.push(name); } };
  const drivers = csiDrivers({ node: writer, clock: systemClock, log: silentLog, metered: async (_, __, call) => await call(), onRegistered: () => undefined });
  const plugin = { name: DRIVER, endpoint: join(dataDir, "driver.sock"), versions: ["1.0.0"] };
  await drivers.handler.register(plugin, signal);
  expect([await drivers.get(DRIVER).can("EXPAND_VOLUME", signal), drivers.isOwed(DRIVER), added]).toEqual([true, true, []]);
  answer.problem = undefined;
  const stop = new AbortController();
  const ended = csiAllocatable({ client: node.api.client, drivers, clock: systemClock, random: systemRandom, log: silentLog, onChange: () => undefined }).run(stop.signal, () => undefined);
  await eventually(() => added.length, (count) => count === 1);
  expect(drivers.isOwed(DRIVER)).toBe(false);
  stop.abort();
  await ended;
  await drivers.handler.deregister(plugin, signal);
  answer.problem = badRequest("no such zone");
  await expect(drivers.handler.register(plugin, signal)).rejects.toThrow("no such zone");
  expect(drivers.names()).toEqual([]);
});

test("a pod that has its volume goes on while the driver is away, also where the volume has grown meanwhile", async () => {
  await using node = await startNode();
  const { client } = node.api;
  await client.resource(CSI_DRIVERS).create({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec: { attachRequired: false } }, { signal });
  const pv = { metadata: { name: "pv-1" }, spec: { capacity: { storage: "2Gi" }, accessModes: ["ReadWriteOnce"] } } as unknown as PersistentVolume;
  const claim = await client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "d" }, spec: {}, status: { phase: "Bound", capacity: { storage: "1Gi" } } } as never, { signal }) as PersistentVolumeClaim;
  const small = { ...claim, status: { ...claim.status, capacity: { storage: "2Gi" } } } as PersistentVolumeClaim;
  const target = await node.volumes.setUp(pod("u1"), volume, { claim: small, volume: pv }, signal);
  await node.drivers.handler.deregister({ name: DRIVER, endpoint: join(dataDir, "driver.sock") } as never, signal);
  expect(await node.volumes.setUp(pod("u1"), volume, { claim, volume: pv }, signal)).toBe(target);
  await expect(node.volumes.setUp(pod("u2"), volume, { claim, volume: pv }, signal)).rejects.toThrow(`MountVolume.MountDevice failed for volume "pv-1" : kubernetes.io/csi: attacher.MountDevice failed to create newCsiDriverClient: driver name ${DRIVER} not found in the list of registered CSI drivers`);
  for (const [kind, message] of [
    [{ lifecycle: "Ephemeral" }, "MountVolume.SetUp failed for volume \"pv-1\" : kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name"],
    [{ block: true }, "MapVolume.SetUpDevice failed for volume \"pv-1\" : kubernetes.io/csi: blockMapper.SetUpDevice failed to get CSI client: driver name"],
  ] as const) await expect(node.volumes.setUp(pod("u3"), { ...volume, ...kind }, undefined, signal)).rejects.toThrow(message);
  expect(node.events).toEqual([["Warning", "VolumeResizeFailed", `NodeExpandVolume.NodeExpandVolume failed for volume "pv-1" : driver name ${DRIVER} not found in the list of registered CSI drivers`]]);
});

test("what a driver does not tell of a volume is zero; of one of which it tells nothing there are no figures", () => {
  const none = { availableBytes: 0, capacityBytes: 0, usedBytes: 0, inodesFree: 0, inodes: 0, inodesUsed: 0 };
  expect(figuresOf({ usage: [{ unit: "BYTES", total: 9, used: 2 }, { unit: "UNKNOWN", total: 5 }] }, false)).toEqual({ ...none, capacityBytes: 9, usedBytes: 2 });
  expect(figuresOf({ usage: [{ unit: "BYTES", total: -7, available: -1, used: 2 }] }, false)).toEqual({ ...none, usedBytes: 2 }); // nobody reads a summary with a figure below zero
  expect([figuresOf({ usage: [{ unit: "INODES", available: 3 }] }, false), figuresOf({}, false), figuresOf({ volume_condition: { abnormal: true } }, false)]).toEqual([{ ...none, inodesFree: 3 }, undefined, undefined]);
  expect([figuresOf({ volume_condition: { abnormal: true, message: "sick" } }, true), figuresOf({}, true)]).toEqual([{ ...none, health: { abnormal: true, message: "sick" } }, { ...none, health: { abnormal: false, message: "" } }]);
});

test("how a volume is, its driver is asked where that is wanted: as a metric, and what is wrong in words", async () => {
  await using node = await startNode();
  await node.api.client.resource(CSI_DRIVERS).create({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec: { attachRequired: false } }, { signal });
  const claim = { metadata: { name: "c", namespace: "d" }, spec: {}, status: { phase: "Bound", capacity: { storage: "1Gi" } } } as unknown as PersistentVolumeClaim;
  const pv = { metadata: { name: "pv-1" }, spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"] } } as unknown as PersistentVolume;
  await node.volumes.setUp(pod("u1"), volume, { claim, volume: pv }, signal);
  const told = async (tellsHealth: boolean): Promise<readonly unknown[]> => {
    const metrics = metricsRegistry();
    const wrong: unknown[] = [];
    const figures = volumeStats({ volumes: node.volumes, drivers: node.drivers, pods: () => ["u1"], mounted: () => [], exec, known: (path) => path, periodMs: 60_000, tellsHealth, onAbnormal: ({ claim: of }, message) => wrong.push([of, message]), clock: systemClock, log: silentLog, metrics });
    const stop = new AbortController();
    const ended = figures.run(stop.signal, () => undefined);
    await eventually(() => figures.of("u1").length, (count) => count === 1);
    stop.abort();
    await ended;
    return [wrong, figures.of("u1")[0]?.health, /kubelet_volume_stats_health_status_abnormal\{.*/.exec(metrics.render())?.[0]];
  };
  expect(await told(false)).toEqual([[], undefined, undefined]);
  expect(await told(true)).toEqual([[["c", "sick"]], { abnormal: true, message: "sick" }, 'kubelet_volume_stats_health_status_abnormal{namespace="d",persistentvolumeclaim="c"} 1']);
  const spec = { containers: [], volumes: [{ name: "a", persistentVolumeClaim: { claimName: "c" } }, { name: "b", ephemeral: {} }, { name: "d", csi: { driver: DRIVER } }] };
  const names = (of: { name?: string; claim?: string }): string[] => namesInPod({ metadata: { name: "p", uid: "u1" }, spec } as never, of);
  expect([names({ claim: "c" }), names({ claim: "p-b" }), names({ name: "d" }), names({ claim: "other" }), names({})]).toEqual([["a"], ["b"], ["d"], [], []]);
});

test("how full volumes are that a pod itself names is told too, by their names, and is no claim's", async () => {
  await using node = await startNode();
  await node.api.client.resource(CSI_DRIVERS).create({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec: { attachRequired: false, volumeLifecycleModes: ["Ephemeral"] } }, { signal });
  await node.volumes.setUp(pod("u1"), { ...volume, specName: "inline", lifecycle: "Ephemeral" }, undefined, signal);
  const metrics = metricsRegistry();
  const asked: string[] = [];
  let atOnce = 0, most = 0;
  const far: Exec = async (_, args) => {
    asked.push(args.at(-1)!);
    most = Math.max(most, ++atOnce);
    await systemClock.sleep(5, signal);
    atOnce--;
    return { exitCode: 0, stdout: "4096 100 60 50 20 5\n", stderr: "" };
  };
  const others = Array.from({ length: 9 }, (_, i) => ({ podUid: "u2", name: `f${i}`, path: `/far/${i}`, isRemote: true }));
  const figures = volumeStats({ volumes: node.volumes, drivers: node.drivers, pods: () => ["u1"], mounted: () => [{ podUid: "u1", name: "files", path: "/far", isRemote: true }, ...others], exec: far, known: (path) => path, periodMs: 60_000, tellsHealth: false, onAbnormal: () => undefined, clock: systemClock, log: silentLog, metrics });
  const stop = new AbortController();
  const ended = figures.run(stop.signal, () => undefined);
  const found = await eventually(() => figures.of("u1"), ({ length }) => length === 2);
  expect(found).toMatchObject([{ name: "inline", capacityBytes: 100 }, { name: "files", capacityBytes: 409_600, availableBytes: 204_800, usedBytes: 163_840, inodes: 20, inodesUsed: 15 }]);
  expect([asked.length, most, figures.of("u2").length, /kubelet_volume_stats_capacity_bytes\{/.test(metrics.render())]).toEqual([10, 4, 9, false]);
  stop.abort();
  await ended;
});

test("how full a block device is, its driver says too", async () => {
  await using node = await startNode();
  await node.api.client.resource(CSI_DRIVERS).create({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec: { attachRequired: false } }, { signal });
  const claim = { metadata: { name: "c", namespace: "d" }, spec: {}, status: { phase: "Bound", capacity: { storage: "1Gi" } } } as unknown as PersistentVolumeClaim;
  const pv = { metadata: { name: "pv-1" }, spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"] } } as unknown as PersistentVolume;
  await node.volumes.setUp(pod("u1"), { ...volume, fsType: "", block: true }, { claim, volume: pv }, signal);
  const figures = volumeStats({ volumes: node.volumes, drivers: node.drivers, pods: () => ["u1"], mounted: () => [], exec, known: (path) => path, periodMs: 60_000, tellsHealth: false, onAbnormal: () => undefined, clock: systemClock, log: silentLog, metrics: metricsRegistry() });
  const stop = new AbortController();
  const ended = figures.run(stop.signal, () => undefined);
  await eventually(() => figures.of("u1"), ([one]) => one?.capacityBytes === 100);
  stop.abort();
  await ended;
});

test.each([["a file system", volume], ["a block device", { ...volume, fsType: "", block: true }]])("%s that grew while nobody used it is expanded where it is published, and its pod waits for that", async (_name, used) => {
  await using node = await startNode();
  const { client } = node.api;
  await client.resource(CSI_DRIVERS).create({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec: { attachRequired: false } }, { signal });
  const pv = { metadata: { name: "pv-1" }, spec: { capacity: { storage: "2Gi" }, accessModes: ["ReadWriteOnce"] } } as unknown as PersistentVolume;
  const claim = await client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "d" }, spec: {}, status: { phase: "Bound", capacity: { storage: "1Gi" } } } as never, { signal }) as PersistentVolumeClaim;
  node.fail.next = new RpcFailure("Internal", "busy");
  node.fail.method = "expand";
  const uid = `grows-${used.block}`;
  await expect(node.volumes.setUp(pod(uid), used, { claim, volume: pv }, signal)).rejects.toThrow("busy");
  await node.volumes.setUp(pod(uid), used, { claim, volume: pv }, signal);
  expect(node.calls).toEqual(["stage", "publish", "expand", "publish", "expand"]);
  expect(node.requests.at(-1)).toMatchObject({ volume_path: publishTarget(dataDir, uid, used).target, staging_target_path: stagingDirectory(dataDir, used).target });
  expect(node.api.all(PERSISTENT_VOLUME_CLAIMS)[0]).toMatchObject({ status: { capacity: { storage: "2Gi" } } });
  const mapped = `MapVolume.MapPodDevice succeeded for volume "pv-1" volumeMapPath "${dataDir}/pods/${uid}/volumeDevices/kubernetes.io~csi"`;
  expect(node.events.filter(([, reason]) => reason === "SuccessfulMountVolume")).toEqual(used.block ? [["Normal", "SuccessfulMountVolume", mapped]] : []);
});

test("of a device nothing stays on the disk once nobody has it: for each there were two directories for good", async () => {
  await using node = await startNode();
  await node.api.client.resource(CSI_DRIVERS).create({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec: { attachRequired: false } }, { signal });
  const device = { ...volume, fsType: "", block: true };
  const root = join(dataDir, "plugins/kubernetes.io/csi/volumeDevices");
  const onDisk = (): string[] => readdirSync(root, { recursive: true }).map(String).sort();
  for (const uid of ["u1", "u2"]) await node.volumes.setUp(pod(uid), device, undefined, signal);
  await node.volumes.tearDown("u1", signal);
  expect(onDisk()).toEqual(["publish", "publish/pv-1", "publish/pv-1/u2", "pv-1", "pv-1/data", "pv-1/data/vol_data.json", "staging", "staging/pv-1"]);
  await node.volumes.tearDown("u2", signal);
  await eventually(onDisk, (all) => all.join() === "publish,staging");
});

test("why a device is not there is told as of devices", async () => {
  await using node = await startNode();
  const { client } = node.api;
  const device = { ...volume, fsType: "", block: true };
  await client.resource(CSI_DRIVERS).create({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec: { attachRequired: true } }, { signal });
  const attachments = client.resource(VOLUME_ATTACHMENTS);
  const made = await attachments.create({ apiVersion: "storage.k8s.io/v1", kind: "VolumeAttachment", metadata: { name: attachmentName(volume, "n1") }, spec: { attacher: DRIVER, nodeName: "n1", source: {} }, status: { attached: false, attachError: { message: "full" } } } as NewObject<VolumeAttachment>, { signal });
  await expect(node.volumes.setUp(pod("u1"), device, undefined, signal)).rejects.toMatchObject({ reason: "FailedMapVolume", message: 'MapVolume.WaitForAttach failed for volume "pv-1" : full' });
  await expect(node.volumes.setUp(pod("u1"), volume, undefined, signal)).rejects.toMatchObject({ reason: "FailedMount" });
  await attachments.updateStatus({ ...made, status: { attached: true } }, { signal });
  node.fail.next = new RpcFailure("Internal", "busy");
  await expect(node.volumes.setUp(pod("u1"), device, undefined, signal)).rejects.toMatchObject({ reason: "FailedMapVolume", message: expect.stringContaining("MapVolume.SetUpDevice failed") as unknown });
});

test("a volume of many nodes that has grown, and whose claim another node has told, grows on this one too, once", async () => {
  await using node = await startNode();
  await node.api.client.resource(CSI_DRIVERS).create({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec: { attachRequired: false } }, { signal });
  const sized = (storage: string) => ({ claim: { metadata: { name: "c", namespace: "d" }, spec: { accessModes: ["ReadWriteMany"] }, status: { phase: "Bound", capacity: { storage } } } as unknown as PersistentVolumeClaim, volume: { metadata: { name: "pv-1" }, spec: { capacity: { storage } } } as unknown as PersistentVolume });
  for (const size of ["1Gi", "1Gi", "3Gi", "3Gi"]) await node.volumes.setUp(pod("u1"), volume, sized(size), signal);
  expect([node.calls, node.requests.at(-1)]).toMatchObject([["stage", "publish", "expand"], { capacity_range: { required_bytes: 3 * 2 ** 30 } }]);
  const next = node.restart();
  for (const size of ["3Gi", "4Gi"]) await next.setUp(pod("u1"), volume, sized(size), signal);
  expect([node.calls.slice(3), node.requests.at(-1)]).toMatchObject([["expand"], { capacity_range: { required_bytes: 4 * 2 ** 30 } }]);
});

test("a volume that the cluster does not know to be in use here is not touched: somebody may be about to detach it", async () => {
  await using node = await startNode();
  node.hears.all = false;
  await node.api.client.resource(VOLUME_ATTACHMENTS).create({ apiVersion: "storage.k8s.io/v1", kind: "VolumeAttachment", metadata: { name: attachmentName(volume, "n1") }, spec: { attacher: DRIVER, nodeName: "n1", source: {} }, status: { attached: true } } as NewObject<VolumeAttachment>, { signal });
  const setUp = (uid: string) => node.volumes.setUp(pod(uid), volume, undefined, signal);
  await expect(setUp("u1")).rejects.toThrow("volume h1 is not known to be in use on this node yet");
  node.volumes.told(await node.volumes.inUse());
  await setUp("u1");
  await node.volumes.tearDown("u1", signal);
  while ((await node.volumes.inUse()).length > 0) await Bun.sleep(3);
  await expect(setUp("u2")).rejects.toMatchObject({ name: "VolumePending" }); // it was let go meanwhile
  expect(node.calls).toEqual(["stage", "publish", "unpublish", "unstage"]);
});

/** A volume that is published and could not be given to its pod's group. */
async function givenHalf() {
  const node = await startNode();
  await node.api.client.resource(CSI_DRIVERS).create({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec: { attachRequired: false } }, { signal });
  const owned = { ...pod("owned"), spec: { securityContext: { fsGroup: 4321 } } } as unknown as Pod;
  node.fail.empty = true;
  await expect(node.volumes.setUp(owned, volume, undefined, signal)).rejects.toThrow("ENOENT");
  node.fail.empty = false;
  return { node, owned };
}

test("a volume that was published and could not be given to its pod's group is given to it by the next try", async () => {
  const { node, owned } = await givenHalf();
  await using _ = node;
  const target = await node.volumes.setUp(owned, volume, undefined, signal);
  expect([node.calls, statSync(target).gid]).toEqual([["stage", "publish", "publish"], 4321]);
});

test("a volume that was being given to its pod's group when the kubelet was killed is given to it by the next one", async () => {
  const { node, owned } = await givenHalf();
  await using _ = node;
  const target = await node.restart().setUp(owned, volume, undefined, signal);
  expect([node.calls, statSync(target).gid]).toEqual([["stage", "publish", "stage", "publish"], 4321]);
  await node.restart().setUp(owned, volume, undefined, signal);
  expect(node.calls).toHaveLength(4); // it has all it needs
});

const allocatable = (node: Awaited<ReturnType<typeof startNode>>) => node.api.all(CSI_NODES)[0]?.spec.drivers[0]?.allocatable?.count;

test("how many volumes fit is asked again as often as the CSIDriver says", async () => {
  await using node = await startNode();
  let uptimeMs = 0;
  const looks = Promise.withResolvers<void>();
  async function* every() { for (; uptimeMs < 100_000; uptimeMs += 10_000) { yield; await Bun.sleep(1); } looks.resolve(); } // the informer has what it watches in between
  const stop = new AbortController();
  const asked: number[] = [];
  const drivers = { names: node.drivers.names, isOwed: node.drivers.isOwed, refresh: async (name: string, quit: AbortSignal) => { asked.push(uptimeMs); await node.drivers.refresh(name, quit); } };
  await node.api.client.resource(CSI_DRIVERS).create({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec: { nodeAllocatableUpdatePeriodSeconds: 25 } }, { signal });
  node.room.volumes = 2;
  const ended = csiAllocatable({ client: node.api.client, drivers, clock: { ...systemClock, uptimeMs: () => uptimeMs, every }, random: systemRandom, log: silentLog, onChange: () => undefined }).run(stop.signal, () => undefined);
  await looks.promise;
  stop.abort();
  await ended;
  expect(asked.length).toBeGreaterThan(1);
  expect(asked.slice(1).map((ms, i) => ms - asked[i]!)).toEqual(asked.slice(1).map(() => 30_000)); // at the next look
  expect(allocatable(node)).toBe(2);
});

test("a node without room for a volume says so in its CSINode, once; what is wrong otherwise is a failure", async () => {
  await using node = await startNode();
  const { client } = node.api;
  const attachments = client.resource(VOLUME_ATTACHMENTS);
  await client.resource(CSI_DRIVERS).create({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec: { attachRequired: true, nodeAllocatableUpdatePeriodSeconds: 60 } }, { signal });
  const attachError = (errorCode?: number) => ({ attached: false, attachError: { message: "full", ...(errorCode === undefined ? {} : { errorCode }) } });
  const made = await attachments.create({ apiVersion: "storage.k8s.io/v1", kind: "VolumeAttachment", metadata: { name: attachmentName(volume, "n1") }, spec: { attacher: DRIVER, nodeName: "n1", source: {} }, status: attachError(8) } as NewObject<VolumeAttachment>, { signal });
  node.room.volumes = 3;
  await expect(node.volumes.setUp(pod("u1"), volume, undefined, signal)).rejects.toThrow(AttachLimitReached);
  expect(allocatable(node)).toBe(3);
  node.room.volumes = 2;
  await expect(node.volumes.setUp(pod("u1"), volume, undefined, signal)).rejects.toThrow("full");
  expect(allocatable(node)).toBe(3);
  await attachments.updateStatus({ ...made, status: attachError() }, { signal });
  await expect(node.volumes.setUp(pod("u1"), volume, undefined, signal)).rejects.toThrow('MountVolume.WaitForAttach failed for volume "pv-1" : full');
});

test("a driver that needs no attaching any more has nothing held for it, while its pods go on", async () => {
  await using node = await startNode();
  const { client } = node.api;
  const object = await client.resource(CSI_DRIVERS).create({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec: { attachRequired: true } }, { signal });
  await client.resource(VOLUME_ATTACHMENTS).create({ apiVersion: "storage.k8s.io/v1", kind: "VolumeAttachment", metadata: { name: attachmentName(volume, "n1") }, spec: { attacher: DRIVER, nodeName: "n1", source: {} }, status: { attached: true } } as NewObject<VolumeAttachment>, { signal });
  await node.volumes.setUp(pod("u1"), volume, undefined, signal);
  node.volumes.reconsider({ ...object, metadata: { ...object.metadata, name: "other" }, spec: { attachRequired: false } });
  expect(await node.volumes.inUse()).toEqual(["kubernetes.io/csi/fake.csi.example.com^h1"]);
  node.volumes.reconsider({ ...object, spec: { attachRequired: false } });
  expect([await node.volumes.inUse(), node.calls]).toEqual([[], ["stage", "publish"]]);
});
