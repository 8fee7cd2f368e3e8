/** What the managers count, by upstream's names. Source: kubernetes v1.36 pkg/kubelet/metrics/metrics.go */
import { doubling, type Metrics } from "../../../core/observe/metrics.ts";
import { type CpuMachine, cpusIn, unitsOf } from "./cpu-machine.ts";
import type { CpuState } from "./cpu-policy.ts";
import { type CpuSet, NO_CPUS } from "./cpu-set.ts";

export interface PlacementMetrics {
  /** Runs an allocation of processors; counts it, and its failure. */
  cpuPinning(fullCores: boolean, work: () => void): void;
  cpusGiven(machine: CpuMachine, cpus: CpuSet): void;
  cpusAre(now: { readonly machine: CpuMachine; readonly state: CpuState; readonly reserved: CpuSet }): void;
  memoryPinning(work: () => void): void;
  /** Runs a pod's admission. `guaranteed`: whoever is admitted lies on one NUMA node. */
  admission(work: () => void): void;
  aligned(scope: "container" | "pod", done: boolean): void;
}

const ADMISSION_MS_BUCKETS = doubling(0.05, 15);

export function placementMetrics(metrics: Metrics, uptimeMs: () => number): PlacementMetrics {
  const cpuRequests = metrics.counter("kubelet_cpu_manager_pinning_requests_total", "[ALPHA] The number of cpu core allocations which required pinning.");
  const cpuErrors = metrics.counter("kubelet_cpu_manager_pinning_errors_total", "[ALPHA] The number of cpu core allocations which required pinning failed.");
  const shared = metrics.gauge("kubelet_cpu_manager_shared_pool_size_millicores", "[ALPHA] The size of the shared CPU pool for non-guaranteed QoS pods, in millicores.");
  const exclusive = metrics.gauge("kubelet_cpu_manager_exclusive_cpu_allocation_count", "[ALPHA] The total number of CPUs exclusively allocated to containers running on this node");
  const perNuma = metrics.gauge("kubelet_cpu_manager_allocation_per_numa", "[ALPHA] Number of CPUs allocated per NUMA node");
  const memoryRequests = metrics.counter("kubelet_memory_manager_pinning_requests_total", "[ALPHA] The number of memory pages allocations which required pinning.");
  const memoryErrors = metrics.counter("kubelet_memory_manager_pinning_errors_total", "[ALPHA] The number of memory pages allocations which required pinning that failed.");
  const requests = metrics.counter("kubelet_topology_manager_admission_requests_total", "[ALPHA] The number of admission requests where resources have to be aligned.");
  const errors = metrics.counter("kubelet_topology_manager_admission_errors_total", "[ALPHA] The number of admission request failures where resources could not be aligned.");
  const duration = metrics.histogram("kubelet_topology_manager_admission_duration_ms", "[ALPHA] Duration in milliseconds to serve a pod admission request.", ADMISSION_MS_BUCKETS);
  const aligned = metrics.counter("kubelet_container_aligned_compute_resources_count", "[ALPHA] Cumulative number of aligned compute resources allocated to containers by alignment type.");
  const unaligned = metrics.counter("kubelet_container_aligned_compute_resources_failure_count", "[ALPHA] Cumulative number of failures to allocate aligned compute resources to containers by alignment type.");
  for (const counter of [cpuRequests, cpuErrors, memoryRequests, memoryErrors, requests, errors]) counter.inc({}, 0);
  const cores = { scope: "container", boundary: "physical_cpu" };

  function counted(work: () => void, failed: () => void): void {
    try {
      work();
    } catch (error) {
      failed();
      throw error;
    }
  }

  return {
    cpuPinning(fullCores, work) {
      cpuRequests.inc();
      counted(work, () => {
        cpuErrors.inc();
        if (fullCores) unaligned.inc(cores);
      });
      if (fullCores) aligned.inc(cores);
    },
    cpusGiven(machine, cpus) {
      if (unitsOf(machine, cpus, "uncoreCache").length <= 1) aligned.inc({ scope: "container", boundary: "uncore_cache" });
    },
    cpusAre({ machine, state, reserved }) {
      const given = [...state.owned.values()].flatMap((containers) => [...containers.values()]).reduce((sum, cpus) => sum.union(cpus), NO_CPUS);
      shared.set(state.shared.difference(reserved).size * 1000);
      exclusive.set(given.size);
      for (const node of machine.numaNodes) perNuma.set(cpusIn(machine, given, "numaNode", [node]).size, { numa_node: String(node) });
    },
    memoryPinning(work) {
      memoryRequests.inc();
      counted(work, () => memoryErrors.inc());
    },
    admission(work) {
      requests.inc();
      const startedMs = uptimeMs();
      try {
        counted(work, () => errors.inc());
      } finally {
        duration.observe(uptimeMs() - startedMs);
      }
    },
    aligned: (scope, done) => (done ? aligned : unaligned).inc({ scope, boundary: "numa_node" }),
  };
}
