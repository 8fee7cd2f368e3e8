/**
 * The static policy of the CPU manager: a container of a Guaranteed pod that asks for whole processors gets them for itself; all others share what is left. Pure.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/cpumanager/policy_static.go
 */
import type { Container, Pod } from "../../../core/api/gen/core.v1.ts";
import { parseQuantity } from "../../../core/api/meta/quantity.ts";
import { isSidecar } from "../pod-spec.ts";
import { qosClass } from "../resources/pod-resources.ts";
import { AllocationRefused } from "./allocation-refused.ts";
import { type CpuMachine, cpusIn, unitsOf } from "./cpu-machine.ts";
import { type CpuSet, formatCpuSet, NO_CPUS, sameCpus } from "./cpu-set.ts";
import { type Hint, isIn, masks, type NodeMask, nodesIn } from "./hints.ts";
import { takeCpus, type TakeOptions } from "./take-cpus.ts";

export interface CpuOptions {
  readonly fullPcpusOnly: boolean;
  readonly distributeAcrossNuma: boolean;
  readonly distributeAcrossCores: boolean;
  readonly alignBySocket: boolean;
  readonly strictReservation: boolean;
  readonly byUncoreCache: boolean;
}

export interface CpuPolicy {
  readonly machine: CpuMachine;
  readonly options: CpuOptions;
  /** Never given to one container alone. */
  readonly reserved: CpuSet;
  /** With all threads of their cores. */
  readonly reservedCores: CpuSet;
}

/** Who has which processors. `shared`: those of everyone else; empty: nothing was given out yet. */
export interface CpuState {
  readonly shared: CpuSet;
  /** By pod, then by container. */
  readonly owned: ReadonlyMap<string, ReadonlyMap<string, CpuSet>>;
}

/** `reserved`: by name; else the first `count`. Throws an Error for the user. */
export function cpuPolicy(machine: CpuMachine, options: CpuOptions, { reserved, count }: { readonly reserved: CpuSet; readonly count: number }): CpuPolicy {
  const chosen = reserved.size > 0 ? reserved : count <= machine.all.size ? takeCpus(machine, machine.all, count, takeOptions(options)) : NO_CPUS;
  if (chosen.size !== count) throw new Error(`[cpumanager] unable to reserve the required amount of CPUs (size of ${formatCpuSet(chosen)} did not equal ${count})`);
  for (const cpu of chosen) if (!machine.all.has(cpu)) throw new Error(`[cpumanager] unable to build the reserved physical CPUs from the reserved set: unknown CPU ID: ${cpu}`);
  return { machine, options, reserved: chosen, reservedCores: cpusIn(machine, machine.all, "core", unitsOf(machine, chosen, "core")) };
}

export function takeOptions({ fullPcpusOnly, distributeAcrossNuma, distributeAcrossCores, byUncoreCache }: CpuOptions): TakeOptions {
  return { fullCores: fullPcpusOnly, acrossNuma: distributeAcrossNuma, acrossCores: distributeAcrossCores, byUncoreCache };
}

/** A state as it was found, made usable. Throws an Error for the user when it does not fit this machine. */
export function validState({ machine, options, reserved }: CpuPolicy, state: CpuState): CpuState {
  if (state.shared.size === 0 && state.owned.size === 0) return { shared: options.strictReservation ? machine.all.difference(reserved) : machine.all, owned: new Map() };
  if (state.shared.size === 0 && !options.strictReservation) throw new Error("default cpuset cannot be empty"); // strictly reserved, all that may be given out can be
  const kept = reserved.intersection(state.shared);
  if (options.strictReservation && kept.size > 0) throw new Error(`some of strictly reserved cpus: "${formatCpuSet(kept)}" are present in defaultCpuSet: "${formatCpuSet(state.shared)}"`);
  if (!options.strictReservation && !sameCpus(kept, reserved)) throw new Error(`not all reserved cpus: "${formatCpuSet(reserved)}" are present in defaultCpuSet: "${formatCpuSet(state.shared)}"`);
  let known = state.shared;
  for (const [pod, containers] of state.owned) {
    for (const [container, cpus] of containers) {
      if (!cpus.isDisjointFrom(state.shared)) throw new Error(`pod: ${pod}, container: ${container} cpuset: "${formatCpuSet(cpus)}" overlaps with default cpuset "${formatCpuSet(state.shared)}"`);
      known = known.union(cpus);
    }
  }
  const available = options.strictReservation ? machine.all.difference(reserved) : machine.all;
  if (!sameCpus(known, available)) throw new Error(`current set of available CPUs "${formatCpuSet(available)}" doesn't match with CPUs in state "${formatCpuSet(known)}"`);
  return state;
}

/** Processors the container is to have alone; 0: it shares. */
export function wantedCpus(pod: Pod, { resources }: Pick<Container, "resources">): number {
  const request = resources?.requests?.["cpu"];
  if (request === undefined || pod.spec.resources || qosClass(pod) !== "Guaranteed") return 0;
  const milli = parseQuantity(request).milliNumber();
  return milli % 1000 === 0 ? milli / 1000 : 0;
}

/** At the pod's busiest time. */
export function wantedByPod(pod: Pod): number {
  let [init, sidecars] = [0, 0];
  for (const container of pod.spec.initContainers ?? []) {
    const wanted = wantedCpus(pod, container);
    if (isSidecar(container)) sidecars += wanted;
    else init = Math.max(init, sidecars + wanted);
  }
  return Math.max(init, sidecars + pod.spec.containers.reduce((sum, container) => sum + wantedCpus(pod, container), 0));
}

/** On which nodes `count` processors could be had. `reusable`: the pod has them already, and a hint must have all of them in it. */
export function cpuHints({ machine, options }: CpuPolicy, { available, reusable, count }: { readonly available: CpuSet; readonly reusable: CpuSet; readonly count: number }): Hint[] {
  const on = (mask: NodeMask, cpus: CpuSet): number => [...cpus].filter((cpu) => isIn(mask, machine.places.get(cpu)?.numaNode ?? -1)).length;
  let least = machine.numaNodes.length;
  const found: NodeMask[] = [];
  for (const mask of masks(machine.numaNodes)) {
    const size = nodesIn(mask).length;
    if (size < least && on(mask, machine.all) >= count) least = size;
    if (on(mask, reusable) === reusable.size && reusable.size + on(mask, available) >= count) found.push(mask);
  }
  const nodesPerSocket = Math.floor(machine.numaNodes.length / machine.sockets);
  const onSockets = (mask: NodeMask): boolean => options.alignBySocket && nodesPerSocket > 0 && unitsOf(machine, cpusIn(machine, machine.all, "numaNode", nodesIn(mask)), "socket").length === Math.ceil(least / nodesPerSocket);
  return found.map((nodes) => ({ nodes, preferred: nodesIn(nodes).length === least || onSockets(nodes) }));
}

/** The processors for one container, on these nodes as far as they go. Throws AllocationRefused, or an Error that says why not. */
export function chooseCpus(policy: CpuPolicy, state: CpuState, { count, nodes, reusable }: { readonly count: number; readonly nodes: NodeMask | undefined; readonly reusable: CpuSet }): CpuSet {
  const { machine, options, reserved } = policy;
  const allocatable = state.shared.difference(reserved).union(reusable);
  let chosen = NO_CPUS;
  if (nodes !== undefined) {
    const aligned = options.alignBySocket ? cpusIn(machine, allocatable, "socket", unitsOf(machine, cpusIn(machine, machine.all, "numaNode", nodesIn(nodes)), "socket")) : cpusIn(machine, allocatable, "numaNode", nodesIn(nodes));
    chosen = takeCpus(machine, aligned, Math.min(count, aligned.size), takeOptions(options));
  }
  return chosen.union(takeCpus(machine, allocatable.difference(chosen), count - chosen.size, takeOptions(options)));
}

/** With full-pcpus-only, containers get whole cores or nothing. Throws AllocationRefused. */
export function checkCores({ machine: { cpusPerCore }, options, reservedCores }: CpuPolicy, { shared }: CpuState, count: number): void {
  if (!options.fullPcpusOnly) return;
  if (count % cpusPerCore !== 0) throw new AllocationRefused(new Error(`SMT Alignment Error: requested ${count} cpus not multiple cpus per core = ${cpusPerCore}`), "SMTAlignmentError");
  const left = shared.difference(reservedCores).size;
  if (count > left) throw new AllocationRefused(new Error(`SMT Alignment Error: not enough free physical CPUs: available physical CPUs = ${left}, requested CPUs = ${count}, CPUs per core = ${cpusPerCore}`), "SMTAlignmentError");
}

export function withCpus(state: CpuState, { podUid, container, cpus }: { readonly podUid: string; readonly container: string; readonly cpus: CpuSet }): CpuState {
  return { shared: state.shared.difference(cpus), owned: new Map([...state.owned, [podUid, new Map([...(state.owned.get(podUid) ?? []), [container, cpus]])]]) };
}

/** What all of the pod's containers had is everyone's again. */
export function withoutPod(state: CpuState, podUid: string): CpuState {
  const mine = state.owned.get(podUid);
  if (!mine) return state;
  return { shared: [...mine.values()].reduce((shared, cpus) => shared.union(cpus), state.shared), owned: new Map([...state.owned].filter(([uid]) => uid !== podUid)) };
}
