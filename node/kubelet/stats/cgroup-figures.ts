/**
 * Everything a control group tells of itself, in one form for versions 1 and 2. What the kernel does not tell is absent.
 *
 * API: https://docs.kernel.org/admin-guide/cgroup-v2.html, https://docs.kernel.org/admin-guide/cgroup-v1/
 */
import type { Cgroups } from "../../os/cgroup.ts";

export interface DeviceFigures { readonly device: string; readonly readBytes: number; readonly writtenBytes: number; readonly reads: number; readonly writes: number }
export interface Pressure { readonly waitingSeconds: number; readonly stalledSeconds: number }

export interface CgroupFigures {
  readonly cpu?: { readonly totalSeconds: number; readonly userSeconds: number; readonly systemSeconds: number };
  /** Only where a quota is set. */
  readonly throttling?: { readonly periods: number; readonly throttledPeriods: number; readonly throttledSeconds: number };
  readonly cpuSpec: { readonly shares: number | undefined; readonly quotaUs: number | undefined; readonly periodUs: number | undefined };
  readonly memory?: {
    readonly usageBytes: number; readonly maxUsageBytes: number | undefined; readonly workingSetBytes: number; readonly rssBytes: number; readonly cacheBytes: number; readonly mappedFileBytes: number;
    readonly swapBytes: number | undefined; readonly kernelBytes: number | undefined; readonly activeFileBytes: number; readonly inactiveFileBytes: number; readonly failures: number;
    readonly pageFaults: number; readonly majorPageFaults: number; /** 0: none. */ readonly limitBytes: number | undefined; readonly swapLimitBytes: number | undefined; readonly oomKills: number;
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
  return cgroups.version === 1 ? legacy({ text, number, values }) : unified({ text, number, values }, () => cgroups.usage(path)?.memoryBytes);
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
    ...(throttling && (quotaUs ?? 0) > 0 ? { throttling: { periods: throttling.get("nr_periods") ?? 0, throttledPeriods: throttling.get("nr_throttled") ?? 0, throttledSeconds: (throttling.get("throttled_time") ?? 0) / 1e9 } } : {}),
    cpuSpec: { shares: number("cpu", "cpu.shares"), quotaUs: (quotaUs ?? 0) > 0 ? quotaUs : undefined, periodUs: number("cpu", "cpu.cfs_period_us") },
    ...(memory === undefined ? {} : { memory: {
      usageBytes, maxUsageBytes: number("memory", "memory.max_usage_in_bytes"), workingSetBytes: Math.max(0, usageBytes - of("inactive_file")), rssBytes: of("rss"), cacheBytes: of("cache"), mappedFileBytes: of("mapped_file"),
      swapBytes: memory.get("total_swap"), kernelBytes: number("memory", "memory.kmem.usage_in_bytes"), activeFileBytes: of("active_file"), inactiveFileBytes: of("inactive_file"), failures: number("memory", "memory.failcnt") ?? 0,
      pageFaults: of("pgfault"), majorPageFaults: of("pgmajfault"), limitBytes: limited(number("memory", "memory.limit_in_bytes")), swapLimitBytes: limited(number("memory", "memory.memsw.limit_in_bytes")),
      oomKills: values("memory", "memory.oom_control")?.get("oom_kill") ?? 0,
    } }),
    devices: legacyDevices(text("blkio", "blkio.throttle.io_service_bytes"), text("blkio", "blkio.throttle.io_serviced")),
    processes: { current: number("pids", "pids.current") ?? 0, max: number("pids", "pids.max") }, pressure: {},
  };
}

/** `machineMemory`: what is used of the group without a file for it: the root, which is the machine. Its limits have no files either. */
function unified({ text, number, values }: Files, machineMemory: () => number | undefined): CgroupFigures {
  const cpu = values("cpu", "cpu.stat");
  const [quota = "max", period = "100000"] = text("cpu", "cpu.max")?.trim().split(" ") ?? [];
  const memory = values("memory", "memory.stat");
  const of = (name: string): number => memory?.get(name) ?? 0;
  const usageBytes = memory && (number("memory", "memory.current") ?? machineMemory());
  const limit = (file: string): number | undefined => (text("memory", file) === undefined ? undefined : number("memory", file) ?? 0);
  const events = values("memory", "memory.events");
  const pressures = { cpu: pressure(text("cpu", "cpu.pressure")), memory: pressure(text("memory", "memory.pressure")), io: pressure(text("io", "io.pressure")) };
  return {
    ...(cpu === undefined ? {} : { cpu: { totalSeconds: (cpu.get("usage_usec") ?? 0) / 1e6, userSeconds: (cpu.get("user_usec") ?? 0) / 1e6, systemSeconds: (cpu.get("system_usec") ?? 0) / 1e6 } }),
    ...(cpu && quota !== "max" ? { throttling: { periods: cpu.get("nr_periods") ?? 0, throttledPeriods: cpu.get("nr_throttled") ?? 0, throttledSeconds: (cpu.get("throttled_usec") ?? 0) / 1e6 } } : {}),
    cpuSpec: { shares: sharesOf(number("cpu", "cpu.weight")), quotaUs: quota === "max" ? undefined : Number(quota), periodUs: Number(period) },
    ...(memory === undefined || usageBytes === undefined ? {} : { memory: {
      usageBytes, maxUsageBytes: number("memory", "memory.peak"), workingSetBytes: Math.max(0, usageBytes - of("inactive_file")), rssBytes: of("anon"), cacheBytes: of("file"), mappedFileBytes: of("file_mapped"),
      swapBytes: number("memory", "memory.swap.current"), kernelBytes: memory.get("kernel"), activeFileBytes: of("active_file"), inactiveFileBytes: of("inactive_file"), failures: events?.get("max") ?? 0,
      pageFaults: of("pgfault"), majorPageFaults: of("pgmajfault"), limitBytes: limit("memory.max"), swapLimitBytes: limit("memory.swap.max"), oomKills: events?.get("oom_kill") ?? 0,
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

/** "8:0 Read 4096" */
function legacyDevices(bytes: string | undefined, counts: string | undefined): DeviceFigures[] {
  const found = new Map<string, { readBytes: number; writtenBytes: number; reads: number; writes: number }>();
  const add = (text: string | undefined, read: "readBytes" | "reads", write: "writtenBytes" | "writes"): void => {
    for (const line of text?.split("\n") ?? []) {
      const [device = "", operation, value] = line.split(" ");
      if (operation !== "Read" && operation !== "Write") continue;
      const one = found.get(device) ?? { readBytes: 0, writtenBytes: 0, reads: 0, writes: 0 };
      one[operation === "Read" ? read : write] = Number(value);
      found.set(device, one);
    }
  };
  add(bytes, "readBytes", "writtenBytes");
  add(counts, "reads", "writes");
  return [...found].map(([device, figures]) => ({ device, ...figures }));
}

/** "8:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0" */
function unifiedDevices(text: string | undefined): DeviceFigures[] {
  return (text ?? "").split("\n").filter((line) => line.includes("=")).map((line) => {
    const [device = "", ...pairs] = line.split(" ");
    const of = new Map(pairs.map((pair) => pair.split("=") as [string, string]));
    return { device, readBytes: Number(of.get("rbytes") ?? 0), writtenBytes: Number(of.get("wbytes") ?? 0), reads: Number(of.get("rios") ?? 0), writes: Number(of.get("wios") ?? 0) };
  });
}

/** "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234" and the same for "full": microseconds. */
function pressure(text: string | undefined): Pressure | undefined {
  if (text === undefined) return undefined;
  const total = (kind: string): number => Number(new RegExp(`^${kind} .*total=(\\d+)`, "m").exec(text)?.[1] ?? 0) / 1e6;
  return { waitingSeconds: total("some"), stalledSeconds: total("full") };
}
