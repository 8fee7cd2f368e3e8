/** The status of the node's object. Pure. Source: kubernetes v1.36 pkg/kubelet/nodestatus/setters.go, pkg/kubelet/kubelet_node_status.go */
import type { ContainerImage, Node, NodeAddress, NodeCondition, NodeStatus } from "../../../core/api/gen/core.v1.ts";
import { aggregate } from "../../../core/api/meta/aggregate.ts";
import { isExtendedResource } from "../../../core/api/meta/resource-names.ts";
import { timestamp } from "../../../core/lifecycle/clock.ts";
import type { Image, StatusResponse, VersionResponse } from "../../cri/gen/runtime.v1.ts";
import type { MachineInfo } from "../../os/machine.ts";
import type { KubeletSettings } from "../settings.ts";
import { jsonCopy, mergePatch, same } from "../status/status-patch.ts";
import { allocatableOf, capacityOf, type CapacityFacts } from "./capacity.ts";
import { declaredFeatures } from "./declared-features.ts";
import type { Pressure } from "./pressure.ts";

export interface NodeFacts {
  readonly settings: KubeletSettings;
  readonly machine: MachineInfo;
  readonly capacity: CapacityFacts;
  readonly before: NodeStatus | undefined;
  /** Why the node is not ready; empty: it is. */
  readonly problems: readonly string[];
  readonly pressures: ReadonlySet<Pressure>;
  readonly runtimeVersion: VersionResponse | undefined;
  readonly runtimeStatus: StatusResponse | undefined;
  readonly images: readonly Image[];
  /** Of plugins. What is no more has 0 of each. */
  readonly devices?: ReadonlyMap<string, { readonly capacity: number; readonly allocatable: number }> | undefined;
  /** Attachable volumes that are here, or about to be. */
  readonly volumesInUse?: readonly string[] | undefined;
  readonly nowMs: number;
}

const IMAGE_NAMES_MAX = 5;

export function nodeStatusOf(facts: NodeFacts): NodeStatus {
  const { settings, machine, runtimeVersion, runtimeStatus } = facts;
  const devices = [...(facts.devices ?? [])];
  const capacity = { ...othersOf(facts.before?.capacity), ...capacityOf(facts.capacity), ...Object.fromEntries(devices.map(([name, { capacity }]) => [name, String(capacity)])) };
  return {
    capacity,
    allocatable: {
      ...leftOver(facts.before?.allocatable, capacity), ...othersOf(facts.before?.capacity), ...allocatableOf(facts.capacity), ...Object.fromEntries(devices.map(([name, { allocatable }]) => [name, String(allocatable)])),
    },
    conditions: conditionsOf(facts), addresses: addressesOf(settings), daemonEndpoints: { kubeletEndpoint: { Port: settings.port } },
    nodeInfo: {
      machineID: machine.machineId, systemUUID: machine.systemUuid, bootID: machine.bootId, kernelVersion: machine.kernelVersion, osImage: machine.osImage,
      containerRuntimeVersion: `${runtimeVersion?.runtime_name ?? "containerd"}://${runtimeVersion?.runtime_version?.replace(/^v/, "") ?? "Unknown"}`,
      kubeletVersion: settings.version, kubeProxyVersion: "", operatingSystem: machine.os, architecture: machine.architecture,
      ...(machine.swapBytes > 0 ? { swap: { capacity: machine.swapBytes } } : {}),
    },
    images: imagesOf(facts.images, facts.settings.statusImagesMax),
    ...(facts.volumesInUse?.length || facts.before?.volumesInUse?.length ? { volumesInUse: [...(facts.volumesInUse ?? [])] } : {}),
    runtimeHandlers: (runtimeStatus?.runtime_handlers ?? []).toSorted((a, b) => ((a.name ?? "") < (b.name ?? "") ? -1 : 1)).map(({ name, features }) => ({
      name: name ?? "", features: { recursiveReadOnlyMounts: features?.recursive_read_only_mounts ?? false, userNamespaces: features?.user_namespaces ?? false },
    })),
    declaredFeatures: declaredFeatures(settings.placement.gates, runtimeStatus),
    features: { supplementalGroupsPolicy: runtimeStatus?.features?.supplemental_groups_policy ?? false },
  };
}

/** What others have written into the capacity ("example.com/dongle", "feature.node.kubernetes.io/sgx.epc") is kept, and is allocatable, too. */
function othersOf(capacity: NodeStatus["capacity"]): Record<string, string> {
  return Object.fromEntries(Object.entries(capacity ?? {}).filter(([name]) => !isHugepages(name)));
}

/** What is allocatable without a capacity stays, where it is in a domain of Kubernetes' own. */
function leftOver(allocatable: NodeStatus["allocatable"], capacity: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(allocatable ?? {}).filter(([name]) => capacity[name] === undefined && !goesWithCapacity(name)));
}

function goesWithCapacity(name: string): boolean { return isHugepages(name) || isExtendedResource(name); }

function isHugepages(name: string): boolean { return name.startsWith("hugepages-"); }

function addressesOf({ nodeIps, hostname }: KubeletSettings): NodeAddress[] {
  return [...nodeIps.map((address) => ({ type: "InternalIP", address })), { type: "Hostname", address: hostname }];
}

function imagesOf(images: readonly Image[], max: number): ContainerImage[] {
  return images.toSorted((a, b) => (b.size ?? 0) - (a.size ?? 0) || ((a.id ?? "") < (b.id ?? "") ? 1 : -1)).slice(0, max < 0 ? images.length : max)
    .map(({ repo_tags = [], repo_digests = [], size = 0 }) => ({ names: [...repo_digests, ...repo_tags].slice(0, IMAGE_NAMES_MAX), sizeBytes: size }));
}

const PRESSURES: readonly (readonly [type: Pressure, bad: readonly [string, string], good: readonly [string, string]])[] = [
  ["MemoryPressure", ["KubeletHasInsufficientMemory", "kubelet has insufficient memory available"], ["KubeletHasSufficientMemory", "kubelet has sufficient memory available"]],
  ["DiskPressure", ["KubeletHasDiskPressure", "kubelet has disk pressure"], ["KubeletHasNoDiskPressure", "kubelet has no disk pressure"]],
  ["PIDPressure", ["KubeletHasInsufficientPID", "kubelet has insufficient PID available"], ["KubeletHasSufficientPID", "kubelet has sufficient PID available"]],
];

/** Ready comes last: older clients look at the last one. */
function conditionsOf({ before, problems, pressures, nowMs }: NodeFacts): NodeCondition[] {
  const wanted: [string, "True" | "False", readonly [string, string]][] = PRESSURES.map(([type, bad, good]) => [type, pressures.has(type) ? "True" : "False", pressures.has(type) ? bad : good]);
  const message = aggregate(problems);
  wanted.push(problems.length === 0 ? ["Ready", "True", ["KubeletReady", "kubelet is posting ready status"]] : ["Ready", "False", ["KubeletNotReady", message]]);
  return wanted.map(([type, status, [reason, text]]) => {
    const old = before?.conditions?.find((condition) => condition.type === type);
    return { type, status, lastHeartbeatTime: timestamp(nowMs), lastTransitionTime: old?.status === status && old.lastTransitionTime ? old.lastTransitionTime : timestamp(nowMs), reason, message: text };
  });
}

/** What a user sees besides the heartbeat. */
export function isSameStatus(a: NodeStatus | undefined, b: NodeStatus): boolean {
  const still = ({ conditions = [], ...rest }: NodeStatus) => ({ ...rest, conditions: conditions.filter(({ type }) => OURS.has(type)).map(({ lastHeartbeatTime: _, ...condition }) => condition).toSorted((x, y) => (x.type < y.type ? -1 : 1)) });
  if (!a) return false;
  const [before, after] = [still(a), still(b)];
  return (Object.keys(after) as (keyof typeof after)[]).every((key) => same(before[key], after[key]));
}

const OURS: ReadonlySet<string> = new Set([...PRESSURES.map(([type]) => type), "Ready"]);

/** Of the labels that pods choose a machine by those that somebody has changed, as they are; undefined: none. Source: kubernetes v1.36 pkg/kubelet/kubelet_node_status.go (updateNode) */
export function changedFacts(labels: Readonly<Record<string, string>> | undefined, { os, architecture }: Pick<MachineInfo, "os" | "architecture">): Record<string, string> | undefined {
  const changed = Object.entries({ "kubernetes.io/os": os, "kubernetes.io/arch": architecture }).filter(([name, value]) => labels?.[name] !== value);
  return changed.length === 0 ? undefined : Object.fromEntries(changed);
}

/** As a strategic merge patch of …/nodes/<name>/status. */
export function nodeStatusPatch(before: NodeStatus | undefined, after: NodeStatus): object {
  const changed = Object.entries(after).filter(([key, value]) => key !== "conditions" && !same(before?.[key as keyof NodeStatus], value));
  const removed = (name: "capacity" | "allocatable"): Record<string, null> => Object.fromEntries(Object.keys(before?.[name] ?? {}).filter((key) => after[name]?.[key] === undefined && goesWithCapacity(key)).map((key) => [key, null]));
  const status: Record<string, unknown> = Object.fromEntries(changed);
  for (const name of ["capacity", "allocatable"] as const) if (status[name]) status[name] = { ...after[name], ...removed(name) };
  if (status["nodeInfo"]) status["nodeInfo"] = mergePatch(before?.nodeInfo, after.nodeInfo); // swap that is off is taken away: as long as it stood there, it would be told of every ten seconds
  if (status["addresses"] && before?.addresses?.length) status["addresses"] = [...(after.addresses ?? []), { $patch: "replace" }];
  status["conditions"] = after.conditions;
  return jsonCopy({ status });
}

/** The node's object as it is first registered. */
export function newNode({ settings, machine }: Pick<NodeFacts, "settings" | "machine">): Pick<Node, "apiVersion" | "kind" | "spec"> & { readonly metadata: {
  readonly name: string;
  readonly labels: Record<string, string>;
  readonly annotations: Record<string, string>;
} } {
  return {
    apiVersion: "v1", kind: "Node",
    metadata: { name: settings.nodeName, labels: { ...nodeLabels(settings, machine), ...settings.labels }, annotations: { "volumes.kubernetes.io/controller-managed-attach-detach": "true", ...settings.annotations } },
    spec: {
      ...(settings.taints.length > 0 ? { taints: [...settings.taints] } : {}), ...(settings.unschedulable ? { unschedulable: true, taints: [...settings.taints, { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" as const }] } : {}),
      ...(settings.providerId === undefined ? {} : { providerID: settings.providerId }),
    },
  };
}

/** Labels that are facts; kept right on a node that is there already. */
export function nodeLabels({ hostname }: Pick<KubeletSettings, "hostname">, { os, windowsBuild, architecture }: Pick<MachineInfo, "os" | "windowsBuild" | "architecture">): Record<string, string> {
  return {
    "kubernetes.io/hostname": hostname, "kubernetes.io/os": os, "kubernetes.io/arch": architecture, "beta.kubernetes.io/os": os, "beta.kubernetes.io/arch": architecture,
    ...(windowsBuild === undefined ? {} : { "node.kubernetes.io/windows-build": windowsBuild }),
  };
}
