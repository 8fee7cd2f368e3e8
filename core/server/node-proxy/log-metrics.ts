/**
 * Who reads logs, and whether the kubelet's certificate matters to them; who opens streams to containers.
 *
 * Source: kubernetes v1.36 pkg/registry/core/pod/rest/metrics.go, apiserver/pkg/util/proxy/metrics/metrics.go
 */
import type { Metrics } from "../../observe/metrics.ts";
import type { LogMeter, StreamMeter } from "./backend.ts";

export function logMeter(metrics: Metrics): LogMeter {
  const usage = metrics.counter("kube_apiserver_pod_logs_insecure_backend_total", "[ALPHA] Total number of requests for pods/logs sliced by usage type: enforce_tls, skip_tls_allowed, skip_tls_denied");
  const failures = metrics.counter("kube_apiserver_pod_logs_backend_tls_failure_total", "[ALPHA] Total number of requests for pods/logs that failed due to kubelet server TLS verification").with({});
  return { asked: (verified) => usage.inc({ usage: verified ? "enforce_tls" : "skip_tls_allowed" }), notVerified: () => failures.inc() };
}

/** The kubelet speaks what clients do: nothing is translated here. */
export function streamMeter(metrics: Metrics): StreamMeter {
  const streams = metrics.counter("apiserver_websocket_streaming_requests_total", "[ALPHA] Total number of WebSocket streaming requests (exec/attach/portforward) routed by the API server, labeled by subresource and proxy_type. proxy_type is proxied_to_kubelet when the kubelet handles the request directly; otherwise translated_at_apiserver.");
  return { opened: (subresource) => streams.inc({ subresource, proxy_type: "proxied_to_kubelet" }) };
}
