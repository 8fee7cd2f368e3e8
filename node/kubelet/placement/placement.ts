/**
 * Which processors, which memory and which devices a pod's containers get, and that they lie well together: the CPU manager, the memory manager and the topology
 * manager of the kubelet, and device plugins where they have a say.
 *
 *   admit(pod) ─▶ for each container (or once for the pod): hints of devices, processors, memory ─▶ merge (hints.ts) ─▶ refuse, or allocate in that order
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/topologymanager/{topology_manager,scope*}.go, pkg/kubelet/cm/container_manager_linux.go
 */
import type { Pod, ResourceList } from "../../../core/api/gen/core.v1.ts";
import { parseQuantity } from "../../../core/api/meta/quantity.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";
import type { Cri } from "../../cri/client.ts";
import type { LinuxContainerResources } from "../../cri/gen/runtime.v1.ts";
import { type MachineTopology, machineTopology } from "../../os/cpu-topology.ts";
import { qosClass } from "../resources/pod-resources.ts";
import type { RuntimePod } from "../runtime-pod.ts";
import { AllocationRefused } from "./allocation-refused.ts";
import { cpuMachine } from "./cpu-machine.ts";
import { type CpuManager, cpuManager } from "./cpu-manager.ts";
import { type CpuPolicy, cpuPolicy } from "./cpu-policy.ts";
import { formatCpuSet, parseCpuSet } from "./cpu-set.ts";
import { ANYWHERE, type Hint, type Hints, mergeHints, type MergeOptions } from "./hints.ts";
import { type MemoryManager, memoryManager } from "./memory-manager.ts";
import { type Block, checkReserved, freshMachine, type NodeState } from "./memory-policy.ts";
import { placementMetrics } from "./placement-metrics.ts";
import { cpuOptions, topologyOptions } from "./policy-options.ts";
import type { PodAdmission, Provider } from "./provider.ts";
import type { PlacementSettings } from "./settings.ts";

export interface Placement {
  readonly parts: readonly Runnable[];
  /** Sets aside what the pod's containers need; what they have already they keep. Throws AllocationRefused, and then nothing is changed. */
  admit(pod: Pod): void;
  release(podUid: string): void;
  /** Forgets all pods but these: they went while we were not there. */
  retain(podUids: ReadonlySet<string>): void;
  /** What was set aside is on disk, and will not be given away twice: containers may start. */
  written(): Promise<void>;
  /** What the runtime is told about the container, beyond its requests and limits. */
  pinning(podUid: string, container: string): Pick<LinuxContainerResources, "cpuset_cpus" | "cpuset_mems" | "cpu_quota">;
  /** Then its cgroup has no quota: the processors are its limit. */
  hasExclusiveCpus(podUid: string): boolean;
  starts(pod: Pod, container: string): void;
  /** Why a pod may not have other resources while it runs. */
  resizeRefusal(wish: Pod, changed: readonly ("cpu" | "memory")[]): string | undefined;
  exclusiveCpus(podUid: string, container: string): readonly number[];
  assignableCpus(): readonly number[];
  memoryOf(podUid: string, container: string): readonly Block[];
  allocatableMemory(): readonly Block[];
  /** The machine's, for device plugins' hints. */
  readonly numaNodes: readonly number[];
}

interface Deps {
  readonly dataDir: string;
  /** Which life of the machine this is (boot-id.ts). */
  readonly boot: string;
  readonly settings: PlacementSettings;
  /** What is kept from pods. */
  readonly reservation: ResourceList;
  readonly memoryBytes: number;
  /** Default: this machine's. */
  readonly topology?: MachineTopology | undefined;
  readonly devices: Provider | undefined;
  readonly cri: Pick<Cri, "call">;
  readonly runtimes: () => Iterable<RuntimePod>;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly log: Log;
}

/** Throws an Error for the user when the settings cannot be had on this machine. */
export function placement({ dataDir, boot, settings, reservation, memoryBytes, topology, devices, cri, runtimes, metrics, clock, log }: Deps): Placement {
  const isPlain = settings.cpuPolicy === "none" && settings.memoryPolicy === "None" && settings.topologyPolicy === "none";
  const machine = topology ?? (isPlain ? { cpus: [], nodes: [] } : machineTopology({ memoryBytes }));
  const counts = placementMetrics(metrics, clock.uptimeMs);
  const merge = mergeOptions(settings, machine);
  const cpus: CpuManager = cpuManager({ dataDir, boot, policy: cpuPolicyOf(settings, machine, reservation), reconcileMs: settings.cpuReconcileMs, cri, runtimes, metrics: counts, clock, log });
  const memory: MemoryManager = memoryManager({ dataDir, boot, machine: memoryOf(settings, machine, reservation), metrics: counts, log });
  const providers: readonly Provider[] = [...(devices ? [devices] : []), cpus, memory];

  function place(pod: Pod, admissions: readonly PodAdmission[]): void {
    const { topologyScope: scope } = settings;
    const agree = (hints: readonly Hints[]): Hint => {
      const { hint, admitted } = mergeHints(merge!, hints);
      if (merge!.policy === "single-numa-node" && !admitted) counts.aligned(scope, false);
      if (!admitted) throw new AllocationRefused(new Error("Resources cannot be allocated with Topology locality"), "TopologyAffinityError");
      return hint;
    };
    const ofPod = merge && scope === "pod" ? agree(admissions.map((one) => one.podHints())) : undefined;
    for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
      const hint = merge ? (ofPod ?? agree(admissions.map((one) => one.hints(container)))) : ANYWHERE;
      for (const one of admissions) one.allocate(container, hint);
      if (merge?.policy === "single-numa-node" && scope === "container") counts.aligned("container", true);
    }
    if (merge?.policy === "single-numa-node" && scope === "pod") counts.aligned("pod", true);
  }

  const unlimited = settings.gates["DisableCPUQuotaWithExclusiveCPUs"] ?? true;
  return {
    parts: cpus.parts,
    numaNodes: machine.nodes.map(({ id }) => id),
    admit: (pod) => counts.admission(() => {
      const admissions = providers.map((provider) => provider.begin(pod));
      try {
        place(pod, admissions);
      } catch (error) {
        for (const one of admissions) one.rollBack();
        throw error instanceof AllocationRefused ? error : new AllocationRefused(error as Error);
      }
    }),
    release(podUid) { for (const provider of providers) provider.release(podUid); },
    retain(podUids) { for (const provider of providers) provider.retain(podUids); },
    async written() { await Promise.all([cpus.written(), memory.written()]); },
    pinning(podUid, container) {
      const [mine, nodes] = [cpus.affinity(podUid, container), memory.nodesOf(podUid, container)];
      return { ...(mine.size > 0 ? { cpuset_cpus: formatCpuSet(mine) } : {}), ...(nodes.length > 0 ? { cpuset_mems: nodes.join(",") } : {}), ...(unlimited && cpus.exclusive(podUid, container).size > 0 ? { cpu_quota: -1 } : {}) };
    },
    hasExclusiveCpus: (podUid) => unlimited && cpus.hasExclusive(podUid),
    starts: memory.starts,
    resizeRefusal(wish, changed) {
      if (qosClass(wish) !== "Guaranteed") return undefined;
      if (settings.cpuPolicy === "static" && changed.includes("cpu")) return 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"';
      return settings.memoryPolicy === "Static" && changed.includes("memory") ? 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"' : undefined;
    },
    exclusiveCpus: (podUid, container) => [...cpus.exclusive(podUid, container)].toSorted((a, b) => a - b),
    assignableCpus: cpus.assignable,
    memoryOf: memory.blocksOf,
    allocatableMemory: memory.allocatable,
  };
}

function mergeOptions({ topologyPolicy, topologyOptions: given }: PlacementSettings, { nodes }: MachineTopology): MergeOptions | undefined {
  if (topologyPolicy === "none") return undefined;
  const { preferClosest, nodesMax } = topologyOptions(given);
  if (nodes.length > nodesMax) throw new Error(`unsupported on machines with more than ${nodesMax} NUMA Nodes`);
  if (preferClosest && nodes.some(({ distances }) => distances.length === 0)) throw new Error("cannot discover NUMA topology: error getting NUMA distances from cadvisor");
  return { policy: topologyPolicy, nodes: nodes.map(({ id }) => id), distances: preferClosest ? new Map(nodes.map(({ id, distances }) => [id, distancesById(nodes, distances)])) : undefined };
}

/** The kernel lists them by position among the nodes there are. */
function distancesById(nodes: MachineTopology["nodes"], distances: readonly number[]): number[] {
  const byId: number[] = [];
  for (const [position, { id }] of nodes.entries()) byId[id] = distances[position] ?? 0;
  return byId;
}

function cpuPolicyOf(settings: PlacementSettings, { cpus }: MachineTopology, reservation: ResourceList): CpuPolicy | undefined {
  if (settings.cpuPolicy === "none") {
    if (Object.keys(settings.cpuOptions).length > 0) throw new Error(`new none policy error: None policy: received unsupported options=map[${Object.entries(settings.cpuOptions).map(([name, value]) => `${name}:${value}`).join(" ")}]`);
    return undefined;
  }
  if (cpus.length === 0) throw new Error("could not detect number of cpus");
  const milli = parseQuantity(reservation["cpu"] ?? "0").milliNumber();
  if (milli === 0) throw new Error("[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero");
  const machine = cpuMachine(cpus);
  const options = cpuOptions(settings.cpuOptions, (name) => settings.gates[name] ?? name === "CPUManagerPolicyBetaOptions");
  if (options.alignBySocket && settings.topologyPolicy === "single-numa-node") throw new Error("new static policy error: Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option");
  if (options.alignBySocket && machine.sockets > machine.numaNodes.length) throw new Error("new static policy error: Align by socket is not compatible with hardware where number of sockets are more than number of NUMA");
  return cpuPolicy(machine, options, { reserved: parseCpuSet(settings.reservedCpus), count: Math.ceil(milli / 1000) });
}

function memoryOf({ memoryPolicy, reservedMemory }: PlacementSettings, { nodes }: MachineTopology, reservation: ResourceList): Record<string, NodeState> | undefined {
  if (memoryPolicy === "None") return undefined;
  checkReserved(nodes, reservedMemory, reservation);
  return freshMachine(nodes, reservedMemory);
}

/** Nobody is placed: where the operating system has no such managers. */
export function unplaced(): Placement {
  const none = (): readonly never[] => [];
  return {
    parts: [], numaNodes: [], admit: () => undefined, release: () => undefined, retain: () => undefined, written: async () => undefined, pinning: () => ({}), hasExclusiveCpus: () => false, starts: () => undefined, resizeRefusal: () => undefined,
    exclusiveCpus: none, assignableCpus: none, memoryOf: none, allocatableMemory: none,
  };
}

