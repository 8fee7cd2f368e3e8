/**
 * Control groups of the system's and of the node's own processes, which somebody else makes, limited to what is reserved for them where the configuration asks for that.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/node_container_manager_linux.go (enforceNodeAllocatableCgroups, enforceExistingCgroup)
 */
import { posix } from "node:path";
import type { ResourceList } from "../../../core/api/gen/core.v1.ts";
import { parseQuantity } from "../../../core/api/meta/quantity.ts";
import type { CgroupLimits, Cgroups } from "../../os/cgroup.ts";
import { cpuShares } from "./linux-resources.ts";

export interface ReservedGroup {
  readonly whose: "System" | "Kube";
  readonly path: string;
  readonly reserved: ResourceList;
  /** Processors are only shared by it; memory and processes are not limited. */
  readonly onlyCpu: boolean;
}

/** Those that `enforced` names. `given`: of a KubeletConfiguration that is valid. */
export function reservedGroups(enforced: readonly string[], given: Readonly<Record<string, unknown>>): ReservedGroup[] {
  return (["System", "Kube"] as const).flatMap((whose): ReservedGroup[] => {
    const name = whose.toLowerCase();
    const [whole, onlyCpu] = [`${name}-reserved`, `${name}-reserved-compressible`].map((item) => enforced.includes(item));
    return whole || onlyCpu ? [{ whose, path: given[`${name}ReservedCgroup`] as string, reserved: (given[`${name}Reserved`] ?? {}) as ResourceList, onlyCpu: !whole }] : [];
  });
}

/** Throws an Error for the user when the group is not there, or the kernel refuses. */
export function limitReserved(cgroups: Pick<Cgroups, "exists" | "ensure">, { whose, path, reserved, onlyCpu }: ReservedGroup): void {
  try {
    const group = posix.join("/", path);
    if (!cgroups.exists(group)) throw new Error(`cgroup [${JSON.stringify(path)}] has some missing paths`);
    cgroups.ensure(group, limitsOf(reserved, onlyCpu));
  } catch (cause) {
    throw new Error(`Failed to enforce ${whose} Reserved ${onlyCpu ? "Compressible " : ""}Cgroup Limits on ${JSON.stringify(path)}: ${(cause as Error).message}`, { cause });
  }
}

function limitsOf(reserved: ResourceList, onlyCpu: boolean): CgroupLimits {
  const of = (name: string) => (reserved[name] === undefined ? undefined : parseQuantity(reserved[name]));
  const [cpu, memory, pids] = [of("cpu"), onlyCpu ? undefined : of("memory"), onlyCpu ? undefined : of("pid")];
  return { ...(cpu ? { cpuShares: cpuShares(cpu.milliNumber()) } : {}), ...(memory ? { memoryBytes: memory.number() } : {}), ...(pids ? { pids: pids.number() } : {}) };
}
