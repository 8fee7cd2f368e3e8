import { expect, test } from "vitest";
import { notFound, serviceUnavailable, StatusError } from "../api/meta/status-error.ts";
import { metricsRegistry } from "../observe/metrics.ts";
import { measuredTransport } from "./measured-transport.ts";
import type { ApiRequest } from "./transport.ts";

test("requests are counted by code, what got no answer as an error, a watch once", async () => {
  const metrics = metricsRegistry();
  const answers: (Error | object)[] = [{}, {}, notFound({ group: "", resource: "pods" }, "x"), new StatusError(serviceUnavailable("cannot reach").status, { cause: new Error("refused") })];
  const next = (): object => { const answer = answers.shift()!; if (answer instanceof Error) throw answer; return answer; };
  const transport = measuredTransport({ call: async ({ method, answered, sized }) => { const answer = next(); answered?.(method === "POST" ? 202 : 200); sized?.({ sent: method === "POST" ? 100 : 0, received: 5000 }); return answer; }, async *watch() { yield* [{}, {}] as never[]; } }, { metrics, clock: { uptimeMs: () => 0 }, host: () => "a:6443" });
  const request = (method: ApiRequest["method"]): ApiRequest => ({ method, path: "/", signal: new AbortController().signal });
  for (const method of ["GET", "POST", "GET", "GET"] as const) await transport.call(request(method)).catch(() => undefined);
  for await (const _ of transport.watch(request("GET")));
  const lines = metrics.render().split("\n");
  expect(lines.filter((line) => line.startsWith("rest_client_requests_total"))).toEqual([
    'rest_client_requests_total{code="200",host="a:6443",method="GET"} 2', 'rest_client_requests_total{code="202",host="a:6443",method="POST"} 1',
    'rest_client_requests_total{code="404",host="a:6443",method="GET"} 1', 'rest_client_requests_total{code="<error>",host="a:6443",method="GET"} 1',
  ]);
  expect(lines).toContain('rest_client_request_duration_seconds_count{host="a:6443",verb="GET"} 3');
  expect(lines).toContain('rest_client_request_size_bytes_sum{host="a:6443",verb="POST"} 100');
  expect(lines.filter((line) => line.startsWith('rest_client_response_size_bytes_bucket{host="a:6443",verb="GET",le="') && / (0|1)$/.test(line)).slice(4, 6)).toEqual(['rest_client_response_size_bytes_bucket{host="a:6443",verb="GET",le="4096"} 0', 'rest_client_response_size_bytes_bucket{host="a:6443",verb="GET",le="16384"} 1']);
});

test("of a watch the beginning is counted: it hands on what there is, is ended with who listens, and a refusal is told", async () => {
  const metrics = metricsRegistry();
  let ended = false;
  const transport = measuredTransport({
    call: () => Promise.reject(new Error("no call")),
    watch: ({ path }) => path === "/no" ? (async function* () { yield* []; throw notFound({ group: "", resource: "pods" }, "x"); })() : (async function* () { try { for (const type of ["ADDED", "MODIFIED", "DELETED"]) yield { type } as never; } finally { ended = true; } })(),
  }, { metrics, clock: { uptimeMs: () => 0 }, host: () => "a:6443" });
  const watch = (path: string) => transport.watch({ method: "GET", path, signal: new AbortController().signal });
  const seen: string[] = [];
  for await (const { type } of watch("/yes")) {
    seen.push(type);
    if (type === "MODIFIED") break;
  }
  expect([seen, ended]).toEqual([["ADDED", "MODIFIED"], true]);
  await expect((async () => { for await (const _ of watch("/no")); })()).rejects.toThrow("not found");
  expect(metrics.render().split("\n").filter((line) => line.startsWith("rest_client_requests_total"))).toEqual(['rest_client_requests_total{code="200",host="a:6443",method="GET"} 1', 'rest_client_requests_total{code="404",host="a:6443",method="GET"} 1']);
});
