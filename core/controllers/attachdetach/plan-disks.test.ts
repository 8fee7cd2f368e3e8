import { expect, test } from "vitest";
import type { Node, PersistentVolume, Pod } from "../../api/gen/core.v1.ts";
import { iscsiVolumeName } from "../../api/meta/iscsi-names.ts";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { stored } from "../../../test/scheduling-cluster.ts";
import { EVENTS, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS } from "../../client/resources.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { attachDetachController } from "./attachdetach.ts";
import { disksInUse, keptOfGone, planDisks } from "./plan-disks.ts";

const NAME = "kubernetes.io/iscsi/10.0.0.1:3260:iqn.2003-01.io.k8s:shed:1";
const iscsi = { targetPortal: "10.0.0.1", iqn: "iqn.2003-01.io.k8s:shed", lun: 1 };
const here = { volumesAttached: [{ name: NAME, devicePath: "" }, { name: "kubernetes.io/csi/d^v", devicePath: "" }] };
const ready = (status: "True" | "Unknown") => ({ conditions: [{ type: "Ready", status }] });
const LEFT_TO_US = { annotations: { "volumes.kubernetes.io/controller-managed-attach-detach": "true" } };
const node = (status: object, rest: object = {}): Node => stored("v1", "Node", "n", { spec: {}, status, ...rest });
const outOfService = { spec: { taints: [{ key: "node.kubernetes.io/out-of-service", effect: "NoExecute" }] } };

test.each<[string, { node?: Node; wanted?: boolean; isForMany?: boolean; elsewhere?: string[]; idleMs?: number }, object]>([
  ["wanted", { wanted: true }, { attached: [NAME], granted: [NAME] }],
  ["wanted, and another node has it", { wanted: true, elsewhere: ["b"] }, { blocked: [["b"]] }],
  ["for many, and another node has it", { wanted: true, isForMany: true, elsewhere: ["b"] }, { attached: [NAME], granted: [NAME] }],
  ["wanted and here", { wanted: true, node: node(here) }, { attached: [NAME] }],
  ["wanted and here, as it may not be", { wanted: true, node: node(here), elsewhere: ["b"] }, { attached: [NAME] }],
  ["no longer wanted", { node: node(here) }, { released: [NAME] }],
  ["no longer wanted, still mounted", { node: node({ ...here, ...ready("True"), volumesInUse: [NAME] }) }, { attached: [NAME], idle: [NAME] }],
  ["mounted on a node that is away", { node: node({ ...here, ...ready("Unknown"), volumesInUse: [NAME] }), idleMs: 300_000 }, { attached: [NAME], idle: [NAME] }],
  ["mounted on a node that has been away for long", { node: node({ ...here, ...ready("Unknown"), volumesInUse: [NAME] }), idleMs: 400_000 }, { released: [NAME] }],
  ["mounted on a node out of service", { node: node({ ...here, ...ready("Unknown"), volumesInUse: [NAME] }, outOfService) }, { released: [NAME] }],
])("a disk that is %s", (_, { wanted = false, isForMany = false, elsewhere = [], idleMs = 0, ...facts }, expected) => {
  const plan = planDisks({ node: facts.node ?? node({}), wanted: wanted ? [{ name: NAME, isForMany, pods: [] }] : [], elsewhere: () => elsewhere, idleMs: () => idleMs, forceDetach: true });
  expect({ ...plan, granted: plan.granted.map(({ name }) => name), blocked: plan.blocked.map(({ nodes }) => nodes) }).toEqual({ attached: [], granted: [], blocked: [], idle: [], released: [], ...expected });
});

test("a disk is one however its portal is written", () => {
  expect([iscsi, { ...iscsi, targetPortal: "10.0.0.1:3260" }].map(iscsiVolumeName)).toEqual([NAME, NAME]);
  expect(iscsiVolumeName({ ...iscsi, targetPortal: "[fd00::1]" })).toBe("kubernetes.io/iscsi/[fd00::1]:3260:iqn.2003-01.io.k8s:shed:1");
});

test("a disk for one node moves when nothing has it mounted any more; who waits is told", () => withControllers((deps) => [attachDetachController(deps)], async (api, call) => {
  const { client } = api;
  const nodes = await Promise.all(["a", "b"].map((name) => client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name, ...LEFT_TO_US }, spec: {}, status: ready("True") } as never, call)));
  const claim = await client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "ns" }, spec: { volumeName: "v" } } as never, call);
  await client.resource(PERSISTENT_VOLUMES).create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "v" }, spec: { accessModes: ["ReadWriteOnce"], iscsi, claimRef: { name: "c", namespace: "ns", uid: claim.metadata.uid } } } as unknown as PersistentVolume, call);
  const attached = (name: string) => api.all(NODES).find(({ metadata }) => metadata.name === name)?.status?.volumesAttached?.map((one) => one.name) ?? [];
  const run = (name: string, nodeName: string) => client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "ns" }, spec: { containers: [], nodeName, volumes: [{ name: "x", persistentVolumeClaim: { claimName: "c" } }] } } as never, call);
  const first = await run("one", "a");
  await eventually(() => attached("a"), (names) => names.includes(NAME));
  await client.resource(NODES).patch(nodes[0]!, "application/merge-patch+json", { status: { volumesInUse: [NAME] } }, { ...call, subresource: "status" });
  await run("two", "b");
  await eventually(() => api.all(EVENTS).map(({ message }) => message), (all) => all.includes('Multi-Attach error for volume "v" Volume is already used by pod(s) one'));
  await client.resource(PODS).updateStatus({ ...first, status: { phase: "Succeeded" } } as Pod, call);
  expect([attached("a"), attached("b")]).toEqual([[NAME], []]);
  await client.resource(NODES).patch(nodes[0]!, "application/merge-patch+json", { status: { volumesInUse: null } }, { ...call, subresource: "status" });
  await eventually(() => [attached("a"), attached("b")], ([a, b]) => a!.length === 0 && b!.includes(NAME));
}));

test("a node whose Node is gone has what it had mounted until nobody there has wanted it for six minutes; what it had not, at once", () => {
  const kept = (wanted: boolean, idleMs: number, forceDetach = true) => keptOfGone([NAME], { wanted: wanted ? [{ name: NAME, isForMany: false, pods: [] }] : [], idleMs: () => idleMs, forceDetach });
  expect([kept(true, 400_000), kept(false, 300_000), kept(false, 400_000), kept(false, 400_000, false)]).toEqual([[NAME], [NAME], [], [NAME]]);
  expect([{ ...here, volumesInUse: [NAME] }, here].map((status) => disksInUse(node(status)))).toEqual([[NAME], []]);
  expect(disksInUse(node({ ...here, volumesInUse: [NAME] }, outOfService))).toEqual([]);
});

test("a disk that a deleted Node had mounted is nobody else's until the time is over, and its own if it comes back before", async () => {
  let aheadMs = 0;
  const clock = { ...systemClock, uptimeMs: () => systemClock.uptimeMs() + aheadMs, after: (ms: number, work: () => void) => systemClock.after(Math.min(ms, 20), work) };
  await withControllers((deps) => [attachDetachController(deps)], async (api, call) => {
    const { client } = api;
    const make = (name: string, status: object = {}) => client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name, ...LEFT_TO_US }, spec: {}, status: { ...ready("True"), ...status } } as never, call);
    const attached = (name: string) => api.all(NODES).find(({ metadata }) => metadata.name === name)?.status?.volumesAttached?.map((one) => one.name) ?? [];
    const claim = await client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "ns" }, spec: { volumeName: "v" } } as never, call);
    await client.resource(PERSISTENT_VOLUMES).create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "v" }, spec: { accessModes: ["ReadWriteOnce"], iscsi, claimRef: { name: "c", namespace: "ns", uid: claim.metadata.uid } } } as unknown as PersistentVolume, call);
    const a = await make("a", { volumesAttached: [{ name: NAME, devicePath: "" }], volumesInUse: [NAME] });
    await make("b");
    await eventually(() => attached("a"), (names) => names.includes(NAME));
    await client.resource(NODES).delete(a, {}, call);
    await client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name: "two", namespace: "ns" }, spec: { containers: [], nodeName: "b", volumes: [{ name: "x", persistentVolumeClaim: { claimName: "c" } }] } } as never, call);
    await eventually(() => api.all(EVENTS).map(({ message }) => message), (all) => all.some((message) => message?.startsWith('Multi-Attach error for volume "v"')));
    expect(attached("b")).toEqual([]);
    const back = await make("a", { volumesInUse: [NAME] });
    await eventually(() => attached("a"), (names) => names.includes(NAME));
    await client.resource(NODES).delete(back, {}, call);
    aheadMs = 300_000;
    await Bun.sleep(100);
    expect(attached("b")).toEqual([]);
    aheadMs += 400_000;
    await eventually(() => attached("b"), (names) => names.includes(NAME));
  }, { clock });
});

test("a disk that is taken off a node by force is counted by why", async () => {
  const metrics = metricsRegistry();
  await withControllers((deps) => [attachDetachController({ ...deps, metrics })], async (api, call) => {
    const { client } = api;
    const gone = await client.resource(NODES).create(node({ ...here, ...ready("Unknown"), volumesInUse: [NAME] }, { metadata: { name: "n", ...LEFT_TO_US } }) as never, call);
    await client.resource(NODES).patch(gone, "application/merge-patch+json", outOfService, call);
    await eventually(() => api.all(NODES)[0]!.status?.volumesAttached ?? [], (attached) => attached.length === 0);
    await eventually(() => metrics.render(), (text) => text.includes('attach_detach_controller_attachdetach_controller_forced_detaches{reason="out-of-service"} 1'));
  });
});
