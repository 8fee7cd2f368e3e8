import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLog } from "../../../core/observe/log.ts";
import { readCheckpoint, storedCheckpoint } from "./checkpoint.ts";

let path = "";
beforeEach(() => { path = join(mkdtempSync(join(tmpdir(), "devices-")), "state"); });
afterEach(() => rmSync(join(path, ".."), { recursive: true }));

/** Written by a kubelet. */
const UPSTREAM = `{"Data":{"PodDeviceEntries":[{"PodUID":"bf52b2cd-b611-4e79-86b1-280b283185c3","ContainerName":"check","ResourceName":"nvidia.com/gpu","DeviceIDs":{"-1":["tegra"]},"AllocResp":"Ch8KFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSBXRlZ3Jh"}],"RegisteredDevices":{"nvidia.com/gpu":["tegra"]}},"Checksum":3660592824}`;

function read(text: string) {
  writeFileSync(path, text);
  return readCheckpoint(path, silentLog);
}

const gpu = (...numaNodes: number[]) => new Map([["nvidia.com/gpu", [{ id: "tegra", healthy: true, numaNodes }]]]);

test("what upstream has written is read, and written as it writes it", () => {
  const { allocations, resources } = read(UPSTREAM);
  expect(allocations).toMatchObject([{ podUid: "bf52b2cd-b611-4e79-86b1-280b283185c3", container: "check", resource: "nvidia.com/gpu", ids: ["tegra"], response: { envs: { NVIDIA_VISIBLE_DEVICES: "tegra" } } }]);
  expect(resources).toEqual(["nvidia.com/gpu"]);
  expect(JSON.stringify(storedCheckpoint({ allocations, devices: gpu() }))).toBe(UPSTREAM);
  const ill = new Map([["nvidia.com/gpu", [{ id: "orin", healthy: false, numaNodes: [] }]]]);
  expect(storedCheckpoint({ allocations: [], devices: ill })).toMatchObject({ Data: { RegisteredDevices: { "nvidia.com/gpu": [] } } }); // agents count those that can be had
  expect(JSON.stringify(storedCheckpoint({ allocations: [], devices: new Map() }))).toMatch(/^{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":\d+}$/);
});

test("devices stand by the NUMA nodes they lie on, where they were before as long as their plugin says nothing", () => {
  const { allocations } = read(UPSTREAM);
  const placed = JSON.stringify(storedCheckpoint({ allocations, devices: gpu(0, 1) }));
  expect(placed).toContain('"DeviceIDs":{"0":["tegra"],"1":["tegra"]}');
  const again = read(placed);
  expect(again.allocations[0]?.ids).toEqual(["tegra"]);
  expect(JSON.stringify(storedCheckpoint({ allocations: again.allocations, devices: new Map() }))).toContain('"DeviceIDs":{"0":["tegra"],"1":["tegra"]}');
});

test("what was not asked for yet is told apart from what was answered with nothing", () => {
  const one = { podUid: "u", container: "c", resource: "r", ids: ["a"] };
  const { allocations } = read(JSON.stringify(storedCheckpoint({ allocations: [one, { ...one, container: "d", response: {} }], devices: new Map() })));
  expect(allocations.map(({ response }) => response)).toEqual([undefined, {}]);
});

test("what earlier versions of ours have written is read; what somebody has changed is put aside", () => {
  expect(read(`{"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r","DeviceIDs":["a"],"AllocResp":{"envs":{"A":"b"}}}],"RegisteredDevices":{"r":["a"]}}}`).allocations).toEqual([{ podUid: "u", container: "c", resource: "r", ids: ["a"], response: { envs: { A: "b" } } }]);
  expect(read(UPSTREAM.replace('"tegra"]}', '"other"]}')).allocations).toEqual([]);
  expect(existsSync(`${path}.corrupt`)).toBe(true);
});
