/** Counts how often a configuration file was read again, when it was last, and which one holds. Source: kubernetes v1.36 apiserver/pkg/server/options/{authenticationconfig,authorizationconfig,encryptionconfig}/metrics/metrics.go */
import type { Clock } from "../core/lifecycle/clock.ts";
import { hashLabel } from "../core/observe/hash-label.ts";
import type { Metrics } from "../core/observe/metrics.ts";

export interface ReloadMeter {
  /** The text that is in force from now on. */
  holds(text: string): void;
  /** Told of each time the file was read again. */
  reloaded(status: "success" | "failure"): void;
}

/** `serverId`: this server's, among several. */
export function reloadMeter(metrics: Metrics, what: "authentication" | "authorization" | "encryption", { serverId, clock }: { readonly serverId: string; readonly clock: Pick<Clock, "nowMs"> }): ReloadMeter {
  const prefix = `apiserver_${what}_config_controller`;
  const total = metrics.counter(
    `${prefix}_automatic_reloads_total`,
    what === "encryption" ? "[ALPHA] Total number of reload successes and failures of encryption configuration split by apiserver identity." : `[BETA] Total number of automatic reloads of ${what} configuration split by status and apiserver identity.`,
  );
  const last = metrics.gauge(
    `${prefix}_automatic_reload_last_timestamp_seconds`,
    what === "encryption" ? "[ALPHA] Timestamp of the last successful or failed automatic reload of encryption configuration split by apiserver identity." : `[BETA] Timestamp of the last automatic reload of ${what} configuration split by status and apiserver identity.`,
  );
  const apiserver_id_hash = hashLabel(serverId);
  let hash = "";
  metrics.gaugeFrom(`${prefix}_last_config_info`, `[ALPHA] Information about the last applied ${what} configuration with hash as label, split by apiserver identity.`, () => [[{ apiserver_id_hash, hash }, 1]]);
  return {
    holds(text) { hash = hashLabel(text); },
    reloaded(status) {
      total.inc({ apiserver_id_hash, status });
      last.set(clock.nowMs() / 1000, { apiserver_id_hash, status });
    },
  };
}
