/** What the runtime counts on Windows, in the shape it has on Linux: commit charge stands for usage, and there is no resident set apart from the working set. Pure. Source: kubernetes v1.36 pkg/kubelet/stats/cri_stats_provider_windows.go */
import type { ContainerStats, LinuxPodSandboxStats, MemoryUsage, NetworkInterfaceUsage, WindowsMemoryUsage, WindowsNetworkInterfaceUsage, WindowsPodSandboxStats } from "../../cri/gen/runtime.v1.ts";

export function fromWindows({ cpu, memory, network, process, containers = [] }: WindowsPodSandboxStats): LinuxPodSandboxStats {
  return {
    cpu, memory: memoryOf(memory), process,
    network: network && { timestamp: network.timestamp, default_interface: network.default_interface && interfaceOf(network.default_interface), interfaces: (network.interfaces ?? []).map(interfaceOf) },
    containers: containers.map(({ attributes, cpu: used, memory: held, writable_layer }): ContainerStats => ({ attributes, cpu: used, memory: memoryOf(held), writable_layer })),
  };
}

function memoryOf(usage: WindowsMemoryUsage | undefined): MemoryUsage | undefined {
  if (!usage) return undefined;
  const { timestamp, working_set_bytes, available_bytes, page_faults, commit_memory_bytes } = usage;
  return { timestamp, working_set_bytes, available_bytes, page_faults, usage_bytes: commit_memory_bytes };
}

/** Dropped packets are the errors it knows. */
function interfaceOf({ name, rx_bytes, rx_packets_dropped, tx_bytes, tx_packets_dropped }: WindowsNetworkInterfaceUsage): NetworkInterfaceUsage {
  return { name, rx_bytes, rx_errors: rx_packets_dropped, tx_bytes, tx_errors: tx_packets_dropped };
}
