/**
 * Whom a critical pod (one from a file on this machine, or of a priority of the system's) drives out where the node is too full for it.
 *
 * As few guaranteed pods as possible, then as few burstable ones, then best-effort ones; of each class those that come closest to what is missing.
 * Pure.
 *
 * Source: kubernetes v1.36 pkg/kubelet/preemption/preemption.go, pkg/kubelet/types/pod_update.go (Preemptable)
 */
import type { Pod, PodQOSClass } from "../../core/api/gen/core.v1.ts";
import type { Shortfall } from "./admission.ts";
import { isCriticalPod } from "./pod-spec.ts";
import { podRequests, qosClass } from "./resources/pod-resources.ts";

/** Throws an Error when all of them together do not have what is missing. */
export function podsToPreempt(pod: Pod, pods: readonly Pod[], missing: readonly Shortfall[]): Pod[] {
  const of = (wanted: PodQOSClass): Pod[] => pods.filter((other) => mayDriveOut(pod, other) && qosClass(other) === wanted);
  const [bestEffort, burstable, guaranteed] = [of("BestEffort"), of("Burstable"), of("Guaranteed")];
  const never = without(missing, [...bestEffort, ...burstable, ...guaranteed]);
  if (never.length > 0) throw new Error(`preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: ${describe(never)}`);
  const first = closest(guaranteed, without(missing, [...bestEffort, ...burstable]));
  const second = closest(burstable, without(missing, [...bestEffort, ...first]));
  const third = closest(bestEffort, without(missing, [...second, ...first]));
  return [...third, ...second, ...first];
}

function mayDriveOut(pod: Pod, other: Pod): boolean {
  if (isCriticalPod(pod) && !isCriticalPod(other)) return true;
  const [mine, theirs] = [pod.spec.priority, other.spec.priority];
  return mine !== undefined && theirs !== undefined && mine > theirs;
}

/** One after the other the pod that leaves the least to be found; of two that are equal the smaller, of two that are alike the later. */
function closest(pods: readonly Pod[], missing: readonly Shortfall[]): Pod[] {
  const chosen: Pod[] = [];
  const left = [...pods];
  for (let rest = missing; rest.length > 0 && left.length > 0; rest = without(rest, [chosen.at(-1)!])) {
    const best = left.reduce((a, b) => (distance(a, rest) - distance(b, rest) || size(a, "memory") - size(b, "memory") || size(a, "cpu") - size(b, "cpu")) < 0 ? a : b);
    chosen.push(best);
    left.splice(left.indexOf(best), 1);
  }
  return chosen;
}

/** How much of each need stays unmet, as a share of it: all needs count the same. */
function distance(pod: Pod, missing: readonly Shortfall[]): number {
  return missing.reduce((sum, { resource, amount }) => sum + (Math.max(0, amount - size(pod, resource)) / amount) ** 2, 0);
}

function without(missing: readonly Shortfall[], pods: readonly Pod[]): Shortfall[] {
  return missing.map(({ resource, amount }) => ({ resource, amount: pods.reduce((left, pod) => left - size(pod, resource), amount) })).filter(({ amount }) => amount > 0);
}

function size(pod: Pod, resource: string): number {
  if (resource === "pods") return 1;
  const quantity = podRequests(pod).get(resource);
  return quantity === undefined ? 0 : resource === "cpu" ? quantity.milliNumber() : quantity.number();
}

function describe(missing: readonly Shortfall[]): string {
  return `[${missing.map(({ resource, amount }) => `(res: ${resource}, q: ${amount}), `).join("")}]`;
}
