import { expect, test } from "vitest";
import { ANONYMOUS } from "../api/request/user.ts";
import { metricsRegistry } from "../observe/metrics.ts";
import type { Registry } from "../registry/registry.ts";
import { isSlowly, type RawAnswer } from "./answer.ts";
import { type HealthCheck, healthPaths, metricsPath, versionPath } from "./health.ts";
import { indexPaths } from "./index-paths.ts";
import type { ServerRequest } from "./request.ts";

const slis = metricsRegistry();
const textOf = ({ body }: RawAnswer): string => (isSlowly(body) ? [...body.pieces].join("") : String(body));
const checks: HealthCheck[] = [
  { name: "ping", endpoints: ["livez", "readyz"], check: () => undefined },
  { name: "informer-sync", endpoints: ["readyz"], check: () => "1 informers not started yet: [pods]" },
  { name: "poststarthook/rbac/bootstrap-roles", endpoints: ["livez"], check: () => undefined },
];
const handler = healthPaths(checks, slis);

test.each<[string, string, number | undefined, string]>([
  ["/livez", "", 200, "ok"],
  ["/livez", "verbose", 200, "[+]ping ok\n[+]poststarthook/rbac/bootstrap-roles ok\nlivez check passed\n"],
  ["/livez/poststarthook/rbac/bootstrap-roles", "", 200, "ok"],
  ["/readyz", "", 500, "[+]ping ok\n[-]informer-sync failed: reason withheld\nreadyz check failed\n"],
  ["/readyz", "verbose&exclude=ping,informer-sync&exclude=b&exclude=a", 500, '[+]ping ok\n[-]informer-sync failed: reason withheld\nwarn: some health checks cannot be excluded: no matches for "a","b","ping,informer-sync"\nreadyz check failed\n'],
  ["/readyz", "verbose&exclude=informer-sync&exclude=none", 200, '[+]ping ok\n[+]informer-sync excluded: ok\nwarn: some health checks cannot be excluded: no matches for "none"\nreadyz check passed\n'],
  ["/readyz/informer-sync", "", 500, "internal server error: 1 informers not started yet: [pods]\n"],
  ["/livez/informer-sync", "", undefined, ""],
  ["/livez/", "", undefined, ""],
  ["/healthz", "verbose", 200, "[+]ping ok\n[+]poststarthook/rbac/bootstrap-roles ok\nhealthz check passed\n"],
  ["/healthz/informer-sync", "", undefined, ""],
])("%s?%s", async (path, query, status, body) => {
  const answer = (await handler({ path, query: new URLSearchParams(query) } as ServerRequest, ANONYMOUS)) as RawAnswer | undefined;
  expect(answer?.status).toBe(status);
  if (answer) expect(answer.body).toBe(body);
});

test("the paths of the checks are those where they are asked", async () => {
  const registry = { rows: () => [], resources: [] } as unknown as Registry;
  const { body } = (await indexPaths({ registry, checks })({ path: "/" } as ServerRequest, ANONYMOUS)) as RawAnswer;
  expect((JSON.parse(String(body)) as { paths: string[] }).paths.filter((path) => /^\/(healthz|livez|readyz)\//.test(path))).toEqual([
    "/healthz/ping", "/healthz/poststarthook/rbac/bootstrap-roles", "/livez/ping", "/livez/poststarthook/rbac/bootstrap-roles", "/readyz/informer-sync", "/readyz/ping",
  ]);
});

test("what the checks find can be scraped", async () => {
  const answer = (await handler({ path: "/metrics/slis", query: new URLSearchParams(), header: () => undefined } as unknown as ServerRequest, ANONYMOUS)) as RawAnswer;
  const text = textOf(answer);
  expect(text).toContain('kubernetes_healthcheck{name="informer-sync",type="readyz"} 0');
  expect(text.match(/^# HELP \S+/gm)).toEqual(["# HELP kubernetes_healthcheck", "# HELP kubernetes_healthchecks_total", "# HELP process_start_time_seconds"]);
  expect(answer.headers["process-start-time-unix"]).toMatch(/^\d{10}$/);
  expect(text).toMatch(/kubernetes_healthchecks_total\{name="ping",status="success",type="livez"\} \d/);
});

test("the version: what was built, what it behaves as, and the oldest it gets along with, in upstream's order", async () => {
  const built = { major: "1", minor: "36", gitVersion: "v1.36.0", gitCommit: "c", gitTreeState: "clean", buildDate: "2026-01-01T00:00:00Z", goVersion: "g", compiler: "bun", platform: "linux/amd64" };
  const ask = (accept?: string) => versionPath(built)({ path: "/version", method: "GET", header: () => accept } as unknown as ServerRequest, ANONYMOUS) as RawAnswer;
  const answer = ask();
  expect(Object.entries(JSON.parse(String(answer.body)) as object).slice(0, 7)).toEqual([
    ["major", "1"], ["minor", "36"], ["emulationMajor", "1"], ["emulationMinor", "36"], ["minCompatibilityMajor", "1"], ["minCompatibilityMinor", "35"], ["gitVersion", "v1.36.0"],
  ]);
  expect(ask("application/yaml, application/json;q=0.5").status).toBe(200);
  expect(() => ask("application/yaml")).toThrow("406: Not Acceptable\n\nAvailable representations: application/json");
});

test("who may delete what was counted, may, unless nothing is to be profiled", async () => {
  const metrics = metricsRegistry();
  metrics.counter("apiserver_request_total", "x").inc({ verb: "GET" });
  const ask = async (method: string, canReset: boolean) => {
    const answer = (await metricsPath(metrics, { canReset })({ method, path: "/metrics", header: () => undefined } as unknown as ServerRequest, ANONYMOUS)) as RawAnswer;
    const text = textOf(answer);
    return [answer.status, answer.headers["content-type"], text.includes('apiserver_request_total{verb="GET"} 1') ? "counted" : text] as const;
  };
  expect((await ask("DELETE", false))[2]).toBe("counted");
  expect(await ask("DELETE", true)).toEqual([200, "text/plain; charset=utf-8", "metrics reset\n"]);
  expect((await ask("GET", true))[2]).not.toBe("counted");
});
