import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import type { Node } from "../../core/api/gen/core.v1.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { silentLog } from "../../core/observe/log.ts";
import { metricsRegistry } from "../../core/observe/metrics.ts";
import { eventually } from "../../test/eventually.ts";
import { stored } from "../../test/static-informer.ts";
import { ProxyHealth, proxyHealthListener, ServiceHealth } from "./health.ts";
import { proxyMetrics } from "./metrics.ts";

test("the proxy's own health: late changes make it ill for each family, a node on its way out only for load balancers", () => {
  let ms = 0;
  let node = stored<Node>("v1", "Node", "n1");
  const clock = { nowMs: () => ms, uptimeMs: () => ms } as unknown as Clock;
  const health = new ProxyHealth(clock);
  const { healthz, livez } = proxyMetrics(metricsRegistry());
  const listener = proxyHealthListener({ health, node: () => node, clock, healthz, livez });
  const ask = (url: string): string => {
    let answer = "";
    listener({ url } as never, { writeHead(code: number) { answer = `${code} `; return this; }, end(text: string) { answer += text; } } as never);
    return answer;
  };
  const told = (last: number, family: number, healthy: boolean, eligible: string): string => {
    const at = (seconds: number): string => new Date(seconds * 1000).toISOString();
    const one = `{"lastUpdated":"${at(family)}","healthy":${healthy}}`;
    return `{"lastUpdated":"${at(last)}","currentTime":"${at(ms / 1000)}",${eligible}"healthy":${healthy},"status":{"IPv4":${one},"IPv6":${one}}}`;
  };

  health.queued();
  ms = 59_000;
  expect(ask("/healthz")).toBe(`200 ${told(59, 0, true, '"nodeEligible":true,')}`);
  ms = 60_000;
  expect(ask("/livez")).toBe(`503 ${told(0, 0, false, "")}`);
  health.taken();
  health.updated();
  node = { ...node, spec: { taints: [{ key: "ToBeDeletedByClusterAutoscaler", effect: "NoSchedule" }] } };
  ms = 70_000;
  expect(ask("/healthz")).toBe(`503 ${told(60, 60, true, '"nodeEligible":false,')}`);
  expect(ask("/livez")).toBe(`200 ${told(70, 60, true, "")}`);
});

test("a change that comes while those before it are written is waited for in its turn", () => {
  let ms = 0;
  const health = new ProxyHealth({ nowMs: () => ms, uptimeMs: () => ms } as unknown as Clock);
  const told = (at: number): boolean => { ms = at; return health.healthy; };
  health.queued();
  health.taken();
  ms = 20_000;
  health.queued();
  health.updated(); // and then nothing more can be written
  health.taken();
  expect([told(79_000), told(80_000)]).toEqual([true, false]);
  health.queued();
  expect(told(80_000)).toBe(false);
  health.taken();
  health.updated();
  expect(told(200_000)).toBe(true);
});

test("a health check node port answers at the addresses of node ports", async () => {
  const other = createServer().listen(0);
  const { port } = other.address() as AddressInfo;
  await new Promise((resolve) => other.close(resolve));
  const health = new ServiceHealth({ log: silentLog, healthy: () => true, cidrs: ["127.0.0.2/32"] });
  health.update([{ namespace: "d", name: "web", port, localEndpoints: 2 }]);
  try {
    const answer = await eventually("the port answers", () => fetch(`http://127.0.0.2:${port}`));
    const body = '{\n\t"service": {\n\t\t"namespace": "d",\n\t\t"name": "web"\n\t},\n\t"localEndpoints": 2,\n\t"serviceProxyHealthy": true\n}';
    expect([answer.headers.get("x-load-balancing-endpoint-weight"), await answer.text()]).toEqual(["2", body]);
    await expect(fetch(`http://127.0.0.1:${port}`)).rejects.toThrow();
  } finally {
    health.close();
  }
});
