/**
 * All admission plug-ins we have, in upstream's order, and which of them are on.
 *
 *   const chain = admissionChain(admissionPlugins({ client, informers, authorizer, … }));
 *
 * Webhooks and policies stand in webhook/ and policy/ and are given by the composition root, which knows how to reach them.
 *
 * Those of upstream's default set that act on resources behind gates are there where these are switched on.
 *
 * Source: kubernetes v1.36 pkg/kubeapiserver/options/plugins.go
 */
import { ifFound } from "../api/meta/if-found.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { builtInResources } from "../api/schema/resources.ts";
import type { Authorizer } from "../authz/authorizer.ts";
import type { EscalationCheck } from "../authz/escalation.ts";
import type { Client, ResourceRef } from "../client/client.ts";
import type { Informer } from "../client/informer.ts";
import type { Informers } from "../client/informer-factory.ts";
import { type Lookup, lookup } from "../client/lookup.ts";
import {
  CSI_DRIVERS, DEVICE_CLASSES, INGRESS_CLASSES, LIMIT_RANGES, MUTATING_ADMISSION_POLICIES, NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, POD_GROUPS, PODS, PRIORITY_CLASSES, RESOURCE_CLAIMS, RESOURCE_QUOTAS, RUNTIME_CLASSES, SERVICE_ACCOUNTS, STORAGE_CLASSES, VALIDATING_ADMISSION_POLICIES, WORKLOADS,
} from "../client/resources.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import type { ReviewServer } from "../net/review-call.ts";
import type { Metrics } from "../observe/metrics.ts";
import { alwaysAdmit, alwaysDeny } from "./always.ts";
import { alwaysPullImages } from "./always-pull-images.ts";
import { limitPodHardAntiAffinityTopology } from "./anti-affinity.ts";
import { certificateApproval, certificateSigning, certificateSubjectRestriction, clusterTrustBundleAttest, podCertificateSigning } from "./certificates.ts";
import { defaultIngressClass } from "./default-ingress-class.ts";
import { defaultTolerationSeconds, type DefaultTolerationSecondsOptions } from "./default-toleration-seconds.ts";
import { denyServiceExternalIps } from "./deny-service-external-ips.ts";
import { eventRateLimit, eventRateLimits } from "./event-rate-limit.ts";
import { extendedResourceToleration } from "./extended-resource-toleration.ts";
import { imagePolicy, imagePolicyWebhook } from "./image-policy.ts";
import { limitRanger } from "./limit-ranger.ts";
import { namespaceLifecycle } from "./namespace-lifecycle.ts";
import { namespaceAutoProvision, namespaceExists } from "./namespaces.ts";
import { nodeDeclaredFeatureValidator } from "./node-declared-features.ts";
import { nodeRestriction } from "./node-restriction.ts";
import { ownerReferencesPermissionEnforcement, type OwnerReferencesDeps } from "./owner-references.ts";
import type { AdmissionPlugin } from "./plugin.ts";
import { jobValidation, podGroupProtection, podGroupWorkloadExists } from "./pod-groups.ts";
import { podNodeSelector, podNodeSelectors } from "./pod-node-selector.ts";
import { podResizeValidator } from "./pod-resize-validator.ts";
import { podSecurityConfiguration } from "./pod-security/configuration.ts";
import { podSecurity } from "./pod-security/pod-security.ts";
import { podTolerationRestriction, tolerationRestriction } from "./pod-toleration-restriction.ts";
import { podTopologyLabels } from "./pod-topology-labels.ts";
import { type Policy, policyParams } from "./policy-params.ts";
import { priorityAdmission } from "./priority.ts";
import { limitedResources } from "./quota-limits.ts";
import { rbacEscalation } from "./rbac-escalation.ts";
import { resourceQuotaAdmission } from "./resource-quota.ts";
import { runtimeClassAdmission } from "./runtime-class.ts";
import { serviceAccountAdmission } from "./service-account.ts";
import { defaultStorageClass, persistentVolumeClaimResize, storageObjectInUseProtection } from "./storage.ts";
import { taintNodesByCondition } from "./taint-nodes-by-condition.ts";

/** Off unless enabled by name. NodeRestriction is on, other than upstream, because our kubelets expect it, as kubeadm's do. */
const DEFAULT_OFF: ReadonlySet<string> = new Set([
  "AlwaysAdmit", "NamespaceAutoProvision", "NamespaceExists", "LimitPodHardAntiAffinityTopology", "AlwaysPullImages", "ImagePolicyWebhook", "PodNodeSelector", "PodTolerationRestriction", "EventRateLimit",
  "ExtendedResourceToleration", "OwnerReferencesPermissionEnforcement", "DenyServiceExternalIPs", "AlwaysDeny",
]);
const IMAGE_POLICY = "ImagePolicyWebhook";
/** Upstream's that are only there where their gate is switched on, and in no cluster's way elsewhere. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set(["PodGroupProtection", "PodGroupWorkloadExists", "JobValidation"]);

export interface AdmissionDeps {
  /** Nodes may ask for certificates for their pods; default: none may. */
  readonly certifiesPods?: boolean;
  /** PodGroups and Workloads are served; default: they are not. */
  readonly groupsPods?: boolean;
  /** PodGroups have priorities; default: they have none. */
  readonly preemptsGroups?: boolean;
  /** As a member of system:masters. */
  readonly client: Client;
  /** Over the same client. */
  readonly informers: Pick<Informers, "of">;
  readonly authorizer: Authorizer;
  /** escalationGuard(authorizer, resolver, clock) */
  readonly escalationGuard: (check: EscalationCheck) => Promise<void>;
  /** Which resources a kind may be; without it, only those built in are known. */
  readonly resourcesOf?: OwnerReferencesDeps["resourcesOf"];
  readonly clock: Clock;
  readonly random: Random;
  /** --enable-admission-plugins, --disable-admission-plugins */
  readonly enabled?: readonly string[];
  readonly disabled?: readonly string[];
  readonly tolerationSeconds?: DefaultTolerationSecondsOptions;
  /** --admission-control-config-file, as admissionConfiguration reads it. */
  readonly configurations?: ReadonlyMap<string, unknown>;
  readonly metrics?: Metrics;
  /** Whom a kubeconfig file names, for ImagePolicyWebhook. */
  readonly reviewServer?: (kubeconfigFile: string) => ReviewServer;
  /** mutatingPolicies(…), mutatingWebhooks(…), validatingPolicies(…), validatingWebhooks(…) */
  readonly webhooks?: readonly AdmissionPlugin[];
}

/** Throws for a name that is no plug-in's. */
export function admissionPlugins(deps: AdmissionDeps): AdmissionPlugin[] {
  const { enabled = [], disabled = [], configurations = new Map() } = deps;
  const all = orderedPlugins(deps);
  for (const name of [...enabled, ...disabled, ...configurations.keys()])
    if (!all.some((plugin) => plugin.name === name) && !WITHOUT_EFFECT.has(name)) throw new Error(`admission plugin ${name} is not known; there are ${all.map((plugin) => plugin.name).sort().join(", ")}`);
  if (enabled.includes(IMAGE_POLICY) && !configurations.has(IMAGE_POLICY)) throw new Error(`configuration of admission plugin ${IMAGE_POLICY}: no config specified`);
  for (const name of enabled) if (disabled.includes(name)) throw new Error(`admission plugin ${name} is both enabled and disabled`);
  const on = ({ name }: AdmissionPlugin): boolean => !disabled.includes(name) && (enabled.includes(name) || !DEFAULT_OFF.has(name));
  return [policyParamsOf(deps), ...all.filter(on), rbacEscalation(deps.escalationGuard), podCertificateSigning(deps.authorizer)];
}

function policyParamsOf({ client, authorizer, resourcesOf = builtInResourcesOf }: AdmissionDeps): AdmissionPlugin {
  const kinds = new Map([MUTATING_ADMISSION_POLICIES, VALIDATING_ADMISSION_POLICIES].map((ref) => [ref.plural, ref]));
  return policyParams({
    authorizer, resourcesOf,
    policy: async (resource, name, signal) => await ifFound(client.resource(kinds.get(resource)!).get({ metadata: { name } }, { signal })) as Policy | undefined, // as it is now: what one was a moment ago might be read by others
  });
}

function orderedPlugins({ certifiesPods = false, groupsPods = false, preemptsGroups = false, client, informers, authorizer, resourcesOf = builtInResourcesOf, clock, random, tolerationSeconds, webhooks = [], configurations, metrics, reviewServer }: AdmissionDeps): AdmissionPlugin[] {
  const informer = <T extends ApiObject>(ref: ResourceRef<T>): Informer<T> => informers.of(ref);
  const find = <T extends ApiObject>(ref: ResourceRef<T>): Lookup<T> => lookup(informer(ref), client.resource(ref));
  const configured = <T>(name: string, read: (configuration: unknown) => T): T => {
    try {
      return read(configurations?.get(name));
    } catch (error) {
      throw new Error(`configuration of admission plugin ${name}: ${(error as Error).message}`);
    }
  };
  const nodes = find(NODES);
  const namespaces = find(NAMESPACES);
  return [
    alwaysAdmit,
    namespaceAutoProvision({ namespaces, client: client.resource(NAMESPACES) }),
    namespaceLifecycle({ namespaces: informer(NAMESPACES), client: client.resource(NAMESPACES), clock }),
    namespaceExists({ namespaces }),
    limitPodHardAntiAffinityTopology,
    limitRanger({ limitRanges: informer(LIMIT_RANGES), client: client.resource(LIMIT_RANGES) }),
    serviceAccountAdmission({ serviceAccounts: find(SERVICE_ACCOUNTS), clock, random }),
    nodeRestriction({ pods: find(PODS), nodes, claims: find(PERSISTENT_VOLUME_CLAIMS), volumes: find(PERSISTENT_VOLUMES), csiDrivers: find(CSI_DRIVERS), serviceAccounts: find(SERVICE_ACCOUNTS), authorizer, certifiesPods }),
    taintNodesByCondition,
    alwaysPullImages,
    configured(IMAGE_POLICY, (given) => {
      const settings = imagePolicy(given);
      return settings && reviewServer ? imagePolicyWebhook({ settings, server: reviewServer(settings.kubeconfigFile), clock }) : { name: IMAGE_POLICY, handles: () => false };
    }),
    podSecurity({ namespaces, pods: informer(PODS), configuration: configured("PodSecurity", podSecurityConfiguration), clock, metrics }),
    podNodeSelector({ namespaces, selectors: configured("PodNodeSelector", podNodeSelectors) }),
    priorityAdmission({ priorityClasses: find(PRIORITY_CLASSES), informer: informer(PRIORITY_CLASSES), client: client.resource(PRIORITY_CLASSES), ofGroups: preemptsGroups }),
    defaultTolerationSeconds(tolerationSeconds),
    podTolerationRestriction({ namespaces, restriction: configured("PodTolerationRestriction", tolerationRestriction) }),
    eventRateLimit({ limits: configured("EventRateLimit", eventRateLimits), clock }),
    extendedResourceToleration,
    defaultStorageClass({ storageClasses: informer(STORAGE_CLASSES), client: client.resource(STORAGE_CLASSES) }),
    storageObjectInUseProtection,
    ...(groupsPods ? [podGroupProtection] : []),
    ownerReferencesPermissionEnforcement({ authorizer, resourcesOf }),
    persistentVolumeClaimResize({ storageClasses: find(STORAGE_CLASSES) }),
    runtimeClassAdmission({ runtimeClasses: find(RUNTIME_CLASSES) }),
    certificateApproval(authorizer),
    certificateSigning(authorizer),
    clusterTrustBundleAttest(authorizer),
    certificateSubjectRestriction,
    defaultIngressClass({ ingressClasses: informer(INGRESS_CLASSES), client: client.resource(INGRESS_CLASSES) }),
    denyServiceExternalIps,
    podTopologyLabels({ nodes }),
    ...(groupsPods ? [podGroupWorkloadExists({ workloads: find(WORKLOADS) })] : []),
    nodeDeclaredFeatureValidator({ nodes }),
    ...(groupsPods ? [jobValidation({ podGroups: find(POD_GROUPS), informer: informer(POD_GROUPS), client: client.resource(POD_GROUPS) })] : []),
    podResizeValidator({ nodes }),
    ...webhooks,
    resourceQuotaAdmission({
      quotas: informer(RESOURCE_QUOTAS), client: client.resource(RESOURCE_QUOTAS), clock, limited: configured("ResourceQuota", limitedResources),
      around: { classes: informer(DEVICE_CLASSES), pods: informer(PODS), claims: informer(RESOURCE_CLAIMS) },
    }), // last: what it lets through is noted
    alwaysDeny,
  ];
}

const builtInResourcesOf: OwnerReferencesDeps["resourcesOf"] = ({ group, version, kind }) =>
  builtInResources.rows().filter((row) => row.group === group && row.version === version && row.kind === kind);
