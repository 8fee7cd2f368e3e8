/** Counts how often a configuration file was read again, and when it was last. Source: kubernetes v1.36 apiserver/pkg/server/options/{authenticationconfig,authorizationconfig}/metrics/metrics.go */
import type { Clock } from "../core/lifecycle/clock.ts";
import { hashLabel } from "../core/observe/hash-label.ts";
import type { Metrics } from "../core/observe/metrics.ts";

/** Told of each time. */
export type ReloadMeter = (status: "success" | "failure") => void;

/** `serverId`: this server's, among several. */
export function reloadMeter(metrics: Metrics, what: "authentication" | "authorization", { serverId, clock }: { readonly serverId: string; readonly clock: Pick<Clock, "nowMs"> }): ReloadMeter {
  const prefix = `apiserver_${what}_config_controller_automatic_reload`;
  const total = metrics.counter(`${prefix}s_total`, `[BETA] Total number of automatic reloads of ${what} configuration split by status and apiserver identity.`);
  const last = metrics.gauge(`${prefix}_last_timestamp_seconds`, `[BETA] Timestamp of the last automatic reload of ${what} configuration split by status and apiserver identity.`);
  const apiserver_id_hash = hashLabel(serverId);
  return (status) => {
    total.inc({ apiserver_id_hash, status });
    last.set(clock.nowMs() / 1000, { apiserver_id_hash, status });
  };
}
