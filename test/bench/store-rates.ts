/**
 * What the store can do on this machine.
 *
 *   bun test/bench/store-rates.ts [directory]        (a directory on the disk to measure; default: the system's temporary one)
 *
 * Durable puts one after the other and with 64 and 512 in flight, each as a ratio to the disk's own fsync in the same run; reads; listings; what reaches the
 * device per byte put; memory; and how long it takes to open.
 */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { openStore } from "../../storage/open.ts";
import type { Store, Value } from "../../storage/store.ts";

const dir = mkdtempSync(join(process.argv[2] ?? tmpdir(), "store-rates-"));
const path = join(dir, "store");
const key = (i: number): string => `/registry/pods/ns-${String(i % 50).padStart(2, "0")}/web-7d4b9c6f5d-${String(i).padStart(6, "0")}`;

function pod(i: number, generation = 0): Value {
  const at = "2026-01-01T00:00:00Z";
  return {
    apiVersion: "v1", kind: "Pod",
    metadata: {
      name: `web-7d4b9c6f5d-${i}`, namespace: `ns-${i % 50}`, uid: crypto.randomUUID(), creationTimestamp: at, generation, labels: { app: "web", "pod-template-hash": "7d4b9c6f5d" },
      ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-7d4b9c6f5d", uid: crypto.randomUUID(), controller: true, blockOwnerDeletion: true }],
      managedFields: [{ manager: "kubelet", operation: "Update", apiVersion: "v1", time: at, fieldsType: "FieldsV1", subresource: "status", fieldsV1: { "f:status": { "f:conditions": { 'k:{"type":"Ready"}': { ".": {}, "f:status": {}, "f:lastTransitionTime": {} } }, "f:phase": {}, "f:podIP": {} } } }],
    },
    spec: {
      containers: [{
        name: "web", image: "registry.example/web:1.27", ports: [{ containerPort: 80, protocol: "TCP" }], env: [{ name: "A", value: `${i}` }, { name: "B", value: "c" }],
        resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { cpu: "1", memory: "1Gi" } }, imagePullPolicy: "IfNotPresent", terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: "File",
        livenessProbe: { httpGet: { path: "/healthz", port: 80, scheme: "HTTP" }, periodSeconds: 10, timeoutSeconds: 1, successThreshold: 1, failureThreshold: 3 },
        volumeMounts: [{ name: "kube-api-access", readOnly: true, mountPath: "/var/run/secrets/kubernetes.io/serviceaccount" }],
      }],
      restartPolicy: "Always", terminationGracePeriodSeconds: 30, dnsPolicy: "ClusterFirst", serviceAccountName: "default", nodeName: `node-${i % 9}`, securityContext: {}, schedulerName: "default-scheduler",
      tolerations: [{ key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 }], priority: 0, enableServiceLinks: true, preemptionPolicy: "PreemptLowerPriority",
      volumes: [{ name: "kube-api-access", projected: { sources: [{ serviceAccountToken: { expirationSeconds: 3607, path: "token" } }], defaultMode: 420 } }],
    },
    status: {
      phase: "Running", conditions: [{ type: "Ready", status: "True", lastProbeTime: null, lastTransitionTime: at }, { type: "PodScheduled", status: "True", lastProbeTime: null, lastTransitionTime: at }],
      hostIP: "10.0.0.1", podIP: "10.42.0.5", podIPs: [{ ip: "10.42.0.5" }], startTime: at, qosClass: "Burstable",
      containerStatuses: [{ name: "web", state: { running: { startedAt: at } }, lastState: {}, ready: true, restartCount: generation, image: "web", imageID: `sha256:${crypto.randomUUID()}`, containerID: `containerd://${crypto.randomUUID()}`, started: true }],
    },
  };
}

function print(name: string, figure: string): void {
  console.log(`${name.padEnd(44)} ${figure}`);
}

function deviceBytes(): number {
  return process.platform === "linux" ? Number(/^write_bytes: (\d+)/m.exec(readFileSync("/proc/self/io", "utf8"))?.[1]) : Number.NaN;
}

function heapMb(): number {
  Bun.gc(true);
  return process.memoryUsage.rss() / 2 ** 20;
}

async function rate(name: string, count: number, work: () => Promise<unknown>, fsyncs?: number): Promise<void> {
  const startMs = performance.now();
  await work();
  const perSecond = (count / (performance.now() - startMs)) * 1000;
  print(name, `${Math.round(perSecond).toLocaleString("en")}/s${fsyncs === undefined ? "" : `, ${(perSecond / fsyncs).toFixed(1)} × the disk's own fsyncs`}`);
}

async function inFlight(count: number, parallel: number, work: (i: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  await Promise.all(Array.from({ length: parallel }, async () => { while (next < count) await work(next++); }));
}

/** Appends of 1 kB, each with fdatasync. */
function fsyncRate(): number {
  const handle = openSync(join(dir, "fsync"), "w");
  const bytes = new Uint8Array(1024);
  const startMs = performance.now();
  for (let i = 0; i < 500; i++) {
    writeSync(handle, bytes);
    fdatasyncSync(handle);
  }
  closeSync(handle);
  return (500 / (performance.now() - startMs)) * 1000;
}

async function puts(store: Store): Promise<void> {
  const jsonBytes = JSON.stringify(pod(1)).length;
  const values = Array.from({ length: 20_000 }, (_, i) => pod(i));
  const revisions = new Map<number, number>();
  const put = async (i: number, value: Value): Promise<void> => void revisions.set(i, await store.put(key(i), value, revisions.get(i) ?? 0));
  for (const [count, parallel] of [[500, 1], [6000, 64], [20_000, 512]] as const) {
    const disk = fsyncRate();
    const fresh = Array.from({ length: count }, (_, i) => pod(i, 1));
    await rate(`put, durable, ${parallel} in flight`, count, () => inFlight(count, parallel, (i) => put(i, fresh[i]!)), disk);
  }
  const before = deviceBytes();
  await inFlight(20_000, 64, (i) => put((i * 7919) % 2000, values[i]!));
  print("to the device per byte of JSON put, 64 in flight", ((deviceBytes() - before) / (20_000 * jsonBytes)).toFixed(2));
  const beforeOne = deviceBytes();
  await inFlight(1000, 1, (i) => put(i, values[i + 1]!));
  print("to the device per durable put of one pod alone", `${((deviceBytes() - beforeOne) / 1000 / 1024).toFixed(1)} kB (JSON: ${(jsonBytes / 1024).toFixed(1)} kB)`);
}

async function reads(store: Store): Promise<void> {
  await rate("get", 500_000, async () => { for (let i = 0; i < 500_000; i++) await store.get(key(i % 20_000)); });
  await rate("list of 400 rows (a namespace), rows", 400 * 1000, async () => { for (let i = 0; i < 1000; i++) await store.list({ prefix: `/registry/pods/ns-${String(i % 50).padStart(2, "0")}/` }); });
  await rate("list of 20,000 rows in pages of 500, rows", 20_000 * 20, async () => {
    for (let round = 0; round < 20; round++) {
      for (let after: string | undefined, more = true; more; ) {
        const page = await store.list({ prefix: "/registry/pods/", limit: 500, ...(after !== undefined && { after }) });
        ({ more } = page);
        after = page.rows.at(-1)?.key;
      }
    }
  });
  const stop = new AbortController();
  let received = 0;
  const watchers = Array.from({ length: 100 }, async (_, i) => {
    for await (const { events } of store.watch({ prefix: i < 50 ? "/registry/pods/" : "/registry/nodes/", after: store.revision }, stop.signal)) received += events.length;
  });
  let revision = 0;
  await rate("put with 100 watchers, 64 in flight", 6000, () => inFlight(6000, 64, async (i) => { revision = Math.max(revision, await store.put(`/registry/pods/new/${i}`, pod(i), 0)); }));
  while (received < 50 * 6000) await Bun.sleep(1);
  stop.abort();
  await Promise.all(watchers);
}

const emptyMb = heapMb();
let store = await openStore({ path, clock: systemClock });
await puts(store);
await reads(store);
await store.close();
const startMs = performance.now();
store = await openStore({ path, clock: systemClock });
const openMs = performance.now() - startMs;
const { rows } = await store.list({ prefix: "" });
print(`open with ${rows.length.toLocaleString("en")} rows`, `${Math.round(openMs)} ms, ${(openMs / rows.length * 1000).toFixed(0)} µs a row`);
print("resident memory before and with all that", `${Math.round(emptyMb)} and ${Math.round(heapMb())} MB`);
await store.close();
rmSync(dir, { recursive: true });
