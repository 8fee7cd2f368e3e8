/**
 * The pods of this node: who is admitted, one worker for each, and the end of what nobody knows any more (leftovers.ts).
 *
 * Source: kubernetes v1.36 pkg/kubelet/kubelet.go (HandlePodAdditions)
 */
import type { Node, Pod, ResourceList } from "../../core/api/gen/core.v1.ts";
import { compareText } from "../../core/api/meta/compare-text.ts";
import { isDeleting, keyOf } from "../../core/api/meta/object-meta.ts";
import type { Informer } from "../../core/client/informer.ts";
import { aborted } from "../../core/lifecycle/aborted.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Cri } from "../cri/client.ts";
import { type AdmissionFacts, nodeRefusal, refusalOf, type Shortfall, shortfalls, stateRefusal } from "./admission.ts";
import type { ResizeTrigger } from "./context.ts";
import { sweepLeftovers } from "./leftovers.ts";
import { AllocationRefused } from "./placement/allocation-refused.ts";
import { CONFIG_SEEN, fromApi, isCriticalPod, isMirrorPod, isStaticPod, isTerminalPhase, podReference } from "./pod-spec.ts";
import { PodWorker, refusedAllocation } from "./pod-worker.ts";
import { podsToPreempt } from "./preemption.ts";
import { othersBefore, type ResizeWish } from "./resources/resize-order.ts";
import { changedResources, judgeResize, swapRefusal, type Verdict } from "./resources/resize.ts";
import { isAnythingRunning, type RuntimeSummary } from "./runtime-pod.ts";
import { NOT_ADMITTED } from "./shutdown/shutdown.ts";
import type { MirrorPods } from "./static-pods/mirrors.ts";
import { disruption } from "./status/disruption.ts";
import type { PodFailure } from "./status/pod-status.ts";
import { same } from "./status/status-patch.ts";
import type { WorkerDeps } from "./worker-deps.ts";

/** A mirror that could not be made is tried again this late. */
const MIRROR_MS = 20_000;
/** A driver that could not release a claim of a pod that went while we did not run is asked again this late. */
const CLAIMS_MS = 60_000;
/** Service managers kill what has not ended in 90 seconds. */
const END_WAIT_MS = 20_000;

interface Deps {
  readonly mirrors: MirrorPods;
  /** There is a place for manifests: until it is known what stands there (setStatic), nothing is ended for not standing there. */
  readonly hasManifests: boolean;
  readonly clock: Clock;
  readonly pods: Informer<Pod>;
  readonly worker: WorkerDeps;
  readonly cri: Cri;
  readonly log: Log;
  readonly node: () => Pick<Node, "metadata" | "spec">;
  readonly allocatable: () => ResourceList;
  readonly pressures: () => readonly string[];
  readonly strictGroups: () => boolean | undefined;
  readonly declares: () => readonly string[] | undefined;
  /** Refuses whatever comes. */
  readonly shuttingDown?: (() => boolean) | undefined;
  readonly signal: AbortSignal;
}

export class PodManager {
  readonly #deps: Deps;
  readonly #workers = new Map<string, PodWorker>();
  readonly #running = new Set<Promise<void>>();
  #inRuntime: ReadonlyMap<string, RuntimeSummary> = new Map();
  #listed = Promise.withResolvers<void>();
  #isListed = false;
  #started = false;
  #static: readonly Pod[] = [];
  #knowsStatic: boolean;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#knowsStatic = !deps.hasManifests;
  }

  worker(uid: string): PodWorker | undefined { return this.#workers.get(uid); }

  workers(): IterableIterator<PodWorker> { return this.#workers.values(); }

  *runningLogs(): Generator<{ readonly containerId: string; readonly path: string }> {
    for (const { runtime } of this.#workers.values()) for (const { id, logPath, state } of runtime.containers) if (state === "running") yield { containerId: id, path: logPath };
  }

  /** Takes charge once both the API server and the runtime have said what there is; returns when `signal` aborts and all workers have ended. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.race([this.#listed.promise, aborted(signal)]);
    this.#reconcileStatic(); // these wait for no API server
    await this.#deps.pods.whenSynced(signal);
    if (signal.aborted) return await this.#settled(this.#running);
    this.#started = true;
    this.#deps.worker.context.placement.retain(new Set([...[...this.#deps.pods.list(), ...this.#static].map(({ metadata }) => metadata.uid), ...this.#uidsRunning()]));
    for (const pod of [...this.#deps.pods.list()].toSorted(byAge)) this.#onPod(this.#fromApi(pod)); // the oldest have the best claim to what there is
    const stop = this.#deps.pods.onChange(({ object, deleted }) => (deleted ? this.#onGone(this.#fromApi(object)) : this.#onPod(this.#fromApi(object))));
    await this.#sweep();
    const claims = this.#retainClaims(signal);
    for await (const _ of this.#deps.clock.every(MIRROR_MS, signal)) await this.#reconcileMirrors();
    stop();
    await this.#settled([...this.#running, claims]);
  }

  /** What they have is their own until they have ended, whether or not somebody sees to them yet. */
  #uidsRunning(): string[] { return [...this.#inRuntime.values()].flatMap((one) => (one.running ? [one.uid] : [])); }

  /** Containers that are being started are waited for, so that they have not failed; but a runtime that never answers does not keep the kubelet. */
  async #settled(works: Iterable<Promise<void>>): Promise<void> {
    const over = new AbortController();
    await Promise.race([Promise.allSettled(works), this.#deps.clock.sleep(END_WAIT_MS, over.signal)]);
    over.abort();
  }

  async #retainClaims(signal: AbortSignal): Promise<void> {
    for await (const _ of this.#deps.clock.every(CLAIMS_MS, signal)) await this.#deps.worker.context.claims?.retain(new Set([...this.#workers.keys(), ...this.#uidsRunning()]), signal);
  }

  /** From the runtime's event stream. */
  onRuntimeChange(uid: string): void {
    const { signal, log } = this.#deps;
    this.#workers.get(uid)?.notice(signal).catch((error: unknown) => {
      if (!signal.aborted) log.debug("pod not looked at, its worker will", { uid, error });
    });
  }

  /** From the runtime's list. */
  onRuntimeList(pods: ReadonlyMap<string, RuntimeSummary>): void {
    this.#inRuntime = pods;
    this.#isListed = true;
    this.#listed.resolve();
    if (this.#started) void this.#sweep();
  }

  /** All pods of manifests on this machine. */
  setStatic(pods: readonly Pod[]): void {
    this.#static = pods;
    const isFirst = !this.#knowsStatic;
    this.#knowsStatic = true;
    this.#reconcileStatic();
    if (isFirst && this.#started) void this.#sweep();
  }

  /** A manifest says that it is to run. */
  isStatic(uid: string): boolean { return this.#static.some(({ metadata }) => metadata.uid === uid); }

  /** One after the other: a changed manifest's new pod starts once the old one is gone. */
  #reconcileStatic(): void {
    if (!this.#isListed) return;
    const wanted = new Set(this.#static.map(({ metadata }) => metadata.uid));
    for (const worker of this.#workers.values()) if (isStaticPod(worker.pod) && !wanted.has(worker.uid)) worker.remove();
    for (const pod of this.#static) {
      const known = this.#workers.get(pod.metadata.uid);
      const now = known && asSeenBefore(pod, known.pod);
      if (now && !known.isGone && !same(now, known.pod)) known.update(now); // its manifest says who it is: it is changed, not another
      const taken = [...this.#workers.values()].some((worker) => worker.uid === pod.metadata.uid || keyOf(worker.pod) === keyOf(pod));
      if (!taken) this.#admit(pod);
    }
    void this.#reconcileMirrors();
  }

  async #reconcileMirrors(): Promise<void> {
    if (!this.#started || !this.#knowsStatic) return;
    const ending = [...this.#workers.values()].filter((worker) => worker.isGone && isStaticPod(worker.pod)).map(({ pod }) => keyOf(pod));
    await this.#deps.mirrors.reconcile(this.#static, new Set(ending));
    for (const worker of this.#workers.values()) if (isStaticPod(worker.pod)) worker.publish();
  }

  #onPod(pod: Pod): void {
    if (isMirrorPod(pod)) {
      this.#deps.mirrors.observe(pod, false);
      if (isDeleting(pod)) void this.#reconcileMirrors();
      return;
    }
    const known = this.#workers.get(pod.metadata.uid);
    if (known) {
      const { clock, metrics } = this.#deps.worker.context;
      metrics.podRead(pod, clock.nowMs());
      known.update(pod);
      return;
    }
    this.#admit(pod);
  }

  #admit(pod: Pod): void {
    const worker = new PodWorker(pod, this.#deps.worker);
    const refusal = this.#refusal(worker.granted); // what it wishes beside that can wait
    this.#start(worker);
    const { metrics } = this.#deps.worker.context;
    metrics.podSeen(pod);
    if (!refusal) return;
    metrics.admissionRefused(refusal.reason);
    this.#deps.worker.context.events.event(podReference(pod), "Warning", refusal.reason, refusal.message.replace(/^Pod was rejected: /, ""));
    worker.fail(refusal);
  }

  /** What runs already, has ended, or is about to end is not asked. */
  #refusal(pod: Pod): PodFailure | undefined {
    const { uid } = pod.metadata;
    if (isTerminalPhase(pod.status?.phase) || isDeleting(pod)) return undefined;
    if (this.#inRuntime.get(uid)?.running) {
      this.#keepPlace(pod);
      return undefined;
    }
    if (this.#deps.shuttingDown?.()) return NOT_ADMITTED;
    const others = [...this.#workers.values()].filter((worker) => worker.uid !== uid && this.#counts(worker)).map((worker) => worker.granted);
    const facts = this.#facts(pod, others);
    const refusal = stateRefusal(facts) ?? this.#placeRefusal(pod); // nobody is ended for a pod that has no place all the same
    if (refusal) return refusal;
    const missing = isCriticalPod(pod) ? shortfalls(facts) : [];
    const unfit = nodeRefusal(facts, { resources: missing.length === 0 }) ?? this.#makeRoom(pod, others, missing);
    if (unfit) this.#deps.worker.context.placement.release(uid);
    return unfit;
  }

  /** Gives the pod its processors, memory and devices; why it cannot have them. */
  #placeRefusal(pod: Pod): PodFailure | undefined {
    const { placement } = this.#deps.worker.context;
    for (const { uid, isGone } of this.#workers.values()) if (isGone) placement.release(uid); // its processors and devices too
    try {
      placement.admit(pod);
      return undefined;
    } catch (error) {
      if (error instanceof AllocationRefused) return refusedAllocation(error);
      throw error;
    }
  }

  #facts(pod: Pod, others: readonly Pod[]): AdmissionFacts {
    const { node, allocatable, pressures, strictGroups, declares, worker: { context: { machine, settings } } } = this.#deps;
    return { os: machine.os, pod, others, node: node(), allocatable: allocatable(), pressures: pressures(), strictGroups: strictGroups(), declares: declares(), appArmor: machine.appArmor, allowedUnsafeSysctls: settings.allowedUnsafeSysctls };
  }

  /** It ran before we did: what it has it keeps; it is given what it has not yet, if that is to be had. */
  #keepPlace(pod: Pod): void {
    try {
      this.#deps.worker.context.placement.admit(pod);
    } catch (error) {
      if (!(error instanceof AllocationRefused)) throw error;
      this.#deps.log.warn("a running pod would not be admitted again: it goes on with what it has", { pod: pod.metadata.name, namespace: pod.metadata.namespace, reason: error.reason, error });
    }
  }

  /** Ends other pods for a critical one. Returns why it is refused when that would not be enough; then nobody is ended. */
  #makeRoom(pod: Pod, others: readonly Pod[], missing: readonly Shortfall[]): PodFailure | undefined {
    if (missing.length === 0) return undefined;
    const { clock, log, worker: { context } } = this.#deps;
    let victims: readonly Pod[];
    try {
      victims = podsToPreempt(pod, others, missing);
    } catch (error) {
      return { reason: "UnexpectedAdmissionError", message: `Pod was rejected: Unexpected error while attempting to recover from admission failure: ${(error as Error).message}`, refused: true };
    }
    for (const victim of victims) {
      const message = "Preempted in order to admit critical pod";
      log.info("ending a pod to make room for a critical one", { pod: victim.metadata.name, namespace: victim.metadata.namespace, for: pod.metadata.name });
      context.events.event(podReference(victim), "Warning", "Preempting", message);
      context.metrics.preempted(missing[0]?.resource ?? "");
      this.#workers.get(victim.metadata.uid)?.fail({ reason: "Preempting", message, condition: disruption(victim, "Pod was preempted by Kubelet to accommodate a critical pod.", clock.nowMs()) });
    }
    return undefined;
  }

  /**
   * Whether its resources are taken: until nothing of it runs any more, which is when its end is told, or until its object is gone.
   * Source: kubernetes v1.36 pkg/kubelet/kubelet_pods.go GetActivePods
   */
  #counts({ stage, status, runtime, isGone, isRefused }: PodWorker): boolean {
    const isOver = isGone || ((isRefused || isTerminalPhase(status.phase)) && !isAnythingRunning(runtime));
    return !isOver && (stage === "running" || stage === "terminating");
  }

  /** A pod that wishes more or less is looked at as if it came anew; for a critical one room is made. */
  judgeResize(pod: Pod): Verdict {
    const own = this.#workers.get(pod.metadata.uid);
    const rivals = [...this.#workers.values()].filter((worker) => worker !== own && this.#counts(worker));
    const { placement, machine } = this.#deps.worker.context;
    const judge = ({ pod: wish, granted }: ResizeWish, others: readonly Pod[], resources = true): Verdict => {
      const impossible = swapRefusal(granted, wish, machine) ?? placement.resizeRefusal(wish, changedResources(granted, wish));
      const refusal = refusalOf(this.#facts(wish, others), { resources }) ?? (this.#deps.shuttingDown?.() ? NOT_ADMITTED : undefined);
      return judgeResize({ os: machine.os, impossible, refusal });
    };
    const wish = { pod, granted: own?.granted ?? pod, sinceMs: own?.waitsSinceMs };
    const waiting = rivals.filter((worker) => worker.stage === "running" && worker.isResizeDeferred).map((worker) => ({ pod: worker.pod, granted: worker.granted, sinceMs: worker.waitsSinceMs }));
    const others = othersBefore(wish, { waiting, others: rivals.map(({ granted }) => granted), fits: (one, seen) => judge(one, seen).fits });
    const missing = isCriticalPod(pod) ? shortfalls(this.#facts(pod, others)) : [];
    const verdict = judge(wish, others, missing.length === 0);
    return verdict.fits ? judgeResize({ os: machine.os, refusal: this.#makeRoom(pod, others, missing) }) : verdict;
  }

  /** Something was freed: those who wait for it look again. */
  retryResizes(trigger: ResizeTrigger): void {
    for (const worker of this.#workers.values()) if (worker.isResizeDeferred) worker.retryResize(trigger);
  }

  #onGone(pod: Pod): void {
    if (isMirrorPod(pod)) {
      this.#deps.mirrors.observe(pod, true);
      void this.#reconcileMirrors();
      return;
    }
    this.#deps.worker.context.metrics.podGone(pod.metadata.uid);
    this.#workers.get(pod.metadata.uid)?.remove(pod);
  }

  #start(worker: PodWorker): void {
    this.#workers.set(worker.uid, worker);
    this.#balance();
    const { signal, log } = this.#deps;
    const running = worker.run(signal).catch((error: unknown) => log.error("pod worker ended, this is a bug", { uid: worker.uid, error })).then(() => {
      this.#running.delete(running);
      if (worker.stage === "finished") this.#workers.delete(worker.uid);
      if (signal.aborted) return;
      this.#balance();
      if (worker.stage === "finished") this.#beginAgain(worker);
      this.#reconcileStatic();
    });
    this.#running.add(running);
  }

  /** It is there again under the same uid: a manifest came back, or the API server went back to an older state, while it was ended. */
  #beginAgain({ uid, pod: { metadata } }: PodWorker): void {
    const { metrics } = this.#deps.worker.context;
    if (this.isStatic(uid)) metrics.podRestarted(true);
    const again = this.#deps.pods.get(keyOf({ metadata }));
    if (again?.metadata.uid !== uid) return;
    metrics.podRestarted(false);
    this.#onPod(this.#fromApi(again));
  }

  #fromApi(pod: Pod): Pod {
    return fromApi(pod, this.#workers.get(pod.metadata.uid)?.pod.metadata.annotations?.[CONFIG_SEEN] ?? new Date(this.#deps.clock.nowMs()).toISOString());
  }

  /** What the kernel refuses here is no pod's fault: each is begun, and ended, all the same. */
  #balance(): void {
    try {
      this.#deps.worker.context.cgroups.balance([...this.#workers.values()].filter((worker) => this.#counts(worker)).map((worker) => worker.granted));
    } catch (error) {
      this.#deps.log.warn("what burstable pods may expect together is not set, next try with the next pod", { error });
    }
  }

  /** Somebody sees to it, or it may run still: what the runtime has of it is to be ended first. */
  #isThere(uid: string): boolean { return this.#workers.has(uid) || this.#inRuntime.has(uid); }

  async #sweep(): Promise<void> {
    if (!this.#knowsStatic) return;
    const { cri, signal, log, worker } = this.#deps;
    await sweepLeftovers([...this.#inRuntime.keys()], {
      context: worker.context, cri, log, signal, isCaredFor: (uid) => this.#workers.has(uid), isThere: (uid) => this.#isThere(uid),
      end: (pod) => {
        const orphan = new PodWorker(pod, worker);
        orphan.remove();
        this.#start(orphan);
      },
    });
  }
}

function byAge(a: Pod, b: Pod): number { return compareText(a.metadata.creationTimestamp, b.metadata.creationTimestamp); }

/** Of one pod: when it was first seen is no change. */
function asSeenBefore(pod: Pod, { metadata: { creationTimestamp, annotations } }: Pod): Pod {
  return { ...pod, metadata: { ...pod.metadata, creationTimestamp, annotations: { ...pod.metadata.annotations, [CONFIG_SEEN]: annotations?.[CONFIG_SEEN] ?? "" } } };
}
