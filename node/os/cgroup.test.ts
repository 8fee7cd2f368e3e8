import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { unifiedCgroups } from "./cgroup.ts";

test("version 2: a group's working set is without files that nobody reads any more; the root counts as the machine, a group without processes as nothing", () => {
  const root = mkdtempSync(join(tmpdir(), "cgroup-"));
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  try {
    write("memory.stat", "anon 5\ninactive_file 0\n");
    write("kubepods/memory.stat", "anon 100\ninactive_file 300\npgfault 7\n");
    write("kubepods/memory.current", "1000\n");
    write("kubepods/cpu.stat", "usage_usec 2\n");
    write("kubepods/besteffort/memory.stat", "anon 0\ninactive_file 0\n");
    write("kubepods/besteffort/memory.current", "0\n");
    const cgroups = unifiedCgroups(root);
    expect(cgroups.usage("/kubepods")).toMatchObject({ memoryBytes: 1000, workingSetBytes: 700, rssBytes: 100, pageFaults: 7, cpuNs: 2000 });
    expect(cgroups.usage("/kubepods/besteffort")).toMatchObject({ memoryBytes: 0, workingSetBytes: 0 });
    expect(cgroups.usage("/")!.memoryBytes).toBeGreaterThan(1024 * 1024);
    expect(cgroups.usage("/kubepods/burstable")).toBeUndefined();
  } finally {
    rmSync(root, { recursive: true });
  }
});
