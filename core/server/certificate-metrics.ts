/**
 * Of certificates issued on request for a time their client chose: how many, and how many for about that time.
 *
 * Source: kubernetes v1.36 pkg/registry/certificates/certificates/storage/metrics.go
 */
import { X509Certificate } from "node:crypto";
import type { CertificateSigningRequest } from "../api/gen/certificates.v1.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Registry } from "../registry/registry.ts";

/** Signers may start a certificate this much early, and be a twentieth off. */
const BACKDATED_SECONDS = 300;

export function certificateMetrics(metrics: Metrics, registry: Registry): void {
  const sliced = "sliced by signer (only kubernetes.io signer names are specifically identified)";
  const honored = metrics.counter("apiserver_certificates_registry_csr_honored_duration_total", `[ALPHA] Total number of issued CSRs with a requested duration that was honored, ${sliced}`);
  const requested = metrics.counter("apiserver_certificates_registry_csr_requested_duration_total", `[ALPHA] Total number of issued CSRs with a requested duration, ${sliced}`);
  registry.storeOf("certificates.k8s.io", "certificatesigningrequests")?.onUpdated((now, old) => {
    const { status, spec: { signerName, expirationSeconds } } = old as Readonly<CertificateSigningRequest>;
    const issued = (now as Readonly<CertificateSigningRequest>).status?.certificate;
    if (status?.certificate || expirationSeconds === undefined || !issued) return;
    const labels = { signerName: signerName.startsWith("kubernetes.io/") ? signerName : "other" };
    requested.inc(labels);
    if (isHonored(expirationSeconds, secondsOf(issued))) honored.inc(labels);
  });
}

export function isHonored(wantedSeconds: number, seconds: number): boolean { return Math.abs(wantedSeconds - seconds) < BACKDATED_SECONDS + wantedSeconds / 20; }

/** How long the first certificate holds, from base64 of PEM that has been validated. */
function secondsOf(issued: string): number {
  const { validFrom, validTo } = new X509Certificate(Buffer.from(issued, "base64"));
  return (Date.parse(validTo) - Date.parse(validFrom)) / 1000;
}
