/**
 * What is counted of every request, under upstream's names: dashboards and alerts rely on them.
 *
 * A request is counted once somebody answers it: who is not let in, and what nobody serves, is not, as at upstream. What lasts is counted when it ends.
 * Series are looked up by a text of what tells them apart, once for each kind of request: counting costs a look into a map.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/metrics/metrics.go, apiserver/pkg/endpoints/handlers/metrics/metrics.go
 */
import type { Clock } from "../lifecycle/clock.ts";
import { once } from "../lifecycle/once.ts";
import { doubling, type Labels, type Metrics } from "../observe/metrics.ts";
import { type AccessMeter, accessMetrics } from "./access-metrics.ts";
import { isReading } from "./fairness/max-in-flight.ts";
import { isLasting } from "./lasting.ts";
import type { RequestInfo, ResourceRequestInfo } from "./request-info.ts";
import { dryRunOf, earlyLabels, requestKey, requestLabels, scopeOf, systemClientOf } from "./request-labels.ts";
import type { ServerRequest } from "./request.ts";
import { Watermark } from "./watermark.ts";

const DURATION_BUCKETS = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60];
const SLI_BUCKETS = DURATION_BUCKETS.filter((seconds) => seconds >= 0.05);
const WATCH_LIST_BUCKETS = [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 15, 20, 30, 45, 60];
const SIZE_BUCKETS = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
/** From 50 KB, in steps of 100 KB. */
const BODY_BUCKETS = Array.from({ length: 31 }, (_, i) => 50_000 + i * 100_000);
/** What upstream's loops within the API server call themselves. */
const OWN_AGENT = "kube-apiserver";

export interface Metered {
  /** It is its turn. */
  entered(): void;
  /** Something answers it: what nobody does, and whoever is not let in, is not counted. */
  served(): void;
  /** It had no turn: that is counted, and nothing else of it. */
  dropped(): void;
  /** Whoever asked went while the answer was sent. */
  brokenOff(): void;
  /** It was ended early by this part of the system. */
  cutShort(component: string, code: number): void;
  /** `waitedMs`: of `durationMs`, for its turn. `isOverdue`: it was given up. */
  end(code: number, how: { readonly durationMs: number; readonly waitedMs: number; readonly isOverdue?: boolean }): void;
  /** How many bytes were answered; absent: they are not counted. */
  readonly sized?: ((bytes: number) => void) | undefined;
  /** Its body has so many. */
  sent(bytes: number): void;
  /** A webhook took so long: that is not the server's own time. */
  took(layer: "mutating-webhook" | "validating-webhook", ms: number): void;
}

export interface RequestMeter extends AccessMeter {
  begin(request: ServerRequest, info: RequestInfo): Metered;
  /** What is asked for is still served, but should not be used any more. */
  deprecated(info: ResourceRequestInfo): void;
  /** For one watch. */
  watch(request: ServerRequest, info: ResourceRequestInfo): WatchMeter;
}

export interface WatchMeter {
  began(): void;
  ended(): void;
  /** So many events are sent. */
  events(count: number): void;
  /** One of them is so long. */
  eventSized(bytes: number): void;
  /** What there was at the start (sendInitialEvents) has been sent, this long after it was asked for. */
  listed(ms: number): void;
}

export function requestMetrics(metrics: Metrics, clock: Pick<Clock, "uptimeMs">): RequestMeter {
  const total = metrics.counter("apiserver_request_total", "[STABLE] Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.");
  const duration = metrics.histogram("apiserver_request_duration_seconds", "[STABLE] Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope and component.", DURATION_BUCKETS);
  const sli = metrics.histogram("apiserver_request_sli_duration_seconds", "[ALPHA] Response latency distribution (not counting webhook duration and priority & fairness queue wait times) in seconds for each verb, group, version, resource, subresource, scope and component.", SLI_BUCKETS);
  const validation = metrics.histogram("field_validation_request_duration_seconds", "[ALPHA] Response latency distribution in seconds for each field validation value", SLI_BUCKETS);
  const lasting = metrics.gauge("apiserver_longrunning_requests", "[STABLE] Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and component. Not all requests are tracked this way.");
  const terminations = metrics.counter("apiserver_request_terminations_total", "[ALPHA] Number of requests which apiserver terminated in self-defense.");
  const aborts = metrics.counter("apiserver_request_aborts_total", "[ALPHA] Number of requests which apiserver aborted possibly due to a timeout, for each group, version, verb, resource, subresource and scope");
  const sizes = metrics.histogram("apiserver_response_sizes", "[STABLE] Response size distribution in bytes for each group, version, verb, resource, subresource, scope and component.", SIZE_BUCKETS);
  const bodies = metrics.histogram("apiserver_request_body_size_bytes", "[ALPHA] Apiserver request body size in bytes broken out by resource and verb.", BODY_BUCKETS);
  const own = metrics.counter("apiserver_selfrequest_total", "[ALPHA] Counter of apiserver self-requests broken out for each verb, API resource and subresource.");
  const deprecated = metrics.gauge("apiserver_requested_deprecated_apis", "[STABLE] Gauge of deprecated APIs that have been requested, broken out by API group, version, resource, subresource, and removed_release.");
  const inFlight = { readOnly: new Watermark(), mutating: new Watermark() };
  metrics.gaugeFrom("apiserver_current_inflight_requests", "[STABLE] Maximal number of currently used inflight request limit of this apiserver per request kind in last second.", () =>
    (["mutating", "readOnly"] as const).map((request_kind) => [{ request_kind }, inFlight[request_kind].read(clock.uptimeMs())]));
  const kinds = new Map<string, Kind>();

  function kindOf(request: ServerRequest, info: RequestInfo): Kind | undefined {
    const key = requestKey(request, info);
    const known = key === undefined ? undefined : kinds.get(key);
    if (key === undefined || known) return known;
    const labels = requestLabels(request, info);
    const { verb = "", group = "", resource = "", subresource = "" } = labels;
    const made: Kind = {
      labels, codes: new Map(), duration: duration.with(labels), sli: labels["dry_run"] === "" ? once(() => sli.with(withoutDryRun(labels))) : undefined,
      own: once(() => own.with({ group, resource, subresource, verb })), sent: once(() => bodies.with({ group, resource, verb: info.verb === "deletecollection" ? "delete_collection" : info.verb })), sized: undefined,
    };
    if (verb === "GET" || verb === "LIST") { // of what is read alone
      const size = sizes.with(withoutDryRun(labels));
      made.sized = (bytes) => size.observe(bytes);
    }
    if (kinds.size < KINDS_MAX) kinds.set(key, made);
    return made;
  }

  function count(request: ServerRequest, kind: Kind, code: number, durationMs: number): void {
    const system_client = systemClientOf(request);
    const key = system_client === "" ? code : `${code} ${system_client}`;
    let counter = kind.codes.get(key);
    if (!counter) {
      const { verb = "", version = "", ...labels } = kind.labels;
      kind.codes.set(key, (counter = total.with({ code: String(code), ...labels, system_client, verb, version })));
    }
    counter.inc();
    kind.duration.observe(durationMs / 1000);
    if (system_client === OWN_AGENT) kind.own().inc();
    const asked = request.query.get("fieldValidation");
    if (asked !== null) validation.observe(durationMs / 1000, { field_validation: FIELD_VALIDATIONS.has(asked) ? asked : "invalid" });
  }

  const events = metrics.counter("apiserver_watch_events_total", "[ALPHA] Number of events sent in watch clients");
  const eventSizes = metrics.histogram("apiserver_watch_events_sizes", "[ALPHA] Watch event size distribution in bytes", doubling(1024, 8));
  const watchLists = metrics.histogram("apiserver_watch_list_duration_seconds", "[BETA] Response latency distribution in seconds for watch list requests broken by group, version, resource and scope.", WATCH_LIST_BUCKETS);

  // one validation decides, so that there is none that it differs from: what upstream counts of its two is nought, and alerts on it are quiet
  metrics.counter("apiserver_validation_declarative_validation_mismatch_total", "[BETA] Number of times declarative validation results differed from handwritten validation results for core types.").with({});
  metrics.counter("apiserver_validation_declarative_validation_panic_total", "[BETA] Number of times declarative validation has panicked during validation.").with({});

  /** From now until it is gone. */
  function lasts(request: ServerRequest, info: RequestInfo, ended: () => void): { end(): void } {
    const labels = earlyLabels(request, info);
    lasting.add(1, labels);
    return {
      end() {
        lasting.add(-1, labels);
        ended();
      },
    };
  }

  return {
    ...accessMetrics(metrics),
    begin(request, info) {
      const startMs = clock.uptimeMs();
      const isWatch = info.verb === "watch", isConnection = isLasting(info);
      const now = isWatch || isConnection ? undefined : inFlight[isReading(info) ? "readOnly" : "mutating"];
      let hasEntered = false, isServed = false, isDropped = false;
      let mutatingMs = 0, validatingMs = 0; // those that validate are asked all at once: kubernetes v1.36 apiserver/pkg/endpoints/request/webhook_duration.go
      let kind: Kind | undefined; // of what is served alone: there are as many resources that do not exist as strangers can think of
      return {
        get sized() { return kind?.sized; },
        entered() {
          hasEntered = true;
          now?.add(1, clock.uptimeMs());
        },
        served() {
          isServed = true;
          kind = kindOf(request, info);
        },
        dropped() {
          isDropped = true;
          const { group = "", resource = "", scope = "", subresource = "", verb = "", version = "", component = "" } = earlyLabels(request, info);
          total.inc({ code: "429", component, dry_run: dryRunOf(request.query), group, resource, scope, subresource, system_client: "", verb, version });
          terminations.inc({ code: "429", ...earlyLabels(request, info) });
        },
        brokenOff: () => aborts.inc(withoutComponent(earlyLabels(request, info))),
        cutShort: (component, code) => terminations.inc({ code: String(code), ...earlyLabels(request, info), component }),
        sent: (bytes) => kind?.sent().observe(bytes),
        took(layer, ms) {
          if (layer === "mutating-webhook") mutatingMs += ms;
          else validatingMs = Math.max(validatingMs, ms);
        },
        end(code, { durationMs, waitedMs, isOverdue = false }) {
          if (hasEntered) now?.add(-1, clock.uptimeMs());
          if (!isServed || isDropped) return;
          if (isOverdue || (request.signal.aborted && now)) terminations.inc({ code: "504", ...earlyLabels(request, info) }); // who has gone has not waited long enough, either
          if (!kind) return;
          if (code < 400 && isWatch) return; // is counted when it ends, by its own meter
          if (code < 400 && isConnection && !request.user) {
            const counted = kind;
            const { end } = lasts(request, info, () => count(request, counted, code, clock.uptimeMs() - startMs));
            if (request.signal.aborted) end();
            else request.signal.addEventListener("abort", end, { once: true });
            return;
          }
          count(request, kind, code, durationMs);
          kind.sli?.().observe(Math.max(0, durationMs - waitedMs - mutatingMs - validatingMs) / 1000);
        },
      };
    },
    deprecated: ({ group, version, resource, subresource }) => deprecated.set(1, { group, version, resource, subresource, removed_release: "" }),
    watch(request, info) {
      const { group, version, resource } = info;
      const counter = events.with({ group, version, resource });
      const sizesOf = once(() => eventSizes.with({ group, version, resource }));
      const startMs = clock.uptimeMs();
      let lasting: { end(): void } | undefined;
      return {
        began() {
          lasting = lasts(request, info, () => count(request, kindOf(request, info)!, 200, clock.uptimeMs() - startMs));
        },
        ended: () => lasting?.end(),
        events: (count) => counter.inc(count),
        eventSized: (bytes) => sizesOf().observe(bytes),
        listed: (ms) => watchLists.observe(ms / 1000, { group, resource, scope: scopeOf(info), version }),
      };
    },
  };
}

interface Kind {
  readonly labels: Labels;
  /** By what was answered, and to which part of the system, if to one. */
  readonly codes: Map<number | string, { inc(): void }>;
  readonly duration: { observe(value: number): void };
  /** Absent: nothing was promised of it. */
  readonly sli: (() => { observe(value: number): void }) | undefined;
  readonly own: () => { inc(): void };
  readonly sent: () => { observe(value: number): void };
  sized: ((bytes: number) => void) | undefined;
}
const FIELD_VALIDATIONS: ReadonlySet<string> = new Set(["Ignore", "Warn", "Strict"]);

/** Custom resources come and go, and their kinds stay. */
const KINDS_MAX = 5_000;

function withoutDryRun({ dry_run: _, ...labels }: Labels): Labels { return labels; }

function withoutComponent({ component: _, ...labels }: Labels): Labels { return labels; }
