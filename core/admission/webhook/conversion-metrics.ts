/** How conversion webhooks answer, and how long they take. Source: kubernetes v1.36 apiextensions-apiserver/pkg/apiserver/conversion/metrics.go */
import type { Clock } from "../../lifecycle/clock.ts";
import { doubling, type Metrics } from "../../observe/metrics.ts";

export type ConversionFailure = "call" | "malformed_response" | "partial_response" | "invalid_converted_object";

export interface ConversionMeter {
  /** Begins to measure one call; absent: it did what it was asked for. */
  asks(): (failure?: ConversionFailure) => void;
  /** Begins to measure one conversion of objects of a definition. */
  converts(about: { readonly name: string; readonly from: string; readonly to: string }): (succeeded: boolean) => void;
}

const CALL_SECONDS = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60];

export function conversionMeter(metrics: Metrics, clock: Pick<Clock, "uptimeMs">): ConversionMeter {
  const requests = metrics.counter("apiserver_conversion_webhook_request_total", "[ALPHA] Counter for conversion webhook requests with success/failure and failure error type");
  const calls = metrics.histogram("apiserver_conversion_webhook_duration_seconds", "[ALPHA] Conversion webhook request latency", CALL_SECONDS);
  const conversions = metrics.histogram("apiserver_crd_conversion_webhook_duration_seconds", "[ALPHA] CRD webhook conversion duration in seconds", doubling(0.001, 15));
  const secondsSince = (startMs: number): number => (clock.uptimeMs() - startMs) / 1000;
  return {
    asks() {
      const startMs = clock.uptimeMs();
      return (failure) => {
        const labels = { failure_type: failure === undefined ? "" : `conversion_webhook_${failure}_failure`, result: failure === undefined ? "success" : "failure" };
        requests.inc(labels);
        calls.observe(secondsSince(startMs), labels);
      };
    },
    converts({ name, from, to }) {
      const startMs = clock.uptimeMs();
      return (succeeded) => conversions.observe(secondsSince(startMs), { crd_name: name, from_version: from, succeeded: String(succeeded), to_version: to });
    },
  };
}
