import { expect, test } from "vitest";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import { startupLatency } from "./startup-latency.ts";

/** Each step comes a second after the one before; the machine is up for 100 s when we start. */
function shown(...steps: readonly ("registering" | "registered" | "ready")[]): readonly number[] {
  const metrics = metricsRegistry();
  let uptimeMs = 0;
  const latency = startupLatency({ metrics, clock: { uptimeMs: () => uptimeMs }, machineSeconds: 100 });
  for (const step of steps) {
    uptimeMs += 1000;
    latency[step]();
  }
  const lines = metrics.render().split("\n");
  return ["pre_kubelet_", "pre_registration_", "registration_", "post_registration_", ""].map((part) => Number(lines.find((line) => line.startsWith(`kubelet_node_startup_${part}duration_seconds `))?.split(" ")[1]));
}

test("how long a new node took is told part by part, once; of one that was there already nothing", () => {
  expect(shown("registering", "registering", "registered", "ready", "ready", "registered")).toEqual([100, 1, 2, 1, 104]);
  expect(shown("registering", "ready")).toEqual([0, 0, 0, 0, 0]);
  expect(shown("registering", "registered")).toEqual([100, 1, 1, 0, 0]);
});
