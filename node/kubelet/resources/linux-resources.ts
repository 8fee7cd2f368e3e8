/**
 * Requests and limits as the kernel's knobs.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/helpers_linux.go, pkg/kubelet/kuberuntime/kuberuntime_container_linux.go, pkg/kubelet/qos/policy.go
 */
import type { Container, EphemeralContainer, Pod, ResourceList } from "../../../core/api/gen/core.v1.ts";
import { parseQuantity } from "../../../core/api/meta/quantity.ts";
import type { OperatingSystem } from "../../os/machine.ts";
import type { HugepageLimit, LinuxContainerResources } from "../../cri/gen/runtime.v1.ts";
import { isCriticalPod, isSidecar } from "../pod-spec.ts";
import { aggregateRequests, podLimits, podRequests, qosClass, type Quantities } from "./pod-resources.ts";

/** The kernel's least. */
export const SHARES_MIN = 2;
const SHARES_MAX = 262_144;
const SHARES_PER_CPU = 1024;
/** How limits of processors are kept: over which time (microseconds), or not at all. */
export interface CpuQuota { readonly on: boolean; readonly periodUs: number }

export const CPU_QUOTA: CpuQuota = { on: true, periodUs: 100_000 };
const QUOTA_US_MIN = 1_000;

export function cpuShares(milliCpu: number): number {
  return milliCpu <= 0 ? SHARES_MIN : Math.min(SHARES_MAX, Math.max(SHARES_MIN, Math.floor((milliCpu * SHARES_PER_CPU) / 1000)));
}

/** Microseconds of each period; 0: no limit. */
export function cpuQuota(milliCpu: number, periodUs: number = CPU_QUOTA.periodUs): number {
  return milliCpu <= 0 ? 0 : Math.max(QUOTA_US_MIN, Math.floor((milliCpu * periodUs) / 1000));
}


export interface Machine extends LinuxMachine {
  readonly os: OperatingSystem;
  readonly cpus: number;
  readonly throttlePaths?: readonly string[] | undefined;
  readonly appArmor?: boolean | undefined;
}

interface LinuxMachine {
  readonly memoryBytes: number;
  /** As the runtime names them: 2MB, 1GB. */
  readonly hugepageSizes: readonly string[];
  /** The kernel counts swap per cgroup: then containers are kept out of it. */
  readonly countsSwap: boolean;
  /** Where each group has a limit of its own for swap (cgroup v2): what pods may use of it together. 0: nothing. */
  readonly podSwapBytes?: number | undefined;
  /** A container that takes too much memory ends as a whole. */
  readonly killsWholeContainer?: boolean | undefined;
  /** Absent: as CPU_QUOTA. */
  readonly cpuQuota?: CpuQuota | undefined;
}

export function containerResources(pod: Pod, container: Container | EphemeralContainer, machine: LinuxMachine): LinuxContainerResources {
  const { requests = {}, limits = {} } = container.resources ?? {};
  const podLevel = pod.spec.resources?.limits;
  const cpuLimit = milli(limits["cpu"]) || milli(podLevel?.["cpu"]); // a limit of nothing is none
  const { on, periodUs } = machine.cpuQuota ?? CPU_QUOTA;
  const memory = whole(limits["memory"]) || whole(podLevel?.["memory"]);
  const unified = { ...(machine.killsWholeContainer ? { "memory.oom.group": "1" } : {}), ...(machine.podSwapBytes === undefined ? {} : { "memory.swap.max": String(swapLimit(pod, container, machine)) }) };
  return {
    cpu_shares: cpuShares(requests["cpu"] === undefined && cpuLimit > 0 ? cpuLimit : milli(requests["cpu"])), ...(on ? { cpu_quota: cpuQuota(cpuLimit, periodUs), cpu_period: periodUs } : {}),
    ...(memory > 0 ? { memory_limit_in_bytes: memory, ...(machine.countsSwap ? { memory_swap_limit_in_bytes: memory + swapLimit(pod, container, machine) } : {}) } : {}),
    ...(Object.keys(unified).length === 0 ? {} : { unified }), oom_score_adj: oomScoreAdj(pod, container, machine.memoryBytes), hugepage_limits: hugepages({ ...podLevel, ...limits }, machine),
  };
}

/**
 * What a container may swap: its part of the swap is its request's part of the memory. Only of Burstable pods, and not where the limit is the request: who asks for
 * just so much is promised memory.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_container_linux.go (ConfigureLimitedSwap, calcSwapForBurstablePods)
 */
export function swapLimit(pod: Pod, container: Container | EphemeralContainer, { podSwapBytes = 0, memoryBytes }: LinuxMachine): number {
  const request = whole(container.resources?.requests?.["memory"]);
  const limit = whole(container.resources?.limits?.["memory"]);
  if (podSwapBytes === 0 || qosClass(pod) !== "Burstable" || isCriticalPod(pod) || request === 0 || request === limit) return 0;
  return Math.floor((request / memoryBytes) * podSwapBytes);
}

/** `hasOwnCpus`: some container of the pod has processors of its own, and may use all of their time. */
export interface SandboxMachine extends Pick<LinuxMachine, "cpuQuota" | "killsWholeContainer"> { readonly hasOwnCpus?: boolean | undefined }

/** Of the whole pod, overhead apart: what a VM-based runtime sizes its VM by. */
export function sandboxResources(pod: Pod, machine: SandboxMachine = {}): { readonly resources: LinuxContainerResources; readonly overhead: LinuxContainerResources } {
  const { overhead, ...spec } = pod.spec;
  const plain = { ...pod, spec };
  const { on } = machine.cpuQuota ?? CPU_QUOTA;
  const resources = { ...sized(podRequests(plain), podLimits(plain), machine), ...(on && machine.hasOwnCpus ? { cpu_quota: -1 } : {}) };
  return { resources, overhead: overhead ? sized(quantities(overhead), quantities(overhead), machine) : {} };
}

function sized(requests: Quantities, limits: Quantities, { cpuQuota: { on, periodUs } = CPU_QUOTA, killsWholeContainer }: SandboxMachine): LinuxContainerResources {
  const cpuLimit = limits.get("cpu")?.milliNumber() ?? 0;
  const memory = limits.get("memory")?.number() ?? 0;
  return {
    cpu_shares: cpuShares(requests.has("cpu") ? requests.get("cpu")!.milliNumber() : cpuLimit), ...(on ? { cpu_quota: cpuQuota(cpuLimit, periodUs), cpu_period: periodUs } : {}),
    ...(memory > 0 ? { memory_limit_in_bytes: memory } : {}), ...(killsWholeContainer ? { unified: { "memory.oom.group": "1" } } : {}),
  };
}

function quantities(list: ResourceList): Quantities {
  return new Map(Object.entries(list).map(([name, text]) => [name, parseQuantity(text)]));
}

const NODE_CRITICAL = "system-node-critical";
const OOM_GUARANTEED = -997;
const OOM_BEST_EFFORT = 1000;

export function oomScoreAdj(pod: Pod, container: Container | EphemeralContainer, memoryBytes: number): number {
  if (isCriticalPod(pod) && pod.spec.priorityClassName === NODE_CRITICAL) return OOM_GUARANTEED; // by its name: nobody has looked up the priority of one from a file
  const qos = qosClass(pod);
  if (qos === "Guaranteed") return OOM_GUARANTEED;
  if (qos === "BestEffort") return OOM_BEST_EFFORT;
  const more = unassignedMemory(pod);
  const score = (request: number): number => 1000 - Math.floor((1000 * (request + more)) / memoryBytes);
  let adjust = score(whole(container.resources?.requests?.["memory"]));
  if (isSidecar(container)) adjust = Math.min(adjust, score(Math.min(...pod.spec.containers.map((app) => whole(app.resources?.requests?.["memory"])))));
  return Math.max(1000 + OOM_GUARANTEED, Math.min(OOM_BEST_EFFORT - 1, adjust));
}

/** What the pod as a whole asks for and none of its containers does, shared out among them. Source: kubernetes v1.36 pkg/kubelet/qos/helpers.go remainingPodMemReqPerContainer */
function unassignedMemory(pod: Pod): number {
  const { resources, containers, initContainers = [] } = pod.spec;
  const asked = whole(resources?.requests?.["memory"]);
  return asked === 0 ? 0 : Math.trunc((asked - (aggregateRequests(pod).get("memory")?.number() ?? 0)) / (containers.length + initContainers.length));
}

/** Of a whole pod, by size: none of a size it does not ask for. Runtimes may leave containers unlimited: containerd does. */
export function podHugepages(pod: Pod, hugepageSizes: readonly string[]): Readonly<Record<string, number>> {
  const requests = Object.fromEntries([...podRequests(pod)].map(([name, quantity]) => [name, String(quantity.number())]));
  return Object.fromEntries(hugepages(requests, { hugepageSizes }).map(({ page_size = "", limit = 0 }) => [page_size, limit]));
}

function hugepages(limits: ResourceList, { hugepageSizes }: Pick<LinuxMachine, "hugepageSizes">): HugepageLimit[] {
  return hugepageSizes.map((size) => {
    const wanted = Object.entries(limits).find(([name]) => name.startsWith("hugepages-") && bytesOfSize(name.slice("hugepages-".length)) === bytesOfSize(size));
    return { page_size: size, limit: wanted ? whole(wanted[1]) : 0 };
  });
}

/** Both "2Mi" and the runtime's "2MB" mean 2 × 2^20. */
function bytesOfSize(size: string): number {
  return whole(size.replace(/([KMG])B?i?$/, "$1i"));
}

function milli(quantity: string | undefined): number {
  return quantity === undefined ? 0 : parseQuantity(quantity).milliNumber();
}

function whole(quantity: string | undefined): number {
  return quantity === undefined ? 0 : parseQuantity(quantity).number();
}
