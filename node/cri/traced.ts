/**
 * A runtime whose calls are spans, and which is told of which: containerd's own can go on with the trace.
 *
 * Source: go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc: names and attributes
 */
import type { Spans } from "../../core/observe/spans.ts";
import type { Cri } from "./client.ts";

export function tracedCri(cri: Cri, spans: Spans): Cri {
  return {
    ...cri,
    async call(method, request, options) {
      const [service, name] = method.split("/") as [string, string];
      const attributes = { "rpc.system": "grpc", "rpc.service": `runtime.v1.${service}`, "rpc.method": name };
      return await spans.during(`runtime.v1.${method}`, { kind: 3, attributes }, (span) => cri.call(method, request, span ? { ...options, metadata: { traceparent: span.traceparent } } : options));
    },
  };
}
