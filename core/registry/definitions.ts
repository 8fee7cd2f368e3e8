/**
 * Every kind that has a definition, in one list.
 *
 * A kind that is missing here is served all the same, with nothing but what core/api/schema knows of it.
 */
import type { Service } from "../api/gen/core.v1.ts";
import type { IPAddress, ServiceCIDR } from "../api/gen/networking.v1.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import type { Random } from "../lifecycle/random.ts";
import { mutatingAdmissionPolicies, mutatingAdmissionPolicyBindings, validatingAdmissionPolicies, validatingAdmissionPolicyBindings } from "./admissionregistration/admission-policy.ts";
import { mutatingWebhookConfigurations, validatingWebhookConfigurations } from "./admissionregistration/webhook-configuration.ts";
import { customResourceDefinitions } from "./apiextensions/custom-resource-definition.ts";
import { apiServices } from "./apiregistration/api-service.ts";
import { controllerRevisions } from "./apps/controller-revision.ts";
import { daemonSets } from "./apps/daemon-set.ts";
import { deployments } from "./apps/deployment.ts";
import { replicaSets } from "./apps/replica-set.ts";
import { statefulSetDefinition } from "./apps/stateful-set.ts";
import { horizontalPodAutoscalerDefinition } from "./autoscaling/horizontal-pod-autoscaler.ts";
import { cronJobs } from "./batch/cron-job.ts";
import { jobs } from "./batch/job.ts";
import { certificateSigningRequests } from "./certificates/certificate-signing-request.ts";
import { clusterTrustBundles } from "./certificates/cluster-trust-bundle.ts";
import { podCertificateRequests } from "./certificates/pod-certificate-request.ts";
import { storageVersions } from "./apiserverinternal/storage-version.ts";
import { leaseCandidates } from "./coordination/lease-candidate.ts";
import { leaseDefinition } from "./coordination/lease.ts";
import { configMaps } from "./core/config-map.ts";
import { endpoints } from "./core/endpoints.ts";
import { events } from "./core/event.ts";
import { limitRanges } from "./core/limit-range.ts";
import { namespaces } from "./core/namespace.ts";
import { nodes } from "./core/node.ts";
import { persistentVolumeClaims } from "./core/persistent-volume-claim/persistent-volume-claim.ts";
import { persistentVolumes } from "./core/persistent-volume/persistent-volume.ts";
import { pods } from "./core/pod/pod.ts";
import { keepFieldsOf } from "./generic/switched-on.ts";
import { podTemplates } from "./core/pod-template.ts";
import { replicationControllers } from "./core/replication-controller.ts";
import { resourceQuotas } from "./core/resource-quota.ts";
import { secrets } from "./core/secret.ts";
import { serviceAccounts } from "./core/service-account.ts";
import type { AddressClient } from "./core/service/allocator/address-objects.ts";
import type { AllocationMeter } from "./core/service/allocator/allocation-metrics.ts";
import type { Claims } from "./core/service/allocator/claims.ts";
import { parsePortRange } from "./core/service/allocator/port-range.ts";
import { serviceDefinition } from "./core/service/service.ts";
import { endpointSlices } from "./discovery/endpoint-slice.ts";
import { events as eventsV1 } from "./events/event.ts";
import { flowSchemas } from "./flowcontrol/flow-schema.ts";
import { priorityLevelConfigurations } from "./flowcontrol/priority-level.ts";
import type { Resource } from "./generic/resource.ts";
import type { ResourceStore } from "./generic/store.ts";
import { ipAddresses, serviceRanges } from "./networking/addresses.ts";
import { ingressClasses } from "./networking/ingress-class.ts";
import { ingresses } from "./networking/ingress.ts";
import { networkPolicies } from "./networking/network-policy.ts";
import { runtimeClasses } from "./node/runtime-class.ts";
import { podDisruptionBudgets } from "./policy/pod-disruption-budget.ts";
import { clusterRoleBindings, roleBindings } from "./rbac/bindings.ts";
import { clusterRoles, roles } from "./rbac/roles.ts";
import { deviceClasses } from "./resource/device-class.ts";
import { deviceTaintRules } from "./resource/device-taint-rule.ts";
import { resourceClaims, resourceClaimTemplates } from "./resource/resource-claim.ts";
import { resourcePoolStatusRequests } from "./resource/resource-pool-status-request.ts";
import { resourceSlices } from "./resource/resource-slice.ts";
import { priorityClasses } from "./scheduling/priority-class.ts";
import { podGroupDefinition, workloadDefinition } from "./scheduling/workload.ts";
import { csiDrivers } from "./storage/csi-driver.ts";
import { csiNodes } from "./storage/csi-node.ts";
import { csiStorageCapacities } from "./storage/csi-storage-capacity.ts";
import { storageClasses, volumeAttributesClasses } from "./storage/storage-class.ts";
import { volumeAttachments } from "./storage/volume-attachment.ts";
import { storageVersionMigrations } from "./storagemigration/storage-version-migration.ts";

interface Options {
  /** One range, or one of each family; the first is the family services get when they do not ask. */
  readonly serviceCidrs: readonly string[];
  /** "30000-32767", as the flag is written. */
  readonly nodePortRange: string;
  /** Where objects of a resource are. Asked only when something is written, because there is no store before there are definitions. */
  readonly storeOf: (group: string, plural: string) => ResourceStore | undefined;
  readonly random: Random;
  /** Where other servers write to the same store. */
  readonly claims?: Claims | undefined;
  readonly allocations?: AllocationMeter | undefined;
  /** Who makes and deletes the objects of services' addresses. Without it there are none. */
  readonly ipAddresses?: AddressClient | undefined;
  /** Feature gates that are off by default and were switched on. */
  readonly gates?: ReadonlySet<string> | undefined;
}

export function registryDefinitions({ serviceCidrs, nodePortRange, storeOf, random, claims, allocations, ipAddresses: client, gates = new Set() }: Options): readonly Resource[] {
  keepFieldsOf(gates);
  const services = serviceDefinition({
    serviceCidrs, random, nodePortRange: parsePortRange(nodePortRange), claims, meter: allocations,
    existing: () => objectsOf<Service>(storeOf("", "services")),
    ranges: () => objectsOf<ServiceCIDR>(storeOf("networking.k8s.io", "servicecidrs")),
    addresses: () => objectsOf<IPAddress>(storeOf("networking.k8s.io", "ipaddresses")),
    addressObjects: client && { client, find: (name) => storeOf("networking.k8s.io", "ipaddresses")?.select({ namespace: "", name })[0]?.object as IPAddress | undefined },
  });
  const namespaceLabels = (name: string): Readonly<Record<string, string>> => {
    const [namespace] = storeOf("", "namespaces")?.select({ namespace: "", name }) ?? [];
    return namespace?.object.metadata.labels ?? {};
  };
  return [
    any(namespaces), any(nodes), any(pods), any(services), any(endpoints), any(configMaps), any(secrets), any(serviceAccounts), any(events),
    any(persistentVolumes), any(persistentVolumeClaims), any(replicationControllers), any(podTemplates), any(resourceQuotas), any(limitRanges),
    any(deployments), any(replicaSets), any(statefulSetDefinition({ maxUnavailable: gates.has("MaxUnavailableStatefulSet") })), any(daemonSets), any(controllerRevisions), any(jobs), any(cronJobs),
    any(leaseDefinition({ coordinated: gates.has("CoordinatedLeaderElection") })), any(leaseCandidates), any(endpointSlices), any(runtimeClasses), any(priorityClasses), any(workloadDefinition(gates)), any(podGroupDefinition(gates)),
    any(ingresses), any(ingressClasses), any(networkPolicies), any(serviceRanges), any(ipAddresses), any(podDisruptionBudgets),
    any(storageClasses), any(volumeAttributesClasses), any(volumeAttachments), any(csiDrivers), any(csiNodes), any(csiStorageCapacities),
    any(customResourceDefinitions), any(apiServices), any(certificateSigningRequests), any(clusterTrustBundles), any(podCertificateRequests), any(eventsV1), any(horizontalPodAutoscalerDefinition({ toZero: gates.has("HPAScaleToZero") })),
    any(mutatingAdmissionPolicies), any(mutatingAdmissionPolicyBindings), any(validatingAdmissionPolicies), any(validatingAdmissionPolicyBindings),
    any(mutatingWebhookConfigurations), any(validatingWebhookConfigurations), any(flowSchemas), any(priorityLevelConfigurations),
    any(deviceClasses), any(resourceClaims(namespaceLabels)), any(resourceClaimTemplates(namespaceLabels)), any(resourceSlices), any(deviceTaintRules), any(resourcePoolStatusRequests), any(storageVersions), any(storageVersionMigrations),
    any(roles), any(clusterRoles), any(roleBindings), any(clusterRoleBindings),
  ];
}

function* objectsOf<T extends ApiObject>(store: ResourceStore | undefined): Iterable<Readonly<T>> {
  for (const { object } of store?.select({ namespace: "" }) ?? []) yield object as T;
}

/** A definition among others: nobody gives it objects but of its own kind. */
function any<T extends ApiObject>(definition: Resource<T>): Resource {
  return definition as unknown as Resource;
}
