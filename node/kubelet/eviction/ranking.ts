/**
 * Which pod ends for a shortage, and what its user is told. Pure.
 *
 * First those that use more than they asked for, then lower priority, then the larger excess; for process ids priority alone, then their number. A pod of which nothing
 * is known goes before those of which something is. Critical pods are spared. On a full disk counts what the pod has on that disk.
 *
 * Source: kubernetes v1.36 pkg/kubelet/eviction/helpers.go (buildSignalToRankFunc, evictionMessage)
 */
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { parseQuantity, quantityOf } from "../../../core/api/meta/quantity.ts";
import type { FsStats, PodStats } from "../kubelet-api.ts";
import { isCriticalPod } from "../pod-spec.ts";
import { podRequests } from "../resources/pod-resources.ts";
import type { DiskLayout } from "../stats/disk-usage.ts";
import { diskVolumes } from "./local-storage.ts";
import type { Shortage } from "./plan.ts";

export interface Candidate { readonly pod: Pod; readonly stats: PodStats | undefined }

/** What of a pod lies on a disk. */
type Part = "root" | "logs" | "volumes";

/** The pods that may be ended for it, the first one first. */
export function ranked<C extends Candidate>(shortage: Pick<Shortage, "signal" | "starved">, layout: DiskLayout, candidates: readonly C[]): C[] {
  const { starved } = shortage;
  const scored = candidates.filter(({ pod }) => !isCriticalPod(pod)).map((candidate) => {
    const usage = candidate.stats && usageOf(shortage, layout, { pod: candidate.pod, stats: candidate.stats });
    const request = starved === "memory" || starved === "ephemeral-storage" ? podRequests(candidate.pod).get(starved)?.number() ?? 0 : 0;
    const excess = usage === undefined ? Number.POSITIVE_INFINITY : usage - request;
    return { candidate, excess, exceeds: starved === "pids" || excess > 0, priority: candidate.pod.spec.priority ?? 0, isUnknown: usage === undefined && starved !== "pids" };
  });
  return scored.toSorted((a, b) => Number(b.isUnknown) - Number(a.isUnknown) || Number(b.exceeds) - Number(a.exceeds) || a.priority - b.priority || compareExcess(a.excess, b.excess)).map(({ candidate }) => candidate);
}

function compareExcess(a: number, b: number): number {
  return a === b ? 0 : b - a; // two infinities have no difference
}

function usageOf({ signal, starved }: Pick<Shortage, "signal" | "starved">, layout: DiskLayout, { pod, stats }: { readonly pod: Pod; readonly stats: PodStats }): number {
  if (starved === "memory") return stats.memory?.workingSetBytes ?? 0;
  if (starved === "pids") return stats.process_stats?.process_count ?? 0;
  const parts = partsOn(signal.startsWith("imagefs.") ? "images" : "node", layout);
  const volumes = parts.includes("volumes") ? diskVolumes(pod, stats.volume ?? []) : [];
  const containers = stats.containers.flatMap(({ rootfs, logs }) => [parts.includes("root") ? rootfs : undefined, parts.includes("logs") ? logs : undefined]);
  const count = (fs: FsStats | undefined): number => (starved === "inodes" ? fs?.inodesUsed : fs?.usedBytes) ?? 0;
  return [...containers, ...volumes].reduce((sum, fs) => sum + count(fs), 0);
}

function partsOn(disk: "node" | "images", layout: DiskLayout): readonly Part[] {
  switch (layout) {
    case "one": return ["root", "logs", "volumes"];
    case "images and containers apart": return disk === "images" ? ["root"] : ["logs", "volumes"];
    case "images apart": return disk === "images" ? [] : ["root", "logs", "volumes"];
  }
}

export interface Told { readonly message: string; readonly annotations: Readonly<Record<string, string>> }

/** The threshold is shown as it was written; a part of the capacity in powers of two, whatever is counted. */
export function evictionMessage({ starved, threshold: { value }, quantity, available }: Pick<Shortage, "starved" | "threshold" | "quantity" | "available">, { pod, stats }: Candidate): Told {
  const inBytes = starved === "memory" || starved === "ephemeral-storage";
  const show = (amount: number): string => quantityOf(Math.floor(amount), inBytes ? "BinarySI" : "DecimalSI").toString();
  const low = `The node was low on resource: ${starved}. Threshold quantity: ${quantityOf(quantity, "isDecimal" in value ? "DecimalSI" : "BinarySI").toString()}, available: ${show(available)}. `;
  if (!stats) return { message: low, annotations: {} };
  const asked = starved === "memory" ? pod.spec.resources?.requests?.["memory"] : undefined;
  const whole = asked !== undefined && stats.memory ? { used: show(stats.memory.workingSetBytes ?? 0), asked } : undefined;
  const greedy = stats.containers.flatMap(({ name, memory, rootfs, logs }) => {
    const spec = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].find((container) => container.name === name);
    const usage = starved === "memory" ? memory?.workingSetBytes : starved === "ephemeral-storage" ? bothOf(rootfs, logs) : undefined;
    const request = spec?.resources?.requests?.[starved] ?? "0";
    return spec && usage !== undefined && usage > parseQuantity(request).number() ? [{ name, used: show(usage), request }] : [];
  });
  const podPart = whole ? `Pod ${pod.metadata.name} was using ${whole.used}, request is ${whole.asked}, has larger consumption of ${starved}. ` : "";
  return {
    message: low + podPart + greedy.map(({ name, used, request }) => `Container ${name} was using ${used}, request is ${request}, has larger consumption of ${starved}. `).join(""),
    annotations: {
      ...(whole ? { offending_pod: pod.metadata.name, offending_pod_usage: whole.used } : {}),
      offending_containers: greedy.map(({ name }) => name).join(","), offending_containers_usage: greedy.map(({ used }) => used).join(","), starved_resource: starved,
    },
  };
}

/** Undefined: of one of them it is not known. */
function bothOf(rootfs: FsStats | undefined, logs: FsStats | undefined): number | undefined {
  return rootfs?.usedBytes === undefined || logs?.usedBytes === undefined ? undefined : rootfs.usedBytes + logs.usedBytes;
}
