/**
 * The statuses of containers, from what the runtime has and what was reported before. Pure.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kubelet_pods.go (convertToAPIContainerStatuses), pkg/kubelet/prober/prober_manager.go (UpdatePodStatus)
 */
import type { Container, ContainerState, ContainerStatus, EphemeralContainer, Pod, ResourceStatus, VolumeMountStatus } from "../../../core/api/gen/core.v1.ts";
import { timestamp } from "../../../core/lifecycle/clock.ts";
import type { Mount } from "../../cri/gen/runtime.v1.ts";
import { allContainers, type ContainerKind, isSidecar } from "../pod-spec.ts";
import { shouldStart } from "../plan.ts";
import type { ProbeResults } from "../probes/probe-results.ts";
import { actualResources } from "../resources/resize.ts";
import type { RuntimeContainer, RuntimePod } from "../runtime-pod.ts";
import { RESTARTING_ALL } from "./phase.ts";

/** Why a container could not be started: ImagePullBackOff, CrashLoopBackOff, CreateContainerConfigError … */
export interface WaitingReason { readonly reason: string; readonly message: string }

export interface StatusFacts {
  readonly pod: Pod;
  readonly runtime: RuntimePod;
  readonly probes: ProbeResults;
  /** By container name: why its last start failed. */
  readonly waiting: ReadonlyMap<string, WaitingReason>;
  /** Last messages of ended containers, by id. */
  readonly terminationMessages: ReadonlyMap<string, string>;
  /** Containers that ran before the kubelet did keep what was said of them until their probes speak. */
  readonly kubeletStartedMs: number;
  readonly nowMs: number;
  /** Nothing of the pod is started any more. */
  readonly terminal?: boolean | undefined;
  /** How the devices of a container are. */
  readonly health?: ((container: string) => readonly ResourceStatus[]) | undefined;
  /** All containers begin anew: those that are missing were taken away for it. */
  readonly restartingAll: boolean;
  /** As the runtime calls itself: it stands before the ids of its containers. Default: containerd. */
  readonly runtimeName?: string | undefined;
  /** What runs the pod can make mounts read-only all the way down, as far as known. */
  readonly recursiveReadOnly?: boolean | undefined;
  /** Of all containers it is told which signal stops them, not only of those that ask for one: ContainerStopSignals is switched on here. */
  readonly tellsStopSignals?: boolean | undefined;
  /** Of volumes that are images it is told which: ImageVolumeWithDigest is switched on here. */
  readonly tellsVolumeImages?: boolean | undefined;
}

/** Of a container that is not there, and of whose end nothing is known. */
export const UNKNOWN_ENDED = { reason: "ContainerStatusUnknown", exitCode: 137 };

export function containerStatuses(facts: StatusFacts, kind: ContainerKind, containers: readonly (Container | EphemeralContainer)[], before: readonly ContainerStatus[]): ContainerStatus[] {
  return containers.map((container) => {
    const old = before.find(({ name }) => name === container.name);
    const seen = facts.runtime.containers.filter(({ name }) => name === container.name);
    const status = seen.length > 0 ? statusOfSeen(facts, container, seen, old) : kind === "init" ? statusOfUnseenInit(facts, container, old) : statusOfUnseen(facts, container, old);
    return withHealth(facts, kind, withProbes(facts, { kind, container }, withWaiting(facts, { kind, container }, status, seen[0]), old));
  });
}

function withHealth({ health }: StatusFacts, kind: ContainerKind, { allocatedResourcesStatus: _, ...status }: ContainerStatus): ContainerStatus {
  const resources = kind === "container" ? (health?.(status.name) ?? []) : [];
  return resources.length === 0 ? status : { ...status, allocatedResourcesStatus: resources.toSorted((a, b) => (a.name < b.name ? -1 : 1)) };
}

const TAKEN_AWAY = { reason: RESTARTING_ALL, message: "The container is removed because RestartAllContainers in place" };

function statusOfUnseen({ pod, restartingAll, recursiveReadOnly }: StatusFacts, container: Container | EphemeralContainer, old: ContainerStatus | undefined): ContainerStatus {
  const isTakenAway = restartingAll && old !== undefined && !old.state?.waiting;
  if (old?.state?.terminated && !isTakenAway) return { ...old };
  const status: ContainerStatus = {
    name: container.name, state: { waiting: { reason: pod.spec.initContainers?.length ? "PodInitializing" : "ContainerCreating" } }, lastState: old?.lastState ?? {},
    ready: false, restartCount: old?.restartCount ?? 0, image: container.image ?? "", imageID: "", started: false, volumeMounts: mountStatuses(container, () => recursiveReadOnly ?? false),
  };
  if (isTakenAway) return { ...(old.state?.terminated ? old : status), state: { waiting: TAKEN_AWAY }, lastState: { terminated: { ...TAKEN_AWAY, exitCode: 137 } }, restartCount: old.restartCount + 1 };
  if (!old?.state?.running || status.lastState?.terminated) return status;
  const terminated = { ...UNKNOWN_ENDED, message: "The container could not be located when the pod was deleted.  The container used to be Running" };
  return { ...status, lastState: { terminated }, restartCount: status.restartCount + (pod.metadata.deletionTimestamp ? 0 : 1) };
}

/** An init container that nobody remembers has done its work where the containers after it are there: of static pods nothing is remembered over a restart of ours. */
function statusOfUnseenInit(facts: StatusFacts, container: Container | EphemeralContainer, old: ContainerStatus | undefined): ContainerStatus {
  const status = statusOfUnseen(facts, container, old);
  const { pod, runtime, restartingAll } = facts;
  const isThrough = !isSidecar(container) && !restartingAll && runtime.containers.some(({ name, state }) => state !== "unknown" && pod.spec.containers.some((app) => app.name === name));
  return isThrough && status.state?.waiting ? { ...status, state: { terminated: FORGOTTEN } } : status;
}

const FORGOTTEN = { reason: "Completed", message: "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally", exitCode: 0 };

function statusOfSeen(facts: StatusFacts, container: Container | EphemeralContainer, [newest, previous]: readonly RuntimeContainer[], old: ContainerStatus | undefined): ContainerStatus {
  const { id, restartCount, image, imageRef, user, stopSignal, mounts } = newest!;
  const requests = container.resources?.requests;
  return {
    name: container.name, state: stateOf(facts, newest!, old, old), lastState: previous ? stateOf(facts, previous, undefined, old) : lastOf(old, containerId(facts, id)),
    ready: false, restartCount: isAnotherStart(newest!, old, containerId(facts, id)) ? old!.restartCount + 1 : Math.max(restartCount, old?.restartCount ?? 0),
    image: image || (container.image ?? ""), imageID: imageRef, containerID: containerId(facts, id), started: false,
    ...(requests ? { allocatedResources: requests } : {}), ...(container.resources ? { resources: newest!.state === "running" ? actualResources(container.resources, newest!.resources) : container.resources } : {}),
    volumeMounts: mountStatuses(container, (path) => mountedAt(mounts, path)?.recursive_read_only ?? false, (path) => (facts.tellsVolumeImages ? mountedAt(mounts, path)?.image?.image : undefined)),
    ...(stopSignal && (facts.tellsStopSignals || container.lifecycle?.stopSignal) ? { stopSignal: stopSignal as never } : {}),
    ...(user ? { user: { linux: { uid: user.uid ?? 0, gid: user.gid ?? 0, ...(user.supplemental_groups?.length ? { supplementalGroups: user.supplemental_groups } : {}) } } } : {}),
  };
}

/** One more than was told, although the runtime does not count so: what it remembers of those before is gone. */
function isAnotherStart({ state, restartCount }: RuntimeContainer, old: ContainerStatus | undefined, containerID: string): boolean {
  if (state === "unknown") return old?.state?.running !== undefined;
  return state === "running" && old?.state?.terminated !== undefined && old.containerID !== containerID && old.restartCount >= restartCount;
}

/** Of a container that the runtime has no predecessor of any more. */
function lastOf(old: ContainerStatus | undefined, containerID: string): ContainerState {
  return old?.state?.terminated && old.containerID !== containerID ? { terminated: old.state.terminated } : old?.lastState ?? {};
}

function containerId({ runtimeName = "containerd" }: StatusFacts, id: string): string {
  return `${runtimeName}://${id}`;
}

/** Of all containers of a pod together: each may use its share. Source: kubernetes v1.36 pkg/kubelet/container/runtime.go MaxPodTerminationMessageLogLength */
const POD_MESSAGES_BYTES_MAX = 12 * 1024;

function clipped(message: string, { spec }: Pod): string {
  const bytes = Buffer.from(message);
  const share = Math.floor(POD_MESSAGES_BYTES_MAX / allContainers(spec).length);
  return bytes.length <= share ? message : bytes.toString("utf8", 0, share);
}

/** Of an ended container, if told before: what it wrote lies in the pod's directory, which an ended pod has no more, and a kubelet that starts anew finds the container without it. */
function toldMessage(told: ContainerStatus | undefined, containerID: string): string | undefined {
  return [told?.state?.terminated, told?.lastState?.terminated].find((ended) => ended?.containerID === containerID)?.message;
}

function stateOf(facts: StatusFacts, seen: RuntimeContainer, old: ContainerStatus | undefined, told: ContainerStatus | undefined): ContainerState {
  switch (seen.state) {
    case "running": return { running: { startedAt: timestamp(seen.startedAtMs) } };
    case "exited": {
      const message = toldMessage(told, containerId(facts, seen.id)) ?? clipped(facts.terminationMessages.get(seen.id) ?? seen.message, facts.pod);
      return { terminated: {
        exitCode: seen.exitCode, ...(seen.reason ? { reason: seen.reason } : {}), ...(message ? { message } : {}), startedAt: timestamp(seen.startedAtMs), finishedAt: timestamp(seen.finishedAtMs), containerID: containerId(facts, seen.id),
      } };
    }
    case "unknown":
      if (old?.state?.running) return { terminated: { ...UNKNOWN_ENDED, ...(facts.restartingAll ? { reason: RESTARTING_ALL } : {}), message: "The container could not be located when the pod was terminated" } };
      return { waiting: {} };
    case "created": return { waiting: {} };
  }
}

/** A container that should run and does not shows why. */
function withWaiting({ pod, waiting, terminal }: StatusFacts, { kind, container }: { kind: ContainerKind; container: Container | EphemeralContainer }, status: ContainerStatus, newest: RuntimeContainer | undefined): ContainerStatus {
  const why = waiting.get(container.name);
  if (!why || (terminal && !newest && status.state?.terminated)) return status; // it was told that it has ended
  if (kind === "init" && newest?.state === "exited" && newest.exitCode === 0) return status; // of a sidecar, too, which starts again
  if (!shouldStart(pod, { kind, container }, newest)) return status;
  const lastState = status.state?.terminated ? status.state : status.lastState;
  return { ...status, state: { waiting: { reason: why.reason, ...(why.message ? { message: why.message } : {}) } }, lastState: lastState ?? {} };
}

function withProbes(facts: StatusFacts, { kind, container }: { kind: ContainerKind; container: Container | EphemeralContainer }, status: ContainerStatus, old: ContainerStatus | undefined): ContainerStatus {
  if (kind === "ephemeral") {
    const { started: _, ...rest } = status;
    return { ...rest, ready: false };
  }
  const { pod, probes, runtime, kubeletStartedMs, nowMs } = facts;
  const running = status.state?.running !== undefined;
  const id = status.containerID?.replace(/^.*:\/\//, "") ?? "";
  const startedMs = runtime.containers.find((seen) => seen.id === id)?.startedAtMs;
  const isOlder = running && startedMs !== undefined && (startedMs < kubeletStartedMs || startedMs > nowMs); // before us, or before the clock was set back
  const isAdopted = isOlder && old?.containerID === status.containerID;

  /** No probe has spoken yet: one that is not at work may not have begun. */
  const unspoken = (probe: "startup" | "readiness", before: boolean | undefined): boolean => {
    const isProbed = probes.probes(pod.metadata.uid, container.name, probe) || (isOlder && container[`${probe}Probe`] !== undefined);
    return !isProbed || (isAdopted && before === true);
  };
  const startup = probes.startup(id);
  const started = running && (startup === undefined ? unspoken("startup", old?.started) : startup === "success");
  if (kind === "init" && !isSidecar(container)) return { ...status, started, ready: status.state?.terminated?.exitCode === 0 };

  const readiness = probes.readiness(id);
  const ready = started && (readiness === undefined ? unspoken("readiness", old?.ready) : readiness === "success");
  return { ...status, started, ready };
}

function mountedAt(mounts: readonly Mount[], path: string): Mount | undefined { return mounts.find(({ container_path }) => container_path === path || container_path === `/${path}`); }

/** `isRecursive`: what is mounted there is read-only all the way down, if that is wanted. `imageAt`: which image is mounted there, if it is to be told. */
function mountStatuses({ volumeMounts }: Container | EphemeralContainer, isRecursive: (path: string) => boolean, imageAt?: (path: string) => string | undefined): VolumeMountStatus[] | undefined {
  if (!volumeMounts?.length) return undefined;
  return volumeMounts.map(({ name, mountPath, readOnly, recursiveReadOnly }) => {
    const imageRef = imageAt?.(mountPath);
    return {
      name, mountPath, ...(readOnly ? { readOnly, recursiveReadOnly: recursiveReadOnly && recursiveReadOnly !== "Disabled" && isRecursive(mountPath) ? "Enabled" : "Disabled" } : {}),
      ...(imageRef ? { volumeStatus: { image: { imageRef } } } : {}),
    };
  });
}
