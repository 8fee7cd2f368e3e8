/**
 * Keeps the node alive when memory or disk runs out: it says so in the node's conditions, cleans up what nobody uses, and ends pods, one at a
 * time, until there is enough again.
 *
 * Source: kubernetes v1.36 pkg/kubelet/eviction/eviction_manager.go
 */
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import type { EventRecorder } from "../../../core/client/events.ts";
import { type Clock, timestamp } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import { type MachineInfo, processCount } from "../../os/machine.ts";
import type { Pressure } from "../node/node-status.ts";
import { podReference } from "../pod-spec.ts";
import type { Stats } from "../stats/stats.ts";
import type { PodFailure } from "../status/pod-status.ts";
import { evictionMessage, limitsStorage, localStorageExcess, type Observation, ranked, shortages, type Shortage, type EvictionSettings, type Signal, type Threshold, THRESHOLDS, WINDOWS_THRESHOLDS } from "./plan.ts";

interface Deps {
  readonly stats: Stats;
  readonly machine: Pick<MachineInfo, "os" | "memoryBytes">;
  readonly settings: EvictionSettings;
  /** What all pods together may still have. */
  readonly podsMemory: () => Observation | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventRecorder;
  readonly pods: () => readonly { readonly pod: Pod; fail(failure: PodFailure, graceSeconds: number): void }[];
  readonly removeUnusedImages: (signal: AbortSignal) => Promise<unknown>;
  /** The node's conditions changed. */
  readonly onPressure: () => void;
}

export interface Eviction extends Runnable {
  readonly pressures: () => ReadonlySet<Pressure>;
}

const PERIOD_MS = 10_000;
/** After a pod was ended the node needs a moment to feel it. */
const SETTLE_MS = 30_000;
/** Of a hard threshold. */
const GRACE_SECONDS = 1;

export function eviction({ stats, machine: { os, memoryBytes }, settings, podsMemory, clock, log, events, pods, removeUnusedImages, onPressure }: Deps): Eviction {
  const configured = settings.thresholds === THRESHOLDS && os === "windows" ? WINDOWS_THRESHOLDS : settings.thresholds;
  const memory = configured.filter(({ signal, graceMs }) => signal === "memory.available" && graceMs === undefined);
  const thresholds: readonly Threshold[] = [...configured, ...memory.map((threshold) => ({ ...threshold, signal: "allocatableMemory.available" as const }))];
  const crossed = new Map<Threshold, number>(); // since when
  const lastSeenMs = new Map<Pressure, number>();
  let current: ReadonlySet<Pressure> = new Set();
  let quietUntilMs = 0;

  async function observe(signal: AbortSignal): Promise<ReadonlyMap<Signal, Observation>> {
    const [node, images] = await Promise.all([stats.nodeDisk(), stats.imageDisk(signal)]);
    const { current: processes, max } = processCount();
    return new Map<Signal, Observation>([
      ["memory.available", { available: stats.memory().availableBytes, capacity: memoryBytes }], ["nodefs.available", { available: node.availableBytes, capacity: node.capacityBytes }],
      ["nodefs.inodesFree", { available: node.inodesFree, capacity: node.inodes }], ["imagefs.available", { available: images.availableBytes, capacity: images.capacityBytes }],
      ["imagefs.inodesFree", { available: images.inodesFree, capacity: images.inodes }], ["containerfs.available", { available: images.availableBytes, capacity: images.capacityBytes }],
      ["containerfs.inodesFree", { available: images.inodesFree, capacity: images.inodes }], ["allocatableMemory.available", podsMemory() ?? { available: 0, capacity: 0 }], ["pid.available", { available: max - processes, capacity: max }],
    ]);
  }

  function note(short: readonly Shortage[]): void {
    const nowMs = clock.uptimeMs();
    for (const { pressure } of short) lastSeenMs.set(pressure, nowMs);
    const next = new Set([...lastSeenMs].filter(([, seenMs]) => nowMs - seenMs < settings.transitionMs).map(([pressure]) => pressure));
    const changed = next.size !== current.size || [...next].some((pressure) => !current.has(pressure));
    current = next;
    if (changed) onPressure();
  }

  /** Those that count now: a soft one once its grace is over. */
  function due(short: readonly Shortage[]): readonly Shortage[] {
    const nowMs = clock.uptimeMs();
    const now = new Set(short.map(({ threshold }) => threshold));
    for (const threshold of crossed.keys()) if (!now.has(threshold)) crossed.delete(threshold);
    for (const threshold of now) if (!crossed.has(threshold)) crossed.set(threshold, nowMs);
    return short.filter(({ threshold }) => nowMs - crossed.get(threshold)! >= (threshold.graceMs ?? 0));
  }

  function evict(one: ReturnType<typeof pods>[number], message: string, graceSeconds = GRACE_SECONDS): void {
    log.warn("pod evicted", { pod: one.pod.metadata.name, namespace: one.pod.metadata.namespace, message });
    events.event(podReference(one.pod), "Warning", "Evicted", message);
    const nowTime = timestamp(clock.nowMs());
    one.fail({ reason: "Evicted", message, condition: { type: "DisruptionTarget", status: "True", reason: "TerminationByKubelet", message, lastTransitionTime: nowTime } }, graceSeconds);
  }

  async function tick(signal: AbortSignal): Promise<void> {
    const everything = shortages(await observe(signal), thresholds, new Set(crossed.keys()));
    note(everything);
    const short = due(everything);
    const all = pods();
    const summary = short.length > 0 || all.some(({ pod }) => hasStorageLimit(pod)) ? await stats.summary(signal) : undefined;
    if (!summary) return;
    const candidates = all.map((one) => ({ ...one, pod: one.pod, fail: one.fail.bind(one), stats: summary.pods.find(({ podRef }) => podRef.uid === one.pod.metadata.uid) }));
    for (const candidate of candidates) {
      const excess = localStorageExcess(candidate);
      if (excess !== undefined) evict(candidate, excess);
    }
    const [first] = short;
    if (!first || clock.uptimeMs() < quietUntilMs) return;
    events.event({ kind: "Node", apiVersion: "v1", name: summary.node.nodeName, uid: summary.node.nodeName }, "Warning", "EvictionThresholdMet", `Attempting to reclaim ${first.starved}`);
    if (first.pressure === "DiskPressure") {
      await removeUnusedImages(signal);
      if (!shortages(await observe(signal), thresholds, new Set(crossed.keys())).some(({ signal: name }) => name === first.signal)) return;
    }
    const [victim] = ranked(first.starved, candidates);
    if (!victim) return void log.error("the node is short of a resource and there is no pod to evict", { resource: first.starved });
    const chosen = candidates.find(({ pod }) => pod.metadata.uid === victim.pod.metadata.uid)!;
    const soft = first.threshold.graceMs !== undefined;
    evict(chosen, evictionMessage(first, victim), soft ? Math.max(GRACE_SECONDS, Math.min(settings.maxPodGraceSeconds, victim.pod.spec.terminationGracePeriodSeconds ?? 30)) : GRACE_SECONDS);
    quietUntilMs = clock.uptimeMs() + SETTLE_MS;
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

function hasStorageLimit(pod: Pod): boolean {
  return (pod.spec.volumes ?? []).some(({ emptyDir }) => emptyDir?.sizeLimit !== undefined && emptyDir.medium !== "Memory") || limitsStorage(pod);
}
