/**
 * Which pods end when the machine goes down, in which order, and how long they have. Pure.
 *
 * Source: kubernetes v1.36 pkg/kubelet/nodeshutdown/nodeshutdown_manager.go (migrateConfig, groupByPriority)
 */
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { asDouble } from "../../../core/api/meta/go-integer.ts";
import type { ShutdownSettings } from "../settings.ts";

/** Where critical pods begin: system-cluster-critical. */
const CRITICAL_PRIORITY = 2_000_000_000;

export interface Level { readonly priority: number; readonly graceMs: number }

/** Lowest first; pods below the first belong to it too. Empty: pods are not waited for. */
export function shutdownLevels({ graceMs, criticalMs, byPriority }: ShutdownSettings): readonly Level[] {
  if (byPriority?.length) return byPriority.toSorted((a, b) => a.priority - b.priority);
  if (graceMs === 0) return [];
  return [{ priority: 0, graceMs: graceMs - criticalMs }, { priority: CRITICAL_PRIORITY, graceMs: criticalMs }];
}

export function totalMs(levels: readonly Level[]): number {
  return levels.reduce((sum, { graceMs }) => sum + graceMs, 0);
}

/** By its priority alone, wherever the pod is from. */
export function groupByLevel<T extends { readonly pod: Pod }>(levels: readonly Level[], pods: readonly T[]): { readonly level: Level; readonly pods: readonly T[] }[] {
  const of = (pod: Pod): number => Math.max(0, levels.findLastIndex(({ priority }) => (pod.spec.priority ?? 0) >= priority));
  return levels.map((level, i) => ({ level, pods: pods.filter(({ pod }) => of(pod) === i) }));
}

/** Seconds of a pod's own grace, no more than its level has. */
export function graceSecondsOf({ spec }: Pod, { graceMs }: Level): number {
  return Math.min(Math.floor(graceMs / 1000), asDouble(spec.terminationGracePeriodSeconds ?? 30));
}
