/**
 * What is counted of every request, under upstream's names: dashboards and alerts rely on them.
 *
 * Series are looked up by a text of what tells them apart, once for each kind of request: counting costs a look into a map.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/metrics/metrics.go, pkg/endpoints/filters/metrics.go
 */
import type { Labels, Metrics } from "../observe/metrics.ts";
import { isReading } from "./fairness/max-in-flight.ts";
import { isLasting } from "./lasting.ts";
import type { RequestInfo, ResourceRequestInfo } from "./request-info.ts";
import type { ServerRequest } from "./request.ts";

const DURATION_BUCKETS = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60];
const SLI_BUCKETS = DURATION_BUCKETS.filter((seconds) => seconds >= 0.05);
const WATCH_LIST_BUCKETS = [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 15, 20, 30, 45, 60];
const SIZE_BUCKETS = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
const AUTH_BUCKETS = [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384];
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
const CONNECTS: ReadonlySet<string> = new Set(["attach", "exec", "portforward", "proxy"]);

export interface Metered {
  end(code: number, durationMs: number): void;
  /** It ended before it came to anything that is served, so it has no series: there are as many resources that do not exist as strangers can think of. Upstream measures its routes alone. */
  endUnserved(): void;
  /** How many bytes were answered; absent: they are not counted. */
  readonly sized?: ((bytes: number) => void) | undefined;
}

export interface RequestMeter {
  begin(request: ServerRequest, info: RequestInfo): Metered;
  /** What was shown did not hold ("error"), nothing was shown where something must be ("failure"), or it is a user. */
  authenticated(who: "error" | "failure" | { readonly user: string }, durationMs: number): void;
  authorized(decision: "allow" | "deny" | "no-opinion" | "error", durationMs: number): void;
  /** What is asked for is still served, but should not be used any more. */
  deprecated(info: ResourceRequestInfo): void;
  /** For one watch. */
  watch(info: RequestInfo): WatchMeter;
}

export interface WatchMeter {
  /** So many events are sent. */
  events(count: number): void;
  /** What there was at the start (sendInitialEvents) has been sent, this long after it was asked for. */
  listed(ms: number): void;
}

export function requestMetrics(metrics: Metrics): RequestMeter {
  const total = metrics.counter("apiserver_request_total", "[STABLE] Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.");
  const duration = metrics.histogram("apiserver_request_duration_seconds", "[STABLE] Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope and component.", DURATION_BUCKETS);
  const sli = metrics.histogram("apiserver_request_sli_duration_seconds", "[ALPHA] Response latency distribution (not counting webhook duration and priority & fairness queue wait times) in seconds for each verb, group, version, resource, subresource, scope and component.", SLI_BUCKETS);
  const lasting = metrics.gauge("apiserver_longrunning_requests", "[STABLE] Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and component. Not all requests are tracked this way.");
  const terminations = metrics.counter("apiserver_request_terminations_total", "[ALPHA] Number of requests which apiserver terminated in self-defense.");
  const aborts = metrics.counter("apiserver_request_aborts_total", "[ALPHA] Number of requests which apiserver aborted possibly due to a timeout, for each group, version, verb, resource, subresource and scope");
  const sizes = metrics.histogram("apiserver_response_sizes", "[STABLE] Response size distribution in bytes for each group, version, verb, resource, subresource, scope and component.", SIZE_BUCKETS);
  const deprecated = metrics.gauge("apiserver_requested_deprecated_apis", "[STABLE] Gauge of deprecated APIs that have been requested, broken out by API group, version, resource, subresource, and removed_release.");
  const inFlight = { readOnly: 0, mutating: 0 };
  metrics.gaugeFrom("apiserver_current_inflight_requests", "[STABLE] Maximal number of currently used inflight request limit of this apiserver per request kind in last second.", () =>
    [[{ request_kind: "mutating" }, inFlight.mutating], [{ request_kind: "readOnly" }, inFlight.readOnly]]);
  const kinds = new Map<string, Kind>();

  function kindOf(request: ServerRequest, info: RequestInfo): Kind {
    const verb = verbOf(request, info);
    const dryRun = request.query.has("dryRun") ? "All" : "";
    const key = info.isResource ? `${verb}|${dryRun}|${info.group}|${info.version}|${info.resource}|${info.subresource}|${scopeOf(info)}` : `${verb}|${dryRun}|${pathOf(info.path)}`;
    const known = kinds.get(key);
    if (known) return known;
    const labels: Labels = info.isResource
      ? { component: "apiserver", dry_run: dryRun, group: info.group, resource: info.resource, scope: scopeOf(info), subresource: info.subresource, verb, version: info.version }
      : { component: "apiserver", dry_run: dryRun, group: "", resource: "", scope: "", subresource: pathOf(info.path), verb, version: "" };
    const made: Kind = { labels, codes: new Map(), duration: duration.with(labels), sli: sli.with(withoutDryRun(labels)), sized: undefined };
    if (verb === "GET" || verb === "LIST") { // of what is read alone
      const size = sizes.with(withoutDryRun(labels));
      made.sized = (bytes) => size.observe(bytes);
    }
    if (kinds.size < KINDS_MAX) kinds.set(key, made);
    return made;
  }

  function count(kind: Kind, code: number): void {
    let counter = kind.codes.get(code);
    if (!counter) kind.codes.set(code, (counter = total.with({ code: String(code), ...kind.labels })));
    counter.inc();
  }

  const users = metrics.counter("authenticated_user_requests", "[ALPHA] Counter of authenticated requests broken out by username.");
  const attempts = metrics.counter("authentication_attempts", "[ALPHA] Counter of authenticated attempts.");
  const authentication = metrics.histogram("authentication_duration_seconds", "[ALPHA] Authentication duration in seconds broken out by result.", AUTH_BUCKETS);
  const decisions = metrics.counter("authorization_attempts_total", "[ALPHA] Counter of authorization attempts broken down by result. It can be either 'allowed', 'denied', 'no-opinion' or 'error'.");
  const authorization = metrics.histogram("authorization_duration_seconds", "[ALPHA] Authorization duration in seconds broken out by result.", AUTH_BUCKETS);
  const outcome = (result: string): Outcome => ({ attempts: attempts.with({ result }), duration: authentication.with({ result }) });
  const authenticated = { success: lazily(() => outcome("success")), failure: lazily(() => outcome("failure")), error: lazily(() => outcome("error")) };
  const decided = Object.fromEntries([["allow", "allowed"], ["deny", "denied"], ["no-opinion", "no-opinion"], ["error", "error"]].map(([decision, result]) =>
    [decision!, lazily(() => ({ attempts: decisions.with({ result: result! }), duration: authorization.with({ result: result! }) }))])) as Record<"allow" | "deny" | "no-opinion" | "error", () => Outcome>;
  const names = new Map<string, { inc(): void }>();
  const events = metrics.counter("apiserver_watch_events_total", "[ALPHA] Number of events sent in watch clients");
  const watchLists = metrics.histogram("apiserver_watch_list_duration_seconds", "[BETA] Response latency distribution in seconds for watch list requests broken by group, version, resource and scope.", WATCH_LIST_BUCKETS);

  return {
    begin(request, info) {
      const lasts = info.verb === "watch" || isLasting(info);
      const side = isReading(info) ? "readOnly" : "mutating";
      if (!lasts) inFlight[side]++;
      let kind: Kind | undefined;
      return {
        get sized() { return (kind ??= kindOf(request, info)).sized; },
        endUnserved() {
          if (!lasts) inFlight[side]--;
        },
        end(code, durationMs) {
          kind ??= kindOf(request, info);
          count(kind, code);
          if (code === 429) terminations.inc({ ...withoutDryRun(kind.labels), code: "429" });
          if (request.signal.aborted && !lasts) aborts.inc(withoutComponent(withoutDryRun(kind.labels)));
          if (!lasts) {
            inFlight[side]--;
            kind.duration.observe(durationMs / 1000);
            kind.sli.observe(durationMs / 1000);
          } else if (!request.user && code < 400) {
            const labels = withoutDryRun(kind.labels);
            lasting.add(1, labels);
            request.signal.addEventListener("abort", () => lasting.add(-1, labels), { once: true });
          }
        },
      };
    },
    deprecated: ({ group, version, resource, subresource }) => deprecated.set(1, { group, version, resource, subresource, removed_release: "" }),
    watch(info) {
      if (!info.isResource) return { events: () => undefined, listed: () => undefined };
      const { group, version, resource } = info;
      const counter = events.with({ group, version, resource });
      return { events: (count) => counter.inc(count), listed: (ms) => watchLists.observe(ms / 1000, { group, resource, scope: scopeOf(info), version }) };
    },
    authenticated(who, durationMs) {
      const { attempts: tried, duration: took } = authenticated[typeof who === "string" ? who : "success"]();
      tried.inc();
      took.observe(durationMs / 1000);
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
    },
  };
}

interface Kind { readonly labels: Labels; readonly codes: Map<number, { inc(): void }>; readonly duration: { observe(value: number): void }; readonly sli: { observe(value: number): void }; sized: ((bytes: number) => void) | undefined }
interface Outcome { readonly attempts: { inc(): void }; readonly duration: { observe(value: number): void } }

/** Custom resources come and go, and their kinds stay. */
const KINDS_MAX = 5_000;

function withoutDryRun({ dry_run: _, ...labels }: Labels): Labels { return labels; }

function withoutComponent({ component: _, ...labels }: Labels): Labels { return labels; }

function lazily<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

/** One series for all who are no part of the system: there may be many. Source: pkg/endpoints/filters/metrics.go compressUsername */
function userLabel(name: string): string {
  if (["admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"].includes(name)) return name;
  return name.includes("@") ? "email_id" : "other";
}

function scopeOf(info: Extract<RequestInfo, { isResource: true }>): string {
  return info.name !== "" || info.verb === "create" ? "resource" : info.namespace !== "" ? "namespace" : "cluster";
}

/** The first part of a path: /healthz/etcd is /healthz, and what nobody serves is nothing in particular. */
function pathOf(path: string): string {
  const [, first = ""] = path.split("/");
  return PATHS.has(first) ? `/${first}` : "";
}
const PATHS: ReadonlySet<string> = new Set(["api", "apis", "healthz", "livez", "readyz", "metrics", "openapi", "version", "debug", "logs", "flagz", "statusz", ".well-known"]);

function verbOf(request: ServerRequest, info: RequestInfo): string {
  const method = METHODS.has(request.method) ? request.method : "other";
  if (!info.isResource) return method === "HEAD" ? "GET" : method;
  if (info.verb === "watch") return "WATCH";
  if (CONNECTS.has(info.subresource)) return "CONNECT";
  if (info.verb === "deletecollection") return "DELETECOLLECTION";
  if (info.verb === "list") return "LIST";
  if (method === "PATCH" && request.header("content-type")?.startsWith("application/apply-patch")) return "APPLY";
  return method === "HEAD" ? "GET" : method;
}
