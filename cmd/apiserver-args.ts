/**
 * --kube-apiserver-arg name=value: settings of the API server under upstream's names, as in kubeadm's and k3s's files.
 *
 * Names of upstream's that are not here: other-settings.ts.
 */
import { parseGoBool } from "../core/api/meta/go-bool.ts";
import { ConfigError } from "./config/config.ts";
import { durationMsOf } from "./duration-of.ts";
import { argumentOf, checkOther, OTHER_API_SERVER_SETTINGS } from "./other-settings.ts";

const NAMES = [
  // admission
  "enable-admission-plugins", "disable-admission-plugins", "admission-control-config-file", "default-not-ready-toleration-seconds", "default-unreachable-toleration-seconds",
  // authentication
  "client-ca-file", "requestheader-client-ca-file", "requestheader-allowed-names", "requestheader-uid-headers", "requestheader-username-headers",
  "requestheader-group-headers", "requestheader-extra-headers-prefix", "anonymous-auth", "token-auth-file", "authentication-config",
  "authentication-token-webhook-config-file", "authentication-token-webhook-cache-ttl", "authentication-token-webhook-version",
  "oidc-issuer-url", "oidc-client-id", "oidc-ca-file", "oidc-username-claim", "oidc-username-prefix", "oidc-groups-claim", "oidc-groups-prefix", "oidc-required-claim", "oidc-signing-algs",
  "api-audiences", "service-account-issuer", "service-account-jwks-uri", "service-account-key-file", "service-account-signing-key-file",
  "service-account-signing-endpoint", "service-account-max-token-expiration", "service-account-extend-token-expiration",
  // authorization
  "authorization-mode", "authorization-policy-file", "authorization-config", "authorization-webhook-config-file", "authorization-webhook-version", "authorization-webhook-cache-authorized-ttl", "authorization-webhook-cache-unauthorized-ttl",
  // encryption at rest
  "encryption-provider-config", "encryption-provider-config-automatic-reload",
  // what is kept, and how long
  "event-ttl",
  // TLS
  "tls-min-version", "tls-cipher-suites", "tls-cert-file", "tls-private-key-file", "tls-sni-cert-key", "strict-transport-security-directives", "cors-allowed-origins", "http2-max-streams-per-connection",
  // overload
  "max-requests-inflight", "max-mutating-requests-inflight", "enable-priority-and-fairness", "request-timeout", "min-request-timeout", "goaway-chance", "shutdown-delay-duration", "livez-grace-period",
  // audit
  "audit-policy-file", "audit-log-path", "audit-log-format", "audit-log-maxage", "audit-log-maxbackup", "audit-log-maxsize", "audit-log-compress", "audit-webhook-config-file", "audit-webhook-initial-backoff", "audit-webhook-batch-initial-backoff",
  "audit-log-mode", "audit-log-batch-max-size", "audit-log-batch-buffer-size", "audit-log-batch-max-wait", "audit-log-batch-throttle-enable", "audit-log-batch-throttle-qps", "audit-log-batch-throttle-burst",
  "audit-log-truncate-enabled", "audit-log-truncate-max-batch-size", "audit-log-truncate-max-event-size",
  "audit-webhook-mode", "audit-webhook-batch-max-size", "audit-webhook-batch-buffer-size", "audit-webhook-batch-max-wait", "audit-webhook-batch-throttle-enable", "audit-webhook-batch-throttle-qps", "audit-webhook-batch-throttle-burst",
  "audit-webhook-truncate-enabled", "audit-webhook-truncate-max-batch-size", "audit-webhook-truncate-max-event-size",
  // features
  "feature-gates", "runtime-config", "coordinated-leadership-lease-duration", "coordinated-leadership-renew-deadline", "coordinated-leadership-retry-period",
  // traces
  "tracing-config-file",
  // profiles, and how much is logged
  "profiling",
  // metrics
  "disabled-metrics", "show-hidden-metrics-for-version", "allow-metric-labels", "allow-metric-labels-manifest",
] as const;
type Name = (typeof NAMES)[number];

/** Those that are no texts, nor lists of such. */
const KINDS: Readonly<Record<"boolean" | "integer" | "decimal" | "durationMs", readonly Name[]>> = {
  boolean: [
    "anonymous-auth", "audit-log-compress", "audit-log-batch-throttle-enable", "audit-log-truncate-enabled", "audit-webhook-batch-throttle-enable", "audit-webhook-truncate-enabled", "enable-priority-and-fairness",
    "encryption-provider-config-automatic-reload", "profiling", "service-account-extend-token-expiration",
  ],
  integer: [
    "audit-log-maxage", "audit-log-maxbackup", "audit-log-maxsize", "default-not-ready-toleration-seconds", "default-unreachable-toleration-seconds", "http2-max-streams-per-connection", "max-mutating-requests-inflight", "max-requests-inflight",
    "min-request-timeout", "audit-log-batch-buffer-size", "audit-log-batch-max-size", "audit-log-batch-throttle-burst", "audit-log-truncate-max-batch-size", "audit-log-truncate-max-event-size", "audit-webhook-batch-buffer-size",
    "audit-webhook-batch-max-size", "audit-webhook-batch-throttle-burst", "audit-webhook-truncate-max-batch-size", "audit-webhook-truncate-max-event-size",
  ],
  decimal: ["goaway-chance", "audit-log-batch-throttle-qps", "audit-webhook-batch-throttle-qps"],
  durationMs: [
    "audit-log-batch-max-wait", "audit-webhook-batch-initial-backoff", "audit-webhook-batch-max-wait", "audit-webhook-initial-backoff", "authentication-token-webhook-cache-ttl", "authorization-webhook-cache-authorized-ttl",
    "authorization-webhook-cache-unauthorized-ttl", "coordinated-leadership-lease-duration", "coordinated-leadership-renew-deadline", "coordinated-leadership-retry-period", "event-ttl", "livez-grace-period", "request-timeout",
    "service-account-max-token-expiration", "shutdown-delay-duration",
  ],
};

export interface ApiServerArgs {
  /** The last one given counts. */
  text(name: Name): string | undefined;
  /** All that were given, as they were. */
  texts(name: Name): readonly string[];
  /** All that were given, split at commas. */
  list(name: Name): readonly string[];
  boolean(name: Name, standard: boolean): boolean;
  integer(name: Name): number | undefined;
  /** 0.5, 10. */
  decimal(name: Name): number | undefined;
  /** 10s, 5m, 1h30m: as Go writes durations. */
  durationMs(name: Name): number | undefined;
}

/** Throws ConfigError, also for values that nobody may ask for. */
export function apiServerArgs(given: readonly string[]): ApiServerArgs {
  const values = new Map<string, string[]>();
  for (const text of given) {
    const { name, value } = argumentOf(text) ?? { name: "", value: "" };
    if (NAMES.includes(name as Name)) values.set(name, [...(values.get(name) ?? []), value]);
    else checkOther("kube-apiserver-arg", text, { others: OTHER_API_SERVER_SETTINGS, known: NAMES });
  }
  const last = (name: Name): string | undefined => values.get(name)?.at(-1);
  const refuse = (name: Name, wanted: string): never => { throw new ConfigError(`--kube-apiserver-arg ${name} must be ${wanted}, not ${JSON.stringify(last(name))}`); };
  const args: ApiServerArgs = {
    text: last,
    texts: (name) => values.get(name) ?? [],
    list: (name) => (values.get(name) ?? []).flatMap((text) => text.split(",")).filter((part) => part !== ""),
    boolean(name, standard) {
      const text = last(name);
      return text === undefined ? standard : parseGoBool(text) ?? refuse(name, "true or false");
    },
    integer(name) {
      const text = last(name);
      return text === undefined ? undefined : /^\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : refuse(name, "a whole number");
    },
    decimal(name) {
      const text = last(name);
      return text === undefined ? undefined : /^\d+(\.\d+)?$/.test(text) ? Number(text) : refuse(name, "a number");
    },
    durationMs(name) {
      const text = last(name);
      return text === undefined ? undefined : durationMsOf(text) ?? refuse(name, "a duration such as 30s or 1h30m");
    },
  };
  for (const kind of ["boolean", "integer", "decimal", "durationMs"] as const) for (const name of KINDS[kind]) args[kind](name, false);
  return args;
}
