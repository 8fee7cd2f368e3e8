import { rmSync } from "node:fs";
import { expect, test } from "vitest";
import { testPki } from "../../../test/certificates.ts";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import { certificateMetrics, renewalErrors } from "./certificate-metrics.ts";

test("how long a certificate still lasts; one that is not there lasts for ever", async () => {
  const pki = await testPki();
  const { certificate: { notAfterMs }, certificatePem } = pki.leaf("serving-kubelet");
  const metrics = metricsRegistry();
  certificateMetrics({ metrics, clock: { nowMs: () => notAfterMs - 5_000 }, serving: () => certificatePem });
  expect(metrics.render().split("\n").filter((line) => line.startsWith("kubelet"))).toEqual(["kubelet_certificate_manager_client_ttl_seconds +Inf", "kubelet_certificate_manager_server_ttl_seconds 5"]);
  rmSync(pki.dir, { recursive: true, force: true });
});

test("what could not be renewed is counted, from nought on: alerts ask by how much it grows", () => {
  const metrics = metricsRegistry();
  const { serving } = renewalErrors(metrics);
  serving();
  expect(metrics.render().split("\n").filter((line) => line.startsWith("kubelet"))).toEqual(["kubelet_certificate_manager_client_expiration_renew_errors 0", "kubelet_server_expiration_renew_errors 1"]);
});
