/**
 * PodCertificateRequest (certificates.k8s.io/v1beta1): a kubelet asks a signer to certify a key that it made for a pod.
 *
 *   create   the pod, its account and its node, and the key; who may ask for whom says admission (NodeRestriction)
 *   update   metadata only
 *   status   once: the chain with its times, or that there is none; that the caller may sign says admission
 *
 * Source: kubernetes v1.36 pkg/registry/certificates/podcertificaterequest, pkg/apis/certificates/validation/validation.go
 */
import type { PodCertificateRequest } from "../../api/gen/certificates.v1beta1.ts";
import { byteLength } from "../../api/meta/byte-length.ts";
import { child, type FieldError, invalid, notSupported, OMIT_VALUE, required, tooLong } from "../../api/meta/field-error.ts";
import { dns1123Subdomain } from "../../api/meta/names.ts";
import { validateCommonConditions } from "../core/checks/conditions.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { immutableStruct, problems } from "../core/checks/values.ts";
import { validateUserAnnotations } from "../core/pod/validation/projected.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";
import { validateIssued } from "./issued-chain.ts";
import { validateKey } from "./pod-keys.ts";
import { isKubernetesSigner, signerName } from "./signer-name.ts";

type Request = PodCertificateRequest;

const UID_BYTES_MAX = 128;
const HOUR_SECONDS = 3600, DAY_SECONDS = 24 * HOUR_SECONDS;
const SECONDS_MIN = HOUR_SECONDS, SECONDS_MAX = 91 * DAY_SECONDS, KUBERNETES_SECONDS_MAX = DAY_SECONDS;
const OUTCOMES = ["Issued", "Denied", "Failed"];

export const podCertificateRequests = defineResource<Request>({
  group: "certificates.k8s.io", version: "v1beta1", kind: "PodCertificateRequest", plural: "podcertificaterequests",
  generation: false, unconditionalUpdate: false,
  validate: (next, old) => (old ? [] : validateNew(next)),
  validateUpdate: (next, old) => immutableStruct("spec", "certificates.v1beta1.PodCertificateRequestSpec", next.spec, old.spec),
  fields: ({ spec }) => ({ "spec.signerName": spec.signerName, "spec.podName": spec.podName, "spec.nodeName": spec.nodeName }),
  subresources: { status: statusPart<Request>({ keepsMetadata: true, validate: (next, old, context) => validateStatus(next, old, context!.nowMs) }) },
});

function* validateNew({ spec }: Readonly<Request>): Iterable<FieldError> {
  yield* signerName(child("spec", "signerName"), spec.signerName);
  if (spec.unverifiedUserAnnotations) yield* validateUserAnnotations(child("spec", "unverifiedUserAnnotations"), spec.unverifiedUserAnnotations);
  for (const who of ["pod", "serviceAccount", "node"] as const) {
    const [name, uid] = [spec[`${who}Name`] ?? "", spec[`${who}UID`] ?? ""];
    yield* problems(child("spec", `${who}Name`), name, dns1123Subdomain(name));
    if (uid === "") yield invalid(child("spec", `${who}UID`), uid, "must not be empty");
    if (byteLength(uid) > UID_BYTES_MAX) yield tooLong(child("spec", `${who}UID`), UID_BYTES_MAX);
  }
  const at = child("spec", "maxExpirationSeconds"), seconds = spec.maxExpirationSeconds, max = isKubernetesSigner(spec.signerName ?? "") ? KUBERNETES_SECONDS_MAX : SECONDS_MAX;
  if (seconds === undefined) { yield required(at, "must be set"); return; }
  if (seconds < SECONDS_MIN || seconds > max) yield invalid(at, seconds, `must be in the range [${SECONDS_MIN}, ${max}]`);
  yield* validateKey(spec);
}

/** Changes once, to one of the outcomes. */
function* validateStatus(next: Readonly<Request>, old: Readonly<Request>, nowMs: number): Iterable<FieldError> {
  const status = next.status ?? {}, before = old.status ?? {};
  const wrong = [...validateConditions(status.conditions ?? [])];
  yield* wrong;
  if (wrong.length > 0) return;
  const outcome = status.conditions?.[0]?.type; // the conditions are good: at most one
  if (before.conditions?.some(({ type, status: is }) => OUTCOMES.includes(type) && is === "True")) yield* sameStatus(status, before, "immutable after PodCertificateRequest is issued, denied, or failed");
  else if (outcome === "Issued") yield* validateIssued(next, nowMs);
  else if (outcome !== undefined) yield* sameStatus({ ...status, conditions: [] }, {}, "non-condition status fields must be empty when denying or failing the PodCertificateRequest");
  else yield* sameStatus(status, before, `status is immutable unless transitioning to "Issued", "Denied", or "Failed"`);
}

function* sameStatus(next: object, old: object, detail: string): Iterable<FieldError> {
  if (!semanticEqual(next, old)) yield invalid("status", OMIT_VALUE, detail);
}

/** Upstream's path has a dot before the bracket, here alone. */
function* validateConditions(conditions: NonNullable<NonNullable<Request["status"]>["conditions"]>): Iterable<FieldError> {
  const at = child("status", "conditions");
  let known = 0;
  for (const [i, { type, status }] of conditions.entries()) {
    const path = child(at, `[${i}]`);
    if (!OUTCOMES.includes(type)) {
      yield notSupported(child(path, "type"), type ?? "", OUTCOMES);
      continue;
    }
    known++;
    if (known > 1) yield invalid(child(path, "type"), type, `There may be at most one condition with type "Issued", "Denied", or "Failed"`);
    if (status !== "True") yield notSupported(child(path, "status"), status ?? "", ["True"]);
  }
  yield* validateCommonConditions(at, conditions);
}
