/** Which printer prints which kind. What is not here shows its name and when it was created, as upstream does for kinds without a printer of their own. */
import type { GroupKind } from "../../meta/gvk.ts";
import { formatGroupKind } from "../../meta/gvk.ts";
import type { ApiObject } from "../../meta/object-meta.ts";
import * as autoscalers from "./autoscalers.ts";
import * as cluster from "./cluster.ts";
import { CREATED_AT, NAME } from "./columns.ts";
import * as devices from "./devices.ts";
import * as networks from "./networks.ts";
import * as pods from "./pods.ts";
import * as policies from "./policies.ts";
import { type Printer, printer } from "./printer.ts";
import * as volumes from "./volumes.ts";
import * as workloads from "./workloads.ts";

/** By kind and group: "Deployment.apps", "Pod". */
const PRINTERS: Readonly<Record<string, Printer>> = {
  Pod: pods.pods, PodTemplate: pods.podTemplates,
  ReplicationController: workloads.replicationControllers,
  "ReplicaSet.apps": workloads.replicaSets, "Deployment.apps": workloads.deployments, "StatefulSet.apps": workloads.statefulSets,
  "DaemonSet.apps": workloads.daemonSets, "ControllerRevision.apps": workloads.controllerRevisions,
  "Job.batch": workloads.jobs, "CronJob.batch": workloads.cronJobs,
  "Scale.autoscaling": workloads.scales, "HorizontalPodAutoscaler.autoscaling": autoscalers.horizontalPodAutoscalers,
  "PodDisruptionBudget.policy": workloads.podDisruptionBudgets,
  Service: networks.services, Endpoints: networks.endpoints, "EndpointSlice.discovery.k8s.io": networks.endpointSlices,
  "Ingress.networking.k8s.io": networks.ingresses, "IngressClass.networking.k8s.io": networks.ingressClasses,
  "NetworkPolicy.networking.k8s.io": networks.networkPolicies, "ServiceCIDR.networking.k8s.io": networks.serviceCidrs,
  "IPAddress.networking.k8s.io": networks.ipAddresses,
  Node: cluster.nodes, Namespace: cluster.namespaces, Event: cluster.events, "Event.events.k8s.io": cluster.events,
  Secret: cluster.secrets, ConfigMap: cluster.configMaps, ServiceAccount: cluster.serviceAccounts, ComponentStatus: cluster.componentStatuses,
  ResourceQuota: cluster.resourceQuotas, "Lease.coordination.k8s.io": cluster.leases, "LeaseCandidate.coordination.k8s.io": cluster.leaseCandidates,
  "PriorityClass.scheduling.k8s.io": cluster.priorityClasses, "Workload.scheduling.k8s.io": cluster.workloads, "PodGroup.scheduling.k8s.io": cluster.podGroups,
  "RuntimeClass.node.k8s.io": cluster.runtimeClasses,
  PersistentVolume: volumes.persistentVolumes, PersistentVolumeClaim: volumes.persistentVolumeClaims,
  "StorageClass.storage.k8s.io": volumes.storageClasses, "VolumeAttributesClass.storage.k8s.io": volumes.volumeAttributesClasses,
  "VolumeAttachment.storage.k8s.io": volumes.volumeAttachments, "CSINode.storage.k8s.io": volumes.csiNodes, "CSIDriver.storage.k8s.io": volumes.csiDrivers,
  "RoleBinding.rbac.authorization.k8s.io": policies.roleBindings, "ClusterRoleBinding.rbac.authorization.k8s.io": policies.clusterRoleBindings,
  "MutatingWebhookConfiguration.admissionregistration.k8s.io": policies.webhookConfigurations,
  "ValidatingWebhookConfiguration.admissionregistration.k8s.io": policies.webhookConfigurations,
  "ValidatingAdmissionPolicy.admissionregistration.k8s.io": policies.validatingAdmissionPolicies,
  "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io": policies.admissionPolicyBindings,
  "MutatingAdmissionPolicy.admissionregistration.k8s.io": policies.mutatingAdmissionPolicies,
  "MutatingAdmissionPolicyBinding.admissionregistration.k8s.io": policies.admissionPolicyBindings,
  "FlowSchema.flowcontrol.apiserver.k8s.io": policies.flowSchemas,
  "PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io": policies.priorityLevelConfigurations,
  "CertificateSigningRequest.certificates.k8s.io": policies.certificateSigningRequests,
  "ClusterTrustBundle.certificates.k8s.io": policies.clusterTrustBundles, "PodCertificateRequest.certificates.k8s.io": policies.podCertificateRequests,
  "StorageVersion.internal.apiserver.k8s.io": policies.storageVersions, "StorageVersionMigration.storagemigration.k8s.io": policies.storageVersionMigrations,
  "APIService.apiregistration.k8s.io": policies.apiServices,
  "DeviceClass.resource.k8s.io": devices.namesAndAges, "ResourceClaimTemplate.resource.k8s.io": devices.namesAndAges,
  "ResourceClaim.resource.k8s.io": devices.resourceClaims, "ResourceSlice.resource.k8s.io": devices.resourceSlices,
  "DeviceTaintRule.resource.k8s.io": devices.deviceTaintRules, "ResourcePoolStatusRequest.resource.k8s.io": devices.resourcePoolStatusRequests,
};

/** Role, ClusterRole, LimitRange, CSIStorageCapacity, CustomResourceDefinition and whatever else has no printer. */
const DEFAULT = printer<ApiObject>({
  columns: [NAME, CREATED_AT],
  cells: ({ metadata }) => [metadata.name, metadata.creationTimestamp || null],
  nullRows: true,
});

/** Which fields' documentation describes columns. */
export function documentedFields(): Set<string> {
  return new Set([...Object.values(PRINTERS), DEFAULT].flatMap(({ columns }) => columns.flatMap(({ doc }) => doc ?? [])));
}

export function printerOf(kind: GroupKind): Printer { return PRINTERS[formatGroupKind(kind)] ?? DEFAULT; }
