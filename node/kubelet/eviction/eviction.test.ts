import { expect, test } from "vitest";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import type { PodStats } from "../kubelet-api.ts";
import { evictionMessage, localStorageExcess, type Observation, ranked, shortages, type Signal } from "./plan.ts";

const MI = 1024 * 1024;
const pod = (name: string, memory: string | undefined, more: Partial<Pod["spec"]> = {}): Pod => ({
  apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "d", uid: name, resourceVersion: "", creationTimestamp: "" },
  spec: { containers: [{ name: "c", resources: memory === undefined ? {} : { requests: { memory } } }], ...more },
});
const uses = (name: string, memoryMi: number, diskMi = 0): PodStats => ({
  podRef: { name, namespace: "d", uid: name }, startTime: "", containers: [{ name: "c", startTime: "", memory: { time: "", workingSetBytes: memoryMi * MI }, rootfs: { time: "", usedBytes: diskMi * MI } }],
  memory: { time: "", workingSetBytes: memoryMi * MI }, "ephemeral-storage": { time: "", usedBytes: diskMi * MI }, volume: [{ name: "v", time: "", usedBytes: diskMi * MI }],
});

test("who goes first when memory runs out", () => {
  const candidates = [
    { pod: pod("within", "200Mi"), stats: uses("within", 100) }, { pod: pod("greedy", "100Mi"), stats: uses("greedy", 300) }, { pod: pod("greedier", undefined), stats: uses("greedier", 400) },
    { pod: pod("important", undefined, { priority: 1000 }), stats: uses("important", 900) }, { pod: pod("critical", undefined, { priority: 2_000_000_000 }), stats: uses("critical", 999) },
  ];
  expect(ranked("memory", candidates).map((one) => one.pod.metadata.name)).toEqual(["greedier", "greedy", "important", "within"]);
});

test("what the user is told", () => {
  const seen = new Map<Signal, Observation>([["memory.available", { available: 50 * MI, capacity: 1000 * MI }], ["nodefs.available", { available: 90, capacity: 1000 }], ["nodefs.inodesFree", { available: 0, capacity: 0 }]]);
  const short = shortages(seen);
  expect(short.map(({ signal, pressure }) => [signal, pressure])).toEqual([["memory.available", "MemoryPressure"], ["nodefs.available", "DiskPressure"]]);
  expect(evictionMessage(short[0]!, { pod: pod("greedy", "100Mi"), stats: uses("greedy", 300) })).toBe(
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container c was using 300Mi, request is 100Mi, has larger consumption of memory. ",
  );
});

test("a pod that takes more disk than it may", () => {
  const limited = pod("p", undefined, { volumes: [{ name: "v", emptyDir: { sizeLimit: "10Mi" } }] });
  expect(localStorageExcess({ pod: limited, stats: uses("p", 0, 9) })).toBeUndefined();
  expect(localStorageExcess({ pod: limited, stats: uses("p", 0, 11) })).toBe(`Usage of EmptyDir volume "v" exceeds the limit "10Mi". `);
  const limits = (amount: string) => ({ resources: { limits: { "ephemeral-storage": amount } } });
  const container = (one: string, other?: string) => pod("p", undefined, { containers: [{ name: "c", ...limits(one) }, { name: "d", ...(other === undefined ? {} : limits(other)) }] });
  expect(localStorageExcess({ pod: container("5Mi", "5Mi"), stats: uses("p", 0, 6) })).toBe(`Container c exceeded its local ephemeral storage limit "5Mi". `);
  expect(localStorageExcess({ pod: container("60Mi", "5Mi"), stats: uses("p", 0, 60) })).toBeUndefined();
  expect(localStorageExcess({ pod: container("60Mi", "5Mi"), stats: uses("p", 0, 66) })).toBe("Pod ephemeral local storage usage exceeds the total limit of containers 65Mi. ");
  expect(localStorageExcess({ pod: container("5Mi"), stats: uses("p", 0, 6) })).toBe("Pod ephemeral local storage usage exceeds the total limit of containers 5Mi. "); // volumes and logs count, whoever wrote them
});
