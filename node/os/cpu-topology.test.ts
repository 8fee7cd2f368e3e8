import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { machineTopology } from "./cpu-topology.ts";

let sysfs = "";
beforeEach(() => { sysfs = mkdtempSync(join(tmpdir(), "sysfs-")); });
afterEach(() => rmSync(sysfs, { recursive: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(sysfs, path)), { recursive: true });
  writeFileSync(join(sysfs, path), `${text}\n`);
}

test("two NUMA nodes, two threads a core, two last-level caches a node; one processor is offline", () => {
  for (let cpu = 0; cpu < 16; cpu++) {
    const [node, core] = [Math.floor((cpu % 8) / 4), cpu % 4];
    const at = `devices/system/cpu/cpu${cpu}`;
    if (cpu === 15) {
      write(`${at}/online`, "0");
      continue;
    }
    write(`${at}/topology/core_id`, String(core)); // the same numbers on both sockets
    write(`${at}/topology/physical_package_id`, String(node));
    write(`${at}/cache/index0/level`, "1");
    write(`${at}/cache/index3/level`, "3");
    write(`${at}/cache/index3/id`, String(node * 2 + Math.floor(core / 2)));
    write(`${at}/cache/index3/shared_cpu_map`, "00000000,00000303");
    write(`devices/system/node/node${node}/cpu${cpu}/x`, "");
  }
  for (const node of [0, 1]) {
    write(`devices/system/node/node${node}/meminfo`, `Node ${node} MemTotal:       16384 kB\nNode ${node} MemFree: 1 kB`);
    write(`devices/system/node/node${node}/distance`, node === 0 ? "10 21" : "21 10");
    write(`devices/system/node/node${node}/hugepages/hugepages-2048kB/nr_hugepages`, "3");
  }
  const { cpus, nodes } = machineTopology({ sysfs, memoryBytes: 0 });
  expect(cpus).toHaveLength(15);
  expect([0, 5, 8, 14].map((id) => cpus.find(({ cpu }) => cpu === id))).toEqual([
    { cpu: 0, core: 0, socket: 0, numaNode: 0, uncoreCache: 0 }, { cpu: 5, core: 5, socket: 1, numaNode: 1, uncoreCache: 2 }, { cpu: 8, core: 0, socket: 0, numaNode: 0, uncoreCache: 0 }, { cpu: 14, core: 6, socket: 1, numaNode: 1, uncoreCache: 3 },
  ]);
  expect(nodes[1]).toEqual({ id: 1, memoryBytes: 16 * 1024 ** 2, distances: [21, 10], hugepages: [{ pageBytes: 2 * 1024 ** 2, bytes: 6 * 1024 ** 2 }] });
});

test("a small machine without NUMA and without a description of caches", () => {
  for (const cpu of [0, 1]) {
    write(`devices/system/cpu/cpu${cpu}/topology/core_id`, String(cpu));
    write(`devices/system/cpu/cpu${cpu}/topology/physical_package_id`, "-1");
  }
  expect(machineTopology({ sysfs, memoryBytes: 512 })).toEqual({
    cpus: [{ cpu: 0, core: 0, socket: 0, numaNode: 0, uncoreCache: 0 }, { cpu: 1, core: 1, socket: 0, numaNode: 0, uncoreCache: 0 }], nodes: [{ id: 0, memoryBytes: 512, distances: [10], hugepages: [] }],
  });
});
