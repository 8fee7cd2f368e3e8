import { expect, test } from "vitest";
import { type Metrics, metricsRegistry } from "../observe/metrics.ts";
import { requestInfo, type ResourceRequestInfo } from "./request-info.ts";
import { requestMetrics } from "./request-metrics.ts";
import type { ServerRequest } from "./request.ts";

let nowMs = 0;
const clock = { uptimeMs: () => nowMs };

function ask(method: string, url: string, { contentType = "", user = undefined as ServerRequest["user"], agent = "" } = {}) {
  const [path = "", search = ""] = url.split("?");
  const query = new URLSearchParams(search);
  const gone = new AbortController();
  const headers: Record<string, string> = { "content-type": contentType, "user-agent": agent };
  return { request: { method, path, query, user, signal: gone.signal, header: (name: string) => headers[name] } as unknown as ServerRequest, info: requestInfo(method, path, query), gone };
}

function counted(method: string, url: string, { contentType = "", code = 200, served = true, agent = "" } = {}): string[] {
  const metrics = metricsRegistry();
  const { request, info, gone } = ask(method, url, { contentType, agent });
  const meter = requestMetrics(metrics, clock);
  const metered = meter.begin(request, info);
  if (served) metered.served();
  metered.end(code, { durationMs: 12, waitedMs: 0 });
  if (info.isResource && info.verb === "watch") {
    const watch = meter.watch(request, info);
    watch.began();
    watch.ended();
  }
  gone.abort();
  return metrics.render().split("\n").filter((line) => line.startsWith("apiserver_request_total{"));
}

test.each<[string, string, { contentType?: string; code?: number; agent?: string } | undefined, string]>([
  ["GET", "/api/v1/namespaces/a/pods/b", undefined, 'code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",system_client="",verb="GET",version="v1"'],
  ["GET", "/api/v1/pods", undefined, 'code="200",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",system_client="",verb="LIST",version="v1"'],
  ["GET", "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Db", undefined, 'code="200",component="apiserver",dry_run="",group="",resource="pods",scope="namespace",subresource="",system_client="",verb="LIST",version="v1"'],
  ["GET", "/apis/apps/v1/namespaces/a/deployments?watch=1", undefined, 'code="200",component="apiserver",dry_run="",group="apps",resource="deployments",scope="namespace",subresource="",system_client="",verb="WATCH",version="v1"'],
  ["POST", "/apis/apps/v1/namespaces/a/deployments?dryRun=All", { code: 201 }, 'code="201",component="apiserver",dry_run="All",group="apps",resource="deployments",scope="resource",subresource="",system_client="",verb="POST",version="v1"'],
  ["POST", "/apis/apps/v1/namespaces/a/deployments?dryRun=Some", { code: 422 }, 'code="422",component="apiserver",dry_run="invalid",group="apps",resource="deployments",scope="resource",subresource="",system_client="",verb="POST",version="v1"'],
  ["PATCH", "/apis/apps/v1/namespaces/a/deployments/b/status", { contentType: "application/apply-patch+yaml" }, 'code="200",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="status",system_client="",verb="APPLY",version="v1"'],
  ["POST", "/api/v1/namespaces/a/pods/b/exec", { code: 101 }, 'code="101",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="exec",system_client="",verb="CONNECT",version="v1"'],
  ["GET", "/api/v1/namespaces/a/pods/b/log", undefined, 'code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="log",system_client="",verb="CONNECT",version="v1"'],
  ["DELETE", "/api/v1/namespaces/a/pods", undefined, 'code="200",component="apiserver",dry_run="",group="",resource="pods",scope="namespace",subresource="",system_client="",verb="DELETE",version="v1"'],
  ["GET", "/healthz", undefined, 'code="200",component="",dry_run="",group="",resource="",scope="",subresource="/healthz",system_client="",verb="GET",version=""'],
  ["GET", "/statusz", undefined, 'code="200",component="apiserver",dry_run="",group="",resource="statusz",scope="",subresource="",system_client="",verb="GET",version=""'],
  ["GET", "/openapi/v3/apis/apps/v1", undefined, 'code="200",component="",dry_run="",group="",resource="",scope="",subresource="openapi/v3/",system_client="",verb="GET",version=""'],
  ["GET", "/api/v1/pods", { agent: "kube-scheduler/v1.36.0 (linux/amd64)" }, 'code="200",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",system_client="kube-scheduler",verb="LIST",version="v1"'],
  ["GET", "/api/v1/pods", { agent: "kube-scheduler" }, 'code="200",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",system_client="",verb="LIST",version="v1"'],
  ["GET", "/api/v1/pods", { agent: "kubectl/v1.36.0" }, 'code="200",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",system_client="",verb="LIST",version="v1"'],
])("%s %s is counted as upstream counts it", (method, url, how, labels) => expect(counted(method, url, how)).toEqual([`apiserver_request_total{${labels}} 1`]));

test.each<[string, string, { code: number; served: boolean }]>([
  ["GET", "/api/v1/secrets", { code: 403, served: false }], ["GET", "/api/v1/things", { code: 404, served: false }],
  ["GET", "/version", { code: 200, served: true }], ["GET", "/healthz/etcd", { code: 200, served: true }], ["SPY", "/whatever", { code: 404, served: true }],
])("%s %s is not counted, as at upstream", (method, url, how) => expect(counted(method, url, how)).toEqual([]));

test("who has no turn is counted all the same, and as given up", () => {
  const metrics = metricsRegistry();
  const { request, info } = ask("GET", "/api/v1/pods");
  const metered = requestMetrics(metrics, clock).begin(request, info);
  metered.dropped();
  metered.end(429, { durationMs: 1, waitedMs: 1 });
  expect(metrics.render()).not.toMatch(/^apiserver_request_(sli_)?duration_seconds_count/m); // nothing was done for it
  expect(metrics.render()).toMatch(/^apiserver_request_total\{code="429",.*verb="LIST",version="v1"\} 1$/m);
  expect(metrics.render()).toMatch(/^apiserver_request_terminations_total\{code="429",component="apiserver",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"\} 1$/m);
});

test("an answer of 429 is no request given up: a disruption budget has no room", () => {
  const metrics = metricsRegistry();
  const { request, info } = ask("POST", "/api/v1/namespaces/a/pods/b/eviction");
  const metered = requestMetrics(metrics, clock).begin(request, info);
  metered.served();
  metered.end(429, { durationMs: 1, waitedMs: 1 });
  expect(lines(metrics, /^apiserver_request_terminations_total\{/)).toEqual([]);
  expect(lines(metrics, /^apiserver_request_total\{code="429"/)).toHaveLength(1);
  metered.cutShort("aggregator", 503);
  expect(lines(metrics, /^apiserver_request_terminations_total\{/)).toEqual(['apiserver_request_terminations_total{code="503",component="aggregator",group="",resource="pods",scope="resource",subresource="eviction",verb="POST",version="v1"} 1']);
});

const lines = (metrics: Metrics, name: RegExp): string[] => metrics.render().split("\n").filter((line) => name.test(line));

test("a watch is told of while it lasts, and counted with its duration when it ends", () => {
  const metrics = metricsRegistry();
  const { request, info } = ask("GET", "/api/v1/pods?watch=1");
  const meter = requestMetrics(metrics, clock);
  const metered = meter.begin(request, info);
  metered.served();
  metered.end(200, { durationMs: 1, waitedMs: 0 });
  const watch = meter.watch(request, info as ResourceRequestInfo);
  watch.began();
  watch.events(3);
  for (const bytes of [1_024, 1_025, 200_000]) watch.eventSized(bytes);
  const shown = (): string[] => lines(metrics, /^apiserver_(longrunning_requests|request_total|request_duration_seconds_sum)/).map((line) => line.replace(/\{.*\}/, ""));
  expect(shown()).toEqual(["apiserver_longrunning_requests 1", "apiserver_request_duration_seconds_sum 0"]);
  nowMs += 5_000;
  watch.ended();
  expect(shown()).toEqual(["apiserver_longrunning_requests 0", "apiserver_request_duration_seconds_sum 5", "apiserver_request_total 1"]);
  expect(lines(metrics, /^apiserver_watch_events_total/)).toEqual(['apiserver_watch_events_total{group="",resource="pods",version="v1"} 3']);
  const sizes = lines(metrics, /^apiserver_watch_events_sizes_/).map((line) => line.replace(/\{.*?(?:le="(.*)")?\}/, " $1"));
  expect(sizes.filter((line) => / (?:1024|2048|131072|\+Inf) |sum|count/.test(line)).map((line) => line.replace(/^apiserver_watch_events_sizes_/, ""))).toEqual(["bucket 1024 1", "bucket 2048 2", "bucket 131072 2", "bucket +Inf 3", "sum  202049", "count  3"]);
});

test("a connection to a container lasts until the client has gone", () => {
  const metrics = metricsRegistry();
  const { request, info, gone } = ask("POST", "/api/v1/namespaces/a/pods/b/exec");
  const metered = requestMetrics(metrics, clock).begin(request, info);
  metered.served();
  metered.end(101, { durationMs: 1, waitedMs: 0 });
  expect(lines(metrics, /^apiserver_(longrunning_requests|request_total)/)).toEqual(['apiserver_longrunning_requests{component="apiserver",group="",resource="pods",scope="resource",subresource="exec",verb="CONNECT",version="v1"} 1']);
  gone.abort();
  expect(lines(metrics, /^apiserver_(longrunning_requests|request_total)/).map((line) => line.replace(/\{.*\}/, ""))).toEqual(["apiserver_longrunning_requests 0", "apiserver_request_total 1"]);
});

test("how many requests are served at once is told of the second before, at its height, without those that wait for their turn", () => {
  const metrics = metricsRegistry();
  const meter = requestMetrics(metrics, clock);
  nowMs = 10_000;
  const served = [1, 2, 3].map(() => meter.begin(ask("GET", "/api/v1/pods").request, ask("GET", "/api/v1/pods").info));
  const waiting = meter.begin(ask("GET", "/api/v1/pods").request, ask("GET", "/api/v1/pods").info);
  for (const one of served) one.entered();
  for (const one of [...served, waiting]) one.end(200, { durationMs: 3, waitedMs: 0 });
  const shown = (): string[] => lines(metrics, /^apiserver_current_inflight/).map((line) => line.replace(/.*request_kind="(\w+)"\}/, "$1"));
  expect(shown()).toEqual(["mutating 0", "readOnly 0"]);
  nowMs = 11_400;
  expect(shown()).toEqual(["mutating 0", "readOnly 3"]);
  nowMs = 12_400;
  expect(shown()).toEqual(["mutating 0", "readOnly 0"]);
});

test("webhooks' time is not the server's: of those that mutate all of it, of those that validate the slowest's", () => {
  const metrics = metricsRegistry();
  const { request, info } = ask("POST", "/api/v1/namespaces/a/pods");
  const served = requestMetrics(metrics, clock).begin(request, info);
  served.served();
  for (const ms of [200, 300]) served.took("mutating-webhook", ms);
  for (const ms of [400, 250]) served.took("validating-webhook", ms);
  served.end(201, { durationMs: 1130, waitedMs: 200 });
  const sum = (name: string): number[] => lines(metrics, new RegExp(`^apiserver_request_${name}_seconds_sum`)).map((line) => Number(line.split(" ")[1]));
  expect([sum("duration"), sum("sli_duration")]).toEqual([[1.13], [0.03]]);
});

test("who goes before there is an answer has given up, who goes while it is sent has broken off; what is promised of a request's duration starts at 50 ms, without the wait for its turn, and is of what is done in earnest", () => {
  const metrics = metricsRegistry();
  const meter = requestMetrics(metrics, clock);
  const { request, info, gone } = ask("GET", "/api/v1/pods");
  const served = meter.begin(request, info);
  served.served();
  gone.abort();
  served.end(200, { durationMs: 530, waitedMs: 500 });
  expect(lines(metrics, /^apiserver_request_terminations_total\{/)).toEqual(['apiserver_request_terminations_total{code="504",component="apiserver",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"} 1']);
  expect(lines(metrics, /^apiserver_request_aborts_total\{/)).toEqual([]);
  served.brokenOff();
  expect(lines(metrics, /^apiserver_request_aborts_total/)).toEqual(['apiserver_request_aborts_total{group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"} 1']);
  expect(lines(metrics, /^apiserver_request_sli_duration_seconds_bucket/).slice(0, 2).map((line) => line.replace(/.*,le=/, ""))).toEqual(['"0.05"} 1', '"0.1"} 1']);
  const dry = ask("POST", "/api/v1/namespaces/a/pods?dryRun=All&fieldValidation=Strict");
  const tried = meter.begin(dry.request, dry.info);
  tried.served();
  tried.sent(60_000);
  tried.end(201, { durationMs: 70, waitedMs: 0 });
  expect(lines(metrics, /^apiserver_request_sli_duration_seconds_count/)).toHaveLength(1);
  expect(lines(metrics, /^field_validation_request_duration_seconds_count/)).toEqual(['field_validation_request_duration_seconds_count{field_validation="Strict"} 1']);
  expect(lines(metrics, /^apiserver_request_body_size_bytes_bucket/).slice(0, 2)).toEqual(['apiserver_request_body_size_bytes_bucket{group="",resource="pods",verb="create",le="50000"} 0', 'apiserver_request_body_size_bytes_bucket{group="",resource="pods",verb="create",le="150000"} 1']);
});

test("what the API server asks itself is counted beside", () => {
  const metrics = metricsRegistry();
  const meter = requestMetrics(metrics, clock);
  for (const agent of ["kube-apiserver", "kube-controller-manager"]) {
    const { request, info } = ask("GET", "/api/v1/pods", { user: { name: "system:apiserver", groups: [] }, agent });
    const metered = meter.begin(request, info);
    metered.served();
    metered.end(200, { durationMs: 1, waitedMs: 0 });
  }
  expect(lines(metrics, /^apiserver_selfrequest_total/)).toEqual(['apiserver_selfrequest_total{group="",resource="pods",subresource="",verb="LIST"} 1']);
});

test("how long each filter takes is told by its name", () => {
  const metrics = metricsRegistry();
  const meter = requestMetrics(metrics, clock);
  meter.authenticated({ user: "a" }, 2);
  meter.authorized("allow", 2);
  meter.waited(2);
  expect(lines(metrics, /^apiserver_request_filter_duration_seconds_count/)).toEqual(["authentication", "authorization", "priorityandfairness"].map((filter) => `apiserver_request_filter_duration_seconds_count{filter="${filter}"} 1`));
});

test("how much is answered is counted of what is read, and what should not be asked for any more is noted", () => {
  const metrics = metricsRegistry();
  const meter = requestMetrics(metrics, clock);
  const served = (method: string, path: string) => {
    const { request, info } = ask(method, path);
    if (info.isResource && info.resource === "endpoints") meter.deprecated(info);
    const metered = meter.begin(request, info);
    metered.served();
    return metered;
  };
  served("GET", "/api/v1/namespaces/a/endpoints/b").sized!(900);
  served("GET", "/api/v1/pods").sized!(25_000_000);
  expect(served("POST", "/api/v1/namespaces/a/pods").sized).toBeUndefined();
  const shown = metrics.render().split("\n");
  expect(shown).toContain('apiserver_response_sizes_bucket{component="apiserver",group="",resource="endpoints",scope="resource",subresource="",verb="GET",version="v1",le="1000"} 1');
  expect(shown).toContain('apiserver_response_sizes_sum{component="apiserver",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"} 25000000');
  expect(shown).toContain('apiserver_requested_deprecated_apis{group="",removed_release="",resource="endpoints",subresource="",version="v1"} 1');
});

test("how long a list by watch took is told by what was listed", () => {
  const metrics = metricsRegistry();
  const { request, info } = ask("GET", "/api/v1/namespaces/a/pods?watch=1");
  requestMetrics(metrics, clock).watch(request, info as ResourceRequestInfo).listed(300);
  expect(metrics.render()).toMatch(/^apiserver_watch_list_duration_seconds_bucket\{group="",resource="pods",scope="namespace",version="v1",le="0.4"\} 1$/m);
});

test.each([["admin", "admin"], ["kubelet", "kubelet"], ["system:serviceaccount:kube-system:default", "system:serviceaccount:kube-system:default"], ["jane@example.com", "email_id"], ["system:anonymous", "other"], ["jane", "other"]])("%s is counted as %s", (user, username) => {
  const metrics = metricsRegistry();
  requestMetrics(metrics, clock).authenticated({ user }, 1);
  expect(metrics.render()).toContain(`authenticated_user_requests{username="${username}"} 1`);
});
