import { expect, test } from "vitest";
import { node, pod, schedulingCluster } from "../../test/scheduling-cluster.ts";
import { metricsRegistry } from "../observe/metrics.ts";
import type { ClusterChange } from "./changes.ts";
import { mayBringBack } from "./hint-times.ts";
import { schedulerMetrics } from "./metrics.ts";
import { DEFAULT_PROFILE } from "./plugins.ts";
import { Snapshot } from "./snapshot.ts";

const cluster = schedulingCluster({});

function asked(rejectedBy: readonly string[], event: string, change: ClusterChange): readonly [back: boolean, told: readonly string[]] {
  const told: string[] = [];
  const times = { nowMs: () => 0, hinted: (plugin: string, of: string, hint: string) => void told.push(`${plugin} ${of} ${hint}`) };
  return [mayBringBack(DEFAULT_PROFILE.filters, { pod: pod("p", { cpu: "3" }), rejectedBy: new Set(rejectedBy), change, event, cluster }, times), told];
}

test("who rejected a pod is asked whether what happened may help, and how long that took is told of what upstream asks it about", () => {
  const small: ClusterChange = { of: "node", object: node("n"), deleted: false };
  expect(asked(["NodeResourcesFit"], "NodeAdd", small)).toEqual([false, ["NodeResourcesFit NodeAdd QueueSkip"]]);
  expect(asked(["NodeResourcesFit", "NodeName"], "NodeAdd", small)).toEqual([true, ["NodeName NodeAdd Queue"]]); // who comes after one that says so is not asked
  const gone: ClusterChange = { of: "placed pod", object: pod("x"), deleted: true };
  expect(asked(["NodeResourcesFit"], "AssignedPodDelete", gone)).toEqual([true, ["NodeResourcesFit AssignedPodDelete Queue"]]);
  expect(asked(["NodeAffinity"], "AssignedPodDelete", gone)).toEqual([false, []]);
  const labelled: ClusterChange = { of: "node", object: node("n", { labels: { a: "b" } }), old: node("n"), deleted: false };
  expect(asked(["NodeResourcesFit"], "NodeUpdateNodeTaint", labelled)).toEqual([true, ["NodeResourcesFit NodeUpdateNodeTaint Queue"]]);
  expect(asked(["NodeVolumeLimits"], "NodeUpdateNodeTaint", labelled)).toEqual([false, []]);
});

test("every filter that a pod may be rejected by is heard of in the metric", () => {
  const { filters } = DEFAULT_PROFILE;
  const heard = filters.filter(({ name }) => ["NodeAdd", "AssignedPodDelete"].some((event) => asked([name], event, { of: "node", object: node("n"), deleted: false })[1].length > 0));
  expect(heard.map(({ name }) => name)).toEqual(filters.map(({ name }) => name));
});

test("hints can be scraped under upstream's name", () => {
  const metrics = metricsRegistry();
  schedulerMetrics(metrics, { queue: () => ({}) as never, snapshot: new Snapshot(), bindings: () => 0 }).hinted("NodeName", "NodeAdd", "Queue", 1);
  const lines = metrics.render((family) => family.startsWith("scheduler_queueing_hint")).split("\n");
  expect(lines).toContain('scheduler_queueing_hint_execution_duration_seconds_sum{event="NodeAdd",hint="Queue",plugin="NodeName"} 0.001');
});
