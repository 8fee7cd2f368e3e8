import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { checkedHealth, healthz, healthzServer } from "./healthz.ts";

test.each([
  [[], false, undefined, 200, "ok"],
  [[], true, undefined, 200, "[+]ping ok\n[+]syncloop ok\nhealthz check passed\n"],
  [[], false, "stuck", 500, "[+]ping ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n"],
  [["syncloop"], false, "stuck", 500, "internal server error: stuck\n"],
  [["ping"], false, "stuck", 200, "ok"],
  [["other"], false, undefined, 404, "404 page not found\n"],
] as const)("/healthz/%s verbose=%s syncloop=%s: %i", (rest, verbose, problem, status, body) => {
  expect(healthz([{ name: "ping", problem: undefined }, { name: "syncloop", problem }], rest, verbose)).toMatchObject({ status, body });
});

test("what is looked at has upstream's names", () => {
  const { answer } = checkedHealth(() => "stuck");
  expect(answer([], true).body).toBe("[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\n[+]device-plugin ok\nhealthz check failed\n");
  expect(answer(["device-plugin"], false)).toMatchObject({ status: 200, body: "ok" });
});

test("whoever is on this machine may ask whether the kubelet runs; a port in use is taken when it becomes free", async () => {
  const other = await listening();
  const { port } = other.address() as AddressInfo;
  const stop = new AbortController();
  const clock = { ...systemClock, sleep: (_: number, signal: AbortSignal) => systemClock.sleep(10, signal) };
  const running = healthzServer({ address: "127.0.0.1", port, clock, log: silentLog }).run(stop.signal, () => undefined);
  expect(await ask(port, "/healthz")).toBe("418 ");
  other.closeAllConnections();
  await new Promise((resolve) => void other.close(resolve));
  await expect.poll(() => ask(port, "/healthz").catch(() => "nobody")).toBe("200 ok");
  expect(await ask(port, "/healthz?verbose")).toBe("200 [+]ping ok\nhealthz check passed\n");
  expect(await ask(port, "/metrics")).toBe("404 404 page not found\n");
  expect(await ask(port, "//[")).toBe("404 404 page not found\n"); // no URL
  stop.abort();
  await running;
  await expect(ask(port, "/healthz")).rejects.toThrow();
});

async function listening(): Promise<Server> {
  const server = createServer((_, response) => void response.writeHead(418, { connection: "close" }).end());
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  return server;
}

async function ask(port: number, path: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { keepalive: false });
  return `${response.status} ${await response.text()}`;
}
