/**
 * machine.ts on Windows: from the registry, and from what the runtime asks the kernel.
 *
 * Source: kubernetes v1.36 pkg/kubelet/winstats/{version,perfcounter_nodestats_windows}.go (which keys, which formats)
 */
import { arch, cpus, hostname, release, totalmem } from "node:os";
import type { MachineInfo } from "./machine.ts";
import { registryValues } from "./registry.windows.ts";

const VERSION = "HKLM\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion";
const HARDWARE = "HKLM\\SYSTEM\\HardwareConfig";
const PREFETCH = "HKLM\\SYSTEM\\CurrentControlSet\\Control\\Session Manager\\Memory Management\\PrefetchParameters";

export function windowsMachineInfo(registry: (key: string) => ReadonlyMap<string, string> = registryValues): MachineInfo {
  const version = registry(VERSION);
  const build = windowsBuild(version, release());
  return {
    os: "windows", windowsBuild: build, cpus: cpus().length, memoryBytes: totalmem(), swapBytes: 0, hugepages: [],
    machineId: hostname(), systemUuid: (registry(HARDWARE).get("LastConfig") ?? "").replace(/[{}]/g, ""), bootId: registry(PREFETCH).get("BootId") ?? "",
    kernelVersion: version.has("UBR") ? `${build}.${version.get("UBR")!}` : build, osImage: version.get("ProductName") ?? "Windows", architecture: arch() === "x64" ? "amd64" : arch(),
  };
}

/** Major, minor and build number, as in 10.0.20348. `release`: what the kernel says, where the registry does not. Pure. */
export function windowsBuild(version: ReadonlyMap<string, string>, release: string): string {
  const parts = ["CurrentMajorVersionNumber", "CurrentMinorVersionNumber", "CurrentBuildNumber"].map((name) => version.get(name));
  return parts.every((part) => part !== undefined) ? parts.join(".") : release.split(".").slice(0, 3).join(".");
}
