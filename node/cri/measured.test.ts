import { expect, test } from "vitest";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { metricsRegistry } from "../../core/observe/metrics.ts";
import { measuredCri } from "./measured.ts";
import { memoryRuntime } from "./memory-runtime.ts";

test("calls are counted by operation, failures too", async () => {
  const metrics = metricsRegistry();
  const cri = measuredCri(memoryRuntime({ nowMs: systemClock.nowMs }), { metrics, clock: systemClock });
  await cri.call("RuntimeService/ListPodSandbox", {});
  await cri.call("ImageService/ListImages", {});
  await expect(cri.call("RuntimeService/ContainerStatus", { container_id: "none" })).rejects.toThrow();
  const text = metrics.render();
  expect(text).toContain('kubelet_runtime_operations_total{operation_type="list_podsandbox"} 1');
  expect(text).toContain('kubelet_runtime_operations_total{operation_type="list_images"} 1');
  expect(text).toContain('kubelet_runtime_operations_errors_total{operation_type="container_status"} 1');
  expect(text).toContain('kubelet_runtime_operations_duration_seconds_count{operation_type="container_status"} 1');
});
