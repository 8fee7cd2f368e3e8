import { expect, test } from "vitest";
import { metricsRegistry } from "../core/observe/metrics.ts";
import { identity, type Provider } from "../storage/encryption/provider.ts";
import { transformationMeter } from "./transformation-metrics.ts";

test("values that are sealed and opened are counted by what they are and by whom, those that could not be, too; what is not sealed is not", async () => {
  const metrics = metricsRegistry();
  const metered = transformationMeter(metrics, { uptimeMs: () => 0 });
  const cipher: Provider = { prefix: "k8s:enc:aescbc:v1:key1:", seal: (plain) => plain, open() { throw new Error("another key"); } };
  const service: Provider = { prefix: "k8s:enc:kms:v2:vault:", seal: (plain) => Promise.resolve(plain), open: () => Promise.reject(new Error("no answer")), trouble: () => "slow" };
  const [secret, deployment] = ["/registry/core/secrets/ns/a", "/registry/apps/deployments/ns/a"].map((key) => Buffer.from(key)) as [Buffer, Buffer];
  metered(cipher).seal(Buffer.of(1), secret);
  expect(() => metered(cipher).open(Buffer.of(1), secret)).toThrow("another key");
  await metered(service).seal(Buffer.of(1), deployment);
  await expect(metered(service).open(Buffer.of(1), deployment)).rejects.toThrow("no answer");
  expect([metered(service).trouble?.(), metered(cipher).trouble, metered(identity)]).toEqual(["slow", undefined, identity]);
  expect(metrics.render().split("\n").filter((line) => /_operations_total\{|_count\{/.test(line))).toEqual([
    'apiserver_storage_transformation_duration_seconds_count{transformation_type="to_storage",transformer_prefix="k8s:enc:aescbc:v1:"} 1',
    'apiserver_storage_transformation_duration_seconds_count{transformation_type="to_storage",transformer_prefix="k8s:enc:kms:v2:vault:"} 1',
    'apiserver_storage_transformation_operations_total{resource="secrets",status="OK",transformation_type="to_storage",transformer_prefix="k8s:enc:aescbc:v1:"} 1',
    'apiserver_storage_transformation_operations_total{resource="secrets",status="unknown-non-grpc",transformation_type="from_storage",transformer_prefix="k8s:enc:aescbc:v1:"} 1',
    'apiserver_storage_transformation_operations_total{resource="deployments.apps",status="OK",transformation_type="to_storage",transformer_prefix="k8s:enc:kms:v2:vault:"} 1',
    'apiserver_storage_transformation_operations_total{resource="deployments.apps",status="unknown-non-grpc",transformation_type="from_storage",transformer_prefix="k8s:enc:kms:v2:vault:"} 1',
  ]);
});
