/** Nodes, namespaces, events, accounts and configuration. Source: kubernetes v1.36 pkg/printers/internalversion/printers.go */
import type { ComponentStatus, ConfigMap, Event, Namespace, Node, ResourceQuota, Secret, ServiceAccount } from "../../gen/core.v1.ts";
import type { Lease } from "../../gen/coordination.v1.ts";
import type { LeaseCandidate } from "../../gen/coordination.v1beta1.ts";
import type { RuntimeClass } from "../../gen/node.v1.ts";
import type { PriorityClass } from "../../gen/scheduling.v1.ts";
import type { PodGroup, Workload } from "../../gen/scheduling.v1alpha2.ts";
import { labelsOf } from "../../meta/object-meta.ts";
import { AGE, BOOLEAN, column, CORE, fieldColumn, INTEGER, NAME, WIDE } from "./columns.ts";
import { since } from "./human-duration.ts";
import { printer } from "./printer.ts";

const ROLE_LABEL_PREFIX = "node-role.kubernetes.io/";
const ROLE_LABEL = "kubernetes.io/role";

export const nodes = printer<Node>({
  columns: [
    NAME,
    column("Status", "The status of the node"),
    column("Roles", "The roles of the node"),
    AGE,
    fieldColumn("Version", `${CORE}.NodeSystemInfo.kubeletVersion`),
    fieldColumn("Internal-IP", `${CORE}.NodeStatus.addresses`, WIDE),
    fieldColumn("External-IP", `${CORE}.NodeStatus.addresses`, WIDE),
    fieldColumn("OS-Image", `${CORE}.NodeSystemInfo.osImage`, WIDE),
    fieldColumn("Kernel-Version", `${CORE}.NodeSystemInfo.kernelVersion`, WIDE),
    fieldColumn("Container-Runtime", `${CORE}.NodeSystemInfo.containerRuntimeVersion`, WIDE),
  ],
  cells(node, nowMs) {
    const info = node.status?.nodeInfo;
    const kernel = info?.kernelVersion || "<unknown>";
    return [
      node.metadata.name,
      nodeStatus(node),
      nodeRoles(node).join(",") || "<none>",
      since(node.metadata.creationTimestamp, nowMs),
      info?.kubeletVersion ?? "",
      nodeAddress(node, "InternalIP"),
      nodeAddress(node, "ExternalIP"),
      info?.osImage || "<unknown>",
      info?.architecture ? `${kernel} (${info.architecture})` : kernel,
      info?.containerRuntimeVersion || "<unknown>",
    ];
  },
});

function nodeStatus({ spec, status }: Readonly<Node>): string {
  const ready = status?.conditions?.findLast(({ type }) => type === "Ready");
  const words = [ready === undefined ? "Unknown" : ready.status === "True" ? "Ready" : "NotReady"];
  if (spec?.unschedulable) words.push("SchedulingDisabled");
  return words.join(",");
}

function nodeRoles(node: Readonly<Node>): string[] {
  const roles = Object.entries(labelsOf(node)).map(([key, value]) =>
    key.startsWith(ROLE_LABEL_PREFIX) ? key.slice(ROLE_LABEL_PREFIX.length) : key === ROLE_LABEL ? value : "");
  return [...new Set(roles)].filter((role) => role !== "").sort();
}

function nodeAddress({ status }: Readonly<Node>, wanted: string): string {
  return status?.addresses?.find(({ type }) => type === wanted)?.address ?? "<none>";
}

export const namespaces = printer<Namespace>({
  columns: [NAME, column("Status", "The status of the namespace"), AGE],
  cells: ({ metadata, status }, nowMs) => [metadata.name, status?.phase ?? "", since(metadata.creationTimestamp, nowMs)],
});

/** Events of the core group: how the server keeps those of events.k8s.io too. */
export const events = printer<Event>({
  columns: [
    fieldColumn("Last Seen", `${CORE}.Event.lastTimestamp`),
    fieldColumn("Type", `${CORE}.Event.type`),
    fieldColumn("Reason", `${CORE}.Event.reason`),
    fieldColumn("Object", `${CORE}.Event.involvedObject`),
    fieldColumn("Subobject", `${CORE}.ObjectReference.fieldPath`, WIDE),
    fieldColumn("Source", `${CORE}.Event.source`, WIDE),
    fieldColumn("Message", `${CORE}.Event.message`),
    fieldColumn("First Seen", `${CORE}.Event.firstTimestamp`, WIDE),
    fieldColumn("Count", `${CORE}.Event.count`, WIDE),
    { ...NAME, ...WIDE },
  ],
  cells(event, nowMs) {
    const { involvedObject, series, source } = event;
    const first = since(event.firstTimestamp || event.eventTime, nowMs);
    const last = series ? since(series.lastObservedTime, nowMs) : event.lastTimestamp ? since(event.lastTimestamp, nowMs) : first;
    const kind = (involvedObject?.kind ?? "").toLowerCase();
    const component = source?.component || event.reportingComponent || "";
    const instance = source?.host || event.reportingInstance || "";
    return [
      last,
      event.type ?? "",
      event.reason ?? "",
      involvedObject?.name ? `${kind}/${involvedObject.name}` : kind,
      involvedObject?.fieldPath ?? "",
      instance === "" ? component : `${component}, ${instance}`,
      (event.message ?? "").trim(),
      first,
      series ? series.count ?? 0 : event.count || 1,
      event.metadata.name,
    ];
  },
});

export const secrets = printer<Secret>({
  columns: [NAME, fieldColumn("Type", `${CORE}.Secret.type`), fieldColumn("Data", `${CORE}.Secret.data`), AGE],
  cells: ({ metadata, type, data }, nowMs) => [metadata.name, type ?? "", Object.keys(data ?? {}).length, since(metadata.creationTimestamp, nowMs)],
});

export const configMaps = printer<ConfigMap>({
  columns: [NAME, fieldColumn("Data", `${CORE}.ConfigMap.data`), AGE],
  cells: ({ metadata, data, binaryData }, nowMs) => [
    metadata.name, Object.keys(data ?? {}).length + Object.keys(binaryData ?? {}).length, since(metadata.creationTimestamp, nowMs),
  ],
});

export const serviceAccounts = printer<ServiceAccount>({
  columns: [NAME, AGE],
  cells: ({ metadata }, nowMs) => [metadata.name, since(metadata.creationTimestamp, nowMs)],
});

export const componentStatuses = printer<ComponentStatus>({
  columns: [
    NAME,
    column("Status", "Status of the component conditions"),
    column("Message", "Message of the component conditions"),
    column("Error", "Error of the component conditions"),
  ],
  cells({ metadata, conditions }) {
    const healthy = conditions?.find(({ type }) => type === "Healthy");
    const status = healthy === undefined ? "Unknown" : healthy.status === "True" ? "Healthy" : "Unhealthy";
    return [metadata.name, status, healthy?.message ?? "", healthy?.error ?? ""];
  },
});

export const resourceQuotas = printer<ResourceQuota>({
  columns: [
    NAME,
    column("Request", "Request represents a minimum amount of cpu/memory that a container may consume."),
    column("Limit", "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node."),
    AGE,
  ],
  cells({ metadata, status }, nowMs) {
    const hard = Object.entries(status?.hard ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
    const shown = (limits: boolean): string => hard
      .filter(([resource]) => resource.startsWith("limits.") === limits)
      .map(([resource, quantity]) => `${resource}: ${status?.used?.[resource] ?? "0"}/${quantity}`).join(", ");
    return [metadata.name, shown(false), shown(true), since(metadata.creationTimestamp, nowMs)];
  },
});

export const leases = printer<Lease>({
  columns: [NAME, fieldColumn("Holder", "api.coordination.v1.LeaseSpec.holderIdentity"), AGE],
  cells: ({ metadata, spec }, nowMs) => [metadata.name, spec?.holderIdentity ?? "", since(metadata.creationTimestamp, nowMs)],
});

export const leaseCandidates = printer<LeaseCandidate>({
  columns: [
    NAME,
    fieldColumn("LeaseName", "api.coordination.v1beta1.LeaseCandidateSpec.leaseName"),
    column("BinaryVersion", ""),
    column("EmulationVersion", ""),
    AGE,
  ],
  cells: ({ metadata, spec }, nowMs) => [
    metadata.name, spec?.leaseName ?? "", spec?.binaryVersion ?? "", spec?.emulationVersion ?? "", since(metadata.creationTimestamp, nowMs),
  ],
});

export const priorityClasses = printer<PriorityClass>({
  columns: [
    NAME,
    fieldColumn("Value", "api.scheduling.v1.PriorityClass.value", INTEGER),
    fieldColumn("Global-Default", "api.scheduling.v1.PriorityClass.globalDefault", BOOLEAN),
    AGE,
    fieldColumn("PreemptionPolicy", "api.scheduling.v1.PriorityClass.preemptionPolicy"),
  ],
  cells: ({ metadata, value, globalDefault, preemptionPolicy }, nowMs) => [
    metadata.name, value ?? 0, globalDefault ?? false, since(metadata.creationTimestamp, nowMs), preemptionPolicy ?? "",
  ],
});

export const runtimeClasses = printer<RuntimeClass>({
  columns: [NAME, column("Handler", ""), AGE],
  cells: ({ metadata, handler }, nowMs) => [metadata.name, handler, since(metadata.creationTimestamp, nowMs)],
});

export const workloads = printer<Workload>({
  columns: [NAME, AGE],
  cells: ({ metadata }, nowMs) => [metadata.name, since(metadata.creationTimestamp, nowMs)],
});

export const podGroups = printer<PodGroup>({
  columns: [
    NAME,
    fieldColumn("Policy", "api.scheduling.v1alpha2.PodGroupSpec.schedulingPolicy"),
    column("Workload", "Name of the referenced Workload object"),
    column("Status", "Status of the PodGroup"),
    AGE,
  ],
  cells({ metadata, spec, status }, nowMs) {
    const condition = (wanted: string) => status?.conditions?.findLast(({ type }) => type === wanted);
    const scheduled = condition("PodGroupScheduled");
    const disrupted = condition("DisruptionTarget");
    const state = disrupted ? disrupted.reason : scheduled === undefined ? "Pending" : scheduled.status === "True" ? "Scheduled" : "Unschedulable";
    return [
      metadata.name, spec?.schedulingPolicy?.gang ? "Gang" : "Basic", spec?.podGroupTemplateRef?.workload?.workloadName ?? "<none>", state,
      since(metadata.creationTimestamp, nowMs),
    ];
  },
});
