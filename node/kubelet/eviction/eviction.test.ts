import { expect, test } from "vitest";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import type { PodStats } from "../kubelet-api.ts";
import { eviction } from "./eviction.ts";
import { localStorageExcess } from "./local-storage.ts";
import { type Amount, effectiveThresholds, type EvictionSettings, type Observation, percent, reclaims, shortages, type Signal } from "./plan.ts";
import { type Candidate, evictionMessage, ranked } from "./ranking.ts";

const MI = 1024 * 1024;
const pod = (name: string, memory: string | undefined, more: Partial<Pod["spec"]> = {}): Pod => ({
  apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "d", uid: name, resourceVersion: "", creationTimestamp: "" },
  spec: { containers: [{ name: "c", resources: memory === undefined ? {} : { requests: { memory } } }], ...more },
});
const uses = (name: string, memoryMi: number, diskMi = 0): PodStats => ({
  podRef: { name, namespace: "d", uid: name }, startTime: "", containers: [{ name: "c", startTime: "", memory: { time: "", workingSetBytes: memoryMi * MI }, rootfs: { time: "", usedBytes: diskMi * MI } }],
  memory: { time: "", workingSetBytes: memoryMi * MI }, "ephemeral-storage": { time: "", usedBytes: diskMi * MI }, volume: [{ name: "v", time: "", usedBytes: diskMi * MI }],
});

const order = (shortage: Parameters<typeof ranked>[0], candidates: readonly Candidate[], layout: Parameters<typeof ranked>[1] = "one") => ranked(shortage, layout, candidates).map((one) => one.pod.metadata.name);

test("who goes first when memory runs out", () => {
  const candidates = [
    { pod: pod("within", "200Mi"), stats: uses("within", 100) }, { pod: pod("greedy", "100Mi"), stats: uses("greedy", 300) }, { pod: pod("greedier", undefined), stats: uses("greedier", 400) },
    { pod: pod("important", undefined, { priority: 1000 }), stats: uses("important", 900) }, { pod: pod("critical", undefined, { priority: 2_000_000_000 }), stats: uses("critical", 999) },
  ];
  expect(order({ signal: "memory.available", starved: "memory" }, candidates)).toEqual(["greedier", "greedy", "important", "within"]);
  expect(order({ signal: "memory.available", starved: "memory" }, [...candidates, { pod: pod("unknown", "1Gi", { priority: 9 }), stats: undefined }])[0]).toBe("unknown");
});

test("process ids: by priority, then by their number, whatever was asked for", () => {
  const forks = (name: string, count: number, priority = 0): Candidate => ({ pod: pod(name, undefined, { priority }), stats: { ...uses(name, 0), process_stats: { process_count: count } } });
  expect(order({ signal: "pid.available", starved: "pids" }, [forks("few", 2), forks("many", 900), forks("dear", 5000, 1), forks("none", 0)])).toEqual(["many", "few", "none", "dear"]);
});

test.each([
  ["one", "nodefs.available", ["containers", "images"], ["writer", "logger", "filler"]],
  ["one", "imagefs.available", ["containers", "images"], ["writer", "logger", "filler"]],
  ["images and containers apart", "nodefs.available", [], ["logger", "filler", "writer"]],
  ["images and containers apart", "imagefs.inodesFree", ["containers", "images"], ["writer", "filler", "logger"]],
  ["images apart", "nodefs.inodesFree", ["containers"], ["writer", "logger", "filler"]],
  ["images apart", "imagefs.available", ["images"], ["filler", "logger", "writer"]],
] as const)("disks laid out as %s, %s: what goes first, and which pods", (layout, signal, first, pods) => {
  const at = (name: string, { root = 0, logs = 0, volume = 0 }): Candidate => {
    const used = (amount: number) => ({ time: "", usedBytes: amount * MI, inodesUsed: amount });
    return { pod: pod(name, undefined, { volumes: [{ name: "v", emptyDir: {} }, { name: "m", emptyDir: { medium: "Memory" } }] }), stats: {
      podRef: { name, namespace: "d", uid: name }, startTime: "", containers: [{ name: "c", startTime: "", rootfs: used(root), logs: used(logs) }], volume: [{ name: "v", ...used(volume) }, { name: "m", ...used(1000) }] } };
  };
  expect(reclaims({ signal, pressure: "DiskPressure" }, layout)).toEqual(first);
  const starved = signal.endsWith("inodesFree") ? "inodes" : "ephemeral-storage";
  expect(order({ signal, starved }, [at("filler", { volume: 10 }), at("logger", { logs: 20 }), at("writer", { root: 30 })], layout)).toEqual(pods);
});

test("nothing is taken away for memory, and requests for the disk count", () => {
  expect(reclaims({ signal: "memory.available", pressure: "MemoryPressure" }, "one")).toEqual([]);
  const asking = pod("asking", undefined, { containers: [{ name: "c", resources: { requests: { "ephemeral-storage": "1Gi" } } }] });
  expect(order({ signal: "nodefs.available", starved: "ephemeral-storage" }, [{ pod: asking, stats: uses("asking", 0, 900) }, { pod: pod("plain", undefined), stats: uses("plain", 0, 1) }])).toEqual(["plain", "asking"]);
});

test("what the user is told", () => {
  const seen = new Map<Signal, Observation>([["memory.available", { available: 50 * MI, capacity: 1000 * MI }], ["nodefs.available", { available: 90, capacity: 1000 }], ["nodefs.inodesFree", { available: 0, capacity: 0 }]]);
  const short = shortages(seen);
  expect(short.map(({ signal, pressure }) => [signal, pressure])).toEqual([["memory.available", "MemoryPressure"], ["nodefs.available", "DiskPressure"]]);
  expect(evictionMessage(short[0]!, { pod: pod("greedy", "100Mi"), stats: uses("greedy", 300) })).toEqual({
    message: "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container c was using 300Mi, request is 100Mi, has larger consumption of memory. ",
    annotations: { offending_containers: "c", offending_containers_usage: "300Mi", starved_resource: "memory" },
  });
  const usesDisk = (logs: object): string => evictionMessage(short[1]!, { pod: pod("disk", undefined), stats: { ...uses("disk", 0), containers: [{ name: "c", rootfs: { usedBytes: 2 * MI }, ...logs }] } as unknown as PodStats }).message;
  expect([usesDisk({}), usesDisk({ logs: { usedBytes: MI } })]).toEqual(["", "Container c was using 3Mi, request is 0, has larger consumption of ephemeral-storage. "].map((more) => `The node was low on resource: ephemeral-storage. Threshold quantity: 100, available: 90. ${more}`));
  const whole = pod("whole", "100Mi", { resources: { requests: { memory: "200Mi" } } });
  expect(evictionMessage(short[0]!, { pod: whole, stats: uses("whole", 300) }).message).toContain("available: 50Mi. Pod whole was using 300Mi, request is 200Mi, has larger consumption of memory. Container c was");
});

test("a threshold is told as it was written, a part of the capacity in powers of two", () => {
  const seen = new Map<Signal, Observation>([["memory.available", { available: 50 * MI, capacity: 1000 * MI }], ["nodefs.inodesFree", { available: 100_000, capacity: 6_553_600 }]]);
  const told = (signal: Signal, value: Amount): string => evictionMessage(shortages(seen, [{ signal, value }])[0]!, { pod: pod("p", undefined), stats: undefined }).message;
  expect(told("memory.available", { bytes: 1e9, isDecimal: true })).toBe("The node was low on resource: memory. Threshold quantity: 1G, available: 50Mi. ");
  expect(told("nodefs.inodesFree", percent(5))).toBe("The node was low on resource: inodes. Threshold quantity: 320Ki, available: 100k. ");
  expect(told("nodefs.inodesFree", { bytes: 200_000, isDecimal: true })).toBe("The node was low on resource: inodes. Threshold quantity: 200k, available: 100k. ");
});

test("a pod that takes more disk than it may", () => {
  const excess = (of: Pod, stats: PodStats, layout: Parameters<typeof localStorageExcess>[1] = "one") => localStorageExcess({ pod: of, stats }, layout);
  const limited = pod("p", undefined, { volumes: [{ name: "v", emptyDir: { sizeLimit: "10Mi" } }] });
  expect(excess(limited, uses("p", 0, 9))).toBeUndefined();
  expect(excess(limited, uses("p", 0, 11))).toEqual({ signal: "emptydirfs.limit", message: `Usage of EmptyDir volume "v" exceeds the limit "10Mi". ` });
  expect(excess(pod("p", undefined, { volumes: [{ name: "v", emptyDir: { sizeLimit: "10Mi", medium: "Memory" } }] }), uses("p", 0, 11))).toBeUndefined();
  const limits = (amount: string) => ({ resources: { limits: { "ephemeral-storage": amount } } });
  const container = (one: string, other?: string) => pod("p", undefined, { containers: [{ name: "c", ...limits(one) }, { name: "d", ...(other === undefined ? {} : limits(other)) }] });
  expect(excess(container("5Mi", "5Mi"), uses("p", 0, 6))).toEqual({ signal: "ephemeralcontainerfs.limit", message: `Container c exceeded its local ephemeral storage limit "5Mi". ` });
  expect(excess(container("60Mi", "5Mi"), uses("p", 0, 60))).toBeUndefined();
  expect(excess(container("60Mi", "5Mi"), uses("p", 0, 66))).toEqual({ signal: "ephemeralpodfs.limit", message: "Pod ephemeral local storage usage exceeds the total limit of containers 65Mi. " });
  expect(excess(container("5Mi"), uses("p", 0, 6))).toEqual({ signal: "ephemeralpodfs.limit", message: "Pod ephemeral local storage usage exceeds the total limit of containers 5Mi. " }); // volumes and logs count, whoever wrote them
  expect(excess(container("5Mi", "5Mi"), uses("p", 0, 6), "images and containers apart")).toBeUndefined(); // what it writes is on the other disk
});

/** Looks every ten seconds, `seconds` long; `available` says how much memory there is of 1000 Mi, `free` how much of the disk of 1000 is, `unused` how much more is once it was taken back, `usage` what is known of the pods. Returns what became of the pods, the conditions at each look, and what was logged of the node. */
async function watched({ settings, available, free = () => 1000, unused = 0, usage = (name) => uses(name, 300), pods, seconds }: {
  readonly settings: Partial<EvictionSettings>; readonly available: (second: number) => number; readonly free?: (second: number) => number; readonly unused?: number; readonly usage?: (name: string, second: number) => PodStats; readonly pods: readonly Pod[]; readonly seconds: number;
}) {
  let nowMs = 0;
  let takenBack = 0;
  const ended: string[] = [];
  const conditions: string[] = [];
  const logged: string[] = [];
  const note = (message: string, fields?: Record<string, unknown>): void => void (fields && "pod" in fields ? undefined : logged.push(`${nowMs / 1000} s: ${message} ${JSON.stringify(fields)}`));
  const left = new Set(pods);
  const disk = () => ({ capacityBytes: 1000, availableBytes: free(nowMs / 1000) + takenBack, usedBytes: 0, inodes: 1000, inodesFree: 1000 });
  const guard = eviction({
    settings: { thresholds: [], transitionMs: 300_000, maxPodGraceSeconds: 0, ...settings }, machine: { os: "linux", memoryBytes: 1000 * MI }, log: { ...silentLog, info: note, warn: note, error: note }, metrics: metricsRegistry(), podsMemory: () => undefined, onPressure: () => undefined, reclaim: async () => void (takenBack = unused),
    stats: { memory: () => ({ availableBytes: available(nowMs / 1000) * MI, workingSetBytes: 0 }), nodeDisk: async () => disk(), imageDisk: async () => disk(), diskLayout: async () => "one", summary: async () => ({ node: { nodeName: "n", startTime: "" }, pods: pods.map(({ metadata }) => usage(metadata.name, nowMs / 1000)) }) },
    events: { event: () => undefined }, pods: () => [...left].map((one) => ({ granted: one, isReclaimed: true, fail: (_, grace) => {
      left.delete(one);
      ended.push(`${nowMs / 1000} s: ${one.metadata.name}, ${grace} s`);
    } })),
    clock: { ...systemClock, nowMs: () => nowMs, uptimeMs: () => nowMs, sleep: async (ms) => void (nowMs += ms), async *every() {
      for (; nowMs <= seconds * 1000; nowMs += 10_000) {
        yield;
        conditions.push([...guard.pressures()].join());
      }
    } },
  });
  await guard.run(new AbortController().signal, () => undefined);
  return { ended, conditions, logged };
}

const memoryBelow = (mi: number, more: Partial<EvictionSettings["thresholds"][number]> = {}) => ({ signal: "memory.available" as const, value: { bytes: mi * MI }, ...more });

test("a hard threshold ends pods at once, as many as it takes, whatever grace they have", async () => {
  const pods = [pod("a", undefined, { terminationGracePeriodSeconds: 60 }), pod("b", undefined, { terminationGracePeriodSeconds: 60, priority: 1 }), pod("c", "400Mi")];
  let short = 2;
  const { ended } = await watched({ settings: { thresholds: [memoryBelow(100)] }, available: (second) => (second >= 10 && short-- > 0 ? 50 : 500), pods, seconds: 30 });
  expect(ended).toEqual(["10 s: a, 1 s", "10 s: b, 1 s"]);
});

test("a soft threshold tells at once and ends pods after its grace, each within the longest grace that is allowed", async () => {
  const soft = { thresholds: [memoryBelow(100, { graceMs: 30_000 })], maxPodGraceSeconds: 20 };
  const short = await watched({ settings: soft, available: (second) => (second < 40 ? 50 : 500), pods: [pod("p", undefined, { terminationGracePeriodSeconds: 60 })], seconds: 40 });
  expect(short).toMatchObject({ ended: ["30 s: p, 20 s"], conditions: ["MemoryPressure", "MemoryPressure", "MemoryPressure", "MemoryPressure", "MemoryPressure"] });
  expect((await watched({ settings: soft, available: () => 50, pods: [pod("p", undefined, { terminationGracePeriodSeconds: 5 })], seconds: 30 })).ended).toEqual(["30 s: p, 5 s"]);
  expect((await watched({ settings: soft, available: () => 50, pods: [pod("p", undefined, { terminationGracePeriodSeconds: (2n ** 63n - 1n) as unknown as number })], seconds: 30 })).ended).toEqual(["30 s: p, 20 s"]);
  expect((await watched({ settings: soft, available: (second) => (second === 20 ? 500 : 50), pods: [pod("p", undefined)], seconds: 40 })).ended).toEqual([]); // it was over in between
});

test("a soft threshold without a grace ends pods as a hard one", async () => {
  const settings = { thresholds: [memoryBelow(100, { graceMs: 0 })], maxPodGraceSeconds: 20 };
  expect((await watched({ settings, available: (second) => (second < 10 ? 50 : 500), pods: [pod("p", undefined)], seconds: 10 })).ended).toEqual(["0 s: p, 1 s"]);
  expect(effectiveThresholds(settings.thresholds, "linux").thresholds.map(({ signal }) => signal)).toEqual(["memory.available", "allocatableMemory.available"]);
});

test("a condition stays for a while after its cause is gone", async () => {
  const { conditions } = await watched({ settings: { thresholds: [memoryBelow(100)], transitionMs: 20_000 }, available: (second) => (second === 10 ? 50 : 500), pods: [], seconds: 40 });
  expect(conditions).toEqual(["", "MemoryPressure", "MemoryPressure", "", ""]);
});

test("how much there is and how much there should be is logged once, and once that nobody is left to evict, until it is over", async () => {
  const { logged } = await watched({ settings: { thresholds: [memoryBelow(100)], transitionMs: 20_000 }, available: (second) => (second < 30 ? 50 : 500), pods: [], seconds: 60 });
  expect(logged).toEqual([
    `0 s: the node is short of a resource {"pressure":"MemoryPressure","signal":"memory.available","available":${50 * MI},"threshold":${100 * MI}}`,
    `0 s: the node is short of a resource and there is no pod to evict {"resource":"memory"}`,
    `40 s: the node has enough of a resource again {"pressure":"MemoryPressure"}`,
  ]);
});

test("with a minimum to reclaim pods end until that is free, too", async () => {
  const pods = ["a", "b", "c"].map((name) => pod(name, undefined));
  let looks = 0;
  const { ended } = await watched({ settings: { thresholds: [memoryBelow(100, { minReclaim: { bytes: 50 * MI } })] }, available: () => [90, 140, 160, 140][looks++] ?? 140, pods, seconds: 20 });
  expect(ended).toEqual(["0 s: a, 1 s", "0 s: b, 1 s"]); // 140 is too little after 90, enough after 160
});

test("only a threshold that counted has a minimum to reclaim: a soft one that was crossed for a moment is over when it is no longer crossed", async () => {
  const soft = memoryBelow(100, { graceMs: 30_000, minReclaim: { bytes: 50 * MI } });
  expect((await watched({ settings: { thresholds: [soft] }, available: (second) => (second === 0 ? 90 : 140), pods: [pod("a", undefined)], seconds: 60 })).ended).toEqual([]);
});

test("who fills the disk may not show yet: nobody ends for it before that can be known, unless it fills fast; and what was taken back is waited for before another one ends", async () => {
  const full = { settings: { thresholds: [{ signal: "nodefs.available" as const, value: { bytes: 100 } }] }, available: () => 500, pods: [pod("modest", undefined), pod("greedy", undefined)], seconds: 30 };
  const usage = (name: string, second: number): PodStats => uses(name, 0, name === "greedy" && second < 10 ? 0 : name === "greedy" ? 50 : 1);
  expect((await watched({ ...full, usage, free: (second) => (second < 15 ? 80 : 500) })).ended).toEqual(["10 s: greedy, 1 s"]);
  expect((await watched({ ...full, usage, free: (second) => (second < 5 ? 40 : 500) })).ended).toEqual(["0 s: modest, 1 s"]);
  expect((await watched({ ...full, usage, free: () => 80 })).ended).toEqual(["10 s: greedy, 1 s", "20 s: modest, 1 s"]);
});

test("what nobody uses is enough to take back when no threshold is crossed then, not only when the one that it was taken back for no longer is", async () => {
  const full = { available: () => 500, free: () => 40, seconds: 10 };
  const [nodefs, imagefs] = [{ signal: "nodefs.available" as const, value: { bytes: 100 } }, { signal: "imagefs.available" as const, value: { bytes: 150 } }];
  const ended = async (thresholds: EvictionSettings["thresholds"], unused: number, more: { available?: () => number } = {}) => (await watched({ ...full, settings: { thresholds }, unused, pods: [pod("a", undefined)], ...more })).ended;
  expect(await ended([nodefs, imagefs], 120)).toEqual([]);
  expect(await ended([nodefs, imagefs], 80)).toEqual(["0 s: a, 1 s"]); // too little for images
  expect(await ended([nodefs, { ...imagefs, value: { bytes: 30 }, minReclaim: { bytes: 200 } }], 120)).toEqual(["0 s: a, 1 s"]); // and the minimum counts of those, too, that were not crossed
  expect(await ended([nodefs, memoryBelow(100, { graceMs: 60_000 })], 120, { available: () => 50 })).toEqual(["0 s: a, 1 s"]); // as do those whose grace is not over
});

test("thresholds of containerfs are those of the file system it is on", async () => {
  expect(await watched({ settings: { thresholds: [{ signal: "containerfs.available", value: { bytes: 1e9 } }] }, available: () => 500, pods: [pod("p", undefined)], seconds: 10 })).toMatchObject({ ended: [], conditions: ["", ""] });
});
