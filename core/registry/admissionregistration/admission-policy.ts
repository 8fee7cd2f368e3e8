/**
 * Admission policies and their bindings (admissionregistration.k8s.io/v1): rules, as expressions, about what may be written and what is changed on the way in.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/policy-resources/validating-admission-policy-v1/
 * Source: kubernetes v1.36 pkg/registry/admissionregistration/{mutating,validating}admissionpolicy{,binding}/strategy.go, pkg/apis/admissionregistration/{v1/defaults,validation/validation}.go
 */
import { child, duplicate, type FieldError, index, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import type {
  MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
} from "../../api/gen/admissionregistration.v1.ts";
import { dns1123Subdomain } from "../../api/meta/names.ts";
import { internalForm } from "../../api/schema/internal-form.ts";
import { validateCommonConditions } from "../core/checks/conditions.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { problems } from "../core/checks/values.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";
import { foreseePolicy, type PolicyScope, policyScope, validateAuditAnnotations, validateMutation, validateParamRef, validatePolicy, validateValidation } from "./expressions.ts";
import { defaultMatchResources, REINVOCATION_POLICIES, validateMatchResources, validateMutatedOperations } from "./rules.ts";
import { staticNameWarnings } from "./static-names.ts";
import { repeats } from "../../api/meta/linear.ts";

const GROUP = { group: "admissionregistration.k8s.io", version: "v1", unconditionalUpdate: false };
const AUDIT_ANNOTATIONS_MAX = 20;
const ACTIONS = ["Audit", "Deny", "Warn"];
const ONE_AT_LEAST = "validations or auditAnnotations must contain at least one item";

export const validatingAdmissionPolicies = defineResource<ValidatingAdmissionPolicy>({
  anyFinalizer: true,
  ...GROUP, kind: "ValidatingAdmissionPolicy", plural: "validatingadmissionpolicies",
  defaults: ({ spec }) => defaultPolicy(spec),
  foresee: (policy, old, context) => foreseePolicy(policy.spec, context, { mutates: false, check: (scope) => validateValidating(policy, old, scope) }),
  validate: (policy, old, context) => validateValidating(policy, old, policyScope(policy.spec, context, { mutates: false })),
  warnings: ({ metadata }) => staticNameWarnings(metadata.name),
  subresources: {
    status: statusPart<ValidatingAdmissionPolicy>({
      keepsMetadata: true,
      *validate({ status }) {
        for (const [i, { warning, fieldRef }] of (status?.typeChecking?.expressionWarnings ?? []).entries()) {
          const at = index("status.typeChecking.expressionWarnings", i);
          if (!warning) yield required(child(at, "warning"));
          if (!fieldRef?.trim()) yield required(child(at, "fieldRef"));
        }
        yield* validateCommonConditions("status.conditions", status?.conditions);
      },
    }),
  },
});

export const mutatingAdmissionPolicies = defineResource<MutatingAdmissionPolicy>({
  anyFinalizer: true,
  ...GROUP, kind: "MutatingAdmissionPolicy", plural: "mutatingadmissionpolicies",
  defaults: ({ spec }) => defaultPolicy(spec),
  foresee: (policy, old, context) => foreseePolicy(policy.spec, context, { mutates: true, check: (scope) => validateMutating(policy, old, scope) }),
  validate: (policy, old, context) => validateMutating(policy, old, policyScope(policy.spec, context, { mutates: true })),
  warnings: ({ metadata }) => staticNameWarnings(metadata.name),
});

function* validateValidating({ metadata, spec }: Readonly<ValidatingAdmissionPolicy>, old: Readonly<ValidatingAdmissionPolicy> | undefined, scope: PolicyScope): Iterable<FieldError> {
  yield* validatePolicy("spec", spec, { scope, mutates: false, ignoreConditions: hasSameConditions(spec, old?.spec) });
  const { validations = [], auditAnnotations = [] } = spec;
  if (validations.length + auditAnnotations.length === 0) {
    yield required("spec.validations", ONE_AT_LEAST);
    yield required("spec.auditAnnotations", ONE_AT_LEAST);
  }
  for (const [i, validation] of validations.entries()) yield* validateValidation(index("spec.validations", i), validation, scope);
  if (auditAnnotations.length > AUDIT_ANNOTATIONS_MAX)
    yield invalid("spec.auditAnnotations", auditAnnotations.map((one) => internalForm("io.k8s.api.admissionregistration.v1.AuditAnnotation", one)), `must not have more than ${AUDIT_ANNOTATIONS_MAX} auditAnnotations`);
  yield* validateAuditAnnotations("spec.auditAnnotations", auditAnnotations, { policyName: metadata.name, scope });
}

function* validateMutating({ spec }: Readonly<MutatingAdmissionPolicy>, old: Readonly<MutatingAdmissionPolicy> | undefined, scope: PolicyScope): Iterable<FieldError> {
  yield* validatePolicy("spec", spec, { scope, mutates: true, ignoreConditions: hasSameConditions(spec, old?.spec) });
  if (!spec.mutations?.length) yield required("spec.mutations", "mutations must contain at least one item");
  for (const [i, mutation] of (spec.mutations ?? []).entries()) yield* validateMutation(index("spec.mutations", i), mutation, scope);
  if (!spec.reinvocationPolicy) yield required("spec.reinvocationPolicy");
  else if (!REINVOCATION_POLICIES.includes(spec.reinvocationPolicy)) yield notSupported("spec.reinvocationPolicy", spec.reinvocationPolicy, REINVOCATION_POLICIES);
}

type PolicySpec = ValidatingAdmissionPolicy["spec"] | MutatingAdmissionPolicy["spec"];

function defaultPolicy(spec: PolicySpec): void {
  spec.failurePolicy ??= "Fail";
  defaultMatchResources(spec.matchConstraints);
}

/** Conditions that were stored already are not looked at again. */
function hasSameConditions(next: Readonly<PolicySpec>, old: Readonly<PolicySpec> | undefined): boolean {
  return old !== undefined && semanticEqual(next.paramKind, old.paramKind) && semanticEqual(next.matchConditions, old.matchConditions);
}

export const validatingAdmissionPolicyBindings = defineResource<ValidatingAdmissionPolicyBinding>({
  anyFinalizer: true,
  ...GROUP, kind: "ValidatingAdmissionPolicyBinding", plural: "validatingadmissionpolicybindings",
  defaults: ({ spec }) => defaultMatchResources(spec.matchResources),
  *validate({ spec }) {
    yield* validateBinding(spec);
    yield* validateActions("spec.validationActions", spec.validationActions ?? []);
  },
  warnings: ({ metadata }) => staticNameWarnings(metadata.name),
});

export const mutatingAdmissionPolicyBindings = defineResource<MutatingAdmissionPolicyBinding>({
  anyFinalizer: true,
  ...GROUP, kind: "MutatingAdmissionPolicyBinding", plural: "mutatingadmissionpolicybindings",
  defaults: ({ spec }) => defaultMatchResources(spec.matchResources),
  *validate({ spec }) {
    yield* validateBinding(spec);
    yield* validateMutatedOperations("spec.matchResources", spec.matchResources);
  },
  warnings: ({ metadata }) => staticNameWarnings(metadata.name),
});

function* validateBinding({ policyName, paramRef, matchResources }: MutatingAdmissionPolicyBinding["spec"]): Iterable<FieldError> {
  if (!policyName) yield required("spec.policyName");
  else yield* problems("spec.policyName", policyName, dns1123Subdomain(policyName));
  yield* validateParamRef("spec.paramRef", paramRef);
  yield* validateMatchResources("spec.matchResources", matchResources);
}

function* validateActions(path: string, actions: readonly string[]): Iterable<FieldError> {
  const cameBefore = repeats<string>();
  for (const [i, action] of actions.entries()) {
    if (!ACTIONS.includes(action)) yield notSupported(index(path, i), action, ACTIONS);
    if (cameBefore(action)) yield duplicate(index(path, i), action);
  }
  if (actions.includes("Deny") && actions.includes("Warn"))
    yield invalid(path, actions, "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)");
  if (actions.length === 0) yield required(path, "at least one validation action is required");
}
