/**
 * What the controllers show at /configz: the settings they run with, under the names of kubecontrollermanager.config.k8s.io/v1alpha1. Settings of what is
 * none here (clouds, files of keys, connections) are not there.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/kube-controller-manager/config/v1alpha1/types.go
 */
import { formatDurationMs } from "../api/meta/duration.ts";
import type { AllControllersDeps, RunningControllers } from "./all.ts";
import { LIFETIME_MS } from "./certificates/certificates.ts";
import { PER_SLICE_MAX } from "./endpointslice/endpointslice.ts";
import { PER_SUBSET_MAX } from "./endpointslicemirroring/endpointslicemirroring.ts";
import { AUTOSCALING } from "./horizontalpodautoscaling/settings.ts";
import { NODE_LIFECYCLE } from "./nodelifecycle/plan.ts";
import { TERMINATED_MAX } from "./podgc/podgc.ts";
import { RESYNC_MS } from "./resourcequota/resourcequota.ts";
import { CLEAN_UP_MS } from "./serviceaccount/legacy-token-cleaner.ts";

/** By our name of the controller. */
export const CONCURRENT: Readonly<Record<string, readonly [section: string, name: string]>> = {
  cronjob: ["CronJobController", "ConcurrentCronJobSyncs"], daemonset: ["DaemonSetController", "ConcurrentDaemonSetSyncs"], deployment: ["DeploymentController", "ConcurrentDeploymentSyncs"],
  "device-taint-eviction": ["DeviceTaintEvictionController", "ConcurrentSyncs"], endpoint: ["EndpointController", "ConcurrentEndpointSyncs"], endpoint_slice: ["EndpointSliceController", "ConcurrentServiceEndpointSyncs"],
  endpoint_slice_mirroring: ["EndpointSliceMirroringController", "MirroringConcurrentServiceEndpointSyncs"],
  ephemeral_volume: ["EphemeralVolumeController", "ConcurrentEphemeralVolumeSyncs"], garbage_collector: ["GarbageCollectorController", "ConcurrentGCSyncs"],
  horizontalpodautoscaler: ["HPAController", "ConcurrentHorizontalPodAutoscalerSyncs"], job: ["JobController", "ConcurrentJobSyncs"], namespace: ["NamespaceController", "ConcurrentNamespaceSyncs"],
  replicaset: ["ReplicaSetController", "ConcurrentRSSyncs"], replicationmanager: ["ReplicationController", "ConcurrentRCSyncs"], resource_claim: ["ResourceClaimController", "ConcurrentSyncs"],
  resourcequota_primary: ["ResourceQuotaController", "ConcurrentResourceQuotaSyncs"], serviceaccount_tokens_service: ["SAController", "ConcurrentSATokenSyncs"], statefulset: ["StatefulSetController", "ConcurrentStatefulSetSyncs"],
  ttl_jobs_to_delete: ["TTLAfterFinishedController", "ConcurrentTTLSyncs"], "validatingadmissionpolicy-status": ["ValidatingAdmissionPolicyStatusController", "ConcurrentPolicySyncs"],
};

interface Shown extends Pick<AllControllersDeps, "nodeLifecycle" | "autoscaling" | "terminatedPodsMax" | "forceDetach" | "signingMs" | "perSliceMax" | "quotaResyncMs" | "legacyTokenCleanUpMs" | "mirroredPerSubsetMax"> {
  readonly listening: { readonly address: string; readonly port: number };
  readonly clusterCidr: string;
  readonly serviceCidr: string;
  readonly isShared: boolean;
  readonly profiling: boolean;
}

export function controllersConfigz({ nodeLifecycle, autoscaling, terminatedPodsMax, forceDetach = true, signingMs, perSliceMax, quotaResyncMs, legacyTokenCleanUpMs, mirroredPerSubsetMax, listening, clusterCidr, serviceCidr, isShared, profiling }: Shown, running: Pick<RunningControllers, "workers">): object {
  const nodes = { ...NODE_LIFECYCLE, ...nodeLifecycle };
  const scaling = { ...AUTOSCALING, ...autoscaling };
  const [service = "", secondaryService = ""] = serviceCidr.split(",");
  const sections: Record<string, Record<string, unknown>> = {
    Generic: {
      Port: listening.port, Address: listening.address,
      LeaderElection: { leaderElect: isShared, leaseDuration: "15s", renewDeadline: "10s", retryPeriod: "2s", resourceLock: "leases", resourceName: "kube-controller-manager", resourceNamespace: "kube-system" },
      Debugging: { enableProfiling: profiling, enableContentionProfiling: false },
    },
    KubeCloudShared: { UseServiceAccountCredentials: false, NodeMonitorPeriod: formatDurationMs(nodes.periodMs), ClusterCIDR: clusterCidr, AllocateNodeCIDRs: true, CIDRAllocatorType: "RangeAllocator", ConfigureCloudRoutes: false },
    AttachDetachController: { disableForceDetachOnTimeout: !forceDetach },
    CSRSigningController: { ClusterSigningDuration: formatDurationMs(signingMs ?? LIFETIME_MS) },
    EndpointSliceController: { MaxEndpointsPerSlice: perSliceMax ?? PER_SLICE_MAX },
    EndpointSliceMirroringController: { MirroringMaxEndpointsPerSubset: mirroredPerSubsetMax ?? PER_SUBSET_MAX },
    GarbageCollectorController: { EnableGarbageCollector: true },
    HPAController: {
      HorizontalPodAutoscalerSyncPeriod: formatDurationMs(scaling.periodMs), HorizontalPodAutoscalerDownscaleStabilizationWindow: formatDurationMs(scaling.downscaleSeconds * 1000), HorizontalPodAutoscalerTolerance: scaling.tolerance,
      HorizontalPodAutoscalerCPUInitializationPeriod: formatDurationMs(scaling.cpuInitializationMs), HorizontalPodAutoscalerInitialReadinessDelay: formatDurationMs(scaling.initialReadinessMs),
    },
    LegacySATokenCleaner: { CleanUpPeriod: formatDurationMs(legacyTokenCleanUpMs ?? CLEAN_UP_MS) },
    NodeIPAMController: { ServiceCIDR: service, SecondaryServiceCIDR: secondaryService },
    NodeLifecycleController: {
      NodeEvictionRate: nodes.rate, SecondaryNodeEvictionRate: nodes.rateSecondary, NodeStartupGracePeriod: formatDurationMs(nodes.startupGraceMs), NodeMonitorGracePeriod: formatDurationMs(nodes.graceMs),
      LargeClusterSizeThreshold: nodes.largeZone, UnhealthyZoneThreshold: nodes.unhealthyShare,
    },
    PodGCController: { TerminatedPodGCThreshold: terminatedPodsMax ?? TERMINATED_MAX },
    ResourceQuotaController: { ResourceQuotaSyncPeriod: formatDurationMs(quotaResyncMs ?? RESYNC_MS) },
  };
  for (const [name, count] of running.workers) {
    const found = CONCURRENT[name];
    if (found) (sections[found[0]] ??= {})[found[1]] = count;
  }
  return { kind: "KubeControllerManagerConfiguration", apiVersion: "kubecontrollermanager.config.k8s.io/v1alpha1", ...sections };
}
