import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { unifiedCgroups, usedSwapBytes } from "./cgroup.ts";

test("version 2: a group's working set is without files that nobody reads any more; the root has what its processes and files take, a group without processes as nothing", () => {
  const root = mkdtempSync(join(tmpdir(), "cgroup-"));
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  try {
    write("memory.stat", "anon 500\nfile 4000\nkernel 9000\ninactive_file 1000\n");
    write("kubepods/memory.stat", "anon 100\ninactive_file 300\npgfault 7\n");
    write("kubepods/memory.current", "1000\n");
    write("kubepods/cpu.stat", "usage_usec 2\n");
    write("kubepods/besteffort/memory.stat", "anon 0\ninactive_file 0\n");
    write("kubepods/besteffort/memory.current", "0\n");
    const cgroups = unifiedCgroups(root);
    expect(cgroups.usage("/kubepods")).toMatchObject({ memoryBytes: 1000, workingSetBytes: 700, rssBytes: 100, pageFaults: 7, cpuNs: 2000 });
    expect(cgroups.usage("/kubepods/besteffort")).toMatchObject({ memoryBytes: 0, workingSetBytes: 0 });
    expect(cgroups.usage("/")).toMatchObject({ memoryBytes: 4500, workingSetBytes: 3500 });
    expect(usedSwapBytes("MemFree: 1 kB\nSwapCached: 4 kB\nSwapTotal:  1048576 kB\nSwapFree:  1048572 kB\n")).toBe(4096);
    expect(cgroups.usage("/kubepods/burstable")).toBeUndefined();
  } finally {
    rmSync(root, { recursive: true });
  }
});

test("version 2: huge pages are limited by size, those that are reserved too, where the kernel counts them", () => {
  const root = mkdtempSync(join(tmpdir(), "cgroup-"));
  try {
    mkdirSync(join(root, "p"));
    for (const group of ["", "p"]) for (const file of ["cgroup.controllers", "cgroup.subtree_control"]) writeFileSync(join(root, group, file), "hugetlb\n");
    for (const file of ["hugetlb.2MB.max", "hugetlb.2MB.rsvd.max"]) writeFileSync(join(root, "p", file), "max\n");
    unifiedCgroups(root).ensure("/p", { hugepages: { "2MB": 4096, "1GB": 0 } });
    expect(["hugetlb.2MB.max", "hugetlb.2MB.rsvd.max"].map((file) => readFileSync(join(root, "p", file), "utf8"))).toEqual(["4096", "4096"]);
  } finally {
    rmSync(root, { recursive: true });
  }
});

test("version 2: a pod that asks for twice as many processors weighs twice as much", () => {
  const root = mkdtempSync(join(tmpdir(), "cgroup-"));
  try {
    mkdirSync(join(root, "p"));
    for (const group of ["", "p"]) for (const file of ["cgroup.controllers", "cgroup.subtree_control"]) writeFileSync(join(root, group, file), "cpu\n");
    writeFileSync(join(root, "p/cpu.weight"), "100\n");
    const weigh = (cpuShares: number): string => { unifiedCgroups(root).ensure("/p", { cpuShares }); return readFileSync(join(root, "p/cpu.weight"), "utf8"); };
    expect([2, 102, 512, 1024, 2048, 262_144, 300_000].map(weigh)).toEqual(["1", "4", "20", "39", "79", "10000", "10000"]);
  } finally {
    rmSync(root, { recursive: true });
  }
});
