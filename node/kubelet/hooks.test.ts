import { beforeEach, expect, test } from "vitest";
import type { LifecycleHandler, Pod } from "../../core/api/gen/core.v1.ts";
import { type EventRecorder, silentEvents } from "../../core/client/events.ts";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { metricsRegistry } from "../../core/observe/metrics.ts";
import type { Cri } from "../cri/client.ts";
import { runHook } from "./hooks.ts";
import { kubeletMetrics } from "./kubelet-metrics.ts";

let counts = metricsRegistry();
let metrics = kubeletMetrics(counts, "n");
beforeEach(() => {
  counts = metricsRegistry();
  metrics = kubeletMetrics(counts, "n");
});

const pod = { metadata: { name: "p", namespace: "n", uid: "u" }, spec: {} } as Pod;

async function run(handler: LifecycleHandler, answer: object = {}, events: EventRecorder = silentEvents.from({ component: "kubelet" }), signal = new AbortController().signal, podIp = "127.0.0.1"): Promise<string> {
  const asked: unknown[] = [];
  const cri = { call: async (_: string, request: object) => { asked.push(request); return answer; } } as unknown as Cri;
  const facts = { pod, container: { name: "c", ports: [{ name: "web", containerPort: 9 }] }, containerId: "id", podIp, handler, timeoutMs: 60_000 };
  return await runHook({ cri, clock: systemClock, events, metrics, version: "1.36" }, facts, signal).then(() => JSON.stringify(asked), (error: Error) => error.message);
}

test("a hook runs in its container, without parameters; its failure is told as upstream tells it", async () => {
  expect(await run({ exec: { command: ["a", "b c"] } })).toBe(`[{"container_id":"id","cmd":["a","b c"]}]`);
  expect(await run({ exec: { command: ["sh", "-c", "exit 3"] } }, { exit_code: 3, stdout: Buffer.from("out"), stderr: Buffer.from("err\n") }))
    .toBe(`Exec lifecycle hook ([sh -c exit 3]) for Container "c" in Pod "p_n(u)" failed - error: command 'sh -c exit 3' exited with 3: err\n, message: "outerr\\n"`);
  expect(await run({ httpGet: { port: "web", path: "/x" } })).toBe(`HTTP lifecycle hook (/x) for Container "c" in Pod "p_n(u)" failed - error: Get "http://127.0.0.1:9/x": dial tcp 127.0.0.1:9: connect: connection refused`);
  expect(await run({ sleep: { seconds: 0 } })).toBe("[]");
  expect(await run({ tcpSocket: { port: 1 } })).toMatch(/^Cannot run handler: invalid handler: /);
});

test("a hook over HTTPS that meets a server of HTTP is asked again without, and without its credentials; what that leads to is told", async () => {
  const seen: (string | null)[] = [];
  await using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: ({ headers }) => { seen.push(headers.get("authorization"), headers.get("x-a")); return new Response(); } });
  const told: string[] = [];
  const events: EventRecorder = { event: (_, type, reason, message) => void told.push(`${type} ${reason}: ${message}`) };
  const handler = { httpGet: { scheme: "HTTPS" as const, port: server.port!, path: "/x", httpHeaders: [{ name: "Authorization", value: "secret" }, { name: "X-A", value: "b" }] } };
  expect(await run(handler, {}, events)).toBe("[]");
  expect(seen).toEqual([null, "b"]);
  expect(told).toEqual([`Warning LifecycleHTTPFallback: request to HTTPS lifecycle hook 127.0.0.1:${server.port} got HTTP response, retry with HTTP succeeded`]);
  expect(counts.render()).toContain("kubelet_lifecycle_handler_http_fallbacks_total 1\n");
});

test("a hook over HTTP in a pod whose runtime knows of no address needs a host", async () => {
  expect(await run({ httpGet: { port: 9, path: "/x" } }, {}, undefined, undefined, "")).toBe('HTTP lifecycle hook (/x) for Container "c" in Pod "p_n(u)" failed - error: failed to find networking container');
  expect(await run({ httpGet: { port: 9, path: "/x", host: "127.0.0.1" } }, {}, undefined, undefined, "")).toContain("connection refused");
});

test("a hook that is ended in its sleep has failed, and is counted", async () => {
  expect(await run({ sleep: { seconds: 60 } }, {}, undefined, AbortSignal.timeout(1))).toBe('Sleep lifecycle hook (60) for Container "c" in Pod "p_n(u)" failed - error: container terminated before sleep hook finished');
  expect(await run({ sleep: { seconds: 2n ** 60n as unknown as number } }, {}, undefined, AbortSignal.timeout(1))).toContain("Sleep lifecycle hook (1152921504606846976) for");
  await run({ sleep: { seconds: 0 } });
  expect(counts.render()).toContain("kubelet_sleep_action_terminated_early_total 2\n");
});
