/**
 * The resources of one pod as they change: what it wishes (its spec), what it was granted, and whether its containers have it yet. The worker
 * asks; resources/resize.ts decides.
 */
import type { Pod, PodCondition } from "../../core/api/gen/core.v1.ts";
import { parseTime } from "../../core/api/meta/time.ts";
import type { EventRecorder } from "../../core/client/events.ts";
import { type Clock, timestamp } from "../../core/lifecycle/clock.ts";
import type { Log } from "../../core/observe/log.ts";
import type { StateFile } from "../os/state-file.ts";
import type { KubeletMetrics, ResizeTrigger } from "./context.ts";
import { allContainers, type NamedContainer, podReference } from "./pod-spec.ts";
import type { Placement } from "./placement/placement.ts";
import { allocationFile, readAllocation } from "./resources/allocation-record.ts";
import { containerResources, type Machine } from "./resources/linux-resources.ts";
import { type Allocation, allocationOf, allocationTold, infeasibleDetail, memoryRequest, resizeMessage, resizeOf, resizeOperations, restartsFor, type Verdict, withAllocation } from "./resources/resize.ts";
import type { RuntimeContainer, RuntimePod } from "./runtime-pod.ts";
import type { ResizeCondition } from "./status/pod-status.ts";
import { same } from "./status/status-patch.ts";

interface Deps {
  readonly settings: { readonly dataDir: string };
  readonly machine: Machine;
  readonly events: EventRecorder;
  readonly log: Log;
  readonly placement: Pick<Placement, "pinning">;
  readonly clock: Pick<Clock, "nowMs" | "uptimeMs">;
  readonly metrics: Pick<KubeletMetrics, "resizeAsked" | "resizeInfeasible" | "resizeTook" | "resizeWaited">;
  readonly judge: (wish: Pod) => Verdict;
  /** It has more or less than before: others that wait may be granted theirs. */
  readonly onGranted: () => void;
}

/** Of which generation of the pod it is said, and when it was found to be so. */
interface Said { readonly generation: number | undefined; readonly probeTime: string | undefined }

export class PodResize {
  readonly #deps: Deps;
  readonly #file: StateFile;
  #allocation: Allocation;
  #pending: (Said & { readonly reason: "Infeasible" | "Deferred"; readonly message: string }) | undefined; // why the wish is not granted
  #waitsSinceMs: number | undefined;
  #progress: (Said & { /** Why some container does not have it. */ readonly error?: string }) | undefined; // granted, and some container does not have it yet
  #wished: Allocation; // last, as its spec said
  #grantedAtMs: number | undefined; // by uptime
  readonly #memory = new Map<string, { readonly id: string; readonly request: bigint }>(); // by container: what it was started with, which no runtime tells

  constructor(pod: Pod, deps: Deps) {
    this.#deps = deps;
    this.#file = allocationFile(deps.settings.dataDir, pod.metadata.uid);
    // Of a pod that is new here there is none, and whoever asks the disk waits for it with all that the node does, its DNS and its lease, too.
    const recorded = pod.status?.startTime === undefined ? undefined : readAllocation(deps.settings.dataDir, pod.metadata.uid, deps.log);
    this.#allocation = recorded ?? allocationTold(pod);
    this.#wished = allocationOf(pod);
    const said = (wanted: string): PodCondition | undefined => pod.status?.conditions?.find(({ type }) => type === wanted); // by us, before a restart
    const [pending, progress] = [said("PodResizePending"), said("PodResizeInProgress")];
    this.#waitsSinceMs = parseTime(pending?.lastTransitionTime ?? "");
    if (pending) this.#pending = { reason: pending.reason === "Infeasible" ? "Infeasible" : "Deferred", message: pending.message ?? "", ...before(pending) };
    if (progress) this.#progress = { ...before(progress), ...(progress.reason === "Error" ? { error: progress.message ?? "" } : {}) };
  }

  get inProgress(): boolean { return this.#progress !== undefined; }
  get isDeferred(): boolean { return this.#pending?.reason === "Deferred"; }
  get waitsSinceMs(): number | undefined { return this.#waitsSinceMs; }

  /** The pod with the resources it was granted. */
  granted(pod: Pod): Pod {
    return withAllocation(pod, this.#allocation);
  }

  /** Grants what the pod wishes now, if the node can. Returns whether there is something to say. */
  consider(pod: Pod, trigger: ResizeTrigger = "pod_updated"): boolean {
    const { events, judge, metrics } = this.#deps;
    const wished = allocationOf(pod);
    for (const one of resizeOperations(this.#wished, wished)) metrics.resizeAsked(one);
    this.#wished = wished;
    if (same(wished, this.#allocation)) {
      const changed = this.#pending !== undefined;
      this.#pending = undefined;
      this.#waitsSinceMs = undefined;
      return changed;
    }
    const verdict = judge(pod);
    const { generation } = pod.metadata;
    if (!verdict.fits && this.#pending?.message === verdict.message && this.#pending.generation === generation) return false;
    if (verdict.fits) {
      if (this.isDeferred) metrics.resizeWaited(trigger);
      this.#allocation = wished;
      this.#grantedAtMs = this.#deps.clock.uptimeMs();
      this.#pending = undefined;
      this.#waitsSinceMs = undefined;
      this.#progress = this.#said(generation);
      events.event(podReference(pod), "Normal", "ResizeStarted", resizeMessage("Pod resize started", pod));
    } else {
      const { reason, what, message } = verdict;
      const isTold = this.#pending?.reason === reason && this.#pending.generation === generation; // that more or less is missing meanwhile is told by the condition
      if (reason === "Infeasible") metrics.resizeInfeasible(infeasibleDetail(message));
      this.#waitsSinceMs ??= this.#deps.clock.nowMs();
      this.#pending = { reason, message, ...this.#said(generation) };
      if (!isTold) events.event(podReference(pod), "Warning", `Resize${reason}`, resizeMessage(`Pod resize ${what}`, pod, { error: message }));
    }
    this.#file.save(() => this.#allocation);
    if (verdict.fits) this.#deps.onGranted();
    return true;
  }

  /** What it was granted is on disk. */
  async written(): Promise<void> { await this.#file.written(); }

  /** It cannot be carried out now. Returns whether there is something to say. */
  failed(granted: Pod, error: string): boolean {
    if (this.#progress?.error?.replaceAll(/\d+/g, "") === error.replaceAll(/\d+/g, "")) return false;
    const { generation } = this.#progress ?? granted.metadata;
    this.#progress = { ...this.#said(generation), error };
    this.#took(false);
    this.#deps.events.event(podReference(granted), "Warning", "ResizeError", resizeMessage("Pod resize error", granted, { error, generation }));
    return true;
  }

  /** Containers are there: those that are new have what is granted now. */
  observe(granted: Pod, runtime: RuntimePod): void {
    for (const { container, kind } of allContainers(granted.spec)) {
      const seen = runtime.containers.find(({ name, state }) => name === container.name && state === "running");
      if (kind !== "ephemeral" && seen && this.#memory.get(seen.name)?.id !== seen.id) this.#memory.set(seen.name, { id: seen.id, request: memoryRequest(container) });
    }
  }

  /** What a running container of the granted pod needs. */
  decide(granted: Pod, { container, kind }: NamedContainer, seen: RuntimeContainer): "none" | "update" | "restart" {
    if (kind === "ephemeral") return "none";
    const had = this.#memory.get(seen.name);
    if (had?.id === seen.id && had.request !== memoryRequest(container)) {
      if (restartsFor("memory", container)) return "restart";
      this.#memory.set(seen.name, { id: seen.id, request: memoryRequest(container) }); // a request is no limit: there is nothing to do
    }
    return resizeOf(container, { ...containerResources(granted, container, this.#deps.machine), ...this.#deps.placement.pinning(granted.metadata.uid, container.name) }, seen.resources);
  }

  /** Returns true once, when every running container has what it was granted. */
  conclude(granted: Pod, runtime: RuntimePod): boolean {
    if (!this.#progress) return false;
    const specs = new Map(allContainers(granted.spec).map((spec) => [spec.container.name, spec]));
    if (runtime.containers.some((seen) => seen.state === "running" && specs.has(seen.name) && this.decide(granted, specs.get(seen.name)!, seen) !== "none")) return false;
    const { generation } = this.#progress;
    this.#progress = undefined;
    this.#took(true);
    this.#deps.events.event(podReference(granted), "Normal", "ResizeCompleted", resizeMessage("Pod resize completed", granted, { generation }));
    return true;
  }

  #took(success: boolean): void {
    if (this.#grantedAtMs !== undefined) this.#deps.metrics.resizeTook(this.#deps.clock.uptimeMs() - this.#grantedAtMs, success);
    if (success) this.#grantedAtMs = undefined;
  }

  #said(generation: number | undefined): Said { return { generation, probeTime: timestamp(this.#deps.clock.nowMs()) }; }

  /** For the status, while they hold. Each is of the generation that it is said of, which the pod may have left since. */
  conditions(): ResizeCondition[] {
    const of = ({ generation, probeTime }: Said): Pick<ResizeCondition, "observedGeneration" | "lastProbeTime"> => ({
      ...(generation === undefined ? {} : { observedGeneration: generation }), ...(probeTime === undefined ? {} : { lastProbeTime: probeTime }),
    });
    const [pending, progress] = [this.#pending, this.#progress];
    return [
      ...(pending ? [{ type: "PodResizePending", reason: pending.reason, ...(pending.message ? { message: pending.message } : {}), ...of(pending) }] : []),
      ...(progress ? [{ type: "PodResizeInProgress", ...(progress.error === undefined ? {} : { reason: "Error", message: progress.error }), ...of(progress) }] : []),
    ];
  }
}

function before({ observedGeneration, lastProbeTime }: PodCondition): Said { return { generation: observedGeneration, probeTime: lastProbeTime }; }
