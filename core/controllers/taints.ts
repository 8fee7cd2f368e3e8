/**
 * Taints and tolerations.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/component-helpers/scheduling/corev1/helpers.go
 */
import type { Taint, Toleration } from "../api/gen/core.v1.ts";
import { tolerationsOf } from "../api/meta/tolerations.ts";

export const TAINT = {
  notReady: "node.kubernetes.io/not-ready",
  unreachable: "node.kubernetes.io/unreachable",
  unschedulable: "node.kubernetes.io/unschedulable",
  memoryPressure: "node.kubernetes.io/memory-pressure",
  diskPressure: "node.kubernetes.io/disk-pressure",
  networkUnavailable: "node.kubernetes.io/network-unavailable",
  pidPressure: "node.kubernetes.io/pid-pressure",
  outOfService: "node.kubernetes.io/out-of-service",
} as const;

/** The same taint as far as the API is concerned: its value is not part of what it is. */
export function sameTaint(a: Readonly<Taint>, b: Readonly<Taint>): boolean { return a.key === b.key && a.effect === b.effect; }

/** The first toleration of each taint; undefined if one of them is not tolerated. */
export function tolerationsFor(taints: readonly Readonly<Taint>[], tolerations: readonly Readonly<Toleration>[]): Readonly<Toleration>[] | undefined {
  const used: Readonly<Toleration>[] = [];
  const all = tolerationsOf(tolerations);
  for (const taint of taints) {
    const found = all.of(taint);
    if (found === undefined) return undefined;
    used.push(found);
  }
  return used;
}
