/**
 * Keeps the node alive when memory or disk runs out: it says so in the node's conditions, cleans up what nobody uses, and ends pods, one at a
 * time, until there is enough again. Pods that use more of the disk than they may end whatever there is.
 *
 * Source: kubernetes v1.36 pkg/kubelet/eviction/eviction_manager.go
 */
import type { Pod, PodCondition } from "../../../core/api/gen/core.v1.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import { type Clock, timestamp } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";
import { type MachineInfo, processCount } from "../../os/machine.ts";
import type { Pressure } from "../node/node-status.ts";
import { isCriticalPod, podReference } from "../pod-spec.ts";
import type { Stats } from "../stats/stats.ts";
import type { PodFailure } from "../status/pod-status.ts";
import { hasStorageLimit, localStorageExcess } from "./local-storage.ts";
import { type EvictionSettings, type Observation, type Reclaim, reclaims, shortages, type Shortage, type Signal, type Threshold, THRESHOLDS, WINDOWS_THRESHOLDS } from "./plan.ts";
import { evictionMessage, ranked, type Told } from "./ranking.ts";

export interface Evictable {
  readonly pod: Pod;
  /** Nothing of it runs any more, and what it had of the node is free. */
  readonly isReclaimed: boolean;
  fail(failure: PodFailure, graceSeconds: number): void;
}

interface Deps {
  readonly stats: Stats;
  readonly machine: Pick<MachineInfo, "os" | "memoryBytes">;
  readonly settings: EvictionSettings;
  /** What all pods together may still have. */
  readonly podsMemory: () => Observation | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventRecorder;
  readonly metrics: Metrics;
  readonly pods: () => readonly Evictable[];
  /** Takes away what nobody needs. */
  readonly reclaim: (what: Reclaim, signal: AbortSignal) => Promise<unknown>;
  /** The node's conditions changed. */
  readonly onPressure: () => void;
}

export interface Eviction extends Runnable {
  readonly pressures: () => ReadonlySet<Pressure>;
}

const PERIOD_MS = 10_000;
/** So long the end of a pod is waited for before another one has to go, looking so often. */
const RECLAIMED_MS_MAX = 30_000;
const RECLAIMED_POLL_MS = 1_250;
/** So long ago the runtime may have measured what containers write, and so long it takes to remove what one has written. */
const DISK_LAG_MS = 10_000;
/** Of a hard threshold. */
const GRACE_SECONDS = 1;

export function eviction({ stats, machine: { os, memoryBytes }, settings, podsMemory, clock, log, events, metrics, pods, reclaim, onPressure }: Deps): Eviction {
  const evictions = metrics.counter("kubelet_evictions", "[ALPHA] Cumulative number of pod evictions by eviction signal");
  const given = settings.thresholds === THRESHOLDS && os === "windows" ? WINDOWS_THRESHOLDS : settings.thresholds;
  const configured = given.filter(({ signal }) => !signal.startsWith("containerfs.")); // it is one of the others' file systems, with their thresholds
  if (configured.length < given.length) log.warn("eviction thresholds of containerfs are those of nodefs or imagefs, what is set is ignored");
  const memory = configured.filter(({ signal, graceMs }) => signal === "memory.available" && graceMs === undefined);
  const thresholds: readonly Threshold[] = [...configured, ...memory.map((threshold) => ({ ...threshold, signal: "allocatableMemory.available" as const }))];
  const crossed = new Map<Threshold, number>(); // since when
  let met: ReadonlySet<Threshold> = new Set(); // those of them that counted: their minimum has to be reclaimed, too
  const lastSeenMs = new Map<Pressure, number>();
  let current: ReadonlySet<Pressure> = new Set();
  const helpless = new Set<Pressure>(); // of which it has been told that there is nobody to evict; subset of `current`

  async function observe(signal: AbortSignal): Promise<ReadonlyMap<Signal, Observation>> {
    const [node, images] = await Promise.all([stats.nodeDisk(), stats.imageDisk(signal)]);
    const { current: processes, max } = processCount();
    return new Map<Signal, Observation>([
      ["memory.available", { available: stats.memory().availableBytes, capacity: memoryBytes }], ["nodefs.available", { available: node.availableBytes, capacity: node.capacityBytes }],
      ["nodefs.inodesFree", { available: node.inodesFree, capacity: node.inodes }], ["imagefs.available", { available: images.availableBytes, capacity: images.capacityBytes }],
      ["imagefs.inodesFree", { available: images.inodesFree, capacity: images.inodes }], ["allocatableMemory.available", podsMemory() ?? { available: 0, capacity: 0 }], ["pid.available", { available: max - processes, capacity: max }],
    ]);
  }

  function note(short: readonly Shortage[]): void {
    const nowMs = clock.uptimeMs();
    for (const { pressure } of short) lastSeenMs.set(pressure, nowMs);
    const next = new Set([...lastSeenMs].filter(([, seenMs]) => nowMs - seenMs < settings.transitionMs).map(([pressure]) => pressure));
    const begun = short.filter(({ pressure }, at) => !current.has(pressure) && short.findIndex((other) => other.pressure === pressure) === at);
    const over = [...current].filter((pressure) => !next.has(pressure));
    current = next;
    for (const { pressure, signal, available, quantity } of begun) log.warn("the node is short of a resource", { pressure, signal, available, threshold: quantity });
    for (const pressure of over) {
      helpless.delete(pressure);
      log.info("the node has enough of a resource again", { pressure });
    }
    if (begun.length > 0 || over.length > 0) onPressure();
  }

  /** Those that count now: a soft one once its grace is over. */
  function due(short: readonly Shortage[]): readonly Shortage[] {
    const nowMs = clock.uptimeMs();
    const now = new Set(short.map(({ threshold }) => threshold));
    for (const threshold of crossed.keys()) if (!now.has(threshold)) crossed.delete(threshold);
    for (const threshold of now) if (!crossed.has(threshold)) crossed.set(threshold, nowMs);
    const counting = short.filter(({ threshold }) => nowMs - crossed.get(threshold)! >= (threshold.graceMs ?? 0));
    met = new Set(counting.map(({ threshold }) => threshold));
    return counting;
  }

  async function shortOf(signal: AbortSignal): Promise<readonly Shortage[]> {
    return shortages(await observe(signal), thresholds, met);
  }

  /** Who has filled the disk may not show yet, and another one would end for it. When it fills fast, somebody has to. */
  function isTooNewToTell({ pressure, threshold, available, quantity }: Shortage): boolean {
    return pressure === "DiskPressure" && available > quantity / 2 && clock.uptimeMs() - crossed.get(threshold)! < DISK_LAG_MS;
  }

  function evict(one: Evictable, { message, annotations }: Told, { signal, graceSeconds, condition }: { readonly signal: string; readonly graceSeconds: number; readonly condition?: PodCondition }): void {
    log.warn("pod evicted", { pod: one.pod.metadata.name, namespace: one.pod.metadata.namespace, message });
    events.event(podReference(one.pod), "Warning", "Evicted", message, annotations);
    evictions.inc({ eviction_signal: signal });
    one.fail({ reason: "Evicted", message, ...(condition ? { condition } : {}) }, graceSeconds);
  }

  /** Looks at the node once; returns whom it ended. */
  async function look(signal: AbortSignal): Promise<readonly Evictable[]> {
    const everything = await shortOf(signal);
    note(everything);
    const short = due(everything);
    const all = pods();
    if (short.length === 0 && !all.some(({ pod }) => hasStorageLimit(pod))) return [];
    const isFresh = short.some(({ pressure }) => pressure === "DiskPressure");
    const [summary, layout] = await Promise.all([stats.summary(signal, { isFresh }), stats.diskLayout(signal)]);
    const candidates = all.map((one) => ({ one, pod: one.pod, stats: summary.pods.find(({ podRef }) => podRef.uid === one.pod.metadata.uid) }));
    const greedy = candidates.flatMap((candidate) => {
      const excess = isCriticalPod(candidate.pod) ? undefined : localStorageExcess(candidate, layout);
      if (!excess) return [];
      evict(candidate.one, { message: excess.message, annotations: {} }, { signal: excess.signal, graceSeconds: GRACE_SECONDS });
      return [candidate.one];
    });
    const [first] = short;
    if (greedy.length > 0 || !first) return greedy;
    events.event({ kind: "Node", apiVersion: "v1", name: summary.node.nodeName, uid: summary.node.nodeName }, "Warning", "EvictionThresholdMet", `Attempting to reclaim ${first.starved}`);
    if (await isReclaimedOtherwise(first, reclaims(first, layout), signal)) return [];
    if (isTooNewToTell(first)) return [];
    const [victim] = ranked(first, layout, candidates);
    if (!victim) {
      if (!helpless.has(first.pressure)) log.error("the node is short of a resource and there is no pod to evict", { resource: first.starved });
      helpless.add(first.pressure);
      return [];
    }
    const told = evictionMessage(first, victim);
    const soft = first.threshold.graceMs !== undefined;
    const condition: PodCondition = { type: "DisruptionTarget", status: "True", reason: "TerminationByKubelet", message: told.message, lastTransitionTime: timestamp(clock.nowMs()), ...observed(victim.pod) };
    evict(victim.one, told, { signal: first.signal, graceSeconds: soft ? Math.max(GRACE_SECONDS, Math.min(settings.maxPodGraceSeconds, victim.pod.spec.terminationGracePeriodSeconds ?? 30)) : GRACE_SECONDS, condition });
    return [victim.one];
  }

  async function isReclaimedOtherwise({ signal: name }: Shortage, steps: readonly Reclaim[], signal: AbortSignal): Promise<boolean> {
    if (steps.length === 0) return false;
    for (const what of steps) await reclaim(what, signal).catch((error: unknown) => log.warn("what nobody needs could not be taken away", { what, error }));
    return !(await shortOf(signal)).some((still) => still.signal === name);
  }

  async function reclaimed(ended: readonly Evictable[], signal: AbortSignal): Promise<void> {
    const endMs = clock.uptimeMs() + RECLAIMED_MS_MAX;
    while (ended.some(({ isReclaimed }) => !isReclaimed) && clock.uptimeMs() < endMs) await clock.sleep(RECLAIMED_POLL_MS, signal);
    const freeMs = clock.uptimeMs() + DISK_LAG_MS;
    while (current.has("DiskPressure") && clock.uptimeMs() < freeMs && (await shortOf(signal)).some(({ pressure }) => pressure === "DiskPressure")) await clock.sleep(RECLAIMED_POLL_MS, signal);
  }

  async function tick(signal: AbortSignal): Promise<void> {
    for (let ended = await look(signal); ended.length > 0; ended = await look(signal)) await reclaimed(ended, signal);
  }

  return {
    name: "eviction",
    pressures: () => current,
    async run(signal, ready) {
      ready();
      for await (const _ of clock.every(PERIOD_MS, signal)) {
        await tick(signal).catch((error: unknown) => {
          if (!signal.aborted) log.warn("eviction could not look at the node, next try soon", { error });
        });
      }
    },
  };
}

function observed({ metadata: { generation } }: Pod): { readonly observedGeneration?: number } {
  return generation === undefined ? {} : { observedGeneration: generation };
}
