import { expect, test } from "vitest";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import type { CgroupLimits, Cgroups } from "../../os/cgroup.ts";
import type { CpuQuota } from "./linux-resources.ts";
import { podCgroupLimits, podCgroups } from "./pod-cgroups.ts";

const pod = (uid: string, resources: object): Pod => ({ apiVersion: "v1", kind: "Pod", metadata: { name: uid, uid }, spec: { containers: [{ name: "c", resources }] } } as unknown as Pod);

test("each class of service has its place, each pod its limits, written when they change", () => {
  const written: [path: string, limits: CgroupLimits][] = [];
  const cgroups: Pick<Cgroups, "ensure"> = { ensure: (path, limits) => void written.push([path, limits]) };
  const pods = podCgroups(cgroups as Cgroups, { cgroupRoot: "/edge", pidsMax: 100 });
  for (const one of [pod("g", { requests: { cpu: "250m", memory: "32Mi" }, limits: { cpu: "250m", memory: "32Mi" } }), pod("b", { requests: { cpu: "100m" }, limits: { cpu: "500m" } }), pod("e", {}), pod("e", {})]) pods.ensure(one);
  expect(written).toEqual([
    ["/edge/kubepods/podg", { cpuShares: 256, cpuQuotaUs: 25_000, cpuPeriodUs: 100_000, memoryBytes: 32 << 20, pids: 100 }],
    ["/edge/kubepods/burstable/podb", { cpuShares: 102, cpuQuotaUs: 50_000, cpuPeriodUs: 100_000, pids: 100 }],
    ["/edge/kubepods/besteffort/pode", { cpuShares: 2, pids: 100 }],
  ]);
});

test("where the kernel refuses the limit of all pods together, they have their groups all the same", () => {
  const made: string[] = [];
  const cgroups = { exists: () => false, ensure(path: string, { memoryBytes }: CgroupLimits) { if (memoryBytes !== undefined) throw new Error("EBUSY"); made.push(path); } };
  expect(() => podCgroups(cgroups as unknown as Cgroups, { cgroupRoot: "/" }).setUp({ memoryBytes: 1, milliCpu: 1, pids: undefined })).toThrow("EBUSY");
  expect(made).toEqual(["/kubepods/besteffort", "/kubepods/burstable"]);
});

test("a pod is limited as a whole only where whatever runs of it at a time is: an init container without a limit has as much as it takes", () => {
  const limited = { resources: { limits: { memory: "32Mi", cpu: "1" } } };
  const memory = (spec: object): number | undefined => podCgroupLimits({ metadata: { name: "p" }, spec: { containers: [{ name: "c", ...limited }], ...spec } } as unknown as Pod).memoryBytes;
  const init = (...containers: object[]) => ({ initContainers: containers.map((one, i) => ({ name: `i${i}`, ...one })) });
  const sidecar = { restartPolicy: "Always" };
  expect([memory({}), memory({ containers: [{ name: "c", ...limited }, { name: "d" }] }), memory({ containers: [{ name: "c", ...limited }, { name: "d", resources: { limits: { memory: "0" } } }] })]).toEqual([32 << 20, undefined, undefined]);
  expect([memory(init({})), memory(init({ resources: { limits: { memory: "64Mi" } } })), memory(init(sidecar)), memory(init({ ...sidecar, ...limited }, {})), memory(init({}, { ...sidecar, ...limited }))]).toEqual([undefined, 64 << 20, undefined, 64 << 20, undefined]);
  expect(memory({ ...init({}), resources: { limits: { memory: "128Mi" } } })).toBe(128 << 20);
});

test("all pods together have what is not reserved, processes too", () => {
  const written = new Map<string, CgroupLimits>();
  const pods = podCgroups({ exists: (path: string) => written.has(path), ensure: (path: string, limits: CgroupLimits) => void written.set(path, limits) } as unknown as Cgroups, { cgroupRoot: "/" });
  pods.setUp({ memoryBytes: 1 << 30, milliCpu: 2000, pids: 30_000 });
  expect(written.get("/kubepods")).toEqual({ cpuShares: 2048, memoryBytes: 1 << 30, pids: 30_000 });
  pods.setUp({ memoryBytes: 1 << 30, milliCpu: 2000, pids: undefined });
  expect(written.get("/kubepods")).toEqual({ cpuShares: 2048, memoryBytes: 1 << 30 });
});

test("burstable pods that run when the kubelet starts anew keep their share of the processors until it is known who they are", () => {
  const shares = new Map<string, number>();
  const cgroups = { exists: (path: string) => shares.has(path), ensure: (path: string, { cpuShares }: CgroupLimits) => void (cpuShares !== undefined && shares.set(path, cpuShares)) } as unknown as Cgroups;
  const started = (): ReturnType<typeof podCgroups> => { const pods = podCgroups(cgroups, { cgroupRoot: "/" }); pods.setUp({ memoryBytes: 1 << 30, milliCpu: 2000, pids: undefined }); return pods; };
  const first = started();
  expect(shares.get("/kubepods/burstable")).toBe(2);
  first.balance([pod("b", { requests: { cpu: "500m" } })]);
  const next = started();
  expect(shares.get("/kubepods/burstable")).toBe(512);
  next.balance([]);
  expect(shares.get("/kubepods/burstable")).toBe(2);
});

test("a pod has the huge pages it asks for, and none of another size", () => {
  const pods = podCgroups({ ensure: () => undefined } as unknown as Cgroups, { cgroupRoot: "/", hugepageSizes: ["2MB", "1GB"] });
  const limits = (resources: object): unknown => { pods.ensure(pod("p", resources)); return pods.limits("p")?.hugepages; };
  expect(limits({ requests: { cpu: "1", "hugepages-2Mi": "4Mi" }, limits: { cpu: "1", "hugepages-2Mi": "4Mi" } })).toEqual({ "2MB": 4 << 20, "1GB": 0 });
  expect(limits({})).toEqual({ "2MB": 0, "1GB": 0 });
});

test("limits of processors are kept over another time, or not at all", () => {
  const limits = (quota: CpuQuota): unknown[] => {
    const pods = podCgroups({ ensure: () => undefined } as unknown as Cgroups, { cgroupRoot: "/", quota });
    pods.ensure(pod("g", { requests: { cpu: "250m", memory: "32Mi" }, limits: { cpu: "250m", memory: "32Mi" } }));
    return [pods.limits("g")?.cpuQuotaUs, pods.limits("g")?.cpuPeriodUs];
  };
  expect([limits({ on: true, periodUs: 20_000 }), limits({ on: false, periodUs: 100_000 })]).toEqual([[5_000, 20_000], [-1, 100_000]]);
});

test("while containers still have more, the pod's limits only widen", () => {
  const written: CgroupLimits[] = [];
  const pods = podCgroups({ ensure: (_: string, limits: CgroupLimits) => void written.push(limits) } as unknown as Cgroups, { cgroupRoot: "/" });
  const sized = (cpu: string, memory: string): Pod => pod("p", { requests: { cpu: "100m" }, limits: { cpu, memory } });
  pods.ensure(sized("500m", "64Mi"));
  pods.ensure(sized("200m", "128Mi"), { widen: true });
  pods.ensure(sized("200m", "128Mi"));
  expect(written.map(({ cpuQuotaUs, memoryBytes }) => [cpuQuotaUs, (memoryBytes ?? 0) >> 20])).toEqual([[50_000, 64], [50_000, 128], [20_000, 128]]);
  expect(pods.limits("p")?.memoryBytes).toBe(128 << 20);
});

test.each([
  [2, "memory.max", "268435456\n", 256],
  [2, "memory.max", "max\n", 0], // stays as it is
  [2, "memory.max", "33554432\n", 64],
  [2, "memory.max", undefined, 64], // the machine was down
  [1, "memory.limit_in_bytes", "268435456\n", 256],
  [1, "memory.limit_in_bytes", "9223372036854771712\n", 0],
] as const)("while containers still have more, a kubelet that begins anew takes no memory from their pod: with the %s. cgroups %s has %o, and is set to %s MiB", (version, file, text, mebibytes) => {
  const written: number[] = [];
  const cgroups = { version, ensure: (_: string, { memoryBytes = 0 }: CgroupLimits) => void written.push(memoryBytes >> 20), text: (path: string, _: string, name: string) => (path === "/kubepods/podp" && name === file ? text : undefined) };
  const pods = podCgroups(cgroups as unknown as Cgroups, { cgroupRoot: "/" });
  const guaranteed = { cpu: "1", memory: "64Mi" };
  for (const widen of [true, false]) pods.ensure(pod("p", { requests: guaranteed, limits: guaranteed }), { widen });
  expect(written).toEqual(mebibytes === 64 ? [64] : [mebibytes, 64]);
});
