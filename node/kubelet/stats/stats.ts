/**
 * What the node, its pods and their containers use: the summary API, and what eviction decides by.
 *
 * Processor, memory and network come from the runtime, for the node from the root cgroup; disk usage is measured at most once a minute, for
 * walking directories is work.
 *
 * API:    https://kubernetes.io/docs/reference/instrumentation/node-metrics/
 * Source: kubernetes v1.36 pkg/kubelet/server/stats/summary.go, pkg/kubelet/stats/cri_stats_provider.go
 */
import { readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { type Clock, timestamp } from "../../../core/lifecycle/clock.ts";
import type { Cri } from "../../cri/client.ts";
import type { ContainerStats as CriContainerStats, CpuUsage, ImageFsInfoResponse, MemoryUsage, NetworkInterfaceUsage, PodSandboxStats, UInt64Value } from "../../cri/gen/runtime.v1.ts";
import type { Cgroups } from "../../os/cgroup.ts";
import { machineUptimeSeconds, meminfo, processCount } from "../../os/machine.ts";
import { CONTAINER_NAME, POD_NAME, POD_NAMESPACE, POD_UID } from "../containers/labels.ts";
import type { ContainerStats, CpuStats, FsStats, InterfaceStats, IoStats, MemoryStats, NetworkStats, PodStats, PsiStats, StatsSummary, SwapStats } from "../kubelet-api.ts";
import { namesInPod, type VolumeFigures } from "../csi/volume-stats.ts";
import type { RuntimePod } from "../runtime-pod.ts";
import type { KubeletSettings } from "../settings.ts";
import { HOSTS_FILE, podDirectory, volumeDirectory } from "../volumes/pod-directories.ts";
import { diskVolumes } from "../eviction/local-storage.ts";
import { type DirectoryUsage, directoryUsage, type DiskLayout, diskLayout, fileSystemUsage, type FileSystemUsage } from "./disk-usage.ts";
import { parseNetDev } from "./network-figures.ts";
import { type Pressures, pressuresOf, swapOf } from "./pressure.ts";
import { runtimeStats } from "./runtime-stats.ts";
import { fromWindows } from "./windows-stats.ts";

interface Deps {
  readonly settings: KubeletSettings;
  readonly cri: Pick<Cri, "call">;
  readonly cgroups: Cgroups;
  readonly clock: Clock;
  readonly memoryBytes: number;
  readonly pods: () => Iterable<{ readonly pod: Pod; readonly runtime: RuntimePod }>;
  /** The pod's control group. */
  readonly podGroup: (pod: Pod) => string;
  /** That of all pods together. */
  readonly podsGroup: string;
  /** This process's; undefined: nothing counts it by itself. */
  readonly ownGroup?: string | undefined;
  /** Of volumes that others have, as they say. */
  readonly others?: ((podUid: string) => readonly VolumeFigures[]) | undefined;
}

export interface Stats {
  /** `isFresh`: what is on disks is measured now. */
  summary(signal: AbortSignal, how?: { readonly isFresh?: boolean }): Promise<StatsSummary>;
  /** Of the pods, as the last summary told it. */
  latest(): readonly PodStats[];
  /** Of the whole node: what can still be had without swapping or killing. */
  memory(): { readonly availableBytes: number; readonly workingSetBytes: number };
  nodeDisk(): Promise<FileSystemUsage>;
  imageDisk(signal: AbortSignal): Promise<FileSystemUsage>;
  diskLayout(signal: AbortSignal): Promise<DiskLayout>;
}

const DISK_AGE_MS_MAX = 60_000;
/** A rate needs two readings; closer together it is noise. */
const RATE_MS_MIN = 1_000;
const NODE = "node";
/** Upstream's names among the containers that are no pod's: what all pods use together, and what this process and those beside it do. */
const PODS = "pods";
const KUBELET = "kubelet";

/** A counter of processor time, read once, and its rate since the reading before. */
interface CpuReading { readonly ns: number; readonly atMs: number; readonly nanoCores: number | undefined }

export function nodeStats({ settings, cri, cgroups, clock, memoryBytes, pods, podGroup, podsGroup, ownGroup, others }: Deps): Stats {
  const disks = new Map<string, { readonly atMs: number; readonly usage: DirectoryUsage }>();
  /** Of the node, of pods and of containers that the last summary told of. */
  const readings = new Map<string, CpuReading>();
  let paths: { readonly images: string; readonly containers: string } | undefined;
  let latest: readonly PodStats[] = [];
  const startMs = clock.nowMs();

  async function usageOf(path: string, signal: AbortSignal): Promise<DirectoryUsage> {
    const known = disks.get(path);
    if (known && clock.uptimeMs() - known.atMs < DISK_AGE_MS_MAX) return known.usage;
    const usage = await directoryUsage(path, signal);
    signal.throwIfAborted(); // who asked has gone, and it was not counted to its end
    disks.set(path, { atMs: clock.uptimeMs(), usage });
    for (const [old, { atMs }] of disks) if (clock.uptimeMs() - atMs > 10 * DISK_AGE_MS_MAX) disks.delete(old);
    return usage;
  }

  function memory(): { readonly availableBytes: number; readonly workingSetBytes: number } {
    const { workingSetBytes = 0, availableBytes } = cgroups.usage("/") ?? {};
    return { workingSetBytes, availableBytes: availableBytes ?? Math.max(0, memoryBytes - workingSetBytes) };
  }

  /** Where the runtime has images, and what containers write. */
  async function runtimePaths(signal: AbortSignal): Promise<{ readonly images: string; readonly containers: string }> {
    return paths ?? pathsIn(await cri.call("ImageService/ImageFsInfo", {}, { signal }));
  }

  function pathsIn({ image_filesystems, container_filesystems }: ImageFsInfoResponse): NonNullable<typeof paths> {
    const images = image_filesystems?.[0]?.fs_id?.mountpoint ?? settings.dataDir;
    return (paths = { images, containers: container_filesystems?.[0]?.fs_id?.mountpoint ?? images });
  }

  /** The disk that has them, and what of it they use. */
  async function imageStats(time: string, signal: AbortSignal): Promise<{ readonly disk: FileSystemUsage; readonly stats: FsStats }> {
    const told = await cri.call("ImageService/ImageFsInfo", {}, { signal });
    const disk = await fileSystemUsage(pathsIn(told).images);
    const { used_bytes, inodes_used } = told.image_filesystems?.[0] ?? {};
    return { disk, stats: { ...fsStats(disk, time), usedBytes: valueOf(used_bytes) ?? disk.usedBytes, inodesUsed: valueOf(inodes_used) ?? disk.inodes - disk.inodesFree } };
  }

  async function imageDisk(signal: AbortSignal): Promise<FileSystemUsage> {
    return await fileSystemUsage((await runtimePaths(signal)).images);
  }

  /** Undefined at the first reading, and at the first of a counter that has begun anew: there is no rate yet, which is not the same as none. */
  function cpuRate(id: string, ns: number): number | undefined {
    const atMs = clock.uptimeMs();
    const before = readings.get(id);
    if (before && atMs - before.atMs < RATE_MS_MIN) return before.nanoCores;
    const nanoCores = before && ns >= before.ns ? Math.round(((ns - before.ns) / (atMs - before.atMs)) * 1000) : undefined;
    readings.set(id, { ns, atMs, nanoCores });
    return nanoCores;
  }

  function nodeCpu(ns: number): CpuStats {
    return { time: timestamp(clock.nowMs()), usageCoreNanoSeconds: ns, ...withRate(cpuRate(NODE, ns)) };
  }

  async function summary(signal: AbortSignal, { isFresh = false }: { readonly isFresh?: boolean } = {}): Promise<StatsSummary> {
    if (isFresh) disks.clear();
    const time = timestamp(clock.nowMs());
    const known = new Map([...pods()].map((one) => [one.pod.metadata.uid, one]));
    const running = [...known.values()].flatMap(({ runtime }) => runtime.sandboxes.filter(({ ready }) => ready).map(({ id }) => id));
    const [found, disk, images] = await Promise.all([
      runtimeStats({
        cri, cgroups, sandboxes: () => running,
        podGroup: (uid) => { const one = known.get(uid); return one && podGroup(one.pod); },
      }, signal),
      fileSystemUsage(settings.dataDir), imageStats(time, signal),
    ]);
    const stats = withoutEnded(found, new Set(running));
    const told = new Set([NODE, PODS, KUBELET, ...stats.flatMap(({ attributes, linux, windows }) => [attributes?.labels?.[POD_UID], ...((linux ?? windows)?.containers ?? []).map((container) => container.attributes?.id)])]);
    for (const id of readings.keys()) if (!told.has(id)) readings.delete(id);
    const root = cgroups.usage("/");
    const waits = pressuresOf(cgroups, "/");
    const { current, max } = processCount();
    const all = await Promise.all(stats.map((one) => podStats(one, known.get(one.attributes?.labels?.[POD_UID] ?? ""), { disk, images: images.disk, signal })));
    latest = all.filter((one) => one !== undefined);
    return {
      node: {
        nodeName: settings.nodeName, startTime: timestamp(clock.nowMs() - machineUptimeSeconds() * 1000), ...(root ? { cpu: { ...nodeCpu(root.cpuNs), ...withPsi(waits.cpu) } } : {}), ...ioStats(waits, time), ...nodeSwap(time),
        ...(root ? { memory: {
          time, availableBytes: memory().availableBytes, usageBytes: root.memoryBytes, workingSetBytes: root.workingSetBytes, rssBytes: root.rssBytes,
          pageFaults: root.pageFaults, majorPageFaults: root.majorPageFaults, ...withPsi(waits.memory),
        } } : {}),
        network: hostNetwork(time), fs: { ...fsStats(disk, time), usedBytes: disk.usedBytes, inodesUsed: disk.inodes - disk.inodesFree },
        systemContainers: [...(ownGroup === undefined ? [] : systemContainer(KUBELET, ownGroup, time)), ...systemContainer(PODS, podsGroup, time)],
        runtime: { imageFs: images.stats, containerFs: images.stats }, rlimit: { time, maxpid: max, curproc: current },
      },
      pods: latest,
    };
  }

  /** None where there is no such control group. */
  function systemContainer(name: string, path: string, time: string): ContainerStats[] {
    const group = cgroups.usage(path);
    if (!group) return [];
    const { cpuNs, memoryBytes: usageBytes, workingSetBytes, rssBytes, pageFaults, majorPageFaults } = group;
    const limit = Number(cgroups.text(path, "memory", cgroups.version === 2 ? "memory.max" : "memory.limit_in_bytes"));
    const waits = pressuresOf(cgroups, path);
    return [{
      name, startTime: timestamp(startMs), cpu: { time, usageCoreNanoSeconds: cpuNs, ...withRate(cpuRate(name, cpuNs)), ...withPsi(waits.cpu) },
      memory: { time, ...(limit > 0 && limit <= memoryBytes ? { availableBytes: Math.max(0, limit - workingSetBytes) } : {}), usageBytes, workingSetBytes, rssBytes, pageFaults, majorPageFaults, ...withPsi(waits.memory) },
      ...ioStats(waits, time), ...withSwap(swapOf(cgroups, path, time)),
    }];
  }

  async function podStats({ attributes, linux: own, windows }: PodSandboxStats, known: { readonly pod: Pod; readonly runtime: RuntimePod } | undefined, { disk, images, signal }: {
    readonly disk: FileSystemUsage;
    readonly images: FileSystemUsage;
    readonly signal: AbortSignal;
  }): Promise<PodStats | undefined> {
    const labels = attributes?.labels ?? {};
    const uid = labels[POD_UID];
    const linux = own ?? (windows && fromWindows(windows));
    if (uid === undefined || !linux) return undefined;
    const time = timestamp(clock.nowMs());
    const group = known ? podGroup(known.pod) : undefined;
    const waits = pressuresOf(cgroups, group);
    const volumes = known ? await Promise.all(localVolumes(settings.dataDir, known.pod).map(async ({ name, path }) => ({ name, ...fsStats(await fileSystemUsage(path).catch(() => disk), time), ...used(await usageOf(path, signal)) }))) : [];
    const ended = new Set(known?.runtime.containers.flatMap(({ id, state }) => (state === "exited" ? [id] : []))); // they use nothing, and what they have left on the disk goes where it gets full
    const running = (linux.containers ?? []).filter((container) => !ended.has(container.attributes?.id ?? ""));
    const containers = await Promise.all(running.map((container) => containerStats(container, known?.runtime, group, { disk, images, signal })));
    const hosts = await usageOf(join(podDirectory(settings.dataDir, uid), HOSTS_FILE), signal);
    const ephemeral = sumOf([...containers.flatMap(({ rootfs, logs }) => [rootfs, logs]), ...(known ? diskVolumes(known.pod, volumes) : []), used(hosts)]);
    return {
      podRef: { name: labels[POD_NAME] ?? "", namespace: labels[POD_NAMESPACE] ?? "", uid }, startTime: timestamp(known?.runtime.sandboxes[0]?.createdAtMs ?? clock.nowMs()), containers,
      cpu: { ...cpuStats(linux.cpu, uid), ...withPsi(waits.cpu) }, memory: { ...memoryStats(linux.memory), ...withPsi(waits.memory) }, ...ioStats(waits, time),
      ...withSwap(swapOf(cgroups, group, time) ?? podSwap(containers, time)),
      ...(linux.network ? { network: networkStats(linux.network.default_interface, linux.network.interfaces ?? [], time) } : {}),
      volume: [...volumes, ...(known ? otherVolumes(known.pod, others?.(uid) ?? [], time) : [])], "ephemeral-storage": { ...fsStats(disk, time), ...ephemeral }, process_stats: { process_count: valueOf(linux.process?.process_count) ?? 0 },
    };
  }

  async function containerStats({ attributes, cpu, memory: used_, writable_layer, swap }: CriContainerStats, runtime: RuntimePod | undefined, group: string | undefined, { disk, images, signal }: {
    readonly disk: FileSystemUsage;
    readonly images: FileSystemUsage;
    readonly signal: AbortSignal;
  }): Promise<ContainerStats> {
    const time = timestamp(clock.nowMs());
    const found = runtime?.containers.find(({ id }) => id === attributes?.id);
    const below = group === undefined ? undefined : cgroups.children(group).find((name) => attributes?.id && name.includes(attributes.id));
    const own = below === undefined ? undefined : posix.join(group!, below);
    const waits = pressuresOf(cgroups, own);
    const logs = found?.logPath ? used(await usageOf(dirname(found.logPath), signal)) : {};
    return {
      name: attributes?.labels?.[CONTAINER_NAME] ?? attributes?.metadata?.name ?? "", startTime: timestamp(found?.createdAtMs || clock.nowMs()),
      cpu: { ...cpuStats(cpu, attributes?.id ?? ""), ...withPsi(waits.cpu) }, memory: { ...memoryStats(used_), ...withPsi(waits.memory) }, ...ioStats(waits, time),
      rootfs: { ...fsStats(images, time), usedBytes: valueOf(writable_layer?.used_bytes) ?? 0, inodesUsed: valueOf(writable_layer?.inodes_used) ?? 0 }, logs: { ...fsStats(disk, time), ...logs },
      ...withSwap(swap ? { time: timeOf(swap.timestamp, time), swapAvailableBytes: valueOf(swap.swap_available_bytes) ?? 0, swapUsageBytes: valueOf(swap.swap_usage_bytes) ?? 0 } : swapOf(cgroups, own, time)), // not every runtime tells
    };
  }

  /** containerd tells a rate of zero the first time that it is asked about a container, however busy that is: zero is looked into. */
  function cpuStats(usage: CpuUsage | undefined, id: string): CpuStats {
    const ns = valueOf(usage?.usage_core_nano_seconds);
    const told = valueOf(usage?.usage_nano_cores) ?? 0;
    const own = ns === undefined ? 0 : cpuRate(id, ns);
    return { time: timeOf(usage?.timestamp, timestamp(clock.nowMs())), ...withRate(told || own), usageCoreNanoSeconds: ns ?? 0 };
  }

  function memoryStats(usage: MemoryUsage | undefined): MemoryStats {
    const available = valueOf(usage?.available_bytes);
    return {
      time: timeOf(usage?.timestamp, timestamp(clock.nowMs())), ...(available ? { availableBytes: available } : {}), usageBytes: valueOf(usage?.usage_bytes) ?? 0, workingSetBytes: valueOf(usage?.working_set_bytes) ?? 0,
      rssBytes: valueOf(usage?.rss_bytes) ?? 0, pageFaults: valueOf(usage?.page_faults) ?? 0, majorPageFaults: valueOf(usage?.major_page_faults) ?? 0,
    };
  }

  return { summary, latest: () => latest, memory, nodeDisk: () => fileSystemUsage(settings.dataDir), imageDisk, diskLayout: async (signal) => await diskLayout({ node: settings.dataDir, ...await runtimePaths(signal) }) };
}

/** Some runtimes tell of a pod's earlier sandboxes too, and of those of pods before it that had its name: of those only the one that runs counts, where one does. */
function withoutEnded(stats: readonly PodSandboxStats[], ready: ReadonlySet<string>): readonly PodSandboxStats[] {
  return [...Map.groupBy(stats, ({ attributes: { labels = {} } = {} }) => `${labels[POD_NAMESPACE] ?? ""}/${labels[POD_NAME] ?? ""}`).values()].flatMap((all) => {
    const running = all.filter(({ attributes }) => ready.has(attributes?.id ?? ""));
    return all.length === 1 ? all : running.length > 0 ? running : all.slice(-1);
  });
}

/** Volumes whose content is the pod's: on the node's disk, or in its memory. */
function localVolumes(dataDir: string, { metadata, spec }: Pod): { readonly name: string; readonly path: string }[] {
  const podDir = podDirectory(dataDir, metadata.uid);
  return (spec.volumes ?? []).flatMap(({ name, emptyDir, configMap, downwardAPI, secret, projected }) => {
    const kind = emptyDir ? "empty-dir" : configMap ? "configmap" : downwardAPI ? "downward-api" : secret ? "secret" : projected ? "projected" : undefined;
    const plugin = kind && `kubernetes.io/${kind}`;
    return plugin ? [{ name, path: volumeDirectory(podDir, plugin, name) }] : [];
  });
}

/** Volumes that are not of this node's disk: of claims, or a server's or a driver's that the pod itself names. */
function otherVolumes(pod: Pod, figures: readonly VolumeFigures[], time: string): NonNullable<PodStats["volume"]> {
  return figures.flatMap(({ namespace = "", claim, name: own, podUid: _, health, ...numbers }) => {
    const told = Object.fromEntries(Object.entries(numbers).filter(([, value]) => value !== undefined)) as Partial<FsStats>;
    return namesInPod(pod, { name: own, claim }).map((name) => ({
      time, ...told, name, ...(claim === undefined ? {} : { pvcRef: { name: claim, namespace } }), ...(health ? { volumeHealthStats: { abnormal: health.abnormal } } : {}),
    }));
  });
}

function used({ bytes, inodes }: DirectoryUsage): Pick<FsStats, "usedBytes" | "inodesUsed"> {
  return { usedBytes: bytes, inodesUsed: inodes };
}

function sumOf(all: readonly (Pick<FsStats, "usedBytes" | "inodesUsed"> | undefined)[]): Pick<FsStats, "usedBytes" | "inodesUsed"> {
  const sum = (field: "usedBytes" | "inodesUsed"): number => all.reduce((total, one) => total + (one?.[field] ?? 0), 0);
  return { usedBytes: sum("usedBytes"), inodesUsed: sum("inodesUsed") };
}

function fsStats({ availableBytes, capacityBytes, inodes, inodesFree }: FileSystemUsage, time: string): FsStats {
  return { time, availableBytes, capacityBytes, inodes, inodesFree };
}

function networkStats(main: NetworkInterfaceUsage | undefined, all: readonly NetworkInterfaceUsage[], time: string): NetworkStats {
  return { time, ...interfaceStats(main ?? {}), interfaces: [...(main ? [main] : []), ...all.filter(({ name }) => name !== main?.name)].map(interfaceStats) };
}

function interfaceStats({ name = "", rx_bytes, rx_errors, tx_bytes, tx_errors }: NetworkInterfaceUsage): InterfaceStats {
  return { name, rxBytes: valueOf(rx_bytes) ?? 0, rxErrors: valueOf(rx_errors) ?? 0, txBytes: valueOf(tx_bytes) ?? 0, txErrors: valueOf(tx_errors) ?? 0 };
}

/** The host's interfaces, the one with the default route first. */
function hostNetwork(time: string): NetworkStats {
  if (process.platform === "win32") return { time, name: "", interfaces: [] }; // its counters are another interface's: not read yet
  const interfaces = parseNetDev(readFileSync(join("/proc", "net", "dev"), "utf8")).map(({ name, rxBytes, rxErrors, txBytes, txErrors }): InterfaceStats => ({ name, rxBytes, rxErrors, txBytes, txErrors }));
  const route = readFileSync(join("/proc", "net", "route"), "utf8").split("\n").map((line) => line.split("\t")).find(([, destination]) => destination === "00000000")?.[0];
  const main = interfaces.find(({ name }) => name === route) ?? interfaces[0];
  return { time, ...(main ?? { name: "" }), interfaces };
}

function valueOf(value: UInt64Value | undefined): number | undefined {
  return value === undefined ? undefined : value.value ?? 0;
}

function timeOf(ns: number | undefined, otherwise: string): string {
  return ns ? timestamp(ns / 1e6) : otherwise;
}

function withRate(usageNanoCores: number | undefined): { readonly usageNanoCores?: number } {
  return usageNanoCores === undefined ? {} : { usageNanoCores };
}

function withPsi(psi: PsiStats | undefined): { readonly psi?: PsiStats } {
  return psi ? { psi } : {};
}

function withSwap(swap: SwapStats | undefined): { readonly swap?: SwapStats } {
  return swap ? { swap } : {};
}

function ioStats({ io }: Pressures, time: string): { readonly io?: IoStats } {
  return io ? { io: { time, psi: io } } : {};
}

/** Of the machine; none where it has no swap. */
function nodeSwap(time: string): { readonly swap?: SwapStats } {
  const memory = meminfo();
  const [total, free = 0] = [memory.get("SwapTotal"), memory.get("SwapFree")];
  return total === undefined ? {} : { swap: { time, swapAvailableBytes: free, swapUsageBytes: total - free } };
}

/** What its containers have together, where the runtime tells. */
function podSwap(containers: readonly ContainerStats[], time: string): SwapStats | undefined {
  const known = containers.flatMap(({ swap }) => (swap ? [swap] : []));
  const sum = (field: "swapAvailableBytes" | "swapUsageBytes"): number => known.reduce((total, swap) => total + (swap[field] ?? 0), 0);
  return known.length === 0 ? undefined : { time, swapAvailableBytes: sum("swapAvailableBytes"), swapUsageBytes: sum("swapUsageBytes") };
}
