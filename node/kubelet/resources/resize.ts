/**
 * Changing what containers may use while they run. A wish (the pod's spec) becomes an allocation when the node can afford it, and the allocation
 * becomes the container's limits. Pure.
 *
 * Source: kubernetes v1.36 pkg/kubelet/allocation/allocation_manager.go, pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodResizeAction),
 *         pkg/kubelet/events/resize.go
 */
import type { Container, EphemeralContainer, Pod, ResourceList, ResourceRequirements } from "../../../core/api/gen/core.v1.ts";
import { aggregate } from "../../../core/api/meta/aggregate.ts";
import { compareQuantity, milliQuantity, parseQuantity, quantityOf } from "../../../core/api/meta/quantity.ts";
import type { LinuxContainerResources } from "../../cri/gen/runtime.v1.ts";
import type { OperatingSystem } from "../../os/machine.ts";
import { same } from "../status/status-patch.ts";
import { CPU_QUOTA, SHARES_MIN, swapLimit } from "./linux-resources.ts";

/** What each container was granted, by name; what the pod was as a whole, under no name. */
export type Allocation = Readonly<Record<string, ResourceRequirements>>;

const POD = "";

const RESIZABLE = ["cpu", "memory"] as const;

export function allocationOf({ spec }: Pod): Allocation {
  return { ...Object.fromEntries([...spec.containers, ...(spec.initContainers ?? [])].map(({ name, resources }) => [name, resources ?? {}])), ...(spec.resources ? { [POD]: spec.resources } : {}) };
}

/** What a pod was granted that nothing is noted of: its spec says so, or, where that is newer than its status, the status tells of processors and memory. */
export function allocationTold(pod: Pod): Allocation {
  const { metadata: { generation }, spec, status } = pod;
  const wished = allocationOf(pod);
  if (status?.observedGeneration === undefined || status.observedGeneration === generation) return wished;
  const told = new Map([...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])].filter(({ containerID }) => containerID).map((one) => [one.name, one]));
  return Object.fromEntries(Object.entries(wished).map(([name, resources]) => {
    const of = name !== POD ? told.get(name) : spec.overhead ? undefined : status; // which is told with the pod's
    return [name, of ? { ...resources, requests: asTold(resources.requests, of.allocatedResources), limits: asTold(resources.limits, of.resources?.limits) } : resources];
  }));
}

/** The same in the spec's own words. What the spec does not say (any more: that cannot be) is told of the pod as a whole. */
function asTold(wished: ResourceList = {}, told: ResourceList = {}): ResourceList {
  const was = ([name, wish]: readonly [string, string]): [string, string][] => {
    if (!RESIZABLE.some((one) => one === name)) return [[name, wish]];
    const had = told[name];
    return had === undefined ? [] : [[name, compareQuantity(parseQuantity(wish), parseQuantity(had)) === 0 ? wish : had]];
  };
  return Object.fromEntries(Object.entries(wished).flatMap(was));
}

/** The pod as it was granted. */
export function withAllocation(pod: Pod, allocation: Allocation): Pod {
  if (same(allocationOf(pod), allocation)) return pod;
  const granted = (container: Container): Container => (allocation[container.name] ? { ...container, resources: allocation[container.name] } : container);
  const { containers, initContainers, resources: _, ...spec } = pod.spec;
  return { ...pod, spec: { ...spec, ...(allocation[POD] ? { resources: allocation[POD] } : {}), containers: containers.map(granted), ...(initContainers ? { initContainers: initContainers.map(granted) } : {}) } };
}

/** `what`: the same for the event, which names what the node would refuse the pod for. */
interface Shortfall { readonly reason: "Infeasible" | "Deferred"; readonly what: string; readonly message: string }

export type Verdict = { readonly fits: true } | ({ readonly fits: false } & Shortfall);

/** Whether the node grants what a pod wishes now. `impossible`: why it never does; `refusal`: why it would not take the pod in today. */
export function judgeResize({ os, impossible, refusal }: { readonly os: OperatingSystem; readonly impossible?: string | undefined; readonly refusal?: { readonly reason: string; readonly message: string } | undefined }): Verdict {
  if (os === "windows") return { fits: false, ...infeasible("In-place pod resize is not supported on Windows") };
  if (impossible !== undefined) return { fits: false, ...infeasible(impossible) };
  return refusal ? { fits: false, reason: "Deferred", what: refusal.reason, message: refusal.message.replace(/^Pod was rejected: /, "") } : { fits: true };
}

function infeasible(message: string): Shortfall {
  return { reason: "Infeasible", what: "Infeasible", message };
}

export interface ResizeOperation { readonly resource: "cpu" | "memory"; readonly requirement: "requests" | "limits"; readonly operation: "add" | "remove" | "increase" | "decrease" }

/** What a pod wishes of its containers that it did not wish before, one by one. Source: kubernetes v1.36 pkg/kubelet/kubelet.go recordContainerResizeOperations */
export function resizeOperations(before: Allocation, after: Allocation): ResizeOperation[] {
  return Object.keys(before).filter((container) => container !== POD).flatMap((container) => (["memory", "cpu"] as const).flatMap((resource) => (["requests", "limits"] as const).flatMap((requirement): ResizeOperation[] => {
    const [old, now] = [before[container], after[container]].map((of) => parseQuantity(of?.[requirement]?.[resource] ?? "0").scaledValue(-9)) as [bigint, bigint];
    if (old === now) return [];
    return [{ resource, requirement, operation: old === 0n ? "add" : now === 0n ? "remove" : now > old ? "increase" : "decrease" }];
  })));
}

/** Under upstream's names. Source: kubernetes v1.36 pkg/kubelet/allocation/handlers.go */
export function infeasibleDetail(message: string): string {
  const exclusive = /alongside (CPU|Memory) Manager policy/.exec(message)?.[1];
  if (exclusive !== undefined) return `guaranteed_pod_${exclusive.toLowerCase()}_manager_static_policy`;
  return message.includes("swap") ? "swap_limitation" : "windows";
}

/** Of which some container asks for more or less than before. */
export function changedResources(before: Pod, after: Pod): ("cpu" | "memory")[] {
  const [old, wished] = [allocationOf(before), allocationOf(after)];
  return RESIZABLE.filter((name) => Object.entries(wished).some(([container, { requests }]) => container !== POD && parseQuantity(requests?.[name] ?? "0").scaledValue(-9) !== parseQuantity(old[container]?.requests?.[name] ?? "0").scaledValue(-9)));
}

/** What must be done to a running container so that it has what it was granted. `have`: as the runtime reports it; a runtime that does not is left alone. */
export function resizeOf({ resizePolicy = [] }: Container | EphemeralContainer, want: LinuxContainerResources, have: LinuxContainerResources | undefined): "none" | "update" | "restart" {
  if (!have) return "none";
  const changed = [
    ...((want.cpu_shares ?? 0) !== (have.cpu_shares ?? 0) || (want.cpu_quota ?? 0) !== (have.cpu_quota ?? 0) ? ["cpu"] : []), ...((want.memory_limit_in_bytes ?? 0) !== (have.memory_limit_in_bytes ?? 0) ? ["memory"] : []),
  ];
  if (changed.length === 0) return "none";
  return changed.some((name) => restartsFor(name, { resizePolicy })) ? "restart" : "update";
}

/** The container would rather be restarted than have more or less of it while it runs. */
export function restartsFor(resource: string, { resizePolicy = [] }: Pick<Container, "resizePolicy">): boolean {
  return resizePolicy.find(({ resourceName }) => resourceName === resource)?.restartPolicy === "RestartContainer";
}

export function memoryRequest({ resources }: Pick<Container, "resources">): bigint {
  return parseQuantity(resources?.requests?.["memory"] ?? "0").scaledValue(-9);
}

/** Why memory may not be resized under containers that may swap: their share of the swap goes with their request. */
export function swapRefusal(before: Pod, after: Pod, machine: Parameters<typeof swapLimit>[2]): string | undefined {
  const old = new Map([...before.spec.containers, ...(before.spec.initContainers ?? [])].map((container) => [container.name, container]));
  const refused = [...after.spec.containers, ...(after.spec.initContainers ?? [])].some((wished) => {
    const had = old.get(wished.name);
    if (!had || memoryRequest(had) === memoryRequest(wished) || restartsFor("memory", had)) return false;
    return swapLimit(before, had, machine) > 0 || swapLimit(after, wished, machine) > 0;
  });
  return refused ? "In-place resize of containers with swap is not supported." : undefined;
}

export interface MemoryChange { /** Undefined: the pod. */ readonly container?: string | undefined; /** 0: no limit. */ readonly from: number; readonly to: number; readonly usedBytes: number | undefined }

/** Why memory limits cannot become so low now; undefined: they can. */
export function memoryShortfall(changes: readonly MemoryChange[]): string | undefined {
  const errors = changes.filter(({ from, to }) => to > 0 && (from === 0 || to < from)).flatMap(({ container, to, usedBytes }) => {
    if (usedBytes === undefined) return [container === undefined ? "missing pod memory usage" : `missing container "${container}" memory usage`];
    return usedBytes >= to ? [`attempting to set ${container === undefined ? "pod" : `container "${container}"`} memory limit (${to}) below current usage (${usedBytes})`] : [];
  });
  return errors.length === 0 ? undefined : `cannot decrease memory limits: ${aggregate(errors)}`;
}

/** What a running container has, in the pod's own words where they mean the same. Where the pod says something of limits (or requests) at all, what it has from its pod's is told as well. */
export function actualResources(granted: ResourceRequirements, have: LinuxContainerResources | undefined): ResourceRequirements {
  if (!have) return granted;
  const limits = { ...granted.limits };
  const requests = { ...granted.requests };
  const quotaMilli = Math.round(((have.cpu_quota ?? 0) * 1000) / (have.cpu_period || CPU_QUOTA.periodUs));
  if (hasAny(granted.limits) && quotaMilli > 0) limits["cpu"] = reworded(limits["cpu"], quotaMilli, "milli");
  if (hasAny(granted.limits) && (have.memory_limit_in_bytes ?? 0) > 0) limits["memory"] = reworded(limits["memory"], have.memory_limit_in_bytes ?? 0, "whole");
  const milli = requests["cpu"] === undefined ? 0 : parseQuantity(requests["cpu"]).milliNumber();
  const shares = have.cpu_shares ?? 0;
  const isLeast = shares <= SHARES_MIN && milli <= SHARES_MIN; // so little is all the same
  if (hasAny(granted.requests) && shares >= SHARES_MIN && !isLeast && Math.floor((milli * 1024) / 1000) !== shares) requests["cpu"] = milliQuantity(Math.ceil((shares * 1000) / 1024)).toString();
  return { ...granted, ...(granted.limits ? { limits } : {}), ...(granted.requests ? { requests } : {}) };
}

function hasAny(list: ResourceList | undefined): boolean { return Object.keys(list ?? {}).length > 0; }

/** Limits are set in steps of 10m, so what is nearly equal is equal. */
function reworded(text: string | undefined, value: number, unit: "milli" | "whole"): string {
  const quantity = parseQuantity(text ?? "0");
  if (unit === "whole") return text !== undefined && quantity.number() === value ? text : quantityOf(value, "BinarySI").toString();
  const isMeant = quantity.milliNumber() === value || (Math.abs(quantity.milliNumber() - value) < 10 && quantity.milliNumber() <= 10);
  return text !== undefined && isMeant ? text : milliQuantity(value).toString();
}

/** The text of a resize event. */
export function resizeMessage(prefix: string, { metadata, spec }: Pod, { error, generation = metadata.generation }: { readonly error?: string; readonly generation?: number | undefined } = {}): string {
  const summary = (containers: readonly Container[] | undefined) => (containers?.length ? containers.map(({ name, resources }) => ({ name, resources: resources ?? {} })) : undefined);
  return `${prefix}: ${JSON.stringify({ initContainers: summary(spec.initContainers), containers: summary(spec.containers), generation: generation ?? 0, ...(error ? { error } : {}) })}`;
}
