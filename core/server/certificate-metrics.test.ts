import { expect, test } from "vitest";
import { requested, testPki } from "../../test/certificates.ts";
import { inProcessServer } from "../../test/in-process-server.ts";
import type { CertificateSigningRequest } from "../api/gen/certificates.v1.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { metricsRegistry } from "../observe/metrics.ts";
import { certificateMetrics, isHonored } from "./certificate-metrics.ts";

test.each([
  [3600, 3600, true], [600, 900 + 29, true], [86_400, 86_400 - 4619, true], [86_400, 86_400 - 4620, false], [172_800, 86_400, false],
])("of %d seconds asked for, a certificate for %d: %s", (wanted, seconds, honored) => expect(isHonored(wanted, seconds)).toBe(honored));

test("certificates issued for a time their client chose are counted once, by kubernetes.io's signers and all others", async () => {
  const stop = new AbortController(), { signal } = stop;
  const { registry, ended } = await inProcessServer({ signal });
  const metrics = metricsRegistry();
  certificateMetrics(metrics, registry);
  const store = registry.storeOf("certificates.k8s.io", "certificatesigningrequests")!;
  const pki = await testPki();
  const { request, certificate } = await requested(pki, { seconds: 3600 });
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  const options = { context: { user: { name: "ann", groups: [] }, nowMs: 0, dryRun: false, uuid: () => "u" }, signal };
  const issue = async (name: string, spec: Partial<CertificateSigningRequest["spec"]>, dryRun = false): Promise<void> => {
    const object: unknown = { apiVersion: "certificates.k8s.io/v1", kind: "CertificateSigningRequest", metadata: { name }, spec: { request: base64(request), signerName: "kubernetes.io/kube-apiserver-client", usages: ["client auth"], ...spec } };
    await store.create(object as ApiObject, options);
    for (const status of [{ certificate: base64(certificate) }, { certificate: base64(certificate), conditions: [{ type: "Ready", status: "True", reason: "r", message: "m" }] }])
      await store.update("", name, async (old) => ({ ...structuredClone(old!), status }) as unknown as ApiObject, { ...options, context: { ...options.context, dryRun }, subresource: store.definition.subresources!["status"] as never });
  };
  await issue("never-asked", {});
  await issue("honored", { expirationSeconds: 3600 });
  await issue("not-honored", { expirationSeconds: 7200 });
  await issue("another-signer", { expirationSeconds: 3600, signerName: "example.com/one" });
  await issue("rehearsed", { expirationSeconds: 3600 }, true);
  expect(metrics.render().split("\n").filter((line) => line.startsWith("apiserver_certificates_registry"))).toEqual([
    'apiserver_certificates_registry_csr_honored_duration_total{signerName="kubernetes.io/kube-apiserver-client"} 1', 'apiserver_certificates_registry_csr_honored_duration_total{signerName="other"} 1',
    'apiserver_certificates_registry_csr_requested_duration_total{signerName="kubernetes.io/kube-apiserver-client"} 2', 'apiserver_certificates_registry_csr_requested_duration_total{signerName="other"} 1',
  ]);
  stop.abort();
  await ended;
});
