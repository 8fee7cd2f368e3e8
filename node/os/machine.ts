/**
 * What this machine is: processors, memory, names of its kernel and system. Read once, except what changes.
 *
 * This half is Linux' (Windows': machine.windows.ts); a file that is not there leaves its field empty.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { arch, cpus, release, uptime } from "node:os";
import { hasApparmor } from "./apparmor.ts";
import { windowsMachineInfo } from "./machine.windows.ts";

/** Go's names. */
export type OperatingSystem = "linux" | "windows";

export interface MachineInfo {
  readonly os: OperatingSystem;
  /** Major, minor and build number of Windows, as in 10.0.20348. */
  readonly windowsBuild?: string | undefined;
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly swapBytes: number;
  /** As container runtimes name them: 2MB, 1GB; with how much memory is set aside for each. */
  readonly hugepages: readonly { readonly size: string; readonly bytes: number; readonly pageBytes: number }[];
  readonly machineId: string;
  readonly systemUuid: string;
  readonly bootId: string;
  readonly kernelVersion: string;
  readonly osImage: string;
  /** Go's names: amd64, arm64. */
  readonly architecture: string;
  /** Where the processors tell how hot they are: containers could learn from it what their neighbours do. */
  readonly throttlePaths?: readonly string[] | undefined;
  /** Undefined: this system has no such thing. */
  readonly appArmor?: boolean | undefined;
}

export function machineInfo(): MachineInfo {
  return process.platform === "win32" ? windowsMachineInfo() : linuxMachineInfo();
}

function linuxMachineInfo(): MachineInfo {
  const memory = meminfo();
  return {
    os: "linux", cpus: cpus().length, memoryBytes: memory.get("MemTotal") ?? 0, swapBytes: memory.get("SwapTotal") ?? 0, hugepages: hugepages(), machineId: firstOf(["/etc/machine-id", "/var/lib/dbus/machine-id"]),
    systemUuid: firstOf(["/sys/class/dmi/id/product_uuid", "/proc/device-tree/vm,uuid", "/etc/machine-id"]), bootId: firstOf(["/proc/sys/kernel/random/boot_id"]),
    kernelVersion: release(), osImage: osImage(), architecture: arch() === "x64" ? "amd64" : arch(), throttlePaths: throttlePaths(),
    appArmor: hasApparmor(),
  };
}

/** /proc/meminfo in bytes. */
export function meminfo(): ReadonlyMap<string, number> {
  const text = readIfThere("/proc/meminfo");
  return new Map(text.split("\n").flatMap((line) => {
    const [, name, kilobytes] = /^(\S+):\s+(\d+) kB/.exec(line) ?? [];
    return name === undefined ? [] : [[name, Number(kilobytes) * 1024] as const];
  }));
}

/** Seconds since the machine started. */
export function machineUptimeSeconds(): number {
  return process.platform === "win32" ? uptime() : Number.parseFloat(readIfThere("/proc/uptime")) || 0;
}

/** Processes (threads, as the kernel counts them) and how many there may be. */
export function processCount(): { readonly current: number; readonly max: number } {
  const current = Number(readIfThere("/proc/loadavg").split(" ")[3]?.split("/")[1] ?? 0);
  const limits = ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"].map((path) => Number(readIfThere(path))).filter((limit) => limit > 0);
  return { current, max: limits.length > 0 ? Math.min(...limits) : 0 };
}

const HUGEPAGES = "/sys/kernel/mm/hugepages";
const SIZE_UNITS: readonly (readonly [string, number])[] = [["GB", 1024 ** 3], ["MB", 1024 ** 2], ["KB", 1024]];

function hugepages(): MachineInfo["hugepages"] {
  if (!existsSync(HUGEPAGES)) return [];
  return readdirSync(HUGEPAGES).flatMap((name) => {
    const kilobytes = Number(/^hugepages-(\d+)kB$/.exec(name)?.[1] ?? 0);
    if (kilobytes === 0) return [];
    const pageBytes = kilobytes * 1024;
    const [unit, by] = SIZE_UNITS.find(([, size]) => pageBytes >= size)!;
    return [{ size: `${pageBytes / by}${unit}`, pageBytes, bytes: Number(readIfThere(`${HUGEPAGES}/${name}/nr_hugepages`)) * pageBytes }];
  });
}

export function throttlePaths(root = "/sys/devices/system/cpu"): string[] {
  if (!existsSync(root)) return [];
  return readdirSync(root).filter((name) => /^cpu\d+$/.test(name)).map((name) => `${root}/${name}/thermal_throttle`).filter((path) => existsSync(path));
}

function osImage(): string {
  const text = readIfThere("/etc/os-release") || readIfThere("/usr/lib/os-release");
  return /^PRETTY_NAME="?([^"\n]*)"?$/m.exec(text)?.[1] ?? "Linux";
}

function firstOf(paths: readonly string[]): string {
  for (const path of paths) {
    const text = readIfThere(path).replaceAll("\0", "").trim();
    if (text !== "") return text;
  }
  return "";
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // another kernel, another system, or not for us to read: the field stays empty
  }
}
