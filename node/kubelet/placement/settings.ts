/** What the managers of processors, memory and topology are told. API: https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/ */
import type { TopologyPolicy } from "./hints.ts";
import type { Reservation } from "./memory-policy.ts";

export interface PlacementSettings {
  readonly cpuPolicy: "none" | "static";
  readonly cpuOptions: Readonly<Record<string, string>>;
  readonly cpuReconcileMs: number;
  /** By name; "": as many as are reserved, from the first core on. */
  readonly reservedCpus: string;
  readonly memoryPolicy: "None" | "Static";
  readonly reservedMemory: readonly Reservation[];
  readonly topologyPolicy: TopologyPolicy;
  readonly topologyScope: "container" | "pod";
  readonly topologyOptions: Readonly<Record<string, string>>;
  readonly gates: Readonly<Record<string, boolean>>;
}

export const NO_PLACEMENT: PlacementSettings = {
  cpuPolicy: "none", cpuOptions: {}, cpuReconcileMs: 10_000, reservedCpus: "", memoryPolicy: "None", reservedMemory: [], topologyPolicy: "none",
  topologyScope: "container", topologyOptions: {}, gates: {},
};
