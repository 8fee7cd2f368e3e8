import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readCpus, readMemory, storedCpus, storedMemory } from "./checkpoint.ts";
import { formatCpuSet, parseCpuSet } from "./cpu-set.ts";

let directory = "";
beforeEach(() => { directory = mkdtempSync(join(tmpdir(), "placement-")); });
afterEach(() => rmSync(directory, { recursive: true }));

/** Written by kubernetes v1.36. */
const CPUS = `{"policyName":"static","defaultCpuSet":"0-3,8","entries":{"a-uid":{"x":"7"},"b-uid":{"app":"6","z":"4-5"}},"checksum":502330179}`;
const NO_CPUS = `{"policyName":"none","defaultCpuSet":"","checksum":1353318690}`;
const MEMORY = `{"policyName":"Static","machineState":{"0":{"numberOfAssignments":2,"memoryMap":{"hugepages-2Mi":{"total":0,"systemReserved":0,"allocatable":0,"reserved":0,"free":0},"memory":{"total":3221225472,"systemReserved":268435456,"allocatable":2952790016,"reserved":104857600,"free":2847932416}},"cells":[0,1]},"10":{"numberOfAssignments":0,"memoryMap":{"memory":{"total":1099511627776,"systemReserved":0,"allocatable":0,"reserved":0,"free":0}},"cells":[10]},"2":{"numberOfAssignments":0,"memoryMap":{},"cells":[2]}},"entries":{"a-uid":{"x":[{"numaAffinity":[2],"type":"memory","size":1}]},"b-uid":{"app":[{"numaAffinity":[0,1],"type":"memory","size":104857600},{"numaAffinity":[0,1],"type":"hugepages-2Mi","size":0}]}},"checksum":1101079807}`;
const NO_MEMORY = `{"policyName":"None","machineState":{},"checksum":4236770233}`;

test("upstream's state files are read, and written as upstream writes them", () => {
  const path = join(directory, "state");
  for (const text of [CPUS, NO_CPUS]) {
    writeFileSync(path, text);
    expect(JSON.stringify(storedCpus(readCpus(path)!))).toBe(text);
  }
  for (const text of [MEMORY, NO_MEMORY]) {
    writeFileSync(path, text);
    expect(storedMemory(readMemory(path)!)).toEqual(JSON.parse(text));
  }
  expect(readCpus(join(directory, "none"))).toBeUndefined();
});

test("a state file that somebody changed is not believed", () => {
  const path = join(directory, "state");
  writeFileSync(path, CPUS.replace("4-5", "4"));
  expect(() => readCpus(path)).toThrow("checkpoint is corrupted");
  writeFileSync(path, MEMORY.replace("104857600", "104857601"));
  expect(() => readMemory(path)).toThrow("checkpoint is corrupted");
});

test("sets of processors as text", () => {
  expect(["", "0", "3,1-2,7", "0-3,8"].map((text) => formatCpuSet(parseCpuSet(text)))).toEqual(["", "0", "1-3,7", "0-3,8"]);
  expect(() => parseCpuSet("3-1")).toThrow('invalid range "3-1" (3 > 1)');
  expect(() => parseCpuSet("a")).toThrow('strconv.Atoi: parsing "a": invalid syntax');
});
