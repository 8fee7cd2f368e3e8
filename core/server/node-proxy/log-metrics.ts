/** Who reads logs, and whether the kubelet's certificate matters to them. Source: kubernetes v1.36 pkg/registry/core/pod/rest/metrics.go */
import type { Metrics } from "../../observe/metrics.ts";
import type { LogMeter } from "./backend.ts";

export function logMeter(metrics: Metrics): LogMeter {
  const usage = metrics.counter("kube_apiserver_pod_logs_insecure_backend_total", "[ALPHA] Total number of requests for pods/logs sliced by usage type: enforce_tls, skip_tls_allowed, skip_tls_denied");
  const failures = metrics.counter("kube_apiserver_pod_logs_backend_tls_failure_total", "[ALPHA] Total number of requests for pods/logs that failed due to kubelet server TLS verification").with({});
  return { asked: (verified) => usage.inc({ usage: verified ? "enforce_tls" : "skip_tls_allowed" }), notVerified: () => failures.inc() };
}
