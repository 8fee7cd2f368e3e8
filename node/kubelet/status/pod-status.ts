/**
 * The status of a pod, from its spec, the runtime and what was said before. Pure.
 *
 * Phases only go forward: what is Succeeded or Failed stays so; when it is told is decided in withhold-end.ts. Conditions of others are kept; a condition's
 * transition time moves with its status only.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kubelet_pods.go (generateAPIPodStatus), pkg/kubelet/status/status_manager.go
 */
import type { ContainerStatus, Pod, PodCondition, PodPhase, PodStatus, ResourceList } from "../../../core/api/gen/core.v1.ts";
import { isConditionTrue } from "../../../core/api/meta/conditions.ts";
import { timestamp } from "../../../core/lifecycle/clock.ts";
import type { CgroupLimits } from "../../os/cgroup.ts";
import { restartsAll, sandboxChange } from "../plan.ts";
import { isHostNetwork, isStaticPod, isTerminalPhase, mayRestartAll } from "../pod-spec.ts";
import { podLimits, podRequests, qosClass, type Quantities } from "../resources/pod-resources.ts";
import { actualResources } from "../resources/resize.ts";
import { inOrderOf, podIps } from "../runtime-pod.ts";
import { conditionsOf, KUBELET_CONDITIONS, PASSING_CONDITIONS } from "./conditions.ts";
import { containerStatuses, type StatusFacts } from "./container-status.ts";
import { lastStatus } from "./last-status.ts";
import { phaseOf } from "./phase.ts";

/** Why the kubelet ends a pod: eviction, deadline, refused at admission. It becomes the phase, reason and message of its status. */
export interface PodFailure {
  readonly reason: string;
  readonly message: string;
  readonly condition?: PodCondition | undefined;
  /** Never taken in: nothing of it has run or will. */
  readonly refused?: boolean | undefined;
  /** Its time is over: it has failed whatever its containers say in the end. */
  readonly deadline?: boolean | undefined;
}

/** PodResizePending, PodResizeInProgress: it is so. Which generation of the pod it is said of, and since when that reason holds, is its own. */
export type ResizeCondition = Pick<PodCondition, "type" | "reason" | "message" | "observedGeneration" | "lastProbeTime">;

export interface PodStatusFacts extends StatusFacts {
  /** What we, or the API server if we have worked out nothing yet, had before: with its end, told or not. */
  readonly before: PodStatus;
  readonly terminal: boolean;
  readonly failure: PodFailure | undefined;
  readonly hostIps: readonly string[];
  /** While they hold. */
  readonly resize?: readonly ResizeCondition[];
  /** What binds the pod as a whole now; absent: not known. */
  readonly cgroup?: CgroupLimits | undefined;
}

export function podStatusOf(given: Omit<PodStatusFacts, "restartingAll">): PodStatus {
  const restartingAll = mayRestartAll(given.pod.spec) && (isConditionTrue(given.before.conditions, "AllContainersRestarting") || restartsAll(given.pod, given.runtime));
  const facts: PodStatusFacts = { ...given, restartingAll };
  const { pod, runtime, before, terminal, failure, nowMs } = facts;
  const { spec } = pod;
  const settled = [pod.status?.phase, before.phase].find(isTerminalPhase);
  if ((settled ?? failure?.refused) && runtime.containers.length === 0 && !before.containerStatuses?.length) return neverRun(facts);
  const containers = containerStatuses(facts, "container", spec.containers, before.containerStatuses ?? []).toSorted(byName);
  const init = containerStatuses(facts, "init", spec.initContainers ?? [], before.initContainerStatuses ?? []);
  const ephemeral = containerStatuses(facts, "ephemeral", spec.ephemeralContainers ?? [], before.ephemeralContainerStatuses ?? []).toSorted(byName);
  const active = runtime.sandboxes[0]?.ready ? runtime.sandboxes[0].id : undefined;
  const initialized = runtime.containers.some(({ name, sandboxId }) => sandboxId === active && spec.containers.some((container) => container.name === name));
  const found = phaseOf({ pod, containers, init, terminal: terminal && !isStaticPod(pod), initialized }); // its file decides, not what is told of it
  const phase = endedWell(facts, found) ? found : settled ?? (failure ? "Failed" : found);
  const kept = phase === before.phase ? { reason: before.reason || pod.status?.reason, message: before.message || pod.status?.message } : undefined;
  const explained = settled ? kept : failure && phase === "Failed" ? failure : kept;

  const status: PodStatus = {
    observedGeneration: pod.metadata.generation, phase, ...explainedBy(explained),
    conditions: mergeConditions(facts, conditionsOf({ pod, phase, init, containers, sandboxReady: !sandboxChange(pod, runtime.sandboxes).changed,
      wasInitialized: isConditionTrue(before.conditions, "Initialized"), restartingAll: restartingAll && runtime.containers.length > 0 })),
    startTime: before.startTime ?? pod.status?.startTime ?? timestamp(nowMs), qosClass: qosClass(pod), ...addresses(facts, phase),
    containerStatuses: containers, ...(isTerminalPhase(phase) && before.resources ? toldResources(before) : resourcesOf(pod, phase === "Running" ? facts.cgroup : undefined)),
  };
  if (init.length > 0) status.initContainerStatuses = init;
  if (ephemeral.length > 0) status.ephemeralContainerStatuses = ephemeral;
  return terminal && !isStaticPod(pod) ? lastStatus(pod, status) : status;
}

/**
 * The node needed what it had, and when they were told to stop, all its containers ended as they should: it has not failed, as upstream has it, and what says why it ended is
 * its condition. Upstream says so of any pod. Here one that may end by itself has failed: its Job would take the work for done.
 */
function endedWell({ pod, before, terminal, failure }: PodStatusFacts, phase: PodPhase): boolean {
  const isOurs = failure !== undefined && !failure.refused && !failure.deadline && !isTerminalPhase(pod.status?.phase) && before.phase !== "Succeeded";
  return isOurs && terminal && phase === "Succeeded" && (pod.spec.restartPolicy ?? "Always") === "Always";
}

/** An ended pod keeps what it had while it ran. */
function toldResources({ resources, allocatedResources }: PodStatus): Pick<PodStatus, "resources" | "allocatedResources"> {
  return { resources, ...(allocatedResources ? { allocatedResources } : {}) };
}

/** Of the pod as a whole. `cgroup`: what it really has, while it runs. */
function resourcesOf(pod: Pod, cgroup: CgroupLimits | undefined): Pick<PodStatus, "resources" | "allocatedResources"> {
  const own = pod.spec.resources;
  const requests = podRequests(pod);
  const allocatedResources = texts(requests);
  if (!cgroup) return { resources: { ...own, ...named("requests", allocatedResources), ...named("limits", texts(podLimits(pod))) }, ...named("allocatedResources", allocatedResources) };
  const { cpuShares, cpuQuotaUs, cpuPeriodUs, memoryBytes } = cgroup;
  const granted = {
    ...own, ...named("requests", texts(requests, (name) => name === "cpu" || name === "memory" || own?.requests?.[name] !== undefined)),
    ...named("limits", texts(podLimits(pod), (name) => name === "cpu" || name === "memory" || own?.limits?.[name] !== undefined)),
  };
  return { resources: actualResources(granted, { cpu_shares: cpuShares ?? 0, cpu_quota: cpuQuotaUs ?? 0, cpu_period: cpuPeriodUs ?? 0, memory_limit_in_bytes: memoryBytes ?? 0 }), ...named("allocatedResources", allocatedResources) };
}

function texts(quantities: Quantities, wanted: (name: string) => boolean = () => true): ResourceList {
  return Object.fromEntries([...quantities].filter(([name]) => wanted(name)).map(([name, quantity]) => [name, quantity.toString()]));
}

function named<K extends string>(key: K, list: ResourceList): { [key in K]?: ResourceList } {
  return (Object.keys(list).length > 0 ? { [key]: list } : {}) as { [key in K]?: ResourceList };
}

/** It waits for nothing and has no containers to speak of: clients show its reason. */
function neverRun({ pod, before, failure, nowMs }: PodStatusFacts): PodStatus {
  const { phase = "Failed", reason, message, startTime } = isTerminalPhase(before.phase) ? before : isTerminalPhase(pod.status?.phase) ? pod.status! : { ...failure, startTime: before.startTime };
  return { observedGeneration: pod.metadata.generation, phase, ...explainedBy({ reason, message }), conditions: pod.status?.conditions, startTime: startTime ?? timestamp(nowMs), qosClass: qosClass(pod) };
}

/** Clients expect it. Init containers stand in the spec's order. */
function byName(a: ContainerStatus, b: ContainerStatus): number {
  return a.name < b.name ? -1 : 1;
}

function explainedBy(why: { readonly reason?: string | undefined; readonly message?: string | undefined } | undefined): Pick<PodStatus, "reason" | "message"> {
  return { ...(why?.reason ? { reason: why.reason } : {}), ...(why?.message ? { message: why.message } : {}) };
}

function mergeConditions({ pod, before, failure, resize = [], nowMs }: PodStatusFacts, ours: ReturnType<typeof conditionsOf>): PodCondition[] {
  const wasDisrupted = pod.status?.conditions?.find(({ type, status }) => type === "DisruptionTarget" && status === "True");
  const disruption = failure?.condition && { ...failure.condition, ...(wasDisrupted?.lastTransitionTime ? { lastTransitionTime: wasDisrupted.lastTransitionTime } : {}) };
  const others = (pod.status?.conditions ?? []).filter(({ type }) => !KUBELET_CONDITIONS.includes(type) && !(disruption && type === "DisruptionTarget"));
  const passing = resize.map(({ type, ...verdict }) => [type, { status: "True" as const, ...verdict }] as const);
  const written = [...passing, ...ours].map(([type, verdict]): PodCondition => {
    const old = before.conditions?.find((condition) => condition.type === type);
    const stays = old?.status === verdict.status && (old.reason === verdict.reason || !PASSING_CONDITIONS.includes(type));
    const lastTransitionTime = stays && old.lastTransitionTime ? old.lastTransitionTime : timestamp(nowMs);
    const isOfSpec = type !== "AllContainersRestarting"; // it tells of containers that end, as upstream's
    return { type, ...(pod.metadata.generation === undefined || !isOfSpec ? {} : { observedGeneration: pod.metadata.generation }), lastTransitionTime, ...verdict };
  });
  return [...others, ...(disruption ? [disruption] : []), ...written];
}

/** A pod that has ended keeps the addresses it had; host network pods have the node's, which may be others since we were started last. */
function addresses({ pod, runtime, before, hostIps, terminal }: PodStatusFacts, phase: PodPhase): Partial<PodStatus> {
  const hosts = hostIps.length > 0 ? { hostIP: hostIps[0], hostIPs: hostIps.slice(0, 2).map((ip) => ({ ip })) } : {};
  const hasEnded = terminal || isTerminalPhase(phase);
  const kept = before.podIPs?.map(({ ip }) => ip) ?? [];
  const known = isHostNetwork(pod) ? (hasEnded && kept.length > 0 ? [] : hostIps.slice(0, 2)) : inOrderOf(hostIps, podIps(runtime));
  const ips = known.length === 0 && hasEnded ? kept : known;
  return { ...hosts, ...(ips.length > 0 ? { podIP: ips[0], podIPs: ips.map((ip) => ({ ip })) } : {}) };
}
