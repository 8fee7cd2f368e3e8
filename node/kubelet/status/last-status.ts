/**
 * The last status of a pod: whatever became of it, it has ended. A pod that goes before its containers have started would else be Pending to the end,
 * and a Job that waits for it to fail would keep its finalizer on it for ever.
 *
 * Source: kubernetes v1.36 pkg/kubelet/status/status_manager.go (TerminatePod, hasPodInitialized, initializedContainers)
 */
import type { ContainerStatus, Pod, PodStatus } from "../../../core/api/gen/core.v1.ts";
import { isSidecar, isTerminalPhase } from "../pod-spec.ts";
import { UNKNOWN_ENDED } from "./container-status.ts";

/** `status` with a phase that is an end, and with no container that may have started and is not known to have ended. */
export function lastStatus(pod: Pod, status: PodStatus): PodStatus {
  const { containerStatuses, initContainerStatuses } = status;
  return {
    ...status, phase: isTerminalPhase(status.phase) ? status.phase : "Failed",
    ...(containerStatuses && hasInitialized(pod, status) ? { containerStatuses: containerStatuses.map(ended) } : {}),
    ...(initContainerStatuses ? { initContainerStatuses: initContainerStatuses.map((one, at) => (at < triedOf(initContainerStatuses) ? ended(one) : one)) } : {}),
  };
}

function ended(status: ContainerStatus): ContainerStatus {
  if (status.state?.terminated) return status;
  return { ...status, state: { terminated: { ...UNKNOWN_ENDED, message: "The container could not be located when the pod was terminated" } } };
}

/** Whether there is a sign that containers, not only init containers, were to start. */
function hasInitialized({ spec }: Pod, { containerStatuses = [], initContainerStatuses = [] }: PodStatus): boolean {
  const last = spec.initContainers?.at(-1);
  if (!last || containerStatuses.some(hasStarted)) return true;
  const status = initContainerStatuses.at(-1);
  if (isSidecar(last)) return status?.state?.running !== undefined && status.started === true;
  return status?.lastState?.terminated?.exitCode === 0 || status?.state?.terminated?.exitCode === 0;
}

/** How many init containers were tried: they start one after the other, and the first always was. */
function triedOf(init: readonly ContainerStatus[]): number {
  return Math.max(1, init.findLastIndex(hasStarted) + 1);
}

function hasStarted({ state, lastState }: ContainerStatus): boolean { return !state?.waiting || lastState?.terminated !== undefined; }
