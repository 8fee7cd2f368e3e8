/** How much of the disk the store has, as a metric. Source: kubernetes v1.36 apiserver/pkg/storage/etcd3/metrics/metrics.go */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Metrics } from "../core/observe/metrics.ts";

/** Shown is what the last scrape had measured: a disk that hangs holds no scrape up. A store has some dozens of files. */
export function storageSize(metrics: Pick<Metrics, "gaugeFrom">, path: string): void {
  let bytes: number | undefined;
  let measuring = false;

  async function measure(): Promise<void> {
    if (measuring) return;
    measuring = true;
    try {
      bytes = await bytesIn(path);
    } catch {
      bytes = undefined; // the directory is gone, or cannot be read: nobody knows
    }
    measuring = false;
  }

  void measure();
  metrics.gaugeFrom("apiserver_storage_size_bytes", "[STABLE] Size of the storage database file physically allocated in bytes.", () => {
    void measure();
    return bytes === undefined ? [] : [[{ storage_cluster_id: "etcd-0" }, bytes]];
  });
}

async function bytesIn(path: string): Promise<number> {
  const files = (await readdir(path, { withFileTypes: true })).filter((entry) => entry.isFile());
  const sizes = await Promise.all(files.map(async ({ name }) => {
    try {
      return (await stat(join(path, name))).blocks * 512; // as stat counts them, whatever the file system's own are
    } catch {
      return 0; // compacted away meanwhile
    }
  }));
  return sizes.reduce((sum, size) => sum + size, 0);
}
