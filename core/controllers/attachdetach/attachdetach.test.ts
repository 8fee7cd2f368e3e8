import { expect, test } from "vitest";
import type { Node, PersistentVolume, Pod } from "../../api/gen/core.v1.ts";
import type { VolumeAttachment } from "../../api/gen/storage.v1.ts";
import { statusError } from "../../api/meta/status-error.ts";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { stored } from "../../../test/scheduling-cluster.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { EVENTS, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, VOLUME_ATTACHMENTS } from "../../client/resources.ts";
import { attachDetachController } from "./attachdetach.ts";
import { attachmentName, forcedBy, multiAttachMessage, planNode } from "./plan.ts";

const volume = (name: string, mode = "ReadWriteOnce"): PersistentVolume => stored("v1", "PersistentVolume", name, { spec: { accessModes: [mode], csi: { driver: "d", volumeHandle: name } } });
const attachment = (name: string, node = "n", rest: Record<string, unknown> = {}): VolumeAttachment => stored("storage.k8s.io/v1", "VolumeAttachment", attachmentName(name, "d", node), { spec: { attacher: "d", nodeName: node, source: { persistentVolumeName: name } }, status: { attached: true }, ...rest });
const LEFT_TO_US = { annotations: { "volumes.kubernetes.io/controller-managed-attach-detach": "true" } };
const node = (rest: Record<string, unknown> = {}): Node => stored("v1", "Node", "n", { spec: {}, status: { conditions: [{ type: "Ready", status: "True" }] }, ...rest });
const mounted = { volumesInUse: ["kubernetes.io/csi/d^v"] };

test.each([
  ["wanted and not there", { wanted: ["v"], here: [] }, { attach: ["v"] }],
  ["wanted, but on another node", { wanted: ["v"], here: [], elsewhere: true }, { blocked: ["v"] }],
  ["on another node, for many", { wanted: ["m"], here: [], elsewhere: true }, { attach: ["m"] }],
  ["wanted and there", { wanted: ["v"], here: ["v"] }, { attached: ["kubernetes.io/csi/d^v"] }],
  ["no longer wanted", { wanted: [], here: ["v"] }, { detach: ["v"] }],
  ["no longer wanted, still mounted", { wanted: [], here: ["v"], node: node({ status: { ...mounted, conditions: [{ type: "Ready", status: "True" }] } }) }, { attached: ["kubernetes.io/csi/d^v"], waiting: true }],
  ["mounted on a node that has been away for long", { wanted: [], here: ["v"], idleMs: 400_000, node: node({ status: { ...mounted, conditions: [{ type: "Ready", status: "Unknown" }] } }) }, { detach: ["v"] }],
  ["mounted on a node that is away", { wanted: [], here: ["v"], idleMs: 300_000, node: node({ status: { ...mounted, conditions: [{ type: "Ready", status: "Unknown" }] } }) }, { attached: ["kubernetes.io/csi/d^v"], waiting: true }],
  ["mounted on a node out of service", { wanted: [], here: ["v"], node: node({ spec: { taints: [{ key: "node.kubernetes.io/out-of-service", effect: "NoExecute" }] }, status: mounted }) }, { detach: ["v"] }],
  ["no longer wanted while it is being attached", { wanted: [], here: ["v"], status: {}, idleMs: 119_000 }, { waiting: true }],
  ["no longer wanted, and its attacher has not ended for long", { wanted: [], here: ["v"], status: {}, idleMs: 120_000 }, { detach: ["v"] }],
  ["no longer wanted, and could not be attached", { wanted: [], here: ["v"], status: { attachError: { message: "full" } } }, { detach: ["v"] }],
  ["just attached for a pod, and the driver wants no attaching any more", { wanted: [], here: ["v"], released: ["v"], idleMs: 59_000 }, { attached: ["kubernetes.io/csi/d^v"], waiting: true }],
  ["used by a pod, and the driver has wanted no attaching for long", { wanted: [], here: ["v"], released: ["v"], idleMs: 60_000 }, { detach: ["v"] }],
  ["wanted, and the attacher is at it", { wanted: ["v"], here: ["v"], status: {}, pendingMs: 119_000 }, { problems: [undefined] }],
  ["wanted, and the attacher does not answer", { wanted: ["v"], here: ["v"], status: {}, pendingMs: 120_000 }, { problems: ["timed out waiting for external-attacher of d CSI driver to attach volume v"] }],
  ["wanted, and the attacher cannot", { wanted: ["v"], here: ["v"], status: { attachError: { message: "full" } } }, { problems: ["full"] }],
  ["the node is gone", { wanted: [], here: ["v"], node: undefined }, { detach: ["v"] }],
  ["mounted on a node that is gone", { wanted: [], here: ["v"], node: undefined, lastInUse: mounted.volumesInUse, idleMs: 300_000 }, { attached: ["kubernetes.io/csi/d^v"], waiting: true }],
  ["mounted on a node that has been gone for long", { wanted: [], here: ["v"], node: undefined, lastInUse: mounted.volumesInUse, idleMs: 400_000 }, { detach: ["v"] }],
  ["wanted by pods of a node that is gone", { wanted: ["v", "m"], here: ["v"], node: undefined, lastInUse: mounted.volumesInUse, idleMs: 400_000 }, { attached: ["kubernetes.io/csi/d^v"] }],
  ["mounted, and its volume is gone", { wanted: [], here: ["gone"], node: node({ status: { volumesInUse: ["kubernetes.io/csi/d^gone"], conditions: [{ type: "Ready", status: "True" }] } }) }, { attached: ["kubernetes.io/csi/d^gone"], waiting: true }],
  ["no longer mounted, and its volume is gone", { wanted: [], here: ["gone"], node: node({ status: { ...mounted, volumesAttached: [{ name: "kubernetes.io/csi/d^gone", devicePath: "" }], conditions: [{ type: "Ready", status: "True" }] } }) }, { detach: ["gone"] }],
  ["not wanted, made by somebody else", { wanted: [], here: [], theirs: "mine" }, { attached: ["kubernetes.io/csi/d^v"] }],
] as [string, { wanted: string[]; here: string[]; theirs?: string; elsewhere?: boolean; node?: Node | undefined; lastInUse?: string[]; idleMs?: number; status?: object; released?: string[]; pendingMs?: number }, object][])("%s", (_, facts, expected) => {
  const volumes = new Map([["v", volume("v")], ["m", volume("m", "ReadWriteMany")]]);
  const plan = planNode({
    node: "node" in facts ? facts.node : node(), lastInUse: facts.lastInUse, wanted: facts.wanted.map((name) => ({ volume: volumes.get(name)!, pods: [] })), attachments: [...facts.here.map((name) => attachment(name, "n", facts.status && { status: facts.status })), ...(facts.theirs === undefined ? [] : [attachment("v", "n", { metadata: { name: facts.theirs } })])],
    elsewhere: (name) => (facts.elsewhere ? [attachment(name, "other")] : []), volume: (name) => volumes.get(name), idleMs: () => facts.idleMs ?? 0, pendingMs: () => facts.pendingMs ?? 0, released: new Set(facts.released),
  });
  const names = { attach: plan.attach.map((one) => one.volume.metadata.name), blocked: plan.blocked.map((one) => one.wanted.volume.metadata.name), detach: plan.detach.map(({ spec }) => spec.source.persistentVolumeName), attached: plan.attached.map(({ name }) => name), waiting: plan.waiting, problems: plan.pending.map(({ problem }) => problem) };
  expect(names).toEqual({ attach: [], blocked: [], detach: [], attached: [], waiting: false, problems: [], ...expected });
});

test("who has the volume is told within the namespace only", () => {
  const pod = (name: string, namespace = "ns"): Pod => stored("v1", "Pod", `${namespace}/${name}`, {});
  const said = (...users: Pod[]) => multiAttachMessage(pod("p"), "v", users).replace('Multi-Attach error for volume "v" Volume is already ', "");
  expect([said(), said(pod("b"), pod("a"), pod("x", "other")), said(pod("x", "other"))]).toEqual([
    "exclusively attached to one node and can't be attached to another", "used by pod(s) a, b and 1 pod(s) in different namespaces", "used by 1 pod(s) in different namespaces",
  ]);
});

test("a volume whose attaching or detaching is refused keeps no other from its pods", () => withControllers((deps) => [attachDetachController(deps)], async (api, call) => {
  const { client } = api;
  api.fail = ({ method, path, body }) => {
    const isRefused = (method === "POST" && JSON.stringify(body).includes("refused")) || (method === "DELETE" && path.includes(attachmentName("stuck", "d", "n")));
    return isRefused && path.includes("/volumeattachments") ? statusError({ code: 403, reason: "Forbidden", message: "denied by policy" }) : undefined;
  };
  await client.resource(VOLUME_ATTACHMENTS).create(attachment("stuck") as never, call);
  for (const name of ["a-refused", "b"]) {
    const claim = await client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name, namespace: "ns" }, spec: { volumeName: name } } as never, call);
    await client.resource(PERSISTENT_VOLUMES).create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name }, spec: { csi: { driver: "d", volumeHandle: name }, claimRef: { name, namespace: "ns", uid: claim.metadata.uid } } } as never, call);
  }
  const volumes = ["a-refused", "b"].map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } }));
  await client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "ns" }, spec: { containers: [], nodeName: "n", volumes } } as never, call);
  await client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n", ...LEFT_TO_US }, spec: {} } as never, call);
  await eventually(() => api.all(VOLUME_ATTACHMENTS).map(({ spec }) => spec.source.persistentVolumeName).sort().join(), (names) => names === "b,stuck");
}));

test("a volume is attached where its pod is, and taken off after it", () => withControllers((deps) => [attachDetachController(deps)], async (api, call) => {
  const { client } = api;
  const made = await client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n", ...LEFT_TO_US }, spec: {} } as never, call);
  const claim = await client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "ns" }, spec: { volumeName: "v" } } as never, call);
  await client.resource(PERSISTENT_VOLUMES).create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "v" }, spec: { csi: { driver: "d", volumeHandle: "h" }, claimRef: { name: "c", namespace: "ns", uid: claim.metadata.uid } } } as never, call);
  const pod = await client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "ns" }, spec: { containers: [], nodeName: "n", volumes: [{ name: "x", persistentVolumeClaim: { claimName: "c" } }] } } as never, call);
  const [attached] = await eventually(() => api.all(VOLUME_ATTACHMENTS), (all) => all.length === 1);
  expect(attached).toMatchObject({ metadata: { name: attachmentName("h", "d", "n") }, spec: { attacher: "d", nodeName: "n", source: { persistentVolumeName: "v" } } });
  const say = (status: VolumeAttachment["status"]) => client.resource(VOLUME_ATTACHMENTS).updateStatus({ ...api.all(VOLUME_ATTACHMENTS)[0]!, status } as VolumeAttachment, call);
  const problems = () => api.all(EVENTS).filter(({ reason }) => reason === "FailedAttachVolume");
  await say({ attached: false, attachError: { time: "2026-01-01T00:00:00Z", message: "rpc error" } });
  await eventually(problems, (all) => all[0]?.message === 'AttachVolume.Attach failed for volume "v" : rpc error');
  await say({ attached: false, attachError: { time: "2026-01-01T00:01:00Z", message: "rpc error" } });
  await eventually(problems, (all) => all[0]?.count === 2);
  await say({ attached: true });
  await eventually(() => api.all(NODES)[0]!, ({ status }) => status?.volumesAttached?.[0]?.name === "kubernetes.io/csi/d^h");
  await eventually(() => api.all(EVENTS).map(({ message }) => message), (all) => all.includes('AttachVolume.Attach succeeded for volume "v" '));
  await client.resource(PODS).updateStatus({ ...pod, status: { phase: "Succeeded" } } as Pod, call);
  await eventually(() => api.all(VOLUME_ATTACHMENTS), (all) => all.length === 0);
  await eventually(() => api.all(NODES)[0]!, ({ status }) => (status?.volumesAttached ?? []).length === 0);
  expect(made.metadata.name).toBe("n");
}));

test("pods that are to go and run no more hold no volume, and nobody is told that they do", () => withControllers((deps) => [attachDetachController(deps)], async (api, call) => {
  const { client } = api;
  for (const name of ["away", "n"]) await client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name, ...LEFT_TO_US }, spec: {} } as never, call);
  const claim = await client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "ns" }, spec: { volumeName: "v" } } as never, call);
  await client.resource(PERSISTENT_VOLUMES).create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "v" }, spec: { accessModes: ["ReadWriteOnce"], csi: { driver: "d", volumeHandle: "v" }, claimRef: { name: "c", namespace: "ns", uid: claim.metadata.uid } } } as never, call);
  const pod = (name: string, nodeName: string, rest: object = {}): Promise<Readonly<Pod>> => client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "ns", finalizers: ["x/y"] }, spec: { containers: [], nodeName, volumes: [{ name: "x", persistentVolumeClaim: { claimName: "c" } }] }, ...rest } as never, call);
  const first = await pod("first", "away", { status: { phase: "Pending", containerStatuses: [{ name: "a", state: { waiting: {} } }] } });
  const at = () => api.all(VOLUME_ATTACHMENTS).map(({ spec }) => spec.nodeName).join();
  await eventually(at, (nodes) => nodes === "away");
  await client.resource(VOLUME_ATTACHMENTS).updateStatus({ ...api.all(VOLUME_ATTACHMENTS)[0]!, status: { attached: true } }, call);
  await client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name: "done", namespace: "ns" }, spec: { containers: [], nodeName: "away", volumes: [{ name: "x", persistentVolumeClaim: { claimName: "c" } }] }, status: { phase: "Succeeded" } } as never, call);
  await pod("second", "n");
  await eventually(() => api.all(EVENTS).map(({ message }) => message), (all) => all.some((message) => message === 'Multi-Attach error for volume "v" Volume is already used by pod(s) first'));
  await client.resource(PODS).delete(first, {}, call);
  await eventually(at, (nodes) => nodes === "n");
  expect(api.all(PODS).map(({ metadata }) => metadata.name)).toContain("first");
}));

test("a machine whose Node is deleted keeps what it had mounted for a while, and loses the rest", () => withControllers((deps) => [attachDetachController(deps)], async (api, call) => {
  const { client } = api;
  const made = await client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "gone", ...LEFT_TO_US }, spec: {}, status: mounted } as never, call);
  await client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n", ...LEFT_TO_US }, spec: {} } as never, call);
  for (const name of ["v", "w"]) {
    const claim = await client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name, namespace: "ns" }, spec: { volumeName: name } } as never, call);
    await client.resource(PERSISTENT_VOLUMES).create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name }, spec: { accessModes: ["ReadWriteOnce"], csi: { driver: "d", volumeHandle: name }, claimRef: { name, namespace: "ns", uid: claim.metadata.uid } } } as never, call);
  }
  const pod = (name: string, nodeName: string): Promise<Readonly<Pod>> => client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "ns" }, spec: { containers: [], nodeName, volumes: ["v", "w"].map((one) => ({ name: one, persistentVolumeClaim: { claimName: one } })) } } as never, call);
  const first = await pod("first", "gone");
  const at = () => api.all(VOLUME_ATTACHMENTS).map(({ spec }) => `${spec.source.persistentVolumeName} ${spec.nodeName}`).sort().join();
  await eventually(at, (all) => all === "v gone,w gone");
  for (const one of api.all(VOLUME_ATTACHMENTS)) await client.resource(VOLUME_ATTACHMENTS).updateStatus({ ...one, status: { attached: true } }, call);
  await client.resource(NODES).delete(made, {}, call);
  await client.resource(PODS).delete(first, {}, call);
  await pod("second", "n");
  await eventually(at, (all) => all === "v gone,w n");
  await eventually(() => api.all(EVENTS).map(({ message }) => message), (all) => all.some((message) => message?.startsWith('Multi-Attach error for volume "v"')));
}));

test("a claim that only has the name of a pod's own one is attached for nobody", () => withControllers((deps) => [attachDetachController(deps)], async (api, call) => {
  const { client } = api;
  await client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n", ...LEFT_TO_US }, spec: {} } as never, call);
  for (const name of ["strange", "own"]) {
    const { metadata: { uid } } = await client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "ns" }, spec: { containers: [], nodeName: "n", volumes: [{ name: "x", ephemeral: {} }] } } as never, call);
    const claim = await client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: `${name}-x`, namespace: "ns", ...(name === "own" ? { ownerReferences: [{ apiVersion: "v1", kind: "Pod", name, uid, controller: true }] } : {}) }, spec: {} } as never, call);
    await client.resource(PERSISTENT_VOLUMES).create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name }, spec: { csi: { driver: "d", volumeHandle: name }, claimRef: { name: `${name}-x`, namespace: "ns", uid: claim.metadata.uid } } } as never, call);
    await client.resource(PERSISTENT_VOLUME_CLAIMS).update({ ...claim, spec: { ...claim.spec, volumeName: name } }, call);
  }
  await eventually(() => api.all(VOLUME_ATTACHMENTS).map(({ spec }) => spec.source.persistentVolumeName).join(), (all) => all === "own");
}));

test("a node that sees to its volumes itself is left alone, until it no longer does", () => withControllers((deps) => [attachDetachController(deps)], async (api, call) => {
  const { client } = api;
  const nodes = await Promise.all(["itself", "n"].map((name) => client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name, ...(name === "n" && LEFT_TO_US) }, spec: {} } as never, call)));
  for (const name of ["itself", "n"]) {
    const claim = await client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name, namespace: "ns" }, spec: { volumeName: name } } as never, call);
    await client.resource(PERSISTENT_VOLUMES).create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name }, spec: { csi: { driver: "d", volumeHandle: name }, claimRef: { name, namespace: "ns", uid: claim.metadata.uid } } } as never, call);
    await client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "ns" }, spec: { containers: [], nodeName: name, volumes: [{ name: "x", persistentVolumeClaim: { claimName: name } }] } } as never, call);
  }
  const at = () => api.all(VOLUME_ATTACHMENTS).map(({ spec }) => spec.nodeName).sort().join();
  await eventually(at, (all) => all === "n");
  await client.resource(NODES).patch(nodes[0]!, "application/merge-patch+json", { metadata: LEFT_TO_US }, call);
  await eventually(at, (all) => all === "itself,n");
}));

test("what is taken off a node by force is counted by why", async () => {
  const silent = { ...mounted, conditions: [{ type: "Ready", status: "Unknown" }] };
  const outOfService = { taints: [{ key: "node.kubernetes.io/out-of-service", effect: "NoExecute" }] };
  expect([forcedBy(node(), 400_000, true), forcedBy(node({ status: silent }), 300_000, true), forcedBy(node({ status: silent }), 400_000, false), forcedBy(undefined, 300_000, true), forcedBy(undefined, 400_000, false)]).toEqual([undefined, undefined, undefined, undefined, undefined]);
  expect([forcedBy(node({ status: silent }), 400_000, true), forcedBy(undefined, 400_000, true), forcedBy(node({ spec: outOfService, status: silent }), 0, true)]).toEqual(["timeout", "timeout", "out-of-service"]);
  const metrics = metricsRegistry();
  await withControllers((deps) => [attachDetachController({ ...deps, metrics })], async (api, call) => {
    await api.client.resource(NODES).create(node({ metadata: { name: "n", ...LEFT_TO_US }, spec: outOfService, status: silent }), call);
    await api.client.resource(PERSISTENT_VOLUMES).create(volume("v"), call);
    await api.client.resource(VOLUME_ATTACHMENTS).create(attachment("v"), call);
    await eventually(() => api.all(VOLUME_ATTACHMENTS), (all) => all.length === 0);
    await eventually(() => metrics.render(), (text) => text.includes('attach_detach_controller_attachdetach_controller_forced_detaches{reason="out-of-service"} 1'));
  });
});

test("how many volumes that can be attached are in use, wanted and there is counted", () => {
  const metrics = metricsRegistry();
  return withControllers((deps) => [attachDetachController({ ...deps, metrics })], async ({ client }, call) => {
    const own = { name: "own", csi: { driver: "inline" } }, disk = { name: "disk", iscsi: { targetPortal: "t", iqn: "iqn.x:1", lun: 0 } };
    const claim = await client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "ns" }, spec: { volumeName: "v" } } as never, call);
    await client.resource(PERSISTENT_VOLUMES).create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "v" }, spec: { csi: { driver: "d", volumeHandle: "h" }, claimRef: { name: "c", namespace: "ns", uid: claim.metadata.uid } } } as never, call);
    await client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n" }, spec: {} } as never, call);
    for (const name of ["a", "b"]) await client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "ns" }, spec: { nodeName: "n", containers: [], volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }, ...(name === "a" ? [own, disk, { name: "e", emptyDir: {} }] : [])] } } as never, call);
    await client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name: "unplaced", namespace: "ns" }, spec: { containers: [], volumes: [own] } } as never, call);
    await client.resource(VOLUME_ATTACHMENTS).create({ apiVersion: "storage.k8s.io/v1", kind: "VolumeAttachment", metadata: { name: "x" }, spec: { attacher: "d", nodeName: "n", source: { persistentVolumeName: "v" } }, status: { attached: true } } as never, call);
    const shown = () => metrics.render().split("\n").filter((line) => /^(storage_count|attachdetach_controller_total)/.test(line)).toSorted();
    await eventually(shown, (lines) => lines.length === 6);
    expect(shown()).toEqual([
      'attachdetach_controller_total_volumes{plugin_name="kubernetes.io/csi:d",state="actual_state_of_world"} 1', 'attachdetach_controller_total_volumes{plugin_name="kubernetes.io/csi:d",state="desired_state_of_world"} 1', 'attachdetach_controller_total_volumes{plugin_name="kubernetes.io/iscsi",state="desired_state_of_world"} 1',
      'storage_count_attachable_volumes_in_use{node="n",volume_plugin="kubernetes.io/csi:d"} 2', 'storage_count_attachable_volumes_in_use{node="n",volume_plugin="kubernetes.io/csi:inline"} 1', 'storage_count_attachable_volumes_in_use{node="n",volume_plugin="kubernetes.io/iscsi"} 1',
    ]);
  });
});
