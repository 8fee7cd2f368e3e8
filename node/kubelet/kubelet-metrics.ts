/**
 * What the kubelet counts of its pods, by upstream's names: dashboards and alerts of Kubernetes read them.
 *
 * Source: kubernetes v1.36 pkg/kubelet/metrics/metrics.go
 */
import { DEFAULT_BUCKETS, type Metrics } from "../../core/observe/metrics.ts";
import type { KubeletMetrics } from "./context.ts";
import type { RuntimePod } from "./runtime-pod.ts";

const START_SECONDS = [0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600];

/** What runs, as the runtime has it. */
export function registerRunning(metrics: Metrics, workers: () => Iterable<{ readonly runtime: RuntimePod }>): void {
  metrics.gaugeFrom("kubelet_running_pods", "[ALPHA] Number of pods that have a running pod sandbox", () => [[{}, [...workers()].filter(({ runtime }) => runtime.sandboxes.some(({ ready }) => ready)).length]]);
  metrics.gaugeFrom("kubelet_running_containers", "[ALPHA] Number of containers currently running", () => {
    const states = [...workers()].flatMap(({ runtime }) => runtime.containers.map(({ state }) => state));
    return (["created", "exited", "running", "unknown"] as const).map((state) => [{ container_state: state }, states.filter((one) => one === state).length] as const);
  });
}

export function kubeletMetrics(metrics: Metrics, nodeName: string): KubeletMetrics {
  metrics.gauge("kubelet_node_name", "[ALPHA] The node's name. The count is always 1.").set(1, { node: nodeName });
  const startedPods = metrics.counter("kubelet_started_pods_total", "[ALPHA] Cumulative number of pods started");
  const startedPodsErrors = metrics.counter("kubelet_started_pods_errors_total", "[ALPHA] Cumulative number of errors when starting pods");
  const startedNamespaced = metrics.counter("kubelet_started_user_namespaced_pods_total", "[ALPHA] Cumulative number of pods with user namespaces started. This metric will only be collected on Linux.");
  const startedNamespacedErrors = metrics.counter("kubelet_started_user_namespaced_pods_errors_total", "[ALPHA] Cumulative number of errors when starting pods with user namespaces. This metric will only be collected on Linux.");
  const volumesRequested = metrics.counter("kubelet_image_volume_requested_total", "[BETA] Number of requested image volumes.");
  const volumesMounted = metrics.counter("kubelet_image_volume_mounted_succeed_total", "[BETA] Number of successful image volume mounts.");
  const volumesFailed = metrics.counter("kubelet_image_volume_mounted_errors_total", "[BETA] Number of failed image volume mounts.");
  for (const counter of [startedNamespaced, startedNamespacedErrors, volumesRequested, volumesMounted, volumesFailed]) counter.inc({}, 0);
  const startedContainers = metrics.counter("kubelet_started_containers_total", "[ALPHA] Cumulative number of containers started");
  const startedContainersErrors = metrics.counter("kubelet_started_containers_errors_total", "[ALPHA] Cumulative number of errors when starting containers");
  const terminated = metrics.counter("kubelet_terminated_containers_total", "[ALPHA] Cumulative number of container terminations.");
  const synced = metrics.histogram("kubelet_pod_worker_duration_seconds", "[ALPHA] Duration in seconds to sync a single pod. Broken down by operation type: create, update, or sync", DEFAULT_BUCKETS);
  const started = metrics.histogram("kubelet_pod_start_duration_seconds", "[ALPHA] Duration in seconds from kubelet seeing a pod for the first time to the pod starting to run", START_SECONDS);
  const relisted = metrics.histogram("kubelet_pleg_relist_duration_seconds", "[ALPHA] Duration in seconds for relisting pods in PLEG.", DEFAULT_BUCKETS);
  const interval = metrics.histogram("kubelet_pleg_relist_interval_seconds", "[ALPHA] Interval in seconds between relisting in PLEG.", DEFAULT_BUCKETS);
  const preemptions = metrics.counter("kubelet_preemptions", "[ALPHA] Cumulative number of pod preemptions by preemption resource");
  const kindOf = (kind: string): string => (kind === "init" ? "init_container" : kind === "ephemeral" ? "ephemeral_container" : "container");
  return {
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
    startedContainersError: (kind, code) => startedContainersErrors.inc({ container_type: kindOf(kind), code }),
  };
}
