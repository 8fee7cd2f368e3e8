import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import { graceSecondsOf, groupByLevel, shutdownLevels, totalMs } from "./plan.ts";
import type { PodFailure } from "../status/pod-status.ts";
import { gracefulShutdown, type ShutdownNotices } from "./shutdown.ts";

let directory = "";
beforeEach(() => { directory = mkdtempSync(join(tmpdir(), "shutdown-")); });
afterEach(() => rmSync(directory, { recursive: true }));

const pod = (name: string, priority: number, grace?: number): Pod => ({ metadata: { name, annotations: {}, generation: 3 }, spec: { priority, terminationGracePeriodSeconds: grace } }) as unknown as Pod;

test("critical pods come last, within the time that is theirs", () => {
  const levels = shutdownLevels({ graceMs: 30_000, criticalMs: 10_000 });
  expect(levels).toEqual([{ priority: 0, graceMs: 20_000 }, { priority: 2_000_000_000, graceMs: 10_000 }]);
  expect(groupByLevel(levels, [{ pod: pod("c", 2_000_001_000) }, { pod: pod("a", 0) }, { pod: pod("b", -5) }]).map(({ pods }) => pods.map((one) => one.pod.metadata.name))).toEqual([["a", "b"], ["c"]]);
  expect([graceSecondsOf(pod("a", 0, 60), levels[0]!), graceSecondsOf(pod("a", 0, 5), levels[0]!), graceSecondsOf(pod("a", 0, (2n ** 63n - 1n) as unknown as number), levels[0]!)]).toEqual([20, 5, 20]);
});

test("a pod from a file has no other level than its priority gives it", () => {
  const fromFile = (of: Pod): Pod => ({ ...of, metadata: { ...of.metadata, annotations: { "kubernetes.io/config.source": "file" } } });
  const pods = [fromFile(pod("plain", 0)), fromFile(pod("critical", 2_000_001_000))].map((one) => ({ pod: one }));
  expect(groupByLevel(shutdownLevels({ graceMs: 30_000, criticalMs: 10_000 }), pods).map(({ pods: those }) => those.map((one) => one.pod.metadata.name))).toEqual([["plain"], ["critical"]]);
});

test("levels by priority replace the two", () => {
  const levels = shutdownLevels({ graceMs: 0, criticalMs: 0, byPriority: [{ priority: 100_000, graceMs: 10_000 }, { priority: 0, graceMs: 60_000 }, { priority: 10_000, graceMs: 180_000 }] });
  expect([levels.map(({ priority }) => priority), totalMs(levels)]).toEqual([[0, 10_000, 100_000], 250_000]);
  expect(shutdownLevels({ graceMs: 0, criticalMs: 0 })).toEqual([]);
  expect(shutdownLevels({ graceMs: 5000, criticalMs: 0 }).map(({ graceMs }) => graceMs)).toEqual([5000, 0]);
});

test("a pod is of the band whose priority it reaches, what is below all bands of the lowest", () => {
  const levels = shutdownLevels({ graceMs: 0, criticalMs: 0, byPriority: [{ priority: 100_000, graceMs: 10_000 }, { priority: 10_000, graceMs: 180_000 }, { priority: 1000, graceMs: 120_000 }, { priority: 0, graceMs: 60_000 }] });
  const priorities = [-1, 0, 999, 1000, 9999, 10_000, 99_999, 100_000, 2_000_000_000];
  expect(groupByLevel(levels, priorities.map((priority) => ({ pod: pod(String(priority), priority) }))).map(({ level, pods }) => [level.graceMs, ...pods.map((one) => one.pod.spec.priority)])).toEqual([
    [60_000, -1, 0, 999], [120_000, 1000, 9999], [180_000, 10_000, 99_999], [10_000, 100_000, 2_000_000_000],
  ]);
});

function machine(run: ShutdownNotices["run"], pods: Parameters<typeof gracefulShutdown>[0]["pods"] = () => []) {
  const told: string[] = [];
  const metrics = metricsRegistry();
  let changes = 0;
  const shutdown = gracefulShutdown({
    settings: { graceMs: 4000, criticalMs: 2000 }, pods, clock: systemClock, log: silentLog, metrics, events: { event: (_, type, reason, message) => void told.push(`${type} ${reason}: ${message}`) },
    node: { kind: "Node", name: "n" }, stateFile: join(directory, "state"), onChange: () => void changes++, notices: { run },
  });
  const counted = (): number[] => ["start", "end"].map((name) => Number(new RegExp(`^kubelet_graceful_shutdown_${name}_time_seconds (.*)$`, "m").exec(metrics.render())?.[1]));
  return { told, counted, isDown: shutdown.isDown, changes: () => changes, run: async () => await shutdown.run(new AbortController().signal, () => undefined) };
}

test("when the machine goes down its pods end, one level after the other", async () => {
  const told: string[] = [];
  const conditions: PodFailure["condition"][] = [];
  const victim = (one: Pod) => {
    const self = { pod: one, isReclaimed: false, fail({ reason, condition }: PodFailure, graceSeconds: number) { told.push(`${one.metadata.name} ${reason} ${graceSeconds}s`); conditions.push(condition); systemClock.after(10, () => { told.push(`${one.metadata.name} unmounted`); self.isReclaimed = true; }); } };
    return self;
  };
  const all = [victim(pod("critical", 2_000_000_000)), victim(pod("app", 0, 1))];
  const node = machine(async (on, delayMs) => { told.push(`waits ${delayMs}`); await on(true); await on(true); }, () => all);
  await node.run();
  expect(told).toEqual(["waits 4000", "app Terminated 1s", "app unmounted", "critical Terminated 2s", "critical unmounted"]);
  expect([node.isDown(), node.changes()]).toEqual([true, 1]);
  expect(conditions).toMatchObject(Array.from({ length: 2 }, () => ({ type: "DisruptionTarget", observedGeneration: 3, status: "True", reason: "TerminationByKubelet", message: "Pod was terminated in response to imminent node shutdown." })));
});

test("the node's events tell that it goes down, and that it does not after all", async () => {
  const node = machine(async (on) => { await on(true); await on(false); });
  await node.run();
  expect(node.told).toEqual(["Normal NodeShutdown: Shutdown manager detected shutdown event", "Normal NodeShutdown: Shutdown manager detected shutdown cancellation"]);
  expect(node.isDown()).toBe(false);
});

test("when the machine went down, and when its pods had ended, is known once it is up again", async () => {
  let during: number[] = [];
  const before = machine(async (on) => { await on(true); }, () => { during = before.counted(); return []; });
  await before.run();
  const [start = 0, end = 0] = before.counted();
  expect(during).toEqual([start, 0]);
  expect(end).toBeGreaterThanOrEqual(start);
  const after = machine(async () => undefined);
  await after.run();
  expect(after.counted()).toEqual([start, end]);
  expect(Object.keys(JSON.parse(readFileSync(join(directory, "state"), "utf8")) as object)).toEqual(["startTime", "endTime"]);
});
