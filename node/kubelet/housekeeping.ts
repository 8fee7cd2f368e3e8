/** What keeps the node in order beside its pods: unused images and long logs go, pods end when it runs short or goes down; and the figures that this is decided by. */
import { join } from "node:path";
import type { EventRecorder } from "../../core/client/events.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import { settleAll } from "../../core/lifecycle/settle-all.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Metrics } from "../../core/observe/metrics.ts";
import type { Cri } from "../cri/client.ts";
import type { Cgroups } from "../os/cgroup.ts";
import type { MachineInfo } from "../os/machine.ts";
import { type MountedVolume, namesInPod, type VolumeFigures, volumeStats } from "./csi/volume-stats.ts";
import { eviction } from "./eviction/eviction.ts";
import type { Observation } from "./eviction/plan.ts";
import { IMAGE_GC_DEFAULTS, imageGc } from "./images/gc.ts";
import type { PullRecords } from "./images/pull-records.ts";
import { logRotation } from "./logs/rotation.ts";
import type { Pressure } from "./node/pressure.ts";
import type { NodePlugins } from "./plugins/node-plugins.ts";
import type { KubeletMetrics } from "./context.ts";
import type { Exec } from "../os/exec.ts";
import { ownCgroup } from "../os/own-cgroup.ts";
import type { PodManager } from "./pod-manager.ts";
import { nodeReference } from "./node/node-reference.ts";
import { isTerminalPhase, podReference } from "./pod-spec.ts";
import type { PodWorker } from "./pod-worker.ts";
import type { PodCgroups } from "./resources/pod-cgroups.ts";
import type { KubeletSettings } from "./settings.ts";
import { shutdownLevels } from "./shutdown/plan.ts";
import { gracefulShutdown, type ShutdownNotices } from "./shutdown/shutdown.ts";
import { nodeStats, type Stats } from "./stats/stats.ts";

interface Deps {
  readonly settings: KubeletSettings;
  readonly machine: MachineInfo;
  readonly cri: Cri;
  readonly exec: Exec;
  readonly cgroups: Cgroups;
  readonly podCgroups: PodCgroups;
  readonly manager: Pick<PodManager, "worker" | "workers" | "runningLogs">;
  readonly plugins: Pick<NodePlugins, "csi" | "drivers">;
  /** Of images that were pulled; absent: nobody asks. */
  readonly records: PullRecords | undefined;
  readonly shutdownNotices: ShutdownNotices | undefined;
  /** A path below the kubelet's directory as plugins know it. */
  readonly known: (path: string) => string;
  /** What all pods together use of what they may; undefined: that is not limited. */
  readonly podsMemory: () => Observation | undefined;
  /** What the Node's status tells of it has changed. */
  readonly onNode: () => void;
  readonly events: EventRecorder;
  readonly metrics: Metrics;
  readonly counted: Pick<KubeletMetrics, "imageRemoved">;
  readonly clock: Clock;
  readonly log: Log;
}

export interface Housekeeping {
  readonly stats: Stats;
  pressures(): ReadonlySet<Pressure>;
  isShuttingDown(): boolean;
  readonly parts: readonly Runnable[];
}

export function housekeeping({ settings, machine, cri, exec, cgroups, podCgroups, manager, plugins: { csi, drivers }, records, shutdownNotices, known, podsMemory, onNode, events, metrics, counted, clock, log }: Deps): Housekeeping {
  const reference = nodeReference(settings.nodeName);
  const active = (): PodWorker[] => [...manager.workers()].filter(isActive);
  const tellAbnormal = (volume: VolumeFigures, message: string): void => {
    const pod = manager.worker(volume.podUid)?.pod;
    if (pod) for (const name of namesInPod(pod, volume)) events.event(podReference(pod), "Warning", "VolumeConditionAbnormal", `Volume ${name}: ${message}`);
  };
  const claimStats = csi && volumeStats({
    volumes: csi, drivers, pods: () => [...manager.workers()].map(({ uid }) => uid), mounted: () => mountedVolumes(manager.workers()), exec, known, periodMs: settings.volumeStatsMs,
    tellsHealth: settings.placement.gates["CSIVolumeHealth"] === true, onAbnormal: tellAbnormal, clock, log, metrics,
  });
  const stats = nodeStats({
    settings, cri, cgroups, clock, memoryBytes: machine.memoryBytes, pods: () => manager.workers(), podGroup: (pod) => podCgroups.pathOf(pod),
    podsGroup: podCgroups.roots[0]!, ownGroup: process.platform === "linux" ? ownCgroup() : undefined, others: (uid) => claimStats?.of(uid) ?? [],
  });
  metrics.gaugeFrom("kubelet_container_log_filesystem_used_bytes", "[ALPHA] Bytes used by the container's logs on the filesystem.", () => stats.latest().flatMap(({ podRef: { uid, namespace, name: pod }, containers }) =>
    containers.flatMap(({ name: container, logs }) => (logs?.usedBytes === undefined ? [] : [[{ uid, namespace, pod, container }, logs.usedBytes] as const]))));
  const imageRemoved = async (id: string, reason: "age" | "space"): Promise<void> => {
    counted.imageRemoved(reason);
    await records?.forget(id);
  };
  const tidyRecords = records && (async (signal: AbortSignal): Promise<void> => await records.tidy({
    all: async () => ((await cri.call("ImageService/ListImages", {}, { signal })).images ?? []).map(({ id = "" }) => id),
    find: async (name) => {
      const { image } = await cri.call("ImageService/ImageStatus", { image: { image: name } }, { signal });
      return image?.id ? { id: image.id, pinned: image.pinned } : undefined;
    },
  }).catch((error: unknown) => { if (!signal.aborted) log.warn("what is noted of images is not tidied up, next try in one period", { error }); }));
  const images = imageGc({ cri, disk: stats.imageDisk, mounted: () => mountedImages(manager.workers()), clock, log, events, node: reference, onLooked: tidyRecords, onRemoved: imageRemoved }, { ...IMAGE_GC_DEFAULTS, ...settings.imageGc });
  const guard = eviction({
    stats, machine, settings: settings.eviction, clock, log, events, metrics, podsMemory, onPressure: onNode, pods: () => active().filter(({ hasFailed }) => !hasFailed), // of one that it has ended no more is to be had
    reclaim: async (what, quit) => await (what === "images" ? images.removeUnused(quit) : settleAll([...manager.workers()].map((worker) => worker.discardDead(quit)))),
  });
  if (!shutdownNotices && shutdownLevels(settings.shutdown).length > 0) log.error("nobody tells this kubelet that the machine goes down: its pods are not waited for, whatever shutdownGracePeriod says");
  const shutdown = shutdownNotices && gracefulShutdown({
    settings: settings.shutdown, notices: shutdownNotices, pods: active, clock, log, metrics, events, node: reference,
    stateFile: join(settings.dataDir, "graceful_node_shutdown_state"), onChange: onNode,
  });
  const rotation = logRotation({ cri, clock, log, running: () => manager.runningLogs(), bytesMax: settings.containerLogMaxBytes, filesMax: settings.containerLogMaxFiles, workers: settings.containerLogWorkers, periodMs: settings.containerLogMs });
  return {
    stats,
    pressures: () => guard.pressures(),
    isShuttingDown: () => shutdown?.isDown() ?? false,
    parts: [images, rotation, guard, ...(shutdown ? [shutdown] : []), ...(claimStats ? [claimStats] : [])],
  };
}

/**
 * Something of it may run: of one that is being ended already, too, which may have longer for it than there is now. A pod that had ended before this kubelet started has the stage of one that runs until
 * it was looked at, which may take long on a full disk: it has nothing to give. Source: kubernetes v1.36 pkg/kubelet/kubelet_pods.go (GetActivePods)
 */
export function isActive({ stage, pod }: Pick<PodWorker, "stage" | "pod">): boolean {
  return stage === "terminating" || (stage === "running" && !isTerminalPhase(pod.status?.phase));
}

function mountedVolumes(workers: Iterable<PodWorker>): MountedVolume[] {
  return [...workers].flatMap(({ uid, volumes }) => [...volumes].flatMap(([name, { hostPath, claim, isMeasured, isRemote }]) => (isMeasured && hostPath !== undefined ? [{ podUid: uid, name, ...claim, path: hostPath, isRemote }] : [])));
}

/** The images that containers have as volumes, by id. */
function mountedImages(workers: Iterable<PodWorker>): string[] {
  return [...workers].flatMap(({ runtime }) => runtime.containers.flatMap(({ mounts }) => mounts.flatMap(({ image }) => image?.image ?? [])));
}
