import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import type { Attributes } from "../../core/api/request/attributes.ts";
import { systemClock as clock } from "../../core/lifecycle/clock.ts";
import { runAll } from "../../core/lifecycle/run-all.ts";
import { pinoLog } from "../../core/observe/log.ts";
import { metricsRegistry } from "../../core/observe/metrics.ts";
import { raw } from "../../core/server/answer.ts";
import { servingMaterial, testPki } from "../../test/certificates.ts";
import { components, LoopsState } from "./components.ts";

const pki = await testPki();

async function freePort(): Promise<{ port: number; close(): Promise<void> }> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return { port: (server.address() as { port: number }).port, close: () => new Promise((resolve) => server.close(() => resolve())) };
}

function started(ports: readonly [number, number], { isShared = false } = {}): { state: LoopsState; logs: string[]; stopping: { is: boolean }; stop(): Promise<unknown> } {
  const state = new LoopsState(), logs: string[] = [], stopping = { is: false }, metrics = metricsRegistry();
  for (const name of ["apiserver_request_total", "workqueue_adds_total", "job_controller_job_syncs_total", "scheduler_schedule_attempts_total", "kubelet_node_name", "process_cpu_seconds_total"]) metrics.counter(name, "[ALPHA] One.").inc();
  state.controllersRequests.counter("rest_client_requests_total", "[ALPHA] One.").inc({ code: "200" });
  const listening = (port: number) => ({ address: "127.0.0.1", port });
  const made = components({
    state, isShared, debug: ({ path }) => (path === "/debug/flags/v" ? raw("v") : undefined), isStopping: () => stopping.is, metrics, cbor: true, clock, tls: () => servingMaterial(pki), columnTexts: () => Promise.reject(new Error("no table")),
    log: pinoLog({ level: "warn", write: (line) => void logs.push(line) }),
    authenticator: { authenticate: ({ header }) => Promise.resolve(header("authorization") === undefined ? undefined : { user: { name: "prometheus", groups: [] } }) },
    authorizer: { authorize: ({ user, path }: Attributes) => ({ decision: user.name === "prometheus" && path !== "/configz" ? "allow" : "no-opinion", reason: "" }) } as never,
    controllers: { listening: listening(ports[0]), given: ["--secure-port=1", "profiling=false"], configz: () => ({}) },
    scheduler: { listening: listening(ports[1]), given: [], configz: () => ({}), resources: ({ path }) => (path === "/metrics/resources" ? raw("pods") : undefined) },
  });
  const stop = new AbortController();
  const running = runAll(made.parts, stop.signal);
  onTestFinished(async () => { stop.abort(); await running; });
  return { state, logs, stopping, stop: () => { stop.abort(); return running; } };
}

async function ask(port: number, path: string, authorization = "Bearer x", accept = "*/*"): Promise<string> {
  for (;;)
    try {
      const response = await fetch(`https://127.0.0.1:${port}${path}`, { headers: { accept, ...(authorization !== "" && { authorization }) }, tls: { rejectUnauthorized: false } } as RequestInit);
      return `${response.status} ${await response.text()}`;
    } catch (error) {
      if (!/refused/i.test((error as { code?: string }).code ?? "")) throw error;
      await Bun.sleep(20);
    }
}

test("the controllers' port tells which of them run, and what they count, to whom the API server lets read it", async () => {
  const [one, two] = [await freePort(), await freePort()];
  await Promise.all([one.close(), two.close()]);
  const { state } = started([one.port, two.port], { isShared: true });
  expect(await ask(one.port, "/healthz", "")).toBe("200 ok");
  state.controllers = { names: ["job-controller", "ttl-controller"], workers: new Map() };
  expect(await ask(one.port, "/healthz?verbose", "")).toBe("200 [+]leaderElection ok\n[+]job-controller ok\n[+]ttl-controller ok\nhealthz check passed\n");
  for (const path of ["/livez", "/readyz", "/healthz/job-controller", "/nope", "/api/v1/pods"]) expect(await ask(one.port, path)).toBe("404 404 page not found\n");
  expect(await ask(one.port, "/metrics", "")).toMatch(/^403 .*forbidden: User \\"system:anonymous\\" cannot get path \\"\/metrics\\"/s);
  expect((await ask(one.port, "/metrics")).match(/^[a-z_]+(?=[{ ])/gm)).toEqual(["disabled_metrics_total", "hidden_metrics_total", "job_controller_job_syncs_total", "process_cpu_seconds_total", "registered_metrics_total", "workqueue_adds_total", "rest_client_requests_total"]);
  expect(await ask(one.port, "/metrics/slis")).toContain('kubernetes_healthcheck{name="job-controller",type="healthz"} 1');
  expect(await ask(one.port, "/flagz")).toContain("kube-controller-manager flagz");
  expect(await ask(one.port, "/flagz")).toContain("\nprofiling=false\nsecure-port=1\n");
  expect(await ask(one.port, "/flagz", "Bearer x", "application/cbor;v=v1beta1;g=config.k8s.io;as=Flagz")).toMatch(/^200 .*kube-controller-manager/s);
  expect(await ask(one.port, "/configz")).toMatch(/^403/);
  expect([await ask(one.port, "/debug/flags/v"), await ask(two.port, "/debug/flags/v")]).toEqual(["404 404 page not found\n", "200 v"]); // --profiling=false of the one
});

test("the scheduler's port is ready once it knows the cluster", async () => {
  const [one, two] = [await freePort(), await freePort()];
  await Promise.all([one.close(), two.close()]);
  const { state, stopping } = started([one.port, two.port]);
  state.scheduler = "starting";
  expect(await ask(two.port, "/livez?verbose", "")).toBe("200 [+]ping ok\nlivez check passed\n");
  expect(await ask(two.port, "/readyz", "")).toBe("500 [+]shutdown ok\n[-]sched-handler-sync failed: reason withheld\nreadyz check failed\n");
  state.scheduler = "synced";
  expect(await ask(two.port, "/readyz?verbose", "")).toBe("200 [+]shutdown ok\n[+]sched-handler-sync ok\nreadyz check passed\n");
  expect((await ask(two.port, "/metrics")).match(/^[a-z_]+(?=[{ ])/gm)).toEqual(["disabled_metrics_total", "hidden_metrics_total", "process_cpu_seconds_total", "registered_metrics_total", "scheduler_schedule_attempts_total"]);
  expect(await ask(two.port, "/metrics/resources")).toBe("200 pods");
  stopping.is = true;
  expect(await ask(two.port, "/readyz", "")).toMatch(/^500/);
});

test("a port that somebody else has is told once, and nothing else fails; port 0 is none", async () => {
  const taken = await freePort();
  const { logs, stop } = started([taken.port, 0]);
  while (logs.length === 0) await Bun.sleep(5);
  expect(logs.map((line) => JSON.parse(line) as { msg: string; port: number }).map(({ msg, port }) => [msg, port])).toEqual([["nothing is told at a component's own port, tried again until it is", taken.port]]);
  await stop();
  await taken.close();
});
