/**
 * How many pods a metric calls for. Pods whose metrics are missing, or which are not ready yet, are taken to speak against the direction the others
 * point to; values are in thousandths.
 *
 * Source: kubernetes v1.36 pkg/controller/podautoscaler/replica_calculator.go, metrics/utilization.go
 */
import type { Pod } from "../../api/gen/core.v1.ts";
import { isDeleting } from "../../api/meta/object-meta.ts";
import { parseQuantity } from "../../api/meta/quantity.ts";
import { parseTime } from "../../api/meta/time.ts";
import { podRequests } from "../../api/quota/pod-usage.ts";
import { isReady, podCondition } from "../pod-state.ts";
import { isFarAhead } from "../wrong-clock.ts";
import { AUTOSCALING, type AutoscalingSettings } from "./settings.ts";

export interface PodMetric { readonly value: number; readonly timeMs: number; readonly windowMs: number }
/** By name of the pod. */
export type PodMetrics = ReadonlyMap<string, PodMetric>;
export interface Tolerances { readonly up: number; readonly down: number }

/** Of replicas and of percentages. */
const INT32_MAX = 2 ** 31 - 1;

export interface PodsState {
  readonly pods: readonly Readonly<Pod>[];
  readonly metrics: PodMetrics;
  readonly currentReplicas: number;
  readonly tolerances: Tolerances;
  /** "cpu" has pods start up undisturbed; "" for what is no resource. */
  readonly resource: string;
  readonly settings?: Pick<AutoscalingSettings, "cpuInitializationMs" | "initialReadinessMs"> | undefined;
  readonly nowMs: number;
}

export interface Proposal {
  readonly replicas: number;
  /** The average per pod. */
  readonly average: number;
  /** In percent of what was requested. */
  readonly utilization?: number | undefined;
}

/** By what the pods use of what they request. Throws an Error for the user. */
export function byUtilization(state: PodsState, { target, container }: { readonly target: number; readonly container: string }): Proposal {
  const { pods, resource } = state;
  const requests = (): ReadonlyMap<string, number> => new Map(pods.map((pod) => [pod.metadata.name, requestOf(pod, resource, container)]));
  return propose(state, (known) => {
    const wanted = requests();
    return {
      ratioOf: (metrics) => utilizationOf(metrics, wanted, target),
      assumedLow: (name) => Math.trunc((wanted.get(name)! * Math.max(100, target)) / 100),
      first: utilizationOf(known, wanted, target),
    };
  });
}

/** By the average value per pod. Throws an Error for the user. */
export function byAverage(state: PodsState, target: number): Proposal {
  return propose(state, (known) => ({ ratioOf: (metrics) => averageOf(metrics, target), assumedLow: () => target, first: averageOf(known, target) }));
}

interface Ratio { readonly ratio: number; readonly average: number; readonly utilization?: number | undefined }
interface Measure { readonly first: Ratio; ratioOf(metrics: ReadonlyMap<string, number>): Ratio; assumedLow(pod: string): number }

function propose(state: PodsState, measure: (known: ReadonlyMap<string, number>) => Measure): Proposal {
  const { pods, currentReplicas, tolerances } = state;
  if (pods.length === 0) throw new Error("no pods returned by selector while calculating replica count");
  const { ready, unready, missing, ignored } = groupPods(state);
  const known = new Map([...state.metrics].filter(([name]) => !ignored.has(name) && !unready.has(name)).map(([name, { value }]) => [name, value]));
  if (known.size === 0) throw new Error("did not receive metrics for targeted pods (pods might be unready)");
  const { first, ratioOf, assumedLow } = measure(known);
  const { ratio, average, utilization } = first;
  const told = { average, utilization };
  const unreadyCount = unready.size > 0 && ratio > 1;
  if (!unreadyCount && missing.size === 0) return { replicas: isWithin(ratio, tolerances) ? currentReplicas : ceiling(ratio * ready), ...told };
  if (ratio < 1) for (const name of missing) known.set(name, assumedLow(name));
  else if (ratio > 1) for (const name of missing) known.set(name, 0);
  if (unreadyCount) for (const name of unready) known.set(name, 0);
  const next = ratioOf(known).ratio;
  if (isWithin(next, tolerances) || (ratio < 1 && next > 1) || (ratio > 1 && next < 1)) return { replicas: currentReplicas, ...told };
  const replicas = ceiling(next * known.size);
  return { replicas: (next < 1 && replicas > currentReplicas) || (next > 1 && replicas < currentReplicas) ? currentReplicas : replicas, ...told };
}

/** By one value for all pods together. Throws an Error for the user. */
export function byTotal({ pods, currentReplicas, tolerances }: Pick<PodsState, "pods" | "currentReplicas" | "tolerances">, usage: number, target: number): number {
  const ratio = usage / target;
  if (currentReplicas === 0) return ceiling(ratio);
  if (isWithin(ratio, tolerances)) return currentReplicas;
  if (pods.length === 0) throw new Error("unable to calculate ready pods: no pods returned by selector while calculating replica count");
  return ceiling(ratio * pods.filter((pod) => pod.status?.phase === "Running" && isReady(pod)).length);
}

/** By one value that is to be shared among the pods. */
export function byShare({ statusReplicas, tolerances }: { readonly statusReplicas: number; readonly tolerances: Tolerances }, usage: number, target: number): Proposal {
  const replicas = isWithin(usage / (target * statusReplicas), tolerances) ? statusReplicas : ceiling(usage / target);
  return { replicas, average: statusReplicas === 0 ? 0 : Math.ceil(usage / statusReplicas) };
}

function ceiling(replicas: number): number { return Math.min(Math.ceil(replicas), INT32_MAX); }

function isWithin(ratio: number, { up, down }: Tolerances): boolean { return 1 - down <= ratio && ratio <= 1 + up; }

function utilizationOf(metrics: ReadonlyMap<string, number>, requests: ReadonlyMap<string, number>, target: number): Ratio {
  const entries = [...metrics].filter(([name]) => requests.has(name));
  const used = entries.reduce((sum, [, value]) => sum + value, 0);
  const requested = entries.reduce((sum, [name]) => sum + requests.get(name)!, 0);
  if (requested === 0) throw new Error("no metrics returned matched known pods");
  const utilization = Math.min(INT32_MAX, Math.trunc((used * 100) / requested)); // who asks for 128m of memory gets a tenth of a byte
  return { ratio: utilization / target, utilization, average: Math.trunc(used / entries.length) };
}

function averageOf(metrics: ReadonlyMap<string, number>, target: number): Ratio {
  const average = Math.trunc([...metrics.values()].reduce((sum, value) => sum + value, 0) / metrics.size);
  return { ratio: average / target, average };
}

interface Groups { readonly ready: number; readonly unready: ReadonlySet<string>; readonly missing: ReadonlySet<string>; readonly ignored: ReadonlySet<string> }

function groupPods({ pods, metrics, resource, settings = AUTOSCALING, nowMs }: PodsState): Groups {
  const [unready, missing, ignored] = [new Set<string>(), new Set<string>(), new Set<string>()];
  let ready = 0;
  for (const pod of pods) {
    const { name } = pod.metadata;
    const metric = metrics.get(name);
    if (isDeleting(pod) || pod.status?.phase === "Failed") ignored.add(name);
    else if (pod.status?.phase === "Pending") unready.add(name);
    else if (metric === undefined) missing.add(name);
    else if (resource === "cpu" && isStarting(pod, metric, { ...settings, nowMs })) unready.add(name);
    else ready++;
  }
  return { ready, unready, missing, ignored };
}

/** What it uses now is the work of starting. */
function isStarting(pod: Readonly<Pod>, { timeMs, windowMs }: PodMetric, { cpuInitializationMs, initialReadinessMs, nowMs }: NonNullable<PodsState["settings"]> & { readonly nowMs: number }): boolean {
  const condition = podCondition(pod, "Ready");
  const startMs = pod.status?.startTime === undefined ? undefined : parseTime(pod.status.startTime);
  if (condition === undefined || startMs === undefined) return true;
  const sinceMs = parseTime(condition.lastTransitionTime ?? "") ?? 0;
  if (startMs + cpuInitializationMs > nowMs && !isFarAhead(startMs, nowMs)) return condition.status === "False" || timeMs < sinceMs + windowMs;
  return condition.status === "False" && startMs + initialReadinessMs > sinceMs;
}

function requestOf(of: Readonly<Pod>, resource: string, container: string): number {
  const { spec, metadata: { name: pod } } = of;
  if (container === "" && Object.keys(spec.resources?.requests ?? {}).length > 0) {
    const whole = podRequests(of).get(resource); // what the pod does not say of itself its containers say
    if (whole === undefined) throw new Error(`missing pod-level request for ${resource} in Pod ${pod}`);
    return whole.milliNumber();
  }
  const all = [...spec.containers, ...(spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always")];
  const counted = container === "" ? all : all.filter((one) => one.name === container).slice(0, 1);
  if (counted.length === 0 && container !== "") throw new Error(`container ${container} not found in Pod ${pod}`);
  return counted.reduce((sum, { name, resources }) => {
    const request = resources?.requests?.[resource];
    if (request === undefined) throw new Error(`missing request for ${resource} in container ${name} of Pod ${pod}`);
    return sum + parseQuantity(request).milliNumber();
  }, 0);
}
