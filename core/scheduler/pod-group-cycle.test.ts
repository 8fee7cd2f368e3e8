/** Groups of pods over the real API server, in one process. Cases: kubernetes v1.36 test/integration/scheduler/podgroup/podgroup_test.go */
import { expect, test } from "vitest";
import type { Node, Pod } from "../api/gen/core.v1.ts";
import type { PodGroup } from "../api/gen/scheduling.v1alpha2.ts";
import type { ApiObject, NewObject } from "../api/meta/object-meta.ts";
import type { ResourceRef } from "../client/client.ts";
import { eventWriter } from "../client/events.ts";
import { informerFactory } from "../client/informer-factory.ts";
import { DEVICE_CLASSES, EVENTS, NAMESPACES, NODES, POD_GROUPS, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES } from "../client/resources.ts";
import { systemClock as clock } from "../lifecycle/clock.ts";
import { systemRandom as random } from "../lifecycle/random.ts";
import { silentLog as log } from "../observe/log.ts";
import { metricsRegistry } from "../observe/metrics.ts";
import { inProcessServer } from "../../test/in-process-server.ts";
import { explanationTable } from "./explain-table.ts";
import { SchedulingExplainer } from "./explainer.ts";
import { defaultProfile } from "./plugins.ts";
import { scheduler } from "./scheduler.ts";

interface Lab {
  /** Pods of one CPU each, of a group or of none; one after the other. */
  pods(names: readonly string[], options?: { readonly group?: string; readonly priority?: number; readonly cpu?: string; readonly spec?: object }): Promise<void>;
  /** `minCount`: of a gang; `more`: the topology its pods stay within, or other fields. */
  group(name: string, minCount?: number, more?: string | object): Promise<void>;
  make<T extends ApiObject>(ref: ResourceRef<T>, object: object): Promise<Readonly<T>>;
  get<T extends ApiObject>(ref: ResourceRef<T>, name: string): Promise<Readonly<T>>;
  remove(name: string): Promise<void>;
  pod(name: string): Promise<Readonly<Pod> | undefined>;
  podGroup(name: string): Promise<Readonly<PodGroup>>;
  until(what: () => Promise<boolean>): Promise<void>;
  scheduled(...names: string[]): Promise<void>;
  /** What they are told, once all of them are. */
  unschedulable(...names: string[]): Promise<string[]>;
  /** In which queue it stands. */
  queueOf(name: string): Promise<string | undefined>;
  explained(name: string): Promise<string>;
  events(reason: string): Promise<string[]>;
  readonly metrics: () => string;
}

const GATES: ReadonlySet<string> = new Set(["GenericWorkload", "GangScheduling"]);

/** A cluster of one node with four CPUs, or of nodes in `racks`: how many CPUs each has. */
async function withGroups(body: (lab: Lab) => Promise<void>, gates = GATES, racks: Readonly<Record<string, readonly string[]>> = { "": ["4"] }): Promise<void> {
  const stop = new AbortController(), { signal } = stop, call = { signal };
  const server = await inProcessServer({ signal, gates, runtimeConfig: ["scheduling.k8s.io/v1alpha2=true"] });
  const client = server.client("system:kube-scheduler");
  const informers = informerFactory({ client, clock, random, log });
  const events = eventWriter({ client, clock, random, log });
  const metrics = metricsRegistry(), profiles = [defaultProfile(gates)];
  const explainer = new SchedulingExplainer({ informers, profiles, clock });
  const lives = [informers, events, scheduler({ client, nodeName: "server", informers, events, clock, random, log, metrics, profiles, explainer, gates: new Set(["GenericWorkload"]), backoff: { minMs: 20, maxMs: 200 } })].map((part) => part.run(signal, () => {}));
  const inDefault = (name: string) => ({ metadata: { name, namespace: "default" } });
  await client.resource(NAMESPACES).create({ apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } } as never, call);
  for (const [rack, cpus] of Object.entries(racks)) for (const [i, cpu] of cpus.entries()) {
    const node = await client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: rack ? `${rack}${i}` : "node", labels: { rack } }, spec: {} } as NewObject<Node>, call);
    const allocatable = { cpu, memory: "4Gi", pods: "110" };
    await client.resource(NODES).updateStatus({ ...node, status: { ...node.status, allocatable, capacity: allocatable } } as Node, call);
  }
  const pod = (name: string) => client.resource(PODS).get(inDefault(name), call).catch(() => undefined);
  const explain = async (name: string) => (await explainer.explain("default", name, signal))!;
  const until = async (holds: () => Promise<boolean>): Promise<void> => {
    const endMs = performance.now() + 60_000;
    while (!(await holds())) {
      if (performance.now() > endMs) throw new Error(`not in time: ${JSON.stringify((await client.resource(PODS).list({ namespace: "default" }, call)).items.map(({ metadata, spec, status }) => [metadata.name, spec.nodeName, status?.conditions]))}`);
      await Bun.sleep(5);
    }
  };
  const whyNot = async (name: string): Promise<string | undefined> => (await pod(name))?.status?.conditions?.find(({ type, status, reason }) => type === "PodScheduled" && status === "False" && reason === "Unschedulable")?.message;
  try {
    await body({
      pod, until, metrics: () => metrics.render(),
      async pods(names, { group, priority = 100, cpu = "1", spec = {} } = {}) {
        for (const name of names)
          await client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", ...inDefault(name), spec: { priority, terminationGracePeriodSeconds: 0, ...(group && { schedulingGroup: { podGroupName: group } }), ...spec, containers: [{ name: "c", image: "i", resources: { requests: { cpu } } }] } } as unknown as NewObject<Pod>, call);
      },
      async group(name, minCount, more = {}) {
        await client.resource(POD_GROUPS).create({ apiVersion: "scheduling.k8s.io/v1alpha2", kind: "PodGroup", ...inDefault(name), spec: { schedulingPolicy: minCount === undefined ? { basic: {} } : { gang: { minCount } }, ...(typeof more === "string" ? { schedulingConstraints: { topology: [{ key: more }] } } : more) } } as NewObject<PodGroup>, call);
      },
      make: (ref, object) => client.resource(ref).create({ apiVersion: `${ref.group}/${ref.version}`, kind: ref.kind, ...object } as never, call),
      get: (ref, name) => client.resource(ref).get(inDefault(name), call),
      remove: async (name) => void (await client.resource(PODS).delete(inDefault(name), {}, call)),
      podGroup: (name) => client.resource(POD_GROUPS).get(inDefault(name), call),
      scheduled: (...names) => until(async () => (await Promise.all(names.map(pod))).every((one) => one?.spec.nodeName === "node")),
      async unschedulable(...names) {
        await until(async () => (await Promise.all(names.map(whyNot))).every((why) => why !== undefined));
        return (await Promise.all(names.map(whyNot))).map((why) => why ?? "");
      },
      queueOf: async (name) => (await explain(name)).queue?.queue,
      explained: async (name) => explanationTable(await explain(name)).split("\n").slice(2, 7).join("\n"),
      async events(reason) {
        await Bun.sleep(50);
        return (await client.resource(EVENTS).list({ namespace: "default" }, call)).items.filter((event) => event.reason === reason).map(({ message, involvedObject }) => `${involvedObject.name}: ${message}`).sort();
      },
    });
  } finally {
    stop.abort();
    await Promise.all([...lives, server.ended]);
  }
}

const ALLOWED_LATER = "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, one or more plugins asked to wait and no plugin rejected pod";
const NO_ROOM = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.";

test("a gang is scheduled when its PodGroup and the room for it are there, and the PodGroup is told", () => withGroups(async ({ group, pods, scheduled, podGroup, until, metrics }) => {
  await group("pg", 3);
  await pods(["p1", "p2", "p3"], { group: "pg" });
  await scheduled("p1", "p2", "p3");
  await until(async () => (await podGroup("pg")).status?.conditions !== undefined);
  const { metadata, status } = await podGroup("pg");
  expect(status?.conditions).toEqual([{ type: "PodGroupScheduled", status: "True", reason: "Scheduled", message: "", observedGeneration: metadata.generation, lastTransitionTime: expect.any(String) }]);
  expect(metrics()).toContain('scheduler_podgroup_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1\n');
  expect(metrics()).toContain('scheduler_permit_wait_duration_seconds_count{result="Success"} 2\n');
}));

test("a gang waits for its quorum, untold; who asks is told what it waits for", () => withGroups(async ({ group, pods, pod, scheduled, queueOf, until, explained, metrics }) => {
  await group("pg", 3);
  await pods(["p1", "p2"], { group: "pg" });
  await until(async () => (await queueOf("p2")) === "gated");
  expect([await queueOf("p1"), (await pod("p1"))?.status?.conditions]).toEqual(["gated", undefined]);
  expect(await explained("p1")).toBe("State:      Gated\nWhy:        waiting for minCount pods from a gang to appear in scheduling queue\nQueue:      gated, 0 attempts so far\nGroup:      pg, a gang of at least 3: 0 of 2 pods have a node\n");
  expect(metrics()).toContain('scheduler_unschedulable_pods{plugin="GangScheduling",profile="default-scheduler"} 2\n');
  await pods(["p3"], { group: "pg" });
  await scheduled("p1", "p2", "p3");
  expect(metrics()).toContain('scheduler_queue_incoming_pods_total{event="UnschedulablePodAdd",queue="active"} 3\n');
}));

test("a gang waits for its PodGroup, then for room; nobody of it is bound until there is enough, and all are told why", () => withGroups(async ({ group, pods, remove, pod, scheduled, unschedulable, queueOf, until, explained, podGroup, events, metrics }) => {
  await pods(["blocker"], { cpu: "2" });
  await scheduled("blocker");
  await pods(["p1", "p2", "p3"], { group: "pg" });
  await until(async () => (await queueOf("p3")) === "gated");
  expect(await explained("p1")).toContain('Why:        waiting for pods\'s pod group "pg" to appear in scheduling queue\n');
  await group("pg", 3);
  expect(await unschedulable("p1", "p2", "p3")).toEqual([ALLOWED_LATER, ALLOWED_LATER, NO_ROOM]);
  await until(async () => (await podGroup("pg")).status?.conditions?.[0]?.status === "False");
  expect((await podGroup("pg")).status?.conditions).toMatchObject([{ type: "PodGroupScheduled", status: "False", reason: "Unschedulable", message: "pod group is unschedulable" }]);
  expect(await explained("p1")).toContain("Group:      pg, a gang of at least 3: 0 of 3 pods have a node; Unschedulable: pod group is unschedulable");
  expect(new Set((await events("FailedScheduling")).filter((text) => text.startsWith("p1")))).toEqual(new Set([`p1: ${ALLOWED_LATER}`]));
  expect((await Promise.all(["p1", "p2", "p3"].map(pod))).map((one) => [one?.spec.nodeName, one?.status?.nominatedNodeName])).toEqual([[undefined, undefined], [undefined, undefined], [undefined, undefined]]);
  expect(metrics()).toMatch(/scheduler_podgroup_schedule_attempts_total\{profile="default-scheduler",result="unschedulable"\} [1-9]/);
  await remove("blocker");
  await scheduled("p1", "p2", "p3");
  await until(async () => (await podGroup("pg")).status?.conditions?.[0]?.reason === "Scheduled");
}));

test("a gang may have more pods than it needs: those that do not fit wait alone, and their PodGroup stays scheduled", () => withGroups(async ({ group, pods, remove, pod, scheduled, until, podGroup }) => {
  await pods(["blocker"]);
  await scheduled("blocker");
  await pods(["p1", "p2", "p3", "p4"], { group: "pg" });
  await group("pg", 3);
  const conditions = async () => Promise.all(["p1", "p2", "p3", "p4"].map(async (name) => { const one = await pod(name); return one?.spec.nodeName ?? one?.status?.conditions?.[0]?.message; }));
  await until(async () => { const all = await conditions(); return all.filter((one) => one === "node").length === 3 && all.includes(NO_ROOM); });
  await until(async () => (await podGroup("pg")).status?.conditions?.[0]?.reason === "Scheduled");
  await remove("blocker");
  await scheduled("p1", "p2", "p3", "p4");
  expect((await podGroup("pg")).status?.conditions).toMatchObject([{ status: "True", reason: "Scheduled" }]);
}));

test.each([["p", ["p1", "other-p1", "p2", "other-p2", "p3", "other-p3"]], ["other-p", ["other-p3", "p3", "other-p2", "p2", "other-p1", "p1"]]])("of two gangs that do not both fit one gets off, the one that was complete first: %s", (winner, order) => withGroups(async ({ group, pods, pod, scheduled, unschedulable }) => {
  await group("pg", 3);
  await group("other", 3);
  for (const name of order) await pods([name], { group: name.startsWith("other") ? "other" : "pg" });
  const loser = winner === "p" ? "other-p" : "p";
  await scheduled(...[1, 2, 3].map((i) => `${winner}${i}`));
  await unschedulable(...[1, 2, 3].map((i) => `${loser}${i}`));
  expect(await Promise.all([1, 2, 3].map(async (i) => (await pod(`${loser}${i}`))?.spec.nodeName))).toEqual([undefined, undefined, undefined]);
}));

test("a gang takes the place of less important pods: all of it waits for them to leave", () => withGroups(async ({ group, pods, pod, scheduled, podGroup, until, events }) => {
  await pods(["low"], { cpu: "2", priority: 10 });
  await scheduled("low");
  await group("pg", 3);
  await pods(["p1", "p2", "p3", "p4"], { group: "pg" });
  await scheduled("p1", "p2", "p3", "p4");
  await until(async () => (await podGroup("pg")).status?.conditions?.[0]?.reason === "Scheduled");
  expect(await pod("low")).toBeUndefined();
  expect((await events("Preempted")).map((text) => text.replace(/pod \S+ on/, "pod … on"))).toEqual(["low: Preempted by pod … on node node"]); // once, though two need it gone
  expect(await events("FailedScheduling")).toContain("p1: pod group is unschedulable, pod group is waiting for preemption to complete");
}));

test("nobody is evicted for a gang that would not get off all the same", () => withGroups(async ({ group, pods, pod, scheduled, unschedulable }) => {
  await pods(["low"], { priority: 10 });
  await pods(["high"], { cpu: "2", priority: 100 });
  await scheduled("low", "high");
  await group("pg", 3);
  await pods(["p1", "p2", "p3"], { group: "pg" });
  const [p1, p2, p3] = await unschedulable("p1", "p2", "p3");
  expect([p3, p1]).toEqual([ALLOWED_LATER, ALLOWED_LATER]); // who completes a gang comes first, and the second could have had the place of "low"
  expect(p2).toMatch(/^0\/1 nodes are available: 1 Insufficient cpu\./);
  expect((await pod("low"))?.spec.nodeName).toBe("node");
}));

test("pods of a basic group are scheduled each by itself, but not before there is the PodGroup", () => withGroups(async ({ group, pods, remove, pod, scheduled, queueOf, until, podGroup }) => {
  await pods(["blocker"], { cpu: "2" });
  await scheduled("blocker");
  await pods(["p1", "p2", "p3"], { group: "pg" });
  await until(async () => (await queueOf("p3")) === "gated");
  await group("pg");
  const nodes = async () => Promise.all(["p1", "p2", "p3"].map(async (name) => (await pod(name))?.spec.nodeName));
  await until(async () => (await nodes()).filter((name) => name === "node").length === 2);
  await until(async () => (await podGroup("pg")).status?.conditions?.[0]?.reason === "Scheduled");
  await remove("blocker");
  await scheduled("p1", "p2", "p3");
}));

test("without the plugin a group waits neither for its PodGroup nor for others", () => withGroups(async ({ pods, scheduled }) => {
  await pods(["p1"], { group: "pg" });
  await scheduled("p1");
}, new Set(["GenericWorkload"])));

test("pods of a gang that ends, or goes, count no more; one that is held back for other reasons counts", () => withGroups(async ({ group, pods, remove, scheduled, queueOf, until, pod }) => {
  await group("pg", 2);
  await pods(["p1"], { group: "pg" });
  await pods(["p2"], { group: "pg", spec: { schedulingGates: [{ name: "example.com/wait" }] } });
  await until(async () => (await pod("p1"))?.status?.conditions?.find(({ reason }) => reason === "Unschedulable")?.message === ALLOWED_LATER);
  await remove("p2");
  await until(async () => (await queueOf("p1")) === "gated");
  await pods(["p3"], { group: "pg" });
  await scheduled("p1", "p3");
}));

test("pods of a gang may share a claim: the devices found for the first are the others', too", () => withGroups(async ({ group, pods, make, get, scheduled }) => {
  await make(DEVICE_CLASSES, { metadata: { name: "gpu" }, spec: {} });
  await make(RESOURCE_SLICES, { metadata: { name: "s" }, spec: { driver: "gpu.example.com", nodeName: "node", pool: { name: "node", generation: 1, resourceSliceCount: 1 }, devices: [{ name: "gpu-0" }] } });
  await make(RESOURCE_CLAIMS, { metadata: { name: "one", namespace: "default" }, spec: { devices: { requests: [{ name: "gpu", exactly: { deviceClassName: "gpu" } }] } } });
  await group("pg", 3);
  await pods(["p1", "p2", "p3"], { group: "pg", spec: { resourceClaims: [{ name: "gpu", resourceClaimName: "one" }] } });
  await scheduled("p1", "p2", "p3");
  const { status } = await get(RESOURCE_CLAIMS, "one");
  expect([status?.reservedFor?.map(({ name }) => name).sort(), status?.allocation?.devices?.results?.map(({ device }) => device)]).toEqual([["p1", "p2", "p3"], ["gpu-0"]]);
}));

test("pods of no group are none of a gang's business", () => withGroups(async ({ group, pods, scheduled, queueOf, until }) => {
  await group("pg", 2);
  await pods(["p1"], { group: "pg" });
  await pods(["alone"]);
  await scheduled("alone");
  await until(async () => (await queueOf("p1")) === "gated");
}));

const WITH_TOPOLOGY: ReadonlySet<string> = new Set([...GATES, "TopologyAwareWorkloadScheduling"]);
const nodesOf = async ({ pod }: Pick<Lab, "pod">, ...names: string[]) => Promise.all(names.map(async (name) => (await pod(name))?.spec.nodeName));

test("a gang stays within one rack, the one that has room for all of it; pods that come later go there, too, or nowhere", () => withGroups(async ({ group, pods, pod, until, podGroup }) => {
  await group("pg", 3, "rack");
  await pods(["p1", "p2", "p3"], { group: "pg" });
  await until(async () => (await nodesOf({ pod }, "p1", "p2", "p3")).every((name) => name?.startsWith("b")));
  await until(async () => (await podGroup("pg")).status?.conditions?.[0]?.reason === "Scheduled");
  await pods(["p4", "p5"], { group: "pg" });
  await until(async () => (await nodesOf({ pod }, "p4", "p5")).filter((name) => name?.startsWith("b")).length === 1);
  const late = async () => (await Promise.all([pod("p4"), pod("p5")])).find((one) => !one?.spec.nodeName)?.status?.conditions?.[0]?.message;
  await until(async () => (await late()) !== undefined);
  expect(await late()).toBe("0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to placement-based pod group scheduling limitation");
}, WITH_TOPOLOGY, { a: ["1", "1"], b: ["2", "2"], c: ["2"] }));

test("a gang that no rack has room for waits, though there is room in all of them; nobody is evicted for it", () => withGroups(async ({ group, pods, pod, until, podGroup }) => {
  await pods(["low"], { priority: 1 });
  await until(async () => (await nodesOf({ pod }, "low"))[0] !== undefined);
  await group("pg", 3, "rack");
  await pods(["p1", "p2", "p3"], { group: "pg" });
  await until(async () => (await podGroup("pg")).status?.conditions !== undefined);
  expect((await podGroup("pg")).status?.conditions).toMatchObject([{ status: "False", reason: "Unschedulable", message: "0/2 placements are available, first placement status: pod group is unschedulable" }]);
  expect([await nodesOf({ pod }, "p1", "p2", "p3"), (await pod("low"))?.metadata.deletionTimestamp]).toEqual([[undefined, undefined, undefined], undefined]);
  await group("free", 1);
  await pods(["q1"], { group: "free" });
  await until(async () => (await nodesOf({ pod }, "q1"))[0] !== undefined); // without a constraint it is as ever
}, WITH_TOPOLOGY, { a: ["2"], b: ["2"] }));

test("where no node has the label there is no placement, and all are told", () => withGroups(async ({ group, pods, pod, until, podGroup, unschedulable }) => {
  await group("pg", 1, "zone");
  await pods(["p1"], { group: "pg" });
  expect(await unschedulable("p1")).toEqual(["no feasible placements found"]);
  await until(async () => (await podGroup("pg")).status?.conditions?.[0]?.message === "no feasible placements found");
  expect(await nodesOf({ pod }, "p1")).toEqual([undefined]);
}, WITH_TOPOLOGY));

const WITH_PREEMPTION: ReadonlySet<string> = new Set([...GATES, "WorkloadAwarePreemption"]);
const stands = async ({ pod }: Pick<Lab, "pod">, ...names: string[]) => Promise.all(names.map(async (name) => { const one = await pod(name); return one?.spec.nodeName ?? (one ? "waits" : "gone"); }));

test("others go for a gang as a whole, wherever they are, and no more than have to", () => withGroups(async ({ group, pods, pod, until, podGroup, events, metrics }) => {
  await pods(["a-big"], { cpu: "2", priority: 10, spec: { nodeName: "a0" } });
  await pods(["b-low"], { priority: 10, spec: { nodeName: "b0" } });
  await group("pg", 3, { priority: 100 });
  await pods(["p1", "p2", "p3"], { group: "pg" });
  await until(async () => (await stands({ pod }, "p1", "p2", "p3")).every((node) => node === "a0" || node === "b0"));
  expect(await stands({ pod }, "a-big", "b-low")).toEqual(["gone", "b0"]);
  const { metadata } = await podGroup("pg");
  expect(await events("Preempted")).toEqual([`a-big: Preempted by podgroup ${metadata.uid} on node cluster`]);
  expect((await events("FailedScheduling")).some((text) => text.endsWith(": pod group is unschedulable"))).toBe(true);
  expect((await events("FailedScheduling")).some((text) => text.endsWith("preemption: not eligible due to workload aware preemption enabled"))).toBe(true);
  expect(metrics()).toMatch(/scheduler_podgroup_schedule_attempts_total\{profile="default-scheduler",result="waiting_on_preemption"\} 1\n/);
}, WITH_PREEMPTION, { a: ["2"], b: ["2"] }));

test("pods of a group that goes as one go together, as important as their PodGroup; of one that does not, each by itself", () => withGroups(async ({ group, pods, pod, until }) => {
  await group("whole", undefined, { priority: 20, disruptionMode: "PodGroup" });
  await group("each", undefined, { priority: 1000 });
  await pods(["w1", "w2"], { group: "whole", priority: 5 });
  await pods(["e1", "e2"], { group: "each", priority: 10 });
  await until(async () => (await stands({ pod }, "w1", "w2", "e1", "e2")).every((node) => node === "node"));
  await group("first", 1, { priority: 100 });
  await pods(["p1"], { group: "first" });
  await until(async () => (await stands({ pod }, "p1"))[0] === "node");
  expect((await stands({ pod }, "w1", "w2", "e1", "e2")).filter((one) => one === "gone").length).toBe(1);
  expect(await stands({ pod }, "w1", "w2")).toEqual(["node", "node"]); // of the pods it would have been these
  await group("second", 3, { priority: 100 });
  await pods(["q1", "q2", "q3"], { group: "second" });
  await until(async () => (await stands({ pod }, "q1", "q2", "q3")).every((node) => node === "node"));
  expect(await stands({ pod }, "p1", "w1", "w2", "e1", "e2")).toEqual(["node", "gone", "gone", "gone", "gone"]);
}, WITH_PREEMPTION));

test.each([
  ["as important", { priority: 10 }, {}, ", No preemption victims found for incoming preemptor"],
  ["too large", { priority: 100, minCount: 5 }, {}, ", pod group is unschedulable"],
  ["modest", { priority: 100 }, { preemptionPolicy: "Never" }, ", not eligible due to preemptionPolicy=Never."],
])("nobody goes for a group that is %s, and the group is told why", (_name, { minCount = 3, ...spec }: { minCount?: number; priority: number }, more, told) => withGroups(async ({ group, pods, pod, until, podGroup, scheduled }) => {
  await pods(["low"], { cpu: "2", priority: 10 });
  await scheduled("low");
  await group("pg", minCount, spec);
  const names = Array.from({ length: minCount }, (_, i) => `p${i}`);
  await pods(names, { group: "pg", spec: more });
  await until(async () => (await podGroup("pg")).status?.conditions !== undefined);
  expect((await podGroup("pg")).status?.conditions).toMatchObject([{ status: "False", reason: "Unschedulable", message: `pod group is unschedulable${told}` }]);
  expect(await stands({ pod }, "low")).toEqual(["node"]);
}, WITH_PREEMPTION));
