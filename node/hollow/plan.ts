/**
 * What a hollow node does with a pod that is bound to it: how a kubelet would report it if everything went well at once. Pure.
 *
 *   bound              Running and Ready, with an address
 *   of a Job, or done  Succeeded after a second, unless its containers restart always
 *   being deleted      gone at once
 */
import type { ContainerState, ContainerStatus, Pod, PodCondition, PodStatus } from "../../core/api/gen/core.v1.ts";
import { timestamp } from "../../core/lifecycle/clock.ts";
import { isHostNetwork, isSidecar, isTerminalPhase } from "../kubelet/pod-spec.ts";

export type HollowPlan =
  | { readonly do: "nothing" }
  | { readonly do: "delete" }
  /** `againMs`: look at it again after this long. */
  | { readonly do: "report"; readonly status: PodStatus; readonly againMs?: number };

export interface HollowFacts {
  readonly nodeIps: readonly string[];
  /** The pod's own, of each family; undefined while the node has no range. */
  readonly podIps: readonly string[] | undefined;
  /** What the node said last. The API server's copy may be late: who goes by it alone contradicts himself. */
  readonly said?: PodStatus | undefined;
  readonly nowMs: number;
}

/** How long the work of a Job takes here. */
const WORK_MS = 1_000;

export function planHollowPod(pod: Readonly<Pod>, { nodeIps, podIps, said = pod.status, nowMs }: HollowFacts): HollowPlan {
  if (pod.metadata.deletionTimestamp !== undefined) return { do: "delete" };
  if (isTerminalPhase(pod.status?.phase)) return { do: "nothing" };
  if (said && isTerminalPhase(said.phase)) return { do: "report", status: said };
  const ips = isHostNetwork(pod) ? nodeIps : podIps;
  if (ips === undefined) return { do: "nothing" };
  const startedMs = Date.parse(said?.startTime ?? "") || nowMs;
  const ends = (pod.spec.restartPolicy ?? "Always") !== "Always";
  const isOver = nowMs - startedMs >= WORK_MS || startedMs > nowMs; // the clock has been set back since
  if (ends && isOver) return { do: "report", status: statusOf(pod, { said, nodeIps, ips, startedMs, nowMs, succeeded: true }) };
  return { do: "report", status: statusOf(pod, { said, nodeIps, ips, startedMs, nowMs, succeeded: false }), ...(ends ? { againMs: WORK_MS } : {}) };
}

interface StatusFacts { readonly said: PodStatus | undefined; readonly nodeIps: readonly string[]; readonly ips: readonly string[]; readonly startedMs: number; readonly nowMs: number; readonly succeeded: boolean }

function statusOf(pod: Readonly<Pod>, { said, nodeIps, ips, startedMs, nowMs, succeeded }: StatusFacts): PodStatus {
  const startedAt = timestamp(startedMs);
  const running: ContainerState = { running: { startedAt } };
  const ended: ContainerState = { terminated: { exitCode: 0, reason: "Completed", startedAt, finishedAt: timestamp(nowMs) } };
  const container = (name: string, image: string | undefined, isInit: boolean, lives: boolean): ContainerStatus => ({
    name, image: image ?? "", imageID: `${image ?? ""}@hollow`, containerID: `hollow://${pod.metadata.uid}/${name}`, restartCount: 0,
    ready: lives || isInit, started: lives, state: lives ? running : ended, lastState: {},
  });
  const initContainers = pod.spec.initContainers ?? [];
  return {
    ...pod.status,
    phase: succeeded ? "Succeeded" : "Running", startTime: startedAt,
    hostIP: nodeIps[0]!, hostIPs: nodeIps.map((ip) => ({ ip })), ...(ips[0] === undefined ? {} : { podIP: ips[0], podIPs: ips.map((ip) => ({ ip })) }),
    ...(initContainers.length > 0 ? { initContainerStatuses: initContainers.map((one) => container(one.name, one.image, true, isSidecar(one) && !succeeded)) } : {}),
    containerStatuses: pod.spec.containers.map((one) => container(one.name, one.image, false, !succeeded)),
    conditions: conditionsOf(pod, said?.conditions ?? [], succeeded, nowMs),
  };
}

function conditionsOf(pod: Readonly<Pod>, said: readonly PodCondition[], succeeded: boolean, nowMs: number): PodCondition[] {
  const done = succeeded ? { reason: "PodCompleted" } : {};
  const own: PodCondition[] = [
    { type: "PodReadyToStartContainers", status: succeeded ? "False" : "True" }, { type: "Initialized", status: "True", ...done },
    { type: "Ready", status: succeeded ? "False" : gatesHold(pod) ? "True" : "False", ...done }, { type: "ContainersReady", status: succeeded ? "False" : "True", ...done }, { type: "PodScheduled", status: "True" },
  ];
  return [
    ...own.map((condition) => {
      const old = said.find(({ type }) => type === condition.type);
      return { ...condition, lastTransitionTime: old?.status === condition.status && old.lastTransitionTime ? old.lastTransitionTime : timestamp(nowMs) };
    }),
    ...(pod.status?.conditions ?? []).filter(({ type }) => !own.some((condition) => condition.type === type)),
  ];
}

function gatesHold({ spec, status }: Readonly<Pod>): boolean {
  return (spec.readinessGates ?? []).every(({ conditionType }) => status?.conditions?.some(({ type, status: value }) => type === conditionType && value === "True"));
}
