/** What a worn disk makes of the kubelet's own files: none of them keeps it from starting. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Client } from "../../core/client/client.ts";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { silentLog } from "../../core/observe/log.ts";
import { metricsRegistry } from "../../core/observe/metrics.ts";
import { parseQuantity } from "../../core/api/meta/quantity.ts";
import { readStateFile } from "../os/state-file.ts";
import { storedClaims } from "./claims/checkpoint.ts";
import { claimManager } from "./claims/claim-manager.ts";
import { readNote } from "./csi/volume-note.ts";
import { readCheckpoint } from "./devices/checkpoint.ts";
import { pullRecords } from "./images/pull-records.ts";
import { forgetLogDirectory, noteLogDirectory, notedLogDirectories } from "./logs/log-directories.ts";
import { readCpus, readMemory } from "./placement/checkpoint.ts";
import { readAllocation } from "./resources/allocation-record.ts";
import { userNamespaces } from "./sandbox/user-namespaces.ts";

let directory = "";
beforeEach(() => { directory = mkdtempSync(join(tmpdir(), "damaged-")); });
afterEach(() => rmSync(directory, { recursive: true }));

const UID = "bf52b2cd-b611-4e79-86b1-280b283185c3";
const IDS = { hostId: 131_072, containerId: 0, length: 65_536 };
const claims = (): unknown => claimManager({ dataDir: directory, nodeName: "n", client: {} as Client, clock: systemClock, log: silentLog, events: { event() {} }, metrics: metricsRegistry(), onRegistered() {}, onHealth() {} });
const pulls = () => pullRecords({ root: directory, nowMs: () => 0, verification: { policy: "NeverVerifyPreloadedImages", allowlist: [] } });

interface Kept { readonly file: string; readonly text: string; /** As the kubelet does at its start, or for a pod. */ readonly read: (path: string) => unknown }
const KEPT: Readonly<Record<string, Kept>> = {
  processors: { file: "cpu_manager_state", text: `{"policyName":"static","defaultCpuSet":"0-3,8","entries":{"a-uid":{"x":"7"}},"checksum":502330179}`, read: (path) => readStateFile(path, silentLog, readCpus) },
  memory: {
    file: "memory_manager_state", read: (path) => readStateFile(path, silentLog, readMemory),
    text: `{"policyName":"Static","machineState":{"2":{"numberOfAssignments":1,"memoryMap":{"memory":{"total":9,"systemReserved":0,"allocatable":9,"reserved":1,"free":8}},"cells":[2]}},"entries":{"a-uid":{"x":[{"numaAffinity":[2],"type":"memory","size":1}]}},"checksum":1}`,
  },
  devices: {
    file: "kubelet_internal_checkpoint", read: (path) => readCheckpoint(path, silentLog),
    text: `{"Data":{"PodDeviceEntries":[{"PodUID":"${UID}","ContainerName":"check","ResourceName":"nvidia.com/gpu","DeviceIDs":{"-1":["tegra"]},"AllocResp":"Ch8KFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSBXRlZ3Jh"}],"RegisteredDevices":{"nvidia.com/gpu":["tegra"]}},"Checksum":3660592824}`,
  },
  claims: {
    file: "dra_manager_state", read: claims,
    text: JSON.stringify(storedClaims([{ namespace: "d", name: "c", uid: "u", drivers: ["gpu.example.com"], pods: [UID], devices: [{ driver: "gpu.example.com", pool: "p", device: "d", requests: ["r"], cdiIds: ["a/b=c"] }] }])),
  },
  "claims, as they were once written": {
    file: "dra_manager_state", read: claims,
    text: `{"claims":[{"namespace":"d","name":"c","uid":"u","drivers":["gpu.example.com"],"pods":["${UID}"],"devices":[{"driver":"gpu.example.com","pool":"p","device":"d","requests":["r"],"cdiIds":["a/b=c"]}]}]}`,
  },
  "ids of users": {
    file: `pods/${UID}/userns`, text: JSON.stringify({ uidMappings: [IDS], gidMappings: [IDS] }),
    read: () => userNamespaces({ dataDir: directory, log: silentLog, random: { next: () => 0 }, maxPods: 110 }).setUp(undefined, [UID]),
  },
  "what a pod was granted": {
    file: `pods/${UID}/allocation.json`, text: `{"c":{"requests":{"cpu":"100m","memory":"1Mi"},"limits":{"cpu":"1.5"}}}`,
    read() { for (const { requests = {}, limits = {} } of Object.values(readAllocation(directory, UID, silentLog) ?? {})) [...Object.values(requests), ...Object.values(limits)].map(parseQuantity); },
  },
  "a CSI volume": { file: "vol_data.json", text: `{"driverName":"d","volumeHandle":"v"}`, read: () => readNote(directory) },
};
test.each(Object.entries(KEPT))("a bit of any byte flipped, or its sectors unreadable, what is kept of %s keeps nobody from starting", async (_, { file, text, read }) => {
  const path = join(directory, file);
  const fresh = (): void => {
    rmSync(directory, { recursive: true });
    mkdirSync(dirname(path), { recursive: true });
  };
  fresh();
  writeFileSync(path, text);
  await read(path);
  for (let at = 0; at < text.length; at++) {
    const bytes = Buffer.from(text);
    bytes[at]! ^= 1 << (at * 5 + 2) % 8;
    fresh();
    writeFileSync(path, bytes);
    await expect((async () => void (await read(path)))(), bytes.toString()).resolves.toBeUndefined();
  }
  fresh();
  symlinkSync("/proc/self/mem", path); // is opened, and answers as a bad sector does
  await expect((async () => void (await read(path)))()).resolves.toBeUndefined();
});

test("of a record of a pull that a disk has damaged nobody knows with what it was pulled, as upstream", async () => {
  await pulls().pulled("r.example/private:1", "id", undefined);
  const file = readdirSync(join(directory, "pulled"))[0]!, path = join(directory, "pulled", file);
  const text = readFileSync(path, "utf8");
  for (const damaged of ["", "null", text.replace("credentialMapping", "credentialMippang"), text]) {
    writeFileSync(path, damaged);
    expect(await pulls().mayUse("r.example/private:1", { id: "id" }, async () => [])).toBe(damaged === text);
  }
});

test("a note of a pod's logs that the disk cannot read is written again", async () => {
  const owner = { namespace: "d", name: "p", uid: UID };
  await noteLogDirectory(directory, owner);
  const path = join(directory, "pod-logs", UID);
  rmSync(path);
  symlinkSync("/proc/self/mem", path);
  expect(await notedLogDirectories(directory)).toEqual([]);
  await noteLogDirectory(directory, owner);
  expect(await notedLogDirectories(directory)).toEqual([owner]);
  await forgetLogDirectory(directory, UID);
});
