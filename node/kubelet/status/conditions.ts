/** The conditions of a pod that are the kubelet's. Source: kubernetes v1.36 pkg/kubelet/status/generate.go, pkg/kubelet/types/pod_status.go */
import type { ContainerStatus, Pod, PodCondition, PodPhase } from "../../../core/api/gen/core.v1.ts";
import { isSidecar, mayRestartAll } from "../pod-spec.ts";

type Verdict = Pick<PodCondition, "status" | "reason" | "message">;

export interface ConditionFacts {
  readonly pod: Pod;
  readonly phase: PodPhase;
  readonly init: readonly ContainerStatus[];
  readonly containers: readonly ContainerStatus[];
  /** A sandbox with a network is there. */
  readonly sandboxReady: boolean;
  /** It was, as far as we know; once is for ever. */
  readonly wasInitialized: boolean;
  /** All containers begin anew: some are there still. */
  readonly restartingAll: boolean;
}

/** Those we write; what others put there (readiness gates, DisruptionTarget …) is theirs. */
export const KUBELET_CONDITIONS: readonly string[] = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled", "AllContainersRestarting", "PodResizePending", "PodResizeInProgress"];

/** Those of ours that are taken away again. */
export const PASSING_CONDITIONS: readonly string[] = ["PodResizePending", "PodResizeInProgress"];

const TRUE: Verdict = { status: "True" };

export function conditionsOf(facts: ConditionFacts): ReadonlyMap<string, Verdict> {
  const containersReady = containersReadyOf(facts);
  return new Map<string, Verdict>([
    ["PodReadyToStartContainers", facts.sandboxReady ? TRUE : { status: "False" }],
    ["Initialized", initializedOf(facts)],
    ["Ready", containersReady.status === "True" ? gatesOf(facts.pod) : containersReady],
    ["ContainersReady", containersReady],
    ["PodScheduled", TRUE],
    ...(mayRestartAll(facts.pod.spec) ? [["AllContainersRestarting", restartingOf(facts)] as const] : []),
  ]);
}

function restartingOf({ phase, restartingAll }: ConditionFacts): Verdict {
  if (phase === "Succeeded") return { status: "False", reason: "PodCompleted" };
  if (phase === "Failed") return { status: "False", reason: "PodFailed" };
  return restartingAll ? { status: "True", reason: "RestartAllContainersStarted", message: "container exited with restart policy rule" } : { status: "False" };
}

function containersReadyOf({ pod, phase, init, containers }: ConditionFacts): Verdict {
  const named = [
    ...(pod.spec.initContainers ?? []).filter(isSidecar).map(({ name }) => ({ name, status: statusNamed(init, name) })),
    ...pod.spec.containers.map(({ name }) => ({ name, status: statusNamed(containers, name) })),
  ];
  const unknown = named.filter(({ status }) => !status).map(({ name }) => name);
  const unready = named.filter(({ status }) => status && !status.ready).map(({ name }) => name);
  if (phase === "Succeeded" && unknown.length === 0) return { status: "False", reason: "PodCompleted" };
  if (phase === "Failed") return { status: "False", reason: "PodFailed" };
  const message = complaints(unknown, unready, "unready");
  return message === "" ? TRUE : { status: "False", reason: "ContainersNotReady", message };
}

function initializedOf({ pod, phase, init, containers, wasInitialized }: ConditionFacts): Verdict {
  const named = (pod.spec.initContainers ?? []).map((container) => ({ container, status: statusNamed(init, container.name) }));
  const unknown = named.filter(({ status }) => !status).map(({ container }) => container.name);
  const incomplete = named.filter(({ container, status }) => status && !(isSidecar(container) ? status.started === true : status.ready)).map(({ container }) => container.name);
  if (phase === "Succeeded" && unknown.length === 0) return { status: "True", reason: "PodCompleted" };
  if (containers.some(({ state }) => state?.running || state?.terminated)) return TRUE; // it was, once
  const message = complaints(unknown, incomplete, "incomplete");
  return message === "" || wasInitialized ? TRUE : { status: "False", reason: "ContainersNotInitialized", message };
}

function gatesOf(pod: Pod): Verdict {
  const unmet = (pod.spec.readinessGates ?? []).flatMap(({ conditionType }) => {
    const condition = pod.status?.conditions?.find(({ type }) => type === conditionType);
    if (!condition) return [`corresponding condition of pod readiness gate "${conditionType}" does not exist.`];
    return condition.status === "True" ? [] : [`the status of pod readiness gate "${conditionType}" is not "True", but ${condition.status}`];
  });
  return unmet.length === 0 ? TRUE : { status: "False", reason: "ReadinessGatesNotReady", message: unmet.join(", ") };
}

function statusNamed(statuses: readonly ContainerStatus[], name: string): ContainerStatus | undefined {
  return statuses.find((status) => status.name === name);
}

function complaints(unknown: readonly string[], others: readonly string[], what: "unready" | "incomplete"): string {
  return [
    ...(unknown.length > 0 ? [`containers with unknown status: [${unknown.join(" ")}]`] : []),
    ...(others.length > 0 ? [`containers with ${what} status: [${others.join(" ")}]`] : []),
  ].join(", ");
}
