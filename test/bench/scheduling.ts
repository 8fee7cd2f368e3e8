/**
 * How fast pods get nodes: `bun test/bench/scheduling.ts [nodes] [pods]` (100 and 2,000 by default), over the real API server in this process, on a
 * store in memory.
 *
 * First the decisions alone, for a plain pod and for ones with constraints over other pods; then pods created through the API until they are bound.
 * Upstream on such a machine, 100 nodes: 55 pods/s with the default limits of its clients, 135 without.
 */
import type { Node, Pod } from "../../core/api/gen/core.v1.ts";
import type { NewObject } from "../../core/api/meta/object-meta.ts";
import { eventWriter } from "../../core/client/events.ts";
import { informerFactory } from "../../core/client/informer-factory.ts";
import { NAMESPACES, NODES, PODS } from "../../core/client/resources.ts";
import { systemClock as clock } from "../../core/lifecycle/clock.ts";
import { systemRandom as random } from "../../core/lifecycle/random.ts";
import { silentLog as log } from "../../core/observe/log.ts";
import { metricsRegistry } from "../../core/observe/metrics.ts";
import { Kinds } from "../../core/scheduler/kinds.ts";
import { place } from "../../core/scheduler/place.ts";
import { DEFAULT_PROFILE } from "../../core/scheduler/plugins.ts";
import { scheduler } from "../../core/scheduler/scheduler.ts";
import { inProcessServer } from "../in-process-server.ts";
import { candidate, node, pod, schedulingCluster, stored } from "../scheduling-cluster.ts";

const nodes = Number(process.argv[2] ?? 100);
const pods = Number(process.argv[3] ?? 2000);
const ZONES = 3;
const labelsOf = (i: number) => ({ "kubernetes.io/hostname": `n${i}`, "topology.kubernetes.io/zone": `z${i % ZONES}` });

type Options = Parameters<typeof pod>[1];
const term = { labelSelector: { matchLabels: { app: "web" } } };
const shapes: Record<string, Options> = {
  "plain": {},
  "of a service (default spread)": { labels: { app: "web" } },
  "spread over zones and nodes": { labels: { app: "web" }, topologySpreadConstraints: ([["topology.kubernetes.io/zone", 5], ["kubernetes.io/hostname", 50]] as const).map(([topologyKey, maxSkew]) => ({ maxSkew, topologyKey, whenUnsatisfiable: "DoNotSchedule" as const, ...term })) },
  "preferred anti-affinity": { labels: { app: "web" }, affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm: { ...term, topologyKey: "kubernetes.io/hostname" } }] } } },
  "required affinity to a zone": { labels: { app: "web" }, affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ ...term, topologyKey: "topology.kubernetes.io/zone" }] } } },
};

const service = stored("v1", "Service", "default/web", { spec: { selector: { app: "web" } } });
for (const [name, options] of Object.entries(shapes)) {
  const cluster = schedulingCluster({ nodes: Array.from({ length: nodes }, (_, i) => node(`n${i}`, { cpu: "64", labels: labelsOf(i), allocatable: { memory: "256Gi", pods: "1000" } })), objects: [service] });
  const start = { next: 0 }, kinds = new Kinds();
  const times: number[] = [], beganCpu = process.cpuUsage();
  for (let i = 0; i < pods; i++) {
    const startMs = performance.now();
    const one = candidate(pod(`p${i}`, { cpu: "10m", ...options }));
    const placement = place(one, cluster, DEFAULT_PROFILE, { random, start, kind: kinds.of(one) });
    if (placement.type === "none") throw new Error(placement.message);
    cluster.snapshot.assume(one, placement.node);
    times.push(performance.now() - startMs);
  }
  const total = times.reduce((sum, ms) => sum + ms, 0), { user, system } = process.cpuUsage(beganCpu);
  console.log(`decisions, ${name}: ${Math.round((pods * 1000) / total)} pods/s over ${nodes} nodes, ${((user + system) / pods).toFixed(0)} µs of CPU each (p99 ${times.sort((a, b) => a - b)[Math.floor(pods * 0.99)]!.toFixed(2)} ms)`);
}

const stop = new AbortController();
const { signal } = stop;
const server = await inProcessServer({ signal });
const client = server.client("system:kube-scheduler");
const informers = informerFactory({ client, clock, random, log });
const events = eventWriter({ client, clock, random, log });
const lives = [informers, events, scheduler({ client, nodeName: "bench", informers, events, clock, random, log, metrics: metricsRegistry() })].map((part) => part.run(signal, () => {}));
await client.resource(NAMESPACES).create({ apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } } as never, { signal });
for (let i = 0; i < nodes; i++) {
  const made = await client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: `n${i}`, labels: labelsOf(i) }, spec: {} } as NewObject<Node>, { signal });
  await client.resource(NODES).updateStatus({ ...made, status: { ...made.status, allocatable: { cpu: "64", memory: "256Gi", pods: "1000" } } } as Node, { signal });
}
const created = new Map<string, number>();
const latencies: number[] = [];
const all = Promise.withResolvers<void>();
informers.of(PODS).onChange(({ object, old }) => {
  if (!object.spec.nodeName || old?.spec.nodeName) return;
  latencies.push(performance.now() - created.get(object.metadata.name)!);
  if (latencies.length === pods) all.resolve();
});
await Bun.sleep(200);
const draft = (name: string) => ({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default" }, spec: { containers: [{ name: "c", image: "i", resources: { requests: { cpu: "10m" } } }] } }) as unknown as NewObject<Pod>;
const beginMs = performance.now(), beginCpu = process.cpuUsage();
for (let i = 0; i < pods; i += 16)
  await Promise.all(Array.from({ length: Math.min(16, pods - i) }, (_, k) => {
    created.set(`p${i + k}`, performance.now());
    return client.resource(PODS).create(draft(`p${i + k}`), { signal });
  }));
const createdMs = performance.now() - beginMs;
await all.promise;
const totalMs = performance.now() - beginMs, { user, system } = process.cpuUsage(beginCpu);
latencies.sort((a, b) => a - b);
console.log(`over the API: ${pods} pods created at ${Math.round((pods * 1000) / createdMs)}/s, bound at ${Math.round((pods * 1000) / totalMs)} pods/s; created to bound p50 ${latencies[pods >> 1]!.toFixed(1)} ms, p99 ${latencies[Math.floor(pods * 0.99)]!.toFixed(1)} ms; ${((user + system) / 1000 / pods).toFixed(2)} ms of CPU a pod, all told`);
stop.abort();
await Promise.all([...lives, server.ended]);
