/** Which changes bring a pod back that a filter rejected. */
import { expect, test } from "vitest";
import type { PersistentVolume, PodSpec } from "../api/gen/core.v1.ts";
import type { ResourceClaim } from "../api/gen/resource.v1.ts";
import type { CSIDriver, CSINode, CSIStorageCapacity } from "../api/gen/storage.v1.ts";
import { node, pod, schedulingCluster, stored } from "../../test/scheduling-cluster.ts";
import type { ClusterChange } from "./changes.ts";
import { nodeAffinity } from "./filters/node.ts";
import { podTopologySpread } from "./filters/pod-topology-spread.ts";
import { DEFAULT_PROFILE } from "./plugins.ts";

const cluster = schedulingCluster({ objects: [stored("resource.k8s.io/v1", "ResourceClaim", "default/own")] });
const tainted = { taints: [{ key: "k", effect: "NoSchedule" as const }] };
const added = (object: ReturnType<typeof node>): ClusterChange => ({ of: "node", object, deleted: false });
const became = (old: ReturnType<typeof node>, object: ReturnType<typeof node>): ClusterChange => ({ of: "node", object, old, deleted: false });
const gone = (options: Parameters<typeof pod>[1] = {}): ClusterChange => ({ of: "placed pod", object: pod("x", options), deleted: true });
const came = (options: Parameters<typeof pod>[1] = {}): ClusterChange => ({ of: "placed pod", object: pod("x", options), deleted: false });
const web = { labels: { app: "web" } };
const term = { labelSelector: { matchLabels: { app: "web" } }, topologyKey: "zone" };
const near: Partial<PodSpec> = { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } };
const nearBoth: Partial<PodSpec> = { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term, { ...term, labelSelector: { matchLabels: { tier: "front" } } }] } } };
const gpus = { container: { resources: { requests: { "example.com/gpu": "1" } } } };
const deviceClass = (name: string, extendedResourceName?: string): ClusterChange => ({ of: "device class", object: stored("resource.k8s.io/v1", "DeviceClass", name, { spec: { ...(extendedResourceName && { extendedResourceName }) } }), deleted: false });
const apart: Partial<PodSpec> = { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } };
const nearAndApart: Partial<PodSpec> = { affinity: { ...near.affinity, podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ ...term, labelSelector: { matchLabels: { tier: "front" } } }] } } };
const spread: Partial<PodSpec> = { topologySpreadConstraints: [{ ...term, maxSkew: 1, whenUnsatisfiable: "DoNotSchedule" }] };
const restartsAll = { container: { restartPolicyRules: [{ action: "RestartAllContainers", exitCodes: { operator: "In", values: [1] } }] } };
const mounts: Partial<PodSpec> = { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }] };
const disk: Partial<PodSpec> = { volumes: [{ name: "v", rbd: { monitors: ["m"], image: "i" } }] };
const port = { container: { ports: [{ containerPort: 80, hostPort: 80 }] } };
const claim = (name: string): ClusterChange => ({ of: "claim", object: stored("v1", "PersistentVolumeClaim", `default/${name}`), deleted: false });
const volume: ClusterChange = { of: "volume", object: stored("v1", "PersistentVolume", "v"), deleted: false };
const csiNode = (count: number) => stored<CSINode>("storage.k8s.io/v1", "CSINode", "n", { spec: { drivers: [{ name: "d", nodeID: "n", allocatable: { count } }] } } as never);
const room = (capacity: string) => stored<CSIStorageCapacity>("storage.k8s.io/v1", "CSIStorageCapacity", "default/room", { storageClassName: "s", capacity } as never);
const users = (count: number, isAllocated = true) => ({ status: { ...(isAllocated && { allocation: {} }), reservedFor: Array.from({ length: count }, (_, i) => ({ resource: "pods", name: `p${i}`, uid: `${i}` })) } });
const devices = (name: string, before: object | undefined, after: object): ClusterChange => ({ of: "resource claim", object: stored("resource.k8s.io/v1", "ResourceClaim", `default/${name}`, after), ...(before && { old: stored<ResourceClaim>("resource.k8s.io/v1", "ResourceClaim", `default/${name}`, before) }), deleted: false });
const asksForDevices: Partial<PodSpec> = { resourceClaims: [{ name: "r", resourceClaimName: "own" }] };

test.each<[filter: string, wants: Parameters<typeof pod>[1], what: string, change: ClusterChange, helps: boolean]>([
  ["NodeResourcesFit", {}, "a node", added(node("n")), true],
  ["NodeResourcesFit", {}, "a heartbeat", became(node("n"), node("n", { labels: { x: "y" } })), false],
  ["NodeResourcesFit", {}, "a larger node", became(node("n"), node("n", { cpu: "4" })), true],
  ["NodeResourcesFit", { cpu: "3" }, "a node that is too small even when empty", added(node("n")), false],
  ["NodeResourcesFit", {}, "a smaller node", became(node("n", { cpu: "4" }), node("n")), false],
  ["NodeResourcesFit", { container: { resources: { requests: { cpu: "1" } } } }, "a node with more of something else", became(node("n"), node("n", { allocatable: { memory: "8Gi" } })), false],
  ["NodeResourcesFit", {}, "a node that takes more pods", became(node("n"), node("n", { allocatable: { pods: "111" } })), true],
  ["NodeResourcesFit", {}, "a pod gives up what this one does not ask for", { of: "placed pod", object: pod("x"), old: pod("x", { container: { resources: { requests: { cpu: "500m", memory: "1Gi" } } } }), deleted: false }, false],
  ["NodeResourcesFit", { container: { resources: { requests: { "example.com/gpu": "1" } } } }, "a node without the resource", added(node("n")), false],
  ["NodeResourcesFit", {}, "a pod that goes", gone(), true],
  ["NodeResourcesFit", {}, "a pod that comes", came(), false],
  ["NodeResourcesFit", {}, "a pod that is scaled down", { of: "placed pod", object: pod("x", { cpu: "100m" }), old: pod("x", { cpu: "1" }), deleted: false }, true],
  ["NodeResourcesFit", {}, "the pod itself asks for less", { of: "pod", object: pod("p", { cpu: "100m" }), old: pod("p"), deleted: false }, true],
  ["NodeResourcesFit", {}, "a label for the pod itself", { of: "pod", object: pod("p", web), old: pod("p"), deleted: false }, false],
  ["DynamicResources", asksForDevices, "another's claim gives back its devices", devices("other", users(0), users(0, false)), true],
  ["DynamicResources", { resourceClaims: [{ name: "r", resourceClaimName: "none" }] }, "another's claim gives back its devices", devices("other", users(0), users(0, false)), false],
  ["DynamicResources", asksForDevices, "another's claim has a user less", devices("other", users(2), users(1)), false],
  ["DynamicResources", asksForDevices, "its claim comes", devices("own", undefined, {}), true],
  ["DynamicResources", asksForDevices, "its claim has a user less", devices("own", users(2), users(1)), true],
  ["DynamicResources", asksForDevices, "its claim gets a label", devices("own", users(1), { ...users(1), metadata: { labels: { a: "b" } } }), false],
  ["TaintToleration", {}, "a taint taken away", became(node("n", tainted), node("n")), true],
  ["TaintToleration", {}, "another tainted node", added(node("n", tainted)), false],
  ["TaintToleration", {}, "a taint that it does not mind anyway", became(node("n"), node("n", { taints: [{ key: "k", effect: "PreferNoSchedule" }] })), false],
  ["TaintToleration", {}, "a pod that goes", gone(), false],
  ["TaintToleration", {}, "a toleration for the pod", { of: "pod", object: pod("p", { tolerations: [{ operator: "Exists" }] }), old: pod("p"), deleted: false }, true],
  ["NodeUnschedulable", {}, "a node uncordoned", became(node("n", { unschedulable: true }), node("n")), true],
  ["NodeUnschedulable", {}, "a node cordoned", became(node("n"), node("n", { unschedulable: true })), false],
  ["NodeUnschedulable", {}, "a toleration for cordoned nodes", { of: "pod", object: pod("p", { tolerations: [{ key: "node.kubernetes.io/unschedulable", operator: "Exists" }] }), old: pod("p"), deleted: false }, true],
  ["NodeUnschedulable", {}, "another toleration", { of: "pod", object: pod("p", { tolerations: [{ key: "x", operator: "Exists" }] }), old: pod("p"), deleted: false }, false],
  ["NodeResourcesFit", gpus, "a class of its devices", deviceClass("other", "example.com/gpu"), true],
  ["NodeResourcesFit", gpus, "a class of other devices", deviceClass("other", "example.com/fpga"), false],
  ["NodeResourcesFit", gpus, "a class that stood behind them before", { ...deviceClass("other", "example.com/gpu"), old: deviceClass("other", "example.com/gpu").object } as ClusterChange, false],
  ["NodeResourcesFit", { container: { resources: { requests: { "deviceclass.resource.kubernetes.io/gpu": "1" } } } }, "the class", deviceClass("gpu"), true],
  ["NodeAffinity", { nodeSelector: { disk: "ssd" } }, "the label", became(node("n"), node("n", { labels: { disk: "ssd" } })), true],
  ["NodeAffinity", { nodeSelector: { disk: "ssd" } }, "another label", became(node("n"), node("n", { labels: { disk: "hdd" } })), false],
  ["NodeAffinity", { nodeSelector: { disk: "ssd" } }, "a label more, where it could be before", became(node("n", { labels: { disk: "ssd" } }), node("n", { labels: { disk: "ssd", x: "y" } })), false],
  ["NodePorts", port, "the port is free", gone(port), true],
  ["NodePorts", port, "another pod goes", gone(), false],
  ["InterPodAffinity", near, "a companion", came(web), true],
  ["InterPodAffinity", nearAndApart, "a companion that this one avoided no longer has what it avoided", { of: "placed pod", object: pod("x", web), old: pod("x", { labels: { app: "web", tier: "front" } }), deleted: false }, true],
  ["InterPodAffinity", near, "a stranger", came(), false],
  ["InterPodAffinity", near, "a label for the pod itself", { of: "pod", object: pod("p", web), old: pod("p"), deleted: false }, true],
  ["InterPodAffinity", near, "a toleration for the pod itself", { of: "pod", object: pod("p", { tolerations: [{ operator: "Exists" }] }), old: pod("p"), deleted: false }, false],
  ["InterPodAffinity", near, "a companion goes", gone(web), false],
  ["InterPodAffinity", near, "a pod gets the label", { of: "placed pod", object: pod("x", web), old: pod("x"), deleted: false }, true],
  ["InterPodAffinity", apart, "who it avoids goes", gone(web), true],
  ["InterPodAffinity", web, "who avoids it goes", gone(apart), true],
  ["InterPodAffinity", nearBoth, "half a companion", came(web), false],
  ["InterPodAffinity", nearBoth, "a companion", came({ labels: { app: "web", tier: "front" } }), true],
  ["InterPodAffinity", near, "a companion gets another label", { of: "placed pod", object: pod("x", { labels: { app: "web", x: "y" } }), old: pod("x", web), deleted: false }, false],
  ["InterPodAffinity", apart, "who it avoids becomes another", { of: "placed pod", object: pod("x"), old: pod("x", web), deleted: false }, true],
  ["InterPodAffinity", apart, "who it avoids gets another label", { of: "placed pod", object: pod("x", { labels: { app: "web", x: "y" } }), old: pod("x", web), deleted: false }, false],
  ["InterPodAffinity", near, "a node without the topology", added(node("n")), false],
  ["InterPodAffinity", near, "a node of the topology", added(node("n", { labels: { zone: "a" } })), true],
  ["InterPodAffinity", near, "a node loses the topology", became(node("n", { labels: { zone: "a" } }), node("n")), false],
  ["InterPodAffinity", apart, "a node without the topology", added(node("n")), true],
  ["InterPodAffinity", apart, "a node gets the topology", became(node("n"), node("n", { labels: { zone: "a" } })), false],
  ["InterPodAffinity", apart, "a node loses the topology", became(node("n", { labels: { zone: "a" } }), node("n")), true],
  ["InterPodAffinity", {}, "a node, for a pod that others repel", added(node("n")), true],
  ["InterPodAffinity", near, "a node goes: who was on it is nowhere", { of: "node", object: node("n"), deleted: true }, true],
  ["InterPodAffinity", { ...near, ...web }, "the companion goes, and it is the first of its series", gone(web), true],
  ["InterPodAffinity", near, "another namespace", { of: "namespace", object: stored("v1", "Namespace", "other"), deleted: false }, false],
  ["InterPodAffinity", near, "its namespace", { of: "namespace", object: stored("v1", "Namespace", "default"), deleted: false }, true],
  ["InterPodAffinity", { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ ...term, namespaceSelector: {} }] } } }, "another namespace, for one who looks into all", { of: "namespace", object: stored("v1", "Namespace", "other"), deleted: false }, true],
  ["InterPodAffinity", near, "a node gets the topology", became(node("n"), node("n", { labels: { zone: "a" } })), true],
  ["PodTopologySpread", { ...spread, ...web }, "one of them goes", gone(web), true],
  ["PodTopologySpread", { ...spread, ...web }, "one of them comes", came(web), true],
  ["PodTopologySpread", { topologySpreadConstraints: [...spread.topologySpreadConstraints!, { ...spread.topologySpreadConstraints![0]!, labelSelector: { matchLabels: { app: "db" } } }] }, "a pod becomes one of others", { of: "placed pod", object: pod("x", { labels: { app: "db" } }), old: pod("x", web), deleted: false }, true],
  ["PodTopologySpread", { ...spread, ...web }, "a stranger goes", gone(), false],
  ["PodTopologySpread", { ...spread, ...web }, "in another namespace", gone({ ...web, namespace: "other" }), false],
  ["PodTopologySpread", { ...spread, ...web }, "a domain goes", { of: "node", object: node("n", { labels: { zone: "a" } }), deleted: true }, true],
  ["PodTopologySpread", { ...spread, ...web }, "a node of no domain", added(node("n")), false],
  ["PodTopologySpread", { ...spread, ...web }, "other taints of a node of a domain", became(node("n", { labels: { zone: "a" } }), node("n", { labels: { zone: "a" }, ...tainted })), true],
  ["PodTopologySpread", { ...spread, ...web }, "another label of a node of a domain", became(node("n", { labels: { zone: "a" } }), node("n", { labels: { zone: "a", x: "y" } })), false],
  ["VolumeBinding", mounts, "its claim", claim("c"), true],
  ["VolumeBinding", mounts, "another claim", claim("d"), false],
  ["VolumeBinding", mounts, "a volume", volume, true],
  ["VolumeBinding", mounts, "a pod that goes", gone(), false],
  ["VolumeRestrictions", mounts, "a node goes: who was on it uses nothing", { of: "node", object: node("n"), deleted: true }, true],
  ["VolumeRestrictions", mounts, "a pod that goes", gone(), false],
  ["VolumeRestrictions", mounts, "a pod with the claim goes", gone(mounts), true],
  ["VolumeRestrictions", mounts, "its claim", claim("c"), true],
  ["VolumeRestrictions", mounts, "its claim is bound", { ...claim("c"), old: claim("c").object } as ClusterChange, false],
  ["NodeVolumeLimits", mounts, "its claim", claim("c"), true],
  ["NodeVolumeLimits", mounts, "its claim is bound", { ...claim("c"), old: claim("c").object } as ClusterChange, false],
  ["NodeVolumeLimits", mounts, "a node that has told of no driver yet", added(node("n")), false],
  ["NodeVolumeLimits", {}, "an attachment that goes, for a pod without claims", { of: "attachment", object: stored("storage.k8s.io/v1", "VolumeAttachment", "a"), deleted: true }, false],
  ["VolumeRestrictions", disk, "a pod with the disk goes", gone(disk), true],
  ["VolumeRestrictions", mounts, "a volume", volume, false],
  ["NodeVolumeLimits", { volumes: [{ name: "v", ephemeral: {} }] }, "an attachment that goes, for a pod whose volume is made for it", { of: "attachment", object: stored("storage.k8s.io/v1", "VolumeAttachment", "a"), deleted: true }, true],
  ["NodeVolumeLimits", mounts, "an attachment that goes", { of: "attachment", object: stored("storage.k8s.io/v1", "VolumeAttachment", "a"), deleted: true }, true],
  ["NodeVolumeLimits", mounts, "a pod with volumes goes", gone(mounts), true],
  ["NodeVolumeLimits", mounts, "a pod without goes", gone(), false],
  ["VolumeBinding", mounts, "a driver's node", { of: "CSI node", object: csiNode(1), deleted: false }, true],
  ["VolumeBinding", mounts, "a driver's node that attaches more", { of: "CSI node", object: csiNode(2), old: csiNode(1), deleted: false }, false],
  ["NodeVolumeLimits", mounts, "a driver's node that attaches more", { of: "CSI node", object: csiNode(2), old: csiNode(1), deleted: false }, true],
  ["NodeVolumeLimits", mounts, "a driver's node that attaches no more", { of: "CSI node", object: csiNode(1), old: csiNode(1), deleted: false }, false],
  ["VolumeBinding", mounts, "a driver goes that told what room there was", { of: "CSI driver", object: stored<CSIDriver>("storage.k8s.io/v1", "CSIDriver", "d", { spec: { storageCapacity: true } } as never), deleted: true }, true],
  ["VolumeBinding", mounts, "more room", { of: "storage capacity", object: room("2Gi"), old: room("1Gi"), deleted: false }, true],
  ["VolumeBinding", mounts, "less room", { of: "storage capacity", object: room("1Gi"), old: room("2Gi"), deleted: false }, false],
  ["VolumeZone", mounts, "a volume", volume, true],
  ["VolumeZone", mounts, "a volume that is bound", { of: "volume", object: stored("v1", "PersistentVolume", "v", { status: { phase: "Bound" } }), old: stored<PersistentVolume>("v1", "PersistentVolume", "v"), deleted: false }, false],
  ["VolumeZone", mounts, "a class that does not wait", { of: "storage class", object: stored("storage.k8s.io/v1", "StorageClass", "s"), deleted: false }, false],
  ["VolumeZone", mounts, "a zone for a node", became(node("n"), node("n", { labels: { "topology.kubernetes.io/zone": "a" } })), true],
  ["NodeName", {}, "a pod that goes", gone(), false],
  ["DynamicResources", {}, "a node that is more or less", became(node("n"), node("n", { cpu: "4" })), true],
  ["DynamicResources", {}, "a heartbeat", became(node("n"), node("n")), false],
  ["DynamicResources", {}, "a label for the pod itself", { of: "pod", object: pod("p", web), old: pod("p"), deleted: false }, false],
  ["DynamicResources", {}, "a claim made for the pod", { of: "pod", object: pod("p", { status: { resourceClaimStatuses: [{ name: "c", resourceClaimName: "p-c" }] } }), old: pod("p"), deleted: false }, true],
  ["DynamicResources", {}, "one of two claims made for the pod", { of: "pod", object: pod("p", { resourceClaims: ["c", "d"].map((name) => ({ name, resourceClaimTemplateName: "t" })), status: { resourceClaimStatuses: [{ name: "c" }] } }), old: pod("p"), deleted: false }, false],
  ["NodeDeclaredFeatures", restartsAll, "a node", added(node("n")), true],
  ["NodeDeclaredFeatures", restartsAll, "a heartbeat", became(node("n"), node("n", { labels: { x: "y" } })), false],
  ["NodeDeclaredFeatures", restartsAll, "a node that learns", became(node("n"), { ...node("n"), status: { declaredFeatures: ["X"] } }), true],
])("%s %j: %s", (filter, wants, _what, change, helps) => {
  expect(DEFAULT_PROFILE.filters.find(({ name }) => name === filter)!.mayHelp(pod("p", wants), change, cluster)).toBe(helps);
});


test("what a profile asks of nodes for all its pods brings those back that ask for nothing themselves", () => {
  const { mayHelp } = nodeAffinity({ addedAffinity: { nodeSelectorTerms: [{ matchExpressions: [{ key: "pool", operator: "In", values: ["a"] }] }] } });
  const [other, ours] = [node("n"), node("n", { labels: { pool: "a" } })];
  expect([became(other, ours), became(ours, other), became(ours, node("n", { labels: { pool: "a", x: "y" } }))].map((change) => mayHelp(pod("p"), change, cluster))).toEqual([true, false, false]);
});

test("who keeps a pod off that has terms of its own does so in topologies of their own", () => {
  const owned = schedulingCluster({ nodes: [node("m")], placed: [[pod("x", { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ ...term, topologyKey: "rack" }] } } }), "m"]] });
  const filter = DEFAULT_PROFILE.filters.find(({ name }) => name === "InterPodAffinity")!;
  const moved = became(node("n", { labels: { zone: "a", rack: "1" } }), node("n", { labels: { zone: "a", rack: "2" } }));
  expect([{ ...near, ...web }, near].map((wants) => filter.mayHelp(pod("p", wants), moved, owned))).toEqual([true, false]);
});

test("a pod that no service selects any more is not spread by default", () => {
  const served = schedulingCluster({ objects: [stored("v1", "Service", "default/s", { spec: { selector: web.labels } })] });
  const { mayHelp } = podTopologySpread({ system: false, constraints: [{ topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule", maxSkew: 1 }] });
  const change = (after: Parameters<typeof pod>[1]): ClusterChange => ({ of: "pod", object: pod("p", after), old: pod("p", web), deleted: false });
  expect([{}, { labels: { ...web.labels, x: "y" } }].map((after) => mayHelp(pod("p", after), change(after), served))).toEqual([true, false]);
});
