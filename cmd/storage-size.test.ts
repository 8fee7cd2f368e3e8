import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { metricsRegistry } from "../core/observe/metrics.ts";
import { eventually } from "../test/eventually.ts";
import { storageSize } from "./storage-size.ts";

test("what the store has on the disk is measured when it is asked for, and shown the next time", async () => {
  const path = mkdtempSync(join(tmpdir(), "store-"));
  const metrics = metricsRegistry();
  storageSize(metrics, path);
  const bytes = (): number => Number(/^apiserver_storage_size_bytes\{storage_cluster_id="etcd-0"\} (\d+)$/m.exec(metrics.render())?.[1] ?? -1);
  await eventually("it is measured at the start", async () => bytes() === 0);
  writeFileSync(join(path, "000001.log"), Buffer.alloc(100_000, 1));
  await eventually("what was written is seen", async () => bytes() >= 100_000);
  rmSync(path, { recursive: true });
  await eventually("of what cannot be read nothing is told", async () => bytes() === -1);
});
