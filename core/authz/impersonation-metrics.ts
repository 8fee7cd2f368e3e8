/** How often callers act as somebody else, and are refused. Source: kubernetes v1.36 apiserver/pkg/endpoints/filters/impersonation/metrics/metrics.go */
import type { Clock } from "../lifecycle/clock.ts";
import { doubling, type Metrics } from "../observe/metrics.ts";
import type { Impersonated } from "./impersonate.ts";

const SECONDS = doubling(0.001, 15);

/** Counts what `act` comes to. */
export function impersonationMeter(metrics: Metrics, clock: Pick<Clock, "uptimeMs">): (act: () => Promise<Impersonated>) => Promise<Impersonated> {
  const attempts = metrics.counter("apiserver_impersonation_attempts_total", "[ALPHA] Total number of impersonation attempts split by mode and decision.");
  const durations = metrics.histogram("apiserver_impersonation_attempts_duration_seconds", "[ALPHA] Latency of impersonation attempts in seconds split by mode and decision.", SECONDS);
  return async (act) => {
    const startMs = clock.uptimeMs();
    const count = (mode: string, decision: "allowed" | "denied"): void => {
      attempts.inc({ decision, mode });
      durations.observe((clock.uptimeMs() - startMs) / 1000, { decision, mode });
    };
    try {
      const found = await act();
      count(found.constraint === "" ? "legacy" : found.constraint.slice("impersonate:".length), "allowed");
      return found;
    } catch (error) {
      count("", "denied");
      throw error;
    }
  };
}
