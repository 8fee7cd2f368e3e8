/**
 * What each metric of an autoscaler calls for, what its status says of it, and what counts in the end: the most any of them calls for.
 *
 * Source: kubernetes v1.36 pkg/controller/podautoscaler/horizontal.go (computeReplicasForMetrics …)
 */
import type { HorizontalPodAutoscaler, MetricSpec, MetricStatus, MetricTarget, MetricValueStatus } from "../../api/gen/autoscaling.v2.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { namespaceOf } from "../../api/meta/object-meta.ts";
import { milliQuantity, parseQuantity } from "../../api/meta/quantity.ts";
import { formatSelector } from "../format-selector.ts";
import { messageOf } from "../pod-control.ts";
import type { MetricsSource } from "./metrics-source.ts";
import { byAverage, byShare, byTotal, byUtilization, type PodsState, type Tolerances } from "./replicas.ts";
import type { AutoscalingSettings } from "./settings.ts";

export interface Target {
  readonly specReplicas: number;
  readonly statusReplicas: number;
  readonly selector: string;
  readonly pods: readonly Readonly<Pod>[];
}

export interface Evaluated {
  /** Undefined: it cannot be known, or some metric is missing and the others call for less. */
  readonly replicas: number | undefined;
  /** Which metric it was. */
  readonly metric: string;
  readonly statuses: MetricStatus[];
  /** Of metrics that could not be had: what to tell of each, and the first one's reason. */
  readonly failures: readonly { readonly reason: string; readonly message: string }[];
  readonly error: string | undefined;
}

interface One { readonly replicas: number; readonly name: string; readonly status: MetricStatus }
interface Deps { readonly source: MetricsSource; readonly settings: AutoscalingSettings; readonly nowMs: number; readonly signal: AbortSignal }

/** An Error with the reason for the condition. */
class MetricFailure extends Error {
  readonly reason: string;
  /** What the event says, without what is said around it. */
  readonly told: string;
  constructor(reason: string, told: string, message: string) {
    super(message);
    this.name = "MetricFailure";
    this.reason = reason;
    this.told = told;
  }
}

export async function evaluate(autoscaler: Readonly<HorizontalPodAutoscaler>, target: Target, deps: Deps): Promise<Evaluated> {
  const specs = autoscaler.spec.metrics ?? [];
  const failures: MetricFailure[] = [];
  const statuses: MetricStatus[] = [];
  let most: One | undefined;
  for (const spec of specs) {
    try {
      const one = await evaluateOne(autoscaler, spec, target, deps);
      statuses.push(one.status);
      if (most === undefined || one.replicas > most.replicas) most = one;
    } catch (error) {
      deps.signal.throwIfAborted();
      if (!(error instanceof MetricFailure)) throw error;
      failures.push(error);
      statuses.push({ type: "" });
    }
  }
  const error = failures.length === 0 ? undefined : `invalid metrics (${failures.length} invalid out of ${specs.length}), first error is: ${failures[0]!.message}`;
  const isKnown = most !== undefined && (failures.length === 0 || most.replicas >= target.specReplicas);
  return { replicas: isKnown ? most!.replicas : undefined, metric: most?.name ?? "", statuses, failures: failures.map(({ reason, told }) => ({ reason, message: told })), error };
}

function tolerancesOf({ spec: { behavior } }: Readonly<HorizontalPodAutoscaler>, standard: number): Tolerances {
  const of = (tolerance: string | undefined): number => (tolerance === undefined ? standard : parseQuantity(tolerance).approximate());
  return { up: of(behavior?.scaleUp?.tolerance), down: of(behavior?.scaleDown?.tolerance) };
}

async function evaluateOne(autoscaler: Readonly<HorizontalPodAutoscaler>, spec: MetricSpec, target: Target, { source, settings, nowMs, signal }: Deps): Promise<One> {
  const namespace = namespaceOf(autoscaler);
  const tolerances = tolerancesOf(autoscaler, settings.tolerance);
  const { selector, pods, specReplicas: currentReplicas, statusReplicas } = target;
  const state = (resource: string): Omit<PodsState, "metrics"> => ({ pods, currentReplicas, tolerances, resource, settings, nowMs });
  const failing = async <T>(reason: string, { told, around }: { readonly told: (message: string) => string; readonly around: string }, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      const message = told(messageOf(error));
      throw new MetricFailure(reason, message, `${around}: ${message}`);
    }
  };
  const same = (message: string): string => message;

  async function resourceMetric({ name, container, to, type }: { readonly name: string; readonly container: string; readonly to: MetricTarget; readonly type: string }): Promise<{ replicas: number; name: string; current: MetricValueStatus }> {
    const fetch = async () => await source.resource({ namespace, selector, resource: name, container, signal }).catch((cause: unknown) => { throw new Error(`unable to get metrics for resource ${name}: ${messageOf(cause)}`, { cause }); });
    if (to.averageValue !== undefined) {
      const { replicas, average } = byAverage({ ...state(name), metrics: await fetch() }, parseQuantity(to.averageValue).milliNumber());
      return { replicas, name: `${name} resource`, current: { averageValue: amount(name, average) } };
    }
    if (to.averageUtilization === undefined) throw new Error("invalid resource metric source: neither an average utilization target nor an average value (usage) target was set");
    const { replicas, average, utilization } = byUtilization({ ...state(name), metrics: await fetch() }, { target: to.averageUtilization, container });
    return { replicas, name: `${name} ${type}resource utilization (percentage of request)`, current: { averageUtilization: utilization, averageValue: amount(name, average) } };
  }
  const resourceText = (to: MetricTarget, name: string) => (message: string): string => (message.startsWith("invalid resource metric source") ? message : `failed to get ${name} ${to.averageValue === undefined ? "utilization" : "usage"}: ${message}`);

  if (spec.type === "Resource" && spec.resource) {
    const { name, target: to } = spec.resource;
    const found = await failing("FailedGetResourceMetric", { told: resourceText(to, name), around: `failed to get ${name} resource metric value` }, () => resourceMetric({ name, container: "", to, type: "" }));
    return { replicas: found.replicas, name: found.name, status: { type: "Resource", resource: { name, current: found.current } } };
  }
  if (spec.type === "ContainerResource" && spec.containerResource) {
    const { name, container, target: to } = spec.containerResource;
    const found = await failing("FailedGetContainerResourceMetric", { told: resourceText(to, name), around: `failed to get ${container} container metric value` }, () => resourceMetric({ name, container, to, type: "container " }));
    return { replicas: found.replicas, name: found.name, status: { type: "ContainerResource", containerResource: { name, container, current: found.current } } };
  }
  if (spec.type === "Pods" && spec.pods) {
    const { metric, target: to } = spec.pods;
    const { replicas, average } = await failing("FailedGetPodsMetric", { told: (message) => `unable to get metric ${metric.name}: ${message}`, around: "failed to get pods metric value" }, async () =>
      byAverage({ ...state(""), metrics: await source.pods({ namespace, selector, metric: metric.name, metricSelector: metric.selector, signal }) }, parseQuantity(to.averageValue ?? "0").milliNumber()));
    return { replicas, name: `pods metric ${metric.name}`, status: { type: "Pods", pods: { metric, current: { averageValue: milliQuantity(average).toString() } } } };
  }
  if (spec.type === "Object" && spec.object) {
    const { metric, target: to, describedObject } = spec.object;
    const got = (message: string): string => `unable to get metric ${metric.name}: ${message} on ${describedObject.kind} ${namespace}/${describedObject.name}`;
    const isTotal = to.type === "Value" && to.value !== undefined;
    if (!isTotal && !(to.type === "AverageValue" && to.averageValue !== undefined)) {
      const told = "invalid object metric source: neither a value target nor an average value target was set";
      throw new MetricFailure("FailedGetObjectMetric", told, `failed to get object metric value: ${told}`);
    }
    const usage = await failing("FailedGetObjectMetric", { told: got, around: isTotal ? "failed to get object metric value" : `failed to get object metric value: failed to get ${metric.name} object metric` }, () => source.object({ namespace, object: describedObject, metric: metric.name, metricSelector: metric.selector, signal }));
    if (isTotal) {
      const replicas = await failing("FailedGetObjectMetric", { told: same, around: "failed to get object metric value" }, async () => byTotal({ pods, currentReplicas, tolerances }, usage, parseQuantity(to.value!).milliNumber()));
      return { replicas, name: `${describedObject.kind} metric ${metric.name}`, status: { type: "Object", object: { describedObject, metric, current: { value: milliQuantity(usage).toString() } } } };
    }
    const { replicas, average } = byShare({ statusReplicas, tolerances }, usage, parseQuantity(to.averageValue!).milliNumber());
    return { replicas, name: `external metric ${metric.name}(${formatSelector(metric.selector)})`, status: { type: "Object", object: { describedObject, metric, current: { averageValue: milliQuantity(average).toString() } } } };
  }
  if (spec.type === "External" && spec.external) {
    const { metric, target: to } = spec.external;
    const name = `external metric ${metric.name}(${formatSelector(metric.selector)})`;
    const told = (message: string): string => `unable to get external metric ${namespace}/${metric.name}/${formatSelector(metric.selector)}: ${message}`;
    const around = `failed to get ${metric.name} external metric value: ${to.averageValue === undefined ? `failed to get external metric ${metric.name}` : `failed to get ${metric.name} external metric`}`;
    const usage = (): Promise<number> => failing("FailedGetExternalMetric", { told, around }, () => source.external({ namespace, metric: metric.name, metricSelector: metric.selector, signal }));
    if (to.averageValue !== undefined) {
      const { replicas, average } = byShare({ statusReplicas, tolerances }, await usage(), parseQuantity(to.averageValue).milliNumber());
      return { replicas, name, status: { type: "External", external: { metric, current: { averageValue: milliQuantity(average).toString() } } } };
    }
    if (to.value !== undefined) {
      const total = await usage();
      const replicas = await failing("FailedGetExternalMetric", { told: same, around }, async () => byTotal({ pods, currentReplicas, tolerances }, total, parseQuantity(to.value!).milliNumber()));
      return { replicas, name, status: { type: "External", external: { metric, current: { value: milliQuantity(total).toString() } } } };
    }
    const invalid = "invalid external metric source: neither a value target nor an average value target was set";
    throw new MetricFailure("FailedGetExternalMetric", invalid, `failed to get ${metric.name} external metric value: ${invalid}`);
  }
  const unknown = `unknown metric source type "${spec.type}"`;
  throw new MetricFailure("InvalidMetricSourceType", unknown, unknown);
}

function amount(resource: string, milli: number): string { return milliQuantity(milli, resource === "memory" ? "BinarySI" : "DecimalSI").toString(); }
