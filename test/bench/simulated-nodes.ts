/**
 * What many nodes ask of one server: `bun test/bench/simulated-nodes.ts [--nodes 100] [--pods 3000] [--seconds 60] [--one-name]` on the compiled binary.
 *
 * A server without a node of its own and `coracle simulate`, both on this machine's loopback, so both share its processors: the CPU of each is given apart.
 * Prints: time until all nodes are Ready and all pods Running; then quiet, a minute of it; then while one pod after another is replaced: the server's CPU (percent of one
 * processor) and memory (PSS), and latencies of API calls, as a client beside them measures and as the server's own histogram says (upper bound of the bucket).
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { readKubeconfig } from "../../cmd/kubeconfig-file.ts";
import type { Node, Pod } from "../../core/api/gen/core.v1.ts";
import { httpTransport } from "../../core/client/http-transport.ts";
import { informerFactory } from "../../core/client/informer-factory.ts";
import { clientOver } from "../../core/client/resource-client.ts";
import { CONFIG_MAPS, DEPLOYMENTS, NODES, PODS } from "../../core/client/resources.ts";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { systemRandom } from "../../core/lifecycle/random.ts";
import { silentLog } from "../../core/observe/log.ts";
import { compiledBench, isWritten, percentile } from "./compiled.ts";

const { values } = parseArgs({ options: { nodes: { type: "string", default: "100" }, pods: { type: "string", default: "3000" }, seconds: { type: "string", default: "60" }, "one-name": { type: "boolean", default: false }, port: { type: "string", default: "16463" } } });
const nodeCount = Number(values.nodes), podCount = Number(values.pods), seconds = Number(values.seconds);
const DEPLOYMENTS_OF = 100; // pods in each Deployment
await using bench = compiledBench();
const { directory, until } = bench;
const kubeconfig = join(directory, "kubeconfig");
const quit = new AbortController(), { signal } = quit;
const secondsSince = (ms: number): string => `${((performance.now() - ms) / 1000).toFixed(1)} s`;

try {
  const server = bench.start("server", ["server", "--disable-agent", "--write-kubeconfig", kubeconfig, "--https-listen-port", values.port, "--bind-address", "127.0.0.1", "--node-name", "bench", "--log-level", "warn", "--cluster-cidr", "10.0.0.0/12"]);
  await until("the server's kubeconfig", () => isWritten(kubeconfig));
  const { server: url, credentials } = readKubeconfig(kubeconfig);
  const client = clientOver(httpTransport({ server: url, credentials: () => credentials, clock: systemClock }));
  const ready = (): Promise<boolean> => client.request({ method: "GET", path: "/readyz", signal }).then((answer) => answer === "ok", () => false);
  await until("the server to be ready", ready);
  const informers = informerFactory({ client, clock: systemClock, random: systemRandom, log: silentLog });
  const nodes = informers.of(NODES), pods = informers.of(PODS);
  const watching = informers.run(signal, () => {});
  await Promise.all([nodes.whenSynced(signal), pods.whenSynced(signal)]);
  console.log(`server alone: ${server.memoryMb().toFixed(0)} MB`);

  const who = values["one-name"] ? ["--kubeconfig", kubeconfig] : ["--server", url, "--token-file", join(directory, "server/server/token")];
  const beganMs = performance.now();
  const simulator = bench.start("simulate", ["simulate", ...who, "--nodes", String(nodeCount), "--log-level", "warn"]);
  const isReady = ({ status }: Readonly<Node>): boolean => status?.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True") ?? false;
  await until("all nodes Ready", () => [...nodes.list()].filter(isReady).length === nodeCount);
  console.log(`${nodeCount} nodes Ready: ${secondsSince(beganMs)}; server ${server.memoryMb().toFixed(0)} MB, ${(server.cpuMs() / 1000).toFixed(1)} s of CPU so far`);

  const fillMs = performance.now(), fillCpuMs = server.cpuMs();
  const names = Array.from({ length: Math.ceil(podCount / DEPLOYMENTS_OF) }, (_, i) => `web-${i}`);
  for (const name of names) {
    const labels = { app: name };
    const template = { metadata: { labels }, spec: { containers: [{ name: "app", image: "example.com/web:1", ports: [{ containerPort: 8080 }], env: [{ name: "GREETING", value: "hello" }], resources: { requests: { cpu: "10m", memory: "16Mi" } } }] } };
    await client.resource(DEPLOYMENTS).create({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name, namespace: "default", labels }, spec: { replicas: Math.min(DEPLOYMENTS_OF, podCount), selector: { matchLabels: labels }, template } }, { signal });
    await client.request({ method: "POST", path: "/api/v1/namespaces/default/services", body: { apiVersion: "v1", kind: "Service", metadata: { name, namespace: "default" }, spec: { selector: labels, ports: [{ port: 80, targetPort: 8080 }] } }, signal });
  }
  const running = (): Readonly<Pod>[] => [...pods.list()].filter(({ status }) => status?.phase === "Running");
  await until("all pods Running", () => running().length >= names.length * Math.min(DEPLOYMENTS_OF, podCount));
  const tookSeconds = (performance.now() - fillMs) / 1000;
  console.log(`${running().length} pods Running: ${tookSeconds.toFixed(1)} s (${(running().length / tookSeconds).toFixed(0)} a second, create to Running); server ${((server.cpuMs() - fillCpuMs) / tookSeconds / 10).toFixed(0)} % CPU, ${server.memoryMb().toFixed(0)} MB`);
  await Bun.sleep(10_000);

  await observe("quiet", async () => {});
  let victim = 0;
  await observe("one pod in a second deleted and replaced", async () => {
    const pod = running()[(victim += 37) % running().length];
    if (pod) await client.resource(PODS).delete(pod, {}, { signal });
  });

  /** Measures for a while, doing `work` once a second. */
  async function observe(label: string, work: () => Promise<void>): Promise<void> {
    const before = { ms: performance.now(), server: server.cpuMs(), simulator: simulator.cpuMs(), written: server.writtenMb(), histogram: await durations() };
    const latencies = new Map<string, number[]>();
    const timed = async (name: string, call: () => Promise<unknown>): Promise<void> => {
      const callMs = performance.now();
      await call();
      latencies.set(name, [...(latencies.get(name) ?? []), performance.now() - callMs]);
    };
    const object = await client.resource(CONFIG_MAPS).create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: `probe-${label.replaceAll(" ", "-")}`, namespace: "default" }, data: {} }, { signal });
    for (let i = 0; performance.now() - before.ms < seconds * 1000; i++) {
      if (i % 10 === 0) await work();
      const one = running()[(i * 101) % Math.max(1, running().length)];
      if (one) await timed("get pod", () => client.resource(PODS).get(one, { signal }).catch(() => undefined));
      await timed("patch", () => client.resource(CONFIG_MAPS).patch(object, "application/merge-patch+json", { data: { i: String(i) } }, { signal }));
      if (i % 10 === 0) await timed("list 500 pods", () => client.resource(PODS).list({ namespace: "default", limit: 500 }, { signal }));
      if (i % 50 === 0) await timed("list all pods", () => client.resource(PODS).list({}, { signal }));
      await Bun.sleep(100);
    }
    const took = performance.now() - before.ms;
    console.log(`${label}, ${(took / 1000).toFixed(0)} s: server ${((server.cpuMs() - before.server) / took * 100).toFixed(1)} % CPU, ${server.memoryMb().toFixed(0)} MB PSS, ${((server.writtenMb() - before.written) / took * 60_000).toFixed(1)} MB/min written; simulator ${((simulator.cpuMs() - before.simulator) / took * 100).toFixed(1)} % CPU, ${simulator.memoryMb().toFixed(0)} MB`);
    for (const [name, all] of latencies) {
      const sorted = all.toSorted((a, b) => a - b);
      console.log(`  ${name.padEnd(14)} n=${String(all.length).padEnd(4)} p50 ${percentile(sorted, 50).toFixed(1)} ms, p99 ${percentile(sorted, 99).toFixed(1)} ms, max ${sorted.at(-1)!.toFixed(1)} ms`);
    }
    const after = await durations();
    for (const verb of [...after.keys()].sort()) {
      const counts = difference(after.get(verb)!, before.histogram.get(verb));
      if (counts.total > 0) console.log(`  server ${verb.padEnd(7)} ${(counts.total / took * 1000).toFixed(1)}/s, p50 ≤ ${bound(counts, 50)} ms, p99 ≤ ${bound(counts, 99)} ms`);
    }
  }

  /** Of apiserver_request_duration_seconds without watches and connections, by verb. */
  async function durations(): Promise<Map<string, Histogram>> {
    const text = String(await client.request({ method: "GET", path: "/metrics", signal }));
    const found = new Map<string, Histogram>();
    for (const [, labels = "", value] of text.matchAll(/^apiserver_request_duration_seconds_bucket\{(.*)\} (\d+)$/gm)) {
      const label = (name: string): string => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? "";
      const verb = label("verb"), le = label("le") === "+Inf" ? Number.POSITIVE_INFINITY : Number(label("le"));
      if (verb === "WATCH" || verb === "CONNECT") continue;
      const buckets = found.get(verb)?.buckets ?? new Map<number, number>();
      buckets.set(le, (buckets.get(le) ?? 0) + Number(value));
      found.set(verb, { buckets, total: buckets.get(Number.POSITIVE_INFINITY) ?? 0 });
    }
    return found;
  }
  await Promise.race([watching, Bun.sleep(0)]);
} finally {
  quit.abort();
}

interface Histogram { readonly buckets: Map<number, number>; readonly total: number }

function difference(after: Histogram, before: Histogram | undefined): Histogram {
  return { buckets: new Map([...after.buckets].map(([le, count]) => [le, count - (before?.buckets.get(le) ?? 0)])), total: after.total - (before?.total ?? 0) };
}

function bound({ buckets, total }: Histogram, p: number): string {
  const [le] = [...buckets].sort(([a], [b]) => a - b).find(([, count]) => count >= (total * p) / 100) ?? [Number.NaN];
  return (le * 1000).toFixed(0);
}
