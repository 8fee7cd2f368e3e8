/**
 * Metrics of autoscalers as autoscaling/v1 writes them into annotations: one field a kind of value, where v2 has a target.
 *
 * Source: kubernetes v1.36 pkg/apis/autoscaling/v1/conversion.go
 */
import type { CrossVersionObjectReference, MetricSpec, MetricStatus, MetricTarget, MetricValueStatus } from "../../api/gen/autoscaling.v2.ts";
import type { LabelSelector } from "../../api/gen/meta.v1.ts";
import { isQuantity, parseQuantity } from "../../api/meta/quantity.ts";

export interface MetricSpecV1 {
  type: string;
  object?: { target: CrossVersionObjectReference; metricName: string; targetValue?: string | undefined; selector?: LabelSelector | undefined; averageValue?: string | undefined };
  pods?: { metricName: string; targetAverageValue?: string | undefined; selector?: LabelSelector | undefined };
  resource?: ResourceSourceV1;
  containerResource?: ResourceSourceV1 & { container: string };
  external?: { metricName: string; metricSelector?: LabelSelector | undefined; targetValue?: string | undefined; targetAverageValue?: string | undefined };
}
interface ResourceSourceV1 { name: string; targetAverageUtilization?: number | undefined; targetAverageValue?: string | undefined }

export interface MetricStatusV1 {
  type: string;
  object?: { target: CrossVersionObjectReference; metricName: string; currentValue?: string | undefined; selector?: LabelSelector | undefined; averageValue?: string | undefined };
  pods?: { metricName: string; currentAverageValue?: string | undefined; selector?: LabelSelector | undefined };
  resource?: ResourceStatusV1;
  containerResource?: ResourceStatusV1 & { container: string };
  external?: { metricName: string; metricSelector?: LabelSelector | undefined; currentValue?: string | undefined; currentAverageValue?: string | undefined };
}
interface ResourceStatusV1 { name: string; currentAverageUtilization?: number | undefined; currentAverageValue?: string | undefined }

const ZERO = "0";
const SOURCES: ReadonlySet<string> = new Set(["object", "pods", "resource", "containerResource", "external"]);
const QUANTITIES: ReadonlySet<string> = new Set(["targetValue", "targetAverageValue", "averageValue", "currentValue", "currentAverageValue"]);

/** Whether metrics, their sources and quantities are such: of a list in which one is not upstream reads nothing. */
export function areReadable(metrics: readonly unknown[]): metrics is readonly (Readonly<Record<string, unknown>> | null)[] {
  return metrics.every((metric) => isObjectOrNull(metric) && Object.entries(metric ?? {}).every(([name, value]) => {
    if (name === "type") return typeof value === "string";
    return !SOURCES.has(name) || (isObjectOrNull(value) && quantitiesOf(value).every(isQuantity));
  }));
}

function isObjectOrNull(value: unknown): value is object | null { return typeof value === "object" && !Array.isArray(value); }

function quantitiesOf(source: object | null): string[] {
  return Object.entries(source ?? {}).flatMap(([name, value]) => (QUANTITIES.has(name) && value !== null ? [String(value)] : []));
}

export function metricToV1({ type, object, pods, resource, containerResource, external }: Readonly<MetricSpec>): MetricSpecV1 {
  return {
    type,
    ...(object && { object: { target: object.describedObject, metricName: object.metric.name, targetValue: object.target.value ?? ZERO, selector: object.metric.selector, averageValue: object.target.averageValue } }),
    ...(pods && { pods: { metricName: pods.metric.name, targetAverageValue: pods.target.averageValue ?? ZERO, selector: pods.metric.selector } }),
    ...(resource && { resource: resourceToV1(resource.name, resource.target) }),
    ...(containerResource && { containerResource: { ...resourceToV1(containerResource.name, containerResource.target), container: containerResource.container } }),
    ...(external && { external: { metricName: external.metric.name, metricSelector: external.metric.selector, targetValue: external.target.value, targetAverageValue: external.target.averageValue } }),
  };
}

function resourceToV1(name: string, { averageUtilization, averageValue }: MetricTarget): ResourceSourceV1 {
  return { name, targetAverageUtilization: averageUtilization, targetAverageValue: averageValue };
}

export function metricFromV1({ type, object, pods, resource, containerResource, external }: MetricSpecV1): MetricSpec {
  return {
    type,
    ...(object && { object: { describedObject: object.target, target: objectTarget(object), metric: { name: object.metricName, selector: object.selector } } }),
    ...(pods && { pods: { metric: { name: pods.metricName, selector: pods.selector }, target: { type: "AverageValue", averageValue: pods.targetAverageValue ?? ZERO } } }),
    ...(resource && { resource: { name: resource.name, target: resourceTarget(resource) } }),
    ...(containerResource && { containerResource: { name: containerResource.name, target: resourceTarget(containerResource), container: containerResource.container } }),
    ...(external && { external: {
      metric: { name: external.metricName, selector: external.metricSelector },
      target: { type: external.targetValue === undefined ? "AverageValue" : "Value", value: external.targetValue, averageValue: external.targetAverageValue },
    } }),
  };
}

function resourceTarget({ targetAverageUtilization, targetAverageValue }: ResourceSourceV1): MetricTarget {
  return { type: targetAverageUtilization === undefined ? "AverageValue" : "Utilization", averageValue: targetAverageValue, averageUtilization: targetAverageUtilization };
}

/** v1 cannot leave the value out, so a zero beside an average says nothing. */
function objectTarget({ targetValue, averageValue }: NonNullable<MetricSpecV1["object"]>): MetricTarget {
  if (averageValue === undefined) return { type: "Value", value: targetValue ?? ZERO };
  return { type: "AverageValue", ...(isZero(targetValue) ? {} : { value: targetValue }), averageValue };
}

function isZero(quantity: string | undefined): boolean { return quantity === undefined || (isQuantity(quantity) && parseQuantity(quantity).sign === 0); }

export function metricStatusToV1({ type, object, pods, resource, containerResource, external }: Readonly<MetricStatus>): MetricStatusV1 {
  return {
    type,
    ...(object && { object: { target: object.describedObject, metricName: object.metric.name, currentValue: object.current.value ?? ZERO, selector: object.metric.selector, averageValue: object.current.averageValue } }),
    ...(pods && { pods: { metricName: pods.metric.name, currentAverageValue: pods.current.averageValue ?? ZERO, selector: pods.metric.selector } }),
    ...(resource && { resource: resourceStatusToV1(resource.name, resource.current) }),
    ...(containerResource && { containerResource: { ...resourceStatusToV1(containerResource.name, containerResource.current), container: containerResource.container } }),
    ...(external && { external: { metricName: external.metric.name, metricSelector: external.metric.selector, currentValue: external.current.value ?? ZERO, currentAverageValue: external.current.averageValue } }),
  };
}

function resourceStatusToV1(name: string, { averageUtilization, averageValue }: MetricValueStatus): ResourceStatusV1 {
  return { name, currentAverageUtilization: averageUtilization, currentAverageValue: averageValue ?? ZERO };
}

export function metricStatusFromV1({ type, object, pods, resource, containerResource, external }: MetricStatusV1): MetricStatus {
  return {
    type,
    ...(object && { object: { describedObject: object.target, current: { value: object.currentValue ?? ZERO, averageValue: object.averageValue }, metric: { name: object.metricName, selector: object.selector } } }),
    ...(pods && { pods: { metric: { name: pods.metricName, selector: pods.selector }, current: { averageValue: pods.currentAverageValue ?? ZERO } } }),
    ...(resource && { resource: { name: resource.name, current: resourceCurrent(resource) } }),
    ...(containerResource && { containerResource: { name: containerResource.name, current: resourceCurrent(containerResource), container: containerResource.container } }),
    ...(external && { external: { metric: { name: external.metricName, selector: external.metricSelector }, current: { value: external.currentValue ?? ZERO, averageValue: external.currentAverageValue } } }),
  };
}

function resourceCurrent({ currentAverageUtilization, currentAverageValue }: ResourceStatusV1): MetricValueStatus {
  return { averageValue: currentAverageValue ?? ZERO, averageUtilization: currentAverageUtilization };
}
