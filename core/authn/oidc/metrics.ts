/** What is counted of each issuer of tokens. Source: kubernetes v1.36 apiserver/plugin/pkg/authenticator/token/oidc/metrics.go */
import type { Clock } from "../../lifecycle/clock.ts";
import { hashLabel } from "../../observe/hash-label.ts";
import type { Metrics } from "../../observe/metrics.ts";

export interface OidcMetrics {
  /** A token of the issuer was looked at. */
  authenticated(issuer: string, how: { readonly ms: number; readonly failed: boolean }): void;
  /** Its keys were fetched: their text; undefined: they could not be. */
  fetched(issuer: string, keySet: string | undefined): void;
  /** Of no others will be heard. */
  keep(issuers: readonly string[]): void;
}

const SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** `serverId`: this server's, among several. */
export function oidcMetrics(metrics: Metrics, { serverId, clock }: { readonly serverId: string; readonly clock: Pick<Clock, "nowMs"> }): OidcMetrics {
  const latency = metrics.histogram(
    "apiserver_authentication_jwt_authenticator_latency_seconds",
    "[ALPHA] Latency of jwt authentication operations in seconds. This is the time spent authenticating a token for cache miss only (i.e. when the token is not found in the cache).",
    SECONDS,
  );
  const apiserver_id_hash = hashLabel(serverId);
  const fetches = new Map<string, Map<"success" | "failure", number>>();
  const keySets = new Map<string, string>();
  metrics.gaugeFrom("apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds", "[ALPHA] Timestamp of the last successful or failed JWKS fetch split by result, api server identity and jwt issuer for the JWT authenticator.", function* () {
    for (const [issuer, times] of fetches) for (const [result, seconds] of times) yield [{ apiserver_id_hash, jwt_issuer_hash: hashLabel(issuer), result }, seconds];
  });
  metrics.gaugeFrom("apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info", "[ALPHA] Information about the last JWKS fetched by the JWT authenticator with hash as label, split by api server identity and jwt issuer.", function* () {
    for (const [issuer, hash] of keySets) yield [{ apiserver_id_hash, hash, jwt_issuer_hash: hashLabel(issuer) }, 1];
  });
  return {
    authenticated: (issuer, { ms, failed }) => latency.observe(ms / 1000, { jwt_issuer_hash: hashLabel(issuer), result: failed ? "failure" : "success" }),
    fetched(issuer, keySet) {
      const times = fetches.get(issuer) ?? new Map<"success" | "failure", number>();
      fetches.set(issuer, times.set(keySet === undefined ? "failure" : "success", clock.nowMs() / 1000));
      if (keySet !== undefined) keySets.set(issuer, hashLabel(keySet));
    },
    keep(issuers) {
      for (const known of [fetches, keySets]) for (const issuer of [...known.keys()]) if (!issuers.includes(issuer)) known.delete(issuer);
    },
  };
}
