/**
 * What each metric of an autoscaler calls for, what its status says of it, and what counts in the end: the most any of them calls for.
 *
 * Source: kubernetes v1.36 pkg/controller/podautoscaler/horizontal.go (computeReplicasForMetrics …)
 */
import type { ContainerResourceMetricSource, ExternalMetricSource, HorizontalPodAutoscaler, MetricSpec, MetricStatus, MetricTarget, MetricValueStatus, ObjectMetricSource, PodsMetricSource, ResourceMetricSource } from "../../api/gen/autoscaling.v2.ts";
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
/** Carries out what finds one metric, and measures it. */
export type MetricMeasure = <R extends { readonly replicas: number }>(type: string, work: () => Promise<R>) => Promise<R>;

interface Deps { readonly source: MetricsSource; readonly settings: AutoscalingSettings; readonly nowMs: number; readonly computed: MetricMeasure; readonly signal: AbortSignal }

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
  const evaluation = new MetricEvaluation(autoscaler, target, deps);
  let most: One | undefined;
  for (const spec of specs) {
    try {
      const one = await deps.computed(spec.type, () => evaluation.of(spec));
      statuses.push(one.status);
      if (most === undefined || most.replicas === 0 || one.replicas > most.replicas) most = one; // of those that call for none, the last one is named
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

/** One way for each type of metric. Source: computeStatusFor{Resource,ContainerResource,Pods,Object,External}Metric */
class MetricEvaluation {
  readonly #target: Target;
  readonly #deps: Deps;
  readonly #namespace: string;
  readonly #tolerances: Tolerances;

  constructor(autoscaler: Readonly<HorizontalPodAutoscaler>, target: Target, deps: Deps) {
    this.#target = target;
    this.#deps = deps;
    this.#namespace = namespaceOf(autoscaler);
    this.#tolerances = tolerancesOf(autoscaler, deps.settings.tolerance);
  }

  async of(spec: MetricSpec): Promise<One> {
    if (spec.type === "Resource" && spec.resource) return await this.#resource(spec.resource);
    if (spec.type === "ContainerResource" && spec.containerResource) return await this.#containerResource(spec.containerResource);
    if (spec.type === "Pods" && spec.pods) return await this.#pods(spec.pods);
    if (spec.type === "Object" && spec.object) return await this.#object(spec.object);
    if (spec.type === "External" && spec.external) return await this.#external(spec.external);
    const unknown = `unknown metric source type "${spec.type}"`;
    throw new MetricFailure("InvalidMetricSourceType", unknown, unknown);
  }

  async #resource({ name, target }: ResourceMetricSource): Promise<One> {
    const found = await this.#failing("FailedGetResourceMetric", { told: resourceText(target, name), around: `failed to get ${name} resource metric value` }, () => this.#usage({ name, container: "", target, type: "" }));
    return { replicas: found.replicas, name: found.name, status: { type: "Resource", resource: { name, current: found.current } } };
  }

  async #containerResource({ name, container, target }: ContainerResourceMetricSource): Promise<One> {
    const found = await this.#failing("FailedGetContainerResourceMetric", { told: resourceText(target, name), around: `failed to get ${container} container metric value` }, () => this.#usage({ name, container, target, type: "container " }));
    return { replicas: found.replicas, name: found.name, status: { type: "ContainerResource", containerResource: { name, container, current: found.current } } };
  }

  /** Of a resource, by all containers of the pods or by one. */
  async #usage({ name, container, target, type }: {
    readonly name: string;
    readonly container: string;
    readonly target: MetricTarget;
    readonly type: string;
  }): Promise<{ readonly replicas: number; readonly name: string; readonly current: MetricValueStatus }> {
    const { source, signal } = this.#deps;
    const fetch = async () => await source.resource({
      namespace: this.#namespace, selector: this.#target.selector, resource: name, container, signal,
    }).catch((cause: unknown) => { throw new Error(`unable to get metrics for resource ${name}: ${messageOf(cause)}`, { cause }); });
    if (target.averageValue !== undefined) {
      const { replicas, average } = byAverage({ ...this.#state(name), metrics: await fetch() }, parseQuantity(target.averageValue).milliNumber());
      return { replicas, name: `${name} resource`, current: { averageValue: amount(name, average) } };
    }
    if (target.averageUtilization === undefined) throw new Error("invalid resource metric source: neither an average utilization target nor an average value (usage) target was set");
    const { replicas, average, utilization } = byUtilization({ ...this.#state(name), metrics: await fetch() }, { target: target.averageUtilization, container });
    return { replicas, name: `${name} ${type}resource utilization (percentage of request)`, current: { averageUtilization: utilization, averageValue: amount(name, average) } };
  }

  async #pods({ metric, target }: PodsMetricSource): Promise<One> {
    const { source, signal } = this.#deps;
    const fetch = async () => await source.pods({
      namespace: this.#namespace, selector: this.#target.selector, metric: metric.name, metricSelector: metric.selector, signal,
    }).catch((cause: unknown) => { throw new Error(`unable to get metric ${metric.name}: ${messageOf(cause)}`, { cause }); });
    const { replicas, average } = await this.#failing("FailedGetPodsMetric", { told: (message) => message, around: "failed to get pods metric value" }, async () =>
      byAverage({ ...this.#state(""), metrics: await fetch() }, parseQuantity(target.averageValue ?? "0").milliNumber()));
    return { replicas, name: `pods metric ${metric.name}`, status: { type: "Pods", pods: { metric, current: { averageValue: milliQuantity(average).toString() } } } };
  }

  async #object({ metric, target, describedObject }: ObjectMetricSource): Promise<One> {
    const { source, signal } = this.#deps;
    const namespace = this.#namespace;
    const got = (message: string): string => `unable to get metric ${metric.name}: ${describedObject.kind} on ${namespace} ${describedObject.name}/${message}`; // sic
    const isTotal = target.type === "Value" && target.value !== undefined;
    if (!isTotal && !(target.type === "AverageValue" && target.averageValue !== undefined)) {
      const told = "invalid object metric source: neither a value target nor an average value target was set";
      throw new MetricFailure("FailedGetObjectMetric", told, `failed to get object metric value: ${told}`);
    }
    const usage = await this.#failing("FailedGetObjectMetric", {
      told: got, around: isTotal ? "failed to get object metric value" : `failed to get object metric value: failed to get ${metric.name} object metric`,
    }, () => source.object({ namespace, object: describedObject, metric: metric.name, metricSelector: metric.selector, signal }));
    if (isTotal) {
      const replicas = await this.#total("FailedGetObjectMetric", "failed to get object metric value", usage, target.value!);
      return { replicas, name: `${describedObject.kind} metric ${metric.name}`, status: { type: "Object", object: { describedObject, metric, current: { value: milliQuantity(usage).toString() } } } };
    }
    const { replicas, average } = byShare({ statusReplicas: this.#target.statusReplicas, tolerances: this.#tolerances }, usage, parseQuantity(target.averageValue!).milliNumber());
    return { replicas, name: `external metric ${metric.name}(${formatSelector(metric.selector)})`, status: { type: "Object", object: { describedObject, metric, current: { averageValue: milliQuantity(average).toString() } } } };
  }

  async #external({ metric, target }: ExternalMetricSource): Promise<One> {
    const { source, signal } = this.#deps;
    const namespace = this.#namespace;
    const name = `external metric ${metric.name}(${formatSelector(metric.selector)})`;
    const told = (message: string): string => `unable to get external metric ${namespace}/${metric.name}/${formatSelector(metric.selector)}: ${message}`;
    const around = `failed to get ${metric.name} external metric value: ${target.averageValue === undefined ? `failed to get external metric ${metric.name}` : `failed to get ${metric.name} external metric`}`;
    const usage = (): Promise<number> => this.#failing("FailedGetExternalMetric", { told, around }, () => source.external({ namespace, metric: metric.name, metricSelector: metric.selector, signal }));
    if (target.averageValue !== undefined) {
      const { replicas, average } = byShare({ statusReplicas: this.#target.statusReplicas, tolerances: this.#tolerances }, await usage(), parseQuantity(target.averageValue).milliNumber());
      return { replicas, name, status: { type: "External", external: { metric, current: { averageValue: milliQuantity(average).toString() } } } };
    }
    if (target.value !== undefined) {
      const total = await usage();
      const replicas = await this.#total("FailedGetExternalMetric", around, total, target.value);
      return { replicas, name, status: { type: "External", external: { metric, current: { value: milliQuantity(total).toString() } } } };
    }
    const invalid = "invalid external metric source: neither a value target nor an average value target was set";
    throw new MetricFailure("FailedGetExternalMetric", invalid, `failed to get ${metric.name} external metric value: ${invalid}`);
  }

  #total(reason: string, around: string, usage: number, target: string): Promise<number> {
    const { pods, specReplicas } = this.#target;
    return this.#failing(reason, { told: (message) => message, around }, async () => byTotal({ pods, currentReplicas: specReplicas, tolerances: this.#tolerances }, usage, parseQuantity(target).milliNumber()));
  }

  /** What `work` throws as a failure of the metric: `told` to the user, and with `around` before it in the controller's own error. */
  async #failing<T>(reason: string, { told, around }: { readonly told: (message: string) => string; readonly around: string }, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      this.#deps.signal.throwIfAborted();
      const message = told(messageOf(error));
      throw new MetricFailure(reason, message, `${around}: ${message}`);
    }
  }

  #state(resource: string): Omit<PodsState, "metrics"> {
    const { pods, specReplicas } = this.#target;
    const { settings, nowMs } = this.#deps;
    return { pods, currentReplicas: specReplicas, tolerances: this.#tolerances, resource, settings, nowMs };
  }
}

function resourceText(target: MetricTarget, name: string): (message: string) => string {
  return (message) => (message.startsWith("invalid resource metric source") ? message : `failed to get ${name} ${target.averageValue === undefined ? "utilization" : "usage"}: ${message}`);
}

function amount(resource: string, milli: number): string { return milliQuantity(milli, resource === "memory" ? "BinarySI" : "DecimalSI").toString(); }
