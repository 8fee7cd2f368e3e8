import { expect, test } from "vitest";
import type { Container, Pod, PodStatus } from "../../../core/api/gen/core.v1.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { systemRandom } from "../../../core/lifecycle/random.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import { eventually } from "../../../test/fake-api.ts";
import { probeManager } from "./probe-manager.ts";

test("a container that started before the clock was set back is probed all the same", async () => {
  const server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const stop = new AbortController();
  const container: Container = { name: "c", image: "i", readinessProbe: { tcpSocket: { port: server.port }, periodSeconds: 1, failureThreshold: 1, successThreshold: 1, timeoutSeconds: 5 } };
  const pod: Pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "n", uid: "u", resourceVersion: "1", creationTimestamp: "" }, spec: { containers: [container] } };
  const status: PodStatus = { phase: "Running", podIP: "127.0.0.1", containerStatuses: [{ name: "c", image: "i", imageID: "", ready: true, started: true, restartCount: 0, containerID: "containerd://id", state: { running: { startedAt: new Date().toISOString() } } }] };
  const probes = probeManager({
    clock: { ...systemClock, nowMs: () => Date.now() - 366 * 24 * 3_600_000 }, random: { ...systemRandom, next: () => 0 }, log: silentLog, metrics: metricsRegistry(), events: { event() {} }, version: "1.36",
    cri: { call: () => Promise.reject(new Error("not asked")) }, startedMs: 0, signal: stop.signal, find: () => ({ pod, status }), onResult: () => undefined,
  });
  probes.add(pod);
  expect(probes.readiness("id")).toBeUndefined(); // what was said of it before goes on until the probe speaks
  await eventually(() => probes.readiness("id"), (result) => result === "success", 60_000);
  stop.abort();
  server.stop();
});

test("a probe comes once in its period, however long each takes", async () => {
  const stop = new AbortController();
  const container: Container = { name: "c", image: "i", readinessProbe: { exec: { command: ["x"] }, periodSeconds: 10, timeoutSeconds: 9 } };
  const pod: Pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "n", uid: "u", resourceVersion: "1", creationTimestamp: "" }, spec: { containers: [container] } };
  const status: PodStatus = { phase: "Running", podIP: "127.0.0.1", containerStatuses: [{ name: "c", image: "i", imageID: "", ready: true, started: true, restartCount: 0, containerID: "containerd://id", state: { running: { startedAt: "1970-01-01T00:00:00Z" } } }] };
  let uptimeMs = 60_000;
  const asked: number[] = [];
  const probes = probeManager({
    clock: { ...systemClock, nowMs: () => uptimeMs, uptimeMs: () => uptimeMs, sleep: async (ms) => void (uptimeMs += ms) }, random: systemRandom, log: silentLog, metrics: metricsRegistry(), events: { event() {} }, version: "1.36",
    cri: { call: async () => {
      asked.push(uptimeMs / 1000);
      uptimeMs += asked.length < 3 ? 9_000 : 12_000;
      if (asked.length === 5) stop.abort();
      return {} as never;
    } }, startedMs: 0, signal: stop.signal, find: () => ({ pod, status }), onResult: () => undefined,
  });
  probes.add(pod);
  await eventually(() => asked.length, (count) => count === 5);
  expect(asked).toEqual([60, 70, 80, 92, 104]);
});

test("what a container is given before its first probe is not over because the clock is set, nor longer", async () => {
  const stop = new AbortController();
  const container: Container = { name: "c", image: "i", livenessProbe: { exec: { command: ["x"] }, initialDelaySeconds: 120, periodSeconds: 10 } };
  const pod: Pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "n", uid: "u", resourceVersion: "1", creationTimestamp: "" }, spec: { containers: [container] } };
  const status: PodStatus = { phase: "Running", podIP: "127.0.0.1", containerStatuses: [{ name: "c", image: "i", imageID: "", ready: true, started: true, restartCount: 0, containerID: "containerd://id", state: { running: { startedAt: "1970-01-01T00:01:00Z" } } }] };
  let uptimeMs = 60_000;
  const setAheadMs = () => (uptimeMs < 80_000 ? 0 : uptimeMs < 120_000 ? 1.8e12 : -30_000); // a network has appeared
  const asked: number[] = [];
  const probes = probeManager({
    clock: { ...systemClock, nowMs: () => uptimeMs + setAheadMs(), uptimeMs: () => uptimeMs, sleep: async (ms) => void (uptimeMs += ms) }, random: systemRandom, log: silentLog, metrics: metricsRegistry(), events: { event() {} }, version: "1.36",
    cri: { call: async () => {
      asked.push(uptimeMs / 1000);
      stop.abort();
      return {} as never;
    } }, startedMs: 0, signal: stop.signal, find: () => ({ pod, status }), onResult: () => undefined,
  });
  probes.add(pod);
  await eventually(() => asked.length, (count) => count === 1);
  expect(asked).toEqual([180]);
});
