/**
 * What /metrics/cadvisor shows: the node, the classes of service, pods, sandboxes and containers by their control groups, with the names and labels that
 * cadvisor gives them, because everybody's dashboards and rules ask for those (`container_cpu_usage_seconds_total{image!="", container!=""}`).
 *
 * Source: kubernetes v1.36 pkg/kubelet/server/server.go (labels), github.com/google/cadvisor metrics/{prometheus,prometheus_machine}.go
 */
import { readFileSync } from "node:fs";
import type { Cgroups } from "../../os/cgroup.ts";
import type { MachineInfo } from "../../os/machine.ts";
import { type Family, type Labels, renderFamilies, type Sample } from "../server/pod-metrics.ts";
import { type CgroupFigures, cgroupFigures, type DeviceFigures, type Pressure } from "./cgroup-figures.ts";
import type { DiskFigures } from "./disk-figures.ts";
import type { InterfaceFigures } from "./network-figures.ts";
import type { ProcessFigures } from "./process-figures.ts";

/** A control group and what runs in it. */
export interface Row {
  readonly path: string;
  readonly name?: string;
  readonly image?: string;
  readonly pod?: string;
  readonly namespace?: string;
  readonly container?: string;
  readonly startedAtMs?: number;
  /** Of the sandbox: the pod's. Of "/": the host's. */
  readonly interfaces?: readonly InterfaceFigures[];
  readonly processes?: ProcessFigures | undefined;
  /** Of "/" only. */
  readonly disks?: readonly DiskFigures[];
  /** Of "/", sandboxes and containers: of their first process. */
  readonly openFilesLimit?: number | undefined;
}

interface Measured { readonly row: Row; readonly labels: Labels; readonly figures: CgroupFigures }

type Read = (one: Measured) => number | undefined | readonly (readonly [Labels, number | undefined])[];

const GAUGE = "gauge", COUNTER = "counter";

/** cadvisor's word for it: what its health checks are, Docker's of an image, no CRI has. */
const NO_HEALTH_CHECK = -1;

/** Name, type, help, and how it is read. */
const FAMILIES: readonly (readonly [name: string, type: Family["type"], help: string, read: Read])[] = [
  ["container_health_state", GAUGE, "The result of the container's health check", () => NO_HEALTH_CHECK],
  ["container_cpu_usage_seconds_total", COUNTER, "Cumulative cpu time consumed in seconds.", ({ figures: { cpu } }) => [[{ cpu: "total" }, cpu?.totalSeconds]]],
  ["container_cpu_user_seconds_total", COUNTER, "Cumulative user cpu time consumed in seconds.", ({ figures: { cpu } }) => cpu?.userSeconds],
  ["container_cpu_system_seconds_total", COUNTER, "Cumulative system cpu time consumed in seconds.", ({ figures: { cpu } }) => cpu?.systemSeconds],
  ["container_cpu_cfs_periods_total", COUNTER, "Number of elapsed enforcement period intervals.", ({ figures: { throttling } }) => throttling?.periods],
  ["container_cpu_cfs_throttled_periods_total", COUNTER, "Number of throttled period intervals.", ({ figures: { throttling } }) => throttling?.throttledPeriods],
  ["container_cpu_cfs_throttled_seconds_total", COUNTER, "Total time duration the container has been throttled.", ({ figures: { throttling } }) => throttling?.throttledSeconds],
  ["container_cpu_cfs_burst_periods_total", COUNTER, "Number of periods when burst occurs.", ({ figures: { throttling } }) => throttling?.burstPeriods],
  ["container_cpu_cfs_burst_seconds_total", COUNTER, "Total time duration the container has been bursted.", ({ figures: { throttling } }) => throttling?.burstSeconds],
  ["container_memory_usage_bytes", GAUGE, "Current memory usage in bytes, including all memory regardless of when it was accessed", ({ figures: { memory } }) => memory?.usageBytes],
  ["container_memory_max_usage_bytes", GAUGE, "Maximum memory usage recorded in bytes", ({ figures: { memory } }) => memory?.maxUsageBytes],
  ["container_memory_working_set_bytes", GAUGE, "Current working set in bytes.", ({ figures: { memory } }) => memory?.workingSetBytes],
  ["container_memory_rss", GAUGE, "Size of RSS in bytes.", ({ figures: { memory } }) => memory?.rssBytes],
  ["container_memory_cache", GAUGE, "Number of bytes of page cache memory.", ({ figures: { memory } }) => memory?.cacheBytes],
  ["container_memory_mapped_file", GAUGE, "Size of memory mapped files in bytes.", ({ figures: { memory } }) => memory?.mappedFileBytes],
  ["container_memory_swap", GAUGE, "Container swap usage in bytes.", ({ figures: { memory } }) => memory?.swapBytes],
  ["container_memory_kernel_usage", GAUGE, "Size of kernel memory allocated in bytes.", ({ figures: { memory } }) => memory?.kernelBytes],
  ["container_memory_total_active_file_bytes", GAUGE, "Current total active file in bytes.", ({ figures: { memory } }) => memory?.activeFileBytes],
  ["container_memory_total_inactive_file_bytes", GAUGE, "Current total inactive file in bytes.", ({ figures: { memory } }) => memory?.inactiveFileBytes],
  ["container_memory_failcnt", COUNTER, "Number of memory usage hits limits", ({ figures: { memory } }) => memory?.failures],
  [
    "container_memory_failures_total", COUNTER, "Cumulative count of memory allocation failures.",
    ({ figures: { memory } }) => ["container", "hierarchy"].flatMap((scope) => [[{ failure_type: "pgfault", scope }, memory?.pageFaults], [{ failure_type: "pgmajfault", scope }, memory?.majorPageFaults]] as const),
  ],
  ["container_oom_events_total", COUNTER, "Count of out of memory events observed for the container", ({ figures: { memory } }) => memory?.oomKills],
  ["container_fs_reads_bytes_total", COUNTER, "Cumulative count of bytes read", perDevice("readBytes")],
  ["container_fs_writes_bytes_total", COUNTER, "Cumulative count of bytes written", perDevice("writtenBytes")],
  ["container_fs_reads_total", COUNTER, "Cumulative count of reads completed", both(perDevice("reads"), perDisk("reads"))],
  ["container_fs_writes_total", COUNTER, "Cumulative count of writes completed", both(perDevice("writes"), perDisk("writes"))],
  ["container_fs_inodes_free", GAUGE, "Number of available Inodes", perDisk("inodesFree")],
  ["container_fs_inodes_total", GAUGE, "Number of Inodes", perDisk("inodes")],
  ["container_fs_limit_bytes", GAUGE, "Number of bytes that can be consumed by the container on this filesystem.", perDisk("limitBytes")],
  ["container_fs_usage_bytes", GAUGE, "Number of bytes that are consumed by the container on this filesystem.", perDisk("usageBytes")],
  ["container_fs_sector_reads_total", COUNTER, "Cumulative count of sector reads completed", perDisk("sectorsRead")],
  ["container_fs_reads_merged_total", COUNTER, "Cumulative count of reads merged", perDisk("readsMerged")],
  ["container_fs_read_seconds_total", COUNTER, "Cumulative count of seconds spent reading", perDisk("readSeconds")],
  ["container_fs_sector_writes_total", COUNTER, "Cumulative count of sector writes completed", perDisk("sectorsWritten")],
  ["container_fs_writes_merged_total", COUNTER, "Cumulative count of writes merged", perDisk("writesMerged")],
  ["container_fs_write_seconds_total", COUNTER, "Cumulative count of seconds spent writing", perDisk("writeSeconds")],
  ["container_fs_io_current", GAUGE, "Number of I/Os currently in progress", perDisk("inProgress")],
  ["container_fs_io_time_seconds_total", COUNTER, "Cumulative count of seconds spent doing I/Os", perDisk("ioSeconds")],
  ["container_fs_io_time_weighted_seconds_total", COUNTER, "Cumulative weighted I/O time in seconds", perDisk("weightedSeconds")],
  ["container_blkio_device_usage_total", COUNTER, "Blkio Device bytes usage", ({ figures: { devices } }) => devices.flatMap(({ device, bytes }) => {
    const [major = "", minor = ""] = device.split(":");
    return [...bytes].map(([operation, value]) => [{ device: deviceName(device), major, minor, operation }, value] as const);
  })],
  ["container_network_receive_bytes_total", COUNTER, "Cumulative count of bytes received", perInterface("rxBytes")],
  ["container_network_receive_packets_total", COUNTER, "Cumulative count of packets received", perInterface("rxPackets")],
  ["container_network_receive_packets_dropped_total", COUNTER, "Cumulative count of packets dropped while receiving", perInterface("rxDropped")],
  ["container_network_receive_errors_total", COUNTER, "Cumulative count of errors encountered while receiving", perInterface("rxErrors")],
  ["container_network_transmit_bytes_total", COUNTER, "Cumulative count of bytes transmitted", perInterface("txBytes")],
  ["container_network_transmit_packets_total", COUNTER, "Cumulative count of packets transmitted", perInterface("txPackets")],
  ["container_network_transmit_packets_dropped_total", COUNTER, "Cumulative count of packets dropped while transmitting", perInterface("txDropped")],
  ["container_network_transmit_errors_total", COUNTER, "Cumulative count of errors encountered while transmitting", perInterface("txErrors")],
  ["container_processes", GAUGE, "Number of processes running inside the container.", ({ row: { processes } }) => processes?.processes],
  ["container_file_descriptors", GAUGE, "Number of open file descriptors for the container.", ({ row: { processes } }) => processes?.fileDescriptors],
  ["container_sockets", GAUGE, "Number of open sockets for the container.", ({ row: { processes } }) => processes?.sockets],
  ["container_ulimits_soft", GAUGE, "Soft ulimit values for the container root process. Unlimited if -1, except priority and nice", ({ row: { openFilesLimit } }) => [[{ ulimit: "max_open_files" }, openFilesLimit]]],
  ["container_threads", GAUGE, "Number of threads running inside the container", ({ figures: { processes } }) => processes.current],
  ["container_threads_max", GAUGE, "Maximum number of threads allowed inside the container, infinity if value is zero", ({ figures: { processes } }) => processes.max ?? 0],
  ["container_pressure_cpu_waiting_seconds_total", COUNTER, "Total time duration tasks in the container have waited due to CPU congestion.", perPressure("cpu", "waitingSeconds")],
  ["container_pressure_cpu_stalled_seconds_total", COUNTER, "Total time duration no tasks in the container could make progress due to CPU congestion.", perPressure("cpu", "stalledSeconds")],
  ["container_pressure_memory_waiting_seconds_total", COUNTER, "Total time duration tasks in the container have waited due to memory congestion.", perPressure("memory", "waitingSeconds")],
  ["container_pressure_memory_stalled_seconds_total", COUNTER, "Total time duration no tasks in the container could make progress due to memory congestion.", perPressure("memory", "stalledSeconds")],
  ["container_pressure_io_waiting_seconds_total", COUNTER, "Total time duration tasks in the container have waited due to IO congestion.", perPressure("io", "waitingSeconds")],
  ["container_pressure_io_stalled_seconds_total", COUNTER, "Total time duration no tasks in the container could make progress due to IO congestion.", perPressure("io", "stalledSeconds")],
];

/** Facts about a group rather than measurements: without a time of their own. */
const SPECS: typeof FAMILIES = [
  ["container_start_time_seconds", GAUGE, "Start time of the container since unix epoch in seconds.", ({ row: { startedAtMs } }) => (startedAtMs ? startedAtMs / 1000 : undefined)],
  ["container_spec_cpu_period", GAUGE, "CPU period of the container.", ({ figures: { cpuSpec } }) => cpuSpec.periodUs],
  ["container_spec_cpu_quota", GAUGE, "CPU quota of the container.", ({ figures: { cpuSpec } }) => cpuSpec.quotaUs],
  ["container_spec_cpu_shares", GAUGE, "CPU share of the container.", ({ figures: { cpuSpec } }) => cpuSpec.shares],
  ["container_spec_memory_limit_bytes", GAUGE, "Memory limit for the container.", ({ figures: { memory } }) => memory?.limitBytes],
  ["container_spec_memory_swap_limit_bytes", GAUGE, "Memory swap limit for the container.", ({ figures: { memory } }) => memory?.swapLimitBytes],
  ["container_spec_memory_reservation_limit_bytes", GAUGE, "Memory reservation limit for the container.", ({ figures: { memory } }) => memory?.reservationBytes],
];

interface Shown {
  readonly cgroups: Cgroups;
  readonly rows: readonly Row[];
  readonly machine: MachineInfo;
  readonly cores?: number | undefined;
  readonly sockets?: number | undefined;
  readonly nowMs: number;
}

/** `cores` and `sockets`: of the machine, where it tells. */
export function cadvisorMetrics({ cgroups, rows, machine, cores, sockets, nowMs }: Shown): string {
  const time = new Date(nowMs).toISOString();
  const measured = rows.filter(({ path }) => cgroups.exists(path)).map((row): Measured => {
    const { path: id, name = "", image = "", pod = "", namespace = "", container = "" } = row;
    return { row, labels: { container, id, image, name, namespace, pod }, figures: cgroupFigures(cgroups, id) };
  });
  const family = (timed: boolean) => ([name, type, help, read]: (typeof FAMILIES)[number]): Family => ({
    name, type, help, samples: measured.flatMap((one): Sample[] => {
      const found = read(one);
      const values = typeof found === "object" ? found : [[{}, found] as const];
      return values.map(([more, value]) => ({ labels: { ...one.labels, ...more }, value, ...(timed ? { time } : {}) }));
    }),
  });
  const lastSeen: Family = { name: "container_last_seen", type: "gauge", help: "Last time a container was seen by the exporter", samples: measured.map(({ labels }) => ({ labels, value: Math.floor(nowMs / 1000), time })) };
  return renderFamilies([
    ...FAMILIES.map(family(true)), ...SPECS.map(family(false)), lastSeen, ...machineFamilies(machine, { cores, sockets }),
    { name: "container_scrape_error", type: "gauge", help: "1 if there was an error while getting container metrics, 0 otherwise", samples: [{ labels: {}, value: 0 }] },
  ]);
}

function machineFamilies({ bootId, machineId, systemUuid, cpus, memoryBytes, swapBytes, kernelVersion, osImage }: MachineInfo, { cores, sockets }: { readonly cores: number | undefined; readonly sockets: number | undefined }): Family[] {
  const labels = { boot_id: bootId, machine_id: machineId, system_uuid: systemUuid };
  const one = (name: string, help: string, value: number | undefined): Family => ({ name, type: "gauge", help, samples: [{ labels, value }] });
  return [
    {
      name: "cadvisor_version_info", type: "gauge",
      help: "A metric with a constant '1' value labeled by kernel version, OS version, docker version, cadvisor version & cadvisor revision.",
      samples: [{ labels: { cadvisorRevision: "", cadvisorVersion: "", dockerVersion: "", kernelVersion, osVersion: osImage }, value: 1 }],
    },
    one("machine_cpu_physical_cores", "Number of physical CPU cores.", cores), one("machine_cpu_sockets", "Number of CPU sockets.", sockets),
    one("machine_cpu_cores", "Number of logical CPU cores.", cpus), one("machine_memory_bytes", "Amount of memory installed on the machine.", memoryBytes), one("machine_swap_bytes", "Amount of swap memory available on the machine.", swapBytes),
    { name: "machine_scrape_error", type: "gauge", help: "1 if there was an error while getting machine metrics, 0 otherwise.", samples: [{ labels: {}, value: 0 }] },
  ];
}

function perDevice(what: Exclude<keyof DeviceFigures, "device" | "bytes">): Read {
  return ({ figures: { devices } }) => devices.map((one) => [{ device: deviceName(one.device) }, one[what]]);
}

function perDisk(what: Exclude<keyof DiskFigures, "device">): Read {
  return ({ row: { disks = [] } }) => disks.map((one) => [{ device: one.device }, one[what]]);
}

/** The machine's devices tell more than its group does, where both tell. */
function both(ofGroup: ReturnType<typeof perDevice>, ofDisk: ReturnType<typeof perDisk>): Read {
  return (one) => (one.row.disks ? ofDisk(one) : ofGroup(one));
}

function perInterface(what: Exclude<keyof InterfaceFigures, "name">): Read {
  return ({ row: { interfaces = [] } }) => interfaces.map((one) => [{ interface: one.name }, one[what]]);
}

function perPressure(of: keyof CgroupFigures["pressure"], what: keyof Pressure): Read {
  return ({ figures: { pressure } }) => pressure[of]?.[what];
}

/** "8:0" is "/dev/sda"; where the kernel has no such name any more, the numbers. */
function deviceName(numbers: string): string {
  try {
    const name = /^DEVNAME=(.+)$/m.exec(readFileSync(`/sys/dev/block/${numbers}/uevent`, "utf8"))?.[1];
    return name === undefined ? numbers : `/dev/${name}`;
  } catch {
    return numbers; // the device is gone, or /sys is not here: its figures still count
  }
}
