/**
 * How full volumes are, and how they are: as their drivers say, and of those without one their file systems. For the summary and, those of claims, as
 * kubelet_volume_stats_*.
 *
 * Source: kubernetes v1.36 pkg/kubelet/server/stats/volume_stat_calculator.go, pkg/kubelet/metrics/collectors/volume_stats.go, pkg/volume/csi/csi_metrics.go,
 * pkg/volume/metrics_statfs.go
 */
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { aborted } from "../../../core/lifecycle/aborted.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import { settleEach } from "../../../core/lifecycle/settle-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import { DEFAULT_BUCKETS, type Metrics } from "../../../core/observe/metrics.ts";
import type { NodeGetVolumeStatsResponse } from "../plugins/gen/csi.v1.ts";
import type { Exec } from "../../os/exec.ts";
import { fileSystemUsage } from "../stats/disk-usage.ts";
import { remoteUsage } from "../volumes/remote-volumes.ts";
import type { CsiVolumes } from "./csi-volumes.ts";
import type { CsiDrivers } from "./drivers.ts";

/** Absent: the volume is the pod's own. */
interface Claim { readonly namespace?: string | undefined; readonly claim?: string | undefined }

export interface VolumeFigures extends Claim {
  readonly podUid: string;
  /** In the pod; absent: its claim says which. */
  readonly name?: string | undefined;
  readonly availableBytes?: number | undefined;
  readonly capacityBytes?: number | undefined;
  readonly usedBytes?: number | undefined;
  readonly inodesFree?: number | undefined;
  readonly inodes?: number | undefined;
  readonly inodesUsed?: number | undefined;
  /** As its driver says; absent: it says nothing of that, or is not asked. */
  readonly health?: VolumeHealth | undefined;
}

export interface VolumeHealth { readonly abnormal: boolean; readonly message: string }

export interface VolumeStats extends Runnable {
  of(podUid: string): readonly VolumeFigures[];
}

/** A volume that is mounted here without a driver. `isRemote`: its server may be away. */
export interface MountedVolume extends Claim { readonly podUid: string; readonly name: string; readonly path: string; readonly isRemote?: boolean | undefined }

const CALL_MS = 10_000;
/** Each of a server is a program; those that are here come first. */
const LOOKED_AT_ONCE = 4;

interface Deps {
  readonly volumes: CsiVolumes;
  readonly drivers: CsiDrivers;
  readonly pods: () => Iterable<string>;
  readonly mounted: () => Iterable<MountedVolume>;
  readonly exec: Exec;
  readonly known: (path: string) => string;
  /** How often they are read; not positive: never. */
  readonly periodMs: number;
  /** Whether it is told how volumes are (feature gate CSIVolumeHealth). */
  readonly tellsHealth: boolean;
  readonly onAbnormal: (figures: VolumeFigures, message: string) => void;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

export function volumeStats({ volumes, drivers, pods, mounted, exec, known, periodMs, tellsHealth, onAbnormal, clock, log, metrics }: Deps): VolumeStats {
  let figures: readonly VolumeFigures[] = [];
  const took = metrics.histogram("kubelet_volume_metric_collection_duration_seconds", "[ALPHA] Duration in seconds to calculate volume stats", DEFAULT_BUCKETS);

  async function timed<T>(source: string, work: () => Promise<T>): Promise<T> {
    const beganMs = clock.uptimeMs();
    return await work().finally(() => took.observe((clock.uptimeMs() - beganMs) / 1000, { metric_source: source }));
  }

  async function look(signal: AbortSignal): Promise<void> {
    const wanted = [...pods()].flatMap((podUid) => volumes.published(podUid).map(({ volume, target, claim }) => ({ podUid, volume, target, of: claim ?? { name: volume.specName } })));
    const others = settleEach([...mounted()].toSorted((a, b) => Number(a.isRemote ?? false) - Number(b.isRemote ?? false)), LOOKED_AT_ONCE, (one) => mountedFigures(one, signal));
    const answers = await Promise.all(wanted.map(async ({ podUid, volume, target, of }): Promise<VolumeFigures[]> => {
      try {
        const driver = drivers.get(volume.driver);
        if (!(await driver.can("GET_VOLUME_STATS", signal))) return [];
        const answer = await timed(volume.driver, () => driver.call("Node/NodeGetVolumeStats", { volume_id: volume.handle, volume_path: known(target) }, { signal, timeoutMs: CALL_MS }));
        const told = figuresOf(answer, tellsHealth && (await driver.can("VOLUME_CONDITION", signal)));
        return told ? [{ podUid, ...of, ...told }] : [];
      } catch (error) {
        if (!signal.aborted) log.debug("no figures of a volume", { driver: volume.driver, volume: volume.handle, error });
        return [];
      }
    }));
    figures = [...answers, ...await others].flat();
    for (const one of figures) if (one.health?.abnormal) onAbnormal(one, one.health.message);
  }

  async function mountedFigures({ path, isRemote = false, ...of }: MountedVolume, signal: AbortSignal): Promise<VolumeFigures[]> {
    try {
      const { inodes, inodesFree, ...bytes } = await timed("statfs", () => (isRemote ? remoteUsage(exec, path, { signal }) : fileSystemUsage(path)));
      return [{ ...of, ...bytes, inodes, inodesFree, inodesUsed: inodes - inodesFree }];
    } catch (error) {
      if (!signal.aborted) log.debug("no figures of a volume", { path, error }); // unmounted meanwhile, or nobody answers
      return [];
    }
  }

  for (const [name, help, value] of [
    ["available_bytes", "Number of available bytes in the volume", ({ availableBytes }) => availableBytes], ["capacity_bytes", "Capacity in bytes of the volume", ({ capacityBytes }) => capacityBytes],
    ["used_bytes", "Number of used bytes in the volume", ({ usedBytes }) => usedBytes], ["inodes", "Maximum number of inodes in the volume", ({ inodes }) => inodes],
    ["inodes_free", "Number of free inodes in the volume", ({ inodesFree }) => inodesFree], ["inodes_used", "Number of used inodes in the volume", ({ inodesUsed }) => inodesUsed],
    ["health_status_abnormal", "Abnormal volume health status. The count is either 1 or 0. 1 indicates the volume is unhealthy, 0 indicates volume is healthy", ({ health }) => health && Number(health.abnormal)],
  ] as readonly (readonly [string, string, (of: VolumeFigures) => number | undefined])[]) {
    metrics.gaugeFrom(`kubelet_volume_stats_${name}`, `[ALPHA] ${help}`, () => [...new Map(figures.flatMap((one) => {
      const number = value(one);
      return number === undefined || one.namespace === undefined || one.claim === undefined ? [] : [[
        `${one.namespace}/${one.claim}`, [{ namespace: one.namespace, persistentvolumeclaim: one.claim }, number] as const,
      ] as const]; // once, however many pods mount it
    })).values()]);
  }

  return {
    name: "volume-stats",
    of: (podUid) => figures.filter((one) => one.podUid === podUid),
    async run(signal, ready) {
      ready();
      if (periodMs <= 0) return await aborted(signal);
      for await (const _ of clock.every(periodMs, signal)) await look(signal);
    },
  };
}

/**
 * What the driver does not tell is zero; undefined: it tells nothing of how full the volume is, and an empty one would be another. `tellsHealth`: it can say
 * how volumes are, and does so also of one of which it says no more. Pure.
 */
export function figuresOf({ usage = [], volume_condition: condition }: NodeGetVolumeStatsResponse, tellsHealth: boolean): Omit<VolumeFigures, "podUid" | "namespace" | "claim"> | undefined {
  if (usage.length === 0 && !tellsHealth) return undefined;
  const bytes = usage.findLast(({ unit }) => unit === "BYTES");
  const inodes = usage.findLast(({ unit }) => unit === "INODES");
  const told = (figure: number | undefined): number => Math.max(0, figure ?? 0); // readers take no less for a number, and would be without the figures of the whole node
  return {
    availableBytes: told(bytes?.available), capacityBytes: told(bytes?.total), usedBytes: told(bytes?.used), inodesFree: told(inodes?.available), inodes: told(inodes?.total), inodesUsed: told(inodes?.used),
    ...(tellsHealth ? { health: { abnormal: condition?.abnormal ?? false, message: condition?.message ?? "" } } : {}),
  };
}

/** Under which names the pod has the volume. Pure. */
export function namesInPod({ metadata, spec }: Pod, { name: own, claim }: Pick<VolumeFigures, "name" | "claim">): string[] {
  return (spec.volumes ?? []).filter(({ name, persistentVolumeClaim, ephemeral }) =>
    own !== undefined ? own === name : claim !== undefined && (persistentVolumeClaim?.claimName === claim || (ephemeral && `${metadata.name}-${name}` === claim))).map(({ name }) => name);
}
