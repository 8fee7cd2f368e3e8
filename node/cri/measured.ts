/**
 * A runtime whose calls are counted: how many, how many failed, how long they took, under upstream's names.
 *
 * Source: kubernetes v1.36 pkg/kubelet/metrics/metrics.go, pkg/kubelet/kuberuntime/instrumented_services.go
 */
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Metrics } from "../../core/observe/metrics.ts";
import type { Cri } from "./client.ts";

/** 5 ms and two and a half times as much each time: 14 buckets. */
const BUCKETS = Array.from({ length: 14 }, (_, i) => 0.005 * 2.5 ** i);

/** Upstream's names of operations where they are not the method's in small letters. */
const OPERATIONS: Readonly<Record<string, string>> = {
  RunPodSandbox: "run_podsandbox", StopPodSandbox: "stop_podsandbox", RemovePodSandbox: "remove_podsandbox", PodSandboxStatus: "podsandbox_status",
  ListPodSandbox: "list_podsandbox", ListPodSandboxStats: "list_podsandbox_stats",
};

export function measuredCri(cri: Cri, { metrics, clock }: { readonly metrics: Metrics; readonly clock: Clock }): Cri {
  const total = metrics.counter("kubelet_runtime_operations_total", "[ALPHA] Cumulative number of runtime operations by operation type.");
  const errors = metrics.counter("kubelet_runtime_operations_errors_total", "[ALPHA] Cumulative number of runtime operation errors by operation type.");
  const seconds = metrics.histogram("kubelet_runtime_operations_duration_seconds", "[ALPHA] Duration in seconds of runtime operations. Broken down by operation type.", BUCKETS);

  return {
    ...cri,
    async call(method, request, options) {
      const labels = { operation_type: operationOf(method) };
      const startMs = clock.uptimeMs();
      total.inc(labels);
      try {
        return await cri.call(method, request, options);
      } catch (error) {
        errors.inc(labels);
        throw error;
      } finally {
        seconds.observe((clock.uptimeMs() - startMs) / 1000, labels);
      }
    },
  };
}

/** "RuntimeService/CreateContainer" is create_container. */
function operationOf(method: string): string {
  const name = method.slice(method.indexOf("/") + 1);
  return OPERATIONS[name] ?? name.replace(/(?!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
}
