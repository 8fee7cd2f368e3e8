import { expect, test } from "vitest";
import { metricsRegistry } from "./metrics.ts";
import { buildMetrics } from "./process-metrics.ts";

test("a version is told without what is built on it, and which one may be beside it", () => {
  const metrics = metricsRegistry();
  buildMetrics(metrics, { major: "1", minor: "36", gitVersion: "v1.36.0+coracle0.1.0", gitCommit: "", gitTreeState: "", buildDate: "", goVersion: "", compiler: "", platform: "" });
  expect(metrics.render()).toContain('version_info{binary="1.36.0",component="kube",emulation="1.36",min_compat="1.35"} 1');
});
