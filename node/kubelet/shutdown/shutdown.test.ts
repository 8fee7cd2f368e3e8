import { expect, test } from "vitest";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import { graceSecondsOf, groupByLevel, shutdownLevels, totalMs } from "./plan.ts";
import { gracefulShutdown } from "./shutdown.ts";

const pod = (name: string, priority: number, grace?: number): Pod => ({ metadata: { name, annotations: {} }, spec: { priority, terminationGracePeriodSeconds: grace } }) as unknown as Pod;

test("critical pods come last, within the time that is theirs", () => {
  const levels = shutdownLevels({ graceMs: 30_000, criticalMs: 10_000 });
  expect(levels).toEqual([{ priority: 0, graceMs: 20_000 }, { priority: 2_000_000_000, graceMs: 10_000 }]);
  expect(groupByLevel(levels, [{ pod: pod("c", 2_000_001_000) }, { pod: pod("a", 0) }, { pod: pod("b", -5) }]).map(({ pods }) => pods.map((one) => one.pod.metadata.name))).toEqual([["a", "b"], ["c"]]);
  expect([graceSecondsOf(pod("a", 0, 60), levels[0]!), graceSecondsOf(pod("a", 0, 5), levels[0]!)]).toEqual([20, 5]);
});

test("levels by priority replace the two", () => {
  const levels = shutdownLevels({ graceMs: 0, criticalMs: 0, byPriority: [{ priority: 100_000, graceMs: 10_000 }, { priority: 0, graceMs: 60_000 }, { priority: 10_000, graceMs: 180_000 }] });
  expect([levels.map(({ priority }) => priority), totalMs(levels)]).toEqual([[0, 10_000, 100_000], 250_000]);
  expect(shutdownLevels({ graceMs: 0, criticalMs: 0 })).toEqual([]);
  expect(shutdownLevels({ graceMs: 5000, criticalMs: 0 }).map(({ graceMs }) => graceMs)).toEqual([5000, 0]);
});

test("when the machine goes down its pods end, one level after the other", async () => {
  const told: string[] = [];
  const victim = (one: Pod) => {
    const self = { pod: one, isReclaimed: false, fail({ reason }: { reason: string }, graceSeconds: number) { told.push(`${one.metadata.name} ${reason} ${graceSeconds}s`); systemClock.after(10, () => { told.push(`${one.metadata.name} unmounted`); self.isReclaimed = true; }); } };
    return self;
  };
  const all = [victim(pod("critical", 2_000_000_000)), victim(pod("app", 0, 1))];
  let changes = 0;
  const stop = new AbortController();
  const shutdown = gracefulShutdown({
    settings: { graceMs: 4000, criticalMs: 2000 }, pods: () => all, clock: systemClock, log: silentLog, metrics: metricsRegistry(), onChange: () => void changes++,
    notices: { run: async (on, delayMs) => { told.push(`waits ${delayMs}`); await on(true); await on(true); } },
  });
  await shutdown.run(stop.signal, () => undefined);
  expect(told).toEqual(["waits 4000", "app Terminated 1s", "app unmounted", "critical Terminated 2s", "critical unmounted"]);
  expect([shutdown.isDown(), changes]).toEqual([true, 1]);
});
