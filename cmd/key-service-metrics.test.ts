import { expect, test } from "vitest";
import { hashLabel } from "../core/observe/hash-label.ts";
import { metricsRegistry } from "../core/observe/metrics.ts";
import { keyServiceMeter } from "./key-service-metrics.ts";

test("keys of a key service are counted by what is done with them, calls by how they end; of keys without end the last hundred are told", () => {
  const metrics = metricsRegistry();
  let nowMs = 5_000;
  const meter = keyServiceMeter(metrics, { serverId: "", clock: { nowMs: () => nowMs } })("vault");
  for (const code of ["OK", "DeadlineExceeded"]) meter.called("/v2.KeyManagementService/Status", 50, code);
  meter.misnamed("too_long");
  meter.used("to_storage", "one");
  nowMs = 7_500;
  meter.used("to_storage", "one");
  for (let i = 0; i < 150; i++) meter.named(`key-${i}`);
  meter.remembers(3);
  const lines = metrics.render().split("\n").filter((line) => line.startsWith("apiserver_") && !/_(bucket|sum)\{/.test(line)).map((line) => line.replace("apiserver_envelope_encryption_", ""));
  const one = `apiserver_id_hash="",key_id_hash="${hashLabel("one")}",provider_name="vault"`;
  expect(lines.filter((line) => !line.startsWith("key_id_hash_status_")).sort()).toEqual([
    'dek_source_cache_size{provider_name="vault"} 3',
    'invalid_key_id_from_status_total{error="too_long",provider_name="vault"} 1',
    `key_id_hash_last_timestamp_seconds{${one},transformation_type="to_storage"} 7.5`,
    `key_id_hash_total{${one},transformation_type="to_storage"} 2`,
    ...["DeadlineExceeded", "OK"].map((code) => `kms_operations_latency_seconds_count{grpc_status_code="${code}",method_name="/v2.KeyManagementService/Status",provider_name="vault"} 1`),
  ]);
  expect([lines.filter((line) => line.startsWith("key_id_hash_status_")).length, lines.some((line) => line.includes(hashLabel("key-149"))), lines.some((line) => line.includes(hashLabel("key-49")))]).toEqual([100, true, false]);
});
