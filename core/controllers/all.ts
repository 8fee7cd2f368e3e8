/**
 * Every controller of the cluster, as parts to run. What each does stands in the header of its file.
 *
 *   runAll([informers, events, ...allControllers({ … })], signal)
 */
import type { Runnable } from "../lifecycle/run-all.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import { attachDetachController } from "./attachdetach/attachdetach.ts";
import { type AuthorityFor, csrApprovingController, csrCleanerController, csrSigningController } from "./certificates/certificates.ts";
import { clusterRoleAggregationController } from "./clusterroleaggregation/clusterroleaggregation.ts";
import { cronJobController } from "./cronjob/cronjob.ts";
import { daemonSetController } from "./daemonset/daemonset.ts";
import type { Controller } from "./controller.ts";
import type { ControllerDeps } from "./deps.ts";
import { deploymentController } from "./deployment/deployment.ts";
import { deviceTaintEvictionController } from "./devicetainteviction/devicetainteviction.ts";
import { disruptionControllers } from "./disruption/disruption.ts";
import { endpointsController } from "./endpoints/endpoints.ts";
import { endpointSliceController } from "./endpointslice/endpointslice.ts";
import { endpointSliceMirroringController } from "./endpointslicemirroring/endpointslicemirroring.ts";
import { ephemeralVolumeController } from "./ephemeralvolume/ephemeralvolume.ts";
import { garbageCollector } from "./garbagecollector/garbagecollector.ts";
import { horizontalPodAutoscalingController } from "./horizontalpodautoscaling/horizontalpodautoscaling.ts";
import { AUTOSCALING, type AutoscalingSettings } from "./horizontalpodautoscaling/settings.ts";
import { gatewaySource } from "../ingress/gateway-source.ts";
import { gatewayController } from "./ingress/gateway.ts";
import { ingressController } from "./ingress/ingress.ts";
import { jobControllers } from "./job/job.ts";
import { localStorageController } from "./localstorage/localstorage.ts";
import { namespaceController } from "./namespace/namespace.ts";
import { type NodeIpamConfig, nodeIpamController } from "./nodeipam/nodeipam.ts";
import { nodeLifecycleControllers } from "./nodelifecycle/nodelifecycle.ts";
import { NODE_LIFECYCLE, type NodeLifecycleSettings } from "./nodelifecycle/plan.ts";
import { podGcController } from "./podgc/podgc.ts";
import { claimProtectionController, classProtectionController, volumeProtectionController } from "./protection/protection.ts";
import { replicaSetController, replicationController } from "./replicaset/replicaset.ts";
import { resourceClaimControllers } from "./resourceclaim/resourceclaim.ts";
import { resourceQuotaController } from "./resourcequota/resourcequota.ts";
import { rootCaController } from "./rootca/rootca.ts";
import { controllerMetrics, runController } from "./run-controller.ts";
import { serviceAccountController } from "./serviceaccount/serviceaccount.ts";
import { type LegacyTokens, serviceAccountTokensController } from "./serviceaccount/serviceaccount-tokens.ts";
import { legacyTokenCleanerController } from "./serviceaccount/legacy-token-cleaner.ts";
import { tokenCleanerController } from "./serviceaccount/token-cleaner.ts";
import type { ReservedPort } from "./servicelb/plan.ts";
import { serviceLbController } from "./servicelb/servicelb.ts";
import { serviceAddressController } from "./servicecidr/ipaddresses.ts";
import { serviceCidrController } from "./servicecidr/servicecidr.ts";
import { statefulSetController } from "./statefulset/statefulset.ts";
import { taintEvictionController } from "./tainteviction/tainteviction.ts";
import { ttlController } from "./ttl/ttl.ts";
import { ttlAfterFinishedController } from "./ttlafterfinished/ttlafterfinished.ts";
import { validatingAdmissionPolicyStatusController } from "./validatingadmissionpolicystatus/validatingadmissionpolicystatus.ts";
import { volumeBinder } from "./volume/volume.ts";
import { volumeExpandController } from "./volumeexpand/volumeexpand.ts";

export interface AllControllersDeps extends ControllerDeps {
  readonly log: Log;
  readonly metrics?: Metrics | undefined;
  /** PEM certificates of those who sign the API server's certificate: for pods. */
  readonly rootCa: () => string;
  /** Absent: nodes get no pod addresses from us. */
  readonly nodeIpam?: NodeIpamConfig | undefined;
  readonly nodeLifecycle?: Partial<NodeLifecycleSettings> | undefined;
  readonly autoscaling?: Partial<AutoscalingSettings> | undefined;
  /** --terminated-pod-gc-threshold */
  readonly terminatedPodsMax?: number | undefined;
  /** --cluster-signing-duration */
  readonly signingMs?: number | undefined;
  /** --max-endpoints-per-slice */
  readonly perSliceMax?: number | undefined;
  /** --resource-quota-sync-period */
  readonly quotaResyncMs?: number | undefined;
  /** How many keys controllers work on at once, by their names: --concurrent-*-syncs. */
  readonly workers?: Readonly<Record<string, number>> | undefined;
  /** Not --disable-force-detach-on-timeout; default: true. */
  readonly forceDetach?: boolean | undefined;
  /** Provisions volumes of the class local-path. */
  readonly localStorage?: boolean | undefined;
  /** Serves Services of type LoadBalancer at the nodes' addresses, except at these ports; absent: somebody else does. */
  readonly serviceLb?: { readonly reserved: readonly ReservedPort[] } | undefined;
  /** Makes requests arrive at the nodes' ingress, and says where; absent: nodes have none. */
  readonly ingress?: boolean | undefined;
  /** Signs CertificateSigningRequests of these signer names; absent: none are signed. */
  readonly authorityFor?: AuthorityFor | undefined;
  /** Approves serving certificates that a node asks for itself, for the names its Node has. Upstream leaves that to the administrator. */
  readonly approveServing?: boolean | undefined;
  /** Fills Secrets of type kubernetes.io/service-account-token; absent: they are left as they are. */
  readonly tokenFor?: LegacyTokens | undefined;
}

export function allControllers(deps: AllControllersDeps): readonly Runnable[] {
  const { clock, log, rootCa, tokenFor, nodeIpam, authorityFor, approveServing = false, localStorage = true, serviceLb, ingress = false } = deps;
  const metrics = deps.metrics === undefined ? undefined : controllerMetrics(deps.metrics);
  const controllers = [
    deploymentController(deps), replicaSetController(deps), replicationController(deps),
    daemonSetController(deps), statefulSetController(deps), cronJobController(deps), ...jobControllers(deps), ttlAfterFinishedController(deps),
    endpointsController(deps), endpointSliceController(deps), endpointSliceMirroringController(deps), ...(serviceLb === undefined ? [] : [serviceLbController({ ...deps, ...serviceLb })]), ...(ingress ? ingressControllers(deps, serviceLb?.reserved) : []),
    namespaceController(deps), serviceAccountController(deps), rootCaController({ ...deps, rootCa }), tokenCleanerController(deps), legacyTokenCleanerController(deps),
    ...nodeLifecycleControllers({ ...deps, settings: { ...NODE_LIFECYCLE, ...deps.nodeLifecycle } }), taintEvictionController(deps), podGcController({ ...deps, terminatedMax: deps.terminatedPodsMax }),
    ...(nodeIpam === undefined ? [] : [nodeIpamController({ ...deps, config: nodeIpam })]),
    ttlController(deps), clusterRoleAggregationController(deps),
    validatingAdmissionPolicyStatusController(deps),
    csrApprovingController({ ...deps, approveServing }), csrCleanerController(deps), ...(authorityFor === undefined ? [] : [csrSigningController({ ...deps, authorityFor, lifetimeMs: deps.signingMs })]),
    horizontalPodAutoscalingController({ ...deps, autoscaling: { ...AUTOSCALING, ...deps.autoscaling } }), ...disruptionControllers(deps), resourceQuotaController({ ...deps, resyncMs: deps.quotaResyncMs }), ...resourceClaimControllers(deps), deviceTaintEvictionController(deps), serviceCidrController(deps), serviceAddressController(deps),
    volumeBinder(deps), attachDetachController(deps), volumeExpandController(deps), ephemeralVolumeController(deps), ...(localStorage ? [localStorageController(deps)] : []), claimProtectionController(deps), volumeProtectionController(deps), classProtectionController(deps),
    ...(tokenFor === undefined ? [] : [serviceAccountTokensController({ ...deps, rootCa, tokenFor })]),
  ];
  const { workers = {} } = deps;
  return [garbageCollector({ ...deps, metrics, workers: workers["garbage_collector"] }), ...controllers.map((controller) => runController({ ...controller, workers: workers[controller.name] ?? controller.workers }, { clock, log, metrics }))];
}

function ingressControllers(deps: ControllerDeps, reserved: readonly ReservedPort[] | undefined): Controller[] {
  const gateways = gatewaySource(deps.informers);
  return [ingressController({ ...deps, gateways, reserved }), gatewayController({ ...deps, source: gateways, reserved })];
}
