/**
 * What the kinds share that keep pods of one template running: a selector that fits the template, pods that never end by themselves, counts in status.
 *
 * Source: kubernetes v1.36 pkg/apis/apps/validation/validation.go, pkg/registry/apps/{deployment,replicaset,statefulset,daemonset}/strategy.go
 */
import { child, type FieldError, forbidden, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import type { PodTemplateSpec } from "../../api/gen/core.v1.ts";
import type { LabelSelector as ApiLabelSelector } from "../../api/gen/meta.v1.ts";
import { type LabelSelector, labelSelector, validateLabelSelector } from "../../api/meta/label-selector.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { scaleView } from "../autoscaling/scale.ts";
import { nonNegative } from "../core/checks/values.ts";
import { validatePodTemplate } from "../core/pod/template.ts";
import type { Subresource } from "../generic/resource.ts";

type Selector = Readonly<ApiLabelSelector> | undefined;
type Template = Readonly<PodTemplateSpec> | undefined;

export const MISMATCH = "`selector` does not match template `labels`";

export function isEmptySelector(selector: Selector): boolean {
  return Object.keys(selector?.matchLabels ?? {}).length + (selector?.matchExpressions?.length ?? 0) === 0;
}

/** Undefined for one that cannot be read. */
export function parsedSelector(selector: Selector): LabelSelector | undefined {
  try {
    return labelSelector(selector);
  } catch {
    return undefined; // the caller reports the field
  }
}

/** `owner`: as the message about an empty one calls it. */
export function* validateSelector(path: string, selector: Selector, owner: string): Iterable<FieldError> {
  if (!selector) { yield required(path); return; }
  yield* validateLabelSelector(selector, path);
  if (isEmptySelector(selector)) yield invalid(path, selector, `empty selector is invalid for ${owner}`);
}

export function* validateSelected(path: string, template: Template, selector: Selector, parsed: LabelSelector): Iterable<FieldError> {
  const labels = template?.metadata?.labels;
  if (selector && !isEmptySelector(selector) && !parsed.matches(labels)) yield invalid(child(path, "metadata", "labels"), labels ?? null, MISMATCH);
}

/** Pods that are to run for ever. */
export function* validateRunsForever(path: string, template: Template, owner: string): Iterable<FieldError> {
  const { restartPolicy = "", activeDeadlineSeconds } = template?.spec ?? {};
  if (restartPolicy !== "Always") yield notSupported(child(path, "spec", "restartPolicy"), restartPolicy, ["Always"]);
  if (activeDeadlineSeconds !== undefined) yield forbidden(child(path, "spec", "activeDeadlineSeconds"), `activeDeadlineSeconds in ${owner} is not Supported`);
}

/** Selector and template of Deployments and ReplicaSets: told apart by nothing but whose template it is. */
export function* validateReplicas(path: string, { selector, template, old }: { selector: Selector; template: Template; old: Template }): Iterable<FieldError> {
  const selectorPath = child(path, "selector");
  yield* validateSelector(selectorPath, selector, "deployment");
  const parsed = parsedSelector(selector);
  if (!parsed) { yield invalid(selectorPath, selector, "invalid label selector"); return; }
  const templatePath = child(path, "template");
  yield* validateSelected(templatePath, template, selector, parsed);
  yield* validatePodTemplate(templatePath, template, old);
  yield* validateRunsForever(templatePath, template, "ReplicaSet");
}

/** None of the counts in a status is negative. */
export function* validateCounts(path: string, counts: Readonly<Record<string, number | undefined>>): Iterable<FieldError> {
  for (const [field, value] of Object.entries(counts)) yield* nonNegative(child(path, field), value);
}

/** Parts are not more than the whole. */
export function* validateAtMost(path: string, parts: Readonly<Record<string, number>>, whole: number, message: string): Iterable<FieldError> {
  for (const [field, value] of Object.entries(parts)) if (value > whole) yield invalid(child(path, field), value, message);
}

/** How often a name was taken already: only ever more. */
export function* validateCollisions(path: string, next: number | undefined, old: number | undefined): Iterable<FieldError> {
  if (old !== undefined && (next ?? -1) < old) yield invalid(path, next ?? 0, "cannot be decremented");
}

interface Replicated extends ApiObject {
  spec: { replicas?: number | undefined; selector?: ApiLabelSelector | undefined };
  status?: { replicas?: number | undefined } | undefined;
}

export function replicasView<T extends Replicated>(): Extract<Subresource<T>, { type: "view" }> {
  return scaleView<T>({
    replicas: ({ spec }) => spec.replicas ?? 0,
    current: ({ status }) => status?.replicas ?? 0,
    selector: ({ spec }) => parsedSelector(spec.selector)?.toString() ?? "",
    setReplicas(object, replicas) { object.spec = { ...object.spec, replicas }; },
  });
}
