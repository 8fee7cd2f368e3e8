/**
 * CertificateSigningRequest (certificates.k8s.io/v1): a key that is to be certified, and by whom.
 *
 *   create     who asks is written down by the server
 *   update     metadata only
 *   approval   conditions · status: the certificate, and conditions but those of approval
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/certificate-signing-request-v1/
 * Source: kubernetes v1.36 pkg/registry/certificates/certificates/strategy.go, pkg/apis/certificates/validation/validation.go
 */
import { child, duplicate, type FieldError, forbidden, index, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import type { CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec } from "../../api/gen/certificates.v1.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import { repeats } from "../../api/meta/linear.ts";
import { pathSegmentName } from "../../api/meta/names.ts";
import { internalForm } from "../../api/schema/internal-form.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { jsonDiff } from "../core/checks/diff.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { keyUsageOf, maySignHandshakes, type Usage } from "../../pki/x509.ts";
import { keepAllBut, statusPart } from "../core/status-part.ts";
import { defineResource, type WriteContext } from "../generic/resource.ts";
import { certificateProblem, requestProblem } from "./pem-content.ts";
import { signerName } from "./signer-name.ts";

type Request = CertificateSigningRequest;
type Condition = CertificateSigningRequestCondition;

const USAGES = [
  "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment", "decipher only", "digital signature", "email protection",
  "encipher only", "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime", "server auth",
  "signing", "timestamping",
];
const LEGACY_SIGNER = "kubernetes.io/legacy-unknown";
const API_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client";
const EXPIRATION_SECONDS_MIN = 600;
const CONDITIONS = "status.conditions";
const APPROVALS = ["Approved", "Denied"];
const LASTING = [...APPROVALS, "Failed"];

export const certificateSigningRequests = defineResource<Request>({
  group: "certificates.k8s.io", version: "v1", kind: "CertificateSigningRequest", plural: "certificatesigningrequests",
  generation: false, updateOrder: "change last",
  validateName: pathSegmentName,

  prepareForCreate({ spec }, { user }) {
    for (const name of ["username", "uid", "groups", "extra"] as const) delete spec[name];
    if (user.name) spec.username = user.name;
    if (user.uid) spec.uid = user.uid;
    if (user.groups.length > 0) spec.groups = [...user.groups];
    if (user.extra && Object.keys(user.extra).length > 0) spec.extra = Object.fromEntries(Object.entries(user.extra).map(([name, values]) => [name, [...values]]));
  },
  prepareForUpdate(next, old) { next.spec = old.spec; },
  validate: validateRequest,
  validateUpdate: (next, old) => validateChange(next, old, {}),
  *warnings({ spec }, old) {
    const usages = (spec.usages ?? []) as readonly Usage[];
    if (!old && spec.signerName === API_CLIENT_SIGNER && !mayShow(usages)) yield `spec.usages: a certificate for ${usages.join(", ")} alone is none that the API server can be shown: add "digital signature"`;
  },
  fields: ({ spec }) => ({ "spec.signerName": spec.signerName ?? "" }),

  subresources: {
    status: statusPart<Request>({
      prepare(next, old, context) {
        for (const type of APPROVALS) keepConditions(next, old, type);
        fillTimes(next, old, context);
      },
      *validate(next, old) {
        yield* validateRequest(next, old);
        yield* validateChange(next, old, { mayCertify: true });
      },
    }),
    approval: {
      type: "part",
      prepare(next, old, context) {
        fillTimes(next, old, context);
        const conditions = next.status?.conditions;
        keepAllBut(next, old, "status");
        next.status = { ...old.status, ...(conditions ? { conditions } : {}) };
        if (!conditions) delete next.status.conditions;
      },
      *validate(next, old) {
        yield* validateRequest(next, old);
        yield* validateChange(next, old, { mayApprove: true });
      },
    },
  },
});

/** What is signed for these usages, to our own server (core/net/tls.ts WRONG_KEY_USAGE). */
function mayShow(usages: readonly Usage[]): boolean { return maySignHandshakes({ keyUsage: keyUsageOf(usages) }); }
function shown(condition: Condition): object { return internalForm("io.k8s.api.certificates.v1.CertificateSigningRequestCondition", condition); }
function conditionsOf(request: Readonly<Request> | undefined): readonly Condition[] { return request?.status?.conditions ?? []; }
function ofType(request: Readonly<Request>, type: string): readonly Condition[] { return conditionsOf(request).filter((condition) => condition.type === type); }

/** Those who write the status need not repeat an approval to the letter. Mutates `next`. */
function keepConditions(next: Request, old: Readonly<Request>, type: string): void {
  const before = ofType(old, type);
  let at = 0;
  if (before.length !== ofType(next, type).length || !next.status?.conditions) return;
  next.status.conditions = next.status.conditions.map((condition) => (condition.type === type ? before[at++]! : condition));
}

/** Mutates `next`. */
function fillTimes(next: Request, old: Readonly<Request>, { nowMs }: WriteContext): void {
  if (!next.status?.conditions) return;
  const now = timestamp(nowMs);
  const known = new Map(conditionsOf(old).filter(({ lastTransitionTime }) => lastTransitionTime !== undefined).toReversed().map((condition) => [idOf(condition), condition]));
  next.status.conditions = next.status.conditions.map((condition) => {
    const before = known.get(idOf(condition));
    return { ...condition, lastUpdateTime: condition.lastUpdateTime ?? now, lastTransitionTime: condition.lastTransitionTime ?? before?.lastTransitionTime ?? now };
  });
}

function idOf({ type, status }: Condition): string { return JSON.stringify([type, status]); }

function* validateRequest({ spec, status }: Readonly<Request>, old?: Readonly<Request>): Iterable<FieldError> {
  yield* validateSpec("spec", spec, old?.spec);
  yield* validateConditions(CONDITIONS, status?.conditions ?? [], conditionsOf(old));
  const [certificate, before] = [status?.certificate, old?.status?.certificate];
  if (old && (certificate === before || certificateProblem(before) !== undefined)) return;
  const problem = certificateProblem(certificate);
  if (problem !== undefined) yield invalid("status.certificate", "<certificate data>", problem);
}

function* validateSpec(path: string, spec: Readonly<CertificateSigningRequestSpec>, old?: Readonly<CertificateSigningRequestSpec>): Iterable<FieldError> {
  const problem = requestProblem(spec.request ?? "");
  if (problem !== undefined) yield invalid(child(path, "request"), spec.request ?? null, problem);
  const usages = (spec.usages ?? []) as readonly string[];
  const before = (old?.usages ?? []) as readonly string[];
  const at = child(path, "usages");
  if (usages.length === 0) yield required(at);
  if (before.every((usage) => USAGES.includes(usage))) for (const [i, usage] of usages.entries()) if (!USAGES.includes(usage)) yield notSupported(index(at, i), usage, USAGES);
  const isRepeated = repeats<string>();
  if (new Set(before).size === before.length) for (const [i, usage] of usages.entries()) if (isRepeated(usage)) yield duplicate(index(at, i), usage);
  if (spec.signerName === LEGACY_SIGNER && old?.signerName !== LEGACY_SIGNER) yield invalid(child(path, "signerName"), spec.signerName, "the legacy signerName is not allowed via this API version");
  else yield* signerName(child(path, "signerName"), spec.signerName);
  if (spec.expirationSeconds !== undefined && spec.expirationSeconds < EXPIRATION_SECONDS_MIN)
    yield invalid(child(path, "expirationSeconds"), spec.expirationSeconds, "may not specify a duration less than 600 seconds (10 minutes)");
}

function* validateConditions(path: string, conditions: readonly Condition[], old: readonly Condition[]): Iterable<FieldError> {
  const types = (list: readonly Condition[]): string[] => list.map(({ type }) => type);
  const hadBoth = APPROVALS.every((type) => types(old).includes(type));
  const hadTwice = new Set(types(old)).size < old.length;
  const hadEmpty = types(old).includes("");
  const seen = new Set<string>();
  for (const [i, { type, status }] of conditions.entries()) {
    const at = index(path, i);
    if (!type && !hadEmpty) yield required(child(at, "type"));
    const allowed = LASTING.includes(type) ? ["True"] : ["False", "True", "Unknown"];
    if (!status) yield required(child(at, "status"));
    else if (!allowed.includes(status)) yield notSupported(child(at, "status"), status, allowed);
    if (!hadBoth && APPROVALS.includes(type) && APPROVALS.some((other) => other !== type && seen.has(other))) yield invalid(path, type, "Approved and Denied conditions are mutually exclusive");
    if (!hadTwice && seen.has(type)) yield duplicate(child(at, "type"), type);
    seen.add(type);
  }
}

function* validateChange(next: Readonly<Request>, old: Readonly<Request>, { mayApprove = false, mayCertify = false }: { readonly mayApprove?: boolean; readonly mayCertify?: boolean }): Iterable<FieldError> {
  for (const type of LASTING) if (ofType(next, type).length < ofType(old, type).length) yield forbidden(CONDITIONS, `updates may not remove a condition of type ${goQuote(type)}`);
  for (const type of mayApprove ? [] : APPROVALS) {
    const [before, after] = [ofType(old, type), ofType(next, type)];
    if (after.length > before.length) yield forbidden(CONDITIONS, `updates may not add a condition of type ${goQuote(type)}`);
    else if (after.length === before.length && !semanticEqual(before, after)) yield forbidden(CONDITIONS, `updates may not modify a condition of type ${goQuote(type)}\n${jsonDiff(before.map(shown), after.map(shown))}`);
  }
  const [certificate = "", before = ""] = [next.status?.certificate, old.status?.certificate];
  if (certificate === before) return;
  if (!mayCertify) yield forbidden("status.certificate", "updates may not set certificate content");
  else if (before !== "") yield forbidden("status.certificate", "updates may not modify existing certificate content");
}
