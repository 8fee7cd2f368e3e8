import { expect, test } from "vitest";
import { metricsRegistry } from "../observe/metrics.ts";
import { schedulerMetrics } from "./metrics.ts";
import type { SchedulingQueue } from "./queue.ts";
import { Snapshot } from "./snapshot.ts";

test("pods are told apart by how often they were tried, up to fifteen times; those that wait by where", () => {
  const metrics = metricsRegistry();
  const queue = { sizes: () => ({ active: 1, backoff: 0, unschedulable: 2, gated: 3 }), heldBy: () => [{ plugin: "NodeResourcesFit", profile: "default-scheduler", pods: 2 }], changesHeld: () => [] } as unknown as SchedulingQueue;
  const told = schedulerMetrics(metrics, { queue: () => queue, snapshot: new Snapshot(), bindings: () => 0 });
  for (const attempts of [1, 14, 15, 99]) told.scheduled(attempts, 1000);
  const lines = metrics.render().split("\n");
  expect(lines.filter((line) => line.startsWith("scheduler_pod_scheduling_sli_duration_seconds_count"))).toEqual(['attempts="1"} 1', 'attempts="14"} 1', 'attempts="15+"} 2'].map((end) => `scheduler_pod_scheduling_sli_duration_seconds_count{${end}`));
  expect(lines.filter((line) => line.startsWith("scheduler_pending_pods"))).toEqual(['{queue="active"} 1', '{queue="backoff"} 0', '{queue="unschedulable"} 2', '{queue="gated"} 3'].map((end) => `scheduler_pending_pods${end}`));
  expect(lines).toContain('scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"} 2');
});

test("waits for devices are counted by driver, devices that need not be made ready only by how long they were waited for", () => {
  const metrics = metricsRegistry();
  schedulerMetrics(metrics, { queue: () => ({}) as never, snapshot: new Snapshot(), bindings: () => 0 }).waitedForDevices("p", { status: "timeout", ms: 3000, devices: [{ driver: "d", hasConditions: true }, { driver: "e", hasConditions: false }] });
  const lines = metrics.render((family) => family.startsWith("scheduler_dra")).split("\n").filter((line) => /^\w+_(count|total)/.test(line));
  expect(lines.map((line) => line.replace("scheduler_dra_bindingconditions_", "")).sort()).toEqual([
    'allocations_total{driver="d",profile="p",status="timeout"} 1', 'wait_duration_seconds_count{driver="d",profile="p",status="timeout"} 1', 'wait_duration_seconds_count{driver="e",profile="p",status="timeout"} 1',
  ]);
});
