/** How much of the disk the store has, as a metric. Source: kubernetes v1.36 apiserver/pkg/storage/etcd3/metrics/metrics.go */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Metrics } from "../core/observe/metrics.ts";

/** Read when scraped: a store has some dozens of files. */
export function storageSize(metrics: Pick<Metrics, "gaugeFrom">, path: string): void {
  metrics.gaugeFrom("apiserver_storage_size_bytes", "[STABLE] Size of the storage database file physically allocated in bytes.", () => [[{ storage_cluster_id: "etcd-0" }, bytesIn(path)]]);
}

function bytesIn(path: string): number {
  let bytes = 0;
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (!entry.isFile()) continue;
    try {
      bytes += statSync(join(path, entry.name)).blocks * 512; // as stat counts them, whatever the file system's own are
    } catch {
      // compacted away meanwhile
    }
  }
  return bytes;
}
