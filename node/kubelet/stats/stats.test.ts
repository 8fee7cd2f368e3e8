/** What a pod is said to use of the node's disk: of a real directory, with a runtime that says what its containers write. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import type { Cri } from "../../cri/client.ts";
import type { Cgroups } from "../../os/cgroup.ts";
import { POD_NAME, POD_NAMESPACE, POD_UID } from "../containers/labels.ts";
import { emptyRuntimePod } from "../runtime-pod.ts";
import { KUBELET_DEFAULTS } from "../settings.ts";
import { podDirectory, volumeDirectory } from "../volumes/pod-directories.ts";
import { fileSystemUsage } from "./disk-usage.ts";
import { nodeStats } from "./stats.ts";

const KI = 1024;

test("a pod's ephemeral storage is what its containers write and its volumes on the disk; those in memory are told, and do not count", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "stats-"));
  try {
    const pod: Pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "d", uid: "u" }, spec: { containers: [], volumes: [{ name: "disk", emptyDir: {} }, { name: "memory", emptyDir: { medium: "Memory" } }, { name: "token", projected: {} }, { name: "elsewhere", secret: {} }] } } as unknown as Pod;
    for (const [name, bytes] of [["disk", 64 * KI], ["memory", 512 * KI]] as const) {
      const path = volumeDirectory(podDirectory(dataDir, "u"), "kubernetes.io/empty-dir", name);
      mkdirSync(path, { recursive: true });
      writeFileSync(join(path, "file"), new Uint8Array(bytes).fill(1));
    }
    mkdirSync(join(podDirectory(dataDir, "u"), "volumes/kubernetes.io~secret"), { recursive: true });
    symlinkSync("/dev/shm", volumeDirectory(podDirectory(dataDir, "u"), "kubernetes.io/secret", "elsewhere"));
    const container = { attributes: { id: "c", labels: {}, metadata: { name: "c" } }, writable_layer: { used_bytes: { value: 32 * KI } } };
    const cri = { call: async (method: string) => (method === "RuntimeService/ListPodSandboxStats" ? { stats: [{ attributes: { labels: { [POD_UID]: "u", [POD_NAME]: "p", [POD_NAMESPACE]: "d" } }, linux: { containers: [container] } }] } : {}) } as unknown as Cri;
    const cgroups = { usage: () => undefined, children: () => [], text: () => undefined } as unknown as Cgroups;
    const stats = nodeStats({ settings: { ...KUBELET_DEFAULTS, nodeName: "n", dataDir } as never, cri, cgroups, clock: systemClock, memoryBytes: 1, pods: () => [{ pod, runtime: emptyRuntimePod("u", "p", "d") }], podGroup: () => "/p", podsGroup: "/kubepods" });
    const signal = new AbortController().signal;
    const [of] = (await stats.summary(signal)).pods;
    expect(of?.volume?.map(({ name }) => name)).toEqual(["disk", "memory", "token", "elsewhere"]);
    const [disk, memory, token, elsewhere] = of?.volume ?? [];
    expect(elsewhere?.capacityBytes).toBe((await fileSystemUsage("/dev/shm")).capacityBytes); // its own disk's
    expect([token?.capacityBytes, token?.usedBytes]).toEqual([(await fileSystemUsage(dataDir)).capacityBytes, 0]); // not there yet
    expect(memory?.usedBytes).toBeGreaterThanOrEqual(512 * KI);
    expect(of?.["ephemeral-storage"]?.usedBytes).toBe(32 * KI + disk!.usedBytes!);
    expect(await stats.diskLayout(signal)).toBe("one");
    const file = join(volumeDirectory(podDirectory(dataDir, "u"), "kubernetes.io/empty-dir", "disk"), "more");
    writeFileSync(file, new Uint8Array(256 * KI).fill(1));
    const used = async (how?: { readonly isFresh: boolean }): Promise<number> => (await stats.summary(signal, how)).pods[0]!.volume!.find(({ name }) => name === "disk")!.usedBytes!;
    expect([await used(), (await used({ isFresh: true })) >= disk!.usedBytes! + 256 * KI]).toEqual([disk!.usedBytes!, true]);
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});

test("what was counted for somebody who has gone before its end is told to nobody: a volume over its limit would be taken for a small one", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "stats-"));
  try {
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "d", uid: "u" }, spec: { containers: [], volumes: [{ name: "disk", emptyDir: {} }] } } as unknown as Pod;
    const path = volumeDirectory(podDirectory(dataDir, "u"), "kubernetes.io/empty-dir", "disk");
    mkdirSync(path, { recursive: true });
    writeFileSync(join(path, "file"), new Uint8Array(256 * KI).fill(1));
    const gone = new AbortController();
    const cri = { call: async (method: string) => (method === "RuntimeService/ListPodSandboxStats" ? { stats: [{ attributes: { labels: { [POD_UID]: "u", [POD_NAME]: "p", [POD_NAMESPACE]: "d" } }, linux: { containers: [] } }] } : {}) } as unknown as Cri;
    const cgroups = { usage: () => undefined, children: () => [], text() { gone.abort(); } } as unknown as Cgroups;
    const stats = nodeStats({ settings: { ...KUBELET_DEFAULTS, nodeName: "n", dataDir } as never, cri, cgroups, clock: systemClock, memoryBytes: 1, pods: () => [{ pod, runtime: emptyRuntimePod("u", "p", "d") }], podGroup: () => "/p", podsGroup: "/kubepods" });
    await expect(stats.summary(gone.signal)).rejects.toThrow("aborted");
    const [of] = (await stats.summary(new AbortController().signal)).pods;
    expect(of?.volume?.[0]?.usedBytes).toBeGreaterThanOrEqual(256 * KI);
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});

test("a container or a sandbox that has ended is not told of, nor what it has left on the disk; the others began when they were made", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "stats-"));
  try {
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "d", uid: "u" }, spec: { containers: [] } } as unknown as Pod;
    const containers = ["init", "main"].map((id) => ({ attributes: { id, labels: {}, metadata: { name: id } }, writable_layer: { used_bytes: { value: 32 * KI }, inodes_used: { value: 2 } } }));
    const of = (id: string, its: unknown, uid = "u") => ({ attributes: { id, labels: { [POD_UID]: uid, [POD_NAME]: "p", [POD_NAMESPACE]: "d" } }, linux: { containers: its } });
    const cri = { call: async (method: string) => (method === "RuntimeService/ListPodSandboxStats" ? { stats: [of("another's of that name", [], "u of before"), of("now", containers), of("before", [])] } : {}) } as unknown as Cri;
    const cgroups = { usage: () => undefined, children: () => [], text: () => undefined } as unknown as Cgroups;
    const sandboxes = [{ id: "now", ready: true, createdAtMs: 60_000 }, { id: "before", ready: false, createdAtMs: 1 }];
    const runtime = { ...emptyRuntimePod("u", "p", "d"), sandboxes, containers: [{ id: "init", name: "init", state: "exited", createdAtMs: 61_000 }, { id: "main", name: "main", state: "running", createdAtMs: 62_000, startedAtMs: 63_000 }] } as never;
    const stats = nodeStats({ settings: { ...KUBELET_DEFAULTS, nodeName: "n", dataDir } as never, cri, cgroups, clock: systemClock, memoryBytes: 1, pods: () => [{ pod, runtime }], podGroup: () => "/p", podsGroup: "/kubepods" });
    mkdirSync(podDirectory(dataDir, "u"), { recursive: true });
    writeFileSync(join(podDirectory(dataDir, "u"), "etc-hosts"), "127.0.0.1 localhost");
    const { pods } = await stats.summary(new AbortController().signal);
    expect(pods.map(({ startTime, containers: left }) => [startTime, left.map((one) => [one.name, one.startTime])])).toEqual([["1970-01-01T00:01:00Z", [["main", "1970-01-01T00:01:02Z"]]]]);
    expect(pods[0]?.["ephemeral-storage"]).toMatchObject({ usedBytes: 36 * KI, inodesUsed: 3 }); // with its hosts
    expect(stats.latest()).toEqual(pods);
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});

test("what others have of a pod's volumes is told under each name that the pod has for it", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "stats-"));
  try {
    const volumes = [{ name: "a", persistentVolumeClaim: { claimName: "c" } }, { name: "b", persistentVolumeClaim: { claimName: "c" } }, { name: "own", ephemeral: {} }, { name: "files", nfs: {} }];
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "d", uid: "u" }, spec: { containers: [], volumes } } as unknown as Pod;
    const cri = { call: async (method: string) => (method === "RuntimeService/ListPodSandboxStats" ? { stats: [{ attributes: { labels: { [POD_UID]: "u", [POD_NAME]: "p", [POD_NAMESPACE]: "d" } }, linux: {} }] } : {}) } as unknown as Cri;
    const cgroups = { usage: () => undefined, children: () => [], text: () => undefined } as unknown as Cgroups;
    const figures = [{ podUid: "u", namespace: "d", claim: "c", health: { abnormal: true, message: "sick" }, usedBytes: 1 }, { podUid: "u", namespace: "d", claim: "p-own", usedBytes: 2 }, { podUid: "u", name: "files", usedBytes: 3 }];
    const stats = nodeStats({ settings: { ...KUBELET_DEFAULTS, nodeName: "n", dataDir } as never, cri, cgroups, clock: systemClock, memoryBytes: 1, pods: () => [{ pod, runtime: emptyRuntimePod("u", "p", "d") }], podGroup: () => "/p", podsGroup: "/kubepods", others: () => figures });
    const [of] = (await stats.summary(new AbortController().signal)).pods;
    expect(of?.volume?.map(({ name, usedBytes, pvcRef, volumeHealthStats }) => [name, usedBytes, pvcRef?.name, volumeHealthStats])).toEqual([["a", 1, "c", { abnormal: true }], ["b", 1, "c", { abnormal: true }], ["own", 2, "p-own", undefined], ["files", 3, undefined, undefined]]);
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});

test("the first reading of a container's processor time is no rate, even if the runtime says that it is zero; the second is", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "stats-"));
  try {
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "d", uid: "u" }, spec: { containers: [] } } as unknown as Pod;
    let uptimeMs = 0, told = 0, usedNs = 5e9;
    const cpu = () => ({ usage_core_nano_seconds: { value: usedNs + uptimeMs * 1e5 }, usage_nano_cores: { value: told } });
    const cri = { call: async (method: string) => (method === "RuntimeService/ListPodSandboxStats" ? { stats: [{ attributes: { labels: { [POD_UID]: "u", [POD_NAME]: "p", [POD_NAMESPACE]: "d" } }, linux: { cpu: cpu(), containers: [{ attributes: { id: "c", labels: {} }, cpu: cpu() }] } }] } : {}) } as unknown as Cri;
    const cgroups = { usage: () => undefined, children: () => [], text: () => undefined } as unknown as Cgroups;
    const clock = { ...systemClock, nowMs: () => 0, uptimeMs: () => uptimeMs };
    const stats = nodeStats({ settings: { ...KUBELET_DEFAULTS, nodeName: "n", dataDir } as never, cri, cgroups, clock, memoryBytes: 1, pods: () => [{ pod, runtime: emptyRuntimePod("u", "p", "d") }], podGroup: () => "/p", podsGroup: "/kubepods" });
    const rates = async () => (await stats.summary(new AbortController().signal)).pods.map((one) => [one.cpu?.usageNanoCores, one.containers[0]?.cpu?.usageNanoCores]);
    expect(await rates()).toEqual([[undefined, undefined]]);
    uptimeMs = 2_000;
    expect(await rates()).toEqual([[1e8, 1e8]]);
    uptimeMs = 2_500; // too soon for another
    expect(await rates()).toEqual([[1e8, 1e8]]);
    told = 7;
    expect(await rates()).toEqual([[7, 7]]);
    [uptimeMs, told, usedNs] = [9_000, 0, 0]; // it counts from nothing again
    expect(await rates()).toEqual([[undefined, undefined]]);
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});

test("of the node are told what all pods use together and the kubelet itself, and what images use of their disk, where containers write too", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "stats-"));
  try {
    const cri = { call: async (method: string) => (method === "ImageService/ImageFsInfo" ? { image_filesystems: [{ fs_id: { mountpoint: dataDir }, used_bytes: { value: 7 * KI }, inodes_used: { value: 3 } }] } : {}) } as unknown as Cri;
    const group = { cpuNs: 5, memoryBytes: 90, workingSetBytes: 60, rssBytes: 1, pageFaults: 2, majorPageFaults: 3 };
    const cgroups = { version: 2, usage: (path: string) => (path === "/kubepods" ? group : path === "/own" ? { ...group, cpuNs: 8 } : undefined), children: () => [], text: (path: string, _: string, file: string) => (path === "/kubepods" && file === "memory.max" ? "100\n" : undefined) } as unknown as Cgroups;
    const stats = nodeStats({ settings: { ...KUBELET_DEFAULTS, nodeName: "n", dataDir } as never, cri, cgroups, clock: systemClock, memoryBytes: 1000, pods: () => [], podGroup: () => "/p", podsGroup: "/kubepods", ownGroup: "/own" });
    const { node } = await stats.summary(new AbortController().signal);
    expect(node.systemContainers).toMatchObject([{ name: "kubelet", cpu: { usageCoreNanoSeconds: 8 }, memory: { usageBytes: 90 } }, { name: "pods", cpu: { usageCoreNanoSeconds: 5 }, memory: { availableBytes: 40, usageBytes: 90, workingSetBytes: 60 } }]);
    expect(node.runtime?.imageFs).toMatchObject({ usedBytes: 7 * KI, inodesUsed: 3 });
    expect(node.runtime?.containerFs).toEqual(node.runtime?.imageFs);
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});
