/**
 * One pod's life on this node. Everything that is done about a pod is done here, one thing at a time:
 *
 *   running       make it so: volumes, sandbox, containers (plan.ts, apply.ts); say so (status)
 *   terminating   nothing is started any more; what runs is stopped within the grace period, then its claims, processors and devices are given back
 *   terminated    its end is told, and not before; volumes and cgroup go; a deleted pod is taken from the API server
 *   finished      and from the runtime, logs too
 *
 * A pod moves forward only. It terminates when it is deleted, when it was removed from the API server behind our back, when the kubelet fails
 * it (eviction, deadline, refused), and when its containers are done.
 *
 * Source: kubernetes v1.36 pkg/kubelet/pod_workers.go, pkg/kubelet/kubelet.go (SyncPod, SyncTerminatingPod, SyncTerminatedPod)
 */
import type { Pod, PodStatus } from "../../core/api/gen/core.v1.ts";
import { asDouble } from "../../core/api/meta/go-integer.ts";
import { isDeleting } from "../../core/api/meta/object-meta.ts";
import { backoffMs } from "../../core/lifecycle/backoff.ts";
import { Elapsed } from "../../core/lifecycle/elapsed.ts";
import type { SpanStart } from "../../core/observe/spans.ts";
import { type Applied, applyPlan } from "./apply.ts";
import type { PodOperation, ResizeTrigger } from "./context.ts";
import { CrashBackoff, crashLimits } from "./crash-backoff.ts";
import { garbageOf, removeGarbage, removePodLogs } from "./garbage.ts";
import { killPod } from "./kill.ts";
import { AllocationRefused } from "./placement/allocation-refused.ts";
import { planPod, type PodPlan } from "./plan.ts";
import { PodReport } from "./pod-report.ts";
import { PodResize } from "./pod-resize.ts";
import { isTerminalPhase, podReference } from "./pod-spec.ts";
import { containerResources } from "./resources/linux-resources.ts";
import { type PodCgroups, podCgroupLimits } from "./resources/pod-cgroups.ts";
import { memoryShortfall } from "./resources/resize.ts";
import { emptyRuntimePod, isAnythingRunning, readRuntimePod, type RuntimePod } from "./runtime-pod.ts";
import { updateSandbox } from "./sandbox/sandbox-update.ts";
import { majorMinor } from "./start-container.ts";
import type { PodFailure } from "./status/pod-status.ts";
import { same } from "./status/status-patch.ts";
import type { ReadyVolume } from "./volumes/ready-volume.ts";
import { AttachLimitExceeded, VolumesNotReady } from "./volumes/volumes.ts";
import type { WorkerDeps } from "./worker-deps.ts";

export type WorkerStage = "running" | "terminating" | "terminated" | "finished";

/** What a look at the pod is called in traces. */
const SPANS: Readonly<Record<WorkerStage, string>> = { running: "syncPod", terminating: "syncTerminatingPod", terminated: "syncTerminatedPod", finished: "syncTerminatedPod" };
const ERROR_RETRY_MS = 10_000;
const NETWORK_RETRY_MS = 1_000;
const CLEANUP_RETRY = { minMs: 500, maxMs: 10_000 };
/** A pod that was taken from the API server at once still gets a moment. */
const GRACE_SECONDS_REMOVED = 1;
/** The runtime has at least this long before it is told that a pod is still there. */
const KILL_SECONDS_MIN = 10;
const NO_VOLUMES: ReadonlyMap<string, ReadyVolume> = new Map();
/** Such a pod ended because the node needed what it had: that goes at once. */
const EVICTED = "Evicted";

export class PodWorker {
  readonly uid: string;
  readonly #deps: WorkerDeps;
  readonly #backoff: CrashBackoff;
  readonly #report: PodReport;
  #pod: Pod;
  #runtime: RuntimePod;
  #hasLooked = false; // at the runtime: until then nothing is known of it
  #asked = 0; // how often it was
  #answered = 0; // what `#runtime` is the answer to; not more than #asked
  #stage: WorkerStage = "running";
  #removed = false;
  #isReclaimed = false;
  #failure: PodFailure | undefined;
  #graceSeconds: number | undefined; // of an eviction
  #late: { cancel(): void } | undefined; // until it has been ended
  #volumes: ReadonlyMap<string, ReadyVolume> | undefined;
  #woken = Promise.withResolvers<void>();
  #sync: AbortController | undefined; // what is being done now
  #killGraceSeconds: number | undefined; // what it was begun with
  readonly #resize: PodResize;
  #resizeTrigger: ResizeTrigger = "periodic_retry"; // of the next look
  readonly #madeMs: number;
  readonly #active: Elapsed; // since it was taken in
  /** What the next look at it is for. */
  #operation: PodOperation = "create";

  constructor(pod: Pod, deps: WorkerDeps) {
    this.uid = pod.metadata.uid;
    this.#pod = pod;
    this.#deps = deps;
    this.#madeMs = deps.context.clock.uptimeMs();
    this.#active = new Elapsed(deps.context.clock);
    const { placement, crashBackoffMsMax } = deps.context.settings;
    this.#backoff = new CrashBackoff(crashLimits(placement.gates, crashBackoffMsMax));
    this.#resize = new PodResize(pod, { ...deps.context, judge: deps.judgeResize, onGranted: () => deps.onStage("pod_resized") });
    this.#report = new PodReport(pod, deps);
    this.#runtime = emptyRuntimePod(this.uid, pod.metadata.name, pod.metadata.namespace);
  }

  /** As the API server has it. */
  get pod(): Pod { return this.#pod; }
  /** With the resources it was granted. */
  get granted(): Pod { return this.#resize.granted(this.#pod); }
  get resizeConditions(): ReturnType<PodResize["conditions"]> { return this.#stage === "running" || this.#stage === "terminating" ? this.#resize.conditions() : []; }
  get isResizeDeferred(): boolean { return this.#resize.isDeferred; }
  get waitsSinceMs(): number | undefined { return this.#resize.waitsSinceMs; }
  get stage(): WorkerStage { return this.#stage; }
  /** Nothing of it runs, and its volumes and control groups are gone. */
  get isReclaimed(): boolean { return this.#isReclaimed; }
  /** Its object is gone, whatever still runs. */
  get isGone(): boolean { return this.#removed; }
  /** Never taken in. */
  get isRefused(): boolean { return this.#failure?.refused ?? false; }
  /** The kubelet has given it up. */
  get hasFailed(): boolean { return this.#failure !== undefined; }
  get runtime(): RuntimePod { return this.#runtime; }
  /** By name, once they are there. */
  get volumes(): ReadonlyMap<string, ReadyVolume> { return this.#volumes ?? NO_VOLUMES; }
  get status(): PodStatus { return this.#report.statusOf(this.#pod); }

  /** The pod's object changed. What is only its status (our own writing, mostly) is nothing to act upon. */
  update(pod: Pod): void {
    const before = this.#pod;
    this.#pod = pod;
    if (isDeleting(pod)) this.#hurry();
    else if (this.#stage === "running") this.#resize.consider(pod, "pod_updated"); // before anything is said of this generation
    if (isWantedOtherwise(before, pod) || (this.#stage === "running" && isTerminalPhase(pod.status?.phase))) { // others may say that it has ended
      if (this.#operation === "sync") this.#operation = "update";
      this.wake();
    }
    else if (pod.spec.readinessGates?.length) this.publish();
    else this.#deps.statuses.reconcile(pod);
  }

  /** The pod's object is gone. */
  remove(pod: Pod = this.#pod): void {
    this.#pod = pod;
    this.#removed = true;
    this.#hurry();
    this.wake();
  }

  /** The kubelet gives the pod up. Why it did first is told; who comes later may be in more of a hurry. */
  fail(failure: PodFailure, graceSeconds?: number): void {
    if (graceSeconds !== undefined) this.#graceSeconds = Math.min(graceSeconds, this.#graceSeconds ?? graceSeconds);
    if (!this.#failure && !failure.refused) this.#tellIfLate(asDouble(graceSeconds ?? this.#pod.spec.terminationGracePeriodSeconds ?? 0));
    this.#failure ??= failure;
    this.#hurry();
    this.wake();
  }

  /** Source: kubernetes v1.36 pkg/kubelet/pod_workers.go killPodNow */
  #tellIfLate(graceSeconds: number): void {
    const { clock, events } = this.#deps.context;
    const seconds = Math.max(KILL_SECONDS_MIN, graceSeconds + Math.floor(graceSeconds / 2));
    this.#late = clock.after(seconds * 1000, () => events.event(podReference(this.#pod), "Warning", "ExceededGracePeriod", "Container runtime did not kill the pod within specified grace period."));
  }

  /** What it waits for to be resized may be there. */
  retryResize(trigger: ResizeTrigger): void {
    this.#resizeTrigger = trigger;
    this.wake();
  }

  /** Something about it may have changed. */
  wake(): void {
    this.#woken.resolve();
  }

  /** The runtime says something happened: told at once, although the worker may be busy. */
  async notice(signal: AbortSignal): Promise<void> {
    this.wake();
    if (this.#sync && this.#stage === "terminating") await this.#observe(signal);
  }

  /** Takes away the dead containers of a pod that has ended, before somebody deletes it. */
  async discardDead(signal: AbortSignal): Promise<void> {
    if (this.#stage === "terminated") await removeGarbage(this.#deps.context, garbageOf(this.#runtime, undefined), signal);
  }

  /** A probe found something out. */
  publish(): void {
    if (this.#stage === "running" || this.#stage === "terminating") this.#sayUnlessEnding();
  }

  /** Ends what is being done when it is no longer wanted, or must end sooner. */
  #hurry(): void {
    if (this.#stage === "running") this.#sync?.abort();
    const grace = this.#graceNow();
    if (this.#stage === "terminating" && grace !== undefined && grace < (this.#killGraceSeconds ?? Number.POSITIVE_INFINITY)) this.#sync?.abort();
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#work(signal);
    } finally {
      this.#late?.cancel();
    }
  }

  async #work(signal: AbortSignal): Promise<void> {
    const { clock, log, metrics, spans } = this.#deps.context;
    metrics.workerStarted((clock.uptimeMs() - this.#madeMs) / 1000);
    let failures = 0; // in a row
    while (!signal.aborted && this.#stage !== "finished") {
      this.#woken = Promise.withResolvers();
      const sync = new AbortController();
      this.#sync = sync;
      const [stage, operation] = [this.#stage, this.#operation];
      this.#operation = "sync";
      const beganMs = clock.uptimeMs();
      let waitMs: number;
      try {
        waitMs = await spans.during(SPANS[stage], this.#spanStart(operation), () => this.#once(AbortSignal.any([signal, sync.signal])));
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        if (sync.signal.aborted) continue; // the world changed: look again
        waitMs = this.#stage === "running" ? this.#retryMs(error) : backoffMs(++failures, CLEANUP_RETRY);
        if (!(error instanceof VolumesNotReady)) log.warn("pod not synced, next try soon", { pod: this.#pod.metadata.name, namespace: this.#pod.metadata.namespace, uid: this.uid, stage: this.#stage, error });
        this.#sayIfPossible();
      } finally {
        this.#sync = undefined;
        metrics.synced(stage === "terminated" ? "terminated" : this.#stage === "running" ? operation : "kill", (clock.uptimeMs() - beganMs) / 1000);
      }
      if (this.#isFinished()) break;
      const idle = new AbortController();
      await Promise.race([this.#woken.promise, clock.sleep(waitMs, AbortSignal.any([signal, idle.signal]))]);
      idle.abort();
    }
  }

  #spanStart(operation: PodOperation): SpanStart {
    const { name, namespace = "", uid } = this.#pod.metadata;
    return { kind: 1, attributes: { "k8s.pod.uid": uid, "k8s.pod": `${namespace}/${name}`, "k8s.pod.name": name, "k8s.pod.update_type": operation, "k8s.namespace.name": namespace } };
  }

  #isFinished(): boolean { return this.#stage === "finished"; }

  #retryMs(error: unknown): number {
    const { random } = this.#deps.context;
    if (error instanceof VolumesNotReady) return error.retryMs;
    if ((error as Error).message.includes("network is not ready")) return NETWORK_RETRY_MS;
    return ERROR_RETRY_MS * (1 + 0.5 * random.next());
  }

  /** One step; returns how long there is nothing to do. */
  async #once(signal: AbortSignal): Promise<number> {
    await this.#observe(signal);
    if (this.#stage === "running" && this.#shouldTerminate()) this.#enter("terminating");
    if (this.#stage === "running") return await this.#syncRunning(signal);
    if (this.#stage === "terminating") {
      await this.#terminate(signal);
      this.#enter("terminated");
    }
    return await this.#cleanUp(signal);
  }

  #enter(stage: WorkerStage): void {
    this.#stage = stage;
    if (stage === "terminated") this.#late?.cancel();
    this.#deps.onStage("pods_removed");
  }

  #shouldTerminate(): boolean {
    if (!this.#failure && !this.#report.hasEnded(this.#pod) && this.#deadlineInMs() <= 0) {
      this.#failure = { reason: "DeadlineExceeded", message: "Pod was active on the node longer than the specified deadline", deadline: true };
      this.#deps.context.events.event(podReference(this.#pod), "Normal", "DeadlineExceeded", "Pod was active on the node longer than the specified deadline");
      this.#say();
    }
    return this.#removed || isDeleting(this.#pod) || this.#failure !== undefined || this.#report.hasEnded(this.#pod);
  }

  #deadlineInMs(): number {
    const { startTime } = this.status;
    const activeMs = startTime === undefined ? 0 : this.#active.sinceMs(startTime); // whether or not there is a deadline: it may be given one
    const { activeDeadlineSeconds } = this.#pod.spec;
    return activeDeadlineSeconds === undefined || startTime === undefined ? Number.POSITIVE_INFINITY : activeDeadlineSeconds * 1000 - activeMs;
  }

  async #observe(signal: AbortSignal): Promise<void> {
    const { cri, clock, metrics } = this.#deps.context;
    const beganMs = clock.uptimeMs(), nth = ++this.#asked;
    const runtime = await readRuntimePod(cri, this.uid, signal);
    metrics.podListed((clock.uptimeMs() - beganMs) / 1000);
    await this.#report.observe(runtime);
    if (nth < this.#answered) return; // who was told of an event asked earlier, and hears it later
    this.#answered = nth;
    this.#runtime = runtime;
    this.#hasLooked = true;
    this.#resize.observe(this.granted, runtime);
    this.#sayUnlessEnding();
  }

  /** Once no container of a pod that ends runs any more, it is told once, when all is over. Source: kubernetes v1.36 pkg/kubelet/kubelet.go SyncTerminatingPod */
  #sayUnlessEnding(): void {
    if (this.#stage !== "terminating" || this.#runtime.containers.some(({ state }) => state === "running" || state === "unknown")) this.#say();
  }

  /** Whatever the runtime tells: nobody would look after the pod any more, not even when it is deleted. */
  #sayIfPossible(): void {
    try {
      this.#say();
    } catch (error) {
      this.#deps.context.log.error("what a pod is cannot be told, next try soon", { pod: this.#pod.metadata.name, namespace: this.#pod.metadata.namespace, uid: this.uid, error });
    }
  }

  #say(): void {
    if (this.#removed || !(this.#hasLooked || this.isRefused)) return; // nobody is left to be told, or nothing known
    this.#report.say({ pod: this.#pod, granted: this.granted, runtime: this.#runtime, resize: this.resizeConditions, failure: this.#failure, isTerminated: this.#stage === "terminated" });
  }

  async #syncRunning(signal: AbortSignal): Promise<number> {
    const { context, probes } = this.#deps;
    const { clock, objects, cgroups, random, events } = context;
    if (this.#resize.consider(this.#pod, this.#resizeTrigger)) this.#say();
    this.#resizeTrigger = "periodic_retry";
    const pod = this.granted;
    objects.retain(pod);
    probes.add(pod);
    const unlimitedCpu = context.placement.hasExclusiveCpus(this.uid);
    const widened = { unlimitedCpu, widen: this.#resize.inProgress }; // narrower once its containers are
    const refusal = await this.#resizeSandbox(pod, widened, signal);
    try {
      if (refusal === undefined) cgroups.ensure(pod, widened);
    } catch (error) {
      events.event(podReference(pod), "Warning", "FailedCreatePodContainer", `unable to ensure pod container exists: ${(error as Error).message}`);
      throw error;
    }
    const missingAtMs = await this.#prepare(pod, signal);
    if (missingAtMs === undefined) return 0;

    const wished = planPod({ pod, runtime: this.#runtime, probes, resize: (spec, seen) => this.#resize.decide(pod, spec, seen) });
    const shortfall = refusal ?? (this.#resize.inProgress ? this.#memoryShortfall(pod, wished) : undefined);
    if (shortfall !== undefined && this.#resize.failed(pod, shortfall)) this.#say();
    const { retryAtMs: appliedAtMs = Number.POSITIVE_INFINITY, resizeError: updateError } = await this.#apply(pod, shortfall === undefined ? wished : { ...wished, update: [] }, signal);
    const resizeError = updateError ?? (shortfall === undefined ? await this.#resizeSandbox(pod, { unlimitedCpu }, signal) : undefined);
    if (resizeError !== undefined && this.#resize.failed(pod, resizeError)) this.#say();
    const isResized = shortfall === undefined && resizeError === undefined;
    if (this.#resize.inProgress && isResized) cgroups.ensure(pod, { unlimitedCpu });
    if (isResized && this.#resize.conclude(this.granted, this.#runtime)) this.#say();
    await removeGarbage(context, garbageOf(this.#runtime, { ...context.settings.deadContainers, nowMs: clock.nowMs() }), signal).catch((error: unknown) => {
      signal.throwIfAborted();
      context.log.warn("dead containers not removed, next try at the next look", { pod: pod.metadata.name, namespace: pod.metadata.namespace, error }); // the pod goes on without that
    });
    if (this.#shouldTerminate()) return 0;
    const regularAtMs = clock.nowMs() + context.settings.syncMs * (1 + 0.5 * random.next());
    const shortAtMs = isResized ? Number.POSITIVE_INFINITY : clock.nowMs() + ERROR_RETRY_MS;
    return Math.max(0, Math.min(this.#deadlineInMs(), Math.min(regularAtMs, missingAtMs, shortAtMs, appliedAtMs) - clock.nowMs()));
  }

  /** Before its control group becomes another, while it is resized. Returns why the runtime does not want that. */
  async #resizeSandbox(pod: Pod, options: Parameters<PodCgroups["change"]>[1], signal: AbortSignal): Promise<string | undefined> {
    const { cri, cgroups, machine } = this.#deps.context;
    const change = this.#resize.inProgress ? cgroups.change(pod, options) : undefined;
    const sandbox = this.#runtime.sandboxes[0];
    if (!change || !sandbox?.ready) return undefined;
    try {
      await updateSandbox(cri, { machine, sandboxId: sandbox.id, pod, ...change }, signal);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      return (error as Error).message;
    }
  }

  /** What its containers need before they start. Returns when to look again for what has not come, by the wall clock; undefined: the node cannot give it, and the pod has failed. */
  async #prepare(pod: Pod, signal: AbortSignal): Promise<number | undefined> {
    const { devices, claims, volumes, placement, events } = this.#deps.context;
    await Promise.all([placement.written(), this.#resize.written()]);
    try {
      await devices?.prepare(pod, signal);
    } catch (error) {
      if (!(error instanceof AllocationRefused)) throw error;
      const failure = refusedAllocation(error);
      events.event(podReference(pod), "Warning", failure.reason, error.message);
      this.fail(failure);
      return undefined;
    }
    await claims?.prepare(pod, { anew: !this.#runtime.sandboxes.some(({ ready }) => ready), signal });
    try {
      this.#volumes = await volumes.prepare(pod, signal);
      return Number.POSITIVE_INFINITY;
    } catch (error) {
      if (error instanceof AttachLimitExceeded) {
        this.fail({ reason: "VolumeAttachmentLimitExceeded", message: `Pod was rejected: ${error.message}`, refused: true });
        return undefined;
      }
      if (!this.#volumes || !(error instanceof VolumesNotReady)) throw error;
      return this.#deps.context.clock.nowMs() + error.retryMs; // it was there once: the pod goes on with what it has
    }
  }

  async #apply(pod: Pod, plan: PodPlan, signal: AbortSignal): Promise<Applied> {
    const changes = plan.killPod || plan.kill.length + plan.update.length + plan.start.length + plan.reset.length > 0;
    const { waiting } = this.#report;
    const applied = await applyPlan(this.#deps.context, {
      pod, runtime: this.#runtime, plan, volumes: this.volumes, backoff: this.#backoff,
      onSandbox: (runtime) => {
        this.#runtime = runtime;
        this.#say();
      },
    }, signal);
    for (const name of applied.started) waiting.delete(name);
    for (const [name, reason] of applied.waiting) waiting.set(name, reason);
    if (changes) await this.#observe(signal);
    return applied;
  }

  /** Whether memory limits would become less than what is used. */
  #memoryShortfall(pod: Pod, plan: PodPlan): string | undefined {
    const { cgroups, machine } = this.#deps.context;
    const of = plan.update.map(({ container, spec }) => ({
      container: container.name, from: container.resources?.memory_limit_in_bytes ?? 0, to: containerResources(pod, spec.container, machine).memory_limit_in_bytes ?? 0,
      usedBytes: cgroups.memoryBytes(pod, container.id),
    }));
    return memoryShortfall([{ from: cgroups.limits(this.uid)?.memoryBytes ?? 0, to: podCgroupLimits(pod).memoryBytes ?? 0, usedBytes: cgroups.memoryBytes(pod) }, ...of]);
  }

  /** How long its containers have, the least that anybody says; undefined: as their spec says. */
  #graceNow(): number | undefined {
    const { metadata, spec } = this.#pod;
    const ownSeconds = asDouble(spec.terminationGracePeriodSeconds ?? 30);
    const said = [this.#graceSeconds, isDeleting(this.#pod) ? asDouble(metadata.deletionGracePeriodSeconds ?? ownSeconds) : this.#removed ? ownSeconds : undefined].filter((seconds) => seconds !== undefined);
    return said.length === 0 ? undefined : Math.max(GRACE_SECONDS_REMOVED, Math.min(...said));
  }

  async #terminate(signal: AbortSignal): Promise<void> {
    const { context, probes } = this.#deps;
    const { cri, clock, events, log, metrics, settings } = context;
    probes.stopLiveness(this.uid);
    this.#killGraceSeconds = this.#graceNow();
    try {
      await killPod({ cri, clock, events, log, metrics, version: majorMinor(settings.version) }, this.#pod, this.#runtime, { graceSeconds: this.#killGraceSeconds, signal });
    } catch (error) {
      if (!signal.aborted) events.event(podReference(this.#pod), "Warning", "FailedKillPod", `error killing pod: ${(error as Error).message}`);
      throw error;
    }
    await this.#observe(signal);
    if (isAnythingRunning(this.#runtime)) throw new Error("containers still run after they were stopped");
    probes.remove(this.uid);
    await context.claims?.release(this.uid, signal); // who is told of its end may want them
    context.placement.release(this.uid);
  }

  #isEvicted(): boolean { return (this.#failure?.reason ?? this.status.reason) === EVICTED; }

  async #cleanUp(signal: AbortSignal): Promise<number> {
    const { context, statuses } = this.#deps;
    this.#say();
    await this.#resize.written().catch(() => undefined); // what is not written by now is not needed any more, nor the pod's directory
    const stays = !this.#removed && !isDeleting(this.#pod) && !this.#isEvicted(); // its object, until someone deletes it; its containers and logs stay with it
    const comesAgain = this.#deps.comesAgain(this.uid);
    await context.volumes.release(this.uid, { keepMessages: stays || comesAgain, signal });
    this.#volumes = undefined;
    if (!context.cgroups.remove(this.uid)) throw new Error("processes are left in the pod's cgroup");
    await context.userNamespaces.release(this.uid);
    context.objects.release(this.uid);
    this.#isReclaimed = true; // whatever the API server is to be told still
    if (stays) return context.settings.syncMs; // who deletes it meanwhile wakes us
    if (!this.#removed && isDeleting(this.#pod)) {
      await statuses.written(this.uid);
      await this.#deps.deleteObject(this.#pod, signal);
    }
    if (!this.#removed && !this.#isEvicted()) return context.settings.syncMs; // until its object is gone its logs stay
    if (!comesAgain) {
      await removeGarbage(context, garbageOf(this.#runtime, undefined), signal);
      const { name, namespace = "" } = this.#pod.metadata;
      await removePodLogs(context, { name, namespace, uid: this.uid });
    }
    if (!this.#removed) return context.settings.syncMs;
    statuses.forget(this.uid);
    this.#enter("finished");
    return 0;
  }
}

export function refusedAllocation(error: AllocationRefused): PodFailure {
  return { reason: error.reason, message: `Pod was rejected: ${error.message}`, refused: true };
}

function isWantedOtherwise(a: Pod, b: Pod): boolean {
  const [x, y] = [a.metadata, b.metadata];
  const sameSpec = x.generation !== undefined && x.generation === y.generation ? true : same(a.spec, b.spec);
  return !sameSpec || x.deletionTimestamp !== y.deletionTimestamp || x.deletionGracePeriodSeconds !== y.deletionGracePeriodSeconds || !same(x.labels, y.labels) || !same(x.annotations, y.annotations)
    || !same(x.finalizers, y.finalizers);
}
