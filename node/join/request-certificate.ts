/**
 * A certificate by way of a CertificateSigningRequest: a new key, the request, and the wait until somebody approves and signs it.
 *
 * API: https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/
 */
import { createHash } from "node:crypto";
import type { CertificateSigningRequest } from "../../core/api/gen/certificates.v1.ts";
import { isNotFound, StatusError } from "../../core/api/meta/status-error.ts";
import type { Client } from "../../core/client/client.ts";
import { CERTIFICATE_SIGNING_REQUESTS } from "../../core/client/resources.ts";
import { backoffMs } from "../../core/lifecycle/backoff.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Log } from "../../core/observe/log.ts";
import type { AltNames } from "../../core/pki/alt-names.ts";
import { generateKey, keyPem } from "../../core/pki/authority.ts";
import { createCertificateRequest } from "../../core/pki/certificate-request.ts";
import type { Leaf } from "../../core/pki/leaf.ts";
import { readCertificatePems } from "../../core/pki/pem.ts";
import { spkiOf } from "../../core/pki/signature.ts";
import type { Subject } from "../../core/pki/subject.ts";
import { parseCertificate, sameBytes, type Usage } from "../../core/pki/x509.ts";
import { JoinError } from "./join-error.ts";

export const KUBELET_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet";
export const KUBELET_SERVING_SIGNER = "kubernetes.io/kubelet-serving";

export interface WantedCertificate {
  readonly signerName: string;
  readonly subject: Subject;
  readonly altNames: AltNames;
  readonly usages: readonly Usage[];
  /** Of the request's object. */
  readonly annotations?: ((requestPem: string) => Record<string, string>) | undefined;
}

interface Deps { readonly client: Client; readonly clock: Clock; readonly log: Log }

/** Of a server that does not say when the request has changed. */
const POLL = { minMs: 50, maxMs: 5_000 };
/** A watch that has told nothing for so long may have been lost on the way. */
const WATCH_MS = 30_000;
/** After this long somebody should be told that a request waits for them. */
const TELL_MS = 10_000;
const TELL_AGAIN_MS = 300_000;
const CONDITION_ERRORS: Readonly<Record<string, string>> = { Denied: "was denied", Failed: "was not signed" };

/** Throws StatusError as the server answers, JoinError when the request is denied. Waits for approval as long as `signal` lets it. */
export async function requestCertificate({ client, clock, log }: Deps, { signerName, subject, altNames, usages, annotations }: WantedCertificate, signal: AbortSignal): Promise<Leaf> {
  const requests = client.resource(CERTIFICATE_SIGNING_REQUESTS);
  const key = await generateKey();
  const pem = createCertificateRequest(subject, altNames, key);
  const name = `${signerName === KUBELET_CLIENT_SIGNER ? "node-csr" : "csr"}-${createHash("sha256").update(pem).digest("hex").slice(0, 32)}`;
  const created = await requests.create({
    apiVersion: "certificates.k8s.io/v1", kind: "CertificateSigningRequest", metadata: { name, ...(annotations ? { annotations: annotations(pem) } : {}) },
    spec: { request: Buffer.from(pem).toString("base64"), signerName, usages: usages as never },
  }, { signal });
  const sinceMs = clock.uptimeMs();
  let tellMs = sinceMs + TELL_MS;
  for (let failures = 0, csr = created; ;) {
    const certificatePem = issued(csr);
    if (certificatePem !== undefined) {
      const certificate = parseCertificate(readCertificatePems(certificatePem)[0]!);
      if (!sameBytes(certificate.spki, spkiOf(key))) throw new Error(`the certificate of request ${name} is for another key`);
      return { certificate, certificatePem, keyPem: keyPem(key) };
    }
    if (clock.uptimeMs() >= tellMs) {
      log.info("a certificate request waits to be approved", { request: name, signer: signerName, command: `kubectl certificate approve ${name}` });
      tellMs = clock.uptimeMs() + TELL_AGAIN_MS;
    }
    const next = await changed(csr, Math.max(0, Math.min(WATCH_MS, tellMs - clock.uptimeMs())));
    signal.throwIfAborted();
    failures = next === "not told" ? failures + 1 : 0;
    if (next === "not told") await clock.sleep(backoffMs(failures, POLL), signal);
    signal.throwIfAborted();
    csr = typeof next === "object" ? next : await look(created, csr);
  }

  /** As it is after the next change, "the same" when there is none for so long, "not told" when the server does not say. */
  async function changed({ metadata }: Readonly<CertificateSigningRequest>, ms: number): Promise<Readonly<CertificateSigningRequest> | "the same" | "not told"> {
    const late = new AbortController();
    const alarm = clock.after(ms, () => late.abort());
    try {
      const { resourceVersion } = metadata;
      for await (const { type, object } of requests.watch({ fieldSelector: `metadata.name=${name}`, resourceVersion }, { signal: AbortSignal.any([signal, late.signal]) }))
        if (type === "MODIFIED") return object;
        else if (type === "DELETED") return "the same"; // the look tells
    } catch (error) {
      log.debug("a certificate request cannot be watched: it is looked at", { request: name, error });
    } finally {
      alarm.cancel();
    }
    return late.signal.aborted ? "the same" : "not told";
  }

  /** A server that is away for a moment has not answered. */
  async function look(created: Readonly<CertificateSigningRequest>, before: Readonly<CertificateSigningRequest>): Promise<Readonly<CertificateSigningRequest>> {
    try {
      return await requests.get(created, { signal });
    } catch (error) {
      signal.throwIfAborted();
      if (isNotFound(error)) throw new Error(`certificate request ${created.metadata.name} was removed before it was answered`, { cause: error });
      if (error instanceof StatusError && error.code >= 500) return before;
      throw error;
    }
  }
}

/** PEM, once there is one. Throws JoinError when there will be none. */
function issued({ metadata, status }: Readonly<CertificateSigningRequest>): string | undefined {
  for (const { type, reason, message } of status?.conditions ?? []) {
    const problem = CONDITION_ERRORS[type];
    if (problem === undefined) continue;
    if (reason === "NodeNameTaken") throw new JoinError("name-taken", message ?? "the node's name is taken");
    throw new JoinError("refused", `certificate request ${metadata.name} ${problem}: ${message || reason || "no reason given"}`);
  }
  return status?.certificate ? Buffer.from(status.certificate, "base64").toString() : undefined;
}
