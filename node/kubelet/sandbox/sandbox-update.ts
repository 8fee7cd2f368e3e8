/**
 * Tells the runtime what a pod may use as a whole from now on: a sandbox that is a machine of its own has to be given it, and may refuse.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kuberuntime/{kuberuntime_manager,kuberuntime_container,helpers_linux}.go (updatePodSandboxResources)
 */
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { parseQuantity } from "../../../core/api/meta/quantity.ts";
import { type Cri, CriError } from "../../cri/client.ts";
import type { LinuxContainerResources } from "../../cri/gen/runtime.v1.ts";
import type { CgroupLimits } from "../../os/cgroup.ts";
import { CPU_QUOTA, cpuQuota, cpuShares, type SandboxMachine, sandboxResources } from "../resources/linux-resources.ts";

export interface SandboxUpdate { readonly machine?: SandboxMachine | undefined; readonly sandboxId: string; readonly pod: Pod; readonly before: CgroupLimits; readonly limits: CgroupLimits }

/** Throws an Error for the user when the runtime refuses; one that knows of no such thing does not. */
export async function updateSandbox(cri: Pick<Cri, "call">, { machine, sandboxId, pod, before, limits }: SandboxUpdate, signal: AbortSignal): Promise<void> {
  try {
    await cri.call("RuntimeService/UpdatePodSandboxResources", { pod_sandbox_id: sandboxId, overhead: sandboxResources(pod, machine).overhead, resources: withoutOverhead(pod, limits) }, { signal });
  } catch (cause) {
    if (isUnknown(cause)) return;
    const resource = before.memoryBytes === limits.memoryBytes ? "cpu" : "memory";
    throw new Error(`failed to notify runtime for UpdatePodSandboxResources (resource=${resource}); resize rejected: updatePodSandboxResources failed for sanboxID "${sandboxId}": ${(cause as Error).message}`, { cause });
  }
}

/** containerd 2.2 says it in a way of its own. */
function isUnknown(error: unknown): boolean {
  return error instanceof CriError && (error.code === "Unimplemented" || (error.code === "Unknown" && error.detail.includes("not implemented")));
}

function withoutOverhead({ spec: { overhead = {} } }: Pod, { cpuShares: shares, cpuQuotaUs, cpuPeriodUs = CPU_QUOTA.periodUs, memoryBytes }: CgroupLimits): LinuxContainerResources {
  const [cpu, memory] = [parseQuantity(overhead["cpu"] ?? "0").milliNumber(), parseQuantity(overhead["memory"] ?? "0").number()];
  return {
    ...(shares === undefined ? {} : { cpu_shares: cpu === 0 ? shares : cpuShares(Math.ceil((shares * 1000) / 1024) - cpu) }),
    ...(cpuQuotaUs === undefined ? {} : { cpu_quota: cpuQuotaUs < 0 ? cpuQuotaUs : cpuQuotaUs - cpuQuota(cpu, cpuPeriodUs), cpu_period: cpuPeriodUs }),
    ...(memoryBytes === undefined ? {} : { memory_limit_in_bytes: memoryBytes - memory }),
  };
}
