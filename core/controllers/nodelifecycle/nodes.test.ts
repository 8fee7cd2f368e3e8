import { expect, test, vi } from "vitest";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import type { Node, Pod } from "../../api/gen/core.v1.ts";
import { keyOf, type NewObject } from "../../api/meta/object-meta.ts";
import { conflict, statusError } from "../../api/meta/status-error.ts";
import { CLUSTER_ROLES, EVENTS, NODES, PODS } from "../../client/resources.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { clusterRoleAggregationController } from "../clusterroleaggregation/clusterroleaggregation.ts";
import { podGcController, terminatedBeyond } from "../podgc/podgc.ts";
import { taintEvictionController } from "../tainteviction/tainteviction.ts";
import { nodeLifecycleControllers } from "./nodelifecycle.ts";
import { NODE_LIFECYCLE } from "./plan.ts";

/** Real time, but `ahead` can be moved; waits are cut short, so that everyone looks again soon. */
function movableClock(): Clock & { aheadMs: number } {
  return {
    aheadMs: 0,
    nowMs() { return Date.now() + this.aheadMs; },
    uptimeMs() { return performance.now() + this.aheadMs; },
    sleep: (ms) => Bun.sleep(Math.min(ms, 10)),
    every: () => { throw new Error("unused"); },
    after: (ms, work) => { const timer = setTimeout(work, Math.min(ms, 10)); return { cancel: () => clearTimeout(timer) }; },
  };
}

/** So much time passes, in which everyone looks now and then. */
async function pass(clock: { aheadMs: number }, ms: number): Promise<void> {
  for (let leftMs = ms; leftMs > 0; leftMs -= 20_000) {
    clock.aheadMs += Math.min(20_000, leftMs);
    await looks();
  }
}

/** Long enough for everyone to have looked some times, also where the machine is busy: each look is awaited by a timer as long as this one. */
async function looks(): Promise<void> {
  for (let i = 0; i < 10; i++) await Bun.sleep(10);
}

const node = (name: string): NewObject<Node> & { status: unknown } => ({ apiVersion: "v1", kind: "Node", metadata: { name, labels: { "kubernetes.io/os": "linux" } }, spec: {}, status: { conditions: [{ type: "Ready", status: "True", lastHeartbeatTime: "2026-01-01T00:00:00Z" }] } });
const pod = (name: string, spec: Partial<Pod["spec"]>): NewObject<Pod> & { status: unknown } => ({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default" }, spec: { containers: [], ...spec }, status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } });

test("a node that falls silent is marked, its pods are not ready, and those that do not tolerate it are evicted; it comes back", () => {
  const clock = movableClock();
  const metrics = metricsRegistry();
  return withControllers((deps) => [...nodeLifecycleControllers({ ...deps, metrics }), taintEvictionController({ ...deps, metrics })], async (api, call) => {
    const [nodes, pods] = [api.client.resource(NODES), api.client.resource(PODS)];
    for (const name of ["good", "bad"]) await nodes.create(node(name), call);
    const tolerant = { tolerations: [{ operator: "Exists" as const, tolerationSeconds: 300 }] };
    await pods.create(pod("stays", { nodeName: "bad", tolerations: [{ operator: "Exists" }] }), call);
    await pods.create(pod("leaves", { nodeName: "bad", ...tolerant }), call);
    await pods.create(pod("elsewhere", { nodeName: "good", ...tolerant }), call);
    await eventually(() => api.all(NODES).map(({ metadata }) => metadata.labels?.["beta.kubernetes.io/os"]), (os) => os.every((one) => one === "linux"));
    await eventually(() => api.all(EVENTS).filter(({ reason }) => reason === "RegisteredNode"), (all) => all.length === 2);

    await pass(clock, 40_000);
    const good = api.all(NODES).find(({ metadata }) => metadata.name === "good")!;
    const beat = (one: Node, at: string) => nodes.updateStatus({ ...one, status: { ...one.status, conditions: [{ type: "Ready", status: "True", lastHeartbeatTime: at }] } }, call);
    await beat(good, "2026-01-01T00:00:40Z");
    await looks();
    await pass(clock, 15_000);
    const bad = await eventually(() => api.all(NODES).find(({ metadata }) => metadata.name === "bad"), (one) => one?.spec?.taints?.length === 2);
    expect(bad!.status?.conditions?.[0]).toMatchObject({ type: "Ready", status: "Unknown", reason: "NodeStatusUnknown", message: "Kubelet stopped posting node status." });
    expect(bad!.spec?.taints?.map(({ key, effect }) => `${key}:${effect}`).sort()).toEqual(["node.kubernetes.io/unreachable:NoExecute", "node.kubernetes.io/unreachable:NoSchedule"]);
    await eventually(() => api.all(PODS).map(({ metadata: { name }, status }) => `${name} ${status?.conditions?.[0]?.status}`).sort().join(), (seen) => seen === "elsewhere True,leaves False,stays False");
    await eventually(() => api.all(EVENTS).filter(({ reason, involvedObject }) => reason === "NodeNotReady" && involvedObject.kind === "Pod").map(({ type, involvedObject, message }) => `${type} ${involvedObject.name}: ${message}`).sort().join(), (told) => told === "Warning leaves: Node is not ready,Warning stays: Node is not ready");

    for (const sample of ['evictions_total{zone=""} 1', 'zone_health{zone=""} 50', 'zone_size{zone=""} 2', 'unhealthy_nodes_in_zone{zone=""} 1']) expect(metrics.render()).toContain(`node_collector_${sample}\n`);

    clock.aheadMs += 200_000; // not yet
    await beat(api.all(NODES).find(({ metadata }) => metadata.name === "good")!, "2026-01-01T00:05:00Z");
    await looks();
    expect(api.all(PODS).every(({ metadata }) => metadata.deletionTimestamp === undefined)).toBe(true);
    clock.aheadMs += 101_000;
    await beat(api.all(NODES).find(({ metadata }) => metadata.name === "good")!, "2026-01-01T00:07:00Z");
    const evicted = await eventually(() => api.all(PODS).filter(({ metadata }) => metadata.deletionTimestamp !== undefined), (all) => all.length === 1);
    expect(evicted[0]).toMatchObject({ metadata: { name: "leaves" }, status: { conditions: [{ type: "Ready" }, { type: "DisruptionTarget", reason: "DeletionByTaintManager" }] } });
    for (const sample of ["deletions_total 1", "deletion_duration_seconds_count 1", 'deletion_duration_seconds_bucket{le="240"} 1']) await eventually(() => metrics.render(), (page) => page.includes(`taint_eviction_controller_pod_${sample}\n`));

    await beat(api.all(NODES).find(({ metadata }) => metadata.name === "bad")!, "2026-01-01T00:08:00Z");
    await eventually(() => api.all(NODES).find(({ metadata }) => metadata.name === "bad")?.spec?.taints ?? [], (taints) => taints.length === 0);
  }, { clock });
});

test("a pod that comes to a node that is ready and drives nobody away, and goes, gives nobody work; one on another node does", () => {
  const asked: string[] = [];
  return withControllers((deps) => [...nodeLifecycleControllers(deps), taintEvictionController(deps)].map((one) => ({ ...one, reconcile: (key, call) => (asked.push(`${one.name} ${key}`), one.reconcile(key, call)) })), async (api, call) => {
    const [nodes, pods] = [api.client.resource(NODES), api.client.resource(PODS)];
    await nodes.create(node("calm"), call);
    await nodes.create({ ...node("tainted"), spec: { taints: [{ key: "k", effect: "NoExecute" }] } }, call);
    const silent = { ...node("silent"), status: { conditions: [{ type: "Ready", status: "False" }] } };
    await nodes.create(silent, call);
    await eventually(() => asked.filter((one) => one.startsWith("node_lifecycle_controller ")), (all) => new Set(all).size === 3);
    for (const name of ["calm", "tainted", "silent"]) {
      await pods.create(pod(name, { nodeName: name, tolerations: [{ operator: "Exists" }] }), call);
      await pods.delete({ metadata: { name, namespace: "default" } }, { gracePeriodSeconds: 0 }, call);
    }
    const ofPods = (): string[] => [...new Set(asked.filter((one) => one.includes(" default/")))].sort();
    await eventually(ofPods, (all) => all.includes("node_lifecycle_controller_pods default/silent") && all.includes("noexec_taint_pod default/tainted"));
    expect(ofPods().filter((one) => one.endsWith("/calm"))).toEqual([]);
  });
});

test("a pod that is on its way out when its node is tainted is told, and counts as disrupted", () =>
  withControllers((deps) => [taintEvictionController(deps)], async (api, call) => {
    const pods = api.client.resource(PODS);
    const made = await api.client.resource(NODES).create(node("n"), call);
    const pod = await pods.create({ apiVersion: "v1", kind: "Pod", metadata: { name: "leaves", namespace: "default", finalizers: ["x"] }, spec: { nodeName: "n", containers: [] }, status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } } as NewObject<Pod>, call);
    await pods.delete(pod, { gracePeriodSeconds: 30 }, call);
    await api.client.resource(NODES).update({ ...made, spec: { ...made.spec, taints: [{ key: "k", effect: "NoExecute" }] } }, call);
    await eventually(() => api.all(PODS)[0]?.status?.conditions?.map(({ type, reason }) => `${type} ${reason}`), (all) => all?.join() === "Ready undefined,DisruptionTarget DeletionByTaintManager");
    await eventually(() => api.all(EVENTS).map(({ reason, message }) => `${reason} ${message}`), (all) => all.includes("TaintManagerEviction Marking for deletion Pod default/leaves"));
  }));

test("a pod that goes later goes when it was first said, whatever taints come and go; one that goes by itself is told that it is not evicted", () => {
  const clock = movableClock();
  return withControllers((deps) => [taintEvictionController(deps)], async (api, call) => {
    const [nodes, pods] = [api.client.resource(NODES), api.client.resource(PODS)];
    const tolerations = [{ key: "long", operator: "Exists" as const, tolerationSeconds: 300 }, { key: "short", operator: "Exists" as const, tolerationSeconds: 30 }];
    const made = await nodes.create(node("n"), call);
    for (const name of ["leaves", "goes"]) await pods.create(pod(name, { nodeName: "n", tolerations }), call);
    const taint = async (...keys: string[]) => await nodes.update({ ...api.all(NODES)[0]!, spec: { ...made.spec, taints: keys.map((key) => ({ key, effect: "NoExecute" as const })) } }, call);
    const told = () => api.all(EVENTS).map(({ message }) => message ?? "");
    await taint("long");
    await looks();
    await pods.delete({ metadata: { name: "goes", namespace: "default" } }, { gracePeriodSeconds: 0 }, call);
    await eventually(told, (all) => all.includes("Cancelling deletion of Pod default/goes"));
    clock.aheadMs += 100_000;
    await taint("long", "short");
    clock.aheadMs += 150_000;
    await looks();
    expect(told()).not.toContain("Marking for deletion Pod default/leaves");
    clock.aheadMs += 51_000;
    await eventually(told, (all) => all.includes("Marking for deletion Pod default/leaves"));
  }, { clock });
});

test("a pod that is to go later goes when it was said, though its node is deleted meanwhile; it is not told otherwise", () => {
  const clock = movableClock();
  return withControllers((deps) => [taintEvictionController(deps)], async (api, call) => {
    const nodes = api.client.resource(NODES);
    const made = await nodes.create({ ...node("n"), spec: { taints: [{ key: "long", effect: "NoExecute" }] } }, call);
    await api.client.resource(PODS).create(pod("leaves", { nodeName: "n", tolerations: [{ key: "long", operator: "Exists" as const, tolerationSeconds: 300 }] }), call);
    await looks();
    await nodes.delete(made, {}, call);
    await looks();
    clock.aheadMs += 300_000;
    const told = await eventually(() => api.all(EVENTS).map(({ message }) => message ?? ""), (all) => all.length > 0);
    expect(told).toEqual(["Marking for deletion Pod default/leaves"]);
  }, { clock });
});

test("a pod that was to go later and has to go at once is told both", () =>
  withControllers((deps) => [taintEvictionController(deps)], async (api, call) => {
    const nodes = api.client.resource(NODES);
    const made = await nodes.create(node("n"), call);
    await api.client.resource(PODS).create(pod("leaves", { nodeName: "n", tolerations: [{ key: "long", operator: "Exists" as const, tolerationSeconds: 300 }] }), call);
    const taint = async (...keys: string[]) => await nodes.update({ ...api.all(NODES)[0]!, spec: { ...made.spec, taints: keys.map((key) => ({ key, effect: "NoExecute" as const })) } }, call);
    await taint("long");
    await looks();
    await taint("long", "other");
    await eventually(() => api.all(EVENTS).map(({ message }) => message ?? ""), (all) => all.includes("Cancelling deletion of Pod default/leaves") && all.includes("Marking for deletion Pod default/leaves"));
  }));

test("a pod that has taken the name of one that was to go stays its own time", () => {
  const clock = movableClock();
  let shown: Readonly<Pod> | undefined; // nothing newer, as while a watch is interrupted
  return withControllers((deps) => [taintEvictionController({
    ...deps, informers: { ...deps.informers, of: (ref, query) => { const all = deps.informers.of(ref, query); return { ...all, get: (key) => (shown && key === keyOf(shown) ? shown as never : all.get(key)), onChange: (handler) => all.onChange((change) => { if (!shown || keyOf(change.object) !== keyOf(shown)) handler(change); }) }; } },
  })], async (api, call) => {
    const [nodes, pods] = [api.client.resource(NODES), api.client.resource(PODS)];
    await nodes.create({ ...node("n"), spec: { taints: [{ key: "k", effect: "NoExecute" }] } }, call);
    const tolerations = [{ operator: "Exists" as const, tolerationSeconds: 300 }], name = { metadata: { namespace: "default", name: "p" } };
    const told = () => api.all(EVENTS).filter(({ reason }) => reason === "TaintManagerEviction").map(({ message }) => message);
    const first = await pods.create(pod("p", { nodeName: "n", tolerations }), call);
    await looks();
    clock.aheadMs += 200_000;
    shown = first;
    await pods.delete(name, { gracePeriodSeconds: 0 }, call);
    const second = await pods.create(pod("p", { nodeName: "n", tolerations }), call);
    expect(second.metadata.uid).not.toBe(first.metadata.uid);
    await looks();
    shown = undefined;
    await pods.patch(second, "application/merge-patch+json", { spec: { tolerations: [...tolerations, { key: "other", operator: "Exists" }] } }, call);
    await eventually(told, (all) => all.join() === "Cancelling deletion of Pod default/p");
    clock.aheadMs += 200_000;
    await looks();
    expect(api.all(PODS).map(({ metadata }) => [metadata.uid, metadata.deletionTimestamp])).toEqual([[second.metadata.uid, undefined]]);
    clock.aheadMs += 200_000;
    await eventually(() => told().at(-1), (last) => last === "Marking for deletion Pod default/p");
  }, { clock });
});

test("a node is tainted for eviction at the first look, though it changes meanwhile, and though another one's taint is refused", async () => {
  const clock = { ...movableClock(), after: (ms: number, work: () => void) => { const timer = ms < 1_000 ? setTimeout(work, ms) : undefined; return { cancel: () => clearTimeout(timer) }; } }; // there is no second one
  const api = fakeApi({ clock });
  const silent = (name: string) => ({ ...node(name), status: { conditions: [{ type: "Ready", status: "Unknown", lastHeartbeatTime: "2026-01-01T00:00:00Z" }] } });
  for (const one of [node("good"), silent("a-refused"), silent("b-changed")]) await api.client.resource(NODES).create(one, { signal: AbortSignal.timeout(60_000) });
  let changes = 0;
  api.fail = ({ method, path, body }) => {
    if (method !== "PATCH" || !JSON.stringify(body).includes("NoExecute")) return undefined;
    if (path.endsWith("/nodes/a-refused")) return statusError({ code: 500, reason: "InternalError", message: "webhook failed" });
    return changes++ < 2 ? conflict({ group: "", resource: "nodes" }, "b-changed") : undefined;
  };
  await withControllers((deps) => nodeLifecycleControllers(deps), async () => {
    const tainted = () => api.all(NODES).filter(({ spec }) => spec?.taints?.some(({ key, effect }) => key === "node.kubernetes.io/unreachable" && effect === "NoExecute")).map(({ metadata }) => metadata.name).join();
    await eventually(tainted, (names) => names === "b-changed");
  }, { clock, api });
});

test("a pod that is gone before it is marked is told nothing", () => {
  const clock = movableClock();
  return withControllers((deps) => nodeLifecycleControllers(deps), async (api, call) => {
    const nodes = api.client.resource(NODES);
    for (const name of ["good", "bad"]) await nodes.create(node(name), call);
    for (const name of ["gone", "there"]) await api.client.resource(PODS).create(pod(name, { nodeName: "bad" }), call);
    api.fail = ({ method, path }) => (method === "PUT" && path.endsWith("/pods/gone/status") ? statusError({ code: 404, reason: "NotFound", message: "pods \"gone\" not found" }) : undefined);
    const told = () => api.all(EVENTS).filter(({ reason, involvedObject }) => reason === "NodeNotReady" && involvedObject.kind === "Pod").map(({ involvedObject }) => involvedObject.name);
    await eventually(() => api.all(EVENTS).filter(({ reason }) => reason === "RegisteredNode"), (all) => all.length === 2);
    await looks();
    await pass(clock, 80_000);
    await eventually(told, (all) => all.includes("there"));
    await looks();
    expect(told()).toEqual(["there"]);
  }, { clock });
});

test("a node that goes is told of under its own uid", () =>
  withControllers((deps) => nodeLifecycleControllers({ ...deps, settings: { ...NODE_LIFECYCLE, periodMs: 10 } }), async (api, call) => {
    const made = await api.client.resource(NODES).create(node("n"), call);
    const about = (reason: string) => api.all(EVENTS).find((event) => event.reason === reason)?.involvedObject.uid;
    await eventually(() => about("RegisteredNode"), (uid) => uid === made.metadata.uid);
    await api.client.resource(NODES).delete(made, {}, call);
    await eventually(() => about("RemovingNode"), (uid) => uid === made.metadata.uid);
  }));

test("a clock that is set ahead makes no node silent, and one that is set back hides none", () => {
  const clock = { ...movableClock(), wallMs: 0, nowMs: () => Date.now() + clock.wallMs };
  return withControllers((deps) => nodeLifecycleControllers(deps), async (api, call) => {
    await api.client.resource(NODES).create(node("n"), call);
    await eventually(() => api.all(EVENTS), (all) => all.length > 0);
    clock.wallMs = 86_400_000;
    await looks();
    expect(api.all(NODES)[0]?.status?.conditions?.[0]?.status).toBe("True");
    clock.wallMs = -86_400_000;
    await pass(clock, 55_000);
    await eventually(() => api.all(NODES)[0]?.status?.conditions?.[0]?.status, (status) => status === "Unknown");
  }, { clock });
});

test("after a pause of the server nodes are heard before they are said to be silent", () => {
  const clock = movableClock();
  return withControllers((deps) => nodeLifecycleControllers(deps), async (api, call) => {
    await api.client.resource(NODES).create(node("n"), call);
    await eventually(() => api.all(EVENTS), (all) => all.length > 0);
    const ready = () => api.all(NODES)[0]?.status?.conditions?.[0]?.status;
    clock.aheadMs += 3_600_000; // it was stopped, say
    await looks();
    expect(ready()).toBe("True");
    await pass(clock, 40_000);
    await eventually(ready, (status) => status === "Unknown");
  }, { clock });
});

test("when every node is silent none is tainted for eviction", () => {
  const clock = movableClock();
  return withControllers((deps) => nodeLifecycleControllers(deps), async (api, call) => {
    await api.client.resource(NODES).create(node("only"), call);
    await eventually(() => api.all(EVENTS), (all) => all.length > 0);
    await pass(clock, 60_000);
    await eventually(() => api.all(NODES)[0]?.spec?.taints?.map(({ effect }) => effect), (effects) => effects?.join() === "NoSchedule");
    await looks();
    expect(api.all(NODES)[0]?.spec?.taints?.map(({ effect }) => effect)).toEqual(["NoSchedule"]);
  }, { clock });
});

test("pods of a node that is gone for a while are removed, and those that never had one", () => {
  const clock = movableClock();
  return withControllers((deps) => [podGcController(deps)], async (api, call) => {
    const pods = api.client.resource(PODS);
    await api.client.resource(NODES).create(node("here"), call);
    const orphan = pod("orphan", { nodeName: "gone" });
    await pods.create({ ...orphan, metadata: { ...orphan.metadata, finalizers: ["x"] } }, call);
    await pods.create(pod("fine", { nodeName: "here" }), call);
    const waiting = await pods.create({ ...pod("unscheduled", {}), metadata: { name: "unscheduled", namespace: "default", finalizers: ["x"] } }, call);
    await pods.delete(waiting, { gracePeriodSeconds: 30 }, call);
    await eventually(() => api.all(PODS).find(({ metadata }) => metadata.name === "unscheduled")?.status?.phase, (phase) => phase === "Failed");
    expect(api.all(PODS).map(({ metadata }) => metadata.name)).toContain("orphan");
    clock.aheadMs += 41_000;
    const deleting = await eventually(() => api.all(PODS).find(({ metadata }) => metadata.name === "orphan"), (one) => one?.metadata.deletionTimestamp !== undefined);
    expect(deleting?.status).toMatchObject({ phase: "Failed", observedGeneration: 1, conditions: [{ type: "Ready" }, { type: "DisruptionTarget", observedGeneration: 1, reason: "DeletionByPodGC", message: "PodGC: node no longer exists" }] });
    expect(api.all(PODS).find(({ metadata }) => metadata.name === "fine")?.metadata.deletionTimestamp).toBeUndefined();
  }, { clock });
});

test("finished pods beyond the limit: evicted ones first, then the oldest", () => {
  const one = (name: string, phase: "Succeeded" | "Failed" | "Running", creationTimestamp: string, reason?: string) => ({ metadata: { name, creationTimestamp }, status: { phase, reason } }) as Pod;
  const all = [one("new", "Succeeded", "3"), one("old", "Failed", "1"), one("evicted", "Failed", "4", "Evicted"), one("running", "Running", "0")];
  expect(terminatedBeyond(all, 1).map(({ metadata }) => metadata.name)).toEqual(["evicted", "old"]);
});

test("a ClusterRole that is a sum follows its parts", () =>
  withControllers((deps) => [clusterRoleAggregationController(deps)], async (api, call) => {
    const roles = api.client.resource(CLUSTER_ROLES);
    const role = (name: string, labels: Record<string, string>, resource: string) => ({ apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name, labels }, rules: [{ apiGroups: [""], resources: [resource], verbs: ["get"] }] });
    await roles.create({ apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name: "sum" }, aggregationRule: { clusterRoleSelectors: [{ matchLabels: { sum: "yes" } }] } }, call);
    await roles.create(role("b", { sum: "yes" }, "pods"), call);
    await roles.create(role("a", { sum: "yes" }, "nodes"), call);
    await roles.create(role("c", {}, "secrets"), call);
    const resourcesOf = (name: string) => api.all(CLUSTER_ROLES).find(({ metadata }) => metadata.name === name)?.rules?.map(({ resources }) => resources?.[0]).join();
    await eventually(() => resourcesOf("sum"), (seen) => seen === "nodes,pods");
    const lonely = { ...role("lonely", {}, "services"), aggregationRule: { clusterRoleSelectors: [{ matchLabels: { nobody: "yes" } }] } };
    await roles.create(lonely, call); // of no parts: nothing is said of its rules
    await roles.create(role("d", { sum: "yes" }, "events"), call);
    await eventually(() => resourcesOf("sum"), (seen) => seen === "nodes,pods,events");
    expect(resourcesOf("lonely")).toBe("services");
  }));

test("what a rule says is read once, however many sums it is in and however often they are put together", () =>
  withControllers((deps) => [clusterRoleAggregationController(deps)], async (api, call) => {
    const roles = api.client.resource(CLUSTER_ROLES), sums = Array.from({ length: 10 }, (_, i) => `sum${i}`);
    for (const name of sums) await roles.create({ apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name }, aggregationRule: { clusterRoleSelectors: [{ matchLabels: { sum: "yes" } }] } }, call);
    const stringify = vi.spyOn(JSON, "stringify");
    for (let i = 0; i < 20; i++) {
      await roles.create({ apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name: `part${i}`, labels: { sum: "yes" } }, rules: [{ apiGroups: [""], resources: [`r${i}`], verbs: ["get"] }] }, call);
      await eventually(() => api.all(CLUSTER_ROLES).filter(({ metadata, rules = [] }) => sums.includes(metadata.name) && rules.length === i + 1).length, (count) => count === sums.length);
    }
    const read = stringify.mock.calls.filter(([value]) => value === "apiGroups").length;
    stringify.mockRestore();
    const versions = 20 + sums.length * (20 * 21) / 2; // of rules: each of the parts', and all of each sum's versions
    expect(read).toBeLessThanOrEqual(versions);
  }));
