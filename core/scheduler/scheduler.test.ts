/** The scheduler over the real API server, in one process. */
import { expect, test } from "vitest";
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from "../api/gen/core.v1.ts";
import type { ResourceClaim } from "../api/gen/resource.v1.ts";
import type { StorageClass } from "../api/gen/storage.v1.ts";
import type { NewObject } from "../api/meta/object-meta.ts";
import type { Client, ResourceRef } from "../client/client.ts";
import { eventWriter } from "../client/events.ts";
import { informerFactory } from "../client/informer-factory.ts";
import { DEVICE_CLASSES, EVENTS, NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, STORAGE_CLASSES } from "../client/resources.ts";
import { systemClock as clock } from "../lifecycle/clock.ts";
import { systemRandom as random } from "../lifecycle/random.ts";
import { silentLog as log } from "../observe/log.ts";
import { metricsRegistry } from "../observe/metrics.ts";
import { inProcessServer } from "../../test/in-process-server.ts";
import type { SchedulerView, SchedulingExplainer } from "./explainer.ts";
import type { Extender } from "./extender.ts";
import { DEFAULT_PROFILE, type Profile } from "./plugins.ts";
import { scheduler } from "./scheduler.ts";
import { nodeResourcesFitScore } from "./scores/resources.ts";

interface Lab {
  readonly client: Client;
  readonly call: { readonly signal: AbortSignal };
  node(name: string, allocatable?: Record<string, string>): Promise<void>;
  pod(name: string, spec?: Record<string, unknown>, cpu?: string): Promise<void>;
  get(name: string): Promise<Readonly<Pod>>;
  /** The pod, once `holds`. */
  until(name: string, holds: (pod: Readonly<Pod>) => boolean): Promise<Readonly<Pod>>;
  events(reason: string): Promise<string[]>;
  readonly metrics: () => string;
  /** The scheduler alone: resolves once it has stopped. */
  stop(): Promise<void>;
}

async function withScheduler(body: (lab: Lab) => Promise<void>, { profiles, extenders, explainer, through = (client) => client }: { readonly profiles?: readonly Profile[]; readonly extenders?: readonly Partial<Extender>[]; readonly explainer?: Pick<SchedulingExplainer, "attach">; readonly through?: (client: Client) => Client } = {}): Promise<void> {
  const stop = new AbortController();
  const { signal } = stop;
  const server = await inProcessServer({ signal });
  const client = server.client("system:kube-scheduler");
  const informers = informerFactory({ client, clock, random, log });
  const events = eventWriter({ client, clock, random, log });
  const metrics = metricsRegistry();
  const lives = [informers, events].map((part) => part.run(signal, () => {}));
  const leading = new AbortController();
  const led = scheduler({ client: through(client), nodeName: "server", informers, events, clock, random, log, metrics, profiles, extenders: extenders as Extender[] | undefined, explainer: explainer as SchedulingExplainer | undefined }).run(AbortSignal.any([signal, leading.signal]), () => {});
  const call = { signal };
  await client.resource(NAMESPACES).create({ apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } } as never, call);
  const get = (name: string) => client.resource(PODS).get({ metadata: { name, namespace: "default" } }, call);
  try {
    await body({
      client, call, get, metrics: () => metrics.render(),
      async stop() {
        leading.abort();
        await led;
      },
      async node(name, allocatable = { cpu: "2", memory: "4Gi", pods: "110" }) {
        const made = await client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name, labels: { "kubernetes.io/hostname": name } }, spec: {} } as NewObject<Node>, call);
        await client.resource(NODES).updateStatus({ ...made, status: { ...made.status, allocatable, capacity: allocatable } } as Node, call);
      },
      async pod(name, spec = {}, cpu = "100m") {
        await client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default" }, spec: { terminationGracePeriodSeconds: 0, ...spec, containers: [{ name: "c", image: "i", resources: { requests: { cpu } } }] } } as unknown as NewObject<Pod>, call);
      },
      async until(name, holds) {
        const endMs = performance.now() + 60_000;
        for (;;) {
          const seen = await get(name).catch(() => undefined);
          if (seen && holds(seen)) return seen;
          if (performance.now() > endMs) throw new Error(`not in time: ${JSON.stringify(seen, null, 1)}`);
          await Bun.sleep(5);
        }
      },
      async events(reason) {
        await Bun.sleep(50);
        return (await client.resource(EVENTS).list({ namespace: "default" }, call)).items.filter((event) => event.reason === reason).map(({ message }) => message ?? "");
      },
    });
  } finally {
    stop.abort();
    await Promise.all([...lives, led, server.ended]);
  }
}

const on = (name: string) => ({ spec }: Readonly<Pod>) => spec.nodeName === name;

test("a pod waits for a node, is told why, and gets it when it comes", () => withScheduler(async ({ node, pod, until, events, metrics }) => {
  await pod("p");
  const waiting = await until("p", ({ status }) => status?.conditions?.some(({ reason }) => reason === "Unschedulable") ?? false);
  expect(waiting.status?.conditions?.[0]).toMatchObject({ type: "PodScheduled", status: "False", message: "no nodes available to schedule pods" });
  await node("a");
  await until("p", on("a"));
  expect(await events("FailedScheduling")).toContain("no nodes available to schedule pods");
  expect(await events("Scheduled")).toEqual(["Successfully assigned default/p to a"]);
  expect(metrics()).toMatch(/scheduler_schedule_attempts_total\{profile="default-scheduler",result="scheduled"\} 1/);
  expect(metrics()).toMatch(/scheduler_plugin_evaluation_total\{extension_point="Filter",plugin="NodeResourcesFit",profile="default-scheduler"\} [1-9]/);
  for (const point of ["PreFilter", "Filter", "Reserve", "Bind"]) expect(metrics()).toMatch(new RegExp(`scheduler_framework_extension_point_duration_seconds_count\\{extension_point="${point}",profile="default-scheduler",status="Success"\\} [1-9]`));
  expect(metrics()).not.toContain('extension_point="Filter",profile="default-scheduler",status="Unschedulable"'); // the search itself came to its end
  expect(metrics()).toMatch(/scheduler_plugin_evaluation_total\{extension_point="PreFilter",plugin="NodeResourcesFit",profile="default-scheduler"\} [1-9]/);
  expect(metrics()).not.toContain('extension_point="PreFilter",plugin="NodeName"');
  expect(metrics()).toContain("scheduler_pod_scheduled_after_flush_total 0\n");
  for (const event of ["NodeAdd", "UnschedulablePodAdd", "UnschedulablePodDelete", "AssignedPodAdd"]) expect(metrics()).toContain(`scheduler_event_handling_duration_seconds_count{event="${event}"} 1\n`);
  expect(metrics()).toMatch(/scheduler_event_handling_duration_seconds_count\{event="UnschedulablePodUpdate"\} [1-9]/);
  for (const series of ['batch_attempts_total{profile="default-scheduler",result="no_hint"}', 'get_node_hint_duration_seconds_count{hinted="no_hint",profile="default-scheduler"}']) expect(metrics()).toMatch(new RegExp(`scheduler_${RegExp.escape(series)} [1-9]`)); // there was no node to think of before
  for (const series of ['batch_cache_flushed_total{profile="default-scheduler",reason="empty_list"}', 'store_schedule_results_duration_seconds_count{profile="default-scheduler"}']) expect(metrics()).toContain(`scheduler_${series} 1\n`);
}));

test("a node that declares a feature brings back the pod that needs it", () => withScheduler(async ({ client, call, node, pod, until, metrics }) => {
  await node("a");
  await pod("p", { initContainers: [{ name: "i", image: "i", restartPolicy: "Never", restartPolicyRules: [{ action: "RestartAllContainers", exitCodes: { operator: "In", values: [1] } }] }] });
  const waiting = await until("p", ({ status }) => status?.conditions?.some(({ reason }) => reason === "Unschedulable") ?? false);
  expect(waiting.status?.conditions?.[0]?.message).toContain("1 node(s) didn't match Pod's required features");
  await client.resource(NODES).patch({ metadata: { name: "a" } }, "application/merge-patch+json", { status: { declaredFeatures: ["RestartAllContainersOnContainerExits"] } }, { ...call, subresource: "status" });
  await until("p", on("a"));
  expect(metrics()).toContain('scheduler_plugin_execution_duration_seconds_count{extension_point="Filter",plugin="NodeDeclaredFeatures",status="UnschedulableAndUnresolvable"} 1\n');
}));

test("pods of other schedulers, and gated ones, are left alone", () => withScheduler(async ({ client, call, node, pod, until, get, metrics }) => {
  await node("a");
  await pod("other", { schedulerName: "mine" });
  await pod("gated", { schedulingGates: [{ name: "example.com/wait" }] });
  await pod("p");
  await until("p", on("a"));
  expect([(await get("other")).spec.nodeName, (await get("gated")).spec.nodeName]).toEqual([undefined, undefined]);
  const { status } = await get("gated");
  expect(status?.conditions?.find(({ type }) => type === "PodScheduled")?.reason).toBe("SchedulingGated");
  expect(metrics()).toContain('scheduler_pending_pods{queue="gated"} 1');
  expect(metrics()).toContain('scheduler_queue_incoming_pods_total{event="UnschedulablePodAdd",queue="unschedulable"} 1');
  expect(metrics()).toContain('scheduler_unschedulable_pods{plugin="SchedulingGates",profile="default-scheduler"} 1');
  await client.resource(PODS).patch({ metadata: { name: "gated", namespace: "default" } }, "application/json-patch+json", [{ op: "remove", path: "/spec/schedulingGates" }], call);
  await until("gated", on("a"));
  expect(metrics()).toContain('scheduler_queue_incoming_pods_total{event="UnschedulablePodUpdatePodSchedulingGatesEliminated",queue="active"} 1');
  expect(metrics()).not.toContain('scheduler_unschedulable_pods{plugin="SchedulingGates"');
}));

test("a pod of higher priority takes the place of others, after telling them", () => withScheduler(async ({ client, call, node, pod, until, events }) => {
  await node("a", { cpu: "1", memory: "4Gi", pods: "110" });
  await pod("low", { priority: 1, terminationGracePeriodSeconds: 1 }, "800m");
  await pod("small", { priority: 1 }, "100m");
  await until("low", on("a"));
  await until("small", on("a"));
  await pod("high", { priority: 10 }, "800m");
  const low = await until("low", ({ metadata }) => metadata.deletionTimestamp !== undefined);
  expect(low.status?.conditions?.find(({ type }) => type === "DisruptionTarget")).toMatchObject({
    status: "True", reason: "PreemptionByScheduler", message: "default-scheduler: preempting to accommodate a higher priority pod",
  });
  const high = await until("high", ({ status }) => status?.nominatedNodeName === "a");
  expect(high.status?.conditions?.[0]).toMatchObject({ reason: "Unschedulable", message: "0/1 nodes are available: 1 Insufficient cpu." });
  await client.resource(PODS).delete(low, { gracePeriodSeconds: 0 }, call); // what a kubelet does
  await until("high", on("a"));
  await until("small", on("a"));
  expect(await events("Preempted")).toEqual([`Preempted by pod ${high.metadata.uid} on node a`]);
  expect(low.status?.conditions?.map(({ type }) => type)).toEqual(["PodScheduled", "DisruptionTarget"]); // what comes later stands later
  const told = (await client.resource(EVENTS).list({ namespace: "default" }, call)).items.map(({ reason, action, source, reportingComponent, reportingInstance, involvedObject, related, count, firstTimestamp }) => [reason, action, source, reportingComponent, reportingInstance, involvedObject.name, related?.name, count, firstTimestamp]);
  expect(told.filter(([, , , , , name]) => name !== "small").sort()).toEqual([
    ["FailedScheduling", "Scheduling", {}, "default-scheduler", "default-scheduler-server", "high", undefined, undefined, null],
    ["Preempted", "Preempting", {}, "default-scheduler", "default-scheduler-server", "low", undefined, undefined, null],
    ["Scheduled", "Binding", {}, "default-scheduler", "default-scheduler-server", "high", undefined, undefined, null],
    ["Scheduled", "Binding", {}, "default-scheduler", "default-scheduler-server", "low", undefined, undefined, null],
  ]);
}));

test("a pod that is being deleted gets no node, and is told so", () => withScheduler(async ({ client, call, node, pod, until, get, events }) => {
  await pod("p", { schedulingGates: [{ name: "example.com/wait" }] });
  const named = { metadata: { name: "p", namespace: "default" } };
  await client.resource(PODS).patch(named, "application/merge-patch+json", { metadata: { finalizers: ["example.com/held"] } }, call);
  await client.resource(PODS).delete(named, {}, call);
  await node("a");
  await client.resource(PODS).patch(named, "application/json-patch+json", [{ op: "remove", path: "/spec/schedulingGates" }], call);
  await pod("q");
  await until("q", on("a"));
  expect(await events("FailedScheduling")).toEqual(["skip schedule deleting pod: default/p"]);
  expect((await get("p")).spec.nodeName).toBeUndefined();
}));

/** Keeps nodes, without a word about the others. */
const keeps = (...kept: string[]): Partial<Extender> => ({
  name: "x", filters: true, isInterestedIn: () => true,
  filter: async (_pod, nodes) => ({ nodes: nodes.filter(({ name }) => kept.includes(name)), failed: {}, unresolvable: {} }),
});

test("where extenders leave no node and do not say why, neither does the scheduler; what has turned the pod down is known", () => withScheduler(async ({ node, pod, until, metrics }) => {
  await node("a");
  await node("b");
  await pod("p");
  const { status } = await until("p", ({ status }) => status?.conditions?.some(({ reason }) => reason === "Unschedulable") ?? false);
  expect(status?.conditions?.[0]?.message).toBe("0/2 nodes are available: no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.");
  expect(metrics()).toContain('scheduler_unschedulable_pods{plugin="Extender",profile="default-scheduler"} 1\n');
}, { extenders: [keeps()] }));

test("a node that the pod was nominated to and an extender turns down is not the only one that is looked at", () => withScheduler(async ({ client, call, node, pod, until, events }) => {
  await node("a");
  await node("b");
  await pod("p", { schedulingGates: [{ name: "example.com/wait" }] });
  const named = { metadata: { name: "p", namespace: "default" } };
  await client.resource(PODS).patch(named, "application/merge-patch+json", { status: { nominatedNodeName: "a" } }, { ...call, subresource: "status" });
  await client.resource(PODS).patch(named, "application/json-patch+json", [{ op: "remove", path: "/spec/schedulingGates" }], call);
  await until("p", on("b"));
  expect(await events("FailedScheduling")).toEqual([]);
}, { extenders: [keeps("b")] }));

test("an extender that should bind and cannot is passed over, if it may be", () => {
  const broken = (ignorable: boolean): Partial<Extender> => ({ name: "x", binds: true, ignorable, isInterestedIn: ({ metadata }) => metadata.name === "p", bind: () => Promise.reject(new Error("not today")) });
  return Promise.all([
    withScheduler(async ({ node, pod, until }) => { await node("a"); await pod("p"); await until("p", on("a")); }, { extenders: [broken(true)] }),
    withScheduler(async ({ node, pod, until }) => {
      await node("a");
      await pod("p");
      const { status } = await until("p", ({ status }) => status?.conditions?.some(({ reason }) => reason === "SchedulerError") ?? false);
      expect(status?.conditions?.[0]?.message).toBe("not today");
    }, { extenders: [broken(false)] }),
  ]);
});

test("where a profile lets pods be tried before their claims exist, they are told what is missing", () => withScheduler(async ({ node, pod, until }) => {
  await node("a");
  await pod("p", { resourceClaims: [{ name: "gpu", resourceClaimName: "none" }] });
  const { status } = await until("p", ({ status }) => status?.conditions?.some(({ reason }) => reason === "Unschedulable") ?? false);
  expect(status?.conditions?.[0]?.message).toMatch(/^0\/1 nodes are available: could not find ResourceClaim "default\/none"\./);
}, { profiles: [{ ...DEFAULT_PROFILE, awaitsClaims: false }] }));

test("a pod whose claims keep it off all nodes is told so, and that nothing was noted of its devices", () => withScheduler(async ({ node, pod, until, events }) => {
  await node("a");
  await pod("p", { priority: 1, volumes: [{ name: "v", persistentVolumeClaim: { claimName: "missing" } }] });
  const { status } = await until("p", ({ status }) => status?.conditions?.some(({ reason }) => reason === "Unschedulable") ?? false);
  const message = '0/1 nodes are available: persistentvolumeclaim "missing" not found. not found'; // as upstream says it
  expect(status?.conditions?.[0]?.message).toBe(message);
  expect(await events("FailedScheduling")).toEqual([message]);
}));

test("a claim that waits for its first consumer is bound, or provisioned, where the pod goes", () => withScheduler(async ({ client, call, node, pod, until, get }) => {
  await node("a");
  await node("b");
  const named = (name: string) => ({ metadata: { name, namespace: "default" } });
  for (const [name, provisioner] of [["local", "kubernetes.io/no-provisioner"], ["csi", "csi.example.com"]])
    await client.resource(STORAGE_CLASSES).create({ apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name: name! }, provisioner, volumeBindingMode: "WaitForFirstConsumer" } as NewObject<StorageClass>, call);
  const nodeAffinity = { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: ["b"] }] }] } };
  const volume = await client.resource(PERSISTENT_VOLUMES).create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "v" }, spec: { storageClassName: "local", capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], local: { path: "/x" }, nodeAffinity } } as unknown as NewObject<PersistentVolume>, call);
  await client.resource(PERSISTENT_VOLUMES).updateStatus({ ...volume, status: { phase: "Available" } } as PersistentVolume, call);
  for (const [name, storageClassName] of [["bound", "local"], ["made", "csi"]])
    await client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", ...named(name!), spec: { storageClassName, accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } } as NewObject<PersistentVolumeClaim>, call);
  await pod("p", { volumes: ["bound", "made"].map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })) });

  /** As the volume controller does once both sides point to each other. */
  const finish = async (name: string, volumeName: string): Promise<void> => {
    const claim = await client.resource(PERSISTENT_VOLUME_CLAIMS).get(named(name), call);
    await client.resource(PERSISTENT_VOLUME_CLAIMS).update({ ...claim, metadata: { ...claim.metadata, annotations: { ...claim.metadata.annotations, "pv.kubernetes.io/bind-completed": "yes" } }, spec: { ...claim.spec, volumeName } } as PersistentVolumeClaim, call);
  };
  const eventually = async (holds: () => Promise<boolean>): Promise<void> => { while (!(await holds())) await Bun.sleep(5); };
  await eventually(async () => (await client.resource(PERSISTENT_VOLUMES).get(volume, call)).spec.claimRef?.name === "bound");
  await eventually(async () => (await client.resource(PERSISTENT_VOLUME_CLAIMS).get(named("made"), call)).metadata.annotations?.["volume.kubernetes.io/selected-node"] === "b");
  await finish("bound", "v");
  await client.resource(PERSISTENT_VOLUMES).create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "w" }, spec: { storageClassName: "csi", capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: "/x" } } } as unknown as NewObject<PersistentVolume>, call);
  await Bun.sleep(30);
  const waiting = await get("p");
  expect([waiting.spec.nodeName, waiting.status?.nominatedNodeName]).toEqual([undefined, "b"]); // it is known where it will be
  await finish("made", "w");
  expect((await until("p", on("b"))).status?.nominatedNodeName).toBeUndefined();
}));

test("what was assumed of a claim and its volume is not kept once more is known, or that they are gone, though no pod asks for them again", () => {
  let view: SchedulerView | undefined;
  const attach = (lent: SchedulerView) => {
    view = lent;
    return () => undefined;
  };
  const assumed = (): number[] => [view!.cluster.storage.claims.size, view!.cluster.storage.volumes.size];
  return withScheduler(async ({ client, call, node, pod, until }) => {
    const [claims, volumes] = [client.resource(PERSISTENT_VOLUME_CLAIMS), client.resource(PERSISTENT_VOLUMES)];
    const claim = (name: string): Promise<Readonly<PersistentVolumeClaim>> => claims.get({ metadata: { name, namespace: "default" } }, call);
    const isBoundTo = async (name: string, volumeName: string): Promise<void> => {
      const now = await claim(name);
      await claims.update({ ...now, metadata: { ...now.metadata, annotations: { ...now.metadata.annotations, "pv.kubernetes.io/bind-completed": "yes" } }, spec: { ...now.spec, volumeName } } as PersistentVolumeClaim, call);
    };
    const volume = (name: string, storageClassName: string): Promise<Readonly<PersistentVolume>> => volumes.create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name }, spec: { storageClassName, capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: "/x" } } } as unknown as NewObject<PersistentVolume>, call);
    await node("a");
    const found = await volume("v", "local");
    await volumes.updateStatus({ ...found, status: { phase: "Available" } } as PersistentVolume, call);
    for (const [name, storageClassName, provisioner] of [["bound", "local", "kubernetes.io/no-provisioner"], ["made", "csi", "csi.example.com"]]) {
      await client.resource(STORAGE_CLASSES).create({ apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name: storageClassName! }, provisioner, volumeBindingMode: "WaitForFirstConsumer" } as NewObject<StorageClass>, call);
      await claims.create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: name!, namespace: "default" }, spec: { storageClassName, accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } } as NewObject<PersistentVolumeClaim>, call);
    }
    await pod("p", { volumes: ["bound", "made"].map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })) });
    await expect.poll(async () => [(await volumes.get(found, call)).spec.claimRef?.name, (await claim("made")).metadata.annotations?.["volume.kubernetes.io/selected-node"]]).toEqual(["bound", "a"]);
    expect(assumed()).toEqual([1, 1]);
    await volume("w", "csi");
    await isBoundTo("bound", "v");
    await isBoundTo("made", "w");
    await until("p", on("a"));
    await volumes.delete(found, {}, call);
    await expect.poll(assumed).toEqual([0, 0]);
  }, { explainer: { attach } });
});

test("devices are allocated to claims where the pod goes, and a pod waits until its claim exists and devices are free", () => withScheduler(async ({ client, call, node, pod, until, events }) => {
  await node("a");
  await node("b");
  const made = (ref: ResourceRef, object: object) => client.resource(ref).create({ apiVersion: "resource.k8s.io/v1", kind: ref.kind, ...object } as never, call);
  const claim = (name: string) => made(RESOURCE_CLAIMS, { metadata: { name, namespace: "default" }, spec: { devices: { requests: [{ name: "gpu", exactly: { deviceClassName: "gpu" } }] } } });
  const using = (name: string) => ({ resourceClaims: [{ name: "gpu", resourceClaimName: name }] });
  await made(DEVICE_CLASSES, { metadata: { name: "gpu" }, spec: { selectors: [{ cel: { expression: 'device.driver == "gpu.example.com"' } }] } });
  await made(RESOURCE_SLICES, { metadata: { name: "b" }, spec: { driver: "gpu.example.com", nodeName: "b", pool: { name: "b", generation: 1, resourceSliceCount: 1 }, devices: [{ name: "gpu-0" }] } });
  await pod("first", using("one"));
  await claim("one");
  const first = await until("first", on("b"));
  const held = await client.resource(RESOURCE_CLAIMS).get({ metadata: { name: "one", namespace: "default" } }, call);
  expect(held.metadata.finalizers).toEqual(["resource.kubernetes.io/delete-protection"]);
  expect(held.status).toMatchObject({
    reservedFor: [{ resource: "pods", name: "first", uid: first.metadata.uid }],
    allocation: { devices: { results: [{ request: "gpu", driver: "gpu.example.com", pool: "b", device: "gpu-0" }] }, nodeSelector: { nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: ["b"] }] }] } },
  });
  await claim("two");
  await pod("second", using("two"));
  const waiting = await until("second", ({ status }) => status?.conditions?.some(({ reason }) => reason === "Unschedulable") ?? false);
  expect(waiting.status?.conditions?.[0]?.message).toBe("0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.");
  expect(await events("FailedScheduling")).toHaveLength(1);
  await client.resource(PODS).delete(first, { gracePeriodSeconds: 0 }, call);
  await client.resource(RESOURCE_CLAIMS).updateStatus({ ...held, status: {} } as never, call); // what the claim's controller does
  await until("second", on("b"));
}));

test("while devices are looked for in a hundred thousand ways, others have their turn; the pod is told, and others get theirs", () => withScheduler(async ({ client, call, node, pod, until }) => {
  await node("a");
  const made = (ref: ResourceRef, object: object) => client.resource(ref).create({ apiVersion: "resource.k8s.io/v1", kind: ref.kind, ...object } as never, call);
  await made(DEVICE_CLASSES, { metadata: { name: "gpu" }, spec: {} });
  const devices = Array.from({ length: 8 }, (_, i) => ({ name: `gpu-${i}`, attributes: { numa: { int: 0 } } }));
  await made(RESOURCE_SLICES, { metadata: { name: "a" }, spec: { driver: "gpu.example.com", nodeName: "a", pool: { name: "a", generation: 1, resourceSliceCount: 1 }, devices } });
  const claim = (name: string, count: number) => made(RESOURCE_CLAIMS, { metadata: { name, namespace: "default" }, spec: { devices: { requests: Array.from({ length: count }, (_, i) => ({ name: `r${i}`, exactly: { deviceClassName: "gpu" } })), constraints: [{ matchAttribute: "gpu.example.com/numa" }] } } });
  await claim("nine", 9);
  await claim("eight", 8);
  await pod("many", { resourceClaims: [{ name: "gpu", resourceClaimName: "nine" }] });
  const waiting = await until("many", ({ status }) => status?.conditions?.some(({ reason }) => reason === "Unschedulable") ?? false);
  expect(waiting.status?.conditions?.[0]?.message).toContain("1 cannot allocate all claims");
  await pod("all", { resourceClaims: [{ name: "gpu", resourceClaimName: "eight" }] });
  await until("all", on("a"));
}));

test("an extended resource that a class stands behind becomes a claim, where the node does not offer it itself", () => withScheduler(async ({ client, call, node, until, get, metrics }) => {
  await node("a");
  const made = (ref: ResourceRef, object: object) => client.resource(ref).create({ apiVersion: "resource.k8s.io/v1", kind: ref.kind, ...object } as never, call);
  await made(DEVICE_CLASSES, { metadata: { name: "gpu" }, spec: { extendedResourceName: "example.com/gpu" } });
  await made(RESOURCE_SLICES, { metadata: { name: "a" }, spec: { driver: "gpu.example.com", nodeName: "a", pool: { name: "a", generation: 1, resourceSliceCount: 1 }, devices: [{ name: "gpu-0" }, { name: "gpu-1" }] } });
  const asking = (name: string, count: string) => client.resource(PODS).create({
    apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default" },
    spec: { containers: [{ name: "c", image: "i", resources: { requests: { cpu: "100m", "example.com/gpu": count }, limits: { "example.com/gpu": count } } }] },
  } as never, call);
  await asking("p", "2");
  const placed = await until("p", on("a"));
  const { resourceClaimName = "", requestMappings } = placed.status?.extendedResourceClaimStatus ?? {};
  expect(requestMappings).toEqual([{ containerName: "c", resourceName: "example.com/gpu", requestName: "container-0-request-1" }]);
  const held = await client.resource(RESOURCE_CLAIMS).get({ metadata: { name: resourceClaimName, namespace: "default" } }, call);
  expect(held).toMatchObject({
    metadata: { annotations: { "resource.kubernetes.io/extended-resource-claim": "true" }, ownerReferences: [{ kind: "Pod", name: "p", controller: true }] },
    status: { reservedFor: [{ resource: "pods", name: "p" }], allocation: { devices: { results: [{ request: "container-0-request-1", device: "gpu-0" }, { request: "container-0-request-1", device: "gpu-1" }] } } },
  });
  expect(metrics()).toContain('scheduler_resourceclaim_creates_total{status="success"} 1');
  await asking("q", "1");
  await until("q", ({ status }) => status?.conditions?.some(({ reason }) => reason === "Unschedulable") ?? false);
  expect((await get("q")).status?.conditions?.[0]?.message).toMatch(/^0\/1 nodes are available: 1 cannot allocate all claims\./);
  await node("itself", { cpu: "2", memory: "4Gi", pods: "110", "example.com/gpu": "1" });
  const there = await until("q", on("itself"));
  expect(there.metadata.managedFields?.find(({ subresource }) => subresource === "status")?.fieldsV1).toMatchObject({ "f:status": { "f:nominatedNodeName": {} } }); // it was told where it would be, though nothing had to be allocated
}));

test("each scheduler name has its own profile", () => withScheduler(async ({ node, pod, until }) => {
  await node("a");
  await node("b");
  await pod("first", { nodeSelector: { "kubernetes.io/hostname": "a" } }, "1");
  await until("first", on("a"));
  await pod("packed", { schedulerName: "packer" }, "500m");
  await pod("spread", {}, "500m");
  await until("packed", on("a"));
  await until("spread", on("b"));
}, { profiles: [DEFAULT_PROFILE, { ...DEFAULT_PROFILE, schedulerName: "packer", scores: [nodeResourcesFitScore({ type: "MostAllocated", resources: { cpu: 1 } })] }] }));

test("when a binding is refused, the pod is told and tried again, and its place is free meanwhile", () => {
  let refusals = 1;
  const through = (client: Client): Client => ({
    ...client,
    resource: (ref) => ({ ...client.resource(ref), createSubresource: (...args) => (refusals-- > 0 ? Promise.reject(new Error("no luck")) : client.resource(ref).createSubresource(...args)) }),
  });
  return withScheduler(async ({ node, pod, until, events, metrics }) => {
    await node("a", { cpu: "1", memory: "4Gi", pods: "110" });
    await pod("p", {}, "1");
    await until("p", ({ status }) => status?.conditions?.some(({ reason }) => reason === "SchedulerError") ?? false);
    await until("p", on("a"));
    expect(await events("FailedScheduling")).toEqual([`running Bind plugin "DefaultBinder": no luck`]);
    const steps = [...metrics().matchAll(/extension_point_duration_seconds_count\{extension_point="(\w+)",profile="default-scheduler",status="(\w+)"\} (\d+)/g)].map(([, point, status, count]) => `${point} ${status} ${count}`);
    expect(steps.filter((step) => /^(Reserve|Unreserve|Permit|PreBind|PreBindPreFlight|Bind|PostBind) /.test(step)).sort()).toEqual([
      "Bind Error 1", "Bind Success 1", "Permit Success 2", "PostBind Success 1", "PreBind Success 2", "PreBindPreFlight Skip 2", "Reserve Success 2", "Unreserve Success 1",
    ]);
    for (const point of ["PreEnqueue", "Sign"]) expect(steps.some((step) => step.startsWith(`${point} Success `))).toBe(true);
  }, { through });
});

/** What happens to the pod between the decision and its binding. */
const justBefore = (binding: (real: Client) => Promise<unknown>): ((client: Client) => Client) => {
  let happened = false;
  return (client) => ({
    ...client,
    resource: (ref) => ({
      ...client.resource(ref),
      async createSubresource(...args) {
        const isFirst = !happened;
        happened = true;
        if (isFirst) await binding(client);
        return await client.resource(ref).createSubresource(...args);
      },
    }),
  });
};
const P = { metadata: { name: "p", namespace: "default" } };
const untilCounted = async (metrics: () => string): Promise<void> => {
  while (!metrics().includes('scheduler_schedule_attempts_total{profile="default-scheduler",result="error"} 1')) await Bun.sleep(5);
};
/** Until the scheduler has heard of it so often. */
const untilHeard = async (metrics: () => string, event: string, times = 1): Promise<void> => {
  while (!metrics().includes(`scheduler_event_handling_duration_seconds_count{event="${event}"} ${times}\n`)) await Bun.sleep(5);
};

test("of a pod that is deleted when it is to be bound an event tells", () => withScheduler(async ({ node, pod, events, metrics }) => {
  await node("a");
  await pod("p");
  await untilCounted(metrics);
  expect(await events("FailedScheduling")).toEqual(['running Bind plugin "DefaultBinder": pods "p" not found']);
}, { through: justBefore((client) => client.resource(PODS).delete(P, { gracePeriodSeconds: 0 }, { signal: AbortSignal.timeout(60_000) })) }));

test("the place of a pod that is deleted while it is being bound is free at once, not when binding it has failed", () => {
  let refuse = (_why: Error): void => {};
  const stuck: Partial<Extender> = { name: "x", binds: true, ignorable: false, isInterestedIn: ({ metadata }) => metadata.name === "p", bind: () => new Promise<void>((_, reject) => { refuse = reject; }) };
  return withScheduler(async ({ client, call, node, pod, until }) => {
    await node("a", { cpu: "1", memory: "4Gi", pods: "110" });
    await pod("p", {}, "800m");
    await pod("next", {}, "800m");
    await until("next", ({ status }) => status?.conditions?.some(({ reason }) => reason === "Unschedulable") ?? false);
    await client.resource(PODS).delete(P, { gracePeriodSeconds: 0 }, call);
    await until("next", on("a"));
    refuse(new Error("too late"));
  }, { extenders: [stuck] });
});

test("a pod that is gone when binding it has failed does not wait for its claims from then on", () => {
  let gone = async (): Promise<void> => {};
  const late: Partial<Extender> = { name: "x", binds: true, ignorable: false, isInterestedIn: () => true, async bind() { await gone(); throw new Error("too late"); } };
  return withScheduler(async ({ client, call, node, pod, metrics }) => {
    gone = async () => {
      await client.resource(PODS).delete(P, { gracePeriodSeconds: 0 }, call);
      await client.resource(RESOURCE_CLAIMS).delete({ metadata: { name: "one", namespace: "default" } }, {}, call);
      await untilHeard(metrics, "UnschedulablePodDelete");
    };
    await node("a");
    await oneDevice(client, call);
    await pod("p", { resourceClaims: [{ name: "gpu", resourceClaimName: "one" }] });
    await untilCounted(metrics);
    expect(metrics()).toContain('scheduler_pending_pods{queue="gated"} 0\n');
  }, { extenders: [late] });
});

test("a pod that is gone when extenders have said who is to make room keeps nobody off the node", () => {
  let remove = async (): Promise<void> => {};
  const slow: Partial<Extender> = {
    name: "x", ignorable: false, filters: false, prioritizes: false, binds: false, preempts: true, isInterestedIn: ({ metadata }) => metadata.name === "p",
    preempt: async (_pod, candidates) => {
      await remove();
      return new Map(candidates);
    },
  };
  return withScheduler(async ({ client, call, node, pod, until, metrics }) => {
    await node("a", { cpu: "1", memory: "4Gi", pods: "110" });
    await pod("victim", {}, "800m");
    await until("victim", on("a"));
    remove = async () => {
      await client.resource(PODS).delete(P, { gracePeriodSeconds: 0 }, call);
      await untilHeard(metrics, "UnschedulablePodDelete", 2); // the victim waited, too
    };
    await pod("p", { priority: 10 }, "800m");
    await pod("next", {}, "800m");
    await until("next", on("a"));
  }, { extenders: [slow] });
});

test("a scheduler that stops while it asks extenders tells nothing of the pod: another goes on", () => {
  let asked = (): void => {};
  const isAsked = new Promise<void>((resolve) => { asked = resolve; });
  const slow: Partial<Extender> = {
    name: "x", ignorable: false, filters: true, prioritizes: false, binds: false, preempts: false, isInterestedIn: () => true,
    filter: (_pod, _nodes, signal) => new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error));
      asked();
    }),
  };
  return withScheduler(async ({ node, pod, get, stop, events, metrics }) => {
    await node("a");
    await pod("p");
    await isAsked;
    await stop();
    expect(await events("FailedScheduling")).toEqual([]);
    expect(metrics()).not.toContain('result="error"');
    expect((await get("p")).status?.conditions ?? []).toEqual([]);
  }, { extenders: [slow] });
});

test("a pod that somebody else has bound while extenders were asked counts where it is, once", () => {
  let bind = async (): Promise<void> => {};
  const slow: Partial<Extender> = {
    name: "x", ignorable: false, filters: true, prioritizes: false, binds: false, preempts: false, isInterestedIn: ({ metadata }) => metadata.name === "p",
    filter: async (_pod, nodes) => {
      await bind();
      return { nodes: nodes.filter(({ name }) => name === "a"), failed: {}, unresolvable: {} };
    },
  };
  return withScheduler(async ({ client, call, node, pod, until, events, metrics }) => {
    for (const name of ["a", "b"]) await node(name, { cpu: "1", memory: "4Gi", pods: "110" });
    bind = async () => {
      bind = async () => {};
      await client.resource(PODS).createSubresource(P, "binding", { apiVersion: "v1", kind: "Binding", metadata: P.metadata, target: { apiVersion: "v1", kind: "Node", name: "b" } } as never, call);
      await untilHeard(metrics, "AssignedPodAdd");
    };
    await pod("p", {}, "800m");
    const { metadata: { uid } } = await until("p", on("b"));
    await Bun.sleep(200);
    expect(await events("FailedScheduling")).toEqual([`pod ${uid}(default/p) is in the cache, so can't be assumed`]);
    await client.resource(PODS).delete(P, { gracePeriodSeconds: 0 }, call);
    for (const name of ["one", "two"]) await pod(name, {}, "800m");
    for (const name of ["one", "two"]) await until(name, ({ spec }) => spec.nodeName !== undefined);
  }, { extenders: [slow] });
});

test("when another pod has come in its place, nothing is told of one that could not be bound", () => withScheduler(async ({ node, pod, until, events, metrics }) => {
  await node("a");
  await pod("p");
  await untilCounted(metrics);
  await until("p", on("a"));
  expect(await events("FailedScheduling")).toEqual([]);
}, {
  through: justBefore(async (client) => {
    const call = { signal: AbortSignal.timeout(60_000) };
    await client.resource(PODS).delete(P, { gracePeriodSeconds: 0 }, call);
    await client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: P.metadata, spec: { terminationGracePeriodSeconds: 0, containers: [{ name: "c", image: "i" }] } } as unknown as NewObject<Pod>, call);
    while ((await client.resource(PODS).get(P, call)).spec.nodeName === undefined) await Bun.sleep(5); // so the scheduler has heard of it
  }),
}));

test("a nomination ends when there are no nodes any more", () => withScheduler(async ({ client, call, node, pod, until }) => {
  await node("a", { cpu: "1", memory: "4Gi", pods: "110" });
  await pod("low", { priority: 1, terminationGracePeriodSeconds: 30 }, "900m");
  await until("low", on("a"));
  await pod("middle", { priority: 10 }, "800m");
  await until("middle", ({ status }) => status?.nominatedNodeName === "a");
  await client.resource(NODES).delete({ metadata: { name: "a" } }, {}, call);
  await client.resource(PODS).delete({ metadata: { name: "low", namespace: "default" } }, { gracePeriodSeconds: 0 }, call);
  await until("middle", ({ status }) => status?.nominatedNodeName === undefined);
}));

test("a nomination ends when others go for a pod of higher priority", () => withScheduler(async ({ client, call, node, pod, until }) => {
  await node("a", { cpu: "2", memory: "4Gi", pods: "110" });
  for (const name of ["low", "lower"]) {
    await pod(name, { priority: name === "low" ? 2 : 1, terminationGracePeriodSeconds: 30 }, "900m");
    await until(name, on("a"));
  }
  await pod("middle", { priority: 10 }, "800m");
  await until("middle", ({ status }) => status?.nominatedNodeName === "a");
  await pod("high", { priority: 100 }, "1800m");
  await until("high", ({ status }) => status?.nominatedNodeName === "a");
  await until("middle", ({ status }) => status?.nominatedNodeName === undefined);
  for (const name of ["low", "lower"]) await client.resource(PODS).delete({ metadata: { name, namespace: "default" } }, { gracePeriodSeconds: 0 }, call);
  await until("high", on("a"));
  expect((await until("middle", ({ status }) => status?.conditions?.some(({ reason }) => reason === "Unschedulable") ?? false)).spec.nodeName).toBeUndefined();
}));

test("a nomination stays when a pod of higher priority waits for the same victim, which is on its way out already", () => withScheduler(async ({ client, call, node, pod, until, events, metrics }) => {
  await node("a");
  await pod("victim", { priority: 1, terminationGracePeriodSeconds: 30 }, "1500m");
  const victim = await until("victim", on("a"));
  await client.resource(PODS).patch(victim, "application/merge-patch+json", { status: { phase: "Running" } }, { ...call, subresource: "status" });
  await pod("middle", { priority: 10 }, "1500m");
  await until("victim", ({ metadata }) => metadata.deletionTimestamp != null);
  await pod("high", { priority: 100 }, "1800m");
  const high = await until("high", ({ status }) => status?.nominatedNodeName === "a");
  expect(high.status?.conditions?.[0]?.message).toBe("0/1 nodes are available: 1 Insufficient cpu.");
  expect((await events("Preempted")).length).toBe(1);
  expect((await until("middle", () => true)).status?.nominatedNodeName).toBe("a");
  expect(metrics()).toContain("scheduler_preemption_victims_count 1");
  expect(metrics()).toContain('scheduler_preemption_goroutines_execution_total{result="success"} 1');
}));

test("a pod that fits nowhere is tried again when a node's taints change, whatever kept it away, and told what does so now", () => withScheduler(async ({ client, call, node, pod, until, metrics }) => {
  await node("a");
  await client.resource(NODES).patch({ metadata: { name: "a" } }, "application/merge-patch+json", { spec: { taints: null } }, call);
  const told = (message: string) => until("p", ({ status }) => status?.conditions?.some((one) => one.message?.startsWith(`0/1 nodes are available: 1 ${message}.`)) ?? false);
  await pod("p", {}, "64");
  await told("Insufficient cpu");
  await client.resource(NODES).patch({ metadata: { name: "a" } }, "application/merge-patch+json", { spec: { taints: [{ key: "k", effect: "NoSchedule" }] } }, call);
  await told("node(s) had untolerated taint(s)");
  expect(metrics()).toContain(`scheduler_queue_incoming_pods_total{event="NodeUpdateNodeTaint",queue="backoff"} 1`);
}));

test("the place that a pod was nominated to is for others when it is not any more, and when the pod is gone", () => withScheduler(async ({ client, call, node, pod, until }) => {
  const big = { cpu: "1", memory: "4Gi", pods: "110" };
  await node("a", big);
  await pod("first", { priority: 10, nodeSelector: { none: "such" } }, "800m");
  await until("first", ({ status }) => status?.conditions?.some(({ reason }) => reason === "Unschedulable") ?? false);
  const nominate = (nominatedNodeName: string | null) => client.resource(PODS).patch({ metadata: { name: "first", namespace: "default" } }, "application/merge-patch+json", { status: { nominatedNodeName } }, { ...call, subresource: "status" });
  await nominate("a");
  await pod("second", {}, "800m");
  await until("second", ({ status }) => status?.conditions?.some(({ message }) => message?.startsWith("0/1 nodes are available: 1 Insufficient cpu.") ?? false) ?? false);
  await nominate(null);
  await until("second", on("a"));
}));

test("where other schedulers would have their pods, and where pods were to go that have ended, is free", () => withScheduler(async ({ client, call, node, pod, until }) => {
  await node("a", { cpu: "1", memory: "4Gi", pods: "110" });
  const nominated = (name: string): Promise<unknown> => client.resource(PODS).patch({ metadata: { name, namespace: "default" } }, "application/merge-patch+json", { status: { nominatedNodeName: "a" } }, { ...call, subresource: "status" });
  await pod("other", { schedulerName: "mine", priority: 10 }, "800m");
  await nominated("other");
  await pod("ended", { priority: 10, nodeSelector: { nowhere: "y" } }, "800m");
  await nominated("ended");
  await pod("p", {}, "800m");
  await until("p", ({ status }) => status?.conditions?.some(({ reason }) => reason === "Unschedulable") ?? false);
  await client.resource(PODS).patch({ metadata: { name: "ended", namespace: "default" } }, "application/merge-patch+json", { status: { phase: "Failed" } }, { ...call, subresource: "status" });
  await until("p", on("a"));
}));

test("a place that a nomination gives up is news to pods that are no more important", () => withScheduler(async ({ client, call, node, pod, until, metrics }) => {
  await node("a");
  for (const [name, spec] of [["first", { nodeSelector: { none: "such" } }], ["important", { priority: 20 }], ["equal", {}]] as const) {
    await pod(name, spec, "64");
    await until(name, ({ status }) => status?.conditions?.some(({ reason }) => reason === "Unschedulable") ?? false);
  }
  const nominate = (nominatedNodeName: string | null) => client.resource(PODS).patch({ metadata: { name: "first", namespace: "default" } }, "application/merge-patch+json", { status: { nominatedNodeName } }, { ...call, subresource: "status" });
  await nominate("a");
  await nominate(null);
  while (!metrics().includes('{event="AssignedPodDelete",')) await Bun.sleep(5);
  expect(metrics()).toContain('scheduler_queue_incoming_pods_total{event="AssignedPodDelete",queue="backoff"} 1\n');
}));

test("of a pod that is deleted while it waits for its volumes an event tells", () => withScheduler(async ({ client, call, node, pod, until, events }) => {
  await node("a");
  await client.resource(STORAGE_CLASSES).create({ apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name: "slow" }, provisioner: "example.com/slow", volumeBindingMode: "WaitForFirstConsumer" } as NewObject<StorageClass>, call);
  await client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "default" }, spec: { storageClassName: "slow", accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } } as NewObject<PersistentVolumeClaim>, call);
  await pod("p", { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }] });
  const waiting = await until("p", ({ status }) => status?.nominatedNodeName === "a");
  while ((await client.resource(PERSISTENT_VOLUME_CLAIMS).get({ metadata: { name: "c", namespace: "default" } }, call)).metadata.annotations?.["volume.kubernetes.io/selected-node"] !== "a") await Bun.sleep(5);
  await client.resource(PODS).delete(waiting, { gracePeriodSeconds: 0 }, call);
  let told: string[] = [];
  while (told.length === 0) told = await events("FailedScheduling");
  expect(told).toEqual(['running PreBind plugin "VolumeBinding": binding volumes: pod does not exist any more: pod "p" not found']);
}));

test("a pod that was deleted while extenders were asked does not wait for its volumes", () => {
  let remove = async (): Promise<void> => {};
  const slow: Partial<Extender> = {
    name: "x", ignorable: false, filters: true, prioritizes: false, binds: false, preempts: false, isInterestedIn: () => true,
    filter: async (_pod, nodes) => {
      await remove();
      return { nodes, failed: {}, unresolvable: {} };
    },
  };
  return withScheduler(async (lab) => {
    remove = async () => {
      await lab.client.resource(PODS).delete(P, { gracePeriodSeconds: 0 }, lab.call);
      await untilHeard(lab.metrics, "UnschedulablePodDelete");
    };
    await wantsVolume(lab);
    await untilCounted(lab.metrics);
    expect(await lab.events("FailedScheduling")).toEqual(['running PreBind plugin "VolumeBinding": binding volumes: pod does not exist any more: pod "p" not found']);
  }, { extenders: [slow] });
});

test("a pod whose volume others have taken while extenders were asked is not bound without it", () => {
  let take = async (): Promise<void> => {};
  const slow: Partial<Extender> = {
    name: "x", ignorable: false, filters: true, prioritizes: false, binds: false, preempts: false, isInterestedIn: () => true,
    filter: async (_pod, nodes) => {
      await take();
      return { nodes, failed: {}, unresolvable: {} };
    },
  };
  return withScheduler(async ({ client, call, node, pod, until, get, metrics }) => {
    await node("a");
    await client.resource(STORAGE_CLASSES).create({ apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name: "local" }, provisioner: "kubernetes.io/no-provisioner", volumeBindingMode: "WaitForFirstConsumer" } as NewObject<StorageClass>, call);
    const volume = await client.resource(PERSISTENT_VOLUMES).create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "v" }, spec: { storageClassName: "local", capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: "/x" } } } as unknown as NewObject<PersistentVolume>, call);
    await client.resource(PERSISTENT_VOLUMES).updateStatus({ ...volume, status: { phase: "Available" } } as PersistentVolume, call);
    await client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "default" }, spec: { storageClassName: "local", accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } } as NewObject<PersistentVolumeClaim>, call);
    take = async () => {
      take = async () => {};
      await client.resource(PERSISTENT_VOLUMES).patch(volume, "application/merge-patch+json", { spec: { claimRef: { kind: "PersistentVolumeClaim", apiVersion: "v1", namespace: "default", name: "other" } } }, call);
      await untilHeard(metrics, "PersistentVolumeUpdate", 2);
    };
    await pod("p", { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }] });
    const { status } = await until("p", ({ spec, status }) => spec.nodeName !== undefined || (status?.conditions ?? []).some(({ reason }) => reason === "SchedulerError"));
    expect(status?.conditions?.[0]?.message).toBe('running Reserve plugin "VolumeBinding": node(s) didn\'t find available persistent volumes to bind');
    expect((await get("p")).spec.nodeName).toBeUndefined();
  }, { extenders: [slow] });
});

/** "p" wants a volume that nobody provisions, and there is room for one such pod. */
async function wantsVolume({ client, call, node, pod }: Lab, spec: object = {}): Promise<void> {
  await node("a", { cpu: "1", memory: "4Gi", pods: "110" });
  await client.resource(STORAGE_CLASSES).create({ apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name: "slow" }, provisioner: "example.com/slow", volumeBindingMode: "WaitForFirstConsumer" } as NewObject<StorageClass>, call);
  await client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "default" }, spec: { storageClassName: "slow", accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } } as NewObject<PersistentVolumeClaim>, call);
  await pod("p", { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }], ...spec }, "800m");
}

/** It waits for its volume on node "a". */
async function waitsForVolume(lab: Lab, metadata: object = {}): Promise<Readonly<Pod>> {
  await wantsVolume(lab);
  await lab.client.resource(PODS).patch({ metadata: { name: "p", namespace: "default" } }, "application/merge-patch+json", { metadata }, lab.call);
  return lab.until("p", ({ status }) => status?.nominatedNodeName === "a");
}

test("a pod that waits for its volumes makes room without being deleted", () => withScheduler(async (lab) => {
  await waitsForVolume(lab);
  await lab.pod("important", { priority: 10 }, "800m");
  await lab.until("important", on("a"));
  expect((await lab.get("p")).metadata.deletionTimestamp).toBeUndefined();
  expect(await lab.events("FailedScheduling")).toContain('running PreBind plugin "VolumeBinding": preempted by DefaultPreemption');
  expect((await lab.events("Preempted"))[0]).toMatch(/^Preempted by pod \S+ on node a \(in kube-scheduler memory\)\.$/);
}));

test("a pod that is on its way out while it waits for its volumes keeps nobody off its node", () => withScheduler(async (lab) => {
  const waiting = await waitsForVolume(lab, { finalizers: ["example.com/keep"] });
  await lab.pod("next", {}, "800m");
  await lab.until("next", ({ status }) => status?.conditions?.some(({ reason }) => reason === "Unschedulable") ?? false);
  await lab.client.resource(PODS).delete(waiting, { gracePeriodSeconds: 0 }, lab.call);
  await lab.until("next", on("a"));
}));

test("what an event has no room for is in the pod's condition", () => withScheduler(async ({ client, call, node, until, events }) => {
  await node("a");
  const requests = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`example.com/${"x".repeat(50)}-${i}`, "1"]));
  await client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "default" }, spec: { containers: [{ name: "c", image: "i", resources: { requests, limits: requests } }] } } as unknown as NewObject<Pod>, call);
  const { status } = await until("p", ({ status }) => status?.conditions?.some(({ reason }) => reason === "Unschedulable") ?? false);
  const message = status?.conditions?.[0]?.message ?? "";
  expect(message.length).toBeGreaterThan(1024);
  const [note] = await events("FailedScheduling");
  expect(note).toBe(`${message.slice(0, 1020)} ...`);
}));

test("an event has room for so many bytes, and of the last character all or nothing", () => {
  const wordy: Partial<Extender> = {
    name: "x", ignorable: false, filters: true, prioritizes: false, binds: false, preempts: false, isInterestedIn: () => true,
    filter: (_pod, nodes) => Promise.resolve({ nodes: [], failed: {}, unresolvable: Object.fromEntries(nodes.map(({ name }) => [name, "ü".repeat(600)])) }),
  };
  return withScheduler(async ({ node, pod, until, events }) => {
    await node("a");
    await pod("p");
    await until("p", ({ status }) => status?.conditions?.some(({ message = "" }) => message.includes("ü".repeat(600))) ?? false);
    const [note = ""] = await events("FailedScheduling");
    expect(note).toMatch(/^0\/1 nodes are available: 1 ü+ \.\.\.$/);
    expect([1023, 1024]).toContain(Buffer.byteLength(note));
  }, { extenders: [wordy] });
});

/** The first write to objects of this kind is refused. */
const refusingOnce = (plural: string): ((client: Client) => Client) => {
  let refused = false;
  return (client) => ({
    ...client,
    resource(ref) {
      const real = client.resource(ref);
      const refuse = <A extends readonly unknown[], R>(work: (...args: A) => Promise<R>) => (...args: A): Promise<R> => {
        if (ref.plural !== plural || refused) return work(...args);
        refused = true;
        return Promise.reject(new Error("no luck"));
      };
      return { ...real, update: refuse(real.update), updateStatus: refuse(real.updateStatus), patch: refuse(real.patch) };
    },
  });
};

test("a volume that could not be bound is free again, for another pod, too", () => withScheduler(async ({ client, call, node, pod, until, events }) => {
  await node("a");
  await client.resource(STORAGE_CLASSES).create({ apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name: "local" }, provisioner: "kubernetes.io/no-provisioner", volumeBindingMode: "WaitForFirstConsumer" } as NewObject<StorageClass>, call);
  const volume = await client.resource(PERSISTENT_VOLUMES).create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "v" }, spec: { storageClassName: "local", capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: "/x" } } } as unknown as NewObject<PersistentVolume>, call);
  await client.resource(PERSISTENT_VOLUMES).updateStatus({ ...volume, status: { phase: "Available" } } as PersistentVolume, call);
  for (const name of ["one", "two"])
    await client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name, namespace: "default" }, spec: { storageClassName: "local", accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } } as NewObject<PersistentVolumeClaim>, call);
  const using = (claimName: string) => ({ volumes: [{ name: "v", persistentVolumeClaim: { claimName } }] });
  await pod("p", using("one"));
  const refused = await until("p", ({ status }) => status?.conditions?.some(({ reason }) => reason === "SchedulerError") ?? false);
  expect(refused.status?.nominatedNodeName).toBeUndefined(); // it is not on its way there any more
  await client.resource(PODS).delete(refused, { gracePeriodSeconds: 0 }, call);
  await pod("q", using("two"));
  await until("q", ({ status }) => status?.nominatedNodeName === "a");
  while ((await client.resource(PERSISTENT_VOLUMES).get(volume, call)).spec.claimRef?.name !== "two") await Bun.sleep(5);
  expect([...new Set(await events("FailedScheduling"))]).toEqual([expect.stringMatching(/^running PreBind plugin "VolumeBinding": .*no luck/)]);
}, { through: refusingOnce("persistentvolumes") }));

test("a pod that could not be bound keeps nobody off the node it was to have, though the API does not hear of it", () => withScheduler(async ({ client, call, node, pod, until, get, metrics }) => {
  await node("a", { cpu: "1", memory: "4Gi", pods: "110" });
  await client.resource(STORAGE_CLASSES).create({ apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name: "local" }, provisioner: "kubernetes.io/no-provisioner", volumeBindingMode: "WaitForFirstConsumer" } as NewObject<StorageClass>, call);
  const volume = await client.resource(PERSISTENT_VOLUMES).create({ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "v" }, spec: { storageClassName: "local", capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: "/x" } } } as unknown as NewObject<PersistentVolume>, call);
  await client.resource(PERSISTENT_VOLUMES).updateStatus({ ...volume, status: { phase: "Available" } } as PersistentVolume, call);
  await client.resource(PERSISTENT_VOLUME_CLAIMS).create({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c", namespace: "default" }, spec: { storageClassName: "local", accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } } as NewObject<PersistentVolumeClaim>, call);
  await pod("p", { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }] }, "800m");
  await until("p", ({ status }) => status?.nominatedNodeName === "a");
  await pod("q", {}, "800m");
  await until("q", on("a"));
  expect((await get("p")).status?.nominatedNodeName).toBe("a");
  expect(metrics()).toContain('scheduler_schedule_attempts_total{profile="default-scheduler",result="error"} 1\n'); // at once, not when it is tried again
}, {
  through: (client) => ({
    ...client,
    resource(ref) {
      const real = client.resource(ref);
      return {
        ...real,
        async update(...args) {
          if (ref.plural !== "persistentvolumes") return await real.update(...args);
          await Bun.sleep(300); // so long it is to be bound
          throw new Error("no luck");
        },
        patch: (...args) => (ref.plural === "pods" && (args[2] as { status?: { nominatedNodeName?: unknown } }).status?.nominatedNodeName === null ? Promise.reject(new Error("no luck")) : real.patch(...args)),
      };
    },
  }),
}));

/** On node a, and a claim of it. */
async function oneDevice(client: Client, call: { readonly signal: AbortSignal }): Promise<void> {
  const made = (ref: ResourceRef, object: object) => client.resource(ref).create({ apiVersion: "resource.k8s.io/v1", kind: ref.kind, ...object } as never, call);
  await made(DEVICE_CLASSES, { metadata: { name: "gpu" }, spec: {} });
  await made(RESOURCE_SLICES, { metadata: { name: "a" }, spec: { driver: "gpu.example.com", nodeName: "a", pool: { name: "a", generation: 1, resourceSliceCount: 1 }, devices: [{ name: "gpu-0" }] } });
  await made(RESOURCE_CLAIMS, { metadata: { name: "one", namespace: "default" }, spec: { devices: { requests: [{ name: "gpu", exactly: { deviceClassName: "gpu" } }] } } });
}

test("devices that could not be allocated are free again: the pod has them at the next try", () => withScheduler(async ({ client, call, node, pod, until, events }) => {
  await node("a");
  await oneDevice(client, call);
  await pod("p", { resourceClaims: [{ name: "gpu", resourceClaimName: "one" }] });
  await until("p", on("a"));
  expect([...new Set(await events("FailedScheduling"))]).toEqual(['running PreBind plugin "DynamicResources": add finalizer to claim default/one: no luck']);
}, { through: refusingOnce("resourceclaims") }));

test("devices are made ready while volumes are: neither waits for the other; if one fails, the other is given up", () => withScheduler(async (lab) => {
  const { client, call, until, events } = lab;
  const made = (ref: ResourceRef, object: object) => client.resource(ref).create({ apiVersion: "resource.k8s.io/v1", kind: ref.kind, ...object } as never, call);
  await made(DEVICE_CLASSES, { metadata: { name: "gpu" }, spec: {} });
  await made(RESOURCE_SLICES, { metadata: { name: "a" }, spec: { driver: "gpu.example.com", nodeName: "a", pool: { name: "a", generation: 1, resourceSliceCount: 1 }, devices: [{ name: "gpu-0" }] } });
  const claim = await made(RESOURCE_CLAIMS, { metadata: { name: "one", namespace: "default" }, spec: { devices: { requests: [{ name: "gpu", exactly: { deviceClassName: "gpu" } }] } } }) as ResourceClaim;
  const held = async (): Promise<boolean> => ((await client.resource(RESOURCE_CLAIMS).get(claim, call)).status?.reservedFor ?? []).length > 0;
  await wantsVolume(lab, { resourceClaims: [{ name: "gpu", resourceClaimName: "one" }] });
  while (!(await held())) await Bun.sleep(5); // although nobody has provisioned the volume
  const volume = { metadata: { name: "c", namespace: "default" } };
  while ((await client.resource(PERSISTENT_VOLUME_CLAIMS).get(volume, call)).metadata.annotations?.["volume.kubernetes.io/selected-node"] !== "a") await Bun.sleep(5);
  await client.resource(PERSISTENT_VOLUME_CLAIMS).patch(volume, "application/merge-patch+json", { metadata: { annotations: { "volume.kubernetes.io/selected-node": null, "other": "" } } }, call); // the provisioner cannot
  await until("p", ({ status }) => status?.conditions?.some(({ message }) => message === 'running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "c"') ?? false);
  expect(await events("FailedScheduling")).toHaveLength(1);
}));

test("when another pod has come in its place, nothing is told of one that extenders did not answer about, or turned down", () => {
  let replace = async (_name: string): Promise<void> => {};
  const slow: Partial<Extender> = {
    name: "x", ignorable: false, filters: true, prioritizes: false, binds: false, preempts: false, isInterestedIn: ({ metadata }) => metadata.name !== "last",
    async filter({ metadata: { name } }) {
      await replace(name);
      if (name === "unanswered") throw new Error("no answer");
      return { nodes: [], failed: {}, unresolvable: {} };
    },
  };
  return withScheduler(async ({ client, call, get, node, pod, until, events, metrics }) => {
    await node("a");
    let gone = 0;
    replace = async (name) => {
      await client.resource(PODS).delete({ metadata: { name, namespace: "default" } }, { gracePeriodSeconds: 0 }, call);
      await pod(name, { schedulerName: "other" });
      await untilHeard(metrics, "UnschedulablePodDelete", ++gone);
    };
    for (const name of ["unanswered", "refused"]) await pod(name);
    while (gone < 2) await Bun.sleep(5);
    await pod("last");
    await until("last", on("a"));
    expect(await events("FailedScheduling")).toEqual([]);
    for (const name of ["unanswered", "refused"]) expect((await get(name)).status?.conditions ?? []).toEqual([]);
  }, { extenders: [slow] });
});
