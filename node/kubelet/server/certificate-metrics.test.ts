import { rmSync } from "node:fs";
import { expect, test } from "vitest";
import { testPki } from "../../../test/certificates.ts";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import { certificateMetrics, renewalErrors, servingRotation } from "./certificate-metrics.ts";

test("how long a certificate still lasts; one that is not there lasts for ever", async () => {
  const pki = await testPki();
  const { certificate: { notAfterMs }, certificatePem } = pki.leaf("serving-kubelet");
  const metrics = metricsRegistry();
  certificateMetrics({ metrics, clock: { nowMs: () => notAfterMs - 5_900 }, serving: () => certificatePem });
  expect(metrics.render().split("\n").filter((line) => line.startsWith("kubelet"))).toEqual(["kubelet_certificate_manager_client_ttl_seconds +Inf", "kubelet_certificate_manager_server_ttl_seconds 5"]);
  rmSync(pki.dir, { recursive: true, force: true });
});

test("how long a certificate has lived is told when there is another", async () => {
  const pki = await testPki();
  const { certificate: { notBeforeMs }, certificatePem } = pki.leaf("serving-kubelet");
  const metrics = metricsRegistry();
  servingRotation({ metrics, clock: { nowMs: () => notBeforeMs + 7_200_000 } })(certificatePem);
  const lines = metrics.render().split("\n");
  expect(['le="3600"} 0', 'le="14400"} 1'].map((end) => lines.some((line) => line.startsWith("kubelet_certificate_manager_server_rotation_seconds_bucket{") && line.endsWith(end)))).toEqual([true, true]);
  rmSync(pki.dir, { recursive: true, force: true });
});

test("what could not be renewed is counted, from nought on: alerts ask by how much it grows", () => {
  const metrics = metricsRegistry();
  const { serving } = renewalErrors(metrics);
  serving();
  expect(metrics.render().split("\n").filter((line) => line.startsWith("kubelet"))).toEqual(["kubelet_certificate_manager_client_expiration_renew_errors 0", "kubelet_server_expiration_renew_errors 1"]);
});
