/**
 * What the built-in signers accept. No I/O.
 *
 * Source: kubernetes v1.36 pkg/apis/certificates/helpers.go, pkg/controller/certificates/signer/signer.go (rules and messages)
 */
import type { CertificateSigningRequest } from "../../api/gen/certificates.v1.ts";
import { type CertificateRequest, parseCertificateRequest } from "../../pki/certificate-request.ts";

const KUBE_APISERVER_CLIENT = "kubernetes.io/kube-apiserver-client";
export const KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet";
export const KUBELET_SERVING = "kubernetes.io/kubelet-serving";

export const NODE_PREFIX = "system:node:";

type Csr = Readonly<CertificateSigningRequest>;

/** Throws when it is none. */
export function requestOf(csr: Csr): CertificateRequest { return parseCertificateRequest(Buffer.from(csr.spec.request, "base64").toString()); }

export function usagesOf({ spec }: Csr): readonly string[] { return (spec.usages ?? []) as readonly string[]; }

export function hasCondition({ status }: Csr, type: string): boolean { return status?.conditions?.some((condition) => condition.type === type) ?? false; }

/** Approved, and not denied. */
export function isApproved(csr: Csr): boolean { return hasCondition(csr, "Approved") && !hasCondition(csr, "Denied"); }

/** Why the named signer refuses a request; undefined: it signs. */
export function refusal(signerName: string, request: CertificateRequest, usages: readonly string[]): string | undefined {
  switch (signerName) {
    case KUBELET_SERVING: return kubeletServingProblem(request, usages);
    case KUBELET_CLIENT: return kubeletClientProblem(request, usages);
    case KUBE_APISERVER_CLIENT: return clientUsageProblem(usages);
    default: return undefined;
  }
}

export function kubeletServingProblem({ subject, altNames }: CertificateRequest, usages: readonly string[]): string | undefined {
  if (!isNodes(subject.organizations)) return "subject organization is not system:nodes";
  if (altNames.dnsNames.length + altNames.ipAddresses.length === 0) return "DNS or IP subjectAltName is required";
  if (altNames.emailAddresses.length > 0) return "Email subjectAltNames are not allowed";
  if (altNames.uris.length > 0) return "URI subjectAltNames are not allowed";
  return usageProblem(usages, "server auth") ?? commonNameProblem(subject.commonName);
}

export function kubeletClientProblem({ subject, altNames }: CertificateRequest, usages: readonly string[]): string | undefined {
  if (!isNodes(subject.organizations)) return "subject organization is not system:nodes";
  if (altNames.dnsNames.length > 0) return "DNS subjectAltNames are not allowed";
  if (altNames.emailAddresses.length > 0) return "Email subjectAltNames are not allowed";
  if (altNames.ipAddresses.length > 0) return "IP subjectAltNames are not allowed";
  if (altNames.uris.length > 0) return "URI subjectAltNames are not allowed";
  return commonNameProblem(subject.commonName) ?? usageProblem(usages, "client auth");
}

function isNodes(organizations: readonly string[]): boolean { return organizations.length === 1 && organizations[0] === "system:nodes"; }

function commonNameProblem(name: string): string | undefined { return name.startsWith(NODE_PREFIX) ? undefined : "subject common name does not begin with system:node:"; }

/** Key encipherment is for RSA keys: allowed, not required. */
function usageProblem(usages: readonly string[], purpose: string): string | undefined {
  const wanted = ["digital signature", purpose].toSorted();
  const given = [...new Set(usages)].filter((usage) => usage !== "key encipherment").toSorted();
  return given.length === wanted.length && given.every((usage, i) => usage === wanted[i]) ? undefined : `usages did not match [${[...wanted, "key encipherment"].toSorted().join(" ")}]`;
}

function clientUsageProblem(usages: readonly string[]): string | undefined {
  const wrong = usages.find((usage) => !["digital signature", "key encipherment", "client auth"].includes(usage));
  if (wrong !== undefined) return `invalid usage for client certificate: ${wrong}`;
  return usages.includes("client auth") ? undefined : "missing required usage for client certificate: client auth";
}
