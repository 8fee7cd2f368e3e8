/** What users rely on when nodes fail, pods compete for them, or something is taken away: node lifecycle, priority, eviction, garbage. Real API, controllers and scheduler; time is simulated. */
import { expect, test } from "vitest";
import type { Node, Pod } from "../../core/api/gen/core.v1.ts";
import type { PodDisruptionBudget } from "../../core/api/gen/policy.v1.ts";
import type { PriorityClass } from "../../core/api/gen/scheduling.v1.ts";
import { CONFIG_MAPS, DEPLOYMENTS, NODES, POD_DISRUPTION_BUDGETS, PODS, PRIORITY_CLASSES, STATEFUL_SETS } from "../../core/client/resources.ts";
import { type FairCluster, fairCluster, isReady, NOWHERE, template } from "./fair-cluster.ts";

const pod = (name: string, spec: object = {}, { cpu = "100m", labels = { app: name } as Record<string, string> } = {}) => ({ metadata: { name, labels }, spec: { terminationGracePeriodSeconds: 5, containers: [{ name: "c", image: "app:1", resources: { requests: { cpu } } }], ...spec } });
const get = (cluster: FairCluster, name: string) => cluster.get<Pod>(PODS, name);
const gone = async (cluster: FairCluster, name: string): Promise<boolean> => !(await cluster.list<Pod>(PODS)).some(({ metadata }) => metadata.name === name);
const node = (cluster: FairCluster, name: string) => cluster.get<Node>(NODES, name);
const taints = async (cluster: FairCluster, name: string): Promise<string[]> => ((await node(cluster, name)).spec?.taints ?? []).map(({ key, effect }) => `${key.replace("node.kubernetes.io/", "")}:${effect}`).sort();
const scheduled = async (cluster: FairCluster, name: string) => (await get(cluster, name)).status?.conditions?.find(({ type }) => type === "PodScheduled");
const CPUS = 4;

async function classes(cluster: FairCluster): Promise<void> {
  for (const [name, value, more] of [["low", 10, {}], ["high", 1000, {}], ["higher", 2000, {}], ["polite", 1000, { preemptionPolicy: "Never" }]] as const) await cluster.create<PriorityClass>(PRIORITY_CLASSES, { metadata: { name }, value, ...more });
}

// Nodes

test("a node that falls silent: Unknown after its grace, tainted, its pods not ready; they go after five minutes, or as they say, and those that tolerate it stay", async () => {
  await using cluster = await fairCluster();
  const unreachable = (tolerationSeconds?: number) => ({ tolerations: [{ key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute", ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }) }] });
  await cluster.create(PODS, pod("usual", { nodeName: "node-0" }));
  await cluster.create(PODS, pod("brief", { nodeName: "node-0", ...unreachable(10) }));
  await cluster.create(PODS, pod("loyal", { nodeName: "node-0", ...unreachable() }));
  await cluster.until(async () => (await cluster.list<Pod>(PODS)).every(isReady));
  expect((await get(cluster, "usual")).spec.tolerations).toEqual(["not-ready", "unreachable"].map((key) => ({ key: `node.kubernetes.io/${key}`, operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 })));
  expect((await node(cluster, "node-0")).spec?.podCIDR).toMatch(/^10\.42\.\d+\.0\/24$/);

  cluster.inner.lineOf("node-0")!.cut();
  const silent = await cluster.until(async () => (await node(cluster, "node-0")).status?.conditions?.find(({ type }) => type === "Ready")?.status === "Unknown");
  expect([silent >= 40, silent <= 66]).toEqual([true, true]);
  await cluster.until(async () => (await taints(cluster, "node-0")).length === 2);
  expect(await taints(cluster, "node-0")).toEqual(["unreachable:NoExecute", "unreachable:NoSchedule"]);
  expect((await node(cluster, "node-0")).status?.conditions?.find(({ type }) => type === "Ready")).toMatchObject({ reason: "NodeStatusUnknown", message: "Kubelet stopped posting node status." });
  expect((await cluster.list<Pod>(PODS)).some(isReady)).toBe(false);
  expect(await cluster.events("node-0")).toContain("Normal NodeNotReady: Node node-0 status is now: NodeNotReady");
  const deleting = async (): Promise<string> => (await cluster.list<Pod>(PODS)).filter(({ metadata }) => metadata.deletionTimestamp !== undefined).map(({ metadata }) => metadata.name).sort().join(" ");
  await cluster.until(async () => (await deleting()) === "brief", 20);
  const seconds = await cluster.until(async () => (await deleting()) === "brief usual", 400);
  expect([seconds > 270, seconds < 310]).toEqual([true, true]);
  expect(await cluster.events("usual")).toContain("Normal TaintManagerEviction: Marking for deletion Pod default/usual");
  expect((await get(cluster, "usual")).status?.conditions?.find(({ type }) => type === "DisruptionTarget")).toMatchObject({ observedGeneration: 1, status: "True", reason: "DeletionByTaintManager", message: "Taint manager: deleting due to NoExecute taint" });

  await cluster.pass(60); // nobody is there to end them
  expect(await deleting()).toBe("brief usual");
  cluster.inner.lineOf("node-0")!.heal();
  await cluster.until(async () => (await gone(cluster, "usual")) && (await gone(cluster, "brief")) && (await taints(cluster, "node-0")).length === 0, 120);
  await cluster.until(async () => isReady(await get(cluster, "loyal")));
});

test("a taint that is taken away in time: the pod stays, and is told; NoSchedule leaves those that run alone, NoExecute does not", async () => {
  await using cluster = await fairCluster();
  await cluster.create(PODS, pod("short", { nodeName: "node-0", tolerations: [{ key: "out", operator: "Exists", effect: "NoExecute", tolerationSeconds: 60 }] }));
  await cluster.create(PODS, pod("usual", { nodeName: "node-0" }));
  await cluster.until(async () => (await cluster.list<Pod>(PODS)).every(isReady));
  await cluster.patch(NODES, "node-0", { spec: { taints: [{ key: "out", value: "x", effect: "NoSchedule" }] } });
  await cluster.pass(30);
  expect((await cluster.list<Pod>(PODS)).length).toBe(2);
  await cluster.patch(NODES, "node-0", { spec: { taints: [{ key: "out", value: "x", effect: "NoExecute" }] } });
  await cluster.until(() => gone(cluster, "usual"), 10);
  await cluster.pass(30);
  await cluster.patch(NODES, "node-0", { spec: { taints: null } });
  await cluster.pass(120);
  expect(isReady(await get(cluster, "short"))).toBe(true);
  expect(await cluster.events("short")).toContain("Normal TaintManagerEviction: Cancelling deletion of Pod default/short");
});

test("all nodes silent at once: it is more likely us, so nobody is driven out; once some are back, those of the others are", async () => {
  await using cluster = await fairCluster();
  await cluster.create(PODS, pod("usual", { nodeName: "node-0" }));
  await cluster.until(async () => isReady(await get(cluster, "usual")));
  for (const name of cluster.inner.nodeNames) cluster.inner.lineOf(name)!.cut();
  await cluster.pass(900);
  expect((await taints(cluster, "node-0")).filter((taint) => taint.endsWith("NoExecute"))).toEqual([]);
  expect((await get(cluster, "usual")).metadata.deletionTimestamp).toBeUndefined();
  for (const name of ["node-1", "node-2"]) cluster.inner.lineOf(name)!.heal();
  await cluster.until(async () => (await get(cluster, "usual")).metadata.deletionTimestamp !== undefined, 500);
});

test("a machine that is off for good: its StatefulSet pod hangs, until somebody says that the node is out of service", async () => {
  await using cluster = await fairCluster();
  await cluster.create(STATEFUL_SETS, { metadata: { name: "db" }, spec: { serviceName: "db", replicas: 1, selector: { matchLabels: { app: "db" } }, template: template("db") } });
  await cluster.until(async () => (await cluster.list<Pod>(PODS)).some(isReady));
  const { spec: { nodeName } } = await get(cluster, "db-0");
  cluster.inner.killNode(nodeName!);
  await cluster.until(async () => (await get(cluster, "db-0")).metadata.deletionTimestamp !== undefined, 500);
  await cluster.pass(600);
  const stuck = await get(cluster, "db-0");
  expect(stuck.spec.nodeName).toBe(nodeName);
  await cluster.patch(NODES, nodeName!, { spec: { taints: [...((await node(cluster, nodeName!)).spec?.taints ?? []), { key: "node.kubernetes.io/out-of-service", value: "nodeshutdown", effect: "NoExecute" }] } });
  await cluster.until(async () => !(await gone(cluster, "db-0")) && (await get(cluster, "db-0")).metadata.uid !== stuck.metadata.uid && isReady(await get(cluster, "db-0")), 120);
  expect((await get(cluster, "db-0")).spec.nodeName).not.toBe(nodeName);
  expect((await taints(cluster, nodeName!)).some((taint) => taint.startsWith("out-of-service"))).toBe(true); // who set it takes it away
});

test("pods of a node that was deleted are collected; one whose node never was, too", async () => {
  await using cluster = await fairCluster();
  await cluster.create(PODS, pod("left", { nodeName: "node-0" }));
  await cluster.create(PODS, pod("lost", { nodeName: "no-such" }));
  await cluster.until(async () => isReady(await get(cluster, "left")));
  cluster.inner.killNode("node-0");
  await cluster.remove(NODES, "node-0");
  await cluster.until(async () => (await gone(cluster, "left")) && (await gone(cluster, "lost")), 200);
});

test("conditions of a node become taints that keep pods off, cordoning too; they go with their cause", async () => {
  await using cluster = await fairCluster({ nodes: 1 });
  const status = (type: string, value: string) => ({ status: { conditions: [{ type, status: value, reason: "Test", lastHeartbeatTime: new Date(cluster.nowMs).toISOString() }, { type: "Ready", status: "True", lastHeartbeatTime: new Date(cluster.nowMs).toISOString() }] } });
  for (const [type, taint] of [["MemoryPressure", "memory-pressure:NoSchedule"], ["DiskPressure", "disk-pressure:NoSchedule"], ["PIDPressure", "pid-pressure:NoSchedule"], ["NetworkUnavailable", "network-unavailable:NoSchedule"]] as const) {
    await cluster.patch(NODES, "node-0", status(type, "True"), "status");
    await cluster.until(async () => (await taints(cluster, "node-0")).includes(taint), 5);
    await cluster.patch(NODES, "node-0", status(type, "False"), "status");
    await cluster.until(async () => (await taints(cluster, "node-0")).length === 0, 5);
  }
  await cluster.patch(NODES, "node-0", { spec: { unschedulable: true } });
  await cluster.until(async () => (await taints(cluster, "node-0")).includes("unschedulable:NoSchedule"), 5);
  await cluster.create(PODS, pod("waits"));
  await cluster.until(async () => (await scheduled(cluster, "waits"))?.status === "False");
  expect(await scheduled(cluster, "waits")).toMatchObject({ reason: "Unschedulable", message: expect.stringMatching(/^0\/1 nodes are available: 1 node\(s\) were unschedulable\. /) });
  await cluster.patch(NODES, "node-0", { spec: { unschedulable: null } });
  await cluster.until(async () => isReady(await get(cluster, "waits")), 30);
});

// Priority

test("priority comes from the class: none is nought, an unknown one is refused, a default is for later pods, a deleted one for no more", async () => {
  await using cluster = await fairCluster({ nodes: 1 });
  await classes(cluster);
  expect((await cluster.create<Pod>(PODS, pod("plain"))).spec).toMatchObject({ priority: 0, preemptionPolicy: "PreemptLowerPriority" });
  const high = (await cluster.create<Pod>(PODS, pod("high", { priorityClassName: "high" }))).spec;
  expect([high.priority, high.preemptionPolicy]).toEqual([1000, "PreemptLowerPriority"]);
  expect((await cluster.create<Pod>(PODS, pod("polite", { priorityClassName: "polite" }))).spec).toMatchObject({ priority: 1000, preemptionPolicy: "Never" });
  await expect(cluster.create(PODS, pod("none", { priorityClassName: "none" }))).rejects.toThrow('pods "none" is forbidden: no PriorityClass with name none was found');
  await expect(cluster.create(PODS, pod("own", { priorityClassName: "low", priority: 5 }))).rejects.toThrow("the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 10 from the given PriorityClass name");
  await cluster.create(PRIORITY_CLASSES, { metadata: { name: "usual" }, value: 50, globalDefault: true });
  await expect(cluster.create(PRIORITY_CLASSES, { metadata: { name: "other" }, value: 60, globalDefault: true })).rejects.toThrow("PriorityClass usual is already marked as default. Only one default can exist");
  expect((await cluster.create<Pod>(PODS, pod("later"))).spec).toMatchObject({ priority: 50, priorityClassName: "usual" });
  expect((await get(cluster, "plain")).spec.priority).toBe(0);
  await cluster.remove(PRIORITY_CLASSES, "high");
  expect((await get(cluster, "high")).spec.priority).toBe(1000);
  await expect(cluster.create(PODS, pod("more", { priorityClassName: "high" }))).rejects.toThrow("no PriorityClass with name high was found");
});

/** As many pods of one CPU as the nodes have. */
async function fill(cluster: FairCluster, priorityClassName: string, count: number, more: object = {}): Promise<void> {
  for (let i = 0; i < count; i++) await cluster.create(PODS, pod(`${priorityClassName}-${i}`, { priorityClassName, ...more }, { cpu: "1", labels: { app: priorityClassName } }));
  await cluster.until(async () => (await cluster.list<Pod>(PODS)).filter(({ metadata }) => metadata.name.startsWith(priorityClassName)).every(isReady));
}
async function capacity(cluster: FairCluster): Promise<number> {
  return Number((await node(cluster, "node-0")).status?.allocatable?.["cpu"] ?? CPUS);
}

test("a pod that fits nowhere takes the place of less important ones: as few as needed, told why, with their grace; it is nominated until it runs", async () => {
  await using cluster = await fairCluster({ nodes: 1 });
  await classes(cluster);
  const cpus = await capacity(cluster);
  await fill(cluster, "low", cpus, { terminationGracePeriodSeconds: 5 });
  await cluster.create(PODS, pod("polite", { priorityClassName: "polite" }, { cpu: "1" }));
  await cluster.pass(30);
  expect([(await cluster.list<Pod>(PODS)).length, (await scheduled(cluster, "polite"))?.message]).toEqual([cpus + 1, `0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never.`]);
  await cluster.create(PODS, pod("urgent", { priorityClassName: "higher" }, { cpu: "2" }));
  await cluster.until(async () => isReady(await get(cluster, "urgent")), 60);
  const left = (await cluster.list<Pod>(PODS)).filter(({ metadata }) => metadata.name.startsWith("low"));
  expect(left.length).toBe(cpus - 2);
  const victims = cluster.seen.filter(({ type, prefix, object }) => prefix.includes("/pods/") && type === "MODIFIED" && object.metadata.name.startsWith("low") && object.metadata.deletionTimestamp !== undefined).map(({ object }) => object as Pod);
  const urgent = await get(cluster, "urgent");
  expect(new Set(victims.map(({ metadata }) => metadata.name)).size).toBe(2);
  const marked = [...Map.groupBy(victims, ({ metadata }) => metadata.name).values()].map(([first]) => first!); // what comes after is their node's
  for (const victim of marked) expect([victim.metadata.deletionGracePeriodSeconds, victim.status?.conditions?.find(({ type }) => type === "DisruptionTarget")]).toEqual([5, expect.objectContaining({ status: "True", reason: "PreemptionByScheduler", message: "default-scheduler: preempting to accommodate a higher priority pod" })]);
  expect(await cluster.events(victims[0]!.metadata.name)).toContain(`Normal Preempted: Preempted by pod ${urgent.metadata.uid} on node node-0`);
  expect(cluster.seen.some(({ object }) => object.metadata.name === "urgent" && (object as Pod).status?.nominatedNodeName === "node-0")).toBe(true);
  expect((await get(cluster, "polite")).spec.nodeName).toBeUndefined(); // what was freed is spoken for
});

test("never for an equal, nor if it would not help; a budget protects if there is another way, and does not if there is none", async () => {
  await using cluster = await fairCluster({ nodes: 2 });
  await classes(cluster);
  const cpus = await capacity(cluster);
  for (const on of ["node-0", "node-1"]) for (let i = 0; i < cpus; i++) await cluster.create(PODS, pod(`${on}-${i}`, { priorityClassName: "low", nodeSelector: { "kubernetes.io/hostname": on } }, { cpu: "1", labels: { app: on } }));
  await cluster.until(async () => (await cluster.list<Pod>(PODS)).every(isReady));
  await cluster.create(PODS, pod("equal", { priorityClassName: "low" }, { cpu: "1" }));
  await cluster.create(PODS, pod("huge", { priorityClassName: "higher" }, { cpu: String(cpus + 1) }));
  await cluster.pass(30);
  expect((await cluster.list<Pod>(PODS)).filter(isReady).length).toBe(2 * cpus);
  expect((await scheduled(cluster, "equal"))?.message).toBe("0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.");
  expect((await scheduled(cluster, "huge"))?.message).toBe("0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.");
  await cluster.remove(PODS, "equal");
  await cluster.create(POD_DISRUPTION_BUDGETS, { metadata: { name: "keep" }, spec: { minAvailable: cpus, selector: { matchLabels: { app: "node-0" } } } });
  await cluster.until(async () => (await cluster.get<PodDisruptionBudget>(POD_DISRUPTION_BUDGETS, "keep")).status?.currentHealthy === cpus);
  await cluster.create(PODS, pod("first", { priorityClassName: "high" }, { cpu: String(cpus) }));
  await cluster.until(async () => isReady(await get(cluster, "first")));
  expect((await get(cluster, "first")).spec.nodeName).toBe("node-1");
  await cluster.create(PODS, pod("second", { priorityClassName: "high" }, { cpu: "1" }));
  await cluster.until(async () => isReady(await get(cluster, "second")));
  expect((await get(cluster, "second")).spec.nodeName).toBe("node-0");
});

test("a pod that fits nowhere holds up nobody of less importance", async () => {
  await using cluster = await fairCluster({ nodes: 1 });
  await classes(cluster);
  await cluster.create(PODS, pod("stuck", { priorityClassName: "higher", ...NOWHERE }));
  await cluster.create(PODS, pod("modest", { priorityClassName: "low" }));
  await cluster.until(async () => isReady(await get(cluster, "modest")), 10);
  expect((await scheduled(cluster, "stuck"))?.reason).toBe("Unschedulable");
});

// Where pods are told to go

test("a pod of another scheduler, a gated one and one that names its node are none of the scheduler's business", async () => {
  await using cluster = await fairCluster({ nodes: 2 });
  await cluster.patch(NODES, "node-1", { spec: { taints: [{ key: "k", effect: "NoSchedule" }] } });
  await cluster.create(PODS, pod("foreign", { schedulerName: "mine" }));
  await cluster.create(PODS, pod("gated", { schedulingGates: [{ name: "a.b/c" }, { name: "a.b/d" }] }));
  await cluster.create(PODS, pod("named", { nodeName: "node-1", nodeSelector: { no: "such" } }));
  await cluster.until(async () => isReady(await get(cluster, "named")));
  await cluster.pass(60);
  expect([(await get(cluster, "foreign")).spec.nodeName, await scheduled(cluster, "foreign")]).toEqual([undefined, undefined]);
  expect(await scheduled(cluster, "gated")).toMatchObject({ status: "False", reason: "SchedulingGated", message: "Scheduling is blocked due to non-empty scheduling gates" });
  await expect(cluster.patch(PODS, "gated", { spec: { schedulingGates: [{ name: "a.b/c" }, { name: "a.b/d" }, { name: "a.b/e" }] } })).rejects.toThrow("only deletion is allowed, but found new scheduling gate 'a.b/e'");
  await cluster.patch(PODS, "gated", { spec: { nodeSelector: { "kubernetes.io/hostname": "node-0" } } });
  await expect(cluster.patch(PODS, "gated", { spec: { nodeSelector: null } })).rejects.toThrow("only additions to spec.nodeSelector are allowed");
  await cluster.patch(PODS, "gated", { spec: { schedulingGates: [{ name: "a.b/d" }] } });
  await cluster.pass(20);
  expect((await get(cluster, "gated")).spec.nodeName).toBeUndefined();
  await cluster.patch(PODS, "gated", { spec: { schedulingGates: [] } });
  await cluster.until(async () => isReady(await get(cluster, "gated")));
  await cluster.patch(NODES, "node-0", { metadata: { labels: { "kubernetes.io/hostname": "renamed" } } });
  await cluster.pass(30);
  expect(isReady(await get(cluster, "gated"))).toBe(true); // labels that change later move nobody
});

// Eviction

test("eviction: a budget gives one after the other, direct deletion asks no budget, and without one a pod always goes", async () => {
  await using cluster = await fairCluster();
  const evict = (name: string) => cluster.ask("POST", `/api/v1/namespaces/default/pods/${name}/eviction`, { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace: "default" } });
  await cluster.create(DEPLOYMENTS, { metadata: { name: "web" }, spec: { replicas: 5, selector: { matchLabels: { app: "web" } }, template: template("web") } });
  await cluster.create(POD_DISRUPTION_BUDGETS, { metadata: { name: "web" }, spec: { minAvailable: 5, selector: { matchLabels: { app: "web" } } } });
  const budget = async () => (await cluster.get<PodDisruptionBudget>(POD_DISRUPTION_BUDGETS, "web")).status;
  await cluster.until(async () => (await budget())?.currentHealthy === 5);
  const [a, b, c] = (await cluster.list<Pod>(PODS)).map(({ metadata }) => metadata.name);
  await expect(evict(a!)).rejects.toThrow("Cannot evict pod as it would violate the pod's disruption budget.");
  await cluster.patch(POD_DISRUPTION_BUDGETS, "web", { spec: { minAvailable: 4 } });
  await cluster.patch(DEPLOYMENTS, "web", { spec: { template: { spec: NOWHERE }, strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } } } }); // what replaces the next ones does not run
  await cluster.until(async () => (await budget())?.disruptionsAllowed === 1);
  const answers = await Promise.allSettled([evict(a!), evict(b!)]);
  expect(answers.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  await cluster.remove(PODS, c!);
  await cluster.until(() => gone(cluster, c!));
  await cluster.create(PODS, pod("bare"));
  await cluster.until(async () => isReady(await get(cluster, "bare")));
  await evict("bare");
  await cluster.until(() => gone(cluster, "bare"));
});

// Garbage

test("dependents: in the background after their owner, in the foreground before it, or not at all; an owner that is not is as good as gone", async () => {
  await using cluster = await fairCluster({ nodes: 1 });
  const owned = async (name: string, owner: { metadata: { name: string; uid: string } }, more: object = {}) => cluster.create(CONFIG_MAPS, { metadata: { name, ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: owner.metadata.name, uid: owner.metadata.uid, ...more }] } });
  const names = async (): Promise<string> => (await cluster.list(CONFIG_MAPS)).map(({ metadata }) => metadata.name).filter((name) => name !== "kube-root-ca.crt").sort().join(" ");
  const make = async () => {
    const owner = await cluster.create(CONFIG_MAPS, { metadata: { name: "owner" } });
    const child = await owned("child", owner, { blockOwnerDeletion: true });
    await owned("grandchild", child, { blockOwnerDeletion: true });
    await cluster.patch(CONFIG_MAPS, "grandchild", { metadata: { finalizers: ["example.com/hold"] } });
    await cluster.pass(2);
  };
  const letGo = () => cluster.patch(CONFIG_MAPS, "grandchild", { metadata: { finalizers: null } });
  await make();
  await cluster.remove(CONFIG_MAPS, "owner");
  await cluster.until(async () => (await names()) === "grandchild"); // in the background nobody waits for it
  await letGo();
  await cluster.until(async () => (await names()) === "");
  await make();
  await cluster.remove(CONFIG_MAPS, "owner", { propagationPolicy: "Foreground" });
  await cluster.pass(30);
  const owner = await cluster.get(CONFIG_MAPS, "owner");
  expect([await names(), owner.metadata.finalizers, typeof owner.metadata.deletionTimestamp]).toEqual(["child grandchild owner", ["foregroundDeletion"], "string"]);
  await letGo();
  await cluster.until(async () => (await names()) === "");
  await make();
  await letGo();
  await cluster.remove(CONFIG_MAPS, "owner", { propagationPolicy: "Orphan" });
  await cluster.until(async () => (await names()) === "child grandchild");
  await cluster.pass(30);
  expect([(await names()), (await cluster.get(CONFIG_MAPS, "child")).metadata.ownerReferences]).toEqual(["child grandchild", undefined]);
  await owned("stray", { metadata: { name: "nobody", uid: "no-such-uid" } });
  await cluster.until(async () => (await names()) === "child grandchild");
});
