import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Pod, PodCondition } from "../../core/api/gen/core.v1.ts";
import { silentLog } from "../../core/observe/log.ts";
import { PodResize } from "./pod-resize.ts";
import type { Verdict } from "./resources/resize.ts";
import { emptyRuntimePod } from "./runtime-pod.ts";

let dataDir = "";
beforeEach(() => { dataDir = mkdtempSync(join(tmpdir(), "resize-")); });
afterEach(() => rmSync(dataDir, { recursive: true }));

function wishing(cpu: string, generation: number, conditions: PodCondition[] = []): Pod {
  return { apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "d", uid: "u", resourceVersion: "", creationTimestamp: "", generation }, spec: { containers: [{ name: "c", resources: { requests: { cpu } } }] }, status: { conditions, ...(conditions.length > 0 && { startTime: "2026-01-01T00:00:00Z" }) } };
}

function resizing(pod: Pod, judge: () => Verdict) {
  const told: string[] = [];
  const counted: string[] = [];
  let uptimeMs = 0;
  const resize = new PodResize(pod, {
    settings: { dataDir }, machine: { os: "linux", cpus: 1, memoryBytes: 1, hugepageSizes: [], countsSwap: false }, log: silentLog, placement: { pinning: () => ({}) }, clock: { nowMs: () => 0, uptimeMs: () => (uptimeMs += 5) }, judge,
    metrics: {
      resizeAsked: ({ resource, requirement, operation }) => void counted.push(`${resource} ${requirement} ${operation}`), resizeInfeasible: (detail) => void counted.push(detail), resizeTook: (ms, success) => void counted.push(`${ms} ms ${success}`), resizeWaited: (trigger) => void counted.push(`waited for ${trigger}`),
    }, onGranted: () => undefined,
    events: { event: (_about, _type, reason, message) => void told.push(`${reason} ${/"generation":\d+/.exec(message)?.[0]}`) },
  });
  return { resize, told, counted };
}

const lastProbeTime = "1970-01-01T00:00:00Z";
const short: Verdict = { fits: false, reason: "Deferred", what: "OutOfcpu", message: "short" };

test("what is said of a resize is of the generation that it began with, whatever the pod wishes meanwhile", () => {
  let verdict: Verdict = { fits: true };
  const { resize, told } = resizing(wishing("1", 1), () => verdict);
  resize.consider(wishing("2", 2));
  verdict = short;
  resize.consider(wishing("3", 3));
  expect(resize.conditions()).toEqual([{ type: "PodResizePending", reason: "Deferred", message: "short", observedGeneration: 3, lastProbeTime }, { type: "PodResizeInProgress", observedGeneration: 2, lastProbeTime }]);
  resize.failed(wishing("2", 3), "no");
  expect(resize.conditions()[1]).toEqual({ type: "PodResizeInProgress", reason: "Error", message: "no", observedGeneration: 2, lastProbeTime });
  resize.consider(wishing("3", 4));
  resize.conclude(wishing("2", 4), emptyRuntimePod("u"));
  expect(resize.conditions()).toEqual([{ type: "PodResizePending", reason: "Deferred", message: "short", observedGeneration: 4, lastProbeTime }]);
  expect(told).toEqual(['ResizeStarted "generation":2', 'ResizeDeferred "generation":3', 'ResizeError "generation":2', 'ResizeDeferred "generation":4', 'ResizeCompleted "generation":2']);
});

test("what was said before a restart still holds, and is not told again", async () => {
  const first = resizing(wishing("1", 1), () => short);
  first.resize.consider(wishing("2", 2));
  await first.resize.written();
  const said: PodCondition[] = [{ type: "PodResizePending", status: "True", reason: "Deferred", message: "short", observedGeneration: 2 }, { type: "PodResizeInProgress", status: "True", observedGeneration: 1, lastProbeTime }];
  const { resize, told } = resizing(wishing("2", 2, said), () => short);
  expect([resize.isDeferred, resize.inProgress, resize.consider(wishing("2", 2))]).toEqual([true, true, false]);
  expect(resize.conditions().map((condition) => condition.lastProbeTime)).toEqual([undefined, lastProbeTime]);
  resize.conclude(resize.granted(wishing("2", 2)), emptyRuntimePod("u"));
  expect(told).toEqual(['ResizeCompleted "generation":1']);
});

test("what is wished, what cannot be, and how long the rest takes is counted", () => {
  let verdict: Verdict = { fits: true };
  const { resize, counted } = resizing(wishing("1", 1), () => verdict);
  resize.consider(wishing("2", 2));
  resize.consider(wishing("2", 2));
  resize.failed(wishing("2", 2), "no");
  resize.conclude(wishing("2", 2), emptyRuntimePod("u"));
  verdict = { fits: false, reason: "Infeasible", what: "Infeasible", message: 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"' };
  resize.consider(wishing("1", 3));
  expect(counted.splice(0)).toEqual(["cpu requests increase", "5 ms false", "10 ms true", "cpu requests decrease", "guaranteed_pod_cpu_manager_static_policy"]);
  for (verdict of [short, { fits: true }] satisfies Verdict[]) resize.consider(wishing("1", 4), "pods_removed");
  expect(counted).toEqual(["waited for pods_removed"]);
});

test("for a pod that is new here the disk is not asked: while it hangs the node goes on", () => {
  const directory = join(dataDir, "pods/u");
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "allocation.json"), "cut o"); // whoever looks at it puts it aside
  resizing(wishing("1", 1), () => short);
  expect(readdirSync(directory)).toEqual(["allocation.json"]);
  resizing(wishing("1", 1, [{ type: "Ready", status: "True" }]), () => short);
  expect(readdirSync(directory)).not.toEqual(["allocation.json"]);
});
