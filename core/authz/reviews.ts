/**
 * Access reviews: may this user do that, and what may I do here.
 *
 * Source: kubernetes v1.36 pkg/registry/authorization, pkg/apis/authorization/validation
 */
import type {
  FieldSelectorAttributes, LabelSelectorAttributes, LocalSubjectAccessReview, ResourceAttributes as ResourceAttributesV1, SelfSubjectAccessReview, SelfSubjectRulesReview,
  SubjectAccessReview, SubjectAccessReviewSpec, SubjectAccessReviewStatus,
} from "../api/gen/authorization.v1.ts";
import type { FieldSelectorRequirement, LabelSelectorRequirement } from "../api/gen/meta.v1.ts";
import { type FieldError, forbidden, index, invalid as invalidField, required } from "../api/meta/field-error.ts";
import { escapeFieldValue, parseFieldSelector } from "../api/meta/field-selector.ts";
import { parseLabelSelector, validateRequirement } from "../api/meta/label-selector.ts";
import type { TemplateMeta } from "../api/meta/object-meta.ts";
import { badRequest, invalid } from "../api/meta/status-error.ts";
import type { Attributes } from "../api/request/attributes.ts";
import type { UserInfo } from "../api/request/user.ts";
import type { Authorizer } from "./authorizer.ts";

export type AccessReview = SubjectAccessReview | SelfSubjectAccessReview | LocalSubjectAccessReview | SelfSubjectRulesReview;
const ACCESS_REVIEW_KINDS = ["SubjectAccessReview", "SelfSubjectAccessReview", "LocalSubjectAccessReview", "SelfSubjectRulesReview"] as const;
export type AccessReviewKind = (typeof ACCESS_REVIEW_KINDS)[number];

export interface ReviewOptions {
  /** Who sends the review. */
  readonly user: UserInfo;
  /** From the path, for LocalSubjectAccessReview. */
  readonly namespace?: string;
  /** Validating admission, once the review is known to be valid. */
  readonly admit?: () => Promise<void>;
}

/** The review with its status. Throws 400 and 422. */
export async function evaluateReview(kind: AccessReviewKind, review: Readonly<AccessReview>, authorizer: Authorizer, options: ReviewOptions): Promise<AccessReview> {
  if (kind === "SelfSubjectRulesReview") return await reviewRules(review as SelfSubjectRulesReview, authorizer, options);
  const { namespace = "", user, admit } = options;
  const spec: SubjectAccessReviewSpec = (review as SubjectAccessReview).spec ?? {};
  const problems = [...specProblems(spec, kind), ...metadataProblems(review.metadata as TemplateMeta | undefined, kind)];
  if (kind === "LocalSubjectAccessReview") problems.push(...localProblems(spec, review.metadata?.namespace ?? ""));
  if (problems.length > 0) throw invalid({ group: "authorization.k8s.io", kind: "" }, "", problems);
  if (kind === "LocalSubjectAccessReview" && namespace !== (review.metadata?.namespace ?? "")) throw badRequest(`spec.resourceAttributes.namespace must match namespace: ${namespace}`);
  await admit?.();
  const subject = kind === "SelfSubjectAccessReview" ? user : { name: spec.user ?? "", uid: spec.uid, groups: spec.groups ?? [], extra: spec.extra };
  return { ...review, status: await statusOf(authorizer, spec, subject) } as AccessReview;
}

async function statusOf(authorizer: Authorizer, spec: SubjectAccessReviewSpec, user: UserInfo): Promise<SubjectAccessReviewStatus> {
  const errors: string[] = [];
  const { decision, reason, error } = await authorizer.authorize(attributesOf(spec, user, errors));
  if (error !== undefined) errors.unshift(error);
  return {
    allowed: decision === "allow", ...(decision === "deny" ? { denied: true } : {}), ...(reason === "" ? {} : { reason }),
    ...(errors.length > 0 ? { evaluationError: errors.join("; ") } : {}),
  };
}

function attributesOf({ resourceAttributes, nonResourceAttributes }: SubjectAccessReviewSpec, user: UserInfo, errors: string[]): Attributes {
  if (!resourceAttributes) return { isResource: false, verb: nonResourceAttributes?.verb ?? "", path: nonResourceAttributes?.path ?? "", user };
  const { verb = "", group = "", version = "", resource = "", subresource = "", namespace = "", name = "" } = resourceAttributes;
  const [fields, labels] = [selectorOf("fieldSelector", resourceAttributes, errors), selectorOf("labelSelector", resourceAttributes, errors)];
  return {
    isResource: true, verb, group, version: version === "" ? "*" : version, resource, subresource, namespace, name, path: "", user, fieldSelector: fields.text, labelSelector: labels.text,
    requirements: { ...(fields.given && { fields: fields.given as FieldSelectorRequirement[] }), ...(labels.given && { labels: labels.given as LabelSelectorRequirement[] }) },
  };
}

interface Selected {
  readonly text: string | undefined;
  /** The requirements themselves, if they were given as such. */
  readonly given?: readonly Requirement[];
}

/** As text. What cannot be read is left out: selectors are joined by "and", so the question becomes a broader one, never a narrower. */
function selectorOf(which: "fieldSelector" | "labelSelector", attributes: ResourceAttributesV1, errors: string[]): Selected {
  const selector = attributes[which];
  if (!selector) return { text: undefined };
  const parse = which === "fieldSelector" ? parseFieldSelector : parseLabelSelector;
  const { requirements = [], rawSelector = "" } = selector;
  const terms = requirements.length > 0 ? requirements.map((of: Requirement) => ({ of, term: which === "fieldSelector" ? fieldTerm(of) : labelTerm(of) })) : [{ of: undefined, term: rawSelector }];
  const good = terms.filter(({ term }) => {
    try {
      if (term !== undefined) parse(term);
      return term !== undefined;
    } catch {
      return false; // told as an evaluation error below
    }
  });
  if (good.length < terms.length) errors.push(`spec.resourceAttributes.${which} ${good.length > 0 ? "partially ignored" : "ignored"} due to parse error`);
  if (good.length === 0) return { text: undefined };
  return { text: good.map(({ term }) => term).join(","), ...(requirements.length > 0 && { given: good.map(({ of }) => ({ key: of!.key, operator: of!.operator, ...(of!.values?.length ? { values: of!.values } : {}) })) }) };
}

type Requirement = NonNullable<FieldSelectorAttributes["requirements"]>[number] | NonNullable<LabelSelectorAttributes["requirements"]>[number];

function fieldTerm({ key, operator, values = [] }: Requirement): string | undefined {
  if (values.length !== 1 || (operator !== "In" && operator !== "NotIn")) return undefined;
  return `${key}${operator === "In" ? "=" : "!="}${escapeFieldValue(values[0]!)}`;
}

function labelTerm({ key, operator, values = [] }: Requirement): string | undefined {
  switch (operator) {
    case "In": return `${key} in (${values.join(",")})`;
    case "NotIn": return `${key} notin (${values.join(",")})`;
    case "Exists": return key;
    case "DoesNotExist": return `!${key}`;
    default: return undefined;
  }
}

function* specProblems(spec: SubjectAccessReviewSpec, kind: AccessReviewKind): Iterable<FieldError> {
  const { resourceAttributes, nonResourceAttributes } = spec;
  if (resourceAttributes && nonResourceAttributes) yield invalidField("spec.nonResourceAttributes", internalForm(nonResourceAttributes), "cannot be specified in combination with resourceAttributes");
  if (!resourceAttributes && !nonResourceAttributes) yield invalidField("spec.resourceAttributes", null, "exactly one of nonResourceAttributes or resourceAttributes must be specified");
  if (kind !== "SelfSubjectAccessReview" && !spec.user && !spec.groups?.length) yield invalidField("spec.user", spec.user ?? "", "at least one of user or group must be specified");
  for (const which of ["fieldSelector", "labelSelector"] as const) {
    const selector = resourceAttributes?.[which];
    if (!selector) continue;
    const path = `spec.resourceAttributes.${which}`;
    const raw = selector.rawSelector ?? "";
    const count = selector.requirements?.length ?? 0;
    if (raw !== "" && count > 0) yield invalidField(`${path}.rawSelector`, raw, "may not specified at the same time as requirements");
    if (raw === "" && count === 0) yield required(`${path}.requirements`, `when ${path} is specified, requirements or rawSelector is required`);
    for (const [i, requirement] of (selector.requirements ?? []).entries()) {
      const at = index(`${path}.requirements`, i);
      yield* which === "labelSelector" ? validateRequirement(requirement, at, { allowOtherOperators: true }) : fieldProblems(requirement, at);
    }
  }
}

/** As Go prints what has no names for JSON. */
function internalForm({ path = "", verb = "" }: { readonly path?: string | undefined; readonly verb?: string | undefined }): object { return { Path: path, Verb: verb }; }

function* fieldProblems({ key, operator, values = [] }: Requirement, path: string): Iterable<FieldError> {
  if ((operator === "In" || operator === "NotIn") && values.length === 0) yield required(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'");
  if ((operator === "Exists" || operator === "DoesNotExist") && values.length > 0) yield forbidden(`${path}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
  if (key === "") yield required(`${path}.key`, "must be specified");
}

function* metadataProblems(metadata: Readonly<TemplateMeta> | undefined, kind: AccessReviewKind): Iterable<FieldError> {
  const local = kind === "LocalSubjectAccessReview";
  const rest = Object.entries(metadata ?? {}).filter(([name, value]) => name !== "managedFields" && !(local && name === "namespace") && value !== undefined && value !== null && value !== "");
  if (rest.length > 0) yield invalidField("metadata", metadata, local ? "must be empty except for namespace" : "must be empty");
}

function* localProblems({ resourceAttributes, nonResourceAttributes }: SubjectAccessReviewSpec, namespace: string): Iterable<FieldError> {
  if (resourceAttributes && (resourceAttributes.namespace ?? "") !== namespace) yield invalidField("spec.resourceAttributes.namespace", resourceAttributes.namespace ?? "", "must match metadata.namespace");
  if (nonResourceAttributes) yield invalidField("spec.nonResourceAttributes", internalForm(nonResourceAttributes), "disallowed on this kind of request");
}

async function reviewRules(review: Readonly<SelfSubjectRulesReview>, authorizer: Authorizer, { user, admit }: ReviewOptions): Promise<SelfSubjectRulesReview> {
  const namespace = review.spec?.namespace ?? "";
  if (namespace === "") throw badRequest("no namespace on request");
  await admit?.();
  const { resourceRules, pathRules, incomplete, evaluationError } = await authorizer.rulesFor(user, namespace);
  const list = (values: readonly string[]): string[] | undefined => (values.length > 0 ? [...values] : undefined);
  return {
    kind: review.kind, apiVersion: review.apiVersion, metadata: {} as SelfSubjectRulesReview["metadata"], spec: {},
    status: {
      resourceRules: resourceRules.map(({ verbs, apiGroups, resources, resourceNames }) => ({ verbs: [...verbs], apiGroups: list(apiGroups), resources: list(resources), resourceNames: list(resourceNames) })),
      nonResourceRules: pathRules.map(({ verbs, nonResourceURLs }) => ({ verbs: [...verbs], nonResourceURLs: list(nonResourceURLs) })),
      incomplete, ...(evaluationError === undefined ? {} : { evaluationError }),
    },
  };
}
