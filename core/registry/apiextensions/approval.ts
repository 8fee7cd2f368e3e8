/**
 * Groups of Kubernetes' own (k8s.io, kubernetes.io) need somebody's approval, which an annotation of the definition names.
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/apihelpers/helpers.go, pkg/controller/apiapproval
 */
import type { CustomResourceDefinition, CustomResourceDefinitionCondition } from "../../api/gen/apiextensions.v1.ts";
import { type FieldError, invalid, key, required } from "../../api/meta/field-error.ts";
import { goQuote } from "../../api/meta/go-quote.ts";

type Definition = Readonly<CustomResourceDefinition>;
type Approval = "missing" | "bypassed" | "approved" | "invalid";

const APPROVAL = "api-approved.kubernetes.io";
const APPROVAL_PULL = "https://github.com/kubernetes/enhancements/pull/1111";
const MISSING = `protected groups must have approval annotation ${goQuote(APPROVAL)}, see ${APPROVAL_PULL}`;
const INVALID = `protected groups must have approval annotation ${goQuote(APPROVAL)} with either a URL or a reason starting with "unapproved", see ${APPROVAL_PULL}`;

export function* validateApproval(next: Definition, old: Definition | undefined): Iterable<FieldError> {
  if (!isProtected(next)) return;
  const state = approvalOf(next);
  if (old && approvalOf(old) === state) return;
  const at = key("metadata.annotations", APPROVAL);
  if (state === "missing") yield required(at, MISSING);
  if (state === "invalid") yield invalid(at, next.metadata.annotations?.[APPROVAL], INVALID);
}

/** Undefined for groups that need no approval. */
export function approvalCondition(crd: Definition): CustomResourceDefinitionCondition | undefined {
  if (!isProtected(crd)) return undefined;
  const text = crd.metadata.annotations?.[APPROVAL] ?? "";
  const type = "KubernetesAPIApprovalPolicyConformant";
  switch (approvalOf(crd)) {
    case "missing": return { type, status: "False", reason: "MissingAnnotation", message: MISSING };
    case "invalid": return { type, status: "False", reason: "InvalidAnnotation", message: INVALID };
    case "bypassed": return { type, status: "False", reason: "UnapprovedAnnotation", message: `not approved: ${goQuote(text)}` };
    case "approved": return { type, status: "True", reason: "ApprovedAnnotation", message: `approved in ${text}` };
  }
}

function isProtected({ spec }: Definition): boolean { return /(^|\.)(k8s|kubernetes)\.io$/.test(spec.group ?? ""); }

function approvalOf({ metadata }: Definition): Approval {
  const text = metadata.annotations?.[APPROVAL] ?? "";
  if (text === "") return "missing";
  if (text.startsWith("unapproved")) return "bypassed";
  return /^[a-zA-Z][-+.a-zA-Z0-9]*:\/\/[^/?#\s]+(?:[/?]|$)/.test(text) ? "approved" : "invalid";
}
