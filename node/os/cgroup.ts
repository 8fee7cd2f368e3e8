/**
 * Control groups, version 1 (a hierarchy per controller) and version 2 (one for all), by the driver that writes to their file system.
 *
 * A path is the same in every hierarchy: "/kubepods/burstable". Where a controller is missing its limits are skipped: an edge kernel without
 * the memory controller still runs containers.
 *
 * API: https://docs.kernel.org/admin-guide/cgroup-v2.html, https://docs.kernel.org/admin-guide/cgroup-v1/
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ifThereSync } from "../../core/lifecycle/if-there.ts";
import { windowsCgroups } from "./cgroup.windows.ts";
import { parseMountinfo } from "./mount-table.ts";

export interface CgroupLimits {
  readonly cpuShares?: number;
  /** -1: none. */
  readonly cpuQuotaUs?: number;
  readonly cpuPeriodUs?: number;
  readonly memoryBytes?: number;
  readonly pids?: number;
  /** Bytes of huge pages, by their size as the kernel names it: 2MB, 1GB. */
  readonly hugepages?: Readonly<Record<string, number>>;
}

export interface CgroupUsage {
  readonly cpuNs: number;
  readonly memoryBytes: number;
  /** Without the page cache that could be dropped. */
  readonly workingSetBytes: number;
  /** What more may be used, where the system says so itself. */
  readonly availableBytes?: number | undefined;
  readonly rssBytes: number;
  /** Of the machine as a whole, where its group does not tell. */
  readonly swapBytes?: number | undefined;
  readonly pageFaults: number;
  readonly majorPageFaults: number;
}

export interface Cgroups {
  readonly version: 1 | 2;
  /** Makes the group, in every hierarchy, and sets these limits. */
  ensure(path: string, limits: CgroupLimits): void;
  /** Removes the group and all below it; false while a process is left in it. */
  remove(path: string): boolean;
  /** Ends every process in the group and below it; they may take a moment to be gone. */
  kill(path: string): void;
  exists(path: string): boolean;
  usage(path: string): CgroupUsage | undefined;
  pids(path: string): number;
  /** The text of one of the group's files; in version 1, of the hierarchy with that controller. Undefined where there is none. */
  text(path: string, controller: string, file: string): string | undefined;
  /** Names of the groups directly below. */
  children(path: string): readonly string[];
  /** Memory that groups use is limited together with swap. */
  readonly countsSwap: boolean;
}

interface Hierarchy { readonly mountPoint: string; readonly controllers: ReadonlySet<string> }

const SHARES_MIN = 2, SHARES_MAX = 262_144, WEIGHT_MAX = 10_000;
const V1_CONTROLLERS: ReadonlySet<string> = new Set(["cpu", "cpuacct", "cpuset", "memory", "pids", "hugetlb", "devices", "freezer", "blkio", "net_cls", "net_prio", "perf_event", "rdma", "name=systemd"]);

/** What the kernel can limit, as this machine has its hierarchies mounted; empty: there are none. `mountinfo`: the text of that file. */
export function availableControllers(mountinfo: string): readonly string[] {
  const mounts = parseMountinfo(mountinfo);
  const unified = unifiedMount(mounts);
  if (unified) return (textOf(join(unified.target, "cgroup.controllers")) ?? "").trim().split(" ").filter((name) => name !== "");
  return legacyHierarchies(mounts).flatMap(({ controllers }) => [...controllers]).filter((name) => !name.startsWith("name="));
}

type Mount = ReturnType<typeof parseMountinfo>[number];

function unifiedMount(mounts: readonly Mount[]): Mount | undefined { return mounts.find(({ fsType, target }) => fsType === "cgroup2" && target === "/sys/fs/cgroup"); }

function legacyHierarchies(mounts: readonly Mount[]): Hierarchy[] {
  return mounts.filter(({ fsType }) => fsType === "cgroup").map(({ target, superOptions }) => ({ mountPoint: target, controllers: new Set(superOptions.filter((option) => V1_CONTROLLERS.has(option))) }));
}

export function systemCgroups(): Cgroups {
  if (process.platform === "win32") return windowsCgroups();
  const mounts = parseMountinfo(readFileSync("/proc/self/mountinfo", "utf8"));
  const unified = unifiedMount(mounts);
  if (unified) return unifiedCgroups(unified.target);
  const hierarchies = legacyHierarchies(mounts);
  const hybrid = mounts.find(({ fsType }) => fsType === "cgroup2")?.target;
  return legacyCgroups(hierarchies, hybrid);
}

/** `hybrid`: version 2's hierarchy without controllers beside them. Runtimes make groups there too, and leave what we have them make below ours. */
function legacyCgroups(hierarchies: readonly Hierarchy[], hybrid: string | undefined): Cgroups {
  const of = (controller: string): string | undefined => hierarchies.find(({ controllers }) => controllers.has(controller))?.mountPoint;
  const all = [...new Set(hierarchies.map(({ mountPoint }) => mountPoint))];
  const everywhere = hybrid === undefined ? all : [...all, hybrid];
  const memory = of("memory");

  function make(mountPoint: string, path: string): void {
    const directory = join(mountPoint, path);
    if (existsSync(directory)) return;
    if (path !== "/") make(mountPoint, dirname(path));
    mkdirSync(directory, { recursive: true });
    if (mountPoint === of("cpuset")) for (const file of ["cpuset.cpus", "cpuset.mems"]) inherit(directory, file);
    if (mountPoint === memory) writeIfThere(join(directory, "memory.use_hierarchy"), "1");
  }

  return {
    version: 1,
    countsSwap: memory !== undefined && existsSync(join(memory, "memory.memsw.limit_in_bytes")),
    ensure(path, { cpuShares, cpuQuotaUs, cpuPeriodUs, memoryBytes, pids, hugepages = {} }) {
      for (const mountPoint of all) make(mountPoint, path);
      const write = (controller: string, file: string, value: number | undefined): void => {
        const mountPoint = of(controller);
        if (mountPoint !== undefined && value !== undefined) writeIfThere(join(mountPoint, path, file), String(value));
      };
      write("cpu", "cpu.shares", cpuShares);
      write("cpu", "cpu.cfs_period_us", cpuPeriodUs);
      write("cpu", "cpu.cfs_quota_us", cpuQuotaUs);
      write("memory", "memory.limit_in_bytes", memoryBytes);
      write("pids", "pids.max", pids);
      for (const [size, bytes] of Object.entries(hugepages)) for (const what of [size, `${size}.rsvd`]) write("hugetlb", `hugetlb.${what}.limit_in_bytes`, bytes);
    },
    remove: (path) => everywhere.map((mountPoint) => removeTree(join(mountPoint, path))).every((gone) => gone),
    kill: (path) => everywhere.forEach((mountPoint) => killTree(join(mountPoint, path))),
    exists: (path) => all.some((mountPoint) => existsSync(join(mountPoint, path))),
    usage(path) {
      const stat = memory === undefined ? undefined : keyValues(join(memory, path, "memory.stat"));
      const accounting = of("cpuacct");
      if (!stat || memory === undefined) return undefined;
      const memoryBytes = readNumber(join(memory, path, "memory.usage_in_bytes"));
      return {
        cpuNs: accounting === undefined ? 0 : readNumber(join(accounting, path, "cpuacct.usage")), memoryBytes, workingSetBytes: Math.max(0, memoryBytes - (stat.get("total_inactive_file") ?? 0)),
        rssBytes: stat.get("total_rss") ?? 0, pageFaults: stat.get("total_pgfault") ?? 0, majorPageFaults: stat.get("total_pgmajfault") ?? 0,
      };
    },
    pids: (path) => readNumber(join(of("pids") ?? "", path, "pids.current")),
    text: (path, controller, file) => { const mountPoint = of(controller); return mountPoint === undefined ? undefined : textOf(join(mountPoint, path, file)); },
    children: (path) => directories(join(memory ?? all[0] ?? "", path)),
  };
}

/** Version 2's, as they stand below `mountPoint`. */
export function unifiedCgroups(mountPoint: string): Cgroups {
  function make(path: string): void {
    if (path !== "/") make(dirname(path));
    const directory = join(mountPoint, path);
    if (!existsSync(directory)) mkdirSync(directory);
    const available = readFileSync(join(directory, "cgroup.controllers"), "utf8").trim().split(" ");
    const enabled = new Set(readFileSync(join(directory, "cgroup.subtree_control"), "utf8").trim().split(" "));
    for (const controller of available) if (controller !== "" && !enabled.has(controller)) writeIfAllowed(join(directory, "cgroup.subtree_control"), `+${controller}`);
  }

  return {
    version: 2,
    countsSwap: directories(mountPoint).some((name) => existsSync(join(mountPoint, name, "memory.swap.max"))), // the root group has no such file
    ensure(path, { cpuShares, cpuQuotaUs, cpuPeriodUs = 100_000, memoryBytes, pids, hugepages = {} }) {
      make(path);
      const write = (file: string, value: string | undefined): void => {
        if (value !== undefined) writeIfThere(join(mountPoint, path, file), value);
      };
      write("cpu.weight", cpuShares === undefined ? undefined : String(weightOf(cpuShares)));
      write("cpu.max", cpuQuotaUs === undefined ? undefined : `${cpuQuotaUs < 0 ? "max" : cpuQuotaUs} ${cpuPeriodUs}`);
      write("memory.max", memoryBytes === undefined ? undefined : String(memoryBytes));
      write("pids.max", pids === undefined ? undefined : String(pids));
      for (const [size, bytes] of Object.entries(hugepages)) for (const what of [size, `${size}.rsvd`]) write(`hugetlb.${what}.max`, String(bytes));
    },
    remove: (path) => removeTree(join(mountPoint, path)),
    kill: (path) => killTree(join(mountPoint, path)),
    exists: (path) => existsSync(join(mountPoint, path)),
    usage(path) {
      const stat = keyValues(join(mountPoint, path, "memory.stat"));
      if (!stat) return undefined;
      const cpu = keyValues(join(mountPoint, path, "cpu.stat"));
      const counted = textOf(join(mountPoint, path, "memory.current"));
      const memoryBytes = counted === undefined ? (stat.get("anon") ?? 0) + (stat.get("file") ?? 0) : Number(counted); // the root group has no memory.current, and version 1 counts no memory of the kernel for it; 0 is a group without processes
      return {
        cpuNs: (cpu?.get("usage_usec") ?? 0) * 1000, memoryBytes, workingSetBytes: Math.max(0, memoryBytes - (stat.get("inactive_file") ?? 0)), rssBytes: stat.get("anon") ?? 0,
        pageFaults: stat.get("pgfault") ?? 0, majorPageFaults: stat.get("pgmajfault") ?? 0, ...(counted === undefined ? { swapBytes: usedSwapBytes(readFileSync("/proc/meminfo", "utf8")) } : {}),
      };
    },
    pids: (path) => readNumber(join(mountPoint, path, "pids.current")),
    text: (path, _, file) => textOf(join(mountPoint, path, file)),
    children: (path) => directories(join(mountPoint, path)),
  };
}

/**
 * v1's shares as v2's weight, so that a pod that asks for twice as much has twice as much. Container runtimes convert those of containers by a curve of their own.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/cgroup_manager_linux.go getCPUWeight
 */
function weightOf(shares: number): number {
  return 1 + Math.floor(((Math.min(Math.max(shares, SHARES_MIN), SHARES_MAX) - SHARES_MIN) * (WEIGHT_MAX - 1)) / (SHARES_MAX - SHARES_MIN));
}

/** `meminfo`: the text of that file. */
export function usedSwapBytes(meminfo: string): number {
  const kilobytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(meminfo)?.[1] ?? 0);
  return (kilobytes("SwapTotal") - kilobytes("SwapFree")) * 1024;
}

function inherit(directory: string, file: string): void {
  if (!existsSync(join(directory, file)) || readFileSync(join(directory, file), "utf8").trim() !== "") return;
  writeFileSync(join(directory, file), readFileSync(join(dirname(directory), file), "utf8"));
}

/** A controller that is not built in has no file. */
function writeIfThere(path: string, value: string): void {
  if (existsSync(path)) writeFileSync(path, value);
}

/** Some controllers cannot be delegated (realtime groups, a domain that is threaded): the others still can. */
function writeIfAllowed(path: string, value: string): void {
  try {
    writeFileSync(path, value);
  } catch (error) {
    if (!["EBUSY", "EINVAL", "ENOENT", "EOPNOTSUPP", "ENOTSUP"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

function removeTree(directory: string): boolean {
  if (!existsSync(directory)) return true;
  for (const name of directories(directory)) removeTree(join(directory, name));
  try {
    rmdirSync(directory);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return true;
    if (code === "EBUSY" || code === "ENOTEMPTY") return false;
    throw error;
  }
}

function killTree(directory: string): void {
  for (const name of directories(directory)) killTree(join(directory, name));
  const file = join(directory, "cgroup.procs");
  if (!existsSync(file)) return;
  for (const pid of readFileSync(file, "utf8").split("\n").map(Number).filter((id) => id > 0)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

function directories(path: string): string[] {
  const entries = ifThereSync(() => readdirSync(path, { withFileTypes: true })) ?? [];
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (["ENOENT", "ENODEV", "EOPNOTSUPP"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined; // no such group, or the kernel has not this
    throw error;
  }
}

function readNumber(path: string): number {
  try {
    return Number.parseInt(readFileSync(path, "utf8"), 10) || 0;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENODEV") return 0; // the group, or its controller, is gone
    throw error;
  }
}

function keyValues(path: string): Map<string, number> | undefined {
  try {
    return new Map(readFileSync(path, "utf8").trim().split("\n").map((line) => [line.slice(0, line.indexOf(" ")), Number(line.slice(line.indexOf(" ") + 1))]));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENODEV") return undefined;
    throw error;
  }
}
