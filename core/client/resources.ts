/** The built-in resources that controllers, scheduler and nodes speak of, each with the type of its objects. */
import type { ConfigMap, Endpoints, Event, LimitRange, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, ResourceQuota, Secret, Service, ServiceAccount } from "../api/gen/core.v1.ts";
import type { MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration } from "../api/gen/admissionregistration.v1.ts";
import type { CustomResourceDefinition } from "../api/gen/apiextensions.v1.ts";
import type { ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet } from "../api/gen/apps.v1.ts";
import type { HorizontalPodAutoscaler } from "../api/gen/autoscaling.v2.ts";
import type { CronJob, Job } from "../api/gen/batch.v1.ts";
import type { CertificateSigningRequest } from "../api/gen/certificates.v1.ts";
import type { ClusterTrustBundle, PodCertificateRequest } from "../api/gen/certificates.v1beta1.ts";
import type { StorageVersion } from "../api/gen/apiserverinternal.v1alpha1.ts";
import type { Lease } from "../api/gen/coordination.v1.ts";
import type { LeaseCandidate } from "../api/gen/coordination.v1beta1.ts";
import type { EndpointSlice } from "../api/gen/discovery.v1.ts";
import type { Event as ReportedEvent } from "../api/gen/events.v1.ts";
import type { FlowSchema, PriorityLevelConfiguration } from "../api/gen/flowcontrol.v1.ts";
import type { IPAddress, Ingress, IngressClass, NetworkPolicy, ServiceCIDR } from "../api/gen/networking.v1.ts";
import type { RuntimeClass } from "../api/gen/node.v1.ts";
import type { PodDisruptionBudget } from "../api/gen/policy.v1.ts";
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from "../api/gen/rbac.v1.ts";
import type { DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice } from "../api/gen/resource.v1.ts";
import type { DeviceTaintRule, ResourcePoolStatusRequest } from "../api/gen/resource.v1alpha3.ts";
import type { PriorityClass } from "../api/gen/scheduling.v1.ts";
import type { PodGroup, Workload } from "../api/gen/scheduling.v1alpha2.ts";
import type { CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment, VolumeAttributesClass } from "../api/gen/storage.v1.ts";
import type { StorageVersionMigration } from "../api/gen/storagemigration.v1beta1.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import type { ResourceRef } from "./client.ts";

const NAMESPACED = true;
const CLUSTER = false;

function ref<T extends ApiObject>(group: string, version: string, plural: string, kind: string, namespaced: boolean): ResourceRef<T> {
  return Object.freeze({ group, version, plural, kind, namespaced });
}

// v1
export const CONFIG_MAPS = ref<ConfigMap>("", "v1", "configmaps", "ConfigMap", NAMESPACED);
export const ENDPOINTS = ref<Endpoints>("", "v1", "endpoints", "Endpoints", NAMESPACED);
export const EVENTS = ref<Event>("", "v1", "events", "Event", NAMESPACED);
/** The same, as clients of the newer group know them. */
export const REPORTED_EVENTS = ref<ReportedEvent>("events.k8s.io", "v1", "events", "Event", NAMESPACED);
export const LIMIT_RANGES = ref<LimitRange>("", "v1", "limitranges", "LimitRange", NAMESPACED);
export const NAMESPACES = ref<Namespace>("", "v1", "namespaces", "Namespace", CLUSTER);
export const NODES = ref<Node>("", "v1", "nodes", "Node", CLUSTER);
export const PERSISTENT_VOLUME_CLAIMS = ref<PersistentVolumeClaim>("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", NAMESPACED);
export const PERSISTENT_VOLUMES = ref<PersistentVolume>("", "v1", "persistentvolumes", "PersistentVolume", CLUSTER);
export const PODS = ref<Pod>("", "v1", "pods", "Pod", NAMESPACED);
export const REPLICATION_CONTROLLERS = ref<ReplicationController>("", "v1", "replicationcontrollers", "ReplicationController", NAMESPACED);
export const RESOURCE_QUOTAS = ref<ResourceQuota>("", "v1", "resourcequotas", "ResourceQuota", NAMESPACED);
export const SECRETS = ref<Secret>("", "v1", "secrets", "Secret", NAMESPACED);
export const SERVICE_ACCOUNTS = ref<ServiceAccount>("", "v1", "serviceaccounts", "ServiceAccount", NAMESPACED);
export const SERVICES = ref<Service>("", "v1", "services", "Service", NAMESPACED);

// admissionregistration.k8s.io/v1
export const MUTATING_ADMISSION_POLICIES = ref<MutatingAdmissionPolicy>("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", CLUSTER);
export const MUTATING_ADMISSION_POLICY_BINDINGS = ref<MutatingAdmissionPolicyBinding>("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", CLUSTER);
export const MUTATING_WEBHOOK_CONFIGURATIONS = ref<MutatingWebhookConfiguration>("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", CLUSTER);
export const VALIDATING_ADMISSION_POLICIES = ref<ValidatingAdmissionPolicy>("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", CLUSTER);
export const VALIDATING_ADMISSION_POLICY_BINDINGS = ref<ValidatingAdmissionPolicyBinding>("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", CLUSTER);
export const VALIDATING_WEBHOOK_CONFIGURATIONS = ref<ValidatingWebhookConfiguration>("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", CLUSTER);

// apiextensions.k8s.io/v1
export const CUSTOM_RESOURCE_DEFINITIONS = ref<CustomResourceDefinition>("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", CLUSTER);

// apiregistration.k8s.io/v1
export const API_SERVICES = ref<ApiObject>("apiregistration.k8s.io", "v1", "apiservices", "APIService", CLUSTER);

// apps/v1
export const CONTROLLER_REVISIONS = ref<ControllerRevision>("apps", "v1", "controllerrevisions", "ControllerRevision", NAMESPACED);
export const DAEMON_SETS = ref<DaemonSet>("apps", "v1", "daemonsets", "DaemonSet", NAMESPACED);
export const DEPLOYMENTS = ref<Deployment>("apps", "v1", "deployments", "Deployment", NAMESPACED);
export const REPLICA_SETS = ref<ReplicaSet>("apps", "v1", "replicasets", "ReplicaSet", NAMESPACED);
export const STATEFUL_SETS = ref<StatefulSet>("apps", "v1", "statefulsets", "StatefulSet", NAMESPACED);

// autoscaling/v2
export const HORIZONTAL_POD_AUTOSCALERS = ref<HorizontalPodAutoscaler>("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", NAMESPACED);

// batch/v1
export const CRON_JOBS = ref<CronJob>("batch", "v1", "cronjobs", "CronJob", NAMESPACED);
export const JOBS = ref<Job>("batch", "v1", "jobs", "Job", NAMESPACED);

// certificates.k8s.io/v1
export const CERTIFICATE_SIGNING_REQUESTS = ref<CertificateSigningRequest>("certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", CLUSTER);

// coordination.k8s.io/v1
export const LEASES = ref<Lease>("coordination.k8s.io", "v1", "leases", "Lease", NAMESPACED);

// discovery.k8s.io/v1
export const ENDPOINT_SLICES = ref<EndpointSlice>("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", NAMESPACED);

// flowcontrol.apiserver.k8s.io/v1
export const FLOW_SCHEMAS = ref<FlowSchema>("flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema", CLUSTER);
export const PRIORITY_LEVEL_CONFIGURATIONS = ref<PriorityLevelConfiguration>("flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations", "PriorityLevelConfiguration", CLUSTER);

// networking.k8s.io/v1
export const INGRESS_CLASSES = ref<IngressClass>("networking.k8s.io", "v1", "ingressclasses", "IngressClass", CLUSTER);
export const INGRESSES = ref<Ingress>("networking.k8s.io", "v1", "ingresses", "Ingress", NAMESPACED);
export const IP_ADDRESSES = ref<IPAddress>("networking.k8s.io", "v1", "ipaddresses", "IPAddress", CLUSTER);
export const NETWORK_POLICIES = ref<NetworkPolicy>("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", NAMESPACED);
export const SERVICE_CIDRS = ref<ServiceCIDR>("networking.k8s.io", "v1", "servicecidrs", "ServiceCIDR", CLUSTER);

// node.k8s.io/v1
export const RUNTIME_CLASSES = ref<RuntimeClass>("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", CLUSTER);

// policy/v1
export const POD_DISRUPTION_BUDGETS = ref<PodDisruptionBudget>("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", NAMESPACED);

// rbac.authorization.k8s.io/v1
export const CLUSTER_ROLE_BINDINGS = ref<ClusterRoleBinding>("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", CLUSTER);
export const CLUSTER_ROLES = ref<ClusterRole>("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", CLUSTER);
export const ROLE_BINDINGS = ref<RoleBinding>("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", NAMESPACED);
export const ROLES = ref<Role>("rbac.authorization.k8s.io", "v1", "roles", "Role", NAMESPACED);

// resource.k8s.io/v1alpha3
export const RESOURCE_POOL_STATUS_REQUESTS = ref<ResourcePoolStatusRequest>("resource.k8s.io", "v1alpha3", "resourcepoolstatusrequests", "ResourcePoolStatusRequest", CLUSTER);

// resource.k8s.io/v1beta2
export const DEVICE_TAINT_RULES = ref<DeviceTaintRule>("resource.k8s.io", "v1beta2", "devicetaintrules", "DeviceTaintRule", CLUSTER);

// resource.k8s.io/v1
export const DEVICE_CLASSES = ref<DeviceClass>("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", CLUSTER);
export const RESOURCE_CLAIMS = ref<ResourceClaim>("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", NAMESPACED);
export const RESOURCE_CLAIM_TEMPLATES = ref<ResourceClaimTemplate>("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", NAMESPACED);
export const RESOURCE_SLICES = ref<ResourceSlice>("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", CLUSTER);

// scheduling.k8s.io/v1
export const PRIORITY_CLASSES = ref<PriorityClass>("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", CLUSTER);

// storage.k8s.io/v1
export const CSI_DRIVERS = ref<CSIDriver>("storage.k8s.io", "v1", "csidrivers", "CSIDriver", CLUSTER);
export const CSI_NODES = ref<CSINode>("storage.k8s.io", "v1", "csinodes", "CSINode", CLUSTER);
export const CSI_STORAGE_CAPACITIES = ref<CSIStorageCapacity>("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity", NAMESPACED);
export const STORAGE_CLASSES = ref<StorageClass>("storage.k8s.io", "v1", "storageclasses", "StorageClass", CLUSTER);
export const VOLUME_ATTACHMENTS = ref<VolumeAttachment>("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", CLUSTER);
export const VOLUME_ATTRIBUTES_CLASSES = ref<VolumeAttributesClass>("storage.k8s.io", "v1", "volumeattributesclasses", "VolumeAttributesClass", CLUSTER);

// certificates.k8s.io/v1beta1, where it is switched on
export const CLUSTER_TRUST_BUNDLES = ref<ClusterTrustBundle>("certificates.k8s.io", "v1beta1", "clustertrustbundles", "ClusterTrustBundle", CLUSTER);
/** Served alone where v1beta1 is not. */
export const CLUSTER_TRUST_BUNDLES_ALPHA = ref<ClusterTrustBundle>("certificates.k8s.io", "v1alpha1", "clustertrustbundles", "ClusterTrustBundle", CLUSTER);
export const POD_CERTIFICATE_REQUESTS = ref<PodCertificateRequest>("certificates.k8s.io", "v1beta1", "podcertificaterequests", "PodCertificateRequest", NAMESPACED);

// storagemigration.k8s.io/v1beta1, where it is switched on
export const STORAGE_VERSION_MIGRATIONS = ref<StorageVersionMigration>("storagemigration.k8s.io", "v1beta1", "storageversionmigrations", "StorageVersionMigration", CLUSTER);

// coordination.k8s.io/v1beta1, where it is switched on
export const LEASE_CANDIDATES = ref<LeaseCandidate>("coordination.k8s.io", "v1beta1", "leasecandidates", "LeaseCandidate", NAMESPACED);

// internal.apiserver.k8s.io/v1alpha1, where it is switched on
export const STORAGE_VERSIONS = ref<StorageVersion>("internal.apiserver.k8s.io", "v1alpha1", "storageversions", "StorageVersion", CLUSTER);

// scheduling.k8s.io/v1alpha2, where it is switched on
export const POD_GROUPS = ref<PodGroup>("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup", NAMESPACED);
export const WORKLOADS = ref<Workload>("scheduling.k8s.io", "v1alpha2", "workloads", "Workload", NAMESPACED);
