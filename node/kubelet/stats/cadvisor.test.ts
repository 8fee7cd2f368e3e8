import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Cgroups, CgroupUsage } from "../../os/cgroup.ts";
import type { MachineInfo } from "../../os/machine.ts";
import { cadvisorMetrics, type Row } from "./cadvisor.ts";
import { cgroupFigures } from "./cgroup-figures.ts";
import { withProcesses } from "./cgroup-rows.ts";
import { diskFigures } from "./disk-figures.ts";
import { parseNetDev } from "./network-figures.ts";
import { openFilesLimit, processFigures } from "./process-figures.ts";

const MACHINE: MachineInfo = { os: "linux", cpus: 4, memoryBytes: 2e9, swapBytes: 0, hugepages: [], machineId: "m", systemUuid: "s", bootId: "b", kernelVersion: "6.1", osImage: "Debian", architecture: "amd64" };

/** Groups with these files, whichever the controller. */
function groups(version: 1 | 2, files: Readonly<Record<string, Readonly<Record<string, string>>>>): Cgroups {
  const none = (): never => { throw new Error("only read here"); };
  return { version, countsSwap: false, ensure: none, remove: none, kill: none, usage: none, pids: none, children: none, exists: (path) => path in files, text: (path, _, file) => files[path]?.[file] };
}

const V1 = {
  "cpuacct.usage": "2500000000\n", "cpuacct.stat": "user 150\nsystem 50\n", "cpu.stat": "nr_periods 10\nnr_throttled 4\nthrottled_time 500000000\nnr_bursts 2\nburst_time 250000000\n", "cpu.cfs_quota_us": "20000\n", "cpu.cfs_period_us": "100000\n", "cpu.shares": "204\n",
  "memory.usage_in_bytes": "5000\n", "memory.stat": "cache 1\ntotal_cache 900\ntotal_rss 3000\ntotal_inactive_file 400\ntotal_active_file 500\ntotal_mapped_file 7\ntotal_pgfault 12\ntotal_pgmajfault 2\n",
  "memory.limit_in_bytes": "9223372036854771712\n", "memory.soft_limit_in_bytes": "64\n", "memory.failcnt": "3\n", "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
  "blkio.throttle.io_service_bytes": "7:0 Read 4096\n7:0 Write 512\n7:0 Total 4608\nTotal 4608\n", "blkio.throttle.io_serviced": "7:0 Read 2\n7:0 Write 1\n", "pids.current": "5\n", "pids.max": "max\n",
};
const V2 = {
  "cpu.stat": "usage_usec 2500000\nuser_usec 1500000\nsystem_usec 500000\nnr_periods 10\nnr_throttled 4\nthrottled_usec 500000\nnr_bursts 2\nburst_usec 250000\n", "cpu.max": "20000 100000\n", "cpu.weight": "100\n",
  "memory.current": "5000\n", "memory.stat": "anon 3000\nfile 900\ninactive_file 400\nactive_file 500\nfile_mapped 7\npgfault 12\npgmajfault 2\n", "memory.max": "max\n", "memory.min": "64\n", "memory.events": "low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\n",
  "io.stat": "7:0 rbytes=4096 wbytes=512 rios=2 wios=1 dbytes=0 dios=0\n", "pids.current": "5\n", "pids.max": "max\n", "cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=2000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n",
};

test("both versions of control groups tell the same", () => {
  const one = cgroupFigures(groups(1, { "/a": V1 }), "/a");
  const two = cgroupFigures(groups(2, { "/a": V2 }), "/a");
  for (const { cpu, throttling, memory, devices, processes } of [one, two]) {
    expect(cpu).toEqual({ totalSeconds: 2.5, userSeconds: 1.5, systemSeconds: 0.5 });
    expect(throttling).toEqual({ periods: 10, throttledPeriods: 4, throttledSeconds: 0.5, burstPeriods: 2, burstSeconds: 0.25 });
    expect(memory).toMatchObject({ usageBytes: 5000, workingSetBytes: 4600, rssBytes: 3000, cacheBytes: 900, mappedFileBytes: 7, activeFileBytes: 500, failures: 3, pageFaults: 12, majorPageFaults: 2, limitBytes: 0, reservationBytes: 64, oomKills: 1 });
    expect(devices).toEqual([{ device: "7:0", readBytes: 4096, writtenBytes: 512, reads: 2, writes: 1, bytes: expect.any(Map) }]);
    expect(processes).toEqual({ current: 5, max: undefined });
  }
  expect([one, two].map(({ devices }) => Object.fromEntries(devices[0]!.bytes))).toEqual([{ Read: 4096, Write: 512, Total: 4608 }, { Read: 4096, Write: 512 }]);
  expect(two.pressure).toEqual({ cpu: { waitingSeconds: 2, stalledSeconds: 1 } });
});

test("version 1: who counts a group's work on disks is asked in upstream's order, first those that count the groups below, too", () => {
  const bfq = { "blkio.bfq.io_service_bytes_recursive": "8:0 Read 100\n8:0 Write 50\n8:0 Sync 150\nTotal 150\n", "blkio.bfq.io_serviced_recursive": "8:0 Read 10\n8:0 Write 5\nTotal 15\n" };
  const none = { "blkio.bfq.io_service_bytes_recursive": "Total 0\n", "blkio.bfq.io_serviced_recursive": "Total 0\n" };
  const throttle = { "blkio.throttle.io_service_bytes_recursive": "7:0 Read 1\n", "blkio.throttle.io_serviced_recursive": "7:0 Read 9\n" };
  const reads = (files: Record<string, string>): unknown => cgroupFigures(groups(1, { "/a": { ...V1, ...files } }), "/a").devices.map((one) => [one.device, one.reads, one.writes, one.readBytes]);
  expect([reads({ ...bfq, ...throttle }), reads({ ...none, ...throttle }), reads(none)]).toEqual([[["8:0", 10, 5, 100]], [["7:0", 9, 0, 1]], [["7:0", 2, 1, 4096]]]);
});

test("processes, open files and sockets are those of the group itself; who has just ended has none", async () => {
  const proc = mkdtempSync(join(tmpdir(), "proc-"));
  mkdirSync(join(proc, "7/fd"), { recursive: true });
  for (const [fd, link] of [["0", "/dev/null"], ["1", "socket:[12]"], ["2", "pipe:[3]"]] as const) symlinkSync(link, join(proc, "7/fd", fd));
  expect(await processFigures(groups(2, { "/a": { "cgroup.procs": "7\n8\n" } }), "/a", proc)).toEqual({ processes: 2, fileDescriptors: 3, sockets: 1 });
  expect(await processFigures(groups(2, { "/a": {} }), "/a", proc)).toBeUndefined();
  expect(["Max open files            1024                 524288               files     ", "Max open files            unlimited            unlimited            files     ", ""].map(openFilesLimit)).toEqual([1024, -1, undefined]);
  rmSync(proc, { recursive: true });
});

test("the machine's disks: one a device, by its numbers or its name, with what the device has done", async () => {
  const mountinfo = [
    "1 0 254:0 / / rw - ext4 /dev/mapper/root rw", "2 1 254:0 /srv /srv rw - ext4 /dev/mapper/root rw", "3 1 0:44 /data /data rw - btrfs /dev/sdb rw", "4 1 7:0 / /snap rw - squashfs /dev/loop0 ro", "5 1 0:20 / /run rw - tmpfs tmpfs rw", "6 1 8:32 / /gone rw - xfs /dev/sdc rw", "",
  ].join("\n");
  const diskstats = " 254       0 dm-0 10 1 20 3000 40 5 60 7000 2 9000 11000 0 0\n   8      16 sdb 1 0 0 0 0 0 0 0 0 0 0\n   7       0 loop0 1 0 0 0 0 0 0 0 0 0 0\n   8      32 sdc 1 0 0 0 0 0 0 0 0 0 0\n";
  const sizes = async (target: string) => { if (target === "/gone") throw new Error("gone"); return { limitBytes: 100, usageBytes: 60, inodes: 10, inodesFree: 4 }; };
  const disks = await diskFigures({ mountinfo, diskstats, sizes });
  expect(disks.map(({ device }) => device)).toEqual(["/dev/mapper/root", "/dev/sdb"]);
  expect(disks[0]).toEqual({ device: "/dev/mapper/root", limitBytes: 100, usageBytes: 60, inodes: 10, inodesFree: 4, reads: 10, readsMerged: 1, sectorsRead: 20, readSeconds: 3, writes: 40, writesMerged: 5, sectorsWritten: 60, writeSeconds: 7, inProgress: 2, ioSeconds: 9, weightedSeconds: 11 });
  const rows: Row[] = [{ path: "/", disks, openFilesLimit: 1024, processes: { processes: 3, fileDescriptors: 5, sockets: 1 } }, { path: "/a" }];
  const lines = cadvisorMetrics({ cgroups: groups(1, { "/": V1, "/a": V1 }), rows, machine: MACHINE, nowMs: 60_000 }).split("\n");
  const of = (name: string): string[] => lines.filter((line) => line.startsWith(`${name}{`)).map((line) => line.slice(name.length).replace('container="",', "").replace('image="",name="",namespace="",pod=""', "").replace(" 60000", ""));
  expect(of("container_fs_reads_total")).toEqual(['{device="/dev/mapper/root",id="/",} 10', '{device="/dev/sdb",id="/",} 1', expect.stringMatching(/^\{device=".+",id="\/a",\} 2$/)]);
  expect(of("container_fs_io_time_seconds_total")).toEqual(['{device="/dev/mapper/root",id="/",} 9', '{device="/dev/sdb",id="/",} 0']);
  expect(of("container_blkio_device_usage_total").length).toBe(6);
  expect([of("container_sockets"), of("container_ulimits_soft").length]).toEqual([['{id="/",} 1'], 1]);
});

test("what the machine uses is told of version 2's root, which has no files for that, nor limits", () => {
  const { "memory.current": _, "memory.max": __, ...root } = V2;
  const cgroups = { ...groups(2, { "/": root }), usage: () => ({ memoryBytes: 7000, swapBytes: 9 }) as CgroupUsage };
  expect(cgroupFigures(cgroups, "/").memory).toMatchObject({ usageBytes: 7000, workingSetBytes: 6600, rssBytes: 3000, swapBytes: 9, limitBytes: undefined, swapLimitBytes: undefined });
  expect(cadvisorMetrics({ cgroups, rows: [{ path: "/" }], machine: MACHINE, nowMs: 60_000 })).toContain('container_memory_working_set_bytes{container="",id="/",image="",name="",namespace="",pod=""} 6600 60000');
});

test("how many files may be open is told of the first process of a container, not of a pod", async () => {
  const cgroups = groups(2, { "/p": { "cgroup.procs": "" }, "/p/c": { "cgroup.procs": `${process.pid}\n` } });
  const [container, pod] = [await withProcesses(cgroups, { path: "/p/c", name: "c" }), await withProcesses(cgroups, { path: "/p" })];
  expect([container.openFilesLimit, pod.openFilesLimit]).toEqual([openFilesLimit(readFileSync("/proc/self/limits", "utf8")), undefined]);
});

test("without a quota nothing is throttled, and what the kernel does not tell is absent", () => {
  expect(cgroupFigures(groups(2, { "/a": { ...V2, "cpu.max": "max 100000\n" } }), "/a").throttling).toBeUndefined();
  expect(cgroupFigures(groups(1, { "/a": {} }), "/a")).toEqual({ cpuSpec: { shares: undefined, quotaUs: undefined, periodUs: undefined }, devices: [], processes: { current: 0, max: undefined }, pressure: {} });
});

test("every series has the labels of cadvisor; groups that are gone have none", () => {
  const [eth0] = parseNetDev("Inter-| Receive\n face |bytes\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\nveth12: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\ndocker0: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  eth0: 100 2 3 4 0 0 0 0 200 5 6 7 0 0 0 0\n");
  const rows: Row[] = [
    { path: "/" }, { path: "/kubepods/podu", pod: "web", namespace: "shop" }, { path: "/kubepods/podu/sandbox", name: "sandbox", image: "pause", pod: "web", namespace: "shop", interfaces: [eth0!] },
    { path: "/kubepods/podu/c1", name: "c1", image: "busybox:1", container: "httpd", pod: "web", namespace: "shop", startedAtMs: 5000 }, { path: "/gone" },
  ];
  const text = cadvisorMetrics({ cgroups: groups(1, { "/": V1, "/kubepods/podu": V1, "/kubepods/podu/sandbox": V1, "/kubepods/podu/c1": V1 }), rows, machine: MACHINE, cores: 2, sockets: 1, nowMs: 60_000 });
  const lines = text.split("\n");
  expect(lines).toContain('container_cpu_usage_seconds_total{container="httpd",cpu="total",id="/kubepods/podu/c1",image="busybox:1",name="c1",namespace="shop",pod="web"} 2.5 60000');
  expect(lines).toContain('container_memory_working_set_bytes{container="",id="/kubepods/podu",image="",name="",namespace="shop",pod="web"} 4600 60000');
  expect(lines).toContain('container_network_transmit_packets_total{container="",id="/kubepods/podu/sandbox",image="pause",interface="eth0",name="sandbox",namespace="shop",pod="web"} 5 60000');
  expect(lines).toContain('container_start_time_seconds{container="httpd",id="/kubepods/podu/c1",image="busybox:1",name="c1",namespace="shop",pod="web"} 5');
  expect(lines).toContain('container_health_state{container="httpd",id="/kubepods/podu/c1",image="busybox:1",name="c1",namespace="shop",pod="web"} -1 60000');
  expect(lines).toContain('machine_swap_bytes{boot_id="b",machine_id="m",system_uuid="s"} 0');
  expect(lines).toContain('machine_cpu_cores{boot_id="b",machine_id="m",system_uuid="s"} 4');
  expect(lines).toContain('machine_cpu_physical_cores{boot_id="b",machine_id="m",system_uuid="s"} 2');
  expect(lines).toContain("machine_scrape_error 0");
  expect(text).not.toContain("/gone");
  expect(new Set(lines.filter((line) => line.startsWith("# TYPE"))).size).toBe(lines.filter((line) => line.startsWith("# TYPE")).length);
});
