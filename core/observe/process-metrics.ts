/** process_*: what the operating system tells of this process, and kubernetes_build_info. Source: prometheus client_golang process_collector, component-base/metrics */
import { readdirSync, readFileSync } from "node:fs";
import type { Clock } from "../lifecycle/clock.ts";
import type { Metrics } from "./metrics.ts";

const MICROSECONDS = 1e6, KIB = 1024;

/** Since 1970, as the process knew it when it began. */
export function startedSeconds(): number { return performance.timeOrigin / 1000; }

/** Clocks that nobody sets tell it the same to the millisecond or two. */
const STEP_SECONDS_MIN = 1;

export function processMetrics(metrics: Metrics, clock: Pick<Clock, "nowMs">): void {
  let startedSeconds = Number.NEGATIVE_INFINITY;
  /** Told anew by a clock that has been set, as by the system's own note of when it booted. */
  const started = (): number => {
    const seconds = clock.nowMs() / 1000 - process.uptime();
    if (Math.abs(seconds - startedSeconds) >= STEP_SECONDS_MIN) startedSeconds = seconds;
    return startedSeconds;
  };
  metrics.counterFrom("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", () => {
    const { user, system } = process.cpuUsage();
    return [[{}, (user + system) / MICROSECONDS]];
  });
  metrics.gaugeFrom("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", () => [[{}, started()]]);
  metrics.gaugeFrom("process_resident_memory_bytes", "Resident memory size in bytes.", () => [[{}, process.memoryUsage.rss()]]);
  if (process.platform !== "linux") return;
  metrics.gaugeFrom("process_virtual_memory_bytes", "Virtual memory size in bytes.", () => [[{}, Number(/^VmSize:\s+(\d+) kB/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? 0) * KIB]]); // not in pages, as statm has it: of 16 and 64 KiB on some machines
  metrics.gaugeFrom("process_open_fds", "Number of open file descriptors.", () => [[{}, readdirSync("/proc/self/fd").length]]);
  metrics.gaugeFrom("process_max_fds", "Maximum number of open file descriptors.", () => {
    const limit = /^Max open files\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1] ?? "";
    return [[{}, limit === "unlimited" ? Number.MAX_SAFE_INTEGER : Number(limit)]];
  });
  metrics.gaugeFrom("process_virtual_memory_max_bytes", "Maximum amount of virtual memory available in bytes.", () => {
    const limit = /^Max address space\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1] ?? "";
    return [[{}, limit === "unlimited" ? 2 ** 64 : Number(limit)]];
  });
  metrics.counterFrom("process_network_receive_bytes_total", "Number of bytes received by the process over the network.", () => [[{}, octets("InOctets")]]);
  metrics.counterFrom("process_network_transmit_bytes_total", "Number of bytes sent by the process over the network.", () => [[{}, octets("OutOctets")]]);
}

/** Of this process' network, which is often the machine's. */
function octets(name: "InOctets" | "OutOctets"): number {
  const [names = "", values = ""] = readFileSync("/proc/self/net/netstat", "utf8").split("\n").filter((line) => line.startsWith("IpExt:"));
  return Number(values.split(" ")[names.split(" ").indexOf(name)] ?? 0);
}

export interface BuildLabels {
  readonly major: string; readonly minor: string; readonly gitVersion: string; readonly gitCommit: string; readonly gitTreeState: string;
  readonly buildDate: string; readonly goVersion: string; readonly compiler: string; readonly platform: string;
}

export function buildMetrics(metrics: Metrics, version: BuildLabels): void {
  const labels = {
    build_date: version.buildDate, compiler: version.compiler, git_commit: version.gitCommit, git_tree_state: version.gitTreeState, git_version: version.gitVersion,
    go_version: version.goVersion, major: version.major, minor: version.minor, platform: version.platform,
  };
  const emulation = `${version.major}.${version.minor}`;
  metrics.gaugeFrom("version_info", "[ALPHA] Provides the compatibility version info of the component. The component label is the name of the component, usually kube, but is relevant for aggregated-apiservers.", () => [[
    { binary: version.gitVersion.replace(/^v|\+.*$/g, ""), component: "kube", emulation, min_compat: `${version.major}.${Number(version.minor) - 1}` }, 1,
  ]]);
  metrics.gaugeFrom("kubernetes_build_info", "[BETA] A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.", () => [[labels, 1]]);
}
