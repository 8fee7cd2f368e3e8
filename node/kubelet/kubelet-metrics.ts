/**
 * What the kubelet counts of its pods, by upstream's names: dashboards and alerts of Kubernetes read them.
 *
 * Source: kubernetes v1.36 pkg/kubelet/metrics/metrics.go
 */
import type { Pod } from "../../core/api/gen/core.v1.ts";
import { DEFAULT_BUCKETS, doubling, type Metrics } from "../../core/observe/metrics.ts";
import type { KubeletMetrics } from "./context.ts";
import { isHostNetwork, isStaticPod, isTerminalPhase } from "./pod-spec.ts";
import type { WorkerStage } from "./pod-worker.ts";
import type { RuntimePod } from "./runtime-pod.ts";
import { StartLatency } from "./start-latency.ts";

const START_SECONDS = [0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600];

const PULL_SECONDS = [1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600];
const WRITE_SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 45, 60];
const RESIZE_MS = [10, 50, 100, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000];
const MB = 1024 * 1024, GB = 1024 * MB;
const SIZES: readonly (readonly [above: number, label: string])[] = [
  [100 * GB, "GT100GB"], [60 * GB, "60GB-100GB"], [40 * GB, "40GB-60GB"], [30 * GB, "30GB-40GB"], [20 * GB, "20GB-30GB"], [10 * GB, "10GB-20GB"], [5 * GB, "5GB-10GB"],
  [GB, "1GB-5GB"], [500 * MB, "500MB-1GB"], [100 * MB, "100MB-500MB"], [10 * MB, "10MB-100MB"], [0, "0-10MB"],
];
/** Others are told of together. Source: kubernetes v1.36 pkg/kubelet/kubelet.go admissionRejectionReasons */
const REFUSALS: ReadonlySet<string> = new Set([
  "AppArmor", "PodOSSelectorNodeLabelDoesNotMatch", "PodOSNotSupported", "InvalidNodeInfo", "InitContainerRestartPolicyForbidden",
  "SupplementalGroupsPolicyNotSupported", "UnexpectedAdmissionError", "UnknownReason", "UnexpectedPredicateFailureType", "OutOfcpu", "OutOfmemory",
  "OutOfephemeral-storage", "OutOfpods", "PodLevelResourcesNotSupported", "PodFeatureUnsupported", "node(s) had taints that the pod didn't tolerate", "Evicted",
  "SysctlForbidden", "TopologyAffinityError", "NodeShutdown", "VolumeAttachmentLimitExceeded",
]);
const LIFECYCLES: readonly (readonly [lifecycle: string, is: (stage: WorkerStage) => boolean])[] = [["sync", (stage) => stage === "running"], ["terminating", (stage) => stage === "terminating"], ["terminated", (stage) => stage === "terminated"]];

interface Worker { readonly pod: Pod; readonly runtime: RuntimePod; readonly stage: WorkerStage; readonly isGone: boolean; /** For its status. */ readonly resizeConditions: readonly { readonly type: string; readonly reason?: string | undefined }[] }

/** What runs, as the runtime has it, and what should. */
export function registerRunning(metrics: Metrics, workers: () => Iterable<Worker>): void {
  const count = (which: (worker: Worker) => boolean): number => [...workers()].filter(which).length;
  const isActive = ({ pod, stage, isGone }: Worker): boolean => !isGone && stage !== "terminated" && stage !== "finished" && !isTerminalPhase(pod.status?.phase);
  const byOrigin = (which: (worker: Worker) => boolean) => [[{ static: "" }, count((worker) => !isStaticPod(worker.pod) && which(worker))], [{ static: "true" }, count((worker) => isStaticPod(worker.pod) && which(worker))]] as const;
  metrics.gaugeFrom("kubelet_desired_pods", "[ALPHA] The number of pods the kubelet is being instructed to run. static is true if the pod is not from the apiserver.", () => byOrigin(({ isGone }) => !isGone));
  metrics.gaugeFrom("kubelet_active_pods", "[ALPHA] The number of pods the kubelet considers active and which are being considered when admitting new pods. static is true if the pod is not from the apiserver.", () => byOrigin(isActive));
  metrics.gaugeFrom("kubelet_mirror_pods", "[ALPHA] The number of mirror pods the kubelet will try to create (one per admitted static pod)", () => [[{}, count(({ pod, isGone }) => isStaticPod(pod) && !isGone)]]);
  metrics.gaugeFrom("kubelet_working_pods", "[ALPHA] Number of pods the kubelet is actually running, broken down by lifecycle phase, whether the pod is desired, orphaned, or runtime only (also orphaned), and whether the pod is static. An orphaned pod has been removed from local configuration or force deleted in the API and consumes resources that are not otherwise visible.", () =>
    LIFECYCLES.flatMap(([lifecycle, is]) => [
      ...(["desired", "orphan"] as const).flatMap((config) => ([false, true] as const).map((fixed) => [
        { config, lifecycle, static: fixed ? "true" : "" },
        count(({ pod, stage, isGone }) => is(stage) && isGone === (config === "orphan") && isStaticPod(pod) === fixed && !isRemembered(pod)),
      ] as const)),
      [{ config: "runtime_only", lifecycle, static: "unknown" }, count(({ pod, stage }) => is(stage) && isRemembered(pod))] as const,
    ]));
  metrics.gaugeFrom("kubelet_managed_ephemeral_containers", "[ALPHA] Current number of ephemeral containers in pods managed by this kubelet.", () => [[
    {}, [...workers()].reduce((sum, { pod }) => sum + (pod.spec.ephemeralContainers?.length ?? 0), 0),
  ]]);
  metrics.gaugeFrom("kubelet_running_pods", "[ALPHA] Number of pods that have a running pod sandbox", () => [[{}, [...workers()].filter(({ runtime }) => runtime.sandboxes.some(({ ready }) => ready)).length]]);
  const resizes = (type: string): string[] => [...workers()].flatMap(({ resizeConditions }) => resizeConditions.flatMap((one) => (one.type === type ? [one.reason ?? ""] : [])));
  metrics.gaugeFrom("kubelet_pod_pending_resizes", "[ALPHA] Number of pending resizes for pods.", () => [...Map.groupBy(resizes("PodResizePending"), (reason) => reason.toLowerCase())].map(([reason, all]) => [{ reason }, all.length] as const));
  metrics.gaugeFrom("kubelet_pod_in_progress_resizes", "[ALPHA] Number of in-progress resizes for pods.", () => [[{}, resizes("PodResizeInProgress").length]]);
  metrics.gaugeFrom("kubelet_running_containers", "[ALPHA] Number of containers currently running", () => {
    const states = [...workers()].flatMap(({ runtime }) => runtime.containers.map(({ state }) => state));
    return (["created", "exited", "running", "unknown"] as const).map((state) => [{ container_state: state }, states.filter((one) => one === state).length] as const);
  });
}

/** Known only from what the runtime has of it. */
function isRemembered({ metadata }: Pod): boolean { return metadata.creationTimestamp === ""; }

export function kubeletMetrics(metrics: Metrics, nodeName: string): KubeletMetrics {
  metrics.gauge("kubelet_node_name", "[ALPHA] The node's name. The count is always 1.").set(1, { node: nodeName });
  const startedPods = metrics.counter("kubelet_started_pods_total", "[ALPHA] Cumulative number of pods started");
  const startedPodsErrors = metrics.counter("kubelet_started_pods_errors_total", "[ALPHA] Cumulative number of errors when starting pods");
  const startedNamespaced = metrics.counter("kubelet_started_user_namespaced_pods_total", "[ALPHA] Cumulative number of pods with user namespaces started. This metric will only be collected on Linux.");
  const startedNamespacedErrors = metrics.counter("kubelet_started_user_namespaced_pods_errors_total", "[ALPHA] Cumulative number of errors when starting pods with user namespaces. This metric will only be collected on Linux.");
  const volumesRequested = metrics.counter("kubelet_image_volume_requested_total", "[BETA] Number of requested image volumes.");
  const volumesMounted = metrics.counter("kubelet_image_volume_mounted_succeed_total", "[BETA] Number of successful image volume mounts.");
  const volumesFailed = metrics.counter("kubelet_image_volume_mounted_errors_total", "[BETA] Number of failed image volume mounts.");
  for (const counter of [startedPods, startedPodsErrors, startedNamespaced, startedNamespacedErrors, volumesRequested, volumesMounted, volumesFailed]) counter.inc({}, 0);
  const startedContainers = metrics.counter("kubelet_started_containers_total", "[ALPHA] Cumulative number of containers started");
  const startedContainersErrors = metrics.counter("kubelet_started_containers_errors_total", "[ALPHA] Cumulative number of errors when starting containers");
  const terminated = metrics.counter("kubelet_terminated_containers_total", "[ALPHA] Cumulative number of container terminations.");
  const synced = metrics.histogram("kubelet_pod_worker_duration_seconds", "[ALPHA] Duration in seconds to sync a single pod. Broken down by operation type: create, update, or sync", DEFAULT_BUCKETS);
  const started = metrics.histogram("kubelet_pod_start_duration_seconds", "[ALPHA] Duration in seconds from kubelet seeing a pod for the first time to the pod starting to run", START_SECONDS);
  const relisted = metrics.histogram("kubelet_pleg_relist_duration_seconds", "[ALPHA] Duration in seconds for relisting pods in PLEG.", DEFAULT_BUCKETS);
  const interval = metrics.histogram("kubelet_pleg_relist_interval_seconds", "[ALPHA] Interval in seconds between relisting in PLEG.", DEFAULT_BUCKETS);
  const preemptions = metrics.counter("kubelet_preemptions", "[ALPHA] Cumulative number of pod preemptions by preemption resource");
  const containers = metrics.histogram("kubelet_containers_per_pod_count", "[ALPHA] The number of containers per pod.", doubling(1, 5));
  const startSli = metrics.histogram(
    "kubelet_pod_start_sli_duration_seconds",
    "[ALPHA] Duration in seconds to start a pod, excluding time to pull images and run init containers, measured from pod creation timestamp to when all its containers are reported as started and observed via watch",
    START_SECONDS,
  );
  const startTotal = metrics.histogram(
    "kubelet_pod_start_total_duration_seconds",
    "[ALPHA] Duration in seconds to start a pod since creation, including time to pull images and run init containers, measured from pod creation timestamp to when all its containers are reported as started and observed via watch",
    START_SECONDS,
  );
  const workerStarts = metrics.histogram("kubelet_pod_worker_start_duration_seconds", "[ALPHA] Duration in seconds from kubelet seeing a pod to starting a worker.", DEFAULT_BUCKETS);
  const orphans = metrics.counter(
    "kubelet_orphaned_runtime_pods_total",
    "[ALPHA] Number of pods that have been detected in the container runtime without being already known to the pod worker. This typically indicates the kubelet was restarted while a pod was force deleted in the API or in the local configuration, which is unusual.",
  );
  orphans.inc({}, 0);
  const refusals = metrics.counter("kubelet_admission_rejections_total", "[ALPHA] Cumulative number pod admission rejections by the Kubelet.");
  const pulls = metrics.histogram("kubelet_image_pull_duration_seconds", "[ALPHA] Duration in seconds to pull an image.", PULL_SECONDS);
  const ensured = metrics.counter("kubelet_image_manager_ensure_image_requests_total", "[ALPHA] Number of ensure-image requests processed by the kubelet.");
  const removedImages = metrics.counter("kubelet_image_garbage_collected_total", "[ALPHA] Total number of images garbage collected by the kubelet, whether through disk usage or image age.");
  const sandboxes = metrics.histogram("kubelet_run_podsandbox_duration_seconds", "[ALPHA] Duration in seconds of the run_podsandbox operations. Broken down by RuntimeClass.Handler.", DEFAULT_BUCKETS);
  const sandboxErrors = metrics.counter("kubelet_run_podsandbox_errors_total", "[ALPHA] Cumulative number of the run_podsandbox operation errors by RuntimeClass.Handler.");
  const statuses = metrics.histogram(
    "kubelet_pod_status_sync_duration_seconds",
    "[ALPHA] Duration in seconds to sync a pod status update. Measures time from detection of a change to pod status until the API is successfully updated for that pod, even if multiple intevening changes to pod status occur.",
    WRITE_SECONDS,
  );
  const resizes = metrics.counter(
    "kubelet_container_requested_resizes_total",
    "[ALPHA] Number of requested resizes, counted at the container level. Different resources on the same container are counted separately. The 'requirement' label refers to 'memory' or 'limits'; the 'operation' label can be one of 'add', 'remove', 'increase' or 'decrease'.",
  );
  const infeasible = metrics.counter("kubelet_pod_infeasible_resizes_total", "[ALPHA] Number of infeasible resizes for pods.");
  const resized = metrics.histogram("kubelet_pod_resize_duration_milliseconds", "[ALPHA] Duration in milliseconds to actuate a pod resize", RESIZE_MS);
  const restarted = metrics.counter(
    "kubelet_restarted_pods_total",
    "[ALPHA] Number of pods that have been restarted because they were deleted and recreated with the same UID while the kubelet was watching them (common for static pods, extremely uncommon for API pods)",
  );
  for (const fixed of ["", "true"]) restarted.inc({ static: fixed }, 0);
  const podRelisted = metrics.histogram("kubelet_pleg_pod_relist_duration_seconds", "[ALPHA] Duration in seconds for relisting a single pod in PLEG.", DEFAULT_BUCKETS);
  metrics.counter("kubelet_pleg_discard_events", "[ALPHA] The number of discard events in PLEG.").inc({}, 0); // what the runtime tells is kept as one sign for each pod, which there is always room for
  const orphanVolumes = metrics.gauge("kubelet_orphan_pod_cleaned_volumes", "[ALPHA] The total number of orphaned Pods whose volumes were cleaned in the last periodic sweep.");
  const orphanVolumesFailed = metrics.gauge("kubelet_orphan_pod_cleaned_volumes_errors", "[ALPHA] The number of orphaned Pods whose volumes failed to be cleaned in the last periodic sweep.");
  const firstNetworkPod = metrics.gauge(
    "kubelet_first_network_pod_start_sli_duration_seconds",
    "[INTERNAL] Duration in seconds to start the first network pod, excluding time to pull images and run init containers, measured from pod creation timestamp to when all its containers are reported as started and observed via watch",
  );
  for (const gauge of [orphanVolumes, orphanVolumesFailed, firstNetworkPod]) gauge.set(0);
  let hasNetworkPod = false;
  const fallbacks = metrics.counter("kubelet_lifecycle_handler_http_fallbacks_total", "[ALPHA] The number of times lifecycle handlers successfully fell back to http from https.");
  const shortSleeps = metrics.counter("kubelet_sleep_action_terminated_early_total", "[ALPHA] The number of times lifecycle sleep handler got terminated before it finishes");
  for (const counter of [fallbacks, shortSleeps]) counter.inc({}, 0);
  const waited = metrics.counter("kubelet_pod_deferred_accepted_resizes_total", "[ALPHA] Cumulative number of resizes that were accepted after being deferred.");
  const latency = new StartLatency();
  const kindOf = (kind: string): string => (kind === "init" ? "init_container" : kind === "ephemeral" ? "ephemeral_container" : "container");
  return {
    resizeAsked: ({ resource, requirement, operation }) => resizes.inc({ resource, requirement, operation }),
    resizeInfeasible: (detail) => infeasible.inc({ reason_detail: detail }),
    resizeTook: (ms, success) => resized.observe(ms, { success: String(success) }),
    startedPods(userNamespace) {
      startedPods.inc();
      if (userNamespace) startedNamespaced.inc();
    },
    startedPodsError: () => startedPodsErrors.inc(),
    startedUserNamespacedPodsError: () => startedNamespacedErrors.inc(),
    imageVolumes({ requested, mounted, failed }) {
      volumesRequested.inc({}, requested);
      (failed ? volumesFailed : volumesMounted).inc({}, mounted);
    },
    startedContainers: (kind) => startedContainers.inc({ container_type: kindOf(kind) }),
    terminated: ({ kind, exitCode, reason }) => terminated.inc({ container_type: kindOf(kind), exit_code: String(exitCode), reason }),
    preempted: (resource) => preemptions.inc({ preemption_signal: resource }),
    synced: (operation, seconds) => synced.observe(seconds, { operation_type: operation }),
    podRunning: (seconds) => started.observe(seconds),
    relisted(seconds, sinceLastSeconds) {
      relisted.observe(seconds);
      if (sinceLastSeconds !== undefined) interval.observe(sinceLastSeconds);
    },
    podSeen(pod) {
      containers.observe(pod.spec.containers.length);
      latency.seen(pod);
    },
    podRead(pod, nowMs) {
      const start = latency.observe(pod, nowMs);
      if (!start) return;
      startTotal.observe(start.totalSeconds);
      if (start.sliSeconds === undefined) return;
      startSli.observe(start.sliSeconds);
      if (!hasNetworkPod && !isHostNetwork(pod)) firstNetworkPod.set(start.sliSeconds);
      hasNetworkPod ||= !isHostNetwork(pod);
    },
    podGone: (uid) => latency.forget(uid),
    podRestarted: (isStatic) => restarted.inc({ static: isStatic ? "true" : "" }),
    podListed: (seconds) => podRelisted.observe(seconds),
    leftoversRemoved({ all, failed }) {
      orphanVolumes.set(all);
      orphanVolumesFailed.set(failed);
    },
    hookFellBack: () => fallbacks.inc(),
    hookSleptShort: () => shortSleeps.inc(),
    resizeWaited: (trigger) => waited.inc({ retry_trigger: trigger }),
    workerStarted: (seconds) => workerStarts.observe(seconds),
    orphaned: () => orphans.inc(),
    admissionRefused: (reason) => refusals.inc({ reason: REFUSALS.has(reason) ? reason : reason.startsWith("OutOf") ? "OutOfExtendedResources" : "Other" }),
    imagePulled(podUid, { beganMs, endedMs, sizeBytes }) {
      pulls.observe((endedMs - beganMs) / 1000, { image_size_in_bytes: SIZES.find(([above]) => sizeBytes > above)?.[1] ?? "N/A" });
      latency.pulled(podUid, { beganMs, endedMs });
    },
    imageEnsured: (policy, { isPresent, mustPull }) => ensured.inc({ pull_policy: policy.toLowerCase(), present_locally: String(isPresent ?? "unknown"), pull_required: String(mustPull ?? "unknown") }),
    imageRemoved: (reason) => removedImages.inc({ reason }),
    sandboxStarted(handler, seconds, failed) {
      sandboxes.observe(seconds, { runtime_handler: handler });
      if (failed) sandboxErrors.inc({ runtime_handler: handler });
    },
    statusWritten: (seconds) => statuses.observe(seconds),
    startedContainersError: (kind, code) => startedContainersErrors.inc({ container_type: kindOf(kind), code }),
  };
}
