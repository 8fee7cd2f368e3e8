/**
 * Every controller of the cluster, as parts to run. What each does stands in the header of its file.
 *
 *   runAll([informers, events, ...allControllers({ … })], signal)
 */
import type { ClusterTrustBundle } from "../api/gen/certificates.v1beta1.ts";
import type { ResourceRef } from "../client/client.ts";
import { aborted } from "../lifecycle/aborted.ts";
import { clockJumps } from "../lifecycle/clock-jumps.ts";
import type { Runnable } from "../lifecycle/run-all.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import { addonsController } from "./addons/addons.ts";
import type { ManifestFiles } from "./addons/manifest-directory.ts";
import { attachDetachController } from "./attachdetach/attachdetach.ts";
import { type AuthorityFor, csrApprovingController, csrCleanerController, csrSigningController } from "./certificates/certificates.ts";
import { podCertificateRequestCleaner } from "./certificates/pod-certificate-requests.ts";
import { clusterRoleAggregationController } from "./clusterroleaggregation/clusterroleaggregation.ts";
import { cronJobController } from "./cronjob/cronjob.ts";
import { daemonSetController } from "./daemonset/daemonset.ts";
import type { Controller } from "./controller.ts";
import type { ControllerDeps } from "./deps.ts";
import { deploymentController } from "./deployment/deployment.ts";
import { deviceTaintEvictionControllers } from "./devicetainteviction/devicetainteviction.ts";
import { disruptionControllers } from "./disruption/disruption.ts";
import { endpointsController } from "./endpoints/endpoints.ts";
import { endpointSliceController } from "./endpointslice/endpointslice.ts";
import { endpointSliceMirroringController } from "./endpointslicemirroring/endpointslicemirroring.ts";
import { ephemeralVolumeController } from "./ephemeralvolume/ephemeralvolume.ts";
import { garbageCollector, WORKERS as COLLECTING_WORKERS } from "./garbagecollector/garbagecollector.ts";
import { horizontalPodAutoscalingController } from "./horizontalpodautoscaling/horizontalpodautoscaling.ts";
import { AUTOSCALING, type AutoscalingSettings } from "./horizontalpodautoscaling/settings.ts";
import { gatewaySource } from "../ingress/gateway-source.ts";
import { gatewayController } from "./ingress/gateway.ts";
import { noGatewayController } from "./ingress/no-gateway.ts";
import { ingressController, noIngressController } from "./ingress/ingress.ts";
import { jobControllers } from "./job/job.ts";
import { localStorageController } from "./localstorage/localstorage.ts";
import { namespaceController } from "./namespace/namespace.ts";
import { type NodeIpamConfig, nodeIpamController } from "./nodeipam/nodeipam.ts";
import { nodeLifecycleControllers } from "./nodelifecycle/nodelifecycle.ts";
import { NODE_LIFECYCLE, type NodeLifecycleSettings } from "./nodelifecycle/plan.ts";
import { podGcController } from "./podgc/podgc.ts";
import { claimProtectionController, classProtectionController, podGroupProtectionController, volumeProtectionController } from "./protection/protection.ts";
import { replicaSetController, replicationController } from "./replicaset/replicaset.ts";
import { resourceClaimControllers } from "./resourceclaim/resourceclaim.ts";
import { resourcePoolStatusController } from "./resourcepoolstatus/resourcepoolstatus.ts";
import { resourceQuotaController } from "./resourcequota/resourcequota.ts";
import { rootCaController } from "./rootca/rootca.ts";
import { type ControllerMetrics, controllerMetrics, runController } from "./run-controller.ts";
import { serviceAccountController } from "./serviceaccount/serviceaccount.ts";
import { type LegacyTokens, serviceAccountTokensController } from "./serviceaccount/serviceaccount-tokens.ts";
import { legacyTokenCleanerController } from "./serviceaccount/legacy-token-cleaner.ts";
import { bootstrapSignerController } from "./serviceaccount/bootstrap-signer.ts";
import { tokenCleanerController } from "./serviceaccount/token-cleaner.ts";
import type { ControllerName } from "./selection.ts";
import type { ReservedPort } from "./servicelb/plan.ts";
import { noServiceLbController, serviceLbController } from "./servicelb/servicelb.ts";
import { serviceAddressController } from "./servicecidr/ipaddresses.ts";
import { type NodePortRange, serviceNodePortController } from "./servicecidr/node-ports.ts";
import { serviceCidrController } from "./servicecidr/servicecidr.ts";
import { statefulSetController } from "./statefulset/statefulset.ts";
import { storageVersionControllers } from "./storageversion/storageversion.ts";
import { storageVersionMigrationControllers } from "./storageversionmigration/storageversionmigration.ts";
import { taintEvictionController } from "./tainteviction/tainteviction.ts";
import { trustBundleController } from "./trustbundle/trustbundle.ts";
import { ttlController } from "./ttl/ttl.ts";
import { ttlAfterFinishedController } from "./ttlafterfinished/ttlafterfinished.ts";
import { validatingAdmissionPolicyStatusController } from "./validatingadmissionpolicystatus/validatingadmissionpolicystatus.ts";
import { volumeBinder } from "./volume/volume.ts";
import { volumeExpandController } from "./volumeexpand/volumeexpand.ts";

export interface AllControllersDeps extends ControllerDeps {
  readonly log: Log;
  /** Which of upstream's run: --controllers; absent: all. What is ours is switched off by what belongs to it. */
  readonly runs?: ((name: ControllerName) => boolean) | undefined;
  /** The machine they run on. */
  readonly nodeName: string;
  /** PEM certificates of those who sign the API server's certificate: for pods. */
  readonly rootCa: () => string;
  /** Whenever those may be others. Returns what ends that. */
  readonly onRootCa?: ((handler: () => void) => () => void) | undefined;
  /** Absent: nodes get no pod addresses from us. */
  readonly nodeIpam?: NodeIpamConfig | undefined;
  readonly nodeLifecycle?: Partial<NodeLifecycleSettings> | undefined;
  readonly autoscaling?: Partial<AutoscalingSettings> | undefined;
  /** --terminated-pod-gc-threshold */
  readonly terminatedPodsMax?: number | undefined;
  /** --legacy-service-account-token-clean-up-period */
  readonly legacyTokenCleanUpMs?: number | undefined;
  /** --mirroring-max-endpoints-per-subset */
  readonly mirroredPerSubsetMax?: number | undefined;
  /** --cluster-signing-duration */
  readonly signingMs?: number | undefined;
  /** --max-endpoints-per-slice */
  readonly perSliceMax?: number | undefined;
  /** --resource-quota-sync-period */
  readonly quotaResyncMs?: number | undefined;
  /** How many keys controllers work on at once, by their names: --concurrent-*-syncs. */
  readonly workers?: Readonly<Record<string, number>> | undefined;
  /** Is told which run, and, when they have ended, that none do. */
  readonly tellRunning?: ((running: RunningControllers) => void) | undefined;
  /** Not --disable-force-detach-on-timeout; default: true. */
  readonly forceDetach?: boolean | undefined;
  /** Provisions volumes of the class local-path. */
  readonly localStorage?: boolean | undefined;
  /** What Services may have of the nodes' ports; absent: nobody is told of others. */
  readonly nodePortRange?: NodePortRange | undefined;
  /** Serves Services of type LoadBalancer at the nodes' addresses, except at these ports; absent: somebody else does. */
  readonly serviceLb?: { readonly reserved: readonly ReservedPort[] } | undefined;
  /** Makes requests arrive at the nodes' ingress, and says where; absent: nodes have none. */
  readonly ingress?: boolean | undefined;
  /** Applied to the cluster, at the start and when they change. */
  readonly manifests?: ManifestFiles | undefined;
  /** Signs CertificateSigningRequests of these signer names; absent: none are signed. */
  readonly authorityFor?: AuthorityFor | undefined;
  /** Of this program: a moment that is certainly past. */
  readonly releasedMs?: number | undefined;
  /** Approves serving certificates that a node asks for itself, for the names its Node has. Upstream leaves that to the administrator. */
  readonly approveServing?: boolean | undefined;
  /** In the version in which they are served; absent: they are not. */
  readonly trustBundles?: ResourceRef<ClusterTrustBundle> | undefined;
  /** What is counted of each controller's queue, if it is counted with that of others. Absent: in `metrics`. */
  readonly queues?: ControllerMetrics | undefined;
  /** Servers say in StorageVersions what they store. */
  readonly collectsStorageVersions?: boolean | undefined;
  /** PodGroups and Workloads are served. */
  readonly groupsPods?: boolean | undefined;
  /** Jobs of gangs have them. */
  readonly groupsJobs?: boolean | undefined;
  /** PodCertificateRequests are served. */
  readonly certifiesPods?: boolean | undefined;
  /** StorageVersionMigrations are served. */
  readonly migratesStorage?: boolean | undefined;
  /** What API servers are called: no node gets a serving certificate for it. */
  readonly serverNames?: (() => readonly string[]) | undefined;
  /** Fills Secrets of type kubernetes.io/service-account-token; absent: they are left as they are. */
  readonly tokenFor?: LegacyTokens | undefined;
}

export interface RunningControllers {
  /** Upstream's names. */
  readonly names: readonly string[];
  /** How many keys each works on at once, by our names. */
  readonly workers: ReadonlyMap<string, number>;
}

const NONE: RunningControllers = { names: [], workers: new Map() };

export function allControllers(deps: AllControllersDeps): readonly Runnable[] {
  const { clock, log, rootCa, onRootCa, tokenFor, nodeIpam, authorityFor, approveServing = false, localStorage = true, serviceLb, ingress = false, manifests } = deps;
  const metrics = deps.queues ?? (deps.metrics === undefined ? undefined : controllerMetrics(deps.metrics));
  const { runs = () => true } = deps;
  const named: readonly (readonly [ControllerName, () => readonly Controller[]])[] = [
    ["deployment-controller", () => [deploymentController(deps)]], ["replicaset-controller", () => [replicaSetController(deps)]], ["replicationcontroller-controller", () => [replicationController(deps)]],
    ["daemonset-controller", () => [daemonSetController(deps)]], ["statefulset-controller", () => [statefulSetController(deps)]], ["cronjob-controller", () => [cronJobController(deps)]],
    ["job-controller", () => jobControllers(deps)], ["ttl-after-finished-controller", () => [ttlAfterFinishedController(deps)]],
    ["endpoints-controller", () => [endpointsController(deps)]], ["endpointslice-controller", () => [endpointSliceController(deps)]],
    ["endpointslice-mirroring-controller", () => [endpointSliceMirroringController({ ...deps, perSubsetMax: deps.mirroredPerSubsetMax })]],
    ["namespace-controller", () => [namespaceController(deps)]], ["serviceaccount-controller", () => [serviceAccountController(deps)]], ["root-ca-certificate-publisher-controller", () => [rootCaController({ ...deps, rootCa, onRootCa })]],
    ["token-cleaner-controller", () => [tokenCleanerController(deps)]], ["bootstrap-signer-controller", () => [bootstrapSignerController(deps)]],
    ["legacy-serviceaccount-token-cleaner-controller", () => [legacyTokenCleanerController({ ...deps, cleanUpMs: deps.legacyTokenCleanUpMs })]],
    ["node-lifecycle-controller", () => nodeLifecycleControllers({ ...deps, settings: { ...NODE_LIFECYCLE, ...deps.nodeLifecycle } })], ["taint-eviction-controller", () => [taintEvictionController(deps)]],
    ["pod-garbage-collector-controller", () => [podGcController({ ...deps, terminatedMax: deps.terminatedPodsMax })]], ["node-ipam-controller", () => (nodeIpam === undefined ? [] : [nodeIpamController({ ...deps, config: nodeIpam })])],
    ["ttl-controller", () => [ttlController(deps)]], ["clusterrole-aggregation-controller", () => [clusterRoleAggregationController(deps)]], ["validatingadmissionpolicy-status-controller", () => [validatingAdmissionPolicyStatusController(deps)]],
    ["certificatesigningrequest-approving-controller", () => [csrApprovingController({ ...deps, approveServing })]], ["certificatesigningrequest-cleaner-controller", () => [csrCleanerController(deps)]],
    ["certificatesigningrequest-signing-controller", () => (authorityFor === undefined ? [] : [csrSigningController({ ...deps, authorityFor, lifetimeMs: deps.signingMs, releasedMs: deps.releasedMs })])],
    ["horizontal-pod-autoscaler-controller", () => [horizontalPodAutoscalingController({ ...deps, autoscaling: { ...AUTOSCALING, ...deps.autoscaling } })]], ["disruption-controller", () => disruptionControllers(deps)],
    ["resourcequota-controller", () => [resourceQuotaController({ ...deps, resyncMs: deps.quotaResyncMs })]],
    ["resourceclaim-controller", () => resourceClaimControllers(deps)], ["device-taint-eviction-controller", () => deviceTaintEvictionControllers(deps)],
    ["service-cidr-controller", () => [serviceCidrController(deps)]], ["persistentvolume-binder-controller", () => [volumeBinder(deps)]], ["persistentvolume-attach-detach-controller", () => [attachDetachController(deps)]],
    ["persistentvolume-expander-controller", () => [volumeExpandController(deps)]], ["ephemeral-volume-controller", () => [ephemeralVolumeController(deps)]], ["persistentvolumeclaim-protection-controller", () => [claimProtectionController(deps)]],
    ["persistentvolume-protection-controller", () => [volumeProtectionController(deps)]], ["volumeattributesclass-protection-controller", () => [classProtectionController(deps)]],
    ["podgroup-protection-controller", () => (deps.groupsPods ? [podGroupProtectionController(deps)] : [])],
    ["kube-apiserver-serving-clustertrustbundle-publisher-controller", () => (deps.trustBundles ? [trustBundleController({ ...deps, resource: deps.trustBundles, rootCa, onRootCa })] : [])],
    ["storageversion-garbage-collector-controller", () => (deps.collectsStorageVersions ? storageVersionControllers(deps) : [])],
    ["resourcepoolstatusrequest-controller", () => (deps.gates?.has("DRAResourcePoolStatus") ? [resourcePoolStatusController(deps)] : [])],
    ["podcertificaterequest-cleaner-controller", () => (deps.certifiesPods ? [podCertificateRequestCleaner(deps)] : [])],
    ["storage-version-migrator-controller", () => (deps.migratesStorage ? storageVersionMigrationControllers(deps) : [])],
    ["serviceaccount-token-controller", () => (tokenFor === undefined ? [] : [serviceAccountTokensController({ ...deps, rootCa, onRootCa, tokenFor })])],
  ];
  const chosen = named.filter(([name]) => runs(name));
  const controllers = [
    ...chosen.flatMap(([, make]) => make()), serviceAddressController(deps), ...(deps.nodePortRange === undefined ? [] : [serviceNodePortController({ ...deps, nodePortRange: deps.nodePortRange })]),
    serviceLb === undefined ? noServiceLbController(deps) : serviceLbController({ ...deps, ...serviceLb }), ...(ingress ? ingressControllers(deps, serviceLb?.reserved) : [noIngressController(deps), noGatewayController({ ...deps, source: gatewaySource(deps.informers) })]), ...(localStorage ? [localStorageController(deps)] : []),
    ...(manifests ? [addonsController({ ...deps, files: manifests })] : []),
  ];
  const { workers = {} } = deps;
  const jumps = clockJumps(clock);
  const collects = runs("garbage-collector-controller");
  return [
    jumps.watch, managed({
      names: [...chosen.map(([name]) => name), ...(collects ? ["garbage-collector-controller"] : [])],
      workers: new Map([...controllers.map((one) => [one.name, workers[one.name] ?? one.workers] as const), ...(collects ? [["garbage_collector", workers["garbage_collector"] ?? COLLECTING_WORKERS] as const] : [])]),
    }, deps),
    ...(collects ? [garbageCollector({ ...deps, metrics, registry: deps.metrics, workers: workers["garbage_collector"] })] : []),
    ...controllers.map((controller) => runController({ ...controller, workers: workers[controller.name] ?? controller.workers }, { clock, jumps, log, metrics })),
  ];
}

/** Tells which run. Source: kubernetes v1.36 component-base/metrics/prometheus/controllers/metrics.go */
function managed(all: RunningControllers, { metrics, tellRunning }: { readonly metrics?: Metrics | undefined; readonly tellRunning?: AllControllersDeps["tellRunning"] }): Runnable {
  const running = metrics?.gauge("running_managed_controllers", "[BETA] Indicates where instances of a controller are currently running");
  const tell = (value: number): void => { for (const name of all.names) running?.set(value, { manager: "kube-controller-manager", name }); };
  return {
    name: "controllers are counted",
    async run(signal, ready) {
      tell(1);
      tellRunning?.(all);
      ready();
      await aborted(signal);
      tell(0);
      tellRunning?.(NONE);
    },
  };
}

function ingressControllers(deps: ControllerDeps, reserved: readonly ReservedPort[] | undefined): Controller[] {
  const gateways = gatewaySource(deps.informers);
  return [ingressController({ ...deps, gateways, reserved }), gatewayController({ ...deps, source: gateways, reserved })];
}
