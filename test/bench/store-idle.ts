/**
 * What an idle cluster writes to flash: only leases are renewed. The clock runs 600 times faster, the disk is the real one.
 *
 *   bun test/bench/store-idle.ts [nodes=10] [minutes=60]
 *
 * Every node renews its lease each 10 s, three leaders renew theirs each 2 s; holders never change. Printed are the bytes that reached the device per minute of
 * the cluster's life, as Linux accounts them to this process.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { openStore } from "../../storage/open.ts";
import type { Value } from "../../storage/store.ts";

const SPEED = 600;
const LEADERS = 3;
const nodes = Number(process.argv[2] ?? 10);
const minutes = Number(process.argv[3] ?? 60);
const dir = mkdtempSync(join(tmpdir(), "store-idle-"));
const clock = { uptimeMs: () => systemClock.uptimeMs() * SPEED, after: (ms: number, work: () => void) => systemClock.after(ms / SPEED, work) };
const holder = (value: Value | undefined): unknown => (value?.["spec"] as { holderIdentity?: unknown } | undefined)?.holderIdentity;

function deviceBytes(): number {
  return Number(/^write_bytes: (\d+)/m.exec(readFileSync("/proc/self/io", "utf8"))?.[1]);
}

function lease(name: string, second: number): Value {
  const at = new Date(1.8e12 + second * 1000).toISOString().replace("Z", "000Z");
  return {
    apiVersion: "coordination.k8s.io/v1", kind: "Lease",
    metadata: { name, namespace: "kube-node-lease", uid: "7d2a4e0e-0000-4000-8000-000000000000", creationTimestamp: "2026-01-01T00:00:00Z", ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid: "x" }] },
    spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: at },
  };
}

let batches = 0;
let bytes = 0;
const store = await openStore({
  path: join(dir, "store"), clock,
  volatile: (_, value, previous) => value !== undefined && previous !== undefined && holder(value) === holder(previous),
  onBatch: (report) => { batches++; bytes += report.bytes; },
});
const revisions = new Map<string, number>();
async function renew(name: string, second: number): Promise<void> {
  revisions.set(name, await store.put(`/registry/leases/kube-node-lease/${name}`, lease(name, second), revisions.get(name) ?? 0));
}
await Promise.all([...Array.from({ length: nodes }, (_, i) => renew(`node-${i}`, 0)), ...Array.from({ length: LEADERS }, (_, i) => renew(`leader-${i}`, 0))]);

const before = deviceBytes();
batches = bytes = 0;
let renewals = 0;
const startMs = clock.uptimeMs();
for (let second = 0; second < minutes * 60; second += 2) {
  while (clock.uptimeMs() - startMs < second * 1000) await Bun.sleep(1);
  const due = [...(second % 10 === 0 ? Array.from({ length: nodes }, (_, i) => `node-${i}`) : []), ...Array.from({ length: LEADERS }, (_, i) => `leader-${i}`)];
  renewals += due.length;
  await Promise.all(due.map((name) => renew(name, second)));
}
const device = deviceBytes() - before;
console.log(`${nodes} nodes, ${minutes} min: ${renewals} renewals, ${batches} batches of ${Math.round(bytes / Math.max(1, batches))} bytes, ${(bytes / minutes / 1024).toFixed(2)} kB/min put, ${(device / minutes / 1024).toFixed(2)} kB/min to the device`);
await store.close();
rmSync(dir, { recursive: true });
