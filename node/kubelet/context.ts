/** What the parts of the kubelet that act on pods have in common. Made once, by kubelet-context.ts. */
import type { Pod, ResourceList, Service } from "../../core/api/gen/core.v1.ts";
import type { EventRecorder } from "../../core/client/events.ts";
import type { Informer } from "../../core/client/informer.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Spans } from "../../core/observe/spans.ts";
import type { Cri } from "../cri/client.ts";
import type { RuntimeHandlerFeatures } from "../cri/gen/runtime.v1.ts";
import type { Exec } from "../os/exec.ts";
import type { Mounts } from "../os/mount.ts";
import type { ClaimManager } from "./claims/claim-manager.ts";
import type { DeviceManager } from "./devices/device-manager.ts";
import type { CredentialProviders, Puller } from "./images/credential-provider.ts";
import type { ImagePuller } from "./images/puller.ts";
import type { PodObjects } from "./objects/pod-objects.ts";
import type { Placement } from "./placement/placement.ts";
import type { Machine } from "./resources/linux-resources.ts";
import type { ResizeOperation } from "./resources/resize.ts";
import type { PodCgroups } from "./resources/pod-cgroups.ts";
import type { RuntimeHandlers } from "./sandbox/runtime-handlers.ts";
import type { UserNamespaces } from "./sandbox/user-namespaces.ts";
import type { KubeletSettings } from "./settings.ts";
import type { StartTurns } from "./start-turns.ts";
import type { Termination } from "./status/terminations.ts";
import type { Volumes } from "./volumes/volumes.ts";

export interface KubeletContext {
  readonly settings: KubeletSettings;
  readonly cri: Cri;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly events: EventRecorder;
  readonly mounts: Mounts;
  readonly exec: Exec;
  readonly volumes: Volumes;
  readonly objects: PodObjects;
  readonly images: ImagePuller;
  /** For whatever the runtime starts. */
  readonly starts: StartTurns;
  readonly credentialProviders?: CredentialProviders | undefined;
  /** Its service account, for providers that want to know who pulls. */
  readonly pullIdentity?: ((pod: Pod, signal: AbortSignal) => Promise<Puller | undefined>) | undefined;
  readonly services: Informer<Service>;
  readonly cgroups: PodCgroups;
  readonly handlers: RuntimeHandlers;
  readonly userNamespaces: UserNamespaces;
  /** As the runtime calls itself. */
  readonly runtimeName: () => { readonly name?: string | undefined; readonly version?: string | undefined };
  /** What the runtime says one of its handlers can do. */
  readonly handlerFeatures: (handler: string) => RuntimeHandlerFeatures | undefined;
  /** Of plugins; absent where there are none. */
  readonly devices?: DeviceManager | undefined;
  readonly claims?: ClaimManager | undefined;
  readonly placement: Placement;
  readonly machine: Machine;
  readonly allocatable: () => ResourceList;
  /** Why pods that need a network cannot start, if they cannot. */
  readonly networkProblem: () => string | undefined;
  /** Of traces, if anybody wants them. */
  readonly spans: Spans;
  readonly metrics: KubeletMetrics;
}

/** Upstream's names. Counted where it happens. */
export type PodOperation = "create" | "update" | "sync" | "kill" | "terminated";

/** Why a resize that waits is looked at again. */
export type ResizeTrigger = "pod_resized" | "pod_updated" | "pods_added" | "pods_removed" | "periodic_retry";

export interface KubeletMetrics {
  resizeAsked(one: ResizeOperation): void;
  resizeInfeasible(detail: string): void;
  /** What had to wait is granted, when it was looked at again for `trigger`. */
  resizeWaited(trigger: ResizeTrigger): void;
  /** A hook over HTTPS met a server of HTTP, which answered. */
  hookFellBack(): void;
  /** A hook that sleeps was ended before it had. */
  hookSleptShort(): void;
  /** Since it was granted. */
  resizeTook(ms: number, success: boolean): void;
  startedPods(userNamespace: boolean): void;
  /** There is no sandbox. */
  startedPodsError(): void;
  /** A pod with a user namespace did not start whole at once, whatever the reason. */
  startedUserNamespacedPodsError(): void;
  startedContainers(kind: string): void;
  startedContainersError(kind: string, reason: string): void;
  terminated(container: Termination): void;
  /** A pod was ended to make room for a critical one that lacks `resource`. */
  preempted(resource: string): void;
  /** A pod was looked at once, to create, update, sync or kill it, or to tidy up after it (terminated). */
  synced(operation: PodOperation, seconds: number): void;
  /** A pod that was pending when it was first seen, `seconds` ago, runs. */
  podRunning(seconds: number): void;
  /** The runtime was asked for all pods. `sinceLastSeconds`: absent the first time. */
  relisted(seconds: number, sinceLastSeconds: number | undefined): void;
  /** A pod was taken charge of. */
  podSeen(pod: Pod): void;
  /** As it was read again. */
  podRead(pod: Pod, nowMs: number): void;
  podGone(uid: string): void;
  /** It came back under its uid while it was ended, and begins again. */
  podRestarted(isStatic: boolean): void;
  /** The runtime was asked for one pod. */
  podListed(seconds: number): void;
  /** Of pods that are gone, what lay on the disk: so many in the last round. */
  leftoversRemoved(pods: { readonly all: number; readonly failed: number }): void;
  /** It waited so long for its first look. */
  workerStarted(seconds: number): void;
  /** The runtime has pods that nobody knows. */
  orphaned(): void;
  admissionRefused(reason: string): void;
  /** For a pod; in uptime. */
  imagePulled(podUid: string, pull: { readonly beganMs: number; readonly endedMs: number; readonly sizeBytes: number }): void;
  imageEnsured(policy: string, found: { readonly isPresent?: boolean; readonly mustPull?: boolean }): void;
  imageRemoved(reason: "age" | "space"): void;
  sandboxStarted(handler: string, seconds: number, failed: boolean): void;
  /** What was to be told since so long is with the API server. */
  statusWritten(seconds: number): void;
  /** `requested`: of the pod, `mounted`: by the container that starts. */
  imageVolumes(volumes: { readonly requested: number; readonly mounted: number; readonly failed: boolean }): void;
}
