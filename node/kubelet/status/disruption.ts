/** The condition of a pod that the kubelet ends for the node's sake. Source: kubernetes v1.36 pkg/kubelet/eviction/eviction_manager.go, pkg/kubelet/preemption, pkg/kubelet/nodeshutdown */
import type { Pod, PodCondition } from "../../../core/api/gen/core.v1.ts";
import { timestamp } from "../../../core/lifecycle/clock.ts";

export function disruption({ metadata: { generation } }: Pick<Pod, "metadata">, message: string, nowMs: number): PodCondition {
  return { type: "DisruptionTarget", ...(generation === undefined ? {} : { observedGeneration: generation }), status: "True", reason: "TerminationByKubelet", message, lastTransitionTime: timestamp(nowMs) };
}
