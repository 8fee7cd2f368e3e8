import { expect, test } from "vitest";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import { pluginOf, volumeMetrics } from "./volume-metrics.ts";

test("plugins have upstream's names, CSI's with their driver", () => {
  expect([{ name: "a", configMap: {} }, { name: "a", emptyDir: {} }, { name: "a", csi: { driver: "d.io" } }, { name: "a", persistentVolumeClaim: { claimName: "c" } }].map(pluginOf)).toEqual(["kubernetes.io/configmap", "kubernetes.io/empty-dir", "kubernetes.io/csi:d.io", undefined]);
});

test("volumes are counted as wanted and as there; what made them once is not counted again, but where files are written", () => {
  const metrics = metricsRegistry();
  const counted = volumeMetrics(metrics);
  const files = { name: "f", configMap: {} }, claim = { name: "c", persistentVolumeClaim: { claimName: "c" } };
  const shown = (family: string): string[] => metrics.render((name) => name === family).split("\n").filter((line) => line.startsWith(family) && !line.includes("_bucket") && !line.includes("_sum"));
  counted.wanted("u", [files, claim]);
  counted.setUp("u", files, { plugin: "kubernetes.io/configmap", seconds: 0, failed: false });
  counted.setUp("u", claim, { plugin: "kubernetes.io/csi:d", seconds: 1, failed: true });
  expect(shown("volume_manager_total_volumes")).toEqual(['volume_manager_total_volumes{plugin_name="kubernetes.io/configmap",state="actual_state_of_world"} 1', 'volume_manager_total_volumes{plugin_name="kubernetes.io/configmap",state="desired_state_of_world"} 1', 'volume_manager_total_volumes{plugin_name="kubernetes.io/csi:d",state="desired_state_of_world"} 1']);
  counted.wanted("u", [files, claim]);
  for (let i = 0; i < 2; i++) {
    counted.setUp("u", files, { plugin: "kubernetes.io/configmap", seconds: 0, failed: false });
    counted.setUp("u", claim, { plugin: "kubernetes.io/csi:d", seconds: 1, failed: false });
  }
  counted.released("u", { seconds: 0, failed: false });
  expect(shown("storage_operation_duration_seconds")).toEqual([
    'storage_operation_duration_seconds_count{migrated="false",operation_name="volume_mount",status="success",volume_plugin="kubernetes.io/configmap"} 3',
    'storage_operation_duration_seconds_count{migrated="false",operation_name="volume_mount",status="fail-unknown",volume_plugin="kubernetes.io/csi:d"} 1',
    'storage_operation_duration_seconds_count{migrated="false",operation_name="volume_mount",status="success",volume_plugin="kubernetes.io/csi:d"} 1',
    'storage_operation_duration_seconds_count{migrated="false",operation_name="volume_unmount",status="success",volume_plugin="kubernetes.io/configmap"} 1',
    'storage_operation_duration_seconds_count{migrated="false",operation_name="volume_unmount",status="success",volume_plugin="kubernetes.io/csi:d"} 1',
  ]);
  expect(shown("volume_manager_total_volumes")).toEqual([]);
});
