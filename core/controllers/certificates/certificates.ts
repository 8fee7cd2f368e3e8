/**
 * CertificateSigningRequests: approves those of kubelets that RBAC lets approve themselves, signs what is approved for the built-in
 * signers, and cleans up after a while.
 *
 * API:    https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/
 * Source: kubernetes v1.36 pkg/controller/certificates/{approver,signer,cleaner}
 */
import type { SubjectAccessReview } from "../../api/gen/authorization.v1.ts";
import type { CertificateSigningRequest, CertificateSigningRequestCondition } from "../../api/gen/certificates.v1.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { keyOf, objectKey } from "../../api/meta/object-meta.ts";
import { parseTime } from "../../api/meta/time.ts";
import { GROUP_EXPIRED_NODES } from "../../api/request/user.ts";
import { CERTIFICATE_SIGNING_REQUESTS, NODES } from "../../client/resources.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import type { Authority } from "../../pki/authority.ts";
import type { CertificateRequest } from "../../pki/certificate-request.ts";
import { readCertificatePems } from "../../pki/pem.ts";
import { isUsage, parseCertificate } from "../../pki/x509.ts";
import { type Controller, itself, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { BY_NODE_NAME, isOwnNode, machineOfRequest, NAME_TAKEN, nodeNameOf, nodeNameProblem } from "./node-name.ts";
import { hasCondition, isApproved, KUBELET_CLIENT, KUBELET_SERVING, kubeletClientProblem, kubeletServingProblem, NODE_PREFIX, refusal, requestOf, usagesOf } from "./requests.ts";
import { revocations } from "./revoked.ts";
import { foreignName } from "./serving-names.ts";

type Csr = Readonly<CertificateSigningRequest>;
type Deps = Pick<ControllerDeps, "client" | "informers" | "clock">;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** --cluster-signing-duration */
export const LIFETIME_MS = 365 * DAY_MS;
const LIFETIME_MS_MIN = 600_000;
/** Clocks differ: certificates hold from a little while ago. Short ones are not shortened by it. */
const BACKDATE_MS = 300_000;
const SHORT_MS = 8 * HOUR_MS;

/** Whoever asks may be allowed to only later: a request that is not approved is looked at again, ever more rarely. Source: certificate_controller.go NewCertificateController */
const AGAIN_MS_MIN = 200;
const AGAIN_MS_MAX = 1_000_000;

/** Who signs for a signer name; undefined: not us. */
export type AuthorityFor = (signerName: string) => Authority | undefined;

export function csrApprovingController({ client, informers, clock, approveServing, serverNames = () => [] }: Deps & {
  readonly approveServing: boolean;
  /** What API servers are called: no node's names. Asked each time: a machine's networks come and go. */
  readonly serverNames?: (() => readonly string[]) | undefined;
}): Controller {
  const revoked = revocations({ client, informers, clock });
  const requests = informers.of(CERTIFICATE_SIGNING_REQUESTS);
  const nodes = informers.of(NODES);
  const requestClient = client.resource(CERTIFICATE_SIGNING_REQUESTS);

  return {
    name: "certificate",
    workers: 1,
    reads: [revoked.reads],
    // A node's addresses may appear after its request for a serving certificate.
    watches: [itself(requests), ...(approveServing ? [mapped(nodes, () => [...requests.list()].filter((csr) => csr.spec.signerName === KUBELET_SERVING && !hasCondition(csr, "Approved")).map(keyOf))] : [])],
    async reconcile(key, { signal, log }): Promise<Next> {
      const csr = requests.get(key);
      if (csr === undefined || csr.status?.certificate || hasCondition(csr, "Approved") || hasCondition(csr, "Denied")) return;
      if (csr.spec.signerName !== KUBELET_CLIENT && !(approveServing && csr.spec.signerName === KUBELET_SERVING)) return;
      const condition = await approval(csr, signal);
      if (condition === undefined) {
        log.debug("request is not approved by us");
        return { againInMs: askedAgainInMs(csr, clock.nowMs()) };
      }
      const next = { ...csr, status: { ...csr.status, conditions: [...(csr.status?.conditions ?? []), condition] } };
      await requests.caughtUp([await requestClient.updateSubresource<CertificateSigningRequest>(csr, "approval", next, { signal })], signal);
      log.info(condition.type === "Denied" ? "request denied" : "request approved", { user: csr.spec.username, signer: csr.spec.signerName, message: condition.message });
      if (condition.type === "Denied") await forgetEarlier(csr, condition.reason, signal);
    },
  };

  /** A machine that is refused asks again and again: of what it was denied for one reason the last is kept. */
  async function forgetEarlier(csr: Csr, reason: string | undefined, signal: AbortSignal): Promise<void> {
    const machine = machineOfRequest(csr);
    for (const other of requests.by(BY_NODE_NAME, nodeNameOf(csr))) {
      if (other.metadata.uid === csr.metadata.uid || other.spec.username !== csr.spec.username || machineOfRequest(other) !== machine || !other.status?.conditions?.some((one) => one.type === "Denied" && one.reason === reason)) continue;
      await ifFound(requestClient.delete(other, { preconditions: { uid: other.metadata.uid } }, { signal }));
    }
  }

  /** Approved, or denied for a reason, if it is for us to say. */
  async function approval(csr: Csr, signal: AbortSignal): Promise<CertificateSigningRequestCondition | undefined> {
    const approved = (message: string): CertificateSigningRequestCondition => ({ type: "Approved", status: "True", reason: "AutoApproved", message });
    const request = requestOf(csr);
    const isExpired = csr.spec.groups?.includes(GROUP_EXPIRED_NODES) === true;
    if (csr.spec.signerName === KUBELET_SERVING) return !isExpired && servesItself(csr, request) ? approved("Auto approving kubelet serving certificate: its names are those of its Node.") : undefined;
    if (kubeletClientProblem(request, usagesOf(csr)) !== undefined) return undefined;
    if (csr.spec.username === request.subject.commonName && (await mayCreate(csr, "selfnodeclient", signal))) {
      if (isExpired)
        return revoked.denial(csr) ?? (isOwnNode(csr, nodes.get(objectKey("", nodeNameOf(csr)))) ? approved("Auto approving self kubelet client certificate of a node whose last one has expired.") : {
          type: "Denied", status: "True", reason: "NodeGone", message: `node ${nodeNameOf(csr)} is no more, or another machine`,
        });
      return approved("Auto approving self kubelet client certificate after SubjectAccessReview.");
    }
    if (!(await mayCreate(csr, "nodeclient", signal))) return undefined;
    const denial = revoked.denial(csr);
    if (denial) return denial;
    const problem = nodeNameProblem(csr, { node: nodes.get(objectKey("", nodeNameOf(csr))), others: requests.by(BY_NODE_NAME, nodeNameOf(csr)), nowMs: clock.nowMs() });
    if (problem !== undefined) return { type: "Denied", status: "True", reason: NAME_TAKEN, message: problem };
    return approved("Auto approving kubelet client certificate after SubjectAccessReview.");
  }

  async function mayCreate({ spec: { username, uid, groups, extra } }: Csr, subresource: string, signal: AbortSignal): Promise<boolean> {
    const review = {
      apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview", metadata: {},
      spec: {
        user: username, uid, groups, extra,
        resourceAttributes: { group: "certificates.k8s.io", version: "*", resource: "certificatesigningrequests", subresource, verb: "create" },
      },
    };
    const answer = (await client.request({ method: "POST", path: "/apis/authorization.k8s.io/v1/subjectaccessreviews", body: review, signal })) as SubjectAccessReview;
    return answer.status?.allowed ?? false;
  }

  /** Asked for by the node itself, for no other names than those its Node object has. */
  function servesItself(csr: Csr, request: CertificateRequest): boolean {
    const { username = "" } = csr.spec;
    if (kubeletServingProblem(request, usagesOf(csr)) !== undefined) return false;
    if (username !== request.subject.commonName) return false;
    const node = nodes.get(objectKey("", username.slice(NODE_PREFIX.length)));
    return node !== undefined && foreignName(request.altNames, node, { nodes: nodes.list(), servers: serverNames() }) === undefined;
  }
}

export function csrSigningController({ client, informers, clock, authorityFor, lifetimeMs = LIFETIME_MS, releasedMs = 0 }: Deps & {
  readonly authorityFor: AuthorityFor;
  readonly lifetimeMs?: number | undefined;
  /** A moment that is certainly past. */
  readonly releasedMs?: number | undefined;
}): Controller {
  const requests = informers.of(CERTIFICATE_SIGNING_REQUESTS);
  const requestClient = client.resource(CERTIFICATE_SIGNING_REQUESTS);
  const revoked = revocations({ client, informers, clock });
  return {
    name: "csrsigning",
    workers: 2,
    watches: [itself(requests)],
    reads: [revoked.reads],
    async reconcile(key, { signal, log }) {
      const csr = requests.get(key);
      if (csr === undefined || csr.status?.certificate || !isApproved(csr) || hasCondition(csr, "Failed")) return;
      const authority = authorityFor(csr.spec.signerName);
      if (authority === undefined) return;
      const request = requestOf(csr);
      const problem = request.signatureProblem ?? refusal(csr.spec.signerName, request, usagesOf(csr));
      const nowMs = clock.nowMs();
      let status: CertificateSigningRequest["status"];
      if (problem === undefined) {
        const certificate = issue(csr, request, authority, nowMs);
        if (csr.spec.signerName === KUBELET_CLIENT) await revoked.note(csr, certificate, signal);
        status = { ...csr.status, certificate: Buffer.from(certificate).toString("base64") };
      } else {
        const condition: CertificateSigningRequestCondition = { type: "Failed", status: "True", reason: "SignerValidationFailure", message: problem, lastUpdateTime: timestamp(nowMs) };
        status = { ...csr.status, conditions: [...(csr.status?.conditions ?? []), condition] };
      }
      await requests.caughtUp([await requestClient.updateStatus({ ...csr, status }, { signal })], signal);
      log.info(problem === undefined ? "certificate issued" : "request refused", { signer: csr.spec.signerName, subject: request.subject.commonName, problem });
    },
  };

  /** Throws while the authority has expired, be it by a clock that is ahead: what it signed then would never be valid, and the request is answered once and for all. */
  function issue(csr: Csr, { subjectRaw, spki, altNames }: CertificateRequest, authority: Authority, nowMs: number): string {
    const { notAfterMs: endsMs } = authority.certificate;
    if (nowMs >= endsMs) throw new Error(`error auto signing csr: refusing to sign a certificate that expired in the past: NotAfter=${timestamp(endsMs)}`);
    const askedMs = csr.spec.expirationSeconds === undefined ? lifetimeMs : csr.spec.expirationSeconds * 1000;
    const lastsMs = Math.min(lifetimeMs, Math.max(LIFETIME_MS_MIN, askedMs));
    const isNodes = csr.spec.signerName === KUBELET_CLIENT || csr.spec.signerName === KUBELET_SERVING;
    const notAfterMs = (isNodes ? Math.max(nowMs, releasedMs) : nowMs) /* a node that joined before the clocks were set is one still when they are */ + lastsMs - (lastsMs < SHORT_MS ? 0 : BACKDATE_MS);
    return authority.issue({ subject: subjectRaw, spki, altNames, usages: usagesOf(csr).filter(isUsage), notBeforeMs: nowMs - BACKDATE_MS, notAfterMs });
  }
}

/** As long again as it has been there. */
function askedAgainInMs({ metadata }: Csr, nowMs: number): number {
  return Math.min(AGAIN_MS_MAX, Math.max(AGAIN_MS_MIN, Math.abs(nowMs - (parseTime(metadata.creationTimestamp) ?? nowMs))));
}

/** When a request is of no more use to anyone; undefined: not in sight. */
export function csrEndsMs({ metadata, status }: Csr): number | undefined {
  const ends: number[] = [];
  const issued = Boolean(status?.certificate);
  const after = (text: string | undefined, ms: number): void => {
    const atMs = parseTime(text ?? "");
    if (atMs !== undefined) ends.push(atMs + ms);
  };
  if ((status?.conditions ?? []).length === 0) after(metadata.creationTimestamp, DAY_MS);
  for (const { type, lastUpdateTime } of status?.conditions ?? []) {
    if (type === "Approved") after(lastUpdateTime, issued ? HOUR_MS : DAY_MS);
    if (type === "Denied" || type === "Failed") after(lastUpdateTime, HOUR_MS);
    if (type === "Approved" && issued) ends.push(...certificateEnds(status?.certificate ?? ""));
  }
  return ends.length === 0 ? undefined : Math.min(...ends);
}

function certificateEnds(base64: string): number[] {
  try {
    return readCertificatePems(Buffer.from(base64, "base64").toString()).slice(0, 1).map((der) => parseCertificate(der).notAfterMs);
  } catch {
    return []; // signed by somebody else, in a form of their own
  }
}

export function csrCleanerController({ client, informers, clock }: Deps): Controller {
  const requests = informers.of(CERTIFICATE_SIGNING_REQUESTS);
  const requestClient = client.resource(CERTIFICATE_SIGNING_REQUESTS);
  return {
    name: "csrcleaner",
    workers: 1,
    watches: [itself(requests)],
    async reconcile(key, { signal }): Promise<Next> {
      const csr = requests.get(key);
      const endsMs = csr === undefined ? undefined : csrEndsMs(csr);
      if (csr === undefined || endsMs === undefined) return;
      const leftMs = endsMs - clock.nowMs();
      if (leftMs > 0) return { againInMs: leftMs };
      await ifFound(requestClient.delete(csr, { preconditions: { uid: csr.metadata.uid } }, { signal }));
    },
  };
}
