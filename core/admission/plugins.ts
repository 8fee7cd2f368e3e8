/**
 * All admission plug-ins we have, in upstream's order, and which of them are on.
 *
 *   const chain = admissionChain(admissionPlugins({ client, informers, authorizer, … }));
 *
 * The webhooks stand in webhook/ and are given by the composition root, which knows how to reach them.
 *
 * Those of upstream's default set that are not here: PodSecurity and the CEL policies; PodGroupProtection, ClusterTrustBundleAttest, PodGroupWorkloadExists, JobValidation,
 * NodeDeclaredFeatureValidator, which act on resources or fields behind gates that are off.
 *
 * Source: kubernetes v1.36 pkg/kubeapiserver/options/plugins.go
 */
import type { ApiObject } from "../api/meta/object-meta.ts";
import { builtInResources } from "../api/schema/resources.ts";
import type { Authorizer } from "../authz/authorizer.ts";
import type { EscalationCheck } from "../authz/escalation.ts";
import type { Client, ResourceRef } from "../client/client.ts";
import type { Informer } from "../client/informer.ts";
import type { Informers } from "../client/informer-factory.ts";
import { type Lookup, lookup } from "../client/lookup.ts";
import {
  CSI_DRIVERS, INGRESS_CLASSES, LIMIT_RANGES, NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, PRIORITY_CLASSES, RESOURCE_QUOTAS, RUNTIME_CLASSES, SERVICE_ACCOUNTS, STORAGE_CLASSES,
} from "../client/resources.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import { alwaysPullImages } from "./always-pull-images.ts";
import { certificateApproval, certificateSigning, certificateSubjectRestriction } from "./certificates.ts";
import { defaultIngressClass } from "./default-ingress-class.ts";
import { defaultTolerationSeconds, type DefaultTolerationSecondsOptions } from "./default-toleration-seconds.ts";
import { denyServiceExternalIps } from "./deny-service-external-ips.ts";
import { limitRanger } from "./limit-ranger.ts";
import { namespaceLifecycle } from "./namespace-lifecycle.ts";
import { nodeRestriction } from "./node-restriction.ts";
import { ownerReferencesPermissionEnforcement, type OwnerReferencesDeps } from "./owner-references.ts";
import type { AdmissionPlugin } from "./plugin.ts";
import { podResizeValidator } from "./pod-resize-validator.ts";
import { podTopologyLabels } from "./pod-topology-labels.ts";
import { priorityAdmission } from "./priority.ts";
import { rbacEscalation } from "./rbac-escalation.ts";
import { resourceQuotaAdmission } from "./resource-quota.ts";
import { runtimeClassAdmission } from "./runtime-class.ts";
import { serviceAccountAdmission } from "./service-account.ts";
import { defaultStorageClass, persistentVolumeClaimResize, storageObjectInUseProtection } from "./storage.ts";
import { taintNodesByCondition } from "./taint-nodes-by-condition.ts";

/** Off unless enabled by name. NodeRestriction is on, other than upstream, because our kubelets expect it, as kubeadm's do. */
const DEFAULT_OFF: ReadonlySet<string> = new Set(["AlwaysPullImages", "OwnerReferencesPermissionEnforcement", "DenyServiceExternalIPs"]);

export interface AdmissionDeps {
  /** As a member of system:masters. */
  readonly client: Client;
  /** Over the same client. */
  readonly informers: Pick<Informers, "of">;
  readonly authorizer: Authorizer;
  /** escalationGuard(authorizer, resolver) */
  readonly escalationGuard: (check: EscalationCheck) => Promise<void>;
  /** Which resources a kind may be; without it, only those built in are known. */
  readonly resourcesOf?: OwnerReferencesDeps["resourcesOf"];
  readonly clock: Clock;
  readonly random: Random;
  /** --enable-admission-plugins, --disable-admission-plugins */
  readonly enabled?: readonly string[];
  readonly disabled?: readonly string[];
  readonly tolerationSeconds?: DefaultTolerationSecondsOptions;
  /** mutatingWebhooks(…) and validatingWebhooks(…) */
  readonly webhooks?: readonly AdmissionPlugin[];
}

/** Throws for a name that is no plug-in's. */
export function admissionPlugins(deps: AdmissionDeps): AdmissionPlugin[] {
  const { enabled = [], disabled = [] } = deps;
  const all = orderedPlugins(deps);
  for (const name of [...enabled, ...disabled]) if (!all.some((plugin) => plugin.name === name)) throw new Error(`admission plugin ${name} is not known; there are ${all.map((plugin) => plugin.name).sort().join(", ")}`);
  const on = ({ name }: AdmissionPlugin): boolean => !disabled.includes(name) && (enabled.includes(name) || !DEFAULT_OFF.has(name));
  return [...all.filter(on), rbacEscalation(deps.escalationGuard)];
}

function orderedPlugins({ client, informers, authorizer, resourcesOf = builtInResourcesOf, clock, random, tolerationSeconds, webhooks = [] }: AdmissionDeps): AdmissionPlugin[] {
  const informer = <T extends ApiObject>(ref: ResourceRef<T>): Informer<T> => informers.of(ref);
  const find = <T extends ApiObject>(ref: ResourceRef<T>): Lookup<T> => lookup(informer(ref), client.resource(ref));
  const nodes = find(NODES);
  return [
    namespaceLifecycle({ namespaces: informer(NAMESPACES), client: client.resource(NAMESPACES), clock }),
    limitRanger({ limitRanges: informer(LIMIT_RANGES), client: client.resource(LIMIT_RANGES) }),
    serviceAccountAdmission({ serviceAccounts: find(SERVICE_ACCOUNTS), clock, random }),
    nodeRestriction({ pods: find(PODS), nodes, claims: find(PERSISTENT_VOLUME_CLAIMS), volumes: find(PERSISTENT_VOLUMES), csiDrivers: find(CSI_DRIVERS), authorizer }),
    taintNodesByCondition,
    alwaysPullImages,
    priorityAdmission({ priorityClasses: find(PRIORITY_CLASSES), informer: informer(PRIORITY_CLASSES), client: client.resource(PRIORITY_CLASSES) }),
    defaultTolerationSeconds(tolerationSeconds),
    defaultStorageClass({ storageClasses: informer(STORAGE_CLASSES), client: client.resource(STORAGE_CLASSES) }),
    storageObjectInUseProtection,
    ownerReferencesPermissionEnforcement({ authorizer, resourcesOf }),
    persistentVolumeClaimResize({ storageClasses: find(STORAGE_CLASSES) }),
    runtimeClassAdmission({ runtimeClasses: find(RUNTIME_CLASSES) }),
    certificateApproval(authorizer),
    certificateSigning(authorizer),
    certificateSubjectRestriction,
    defaultIngressClass({ ingressClasses: informer(INGRESS_CLASSES), client: client.resource(INGRESS_CLASSES) }),
    denyServiceExternalIps,
    podTopologyLabels({ nodes }),
    podResizeValidator({ nodes }),
    ...webhooks,
    resourceQuotaAdmission({ quotas: informer(RESOURCE_QUOTAS), client: client.resource(RESOURCE_QUOTAS), clock }), // last: what it lets through is noted
  ];
}

const builtInResourcesOf: OwnerReferencesDeps["resourcesOf"] = ({ group, version, kind }) =>
  builtInResources.rows().filter((row) => row.group === group && row.version === version && row.kind === kind);
