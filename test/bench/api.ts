/**
 * What the API costs: `bun test/bench/api.ts [--pods 10000] [--watchers 500] [--only create,get,…] [--h2]` on the compiled binary (CORACLE_BINARY names another; compiled.ts).
 * With `--kubeconfig <file> --pids <pid>,<pid>` the same load goes to another API server that already runs here, whose processes these are.
 *
 * One server without a node, controllers or scheduler, over TLS on this machine's loopback, with fsync; clients in this process over HTTP/1.1 (--h2: HTTP/2, one connection for
 * eight clients), with a client certificate.
 * Prints of each operation: how many a second, p50 and p99 of its time, and CPU of the server's process for one of it; of lists their size; of watches what each costs
 * in memory, and how fast an event reaches the last; the server's memory (PSS) after each part. Upstream's figures beside them are of kube-apiserver 1.36 and etcd, both
 * processes' CPU together, on two processors shared with their clients.
 */
import * as http2 from "node:http2";
import { join } from "node:path";
import * as tls from "node:tls";
import { parseArgs } from "node:util";
import { gunzipSync } from "node:zlib";
import { readKubeconfig } from "../../cmd/kubeconfig-file.ts";
import { compiledBench, isWritten, percentile, processUse } from "./compiled.ts";

const { values } = parseArgs({
  options: {
    pods: { type: "string", default: "10000" }, watchers: { type: "string", default: "500" }, only: { type: "string", default: "create,get,status,apply,lease,list,watch,mixed,delete" },
    h2: { type: "boolean", default: false }, port: { type: "string", default: "16444" },
    kubeconfig: { type: "string" }, pids: { type: "string", default: "" },
  },
});
const podCount = Number(values.pods), watcherCount = Number(values.watchers);
const wanted = new Set(values.only.split(","));

await using bench = compiledBench();
const kubeconfig = values.kubeconfig ?? join(bench.directory, "kubeconfig");
const server = values.kubeconfig === undefined ? bench.start("server", ["server", "--disable-agent", "--disable", "controllers,scheduler,dns,local-storage", "--write-kubeconfig", kubeconfig, "--https-listen-port", values.port, "--bind-address", "127.0.0.1", "--node-name", "bench", "--log-level", "warn"]) : undefined;
const { memoryMb: pssMb, cpuMs } = server ?? processUse(values.pids.split(",").map(Number));
await bench.until("the server writes its kubeconfig", () => isWritten(kubeconfig));
const { server: url, credentials } = readKubeconfig(kubeconfig);
const { ca, cert, key } = credentials as { ca: string; cert: string; key: string };

/** Long answers come compressed, as Go's clients and Bun's ask for it, unless they are to come as they are. */
interface Asked { readonly body?: unknown; readonly accept?: string; readonly type?: string; readonly plain?: boolean }
async function ask(method: string, path: string, { body, accept = "application/json", type = "application/json", plain = false }: Asked = {}): Promise<Buffer> {
  if (values.h2) return await askH2(method, path, { body, accept, type, plain });
  const response = await fetch(url + path, {
    method, headers: { accept, "user-agent": "bench/1", ...(plain && { "accept-encoding": "identity" }), ...(body !== undefined && { "content-type": type }) }, tls: { ca, cert, key },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  } as RequestInit);
  const bytes = Buffer.from(await response.arrayBuffer());
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${bytes.toString().slice(0, 300)}`);
  return bytes;
}
const sessions: http2.ClientHttp2Session[] = [];
let turn = 0;
async function askH2(method: string, path: string, { body, accept, type, plain }: Required<Asked>): Promise<Buffer> {
  if (sessions.length < 8) sessions.push(http2.connect(url, { ca, cert, key }));
  const stream = sessions[turn++ % sessions.length]!.request({ ":method": method, ":path": path, accept, "user-agent": "bench/1", ...(!plain && { "accept-encoding": "gzip" }), ...(body !== undefined && { "content-type": type }) });
  let status = 0, isZipped = false;
  stream.on("response", (headers) => { status = Number(headers[":status"]); isZipped = headers["content-encoding"] === "gzip"; });
  stream.end(body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body));
  const chunks: Buffer[] = [];
  for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
  const bytes = isZipped ? gunzipSync(Buffer.concat(chunks)) : Buffer.concat(chunks);
  if (status < 200 || status > 299) throw new Error(`${method} ${path}: ${status} ${bytes.toString().slice(0, 300)}`);
  return bytes;
}
const json = async <T>(method: string, path: string, asked?: Asked): Promise<T> => JSON.parse((await ask(method, path, asked)).toString()) as T;

/** `count` times `work`, by so many clients at once. */
async function measure(label: string, { count, clients, upstream = "" }: { readonly count: number; readonly clients: number; readonly upstream?: string }, work: (i: number) => Promise<unknown>): Promise<void> {
  const times: number[] = [];
  let next = 0;
  const beforeMs = performance.now(), beforeCpu = cpuMs();
  await Promise.all(Array.from({ length: clients }, async () => {
    for (let i = next++; i < count; i = next++) {
      const startMs = performance.now();
      await work(i);
      times.push(performance.now() - startMs);
    }
  }));
  const tookMs = performance.now() - beforeMs, cpu = cpuMs() - beforeCpu;
  times.sort((a, b) => a - b);
  console.log(`${label.padEnd(34)} ${(count / tookMs * 1000).toFixed(0).padStart(6)}/s   p50 ${percentile(times, 50).toFixed(1).padStart(6)} ms   p99 ${percentile(times, 99).toFixed(1).padStart(6)} ms   ${(cpu / count).toFixed(2).padStart(6)} ms of CPU   ${pssMb().toFixed(0)} MB${upstream && `   upstream: ${upstream}`}`);
}

const PROTOBUF = "application/vnd.kubernetes.protobuf";
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";
const PODS = "/api/v1/namespaces/load/pods";

/** 2.5 kB as JSON, once stored. */
function pod(i: number, name = `pod-${i}`) {
  const env = [{ name: "SETTING", value: `value-for-pod-${i}` }];
  return {
    apiVersion: "v1", kind: "Pod",
    metadata: { name, namespace: "load", labels: { app: `app-${i % 100}`, tier: i % 10 === 0 ? "front" : "back", "pod-template-hash": "5d4f8c7b9" } },
    spec: {
      containers: [{
        name: "app", image: "registry.example.com/team/application:v1.2.3", env,
        resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { cpu: "1", memory: "256Mi" } },
      }],
      nodeSelector: { "kubernetes.io/os": "linux" },
    },
  };
}

interface Stored { metadata: { name: string; resourceVersion: string }; status: object }

async function creates(): Promise<void> {
  let made = 0;
  const some = async (label: string, most: number, clients: number, upstream: string): Promise<void> => {
    const before = made, count = Math.floor(Math.min(most, podCount - made));
    made += count;
    await measure(`create, ${label}`, { count, clients, upstream }, (i) => ask("POST", PODS, { body: pod(before + i) }));
  };
  await some("1 client, of a new server", Math.min(500, podCount / 10), 1, "323/s, 2.1–3.6 ms"); // whose code the engine has not compiled yet: several times the work of later
  await some("16 clients", podCount * 0.4, 16, "642/s");
  await some("1 client", Math.min(1_000, podCount / 10), 1, "323/s, 2.1–3.6 ms");
  await some("64 clients", podCount, 64, "811/s");
  const one = await ask("GET", `${PODS}/pod-1`);
  console.log(`  a pod is ${one.length} bytes of JSON`);
}

async function gets(): Promise<void> {
  const path = (i: number): string => `${PODS}/pod-${(i * 37) % podCount}`;
  await measure("get JSON, 1 client", { count: 1_000, clients: 1, upstream: "0.6–1.4 ms of CPU" }, (i) => ask("GET", path(i)));
  await measure("get JSON, 16 clients", { count: 5_000, clients: 16 }, (i) => ask("GET", path(i)));
  await measure("get protobuf, 16 clients", { count: 5_000, clients: 16 }, (i) => ask("GET", path(i), { accept: PROTOBUF }));
}

async function statuses(): Promise<void> {
  const some = await Promise.all(Array.from({ length: 500 }, (_, i) => json<Stored>("GET", `${PODS}/pod-${i}`)));
  await measure("update of status, 16 clients", { count: 3_000, clients: 16, upstream: "407/s, 4.2 ms" }, async (i) => {
    const at = some[i % some.length]!;
    const now = new Date(1_700_000_000_000 + i * 1000).toISOString().replace(".000", "");
    const status = {
      phase: "Running", podIP: `10.42.${i % 250}.${i % 240}`, podIPs: [{ ip: `10.42.${i % 250}.${i % 240}` }], startTime: now,
      conditions: ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map((type) => ({ type, status: "True", lastTransitionTime: now })),
      containerStatuses: [{ name: "app", ready: true, restartCount: 0, image: "registry.example.com/team/application:v1.2.3", imageID: "sha256:0123", state: { running: { startedAt: now } } }],
    };
    some[i % some.length] = await json<Stored>("PUT", `${PODS}/${at.metadata.name}/status`, { body: { ...at, status } });
  });
}

async function applies(): Promise<void> {
  const path = (i: number): string => `/api/v1/namespaces/load/configmaps/applied-${i % 200}?fieldManager=bench&force=true`;
  const body = (i: number) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: `applied-${i % 200}`, namespace: "load", labels: { app: "applied" } }, data: Object.fromEntries(Array.from({ length: 10 }, (_, k) => [`key-${k}`, `value ${k === 0 ? i : k}`])) });
  await measure("server-side apply, 16 clients", { count: 4_000, clients: 16, upstream: "1126/s" }, (i) => ask("PATCH", path(i), { body: body(i), type: "application/apply-patch+yaml" }));
}

async function leases(): Promise<void> {
  const base = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
  const lease = (i: number, more: object = {}) => ({ apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: `lease-${i}`, namespace: "kube-node-lease", ...more }, spec: { holderIdentity: `node-${i}`, leaseDurationSeconds: 40, renewTime: "2026-01-01T00:00:00.000000Z" } });
  const made = await Promise.all(Array.from({ length: 200 }, (_, i) => json<Stored>("POST", base, { body: lease(i) })));
  await measure("renewals of leases, 16 clients", { count: 5_000, clients: 16, upstream: "1386/s, 1.2 ms" }, async (i) => {
    const at = made[i % 200]!;
    const renewed = { ...at, spec: { holderIdentity: `node-${i % 200}`, leaseDurationSeconds: 40, renewTime: new Date(1_700_000_000_000 + i * 1000).toISOString().replace("Z", "000Z") } };
    made[i % 200] = await json<Stored>("PUT", `${base}/lease-${i % 200}`, { body: renewed });
  });
}

async function lists(): Promise<void> {
  const list = (label: string, query: string, accept: string, upstream: string, plain = false): Promise<void> => {
    let bytes = 0;
    return measure(`list ${label}`, { count: 8, clients: 1, upstream }, async () => { bytes = (await ask("GET", PODS + query, { accept, plain })).length; }).then(() => console.log(`  ${(bytes / 1e6).toFixed(2)} MB`));
  };
  await list("JSON", "", "application/json", "575 ms");
  await list("JSON, not compressed", "", "application/json", "", true);
  await list("JSON, from cache", "?resourceVersion=0", "application/json", "");
  await list("protobuf", "", PROTOBUF, "442 ms");
  await list("Table", "", TABLE, "491 ms");
  await list("metadata", "", METADATA, "230 ms");
  await list("by selector, 1,000 hits", "?labelSelector=tier%3Dfront", "application/json", "64 ms");
  await measure("list in pages of 500, all of them", { count: 3, clients: 1 }, async () => {
    for (let token = ""; ; ) {
      const page = await json<{ metadata: { continue?: string } }>("GET", `${PODS}?limit=500${token && `&continue=${encodeURIComponent(token)}`}`);
      token = page.metadata.continue ?? "";
      if (token === "") break;
    }
  });
  await measure("watch-list", { count: 3, clients: 1, upstream: "1275 ms" }, async () => {
    const done = Promise.withResolvers<void>();
    const socket = await watch("?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", (chunk) => { if (chunk.includes("k8s.io/initial-events-end")) done.resolve(); });
    await done.promise;
    socket.destroy();
  });
}

/** A watch over a connection of its own, with what comes over it. */
async function watch(query: string, onData: (chunk: Buffer) => void, accept = "application/json"): Promise<tls.TLSSocket> {
  const { hostname, port } = new URL(url);
  const socket = tls.connect({ host: hostname, port: Number(port), ca, cert, key, ALPNProtocols: ["http/1.1"] });
  await new Promise<void>((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject));
  socket.on("data", onData);
  socket.write(`GET ${PODS}${query} HTTP/1.1\r\nhost: bench\r\naccept: ${accept}\r\nuser-agent: bench/1\r\n\r\n`);
  return socket;
}

async function watches(): Promise<void> {
  const { metadata } = await json<{ metadata: { resourceVersion: string } }>("GET", `${PODS}?limit=1`);
  const beforeMb = pssMb();
  const counts = new Array<number>(watcherCount).fill(0);
  let waiting: { readonly each: number; readonly resolve: () => void } | undefined;
  let behind = 0;
  const sockets = await Promise.all(Array.from({ length: watcherCount }, (_, k) => {
    let before = 0; // the last byte of what came before
    return watch(`?watch=1&resourceVersion=${metadata.resourceVersion}`, (chunk) => {
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) // an event ends with a newline; those of HTTP follow a carriage return
        if ((at > 0 ? chunk[at - 1] : before) !== 13 && ++counts[k]! === waiting?.each && --behind === 0) waiting.resolve();
      before = chunk.at(-1) ?? before;
    });
  }));
  await Bun.sleep(2_000);
  console.log(`${watcherCount} watchers: ${((pssMb() - beforeMb) * 1024 / watcherCount).toFixed(0)} kB each (connection included); upstream 84 kB`);
  const all = (each: number): Promise<void> => new Promise((resolve) => { behind = counts.filter((count) => count < each).length; waiting = { each, resolve }; });
  let sent = 0;
  const annotate = (i: number): Promise<Buffer> => ask("PATCH", `${PODS}/pod-${i % podCount}`, { body: { metadata: { annotations: { "example.com/touched": String(sent++) } } }, type: "application/merge-patch+json" });
  let delivered = 0;
  await measure("write to the last watcher", { count: 50, clients: 1, upstream: "20 ms p50 (500 watchers)" }, async (i) => {
    const arrived = all(++delivered);
    await annotate(i);
    await arrived;
  });
  const burst = 200, startMs = performance.now(), startCpu = cpuMs();
  const arrived = all(delivered + burst);
  await Promise.all(Array.from({ length: 16 }, async (_, k) => { for (let i = k; i < burst; i += 16) await annotate(i); }));
  await arrived;
  const tookMs = performance.now() - startMs;
  console.log(`${burst} writes to ${watcherCount} watchers: ${(burst * watcherCount / tookMs * 1000).toFixed(0)} events/s, ${((cpuMs() - startCpu) / (burst * watcherCount) * 1000).toFixed(1)} µs of CPU each; upstream 35,000/s   ${pssMb().toFixed(0)} MB`);
  for (const socket of sockets) socket.destroy();
  await Bun.sleep(500);
}

async function mixed(): Promise<void> {
  await measure("mixed, 32 clients", { count: 6_000, clients: 32 }, async (i) => {
    const name = `pod-${(i * 53) % podCount}`;
    switch (i % 10) {
      case 0: return ask("POST", PODS, { body: pod(i, `mixed-${i}`) });
      case 1: return ask("PATCH", `${PODS}/${name}`, { body: { metadata: { labels: { mixed: String(i) } } }, type: "application/merge-patch+json" });
      case 2: return ask("GET", `${PODS}?labelSelector=app%3Dapp-${i % 100}`, { accept: PROTOBUF });
      case 3: return ask("PATCH", `/api/v1/namespaces/load/configmaps/mixed-${i % 50}?fieldManager=m&force=true`, { body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `mixed-${i % 50}`, namespace: "load" }, data: { i: String(i) } }, type: "application/apply-patch+yaml" });
      default: return ask("GET", `${PODS}/${name}`, { accept: i % 2 ? PROTOBUF : "application/json" });
    }
  });
}

async function deletes(): Promise<void> {
  await measure("delete, 16 clients", { count: Math.min(2_000, podCount / 2), clients: 16 }, (i) => ask("DELETE", `${PODS}/pod-${i}?gracePeriodSeconds=0`));
  const { items } = await json<{ items: unknown[] }>("GET", PODS);
  const startMs = performance.now(), startCpu = cpuMs();
  await ask("DELETE", `${PODS}?gracePeriodSeconds=0`);
  const tookMs = performance.now() - startMs;
  console.log(`deletecollection of ${items.length} pods: ${(items.length / tookMs * 1000).toFixed(0)}/s, ${((cpuMs() - startCpu) / items.length).toFixed(2)} ms of CPU each; upstream 260/s`);
}

try {
  await bench.until("the server is ready", () => ask("GET", "/readyz").then(() => true, () => false));
  await ask("POST", "/api/v1/namespaces", { body: { apiVersion: "v1", kind: "Namespace", metadata: { name: "load" } } });
  await ask("POST", "/api/v1/namespaces/load/serviceaccounts", { body: { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "default", namespace: "load" } } });
  console.log(`server alone: ${pssMb().toFixed(0)} MB`);
  await creates(); // all others need them
  for (const [name, part] of Object.entries({ get: gets, status: statuses, apply: applies, lease: leases, list: lists, watch: watches, mixed, delete: deletes })) if (wanted.has(name)) await part();
  await Bun.sleep(5_000);
  console.log(`in the end: ${pssMb().toFixed(0)} MB`);
} finally {
  for (const session of sessions) session.destroy();
  if (server !== undefined && server.log() !== "") console.log(server.log().slice(0, 2_000));
}
