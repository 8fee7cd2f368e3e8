import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Container, Pod } from "../../../core/api/gen/core.v1.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { runAll } from "../../../core/lifecycle/run-all.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import { eventually } from "../../../test/fake-api.ts";
import { seededRandom } from "../../../test/simulator/seeded.ts";
import type { CpuPlace, MachineTopology } from "../../os/cpu-topology.ts";
import { deviceHints } from "../devices/device-hints.ts";
import type { RuntimePod } from "../runtime-pod.ts";
import type { AllocationRefused } from "./allocation-refused.ts";
import { formatCpuSet, parseCpuSet } from "./cpu-set.ts";
import { maskOf } from "./hints.ts";
import { type Placement, placement } from "./placement.ts";
import type { Provider } from "./provider.ts";
import { NO_PLACEMENT, type PlacementSettings } from "./settings.ts";
import memoryAnswers from "./upstream-memory.txt" with { type: "text" };

let dataDir = "";
beforeEach(() => { dataDir = mkdtempSync(join(tmpdir(), "placement-")); });
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const MI = 1024 ** 2;

/** `nodes` NUMA nodes, each a socket of `cores` with two threads: thread 0 of all cores comes first. */
function machine(nodes: number, cores: number): MachineTopology {
  const cpus = Array.from({ length: nodes * cores * 2 }, (_, cpu): CpuPlace => {
    const core = cpu % (nodes * cores);
    const numaNode = Math.floor(core / cores);
    return { cpu, core, socket: numaNode, numaNode, uncoreCache: numaNode };
  });
  return { cpus, nodes: Array.from({ length: nodes }, (_, id) => ({ id, memoryBytes: 1024 * MI, distances: Array.from({ length: nodes }, (_unused, other) => (id === other ? 10 : 20)), hugepages: [] })) };
}

interface Options { readonly settings?: Partial<PlacementSettings>; readonly topology?: MachineTopology; readonly reservation?: Record<string, string>; readonly devices?: Provider; readonly boot?: string; readonly runtimes?: RuntimePod[]; readonly calls?: object[] }

function place({ settings = {}, topology = machine(2, 4), reservation = { cpu: "1", memory: "128Mi" }, devices, boot = "this boot", runtimes = [], calls = [] }: Options = {}) {
  const metrics = metricsRegistry();
  const made = placement({
    dataDir, boot, settings: { ...NO_PLACEMENT, cpuPolicy: "static", ...settings }, reservation, memoryBytes: 1024 * MI, topology, devices, runtimes: () => runtimes, metrics, clock: systemClock, log: silentLog,
    cri: { call: (async (_method: string, request: object) => void calls.push(request)) as never },
  });
  return { made, metrics };
}

function container(name: string, cpu: string, memory = "64Mi", more: Partial<Container> = {}): Container {
  return { name, resources: { requests: { cpu, memory }, limits: { cpu, memory } }, ...more };
}

function pod(uid: string, containers: Container[], initContainers: Container[] = []): Pod {
  return { apiVersion: "v1", kind: "Pod", metadata: { name: uid, namespace: "d", uid }, spec: { containers, initContainers } } as unknown as Pod;
}

function refusal(work: () => void): string {
  try {
    work();
    return "admitted";
  } catch (error) {
    return `${(error as AllocationRefused).reason}: ${(error as Error).message}`;
  }
}

const cpusOf = (made: Placement, uid: string, name: string): string => formatCpuSet(new Set(made.exclusiveCpus(uid, name)));

test("with upstream's gate off, whole processors have the quota of others, too", () => {
  const { made } = place({ settings: { gates: { DisableCPUQuotaWithExclusiveCPUs: false } } });
  made.admit(pod("g", [container("a", "2")]));
  expect([made.pinning("g", "a"), made.hasExclusiveCpus("g")]).toEqual([{ cpuset_cpus: "1,9" }, false]);
});

test("whole processors of Guaranteed pods are theirs; all others run on what is left", async () => {
  const { made, metrics } = place();
  made.admit(pod("g", [container("a", "2"), container("b", "1500m")]));
  made.admit(pod("burst", [{ name: "a", resources: { requests: { cpu: "2" } } }]));
  expect([cpusOf(made, "g", "a"), cpusOf(made, "g", "b"), cpusOf(made, "burst", "a")]).toEqual(["1,9", "", ""]);
  expect(made.pinning("g", "a")).toEqual({ cpuset_cpus: "1,9", cpu_quota: -1 });
  expect(made.pinning("g", "b")).toEqual({ cpuset_cpus: "0,2-8,10-15" });
  expect([made.hasExclusiveCpus("g"), made.hasExclusiveCpus("burst")]).toEqual([true, false]);
  expect(formatCpuSet(new Set(made.assignableCpus()))).toBe("1-15"); // 0 is reserved, and shared
  expect(made.resizeRefusal(pod("g", [container("a", "3")]), ["cpu"])).toBe('Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"');
  expect(refusal(() => made.admit(pod("big", [container("a", "14")])))).toBe("UnexpectedAdmissionError: Allocate failed due to not enough cpus available to satisfy request: requested=14, available=13, which is unexpected");
  const text = metrics.render();
  for (const line of ["kubelet_cpu_manager_pinning_requests_total 2", "kubelet_cpu_manager_pinning_errors_total 1", "kubelet_cpu_manager_shared_pool_size_millicores 13000", "kubelet_cpu_manager_exclusive_cpu_allocation_count 2", 'kubelet_cpu_manager_allocation_per_numa{numa_node="0"} 2', "kubelet_topology_manager_admission_requests_total 3", "kubelet_topology_manager_admission_errors_total 1", 'kubelet_container_aligned_compute_resources_count{boundary="uncore_cache",scope="container"} 1']) expect(text).toContain(line);

  await made.written();
  const { made: again } = place(); // after a restart
  expect(again.pinning("g", "a")).toEqual(made.pinning("g", "a"));
  again.retain(new Set(["burst"]));
  expect(again.pinning("burst", "a")).toEqual({ cpuset_cpus: "0-15" });
});

test("app containers run on the processors their init containers had; sidecars keep theirs", () => {
  const { made } = place();
  made.admit(pod("p", [container("app", "2")], [container("i", "4"), container("side", "1", "64Mi", { restartPolicy: "Always" }), container("j", "1")]));
  const sets = Object.fromEntries(["i", "side", "j", "app"].map((name) => [name, new Set(made.exclusiveCpus("p", name))]));
  expect(Object.values(sets).map(({ size }) => size)).toEqual([4, 1, 1, 2]);
  expect(sets["app"]!.isSubsetOf(sets["i"]!.union(sets["j"]!))).toBe(true);
  expect(sets["app"]!.isDisjointFrom(sets["side"]!)).toBe(true);
  made.release("p");
  expect(made.pinning("x", "y")).toEqual({ cpuset_cpus: "0-15" });
});

test("with full-pcpus-only, whole cores or nothing", () => {
  const { made } = place({ settings: { cpuOptions: { "full-pcpus-only": "true" } } });
  expect(refusal(() => made.admit(pod("odd", [container("a", "3")])))).toBe("SMTAlignmentError: SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2");
  expect(refusal(() => made.admit(pod("many", [container("a", "16")])))).toBe("SMTAlignmentError: SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 14, requested CPUs = 16, CPUs per core = 2");
});

test.each<[string, Options, string]>([
  ["nothing reserved", { reservation: {} }, "[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero"],
  ["an option nobody knows", { settings: { cpuOptions: { fast: "true" } } }, 'unknown CPU Manager Policy option: "fast"'],
  ["an option behind a gate", { settings: { cpuOptions: { "align-by-socket": "true" } } }, 'CPU Manager Policy Alpha-level Options not enabled, but option "align-by-socket" provided'],
  ["options at odds", { settings: { cpuOptions: { "distribute-cpus-across-numa": "true", "prefer-align-cpus-by-uncorecache": "true" } } }, "static policy options prefer-align-cpus-by-uncorecache and distribute-cpus-across-numa can not be used at the same time"],
  ["options without a policy", { settings: { cpuPolicy: "none", cpuOptions: { "full-pcpus-only": "true" } } }, "None policy: received unsupported options=map[full-pcpus-only:true]"],
  ["memory reserved otherwise", { settings: { memoryPolicy: "Static", reservedMemory: [{ numaNode: 0, limits: { memory: "1Gi" } }] } }, 'the total amount "1Gi" of type "memory" is not equal to the value "128Mi" determined by Node Allocatable feature'],
  ["memory of a node that is not there", { settings: { memoryPolicy: "Static", reservedMemory: [{ numaNode: 7, limits: { memory: "1Gi" } }] } }, "the reserved memory configuration references a NUMA node 7 that does not exist on this machine"],
  ["too many nodes", { settings: { topologyPolicy: "restricted" }, topology: machine(9, 1) }, "unsupported on machines with more than 8 NUMA Nodes"],
  ["a topology option", { settings: { topologyPolicy: "restricted", topologyOptions: { "max-allowable-numa-nodes": "4" } } }, 'the minimum value of "max-allowable-numa-nodes" should not be less than 8'],
])("refused at the start: %s", (_, options, message) => {
  expect(() => place(options)).toThrow(message);
});

test("a state of another machine or policy is not taken over while somebody relies on it", async () => {
  const { made: before } = place();
  before.admit(pod("g", [container("a", "2")]));
  await before.written();
  expect(() => place({ topology: machine(1, 4) })).toThrow(/could not restore state from checkpoint: current set of available CPUs "0-7" doesn't match with CPUs in state "0-15", please drain this node and delete the CPU manager checkpoint file ".*cpu_manager_state" before restarting Kubelet/);
  expect(() => place({ settings: { cpuPolicy: "none" } })).toThrow('configured policy "none" differs from state checkpoint policy "static"');
  const { made: after } = place();
  after.release("g");
  await after.written();
  expect(place({ settings: { cpuPolicy: "none" } }).made.pinning("g", "a")).toEqual({});
  expect(place().made.pinning("g", "a")).toEqual({ cpuset_cpus: "0-15" });
});

test("a machine that has other memory or processors after a boot, as with another kernel, begins anew: nothing that was given out runs", async () => {
  const pinned = { settings: { memoryPolicy: "Static", reservedMemory: [{ numaNode: 0, limits: { memory: "128Mi" } }] } } satisfies Options;
  const otherwise = machine(2, 4);
  const other: MachineTopology = { cpus: otherwise.cpus.slice(1), nodes: otherwise.nodes.map((node) => ({ ...node, memoryBytes: node.memoryBytes - 4096 })) };
  const settings = { ...pinned.settings, cpuPolicy: "none" } as const; // processors are as before
  const { made: empty } = place(pinned);
  await empty.written();
  expect(place({ settings, topology: other }).made.memoryOf("g", "a")).toEqual([]); // nothing is given out: nobody relies on it
  await place({ settings }).made.written();

  const { made: before } = place(pinned);
  before.admit(pod("g", [container("a", "2")]));
  await before.written();
  expect(() => place({ ...pinned, topology: { ...other, cpus: otherwise.cpus } })).toThrow("[memorymanager] the expected machine state is different from the real one");
  const { made: same } = place({ ...pinned, boot: "the next boot" });
  expect([cpusOf(same, "g", "a"), same.memoryOf("g", "a").length]).toEqual(["1,9", 1]); // what fits is kept
  await same.written();

  const { made: after } = place({ ...pinned, boot: "the one after it", topology: other });
  expect([cpusOf(after, "g", "a"), after.memoryOf("g", "a")]).toEqual(["", []]);
  after.admit(pod("g", [container("a", "2")]));
  expect([cpusOf(after, "g", "a"), after.memoryOf("g", "a").length]).toEqual(["1,9", 1]);
});

/** Two devices of "x/y", one on each node; each container with one of them. */
function dongles(): Provider & { readonly given: Map<string, number> } {
  const given = new Map<string, number>();
  const devices = [0, 1].map((node) => ({ id: String(node), healthy: true, numaNodes: [node] }));
  const wants = ({ resources }: Container): boolean => resources?.limits?.["x/y"] !== undefined;
  return {
    given,
    retain: () => undefined, release: (uid) => void given.delete(uid),
    begin: ({ metadata: { uid } }) => ({
      hints: (one) => (wants(one) ? new Map([["x/y", deviceHints({ count: 1, devices, had: new Set(), available: new Set(["0", "1"]).difference(new Set([...given.values()].map(String))), reusable: new Set(), numaNodes: [0, 1] })]]) : new Map()),
      podHints: () => new Map(),
      allocate: (one, { nodes }) => { if (wants(one)) given.set(uid, [0, 1].find((node) => nodes === undefined || nodes & maskOf([node]))!); },
      rollBack: () => void given.delete(uid),
    }),
  };
}

test("processors, memory and devices lie on one NUMA node, or the pod is refused and nothing is left behind", async () => {
  const devices = dongles();
  const settings: Partial<PlacementSettings> = { topologyPolicy: "single-numa-node", memoryPolicy: "Static", reservedMemory: [{ numaNode: 0, limits: { memory: "128Mi" } }] };
  const { made, metrics } = place({ settings, devices });
  const withDongle = (uid: string, cpu: string, memory: string): Pod => {
    const one = container("a", cpu, memory);
    return pod(uid, [{ ...one, resources: { requests: one.resources!.requests!, limits: { ...one.resources!.limits, "x/y": "1" } } }]);
  };
  made.admit(withDongle("first", "6", "512Mi"));
  made.admit(withDongle("second", "6", "900Mi"));
  expect([...devices.given]).toEqual([["first", 0], ["second", 1]]);
  expect([made.pinning("first", "a"), made.pinning("second", "a")]).toEqual([{ cpuset_cpus: "1-3,9-11", cpuset_mems: "0", cpu_quota: -1 }, { cpuset_cpus: "4-6,12-14", cpuset_mems: "1", cpu_quota: -1 }]);
  await made.written();
  const before = [made.pinning("x", "y"), readFileSync(join(dataDir, "memory_manager_state"), "utf8")];
  expect(refusal(() => made.admit(pod("spread", [container("a", "1"), container("b", "1", "300Mi"), container("c", "2", "200Mi")])))).toBe("TopologyAffinityError: Resources cannot be allocated with Topology locality");
  await made.written();
  expect([made.pinning("x", "y"), readFileSync(join(dataDir, "memory_manager_state"), "utf8")]).toEqual(before);
  expect(made.memoryOf("first", "a")).toEqual([{ numaAffinity: [0], type: "memory", size: 512 * MI }]);
  expect(made.allocatableMemory()).toEqual([{ numaAffinity: [0], type: "memory", size: 896 * MI }, { numaAffinity: [1], type: "memory", size: 1024 * MI }]);
  expect(metrics.render()).toContain('kubelet_container_aligned_compute_resources_failure_count{boundary="numa_node",scope="container"} 1');
});

test("containers wait for what was given out to be on disk, and where nothing is given out for nothing", async () => {
  const inTheWay = join(dataDir, "cpu_manager_state.tmp");
  mkdirSync(inTheWay);
  await place({ settings: { cpuPolicy: "none" } }).made.written();
  const { made } = place();
  made.admit(pod("g", [container("a", "2")]));
  await expect(made.written()).rejects.toThrow();
  rmSync(inTheWay, { recursive: true });
  await made.written();
  expect(JSON.parse(readFileSync(join(dataDir, "cpu_manager_state"), "utf8")).entries).toHaveProperty("g");
});

test("a pod as a whole on one node, when that is the scope", () => {
  const { made } = place({ settings: { topologyPolicy: "restricted", topologyScope: "pod" } });
  made.admit(pod("one", [container("a", "4"), container("b", "3")]));
  const nodes = [...made.exclusiveCpus("one", "a"), ...made.exclusiveCpus("one", "b")].map((cpu) => Math.floor((cpu % 8) / 4));
  expect(new Set(nodes).size).toBe(1);
  expect(refusal(() => made.admit(pod("two", [container("a", "8")])))).toMatch(/^(admitted|TopologyAffinityError)/);
});

test("a part of a byte is no memory that can be set aside", () => {
  const { made } = place({ settings: { memoryPolicy: "Static", reservedMemory: [{ numaNode: 0, limits: { memory: "128Mi" } }] } });
  expect(refusal(() => made.admit(pod("u", [container("a", "1", "64000000500m")])))).toBe("UnexpectedAdmissionError: Allocate failed due to [memorymanager] failed to represent quantity as int64, which is unexpected");
  expect(refusal(() => made.admit(pod("v", [container("a", "1", "64000000000m")])))).toBe("admitted");
});

test("memory is placed as upstream places it", async () => {
  let made: Placement | undefined;
  const wrong: string[] = [];
  for (const line of memoryAnswers.trim().split("\n").filter((text) => !text.startsWith("#"))) {
    const head = /^machine (\S+) hugepages (\S+) policy (\S+) scope (\S+)$/.exec(line);
    if (head) {
      const nodes = head[1]!.split(",").map((mebibytes, id) => ({ id, memoryBytes: Number(mebibytes) * MI, distances: [], hugepages: head[2] === "true" ? [{ pageBytes: 2 * MI, bytes: 256 * MI }] : [] }));
      await made?.written();
      rmSync(join(dataDir, "memory_manager_state"), { force: true });
      made = place({ settings: { cpuPolicy: "none", memoryPolicy: "Static", reservedMemory: [{ numaNode: 0, limits: { memory: "256Mi" } }], topologyPolicy: head[3] as "none", topologyScope: head[4] as "pod" }, topology: { cpus: [], nodes }, reservation: { memory: "256Mi" } }).made;
      continue;
    }
    const [, verb, uid, words, answer] = /^(admit|remove) (u\d+)([^:]*): (.*)$/.exec(line)!;
    const got = verb === "remove" ? (made!.release(uid!), await memoryNow(made!)) : await afterAdmission(made!, uid!, words!.trim());
    if (got !== answer) wrong.push(`${line}\n  got ${got}`);
  }
  expect(wrong).toEqual([]);
});

async function afterAdmission(made: Placement, uid: string, words: string): Promise<string> {
  const [init, apps]: [Container[], Container[]] = [[], []];
  for (const word of words.split(" ")) {
    const [, sidecar, name = "", memory = "", huge] = /^(s?)([ic]\d)=(\d+)(?:\+(\d+))?$/.exec(word)!;
    const list = { cpu: "100m", memory: `${memory}Mi`, ...(huge ? { "hugepages-2Mi": `${huge}Mi` } : {}) };
    (name.startsWith("i") ? init : apps).push({ name, resources: { requests: list, limits: list }, ...(sidecar ? { restartPolicy: "Always" } : {}) });
  }
  const answer = refusal(() => made.admit(pod(uid, apps, init)));
  return answer === "admitted" ? await memoryNow(made) : `! ${answer}`;
}

async function memoryNow(made: Placement): Promise<string> {
  await made.written();
  const { entries = {}, machineState } = JSON.parse(readFileSync(join(dataDir, "memory_manager_state"), "utf8")) as { entries?: Record<string, Record<string, { type: string; size: number; numaAffinity: number[] }[]>>; machineState: Record<string, { numberOfAssignments: number; memoryMap: Record<string, { free: number }> }> };
  const blocks = Object.entries(entries).flatMap(([uid, containers]) => Object.entries(containers).flatMap(([name, list]) => list.filter(({ size }) => size > 0).map(({ type, size, numaAffinity }) => `${uid}/${name}:${type}=${size / MI}@${numaAffinity.join(",")}`)));
  return [...blocks.toSorted(), ...Object.values(machineState).map(({ numberOfAssignments, memoryMap }) => `[${numberOfAssignments} free ${memoryMap["memory"]!.free / MI}]`)].join(" ");
}

test("whatever comes and goes, no processor has two owners and none is lost", async () => {
  for (let seed = 1; seed <= 10; seed++) {
    const random = seededRandom(seed);
    const upTo = (n: number): number => Math.floor(random.next() * n);
    rmSync(join(dataDir, "cpu_manager_state"), { force: true });
    const options = [{}, { "full-pcpus-only": "true" }, { "strict-cpu-reservation": "true" }, { "distribute-cpus-across-numa": "true" }, { "prefer-align-cpus-by-uncorecache": "true" }][upTo(5)]!;
    const topology = machine(1 + upTo(4), 1 + upTo(6));
    const setup: Options = { topology, settings: { cpuOptions: options as Record<string, string>, topologyPolicy: (["none", "best-effort", "restricted", "single-numa-node"] as const)[upTo(4)]! } };
    let { made } = place(setup);
    const all = new Set(topology.cpus.map(({ cpu }) => cpu));
    const live = new Map<string, Pod>();
    for (let step = 0; step < 40; step++) {
      const uid = `u${upTo(8)}`;
      if (live.has(uid)) {
        made.release(uid);
        live.delete(uid);
      } else {
        const one = pod(uid, Array.from({ length: 1 + upTo(3) }, (_, i) => container(`c${i}`, ["500m", "1", "2", "3", "4"][upTo(5)]!)), Array.from({ length: upTo(3) }, (_, i) => container(`i${i}`, ["500m", "1", "2", "3"][upTo(4)]!, "64Mi", upTo(3) === 0 ? { restartPolicy: "Always" } : {})));
        if (refusal(() => made.admit(one)) === "admitted") live.set(uid, one);
      }
      await made.written();
      if (upTo(6) === 0) made = place(setup).made; // restarted
      const shared = parseCpuSet(made.pinning("nobody", "x").cpuset_cpus ?? "");
      const owners = new Map<number, string>();
      for (const [owner, { spec }] of live) {
        for (const { name, resources } of [...(spec.initContainers ?? []), ...spec.containers]) {
          const mine = made.exclusiveCpus(owner, name);
          expect(mine.length).toBe(Number(resources!.requests!["cpu"]!.replace("500m", "0")));
          for (const cpu of mine) {
            expect(owners.get(cpu) ?? owner).toBe(owner);
            owners.set(cpu, owner);
          }
        }
        const together = spec.containers.flatMap(({ name }) => made.exclusiveCpus(owner, name));
        expect(new Set(together).size).toBe(together.length);
      }
      const reserved = all.difference(new Set(made.assignableCpus()));
      expect(shared.isDisjointFrom(new Set(owners.keys()))).toBe(true);
      expect([...reserved].some((cpu) => owners.has(cpu))).toBe(false);
      expect(shared.size + owners.size).toBe("strict-cpu-reservation" in options ? all.size - reserved.size : all.size);
    }
  }
});

test("what runs is moved when the shared processors change", async () => {
  const calls: object[] = [];
  const running = { uid: "old", name: "old", namespace: "d", sandboxes: [], containers: [{ id: "c1", name: "a", state: "running" }, { id: "c0", name: "a", state: "exited" }] } as unknown as RuntimePod;
  const { made } = place({ runtimes: [running], calls, settings: { cpuReconcileMs: 60_000 } });
  const stop = new AbortController();
  const ended = runAll(made.parts, stop.signal);
  await eventually(() => calls.length, (count) => count === 1);
  made.admit(pod("g", [container("a", "1")]));
  await eventually(() => calls.length, (count) => count === 2);
  expect(calls).toEqual(["0-15", "0-7,9-15"].map((cpuset_cpus) => ({ container_id: "c1", linux: { cpuset_cpus } })));
  stop.abort();
  await ended;
});

test("state files that were cut short are put aside; whoever is still here gets processors and memory anew", async () => {
  const settings = { memoryPolicy: "Static", reservedMemory: [{ numaNode: 0, limits: { memory: "128Mi" } }] } as const;
  const { made: before } = place({ settings });
  before.admit(pod("g", [container("a", "2")]));
  await before.written();
  for (const name of ["cpu_manager_state", "memory_manager_state"]) writeFileSync(join(dataDir, name), readFileSync(join(dataDir, name), "utf8").slice(0, 40));
  const { made } = place({ settings });
  expect([existsSync(join(dataDir, "cpu_manager_state.corrupt")), existsSync(join(dataDir, "memory_manager_state.corrupt"))]).toEqual([true, true]);
  made.admit(pod("g", [container("a", "2")]));
  const memory = await memoryNow(made);
  expect([JSON.parse(readFileSync(join(dataDir, "cpu_manager_state"), "utf8")).entries, memory]).toEqual([{ g: { a: expect.any(String) } }, expect.stringContaining("g/a:memory")]);
});
