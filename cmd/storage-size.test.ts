import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { metricsRegistry } from "../core/observe/metrics.ts";
import { storageSize } from "./storage-size.ts";

test("what the store has on the disk is counted when it is asked for", () => {
  const path = mkdtempSync(join(tmpdir(), "store-"));
  const metrics = metricsRegistry();
  storageSize(metrics, path);
  const bytes = (): number => Number(/^apiserver_storage_size_bytes\{storage_cluster_id="etcd-0"\} (\d+)$/m.exec(metrics.render())![1]);
  expect(bytes()).toBe(0);
  writeFileSync(join(path, "000001.log"), Buffer.alloc(100_000, 1));
  expect(bytes()).toBeGreaterThanOrEqual(100_000);
});
