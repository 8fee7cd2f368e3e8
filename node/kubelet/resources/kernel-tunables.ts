/**
 * How the kernel is to behave on a node: memory may be promised beyond what there is, for pods are held to their limits, and a machine that nobody stands beside starts anew after the kernel has failed.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/container_manager_linux.go setupKernelTunables, staging/src/k8s.io/component-helpers/node/util/sysctl
 */
import { aggregate } from "../../../core/api/meta/aggregate.ts";
import type { SysctlKeeper } from "../../os/sysctl.ts";

const WANTED: readonly (readonly [name: string, value: number])[] = [["vm.overcommit_memory", 1], ["vm.panic_on_oom", 0], ["kernel.panic", 10], ["kernel.panic_on_oops", 1]];
/** Keys of containers are root's. More is as good. */
const AT_LEAST: readonly (readonly [name: string, value: number])[] = [["kernel.keys.root_maxkeys", 1_000_000], ["kernel.keys.root_maxbytes", 25_000_000]];

/** What cannot be changed stays as it is. `protects`: nothing is changed; throws an Error for the user if it is otherwise. */
export function kernelTunables(sysctl: SysctlKeeper, { protects }: { readonly protects: boolean }): void {
  if (protects) return check(sysctl);
  for (const [name, value] of WANTED) sysctl.set(name, String(value));
  for (const [name, value] of AT_LEAST) sysctl.raise(name, value);
}

function check(sysctl: SysctlKeeper): void {
  const wrong = [...WANTED, ...AT_LEAST].flatMap(([name, value]) => {
    const now = Number(sysctl.get(name) ?? value);
    return now === value || (now > value && AT_LEAST.some(([one]) => one === name)) ? [] : [`invalid kernel flag: ${name.replaceAll(".", "/")}, expected value: ${value}, actual value: ${now}`];
  });
  if (wrong.length > 0) throw new Error(aggregate(wrong));
}
