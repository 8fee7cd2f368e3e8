import { expect, test } from "vitest";
import { metricsRegistry } from "../observe/metrics.ts";
import { requestInfo } from "./request-info.ts";
import { requestMetrics } from "./request-metrics.ts";
import type { ServerRequest } from "./request.ts";

function counted(method: string, url: string, { contentType = "", code = 200 } = {}): string[] {
  const [path = "", search = ""] = url.split("?");
  const query = new URLSearchParams(search);
  const metrics = metricsRegistry();
  const request = { method, path, query, signal: new AbortController().signal, header: (name: string) => (name === "content-type" ? contentType : undefined) } as unknown as ServerRequest;
  requestMetrics(metrics).begin(request, requestInfo(method, path, query)).end(code, 12);
  return metrics.render().split("\n").filter((line) => line.startsWith("apiserver_request_total{"));
}

test.each<[string, string, { contentType?: string; code?: number } | undefined, string]>([
  ["GET", "/api/v1/namespaces/a/pods/b", undefined, 'code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="GET",version="v1"'],
  ["GET", "/api/v1/pods", undefined, 'code="200",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"'],
  ["GET", "/apis/apps/v1/namespaces/a/deployments?watch=1", undefined, 'code="200",component="apiserver",dry_run="",group="apps",resource="deployments",scope="namespace",subresource="",verb="WATCH",version="v1"'],
  ["POST", "/apis/apps/v1/namespaces/a/deployments?dryRun=All", { code: 201 }, 'code="201",component="apiserver",dry_run="All",group="apps",resource="deployments",scope="resource",subresource="",verb="POST",version="v1"'],
  ["PATCH", "/apis/apps/v1/namespaces/a/deployments/b/status", { contentType: "application/apply-patch+yaml" }, 'code="200",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="status",verb="APPLY",version="v1"'],
  ["POST", "/api/v1/namespaces/a/pods/b/exec", { code: 101 }, 'code="101",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="exec",verb="CONNECT",version="v1"'],
  ["DELETE", "/api/v1/namespaces/a/pods", undefined, 'code="200",component="apiserver",dry_run="",group="",resource="pods",scope="namespace",subresource="",verb="DELETECOLLECTION",version="v1"'],
  ["GET", "/healthz/etcd", undefined, 'code="200",component="apiserver",dry_run="",group="",resource="",scope="",subresource="/healthz",verb="GET",version=""'],
  ["SPY", "/whatever", { code: 403 }, 'code="403",component="apiserver",dry_run="",group="",resource="",scope="",subresource="",verb="other",version=""'],
])("%s %s is counted as upstream counts it", (method, url, how, labels) => expect(counted(method, url, how)).toEqual([`apiserver_request_total{${labels}} 1`]));

test("a watch is counted while it lasts, and requests while they are served", () => {
  const metrics = metricsRegistry();
  const meter = requestMetrics(metrics);
  const gone = new AbortController();
  const request = { method: "GET", query: new URLSearchParams("watch=1"), signal: gone.signal, header: () => undefined } as unknown as ServerRequest;
  meter.begin(request, requestInfo("GET", "/api/v1/pods", request.query)).end(200, 1);
  const reading = { ...request, query: new URLSearchParams() };
  const served = meter.begin(reading, requestInfo("GET", "/api/v1/pods", reading.query));
  const shown = (): string[] => metrics.render().split("\n").filter((line) => /^apiserver_(longrunning_requests|current_inflight)/.test(line)).map((line) => line.replace(/\{.*?(request_kind="\w+")?\}/, " $1"));
  expect(shown()).toEqual(["apiserver_longrunning_requests  1", 'apiserver_current_inflight_requests request_kind="mutating" 0', 'apiserver_current_inflight_requests request_kind="readOnly" 1']);
  served.end(200, 3);
  gone.abort();
  expect(shown()).toEqual(["apiserver_longrunning_requests  0", 'apiserver_current_inflight_requests request_kind="mutating" 0', 'apiserver_current_inflight_requests request_kind="readOnly" 0']);
});

test("what is given up has no component, and what is promised of a request's duration starts at 50 ms", () => {
  const metrics = metricsRegistry();
  const gone = new AbortController();
  const query = new URLSearchParams();
  const request = { method: "GET", query, signal: gone.signal, header: () => undefined } as unknown as ServerRequest;
  const served = requestMetrics(metrics).begin(request, requestInfo("GET", "/api/v1/pods", query));
  gone.abort();
  served.end(200, 30);
  const shown = (name: RegExp): string[] => metrics.render().split("\n").filter((line) => name.test(line));
  expect(shown(/^apiserver_request_aborts_total/)).toEqual(['apiserver_request_aborts_total{group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"} 1']);
  expect(shown(/^apiserver_request_sli_duration_seconds_bucket/).slice(0, 2).map((line) => line.replace(/.*,le=/, ""))).toEqual(['"0.05"} 1', '"0.1"} 1']);
});

test("how much is answered is counted of what is read, and what should not be asked for any more is noted", () => {
  const metrics = metricsRegistry();
  const meter = requestMetrics(metrics);
  const ask = (method: string, path: string) => {
    const request = { method, path, query: new URLSearchParams(), signal: new AbortController().signal, header: () => undefined } as unknown as ServerRequest;
    const info = requestInfo(method, path, new URLSearchParams());
    if (info.isResource && info.resource === "endpoints") meter.deprecated(info);
    return meter.begin(request, info);
  };
  ask("GET", "/api/v1/namespaces/a/endpoints/b").sized!(900);
  ask("GET", "/api/v1/pods").sized!(25_000_000);
  expect(ask("POST", "/api/v1/namespaces/a/pods").sized).toBeUndefined();
  const lines = metrics.render().split("\n");
  expect(lines).toContain('apiserver_response_sizes_bucket{component="apiserver",group="",resource="endpoints",scope="resource",subresource="",verb="GET",version="v1",le="1000"} 1');
  expect(lines).toContain('apiserver_response_sizes_sum{component="apiserver",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"} 25000000');
  expect(lines).toContain('apiserver_requested_deprecated_apis{group="",version="v1",resource="endpoints",subresource="",removed_release=""} 1');
});

test("how long a list by watch took is told by what was listed", () => {
  const metrics = metricsRegistry();
  requestMetrics(metrics).watch(requestInfo("GET", "/api/v1/namespaces/a/pods", new URLSearchParams("watch=1"))).listed(300);
  expect(metrics.render()).toMatch(/^apiserver_watch_list_duration_seconds_bucket\{group="",resource="pods",scope="namespace",version="v1",le="0.4"\} 1$/m);
});

test.each([["admin", "admin"], ["kubelet", "kubelet"], ["system:serviceaccount:kube-system:default", "system:serviceaccount:kube-system:default"], ["jane@example.com", "email_id"], ["system:anonymous", "other"], ["jane", "other"]])("%s is counted as %s", (user, username) => {
  const metrics = metricsRegistry();
  requestMetrics(metrics).authenticated({ user }, 1);
  expect(metrics.render()).toContain(`authenticated_user_requests{username="${username}"} 1`);
});
