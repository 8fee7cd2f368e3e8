import { expect, test } from "vitest";
import { allocatableOf, podsShareOf, reservationProblem } from "./capacity.ts";

const machine = { cpus: 4, memoryBytes: 8 << 20 };

test.each([
  [{}, { memoryBytes: 8 << 20, milliCpu: 4000, pids: 32_768 }],
  [{ memory: "1Mi", cpu: "500m", pid: "1000" }, { memoryBytes: 7 << 20, milliCpu: 3500, pids: 31_768 }],
  [{ memory: "9Mi", cpu: "5", pid: "40000m" }, { memoryBytes: 0, milliCpu: 0, pids: 32_728 }],
  [{ pid: "40k" }, { memoryBytes: 8 << 20, milliCpu: 4000, pids: 0 }],
])("pods share what is not reserved: %j", (reserved, share) => {
  expect(podsShareOf({ machine, reserved, pidsMax: 32_768 })).toEqual(share);
});

test("a machine that does not say how many processes there may be does not limit them", () => {
  expect(podsShareOf({ machine, reserved: { pid: "10" }, pidsMax: 0 }).pids).toBeUndefined();
});

test("more than the machine has cannot be reserved, with what eviction keeps free", () => {
  const problem = (reserved: Readonly<Record<string, string>>, memoryBytes = 1024 ** 3) => reservationProblem({ machine: { os: "linux", hugepages: [], cpus: 4, memoryBytes }, reserved });
  expect([problem({ cpu: "4", memory: "924Mi" }), problem({}, 1 << 20)]).toEqual([undefined, undefined]);
  expect(problem({ cpu: "4500m", memory: "925Mi" })).toBe('invalid Node Allocatable configuration. Resource "cpu" has a reservation of 4500m but capacity of 4. Expected capacity >= reservation. Resource "memory" has a reservation of 1074790400 but capacity of 1Gi. Expected capacity >= reservation.');
});

test("what eviction keeps free of the disk is what upstream keeps, to the byte", () => {
  const facts = { machine: { os: "linux" as const, hugepages: [], cpus: 4, memoryBytes: 1024 ** 3 }, reserved: {}, diskBytes: 61_255_492 * 1024, maxPods: 110 };
  expect(allocatableOf(facts)["ephemeral-storage"]).toBe("56453061334");
});

test("what is left for pods is told to the byte, as upstream writes it", () => {
  const left = (reserved: Readonly<Record<string, string>>, thresholds: [] | undefined = []) => {
    const { memory, "ephemeral-storage": disk, cpu } = allocatableOf({ machine: { os: "linux", hugepages: [], cpus: 4, memoryBytes: 1024 ** 3 }, reserved, diskBytes: 2 * 1024 ** 3, maxPods: 110, thresholds });
    return [memory, disk, cpu];
  };
  expect(left({})).toEqual(["1Gi", "2Gi", "4"]);
  expect(left({ memory: "100M", "ephemeral-storage": "1G", cpu: "250m" })).toEqual(["973741824", "1147483648", "3750m"]);
  expect(left({ memory: "2Gi", "ephemeral-storage": "2Gi" })).toEqual(["0", "0", "4"]);
});
