/**
 * What a pod takes of a quota, which scopes it is in, and what a quota demands that it says.
 *
 * Source: kubernetes v1.36 pkg/quota/v1/evaluator/core/pods.go, component-helpers/resource/helpers.go
 */
import type { Container, ContainerStatus, Pod, PodAffinityTerm, ScopedResourceSelectorRequirement } from "../gen/core.v1.ts";
import { asDouble } from "../meta/go-integer.ts";
import { addQuantity, maxQuantity, parseQuantity, type Quantity } from "../meta/quantity.ts";
import { parseTime } from "../meta/time.ts";
import { add, addTo, type Amounts, amountsOf } from "./amounts.ts";

const NAMES: ReadonlySet<string> = new Set(["count/pods", "pods", ...["cpu", "memory", "ephemeral-storage"].flatMap((name) => [name, `requests.${name}`, `limits.${name}`])]);
/** What every container has to say of itself when a quota limits it. */
const DEMANDED: ReadonlySet<string> = new Set(["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"]);
const ONE = parseQuantity("1");

export function isPodResource(name: string): boolean {
  if (NAMES.has(name) || name.startsWith("hugepages-") || name.startsWith("requests.hugepages-")) return true;
  return isExtendedRequest(name);
}

export function isExtendedRequest(name: string): boolean { return name.startsWith("requests.") && isExtended(name.slice("requests.".length)); }

/** A device of somebody's: `vendor.example/gpu`, or a device class. */
function isExtended(name: string): boolean { return name.startsWith("deviceclass.resource.kubernetes.io/") || (name.includes("/") && !name.includes("kubernetes.io/")); }

export function podUsage(pod: Readonly<Pod>, nowMs: number): Amounts {
  const count: Amounts = new Map([["count/pods", ONE]]);
  return hasEnded(pod, nowMs) ? count : add(count, named(podTotal(pod, "requests"), podTotal(pod, "limits")));
}

/** What a pod asks for as a whole, with its overhead, whatever it has got meanwhile. */
export function podRequests({ status: _, ...pod }: Readonly<Pod>): Amounts { return podTotal(pod, "requests"); }

/** It holds nothing any more: it has ended, or should have by now. */
function hasEnded({ status, metadata }: Readonly<Pod>, nowMs: number): boolean {
  if (status?.phase === "Failed" || status?.phase === "Succeeded") return true;
  const { deletionTimestamp, deletionGracePeriodSeconds: graceSeconds } = metadata;
  return deletionTimestamp !== undefined && graceSeconds !== undefined && nowMs > (parseTime(deletionTimestamp) ?? 0) + asDouble(graceSeconds) * 1000;
}

/** Under the names that quotas have for them. */
function named(requests: Amounts, limits: Amounts): Map<string, Quantity> {
  const usage = new Map<string, Quantity>([["pods", ONE]]);
  for (const [name, quantity] of requests) {
    if (NAMES.has(name) || name.startsWith("hugepages-")) usage.set(name, quantity);
    if (NAMES.has(name) || name.startsWith("hugepages-") || isExtended(name)) usage.set(`requests.${name}`, quantity);
  }
  for (const [name, quantity] of limits) if (NAMES.has(`limits.${name}`)) usage.set(`limits.${name}`, quantity);
  return usage;
}

/** Containers together, or the most of any init container with the sidecars before it; while a container or sidecar is resized, the most of what it wants, was given and has. */
function podTotal({ spec, status }: Readonly<Pod>, which: "requests" | "limits"): Amounts {
  const statuses = new Map([...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])].map((one) => [one.name, one]));
  const infeasible = (status?.conditions ?? []).some(({ type, reason }) => type === "PodResizePending" && reason === "Infeasible");
  const of = (container: Container, resizable = true): Amounts => ofContainer(container, resizable ? statuses.get(container.name) : undefined, { which, infeasible });
  let total: Map<string, Quantity> = new Map();
  const sidecars = new Map<string, Quantity>(), starting = new Map<string, Quantity>();
  for (const container of spec.containers ?? []) for (const [name, quantity] of of(container)) addTo(total, name, quantity);
  for (const container of spec.initContainers ?? []) {
    const isSidecar = container.restartPolicy === "Always";
    for (const [name, quantity] of of(container, isSidecar)) { // of what others ask for the sidecars so far have raised it already
      if (isSidecar) for (const sum of [total, sidecars]) addTo(sum, name, quantity);
      const beside = sidecars.get(name);
      raise(starting, name, isSidecar ? beside! : beside ? addQuantity(quantity, beside) : quantity); // written as the container writes it
    }
  }
  total = most(total, starting);
  for (const [name, quantity] of amountsOf(spec.resources?.[which])) if (name === "cpu" || name === "memory" || name.startsWith("hugepages-")) total.set(name, quantity);
  for (const [name, quantity] of amountsOf(spec.overhead)) {
    const before = total.get(name);
    if (which === "requests" || (before && !before.isZero)) total.set(name, before ? addQuantity(before, quantity) : quantity);
  }
  return total;
}

function ofContainer({ resources }: Container, status: ContainerStatus | undefined, { which, infeasible }: { readonly which: "requests" | "limits"; readonly infeasible: boolean }): Map<string, Quantity> {
  const wanted = amountsOf(resources?.[which]);
  if (!status?.resources) return wanted;
  const held = most(amountsOf(status.resources?.[which]), which === "requests" ? amountsOf(status.allocatedResources) : new Map());
  return infeasible ? held : most(wanted, held);
}

function most(a: Amounts, b: Amounts): Map<string, Quantity> {
  const out = new Map(a);
  for (const [name, quantity] of b) raise(out, name, quantity);
  return out;
}

function raise(amounts: Map<string, Quantity>, name: string, quantity: Quantity): void {
  const before = amounts.get(name);
  amounts.set(name, before ? maxQuantity(before, quantity) : quantity);
}

/** What the pod leaves unsaid that the quota's resources demand; undefined: nothing. */
export function podProblem({ spec }: Readonly<Pod>, limited: readonly string[]): string | undefined {
  if (Object.keys(spec.resources?.requests ?? {}).length + Object.keys(spec.resources?.limits ?? {}).length > 0) return undefined;
  const demanded = limited.filter((name) => DEMANDED.has(name)).toSorted();
  const missing = demanded.flatMap((name) => {
    const silent = [...(spec.containers ?? []), ...(spec.initContainers ?? [])].filter(({ resources }) => !named(amountsOf(resources?.requests), amountsOf(resources?.limits)).has(name));
    return silent.length === 0 ? [] : [`${name} for: ${[...new Set(silent.map((container) => container.name))].toSorted().join(",")}`];
  });
  return missing.length === 0 ? undefined : `must specify ${missing.join("; ")}`;
}

export function isPodInScope(pod: Readonly<Pod>, { scopeName, operator, values = [] }: Readonly<ScopedResourceSelectorRequirement>): boolean {
  switch (scopeName) {
    case "Terminating": return isTerminating(pod);
    case "NotTerminating": return !isTerminating(pod);
    case "BestEffort": return isBestEffort(pod);
    case "NotBestEffort": return !isBestEffort(pod);
    case "PriorityClass": return isSelected(pod.spec.priorityClassName ? [pod.spec.priorityClassName] : [], operator, values);
    case "CrossNamespacePodAffinity": return crossesNamespaces(pod);
    default: return false;
  }
}

/** Whether any of the names is selected; without one, whether nothing is. */
export function isSelected(names: readonly string[], operator: string, values: readonly string[]): boolean {
  switch (operator) {
    case "Exists": return names.length > 0;
    case "DoesNotExist": return names.length === 0;
    case "In": return names.some((name) => values.includes(name));
    case "NotIn": return names.length === 0 || names.some((name) => !values.includes(name));
    default: return false;
  }
}

/** It runs for a limited time. */
export function isTerminating({ spec }: Readonly<Pod>): boolean { return spec.activeDeadlineSeconds != null && spec.activeDeadlineSeconds >= 0; }

/** Nothing of it asks for processor time or memory, or has a limit of it. */
export function isBestEffort({ spec, status }: Readonly<Pod>): boolean {
  if (status?.qosClass) return status.qosClass === "BestEffort";
  const parts = spec.resources ? [spec.resources] : [...(spec.containers ?? []), ...(spec.initContainers ?? [])].map(({ resources }) => resources);
  return !parts.some((part) => [part?.requests, part?.limits].some((list) => [...amountsOf(list)].some(([name, quantity]) => (name === "cpu" || name === "memory") && quantity.sign > 0)));
}

function crossesNamespaces({ spec: { affinity } }: Readonly<Pod>): boolean {
  const crosses = ({ namespaces = [], namespaceSelector }: PodAffinityTerm): boolean => namespaces.length > 0 || namespaceSelector != null;
  return [affinity?.podAffinity, affinity?.podAntiAffinity].some((rules) =>
    (rules?.requiredDuringSchedulingIgnoredDuringExecution ?? []).some(crosses) || (rules?.preferredDuringSchedulingIgnoredDuringExecution ?? []).some(({ podAffinityTerm }) => crosses(podAffinityTerm)));
}
