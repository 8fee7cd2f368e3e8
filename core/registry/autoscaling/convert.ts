/**
 * HorizontalPodAutoscaler between autoscaling/v1 and v2. What v1 has no fields for travels in its annotations and is dropped from v2's.
 *
 *   v1 targetCPUUtilizationPercentage        v2 a metric: resource cpu, averageUtilization
 *   v1 …/metrics, …/current-metrics,         v2 the other metrics, status.currentMetrics,
 *      …/behavior, …/conditions                 behavior, status.conditions
 *
 * Source: kubernetes v1.36 pkg/apis/autoscaling/v1/conversion.go, pkg/apis/autoscaling/helpers.go
 */
import type { HorizontalPodAutoscaler as AutoscalerV1 } from "../../api/gen/autoscaling.v1.ts";
import type {
  HorizontalPodAutoscaler, HorizontalPodAutoscalerBehavior, HorizontalPodAutoscalerCondition, HPAScalingRules, MetricSpec, MetricStatus,
} from "../../api/gen/autoscaling.v2.ts";
import type { ObjectMeta } from "../../api/meta/object-meta.ts";
import { isQuantity } from "../../api/meta/quantity.ts";
import { parseTime } from "../../api/meta/time.ts";
import { isMap } from "../../api/patch/json-value.ts";
import { areReadable, metricFromV1, type MetricSpecV1, metricStatusFromV1, metricStatusToV1, type MetricStatusV1, metricToV1 } from "./convert-metrics.ts";

const PREFIX = "autoscaling.alpha.kubernetes.io/";
const METRICS = `${PREFIX}metrics`;
const CURRENT_METRICS = `${PREFIX}current-metrics`;
const CONDITIONS = `${PREFIX}conditions`;
const BEHAVIOR = `${PREFIX}behavior`;
const TRAVELLING: ReadonlySet<string> = new Set([METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR, `${PREFIX}scale-down-tolerance`, `${PREFIX}scale-up-tolerance`]);
/** Of cpu, for autoscalers that say nothing. */
export const CPU_UTILIZATION_DEFAULT = 80;

export function cpuUtilization(percent: number): MetricSpec {
  return { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: percent } } };
}

export function autoscalerToV2({ metadata, spec, status }: Readonly<AutoscalerV1>): HorizontalPodAutoscaler {
  const annotations = metadata.annotations ?? {};
  const { targetCPUUtilizationPercentage, scaleTargetRef, minReplicas, maxReplicas } = spec ?? ({} as AutoscalerV1["spec"]);
  const own = targetCPUUtilizationPercentage === undefined ? [] : [cpuUtilization(targetCPUUtilizationPercentage)];
  const others = (metricsIn(annotations[METRICS]) as MetricSpecV1[] | undefined)?.map(metricFromV1) ?? [];
  const metrics = [...others, ...own];
  const behavior = behaviorFrom(annotations[BEHAVIOR]);
  return {
    apiVersion: "autoscaling/v2", kind: "HorizontalPodAutoscaler", metadata: withAnnotations(metadata, {}),
    spec: { scaleTargetRef, minReplicas, maxReplicas, metrics: metrics.length > 0 ? metrics : [cpuUtilization(CPU_UTILIZATION_DEFAULT)], ...(behavior ? { behavior } : {}) },
    ...(status ? { status: statusToV2(status, annotations) } : {}),
  };
}

function statusToV2({ currentCPUUtilizationPercentage, ...rest }: NonNullable<AutoscalerV1["status"]>, annotations: Readonly<Record<string, string>>): NonNullable<HorizontalPodAutoscaler["status"]> {
  const cpu: MetricStatus[] | undefined = currentCPUUtilizationPercentage === undefined
    ? undefined : [{ type: "Resource", resource: { name: "cpu", current: { averageUtilization: currentCPUUtilizationPercentage } } }];
  const conditions = conditionsIn(annotations[CONDITIONS]);
  const current = parsed(annotations[CURRENT_METRICS]) === null ? [] : (metricsIn(annotations[CURRENT_METRICS]) as MetricStatusV1[] | undefined)?.map(metricStatusFromV1);
  return {
    ...rest,
    currentMetrics: (current ?? cpu) as MetricStatus[],
    ...(conditions ? { conditions } : {}),
  };
}

export function autoscalerToV1({ metadata, spec, status }: Readonly<HorizontalPodAutoscaler>): AutoscalerV1 {
  const { metrics = [], behavior, scaleTargetRef, minReplicas, maxReplicas } = spec ?? ({} as Partial<HorizontalPodAutoscaler["spec"]>); // what is left of an object to who owns little of it may have none
  const cpu = metrics.find(isCpuUtilization)?.resource?.target.averageUtilization;
  const others = metrics.filter((metric) => !isCpuUtilization(metric)).map(metricToV1);
  const currentMetrics = status?.currentMetrics ?? [];
  const conditions = status?.conditions ?? [];
  const annotations: Record<string, string> = {
    ...(others.length > 0 ? { [METRICS]: JSON.stringify(others) } : {}),
    ...(currentMetrics.length > 0 ? { [CURRENT_METRICS]: JSON.stringify(currentMetrics.map(metricStatusToV1)) } : {}),
    ...(behavior ? { [BEHAVIOR]: JSON.stringify(behaviorTo(behavior)) } : {}),
    ...(conditions.length > 0 ? { [CONDITIONS]: JSON.stringify(conditions) } : {}),
  };
  return {
    apiVersion: "autoscaling/v1", kind: "HorizontalPodAutoscaler", metadata: withAnnotations(metadata, annotations),
    spec: { scaleTargetRef, minReplicas, maxReplicas, targetCPUUtilizationPercentage: cpu },
    ...(status ? { status: statusToV1(status) } : {}),
  };
}

function statusToV1({ observedGeneration, lastScaleTime, currentReplicas, desiredReplicas, currentMetrics }: NonNullable<HorizontalPodAutoscaler["status"]>): NonNullable<AutoscalerV1["status"]> {
  const cpu = (currentMetrics ?? []).findLast(({ type, resource }) => type === "Resource" && resource?.name === "cpu" && resource.current.averageUtilization !== undefined);
  return { observedGeneration, lastScaleTime, currentReplicas: currentReplicas ?? 0, desiredReplicas, currentCPUUtilizationPercentage: cpu?.resource?.current.averageUtilization };
}

function isCpuUtilization({ type, resource }: Readonly<MetricSpec>): boolean {
  return type === "Resource" && resource?.name === "cpu" && resource.target.averageUtilization !== undefined;
}

function withAnnotations(metadata: ObjectMeta, added: Readonly<Record<string, string>>): ObjectMeta {
  const { annotations = {}, ...rest } = metadata;
  const kept = Object.fromEntries(Object.entries({ ...annotations }).filter(([name]) => !TRAVELLING.has(name)));
  const all = { ...kept, ...added };
  return Object.keys(all).length > 0 ? { ...rest, annotations: all } : rest;
}

function metricsIn(text: string | undefined): unknown[] | undefined {
  const metrics = parsedList(text);
  return metrics && areReadable(metrics) ? metrics.map((metric) => metric ?? { type: "" }) : undefined;
}

function parsedList(text: string | undefined): unknown[] | undefined {
  const value = parsed(text);
  return Array.isArray(value) ? value : undefined;
}

/** Annotations are anybody's: what cannot be read says nothing. */
function parsed(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // as upstream: an annotation that is no JSON is ignored
  }
}

/** In this annotation upstream spells fields as Go does: ScaleUp, StabilizationWindowSeconds. Reading, case does not matter. */
function behaviorTo({ scaleUp, scaleDown }: HorizontalPodAutoscalerBehavior): unknown {
  return { ScaleUp: rulesTo(scaleUp), ScaleDown: rulesTo(scaleDown) };
}

function rulesTo(rules: HPAScalingRules | undefined): unknown {
  if (!rules) return null;
  const { stabilizationWindowSeconds = null, selectPolicy = null, policies, tolerance = null } = rules;
  return {
    StabilizationWindowSeconds: stabilizationWindowSeconds, SelectPolicy: selectPolicy,
    Policies: policies?.map(({ type, value, periodSeconds }) => ({ Type: type, Value: value, PeriodSeconds: periodSeconds })) ?? null, Tolerance: tolerance,
  };
}

function behaviorFrom(text: string | undefined): HorizontalPodAutoscalerBehavior | undefined {
  const value = parsed(text);
  if (!isMap(value)) return undefined;
  const { scaleUp, scaleDown } = camelCased(value) as HorizontalPodAutoscalerBehavior;
  if (!areRules(scaleUp) || !areRules(scaleDown)) return undefined;
  return scaleUp || scaleDown ? { ...(scaleUp ? { scaleUp } : {}), ...(scaleDown ? { scaleDown } : {}) } : undefined;
}

/** Whether all is of the type that Go has for it: of a behavior in which something is not upstream reads nothing. */
function areRules(rules: unknown): boolean {
  if (rules === undefined) return true;
  if (!isMap(rules)) return false;
  const { stabilizationWindowSeconds, selectPolicy, policies = [], tolerance } = rules;
  const isPolicy = (one: unknown): boolean => isMap(one) && isText(one["type"]) && isInt32(one["value"]) && isInt32(one["periodSeconds"]);
  return isInt32(stabilizationWindowSeconds) && isText(selectPolicy) && (tolerance === undefined || (typeof tolerance !== "object" && isQuantity(String(tolerance)))) && Array.isArray(policies) && policies.every(isPolicy);
}

/** Undefined: there are none, or one cannot be read. */
function conditionsIn(text: string | undefined): HorizontalPodAutoscalerCondition[] | undefined {
  const isCondition = (one: unknown): boolean => one === null || (isMap(one) && ["type", "status", "reason", "message"].every((name) => isText(one[name] ?? undefined)) && isTime(one["lastTransitionTime"]));
  const conditions = parsedList(text);
  return conditions?.every(isCondition) ? conditions.map((one) => one ?? { type: "", status: "" }) as HorizontalPodAutoscalerCondition[] : undefined;
}


function isText(value: unknown): boolean { return value === undefined || typeof value === "string"; }
function isInt32(value: unknown): boolean { return value === undefined || (Number.isInteger(value) && Math.abs(value as number) < 2 ** 31); }
function isTime(value: unknown): boolean { return value === undefined || value === null || (typeof value === "string" && parseTime(value) !== undefined); }

const FIELDS = new Map(["scaleUp", "scaleDown", "stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance", "type", "value", "periodSeconds"].map((name) => [name.toLowerCase(), name]));

/** The known fields in our spelling; nulls and the rest are gone. */
function camelCased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camelCased);
  if (typeof value !== "object" || value === null) return value;
  const out: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(value)) {
    const field = FIELDS.get(name.toLowerCase());
    if (field !== undefined && inner !== null) out[field] = camelCased(inner);
  }
  return out;
}
