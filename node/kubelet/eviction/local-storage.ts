/**
 * Pods that end although the node has enough, for they use more of its disk than they may. Pure.
 *
 * Source: kubernetes v1.36 pkg/kubelet/eviction/eviction_manager.go (localStorageEviction), pkg/volume/util/util.go (IsLocalEphemeralVolume)
 */
import type { Pod, Volume } from "../../../core/api/gen/core.v1.ts";
import { parseQuantity } from "../../../core/api/meta/quantity.ts";
import type { FsStats, PodStats } from "../kubelet-api.ts";
import { podLimits } from "../resources/pod-resources.ts";
import type { DiskLayout } from "../stats/disk-usage.ts";

/** `signal`: what it counts as in the kubelet's metrics. */
export interface StorageExcess { readonly signal: "emptydirfs.limit" | "ephemeralpodfs.limit" | "ephemeralcontainerfs.limit"; readonly message: string }

export function localStorageExcess({ pod, stats }: { readonly pod: Pod; readonly stats: PodStats | undefined }, layout: DiskLayout): StorageExcess | undefined {
  for (const { name, emptyDir } of pod.spec.volumes ?? []) {
    const used = stats?.volume?.find((volume) => volume.name === name)?.usedBytes ?? 0;
    if (emptyDir?.sizeLimit && emptyDir.medium !== "Memory" && isOver(emptyDir.sizeLimit, used)) return { signal: "emptydirfs.limit", message: `Usage of EmptyDir volume "${name}" exceeds the limit "${emptyDir.sizeLimit}". ` };
  }
  const total = limitsStorage(pod) ? podLimits(pod).get("ephemeral-storage") : undefined; // of those containers that have one
  if (total && (stats?.["ephemeral-storage"]?.usedBytes ?? 0) > total.number()) return { signal: "ephemeralpodfs.limit", message: `Pod ephemeral local storage usage exceeds the total limit of containers ${total.toString()}. ` };
  for (const { name, rootfs, logs } of stats?.containers ?? []) {
    const limit = pod.spec.containers.find((container) => name === container.name)?.resources?.limits?.["ephemeral-storage"];
    const used = (logs?.usedBytes ?? 0) + (layout === "one" ? rootfs?.usedBytes ?? 0 : 0);
    if (limit && isOver(limit, used)) return { signal: "ephemeralcontainerfs.limit", message: `Container ${name} exceeded its local ephemeral storage limit "${limit}". ` };
  }
  return undefined;
}

/** Whether its use of the disk has to be measured. */
export function hasStorageLimit(pod: Pod): boolean {
  return (pod.spec.volumes ?? []).some(({ emptyDir }) => emptyDir?.sizeLimit !== undefined && emptyDir.medium !== "Memory" /* its file system has that size */) || limitsStorage(pod);
}

function limitsStorage({ spec }: Pod): boolean {
  return [...spec.containers, ...(spec.initContainers ?? [])].some(({ resources }) => resources?.limits?.["ephemeral-storage"] !== undefined);
}

/** What is the pod's and on the node's disk: what it has in memory counts as its containers' memory. */
function isOnDisk({ emptyDir, configMap }: Volume): boolean {
  return configMap !== undefined || (emptyDir !== undefined && !emptyDir.medium);
}

export function diskVolumes({ spec }: Pod, volumes: NonNullable<PodStats["volume"]>): readonly FsStats[] {
  return volumes.filter(({ name }) => spec.volumes?.some((volume) => volume.name === name && isOnDisk(volume)));
}

function isOver(limit: string, used: number): boolean {
  const bytes = parseQuantity(limit).number();
  return bytes > 0 && used > bytes;
}
