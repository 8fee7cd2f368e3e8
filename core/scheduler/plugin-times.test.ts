import { expect, test } from "vitest";
import { candidate, first, node, pod, schedulingCluster } from "../../test/scheduling-cluster.ts";
import { place } from "./place.ts";
import type { PluginTimes } from "./plugin-times.ts";
import { DEFAULT_PROFILE } from "./plugins.ts";

test("each plugin is timed as it is prepared and as it is asked about a node; one with nothing to say is skipped", () => {
  let nowMs = 0;
  const took: string[] = [];
  const times: PluginTimes = { nowMs: () => nowMs++, took: (point, plugin, status, ms) => void took.push(`${point} ${plugin} ${status} ${ms}`) };
  const cluster = schedulingCluster({ nodes: [node("a"), node("b"), node("c", { unschedulable: true })] });
  expect(place(candidate(pod("p")), cluster, DEFAULT_PROFILE, { random: first, start: { next: 0 }, times }).type).toBe("node");
  expect(took.filter((one) => one.includes("NodeResourcesFit"))).toEqual(["PreFilter NodeResourcesFit Success 1", "Filter NodeResourcesFit Success 1", "Filter NodeResourcesFit Success 1", "PreScore NodeResourcesFit Success 1", "Score NodeResourcesFit Success 1", "Score NodeResourcesFit Success 1"]);
  expect(took).toContain("Filter NodeUnschedulable UnschedulableAndUnresolvable 1");
  expect(took).toContain("PreFilter VolumeBinding Skip 1");
});
