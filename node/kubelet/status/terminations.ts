/** Containers that have ended between two statuses of a pod, for what is counted of them. Source: kubernetes v1.36 pkg/kubelet/status/status_manager.go (checkAndRecordTerminations) */
import type { ContainerStatus, PodStatus } from "../../../core/api/gen/core.v1.ts";

export interface Termination {
  readonly kind: "init" | "container" | "ephemeral";
  readonly exitCode: number;
  readonly reason: string;
}

export function terminations(before: Readonly<PodStatus>, now: Readonly<PodStatus>): Termination[] {
  const ended = (kind: Termination["kind"], old: readonly ContainerStatus[] = [], all: readonly ContainerStatus[] = []): Termination[] => all.flatMap(({ name, state }) => {
    const { terminated } = state ?? {};
    return terminated && !old.find((one) => one.name === name)?.state?.terminated ? [{ kind, exitCode: terminated.exitCode, reason: terminated.reason ?? "" }] : [];
  });
  return [
    ...ended("init", before.initContainerStatuses, now.initContainerStatuses), ...ended("container", before.containerStatuses, now.containerStatuses),
    ...ended("ephemeral", before.ephemeralContainerStatuses, now.ephemeralContainerStatuses),
  ];
}
