/** Which of the features that are switched on there is work for: whoever waits for objects of an API that is not served waits for ever. */
import type { Registry } from "../../core/registry/registry.ts";

/** They speak of groups of pods. */
const OF_GROUPS: readonly string[] = ["GangScheduling", "GenericWorkload", "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption", "WorkloadWithJob"];

export function workingGates(gates: ReadonlySet<string>, registry: Pick<Registry, "find">): ReadonlySet<string> {
  if (registry.find("scheduling.k8s.io", "v1alpha2", "podgroups") && registry.find("scheduling.k8s.io", "v1alpha2", "workloads")) return gates;
  return new Set([...gates].filter((gate) => !OF_GROUPS.includes(gate)));
}
