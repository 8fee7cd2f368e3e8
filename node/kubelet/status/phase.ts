/** The phase of a pod, from the statuses of its containers. Source: kubernetes v1.36 pkg/kubelet/kubelet_pods.go (getPhase) */
import type { Container, ContainerStateTerminated, ContainerStatus, Pod, PodPhase } from "../../../core/api/gen/core.v1.ts";
import { isSidecar, restartsAfter } from "../pod-spec.ts";

/** Why a container is gone that its pod began anew without. */
export const RESTARTING_ALL = "RestartingAllContainers";

interface PhaseFacts {
  readonly pod: Pod;
  readonly containers: readonly ContainerStatus[];
  readonly init: readonly ContainerStatus[];
  /** Nothing will be restarted any more, whatever the policy says. */
  readonly terminal: boolean;
  /** The sandbox in use has an app container, in whatever state: initialization was over once. */
  readonly initialized: boolean;
}

export function phaseOf({ pod, containers, init, terminal, initialized }: PhaseFacts): PodPhase {
  const initState = initCounts(pod, init);
  if (initState.failedForGood) return "Failed";
  const count = { running: initState.running, waiting: initState.waiting, stopped: 0, forGood: 0, succeeded: 0, unknown: initState.unknown };
  for (const container of pod.spec.containers) {
    const { state, lastState } = containers.find(({ name }) => name === container.name) ?? {};
    if (state?.running) count.running++;
    else if (state?.terminated) {
      count.stopped++;
      if (isForGood(container, pod, state.terminated)) count.forGood++;
      if (state.terminated.exitCode === 0) count.succeeded++;
    } else if (state?.waiting && lastState?.terminated) {
      count.stopped++;
      if (isForGood(container, pod, lastState.terminated)) count.forGood++;
    } else if (state?.waiting) count.waiting++;
    else count.unknown++;
  }
  if (initState.pending > 0 || (initState.sidecarsPending > 0 && !initialized) || count.waiting > 0) return "Pending";
  if (count.unknown > 0) return "Pending";
  if (count.running > 0) return "Running";
  if (count.stopped === 0) return "Pending";
  if (!terminal && count.stopped !== count.forGood) return "Running"; // about to restart
  return count.stopped === count.succeeded ? "Succeeded" : "Failed";
}

function isForGood(container: Container, pod: Pod, { exitCode, reason }: ContainerStateTerminated): boolean {
  return reason !== RESTARTING_ALL && !restartsAfter(container, pod.spec, exitCode);
}

interface InitCounts { pending: number; failedForGood: boolean; sidecarsPending: number; running: number; waiting: number; unknown: number }

function initCounts(pod: Pod, statuses: readonly ContainerStatus[]): InitCounts {
  const counts: InitCounts = { pending: 0, failedForGood: false, sidecarsPending: 0, running: 0, waiting: 0, unknown: 0 };
  for (const container of pod.spec.initContainers ?? []) {
    const status = statuses.find(({ name }) => name === container.name);
    if (isSidecar(container)) countSidecar(counts, status);
    else countInit(counts, container, pod, status);
  }
  return counts;
}

function countInit(counts: InitCounts, container: Container, pod: Pod, status: ContainerStatus | undefined): void {
  const ended = status?.state?.terminated ?? (status?.state?.waiting ? status.lastState?.terminated : undefined);
  if (!ended) counts.pending++;
  else if (ended.exitCode !== 0 && isForGood(container, pod, ended)) counts.failedForGood = true;
}

function countSidecar(counts: InitCounts, status: ContainerStatus | undefined): void {
  const { state, lastState, started } = status ?? {};
  if (state?.running) {
    if (started !== true) counts.sidecarsPending++;
    counts.running++;
  } else if (!status) counts.unknown++;
  else if (state?.waiting && !lastState?.terminated) {
    counts.sidecarsPending++;
    counts.waiting++;
  }
}
