/**
 * Whether this node takes a pod that was bound to it. The scheduler has looked at all this, but it may have been too late, or bypassed
 * (spec.nodeName). A refused pod is Failed; it is not run and not retried. Pure.
 *
 * Source: kubernetes v1.36 pkg/kubelet/lifecycle/{predicate,handlers}.go, pkg/scheduler (AdmissionCheck), pkg/security/apparmor/validate.go, pkg/kubelet/eviction/eviction_manager.go (Admit)
 */
import type { Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, ResourceList } from "../../core/api/gen/core.v1.ts";
import { featuresToRun } from "../../core/api/meta/declared-features.ts";
import { isLessInteger } from "../../core/api/meta/go-integer.ts";
import { HostPorts, hostPortsOf } from "../../core/api/meta/host-ports.ts";
import { parseQuantity } from "../../core/api/meta/quantity.ts";
import { tolerationsOf } from "../../core/api/meta/tolerations.ts";
import type { OperatingSystem } from "../os/machine.ts";
import { wantsAppArmor } from "./containers/security-context.ts";
import { isCriticalPod, isStaticPod } from "./pod-spec.ts";
import { podRequests, qosClass } from "./resources/pod-resources.ts";
import type { PodFailure } from "./status/pod-status.ts";
import { sysctlProblem } from "./sysctls.ts";

export interface AdmissionFacts {
  readonly os: OperatingSystem;
  readonly pod: Pod;
  /** Those admitted and not ended. */
  readonly others: readonly Pod[];
  readonly node: Pick<Node, "metadata" | "spec">;
  readonly allocatable: ResourceList;
  readonly allowedUnsafeSysctls: readonly string[];
  /** Conditions of the node that hold: MemoryPressure, DiskPressure, PIDPressure. */
  readonly pressures: readonly string[];
  /** False: the runtime cannot keep a process to the groups its pod names. Undefined: it has not said. */
  readonly strictGroups?: boolean | undefined;
  /** What the node declares it can do. Undefined: the runtime has not said what it can. */
  readonly declares?: readonly string[] | undefined;
  /** False: AppArmor's profiles cannot be put on. */
  readonly appArmor?: boolean | undefined;
}

/** What the node has too little of for the pod, in the resource's unit: milli for cpu. */
export interface Shortfall { readonly resource: string; readonly amount: number }

/** Why the pod is refused; undefined: it is welcome. `resources` false: what it asks for is made room for. */
export function refusalOf(facts: AdmissionFacts, options: { readonly resources?: boolean } = {}): PodFailure | undefined {
  return stateRefusal(facts) ?? nodeRefusal(facts, options);
}

/** What is asked before the pod is given processors, memory and devices. */
export function stateRefusal(facts: AdmissionFacts): PodFailure | undefined {
  return pressureRefusal(facts) ?? sysctlRefusal(facts);
}

/** What is asked once it has them. */
export function nodeRefusal(facts: AdmissionFacts, { resources = true }: { readonly resources?: boolean } = {}): PodFailure | undefined {
  const { pod, os, strictGroups } = facts;
  const labelled = pod.metadata.labels?.["kubernetes.io/os"];
  if (labelled !== undefined && labelled !== os) return refuse("PodOSSelectorNodeLabelDoesNotMatch", "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label");
  if (pod.spec.os && pod.spec.os.name !== os) return refuse("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS");
  if (strictGroups === false && pod.spec.securityContext?.supplementalGroupsPolicy === "Strict") return refuse("SupplementalGroupsPolicyNotSupported", "SupplementalGroupsPolicy=Strict is not supported in this node");
  return (resources ? fitRefusal(facts) : undefined) ?? placeRefusal(facts) ?? appArmorRefusal(facts) ?? featureRefusal(facts);
}

function refuse(reason: string, message: string): PodFailure {
  return { reason, message: `Pod was rejected: ${message}`, refused: true };
}

function pressureRefusal({ pod, pressures }: AdmissionFacts): PodFailure | undefined {
  if (pressures.length === 0 || isCriticalPod(pod)) return undefined;
  const tolerated = pressures.length === 1 && pressures[0] === "MemoryPressure"
    && (qosClass(pod) !== "BestEffort" || tolerationsOf(pod.spec.tolerations).of({ key: "node.kubernetes.io/memory-pressure", value: "", effect: "NoSchedule" }));
  return tolerated ? undefined : refuse("Evicted", `The node had condition: [${pressures.join(" ")}]. `);
}

function sysctlRefusal({ pod, allowedUnsafeSysctls }: AdmissionFacts): PodFailure | undefined {
  const problem = sysctlProblem(pod, allowedUnsafeSysctls);
  return problem === undefined ? undefined : refuse("SysctlForbidden", `forbidden sysctl: ${problem}`);
}

function appArmorRefusal({ pod, appArmor }: AdmissionFacts): PodFailure | undefined {
  const isNew = (pod.status?.phase ?? "Pending") === "Pending"; // what runs already has been looked at
  return appArmor === false && isNew && wantsAppArmor(pod) ? refuse("AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host") : undefined;
}

function featureRefusal({ pod, declares }: AdmissionFacts): PodFailure | undefined {
  const missing = declares ? featuresToRun(pod.spec).filter((feature) => !declares.includes(feature)) : [];
  return missing.length > 0 ? refuse("PodFeatureUnsupported", `Pod requires node features that are not available: ${missing.join(", ")}`) : undefined;
}

interface Misfit { readonly resource: string; readonly requested: number; readonly used: number; readonly capacity: number }

function* misfits({ pod, others, allocatable }: AdmissionFacts): Iterable<Misfit> {
  const slots = parseQuantity(allocatable["pods"] ?? "0").number();
  if (others.length + 1 > slots) yield { resource: "pods", requested: 1, used: others.length, capacity: slots };
  const used = others.map(podRequests);
  const fromDevices = new Set((pod.status?.extendedResourceClaimStatus?.requestMappings ?? []).map(({ resourceName }) => resourceName));
  for (const [resource, quantity] of [...podRequests(pod)].sort(([a], [b]) => placeOf(a) - placeOf(b))) {
    if (quantity.isZero || fromDevices.has(resource) || (allocatable[resource] === undefined && resource.includes("/"))) continue; // extended resources nobody offers are the device manager's
    const measure = (text: typeof quantity): number => (resource === "cpu" ? text.milliNumber() : text.number());
    const requested = measure(quantity);
    const taken = used.reduce((sum, requests) => sum + (requests.has(resource) ? measure(requests.get(resource)!) : 0), 0);
    const capacity = measure(parseQuantity(allocatable[resource] ?? "0"));
    if (taken + requested > capacity) yield { resource, requested, used: taken, capacity };
  }
}

/** What is told first. Source: pkg/scheduler/framework/plugins/noderesources/fit.go fitsRequest */
const FIRST: readonly string[] = ["cpu", "memory", "ephemeral-storage"];

function placeOf(resource: string): number { return FIRST.includes(resource) ? FIRST.indexOf(resource) : FIRST.length; }

export function shortfalls(facts: AdmissionFacts): Shortfall[] {
  return [...misfits(facts)].map(({ resource, requested, used, capacity }) => ({ resource, amount: requested - (capacity - used) }));
}

function fitRefusal(facts: AdmissionFacts): PodFailure | undefined {
  const [first] = misfits(facts);
  return first && outOf(first.resource, first);
}

function outOf(resource: string, { requested, used, capacity }: { readonly requested: number; readonly used: number; readonly capacity: number }): PodFailure {
  return refuse(`OutOf${resource}`, `Node didn't have enough resource: ${resource}, requested: ${requested}, used: ${used}, capacity: ${capacity}`);
}

function placeRefusal({ pod, others, node }: AdmissionFacts): PodFailure | undefined {
  if (!matchesNode(pod, node)) return predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector");
  if (pod.spec.nodeName && pod.spec.nodeName !== node.metadata.name) return predicate("NodeName", "node(s) didn't match the requested node name");
  const wanted = new HostPorts(hostPortsOf(pod.spec));
  if (!wanted.isEmpty && others.some(({ spec }) => wanted.conflictWith(hostPortsOf(spec)))) return predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports");
  const tolerations = tolerationsOf(pod.spec.tolerations);
  const untolerated = (node.spec.taints ?? []).some((taint) => taint.effect === "NoExecute" && !tolerations.of(taint));
  if (untolerated && !isStaticPod(pod)) return predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate");
  return undefined;
}

function predicate(name: string, description: string): PodFailure {
  return refuse(name, `Predicate ${name} failed: ${description}`);
}

function matchesNode(pod: Pod, { metadata }: AdmissionFacts["node"]): boolean {
  const labels = metadata.labels ?? {};
  if (!Object.entries(pod.spec.nodeSelector ?? {}).every(([key, value]) => labels[key] === value)) return false;
  return selectsNode(pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution, { metadata });
}

/** Absent: every node. */
export function selectsNode(selector: NodeSelector | undefined, { metadata: { name, labels = {} } }: Pick<Node, "metadata">): boolean {
  return selector === undefined || selector.nodeSelectorTerms.some((term) => matchesTerm(term, labels, name));
}

function matchesTerm({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, labels: Readonly<Record<string, string>>, name: string): boolean {
  if (matchExpressions.length === 0 && matchFields.length === 0) return false;
  return matchExpressions.every((requirement) => matches(requirement, labels[requirement.key])) && matchFields.every((requirement) => matches(requirement, requirement.key === "metadata.name" ? name : undefined));
}

function matches({ operator, values = [] }: NodeSelectorRequirement, value: string | undefined): boolean {
  switch (operator) {
    case "In": return value !== undefined && values.includes(value);
    case "NotIn": return value === undefined || !values.includes(value);
    case "Exists": return value !== undefined;
    case "DoesNotExist": return value === undefined;
    case "Gt": return isLessInteger(values[0], value);
    case "Lt": return isLessInteger(value, values[0]);
  }
}
