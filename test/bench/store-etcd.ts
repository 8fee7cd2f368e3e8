/**
 * The store over etcd beside the one over LevelDB, in one run and on one disk: what a second server costs.
 *
 *   bun test/bench/store-etcd.ts [directory]        (a directory on the disk to measure; default: the system's temporary one)
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { openEtcd } from "../../storage/etcd/etcd.ts";
import { openStore } from "../../storage/open.ts";
import type { Store } from "../../storage/store.ts";
import { startEtcd } from "../etcd.ts";

const ROWS = 5000;
const dir = mkdtempSync(join(process.argv[2] ?? tmpdir(), "store-etcd-"));
const value = (i: number) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: `c-${i}`, namespace: "default" }, data: { text: "x".repeat(1000) } });
const key = (i: number): string => `/registry/core/configmaps/default/c-${String(i).padStart(5, "0")}`;

async function msEach(count: number, parallel: number, work: (i: number) => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  let next = 0;
  await Promise.all(Array.from({ length: parallel }, async () => { while (next < count) await work(next++); }));
  return (performance.now() - startMs) / count;
}

async function figures(store: Store): Promise<Record<string, number>> {
  const alone = await msEach(300, 1, (i) => store.put(`/registry/alone/${i}`, value(i), 0));
  const parallel = await msEach(ROWS, 64, (i) => store.put(key(i), value(i), 0));
  const newest = await msEach(1000, 1, () => store.newestRevision());
  const newestShared = await msEach(20_000, 64, () => store.newestRevision());
  const startMs = performance.now();
  const { rows } = await store.list({ prefix: "/registry/core/" });
  let bytes = 0;
  for (const row of rows) bytes += (row.value["data"] as { text: string }).text.length;
  const list = performance.now() - startMs;
  const stop = new AbortController();
  const events = store.watch({ prefix: "/registry/core/", after: store.revision }, stop.signal)[Symbol.asyncIterator]();
  let seen = store.revision;
  const watched = await msEach(300, 1, async (i) => {
    const revision = await store.put(`/registry/core/w/${i}`, value(i), 0);
    while (seen < revision) seen = (await events.next()).value.revision;
  });
  stop.abort();
  if (bytes === 0) throw new Error("nothing was listed");
  return { "put alone, ms": alone, "put, 64 in flight, ms each": parallel, "newest revision alone, ms": newest, "newest revision, 64 ask, ms each": newestShared, [`list of ${ROWS} rows, ms`]: list, "put until a watcher has it, ms": watched };
}

try {
  const level = await openStore({ path: join(dir, "level"), clock: systemClock });
  const ofLevel = await figures(level);
  await level.close();
  await using etcd = await startEtcd({ parent: dir });
  const store = await openEtcd({ endpoints: etcd.endpoints, clock: systemClock });
  const ofEtcd = await figures(store);
  await store.close();
  console.log(`${"".padEnd(40)}${"LevelDB".padStart(10)}${"etcd".padStart(10)}`);
  for (const [name, figure] of Object.entries(ofLevel)) console.log(`${name.padEnd(40)}${figure.toFixed(3).padStart(10)}${ofEtcd[name]!.toFixed(3).padStart(10)}`);
} finally {
  rmSync(dir, { recursive: true });
}
