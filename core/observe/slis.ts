/**
 * What health checks found, as every component tells it at /metrics/slis: in a registry of its own, apart from its other metrics.
 *
 * Source: kubernetes v1.36 component-base/metrics/prometheus/slis/metrics.go
 */
import type { Metrics } from "./metrics.ts";
import { startedSeconds } from "./process-metrics.ts";

/** `type`: the endpoint that asked, as healthz. */
export type CountCheck = (type: string, name: string, passed: boolean) => void;

/** Nothing is told of the registry itself. */
export function isOfSlis(family: string): boolean { return family.startsWith("kubernetes_healthcheck") || family === "process_start_time_seconds"; }

export function sliCounts(slis: Metrics): CountCheck {
  slis.gaugeFrom("process_start_time_seconds", "[ALPHA] Start time of the process since unix epoch in seconds.", () => [[{}, startedSeconds()]]);
  const now = slis.gauge("kubernetes_healthcheck", "[STABLE] This metric records the result of a single healthcheck.");
  const total = slis.counter("kubernetes_healthchecks_total", "[STABLE] This metric records the results of all healthcheck.");
  return (type, name, passed) => {
    now.set(passed ? 1 : 0, { name, type });
    total.inc({ name, status: passed ? "success" : "error", type });
  };
}
