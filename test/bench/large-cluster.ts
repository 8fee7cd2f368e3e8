/**
 * A large cluster on one server: `bun test/bench/large-cluster.ts [--nodes 1000] [--pods 10000] [--objects 10000] [--replicas 1000] [--clients 64] [--only pods,delete,…] [--one-name]`
 * on the compiled binary; with CORACLE_PROFILE=<directory> on the source, whose profiles lie there in the end.
 *
 * A server without a node of its own and `coracle simulate`, both on this machine's loopback, so that they and this client share its processors: the CPU of each is told apart,
 * as seconds and as percent of one processor. Memory is PSS. Parts, in this order:
 *
 *   nodes        joined, and Ready
 *   pods         created by so many clients until all are bound and Running: rates, and how long one pod took from its creation to its node as a watch tells it
 *   quiet        what nodes and pods cost while nothing happens
 *   delete       half of the pods one by one, half as collections, until the nodes have let them go
 *   deployment   of so many replicas: created, rolled, scaled down, created again and deleted with all it owns
 *   garbage      so many ConfigMaps of one owner, which is deleted
 *   restart      the server is killed and started again under all these nodes
 *   lost         all nodes fall silent, are found NotReady, and come back
 */
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { readKubeconfig } from "../../cmd/kubeconfig-file.ts";
import type { ConfigMap, Pod } from "../../core/api/gen/core.v1.ts";
import type { Deployment } from "../../core/api/gen/apps.v1.ts";
import type { NewObject } from "../../core/api/meta/object-meta.ts";
import { httpTransport } from "../../core/client/http-transport.ts";
import { informerFactory } from "../../core/client/informer-factory.ts";
import { clientOver } from "../../core/client/resource-client.ts";
import { CONFIG_MAPS, DEPLOYMENTS, NODES, PODS, REPLICA_SETS } from "../../core/client/resources.ts";
import { systemClock as clock } from "../../core/lifecycle/clock.ts";
import { systemRandom as random } from "../../core/lifecycle/random.ts";
import { http2Fetch } from "../../core/net/http2-fetch.ts";
import { silentLog as log } from "../../core/observe/log.ts";
import { compiledBench, isWritten, percentile, type Process } from "./compiled.ts";

const { values } = parseArgs({
  options: {
    nodes: { type: "string", default: "1000" }, pods: { type: "string", default: "10000" }, objects: { type: "string", default: "10000" }, replicas: { type: "string", default: "1000" }, clients: { type: "string", default: "64" },
    only: { type: "string", default: "pods,quiet,delete,deployment,garbage,restart,lost" }, "one-name": { type: "boolean", default: false }, port: { type: "string", default: "16463" },
  },
});
const nodeCount = Number(values.nodes), podCount = Number(values.pods), objectCount = Number(values.objects), replicaCount = Number(values.replicas), clientCount = Number(values.clients);
const wanted = new Set(values.only.split(","));
const QUIET_MS = 30_000;
const NAMESPACE = "default";

await using bench = compiledBench();
const kubeconfig = join(bench.directory, "kubeconfig");
const serverArgs = ["server", "--disable-agent", "--write-kubeconfig", kubeconfig, "--https-listen-port", values.port, "--bind-address", "127.0.0.1", "--node-name", "bench", "--log-level", "warn", "--cluster-cidr", "10.0.0.0/12"];
let server = bench.start("server", serverArgs);
await bench.until("the server writes its kubeconfig", () => isWritten(kubeconfig));
const { server: url, credentials } = readKubeconfig(kubeconfig);
const quit = new AbortController(), { signal } = quit;
const client = clientOver(httpTransport({ server: url, credentials: () => credentials, clock, requestTimeoutMs: 600_000, fetch: http2Fetch({ clock, signal }) })); // where others keep the processors busy, a collection takes its time
const ready = (): Promise<boolean> => client.request({ method: "GET", path: "/readyz", signal }).then((answer) => answer === "ok", () => false);
await bench.until("the server is ready", ready);

const informers = informerFactory({ client, clock, random, log });
const nodes = informers.of(NODES), pods = informers.of(PODS);
const watching = informers.run(signal, () => {});
await Promise.all([nodes.whenSynced(signal), pods.whenSynced(signal)]);
console.log(`${cpus().length} processors, load average ${loadavg().map((load) => load.toFixed(1)).join(" ")}; server alone: ${megabytes(server)}`);
const aloneMb = server.memoryMb();

/** Runs a part, and prints how long it took, what it cost, and what it says of itself. */
async function part(name: string, work: () => Promise<string | undefined>): Promise<void> {
  const own = process.cpuUsage(), sinceMs = performance.now(), before = new Map([server, simulator].map((one) => [one, one.cpuMs()]));
  const said = await work();
  const tookMs = performance.now() - sinceMs;
  const cost = [server, simulator].map((one) => {
    const cpuMs = one.cpuMs() - (before.get(one) ?? 0);
    return `${one.name} ${(cpuMs / 1000).toFixed(1)} s of CPU (${(cpuMs / tookMs * 100).toFixed(0)} %), ${megabytes(one)}`;
  });
  const { user, system } = process.cpuUsage(own);
  console.log(`${name.padEnd(34)} ${(tookMs / 1000).toFixed(1).padStart(6)} s${said === undefined ? "" : `   ${said}`}   ${cost.join("; ")}; this client ${((user + system) / 1e6).toFixed(1)} s of CPU; load ${loadavg()[0]!.toFixed(0)}`);
}

const who = values["one-name"] ? ["--kubeconfig", kubeconfig] : ["--server", url, "--token-file", join(bench.directory, "server/server/token")];
const simulator = bench.start("simulate", ["simulate", ...who, "--nodes", String(nodeCount), "--log-level", "warn"]);
await part(`${nodeCount} nodes Ready`, async () => {
  await bench.until("all nodes are Ready", () => readyNodes() === nodeCount);
  return undefined;
});
await Bun.sleep(2_000);
const emptyMb = { server: server.memoryMb(), simulator: simulator.memoryMb() };
console.log(`  a node: ${((emptyMb.server - aloneMb) / nodeCount * 1000).toFixed(0)} kB in the server, ${(emptyMb.simulator / nodeCount * 1000).toFixed(0)} kB in the simulator`);

if (wanted.has("pods")) await bindPods();
if (wanted.has("quiet")) await part("quiet", () => Bun.sleep(QUIET_MS).then(() => undefined));
if (wanted.has("delete")) await deletePods();
if (wanted.has("deployment")) await rollDeployment();
if (wanted.has("garbage")) await collectGarbage();
if (wanted.has("restart")) await restartServer();
if (wanted.has("lost")) await loseNodes();
for (const one of [server, simulator]) if (one.log() !== "") console.log(`${one.name} said, by how often:\n${commonest(one.log())}`);
quit.abort();
await watching;

function readyNodes(): number { return [...nodes.list()].filter(({ status }) => status?.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True")).length; }

function megabytes(one: Process): string { return `${one.memoryMb().toFixed(0)} MB`; }

/** `count` times `work`, by all clients. */
async function byClients(count: number, work: (i: number) => Promise<unknown>): Promise<number> {
  const sinceMs = performance.now();
  let next = 0;
  await Promise.all(Array.from({ length: clientCount }, async () => {
    for (let i = next++; i < count; i = next++) await work(i);
  }));
  return count / (performance.now() - sinceMs) * 1000;
}

function podSpec(image: string) {
  return { containers: [{ name: "app", image, ports: [{ containerPort: 8080 }], env: [{ name: "GREETING", value: "hello" }], resources: { requests: { cpu: "10m", memory: "16Mi" } } }] };
}

async function bindPods(): Promise<void> {
  const createdMs = new Map<string, number>(), bindMs: number[] = [];
  let running = 0, lastBoundMs = 0, lastRunningMs = 0;
  const stop = pods.onChange(({ object: { metadata: { name }, spec, status }, old, deleted }) => {
    const nowMs = performance.now(), sinceMs = createdMs.get(name);
    if (deleted || sinceMs === undefined) return;
    if (spec.nodeName && !old?.spec.nodeName) {
      bindMs.push(nowMs - sinceMs);
      lastBoundMs = nowMs;
    }
    if (status?.phase === "Running" && old?.status?.phase !== "Running") {
      running++;
      lastRunningMs = nowMs;
    }
  });
  await part(`${podCount} pods created, bound, Running`, async () => {
    const beganMs = performance.now();
    const created = await byClients(podCount, async (i) => {
      const name = `pod-${i}`;
      createdMs.set(name, performance.now());
      await client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: NAMESPACE, labels: { app: `app-${i % 100}`, half: i % 2 ? "odd" : "even" } }, spec: podSpec("example.com/web:1") } as unknown as NewObject<Pod>, { signal });
    });
    await bench.until("all pods are bound", () => bindMs.length === podCount);
    await bench.until("all pods are Running", () => running === podCount);
    bindMs.sort((a, b) => a - b);
    const rate = (endMs: number): string => `${(podCount / (endMs - beganMs) * 1000).toFixed(0)}/s`;
    return `created ${created.toFixed(0)}/s, bound ${rate(lastBoundMs)} (p50 ${percentile(bindMs, 50).toFixed(0)} ms, p99 ${percentile(bindMs, 99).toFixed(0)} ms), Running ${rate(lastRunningMs)}`;
  });
  stop();
  await Bun.sleep(10_000);
  console.log(`  a pod: ${((server.memoryMb() - emptyMb.server) / podCount * 1000).toFixed(1)} kB in the server, ${((simulator.memoryMb() - emptyMb.simulator) / podCount * 1000).toFixed(1)} kB in the simulator`);
}

/** Until no pod is left, of `count`. */
async function gone(what: string, count: number, begin: () => Promise<string>): Promise<string> {
  const beganMs = performance.now(), left = [...pods.list()].length - count;
  const said = await begin();
  await bench.until(what, () => [...pods.list()].length <= left);
  return `${said}, gone ${(count / (performance.now() - beganMs) * 1000).toFixed(0)}/s`;
}

async function deletePods(): Promise<void> {
  const half = (which: string) => [...pods.list()].filter(({ metadata }) => metadata.labels?.["half"] === which);
  const odd = half("odd"), even = half("even");
  if (odd.length > 0) await part(`${odd.length} pods deleted one by one`, () => gone("the pods are gone", odd.length, async () => `asked ${(await byClients(odd.length, (i) => client.resource(PODS).delete(odd[i]!, {}, { signal }))).toFixed(0)}/s`));
  if (even.length > 0) await part(`${even.length} pods deleted as a collection`, () => gone("the collection is gone", even.length, async () => {
    const sinceMs = performance.now();
    await client.resource(PODS).deleteCollection({ namespace: NAMESPACE, labelSelector: "half=even" }, {}, { signal });
    return `asked ${(even.length / (performance.now() - sinceMs) * 1000).toFixed(0)}/s`;
  }));
}

async function rollDeployment(): Promise<void> {
  const labels = { app: "rolled" }, name = { metadata: { name: "rolled", namespace: NAMESPACE } };
  const current = (): Promise<Readonly<Deployment>> => client.resource(DEPLOYMENTS).get(name, { signal });
  const settled = (): Promise<void> => bench.until("the Deployment has settled", async () => {
    const { metadata, spec, status = {} } = await current();
    return status.observedGeneration === metadata.generation && status.updatedReplicas === spec.replicas && status.replicas === spec.replicas && status.availableReplicas === spec.replicas;
  });
  const create = (): Promise<unknown> => client.resource(DEPLOYMENTS).create({ apiVersion: "apps/v1", kind: "Deployment", ...name, spec: { replicas: replicaCount, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: podSpec("example.com/web:1") } } } as unknown as NewObject<Deployment>, { signal });
  const rate = async (count: number, work: () => Promise<unknown>): Promise<string> => {
    const sinceMs = performance.now();
    await work();
    return `${(count / (performance.now() - sinceMs) * 1000).toFixed(0)} pods/s`;
  };
  await part(`Deployment of ${replicaCount} created`, () => rate(replicaCount, async () => { await create(); await settled(); }));
  await part("rolled (maxSurge, maxUnavailable 25 %)", () => rate(replicaCount, async () => {
    await client.resource(DEPLOYMENTS).patch(name, "application/strategic-merge-patch+json", { spec: { template: { spec: { containers: [{ name: "app", image: "example.com/web:2" }] } } } }, { signal });
    await settled();
  }));
  await part("deleted with all it owns", () => gone("its pods are gone", replicaCount, async () => {
    await client.resource(DEPLOYMENTS).delete(name, { propagationPolicy: "Background" }, { signal });
    await bench.until("its ReplicaSets are gone", async () => (await client.resource(REPLICA_SETS).list({ namespace: NAMESPACE }, { signal })).items.length === 0);
    return "asked";
  }));
}

async function collectGarbage(): Promise<void> {
  const draft = (name: string, more: object) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: NAMESPACE, ...more }, data: { key: "value" } }) as unknown as NewObject<ConfigMap>;
  const owner = await client.resource(CONFIG_MAPS).create(draft("owner", {}), { signal });
  const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: owner.metadata.uid, blockOwnerDeletion: true }];
  await part(`${objectCount} ConfigMaps created`, async () => `${(await byClients(objectCount, (i) => client.resource(CONFIG_MAPS).create(draft(`owned-${i}`, { labels: { owned: "yes" }, ownerReferences }), { signal }))).toFixed(0)}/s`);
  await Bun.sleep(3_000);
  const left = async (): Promise<number> => {
    const { items, metadata } = await client.resource(CONFIG_MAPS).list({ namespace: NAMESPACE, labelSelector: "owned", limit: 1, resourceVersion: "0" }, { signal });
    return items.length + ((metadata as { remainingItemCount?: number }).remainingItemCount ?? (metadata.continue ? 1 : 0));
  };
  await part("their owner deleted, all collected", async () => {
    const sinceMs = performance.now();
    await client.resource(CONFIG_MAPS).delete(owner, { propagationPolicy: "Background" }, { signal });
    await bench.until("all are collected", async () => (await left()) === 0);
    return `${(objectCount / (performance.now() - sinceMs) * 1000).toFixed(0)}/s`;
  });
}

async function restartServer(): Promise<void> {
  const renewed = new Set<string>();
  await bench.kill(server);
  const killedMs = Date.now();
  server = bench.start("server", serverArgs);
  await part("killed, started, ready again", async () => {
    await bench.until("the server is ready again", ready);
    return undefined;
  });
  await part("all nodes heard of again", async () => {
    await bench.until("every node has renewed its lease", async () => {
      const { items } = await client.request({ method: "GET", path: "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", signal }).catch(() => ({ items: [] })) as { items: { metadata: { name: string }; spec: { renewTime: string } }[] };
      for (const { metadata, spec } of items) if (Date.parse(spec.renewTime) > killedMs) renewed.add(metadata.name);
      await Bun.sleep(450);
      return renewed.size >= nodeCount;
    });
    await bench.until("all nodes are Ready", () => readyNodes() === nodeCount);
    return undefined;
  });
  await part("and a pod is made", async () => {
    const name = { metadata: { name: "after", namespace: NAMESPACE } };
    await client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", ...name, spec: podSpec("example.com/web:1") } as unknown as NewObject<Pod>, { signal });
    await bench.until("it runs", async () => (await client.resource(PODS).get(name, { signal })).status?.phase === "Running");
    await client.resource(PODS).delete(name, {}, { signal });
    return undefined;
  });
  await part("and then quiet", () => Bun.sleep(QUIET_MS).then(() => undefined));
}

async function loseNodes(): Promise<void> {
  if (!wanted.has("delete") && wanted.has("pods")) console.log(`  ${[...pods.list()].length} pods are on them`);
  const evicted = (): number => [...pods.list()].filter(({ metadata }) => metadata.deletionTimestamp).length;
  const tainted = (): number => [...nodes.list()].filter(({ spec }) => spec.taints?.some(({ effect }) => effect === "NoExecute")).length;
  simulator.child.kill("SIGSTOP");
  await part("all nodes fall silent: NotReady", async () => {
    await bench.until("all nodes are NotReady", () => readyNodes() === 0);
    return undefined;
  });
  await part("silent for longer", async () => {
    await Bun.sleep(QUIET_MS);
    return `${tainted()} tainted NoExecute, ${evicted()} pods evicted`;
  });
  simulator.child.kill("SIGCONT");
  await part("and come back: Ready", async () => {
    await bench.until("all nodes are Ready", () => readyNodes() === nodeCount);
    return undefined;
  });
  await part("without taints", async () => {
    await bench.until("no taint is left", () => [...nodes.list()].every(({ spec }) => (spec.taints ?? []).length === 0));
    return undefined;
  });
}

/** Log lines without what differs, the commonest first. */
function commonest(text: string): string {
  const counts = new Map<string, number>();
  for (const line of text.split("\n")) {
    const message = /"msg":"([^"]*)"/.exec(line)?.[1] ?? line.replace(/^\S+ \S+ /, "").slice(0, 160);
    if (message) counts.set(message, (counts.get(message) ?? 0) + 1);
  }
  return [...counts].sort(([, a], [, b]) => b - a).slice(0, 12).map(([message, count]) => `  ${count} × ${message}`).join("\n");
}
