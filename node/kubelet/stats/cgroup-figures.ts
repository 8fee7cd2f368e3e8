/**
 * Everything a control group tells of itself, in one form for versions 1 and 2. What the kernel does not tell is absent.
 *
 * API: https://docs.kernel.org/admin-guide/cgroup-v2.html, https://docs.kernel.org/admin-guide/cgroup-v1/
 */
import type { Cgroups, CgroupUsage } from "../../os/cgroup.ts";

export interface DeviceFigures {
  readonly device: string;
  readonly readBytes: number;
  readonly writtenBytes: number;
  readonly reads: number;
  readonly writes: number;
  /** Bytes by operation, as the kernel calls them: Read, Write, and in version 1 others. */
  readonly bytes: ReadonlyMap<string, number>;
}
export interface Pressure { readonly waitingSeconds: number; readonly stalledSeconds: number }

export interface CgroupFigures {
  readonly cpu?: { readonly totalSeconds: number; readonly userSeconds: number; readonly systemSeconds: number };
  /** Only where a quota is set. */
  readonly throttling?: { readonly periods: number; readonly throttledPeriods: number; readonly throttledSeconds: number; readonly burstPeriods: number; readonly burstSeconds: number };
  readonly cpuSpec: { readonly shares: number | undefined; readonly quotaUs: number | undefined; readonly periodUs: number | undefined };
  readonly memory?: {
    readonly usageBytes: number; readonly maxUsageBytes: number | undefined; readonly workingSetBytes: number; readonly rssBytes: number; readonly cacheBytes: number; readonly mappedFileBytes: number;
    readonly swapBytes: number | undefined; readonly kernelBytes: number | undefined; readonly activeFileBytes: number; readonly inactiveFileBytes: number; readonly failures: number;
    readonly pageFaults: number; readonly majorPageFaults: number; /** 0: none. */ readonly limitBytes: number | undefined; readonly swapLimitBytes: number | undefined; /** What is the group's even when the machine runs short. */ readonly reservationBytes: number | undefined; readonly oomKills: number;
  };
  readonly devices: readonly DeviceFigures[];
  readonly processes: { readonly current: number; /** Absent: no limit. */ readonly max: number | undefined };
  readonly pressure: { readonly cpu?: Pressure; readonly memory?: Pressure; readonly io?: Pressure };
}

const TICKS_PER_SECOND = 100; // USER_HZ, the same on every architecture we run on
const UNLIMITED = 2 ** 62; // v1 writes a huge number where there is no limit

export function cgroupFigures(cgroups: Cgroups, path: string): CgroupFigures {
  const text = (controller: string, file: string): string | undefined => cgroups.text(path, controller, file);
  const number = (controller: string, file: string): number | undefined => {
    const found = text(controller, file)?.trim();
    return found === undefined || found === "max" || !Number.isFinite(Number(found)) ? undefined : Number(found);
  };
  const values = (controller: string, file: string): ReadonlyMap<string, number> | undefined => {
    const found = text(controller, file);
    return found === undefined ? undefined : new Map(found.trim().split("\n").map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]));
  };
  return cgroups.version === 1 ? legacy({ text, number, values }) : unified({ text, number, values }, () => cgroups.usage(path));
}

interface Files {
  text(controller: string, file: string): string | undefined;
  number(controller: string, file: string): number | undefined;
  values(controller: string, file: string): ReadonlyMap<string, number> | undefined;
}

function legacy({ text, number, values }: Files): CgroupFigures {
  const total = number("cpuacct", "cpuacct.usage");
  const times = values("cpuacct", "cpuacct.stat");
  const throttling = values("cpu", "cpu.stat");
  const quotaUs = number("cpu", "cpu.cfs_quota_us");
  const memory = values("memory", "memory.stat");
  const of = (name: string): number => memory?.get(`total_${name}`) ?? 0;
  const usageBytes = number("memory", "memory.usage_in_bytes") ?? 0;
  return {
    ...(total === undefined ? {} : { cpu: { totalSeconds: total / 1e9, userSeconds: (times?.get("user") ?? 0) / TICKS_PER_SECOND, systemSeconds: (times?.get("system") ?? 0) / TICKS_PER_SECOND } }),
    ...(throttling && (quotaUs ?? 0) > 0 ? { throttling: {
      periods: throttling.get("nr_periods") ?? 0, throttledPeriods: throttling.get("nr_throttled") ?? 0, throttledSeconds: (throttling.get("throttled_time") ?? 0) / 1e9,
      burstPeriods: throttling.get("nr_bursts") ?? 0, burstSeconds: (throttling.get("burst_time") ?? 0) / 1e9,
    } } : {}),
    cpuSpec: { shares: number("cpu", "cpu.shares"), quotaUs: (quotaUs ?? 0) > 0 ? quotaUs : undefined, periodUs: number("cpu", "cpu.cfs_period_us") },
    ...(memory === undefined ? {} : { memory: {
      usageBytes, maxUsageBytes: number("memory", "memory.max_usage_in_bytes"), workingSetBytes: Math.max(0, usageBytes - of("inactive_file")), rssBytes: of("rss"), cacheBytes: of("cache"), mappedFileBytes: of("mapped_file"),
      swapBytes: memory.get("total_swap"), kernelBytes: number("memory", "memory.kmem.usage_in_bytes"), activeFileBytes: of("active_file"), inactiveFileBytes: of("inactive_file"), failures: number("memory", "memory.failcnt") ?? 0,
      pageFaults: of("pgfault"), majorPageFaults: of("pgmajfault"), limitBytes: limited(number("memory", "memory.limit_in_bytes")),
      swapLimitBytes: limited(number("memory", "memory.memsw.limit_in_bytes")), reservationBytes: limited(number("memory", "memory.soft_limit_in_bytes")),
      oomKills: values("memory", "memory.oom_control")?.get("oom_kill") ?? 0,
    } }),
    devices: legacyDevices((file) => text("blkio", file)),
    processes: { current: number("pids", "pids.current") ?? 0, max: number("pids", "pids.max") }, pressure: {},
  };
}

/** `machine`: what is used of the group without files for it: the root, which is the machine. Its limits have no files either. */
function unified({ text, number, values }: Files, machine: () => Pick<CgroupUsage, "memoryBytes" | "swapBytes"> | undefined): CgroupFigures {
  const cpu = values("cpu", "cpu.stat");
  const [quota = "max", period = "100000"] = text("cpu", "cpu.max")?.trim().split(" ") ?? [];
  const memory = values("memory", "memory.stat");
  const of = (name: string): number => memory?.get(name) ?? 0;
  const counted = memory && number("memory", "memory.current");
  const { memoryBytes: usageBytes, swapBytes } = memory && counted === undefined ? machine() ?? {} : { memoryBytes: counted, swapBytes: number("memory", "memory.swap.current") };
  const limit = (file: string): number | undefined => (text("memory", file) === undefined ? undefined : number("memory", file) ?? 0);
  const events = values("memory", "memory.events");
  const pressures = { cpu: pressure(text("cpu", "cpu.pressure")), memory: pressure(text("memory", "memory.pressure")), io: pressure(text("io", "io.pressure")) };
  return {
    ...(cpu === undefined ? {} : { cpu: { totalSeconds: (cpu.get("usage_usec") ?? 0) / 1e6, userSeconds: (cpu.get("user_usec") ?? 0) / 1e6, systemSeconds: (cpu.get("system_usec") ?? 0) / 1e6 } }),
    ...(cpu && quota !== "max" ? { throttling: {
      periods: cpu.get("nr_periods") ?? 0, throttledPeriods: cpu.get("nr_throttled") ?? 0, throttledSeconds: (cpu.get("throttled_usec") ?? 0) / 1e6,
      burstPeriods: cpu.get("nr_bursts") ?? 0, burstSeconds: (cpu.get("burst_usec") ?? 0) / 1e6,
    } } : {}),
    cpuSpec: { shares: sharesOf(number("cpu", "cpu.weight")), quotaUs: quota === "max" ? undefined : Number(quota), periodUs: Number(period) },
    ...(memory === undefined || usageBytes === undefined ? {} : { memory: {
      usageBytes, maxUsageBytes: number("memory", "memory.peak"), workingSetBytes: Math.max(0, usageBytes - of("inactive_file")), rssBytes: of("anon"), cacheBytes: of("file"), mappedFileBytes: of("file_mapped"),
      swapBytes, kernelBytes: memory.get("kernel"), activeFileBytes: of("active_file"), inactiveFileBytes: of("inactive_file"), failures: events?.get("max") ?? 0,
      pageFaults: of("pgfault"), majorPageFaults: of("pgmajfault"), limitBytes: limit("memory.max"), swapLimitBytes: limit("memory.swap.max"), reservationBytes: limit("memory.min"), oomKills: events?.get("oom_kill") ?? 0,
    } }),
    devices: unifiedDevices(text("io", "io.stat")),
    processes: { current: number("pids", "pids.current") ?? 0, max: number("pids", "pids.max") },
    pressure: Object.fromEntries(Object.entries(pressures).filter(([, found]) => found !== undefined)),
  };
}

function limited(bytes: number | undefined): number {
  return bytes === undefined || bytes > UNLIMITED ? 0 : bytes;
}

/** v2's weight as v1's shares, the linear way dashboards expect. Source: cadvisor container/common/helpers.go convertCPUWeightToCPULimit */
function sharesOf(weight: number | undefined): number | undefined {
  return weight === undefined ? undefined : 2 + Math.floor(((weight - 1) * 262_142) / 9_999);
}

/**
 * Who counts depends on the device's scheduler and on the kernel: since 6.10 the throttle counts only where somebody has set a limit. Those that count the groups below, too, come first.
 *
 * Source: opencontainers/cgroups fs/blkio.go
 */
const BLKIO = ["blkio.bfq", "blkio", "blkio.throttle"].map((prefix) => ({ bytes: `${prefix}.io_service_bytes_recursive`, counts: `${prefix}.io_serviced_recursive` }));
const BLKIO_ALONE = { bytes: "blkio.throttle.io_service_bytes", counts: "blkio.throttle.io_serviced" };

function legacyDevices(text: (file: string) => string | undefined): DeviceFigures[] {
  for (const { bytes, counts } of [...BLKIO, BLKIO_ALONE]) {
    const counted = operations(text(counts));
    if (counted.size === 0) continue;
    const moved = operations(text(bytes));
    return [...new Set([...moved.keys(), ...counted.keys()])].map((device) => {
      const [bytesBy, countsBy] = [moved.get(device) ?? new Map<string, number>(), counted.get(device)];
      return { device, readBytes: bytesBy.get("Read") ?? 0, writtenBytes: bytesBy.get("Write") ?? 0, reads: countsBy?.get("Read") ?? 0, writes: countsBy?.get("Write") ?? 0, bytes: bytesBy };
    });
  }
  return [];
}

/** "8:0 Read 4096": by device, then by operation. The line without a device is their sum. */
function operations(text: string | undefined): ReadonlyMap<string, Map<string, number>> {
  const found = new Map<string, Map<string, number>>();
  for (const line of text?.split("\n") ?? []) {
    const [device = "", operation = "", value] = line.split(" ");
    if (value === undefined) continue;
    found.set(device, (found.get(device) ?? new Map<string, number>()).set(operation, Number(value)));
  }
  return found;
}

/** "8:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0" */
function unifiedDevices(text: string | undefined): DeviceFigures[] {
  return (text ?? "").split("\n").filter((line) => line.includes("=")).map((line) => {
    const [device = "", ...pairs] = line.split(" ");
    const of = new Map(pairs.map((pair) => pair.split("=") as [string, string]));
    const [readBytes, writtenBytes] = [Number(of.get("rbytes") ?? 0), Number(of.get("wbytes") ?? 0)];
    return { device, readBytes, writtenBytes, reads: Number(of.get("rios") ?? 0), writes: Number(of.get("wios") ?? 0), bytes: new Map([["Read", readBytes], ["Write", writtenBytes]]) };
  });
}

/** "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234" and the same for "full": microseconds. */
function pressure(text: string | undefined): Pressure | undefined {
  if (text === undefined) return undefined;
  const total = (kind: string): number => Number(new RegExp(`^${kind} .*total=(\\d+)`, "m").exec(text)?.[1] ?? 0) / 1e6;
  return { waitingSeconds: total("some"), stalledSeconds: total("full") };
}
