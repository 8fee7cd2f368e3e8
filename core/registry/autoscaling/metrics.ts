/** What an autoscaler looks at. Source: kubernetes v1.36 pkg/apis/autoscaling/validation/validation.go */
import { child, type FieldError, forbidden, index, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import type { CrossVersionObjectReference, MetricIdentifier, MetricSpec, MetricTarget } from "../../api/gen/autoscaling.v2.ts";
import { pathSegmentName } from "../../api/meta/names.ts";
import { parseQuantity } from "../../api/meta/quantity.ts";
import { containerResourceName } from "../core/checks/resources.ts";
import { isDns1123Label, problems } from "../core/checks/values.ts";

export interface ReferenceRules { readonly allowInvalidVersion: boolean; readonly allowEmptyGroup: boolean }

const FIELD_OF: Readonly<Record<string, string>> = { ContainerResource: "containerResource", External: "external", Object: "object", Pods: "pods", Resource: "resource" };
const TYPES = Object.keys(FIELD_OF);
/** The first one that is there is looked at. */
const SOURCES = ["object", "external", "pods", "resource", "containerResource"] as const;

export function* validateMetrics(path: string, metrics: readonly MetricSpec[], { minReplicas, references }: { readonly minReplicas: number | undefined; readonly references: ReferenceRules }): Iterable<FieldError> {
  for (const [i, metric] of metrics.entries()) yield* validateMetric(index(path, i), metric, references);
  if (minReplicas === 0 && !metrics.some(({ type }) => type === "Object" || type === "External"))
    yield forbidden(path, "must specify at least one Object or External metric to support scaling to zero replicas");
}

function* validateMetric(path: string, metric: MetricSpec, references: ReferenceRules): Iterable<FieldError> {
  const type = metric.type ?? "";
  if (type === "") yield required(child(path, "type"), "must specify a metric source type");
  if (!TYPES.includes(type)) yield notSupported(child(path, "type"), type, TYPES);
  const present = SOURCES.filter((name) => metric[name] !== undefined);
  const first = present[0];
  if (first !== undefined) yield* validateSource(child(path, first), metric, { source: first, references });
  const expected = Object.hasOwn(FIELD_OF, type) ? FIELD_OF[type] : undefined;
  if (expected !== undefined && !(present as readonly string[]).includes(expected)) yield required(child(path, expected), "must populate information for the given metric source");
  if (expected === undefined) yield notSupported(child(path, "type"), type, TYPES);
  if (present.length > 1) for (const name of present) if (name !== expected) yield forbidden(child(path, name), "must populate the given metric source only");
}

function* validateSource(path: string, { object, external, pods, resource, containerResource }: MetricSpec, { source, references }: { readonly source: (typeof SOURCES)[number]; readonly references: ReferenceRules }): Iterable<FieldError> {
  const value = (target: MetricTarget, detail: string): FieldError[] => (target.value === undefined && target.averageValue === undefined ? [required(child(path, "target", "averageValue"), detail)] : []);
  if (source === "object") {
    yield* validateReference(child(path, "describedObject"), object!.describedObject, references);
    yield* identifierAndTarget(path, object!);
    yield* value(object!.target, "must set either a target value or averageValue");
  } else if (source === "external") {
    const { target } = external!;
    yield* identifierAndTarget(path, external!);
    yield* value(target, "must set either a target value for metric or a per-pod target");
    if (target.value !== undefined && target.averageValue !== undefined) yield forbidden(child(path, "target", "value"), "may not set both a target value for metric and a per-pod target");
  } else if (source === "pods") {
    yield* identifierAndTarget(path, pods!);
    if (pods!.target.averageValue === undefined) yield required(child(path, "target", "averageValue"), "must specify a positive target averageValue");
  } else {
    const { name, target } = (resource ?? containerResource)!;
    if (!name) yield required(child(path, "name"), "must specify a resource name");
    else if (source === "containerResource") yield* containerResourceName(child(path, "name"), name);
    if (source === "containerResource") yield* validateContainer(child(path, "container"), containerResource!.container);
    yield* validateResourceTarget(child(path, "target"), target);
  }
}

function* identifierAndTarget(path: string, { metric, target }: { readonly metric: MetricIdentifier; readonly target: MetricTarget }): Iterable<FieldError> {
  const at = child(path, "metric", "name");
  if (!metric?.name) yield required(at, "must specify a metric name");
  else yield* problems(at, metric.name, pathSegmentName(metric.name));
  yield* validateTarget(child(path, "target"), target);
}

function* validateContainer(path: string, name: string): Iterable<FieldError> {
  if (!name) yield required(path, "must specify a container");
  else yield* isDns1123Label(path, name);
}

function* validateResourceTarget(path: string, target: MetricTarget): Iterable<FieldError> {
  yield* validateTarget(path, target);
  const { averageUtilization, averageValue } = target;
  if (averageUtilization === undefined && averageValue === undefined) yield required(child(path, "averageUtilization"), "must set either a target raw value or a target utilization");
  if (averageUtilization !== undefined && averageValue !== undefined) yield forbidden(child(path, "averageValue"), "may not set both a target raw value and a target utilization");
}

function* validateTarget(path: string, target: MetricTarget): Iterable<FieldError> {
  const type = target.type ?? "";
  if (type === "") yield required(child(path, "type"), "must specify a metric target type");
  if (!["Utilization", "Value", "AverageValue"].includes(type)) yield invalid(child(path, "type"), type, "must be either Utilization, Value, or AverageValue");
  for (const name of ["value", "averageValue"] as const) if (target[name] !== undefined && parseQuantity(target[name]).sign <= 0) yield invalid(child(path, name), target[name], "must be positive");
  if (target.averageUtilization !== undefined && target.averageUtilization < 1) yield invalid(child(path, "averageUtilization"), target.averageUtilization, "must be greater than 0");
}

export function* validateReference(path: string, { kind = "", name = "", apiVersion = "" }: CrossVersionObjectReference, rules: ReferenceRules): Iterable<FieldError> {
  for (const [field, value] of [["kind", kind], ["name", name]] as const) {
    if (value === "") yield required(child(path, field));
    else yield* problems(child(path, field), value, pathSegmentName(value));
  }
  const problem = rules.allowInvalidVersion ? undefined : versionProblem(apiVersion, rules);
  if (problem !== undefined) yield invalid(child(path, "apiVersion"), apiVersion, problem);
}

export function versionProblem(apiVersion: string, { allowEmptyGroup }: ReferenceRules): string | undefined {
  const parts = apiVersion === "/" ? [""] : apiVersion.split("/");
  if (parts.length > 2) return `unexpected GroupVersion string: ${apiVersion}`;
  return !allowEmptyGroup && (parts.length < 2 || parts[0] === "") ? "apiVersion must specify API group" : undefined;
}
