/**
 * Keeps the node alive when memory or disk runs out: it says so in the node's conditions, cleans up what nobody uses, and ends pods, one at a
 * time, until there is enough again. Pods that use more of the disk than they may end whatever there is.
 *
 * Source: kubernetes v1.36 pkg/kubelet/eviction/eviction_manager.go
 */
import { nodeReference } from "../node/node-reference.ts";
import type { Pod, PodCondition } from "../../../core/api/gen/core.v1.ts";
import { asDouble } from "../../../core/api/meta/go-integer.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import { DEFAULT_BUCKETS, type Metrics } from "../../../core/observe/metrics.ts";
import type { MachineInfo } from "../../os/machine.ts";
import type { Pressure } from "../node/pressure.ts";
import { isCriticalPod, podReference } from "../pod-spec.ts";
import type { DiskLayout } from "../stats/disk-usage.ts";
import type { Stats } from "../stats/stats.ts";
import { disruption } from "../status/disruption.ts";
import type { PodFailure } from "../status/pod-status.ts";
import { crossings } from "./crossings.ts";
import { hasStorageLimit, localStorageExcess } from "./local-storage.ts";
import { effectiveThresholds, type EvictionSettings, type Observation, type Reclaim, reclaims, shortages, type Shortage } from "./plan.ts";
import { pressures as pressuresOf } from "./pressures.ts";
import { type Candidate, evictionMessage, ranked, type Told } from "./ranking.ts";
import { observeSignals } from "./signals.ts";

export interface Evictable {
  /** With the resources it was granted: what it wishes beside protects it from nothing. */
  readonly granted: Pod;
  /** Nothing of it runs any more, and what it had of the node is free. */
  readonly isReclaimed: boolean;
  fail(failure: PodFailure, graceSeconds: number): void;
}

/** The node as one look found it. */
interface Node {
  readonly name: string;
  readonly layout: DiskLayout;
  readonly candidates: readonly (Candidate & { readonly one: Evictable })[];
}

interface Deps {
  readonly stats: Omit<Stats, "latest">;
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
  const ages = metrics.histogram("kubelet_eviction_stats_age_seconds", "[ALPHA] Time between when stats are collected, and when pod is evicted based on those stats by eviction signal", DEFAULT_BUCKETS);
  const { thresholds, ignored } = effectiveThresholds(settings.thresholds, os);
  if (ignored.length > 0) log.warn("eviction thresholds of containerfs are those of nodefs or imagefs, what is set is ignored");
  const crossed = crossings(clock);
  const pressures = pressuresOf({ transitionMs: settings.transitionMs, clock, log, onPressure });

  async function shortOf(signal: AbortSignal, met = crossed.met()): Promise<readonly Shortage[]> {
    return shortages(await observeSignals({ stats, memoryBytes, podsMemory }, signal), thresholds, met);
  }

  /** Looks at the node once; returns whom it ended. */
  async function look(signal: AbortSignal): Promise<readonly Evictable[]> {
    const measuredMs = clock.uptimeMs();
    const everything = await shortOf(signal);
    pressures.note(everything);
    const short = crossed.due(everything);
    const all = pods();
    if (short.length === 0 && !all.some(({ granted }) => hasStorageLimit(granted))) return [];
    const isFresh = short.some(({ pressure }) => pressure === "DiskPressure");
    const [summary, layout] = await Promise.all([stats.summary(signal, { isFresh }), stats.diskLayout(signal)]);
    const node: Node = { name: summary.node.nodeName, layout, candidates: all.map((one) => ({ one, pod: one.granted, stats: summary.pods.find(({ podRef }) => podRef.uid === one.granted.metadata.uid) })) };
    const greedy = endGreedy(node);
    const [first] = short;
    return greedy.length > 0 || !first ? greedy : await relieve(first, node, signal, () => { for (const { signal: of } of short) ages.observe((clock.uptimeMs() - measuredMs) / 1000, { eviction_signal: of }); });
  }

  /** Ends the pods that use more of the disk than they may. */
  function endGreedy({ layout, candidates }: Node): readonly Evictable[] {
    return candidates.flatMap((candidate) => {
      const excess = isCriticalPod(candidate.pod) ? undefined : localStorageExcess(candidate, layout);
      if (!excess) return [];
      evict(candidate.one, { message: excess.message, annotations: {} }, { signal: excess.signal, graceSeconds: GRACE_SECONDS });
      return [candidate.one];
    });
  }

  /** Takes away what nobody uses and, if that is too little, ends one pod. */
  async function relieve(shortage: Shortage, { name, layout, candidates }: Node, signal: AbortSignal, onEviction: () => void): Promise<readonly Evictable[]> {
    events.event(nodeReference(name), "Warning", "EvictionThresholdMet", `Attempting to reclaim ${shortage.starved}`);
    if (await isReclaimedOtherwise(reclaims(shortage, layout), signal)) return [];
    if (isTooNewToTell(shortage)) return [];
    const [victim] = ranked(shortage, layout, candidates);
    if (!victim) {
      pressures.helpless(shortage);
      return [];
    }
    onEviction();
    const told = evictionMessage(shortage, victim);
    evict(victim.one, told, { signal: shortage.signal, graceSeconds: graceSecondsOf(victim.pod, shortage), condition: disruption(victim.pod, told.message, clock.nowMs()) });
    return [victim.one];
  }

  /** Only when no threshold at all is crossed then, whatever its grace, is it enough: with what must be reclaimed of each. */
  async function isReclaimedOtherwise(steps: readonly Reclaim[], signal: AbortSignal): Promise<boolean> {
    if (steps.length === 0) return false;
    for (const what of steps) await reclaim(what, signal).catch((error: unknown) => log.warn("what nobody needs could not be taken away", { what, error }));
    return (await shortOf(signal, new Set(thresholds))).length === 0;
  }

  /** Who has filled the disk may not show yet, and another one would end for it. When it fills fast, somebody has to. */
  function isTooNewToTell({ pressure, threshold, available, quantity }: Shortage): boolean {
    return pressure === "DiskPressure" && available > quantity / 2 && crossed.ageMs(threshold) < DISK_LAG_MS;
  }

  function graceSecondsOf({ spec }: Pod, { threshold }: Shortage): number {
    return !threshold.graceMs ? GRACE_SECONDS : Math.max(GRACE_SECONDS, Math.min(settings.maxPodGraceSeconds, asDouble(spec.terminationGracePeriodSeconds ?? 30)));
  }

  function evict(one: Evictable, { message, annotations }: Told, { signal, graceSeconds, condition }: { readonly signal: string; readonly graceSeconds: number; readonly condition?: PodCondition }): void {
    log.warn("pod evicted", { pod: one.granted.metadata.name, namespace: one.granted.metadata.namespace, message });
    events.event(podReference(one.granted), "Warning", "Evicted", message, annotations);
    evictions.inc({ eviction_signal: signal });
    one.fail({ reason: "Evicted", message, ...(condition ? { condition } : {}) }, graceSeconds);
  }

  async function reclaimed(ended: readonly Evictable[], signal: AbortSignal): Promise<void> {
    const endMs = clock.uptimeMs() + RECLAIMED_MS_MAX;
    while (ended.some(({ isReclaimed }) => !isReclaimed) && clock.uptimeMs() < endMs) await clock.sleep(RECLAIMED_POLL_MS, signal);
    const freeMs = clock.uptimeMs() + DISK_LAG_MS;
    while (pressures.current().has("DiskPressure") && clock.uptimeMs() < freeMs && (await shortOf(signal)).some(({ pressure }) => pressure === "DiskPressure")) await clock.sleep(RECLAIMED_POLL_MS, signal);
  }

  async function tick(signal: AbortSignal): Promise<void> {
    for (let ended = await look(signal); ended.length > 0; ended = await look(signal)) await reclaimed(ended, signal);
  }

  return {
    name: "eviction",
    pressures: pressures.current,
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
