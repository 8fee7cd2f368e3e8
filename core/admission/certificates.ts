/**
 * Plug-ins for certificate signing requests: who may approve for a signer, who may sign as it, and that nobody becomes system:masters this way; likewise for certificates of pods,
 * of which upstream asks in the registry, which here knows no authorizer.
 *
 * Source: kubernetes v1.36 plugin/pkg/admission/certificates, pkg/certauthorization, pkg/registry/certificates/podcertificaterequest/strategy.go
 */
import type { CertificateSigningRequest } from "../api/gen/certificates.v1.ts";
import type { PodCertificateRequest } from "../api/gen/certificates.v1beta1.ts";
import { forbidden } from "../api/meta/field-error.ts";
import { goQuote } from "../api/meta/go-quote.ts";
import { invalid } from "../api/meta/status-error.ts";
import { askedOf } from "../api/request/attributes.ts";
import { GROUP_MASTERS, type UserInfo } from "../api/request/user.ts";
import type { Authorizer } from "../authz/authorizer.ts";
import { onlyForGarbageCollection } from "../authz/escalation.ts";
import { parseCertificateRequest } from "../pki/certificate-request.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";
import { isResource, refusal, sameValue } from "./refuse.ts";

const REQUESTS = "certificatesigningrequests.certificates.k8s.io";
const API_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client";

export function certificateApproval(authorizer: Authorizer): AdmissionPlugin {
  return {
    name: "CertificateApproval",
    handles: (request) => request.operation === "UPDATE" && isResource(request, REQUESTS, "approval"),
    async validate(request) {
      const { signerName } = (request.oldObject as Readonly<CertificateSigningRequest>).spec; // not what the caller may have made of it
      if (!await mayFor(authorizer, "approve", request.user, signerName)) throw refusal(request, `user not permitted to approve requests with signerName ${goQuote(signerName)}`);
    },
  };
}

export function certificateSigning(authorizer: Authorizer): AdmissionPlugin {
  return {
    name: "CertificateSigning",
    handles: (request) => request.operation === "UPDATE" && isResource(request, REQUESTS, "status"),
    async validate(request) {
      const old = request.oldObject as Readonly<CertificateSigningRequest>;
      const next = request.object as CertificateSigningRequest;
      if (sameValue(old.status?.certificate, next.status?.certificate) && sameValue(old.status?.conditions, next.status?.conditions)) return;
      const { signerName } = old.spec;
      if (!await mayFor(authorizer, "sign", request.user, signerName)) throw refusal(request, `user not permitted to sign requests with signerName ${goQuote(signerName)}`);
    },
  };
}

/** It cannot be switched off. */
export function podCertificateSigning(authorizer: Authorizer): AdmissionPlugin {
  return {
    name: "PodCertificateSigning",
    handles: (request) => request.operation === "UPDATE" && isResource(request, "podcertificaterequests.certificates.k8s.io", "status"),
    async validate(request) {
      const old = request.oldObject as Readonly<PodCertificateRequest>, { signerName } = old.spec, { user } = request;
      if (sameValue(old.status, (request.object as PodCertificateRequest).status) || await mayFor(authorizer, "sign", user, signerName)) return;
      const refused = forbidden("spec.signerName", `User ${goQuote(user.name)} is not permitted to "sign" for signer ${goQuote(signerName)}`);
      throw invalid({ group: request.group, kind: "PodCertificateRequest" }, request.name, [refused]);
    },
  };
}

/** Who publishes what a signer's certificates are verified with must be trusted to speak for it. */
export function clusterTrustBundleAttest(authorizer: Authorizer): AdmissionPlugin {
  return {
    name: "ClusterTrustBundleAttest",
    handles: (request) => (request.operation === "CREATE" || request.operation === "UPDATE") && isResource(request, "clustertrustbundles.certificates.k8s.io"),
    async validate(request) {
      const { signerName = "" } = (request.object as unknown as { spec?: { signerName?: string } }).spec ?? {};
      if (signerName === "" || (request.oldObject && onlyForGarbageCollection(request.object!, request.oldObject))) return;
      if (!await mayFor(authorizer, "attest", request.user, signerName)) throw refusal(request, `user not permitted to attest for signerName ${goQuote(signerName)}`);
    },
  };
}

/** A permission for the signer itself, or for all of its domain ("example.com/*"). */
async function mayFor(authorizer: Authorizer, verb: "approve" | "sign" | "attest", user: UserInfo, signerName: string): Promise<boolean> {
  const domain = signerName.split("/", 1)[0]!;
  for (const name of [signerName, `${domain}/*`]) {
    const { decision } = await authorizer.authorize(askedOf(user, { verb, group: "certificates.k8s.io", version: "*", resource: "signers", name }));
    if (decision === "allow") return true;
  }
  return false;
}

export const certificateSubjectRestriction: AdmissionPlugin = {
  name: "CertificateSubjectRestriction",
  handles: (request) => request.operation === "CREATE" && isResource(request, REQUESTS),
  validate(request) {
    const { signerName, request: encoded } = (request.object as CertificateSigningRequest).spec;
    if (signerName === API_CLIENT_SIGNER && organizationsOf(request, encoded).includes(GROUP_MASTERS)) throw refusal(request, `use of ${API_CLIENT_SIGNER} signer with system:masters group is not allowed`);
  },
};

function organizationsOf(request: AdmissionRequest, encoded: string): readonly string[] {
  try {
    return parseCertificateRequest(Buffer.from(encoded, "base64").toString("latin1")).subject.organizations;
  } catch (error) {
    throw refusal(request, `failed to parse CSR: ${(error as Error).message}`);
  }
}
