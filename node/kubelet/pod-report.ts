/**
 * What is told of one pod: its status, computed anew each time from what the runtime says and from what only the kubelet knows. That it has ended is told
 * once nothing of it can run any more (withhold-end.ts).
 */
import type { Pod, PodStatus } from "../../core/api/gen/core.v1.ts";
import { terminationMessage } from "./containers/termination-message.ts";
import { isTerminalPhase } from "./pod-spec.ts";
import { isAnythingRunning, type RuntimePod } from "./runtime-pod.ts";
import type { WaitingReason } from "./status/container-status.ts";
import { type PodFailure, type PodStatusFacts, podStatusOf } from "./status/pod-status.ts";
import { terminations } from "./status/terminations.ts";
import { withholdEnd } from "./status/withhold-end.ts";
import type { WorkerDeps } from "./worker-deps.ts";

export interface Seen {
  /** As the API server has it. */
  readonly pod: Pod;
  /** With the resources it was granted. */
  readonly granted: Pod;
  readonly runtime: RuntimePod;
  readonly resize: NonNullable<PodStatusFacts["resize"]>;
  readonly failure: PodFailure | undefined;
  readonly isTerminated: boolean;
}

export class PodReport {
  readonly #uid: string;
  readonly #deps: Pick<WorkerDeps, "context" | "statuses" | "probes" | "kubeletStartedMs">;
  /** Why containers that do not run do not, by name. */
  readonly waiting = new Map<string, WaitingReason>();
  readonly #messages = new Map<string, string>(); // of ended containers, by id
  #newest: PodStatus | undefined; // with its end, told or not
  #runtimeName: string | undefined; // as it has called itself last, perhaps before this kubelet started
  /** When it was first seen, until it has run. */
  #pendingMs: number | undefined;

  constructor(pod: Pod, deps: Pick<WorkerDeps, "context" | "statuses" | "probes" | "kubeletStartedMs">) {
    this.#uid = pod.metadata.uid;
    this.#deps = deps;
    this.#runtimeName = runtimeToldOf(pod);
    if ((pod.status?.phase ?? "Pending") === "Pending") this.#pendingMs = deps.context.clock.uptimeMs();
  }

  /** What was said last, perhaps before this kubelet started. */
  statusOf(pod: Pod): PodStatus { return this.#deps.statuses.get(this.#uid) ?? pod.status ?? {}; }

  /** By what the runtime says, or by what the API server has, told or not. */
  hasEnded(pod: Pod): boolean { return isTerminalPhase(this.#newest?.phase) || isTerminalPhase(pod.status?.phase); }

  /** Reads what containers that have ended since leave to be told. */
  async observe({ containers }: RuntimePod): Promise<void> {
    for (const container of containers) if (container.state === "exited" && !this.#messages.has(container.id)) this.#messages.set(container.id, await terminationMessage(container));
    const ids = new Set(containers.map(({ id }) => id));
    for (const id of this.#messages.keys()) if (!ids.has(id)) this.#messages.delete(id);
    for (const { name, state } of containers) if (state === "running") this.waiting.delete(name);
  }

  /** Hands the status to be written. */
  say({ pod, granted, runtime, resize, failure, isTerminated }: Seen): void {
    const { context, statuses, probes, kubeletStartedMs } = this.#deps;
    const told = this.statusOf(pod);
    const before = this.#newest ?? told;
    this.#runtimeName = context.runtimeName().name ?? this.#runtimeName;
    const status = podStatusOf({
      pod: granted, resize, runtime, runtimeName: this.#runtimeName, probes, waiting: this.waiting, terminationMessages: this.#messages, kubeletStartedMs, before,
      tellsStopSignals: context.settings.placement.gates["ContainerStopSignals"], tellsVolumeImages: context.settings.placement.gates["ImageVolumeWithDigest"],
      recursiveReadOnly: context.handlerFeatures(context.handlers.known(pod.spec.runtimeClassName) ?? "")?.recursive_read_only_mounts,
      terminal: isTerminated, failure, hostIps: context.settings.nodeIps, cgroup: context.cgroups.limits(this.#uid), nowMs: context.clock.nowMs(),
      health: (container) => [...(context.devices?.healthOf(this.#uid, container) ?? []), ...(context.claims?.healthOf(pod, container) ?? [])],
    });
    for (const ended of terminations(before, status)) context.metrics.terminated(ended);
    this.#newest = status;
    const mayRun = !isTerminated && !(failure?.refused && !isAnythingRunning(runtime));
    statuses.set(pod, mayRun ? withholdEnd(pod, status, told) : status);
    if (this.#pendingMs !== undefined && status.phase === "Running") {
      context.metrics.podRunning((context.clock.uptimeMs() - this.#pendingMs) / 1000);
      this.#pendingMs = undefined;
    }
    for (const { name, started, ready, state } of [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])]) if (started && !ready && state?.running) probes.trigger(this.#uid, name);
  }
}

/** Whose containers were told of: a runtime that does not say yet what it is called is no other, and its containers are none. */
function runtimeToldOf({ status }: Pod): string | undefined {
  return [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])].flatMap(({ containerID = "" }) => /^(.+?):\/\//.exec(containerID)?.[1] ?? [])[0];
}
