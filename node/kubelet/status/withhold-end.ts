/**
 * What may be told of a pod that has ended while something of it may still run: all but its end. Whoever takes its place would run beside it, and
 * would meet its address, ports, processors and devices in use. Its volumes may still be mounted: who wants them waits for them himself. Pure.
 *
 * Source: kubernetes v1.36 pkg/kubelet/status/status_manager.go (mergePodStatus), pkg/kubelet/pod_workers.go (CouldHaveRunningContainers)
 */
import type { Pod, PodStatus } from "../../../core/api/gen/core.v1.ts";
import { isTerminalPhase } from "../pod-spec.ts";

/** `status` as far as it may be told after `told`. What the API server says has ended has: nobody takes that back. */
export function withholdEnd(pod: Pod, status: PodStatus, told: PodStatus): PodStatus {
  if (!isTerminalPhase(status.phase) || isTerminalPhase(told.phase) || isTerminalPhase(pod.status?.phase)) return status;
  const { phase: _, reason: __, message: ___, conditions = [], ...rest } = status;
  const { phase = "Pending", reason, message } = told;
  return { ...rest, phase, ...(reason ? { reason } : {}), ...(message ? { message } : {}), conditions: conditions.flatMap((condition) => (condition.type === "DisruptionTarget" ? disruptionOf(pod) : [condition])) };
}

/** Why it was disrupted, when others have said so: ours goes with the end. */
function disruptionOf({ status }: Pod): NonNullable<PodStatus["conditions"]> {
  return status?.conditions?.filter(({ type }) => type === "DisruptionTarget") ?? [];
}
