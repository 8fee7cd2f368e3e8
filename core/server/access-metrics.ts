/**
 * What is counted of who asks, whether they may, and how long they waited for their turn, under upstream's names.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/filters/metrics.go, apiserver/pkg/endpoints/filterlatency
 */
import { once } from "../lifecycle/once.ts";
import type { Metrics } from "../observe/metrics.ts";

const AUTH_BUCKETS = [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384];
const FILTER_BUCKETS = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 5, 10, 15, 30];

export interface AccessMeter {
  /** What was shown did not hold ("error"), nothing was shown where something must be ("failure"), or it is a user. */
  authenticated(who: "error" | "failure" | { readonly user: string }, durationMs: number): void;
  authorized(decision: "allow" | "deny" | "no-opinion" | "error", durationMs: number): void;
  /** It had its turn after so long. */
  waited(ms: number): void;
}

interface Outcome { readonly attempts: { inc(): void }; readonly duration: { observe(value: number): void } }

export function accessMetrics(metrics: Metrics): AccessMeter {
  const users = metrics.counter("authenticated_user_requests", "[ALPHA] Counter of authenticated requests broken out by username.");
  const attempts = metrics.counter("authentication_attempts", "[ALPHA] Counter of authenticated attempts.");
  const authentication = metrics.histogram("authentication_duration_seconds", "[ALPHA] Authentication duration in seconds broken out by result.", AUTH_BUCKETS);
  const decisions = metrics.counter("authorization_attempts_total", "[ALPHA] Counter of authorization attempts broken down by result. It can be either 'allowed', 'denied', 'no-opinion' or 'error'.");
  const authorization = metrics.histogram("authorization_duration_seconds", "[ALPHA] Authorization duration in seconds broken out by result.", AUTH_BUCKETS);
  const outcome = (result: string): Outcome => ({ attempts: attempts.with({ result }), duration: authentication.with({ result }) });
  const authenticated = { success: once(() => outcome("success")), failure: once(() => outcome("failure")), error: once(() => outcome("error")) };
  const decided = Object.fromEntries([["allow", "allowed"], ["deny", "denied"], ["no-opinion", "no-opinion"], ["error", "error"]].map(([decision, result]) =>
    [decision!, once(() => ({ attempts: decisions.with({ result: result! }), duration: authorization.with({ result: result! }) }))])) as Record<"allow" | "deny" | "no-opinion" | "error", () => Outcome>;
  const names = new Map<string, { inc(): void }>();
  const filters = metrics.histogram("apiserver_request_filter_duration_seconds", "[ALPHA] Request filter latency distribution in seconds, for each filter type", FILTER_BUCKETS);
  const filtered = { authentication: filters.with({ filter: "authentication" }), authorization: filters.with({ filter: "authorization" }), priorityandfairness: filters.with({ filter: "priorityandfairness" }) };

  return {
    waited: (ms) => filtered.priorityandfairness.observe(ms / 1000),
    authenticated(who, durationMs) {
      const { attempts: tried, duration: took } = authenticated[typeof who === "string" ? who : "success"]();
      tried.inc();
      took.observe(durationMs / 1000);
      filtered.authentication.observe(durationMs / 1000);
      if (typeof who === "string") return;
      const name = userLabel(who.user);
      let counter = names.get(name);
      if (!counter) names.set(name, (counter = users.with({ username: name })));
      counter.inc();
    },
    authorized(decision, durationMs) {
      const { attempts: tried, duration: took } = decided[decision]();
      tried.inc();
      took.observe(durationMs / 1000);
      filtered.authorization.observe(durationMs / 1000);
    },
  };
}

/** One series for all who are no part of the system: there may be many. Source: compressUsername */
function userLabel(name: string): string {
  if (["admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"].includes(name)) return name;
  return name.includes("@") ? "email_id" : "other";
}
