/** What is known of who may have images that are here. Source: kubernetes v1.36 pkg/kubelet/images/pullmanager/metrics.go */
import { readdirSync } from "node:fs";
import { ifThereSync } from "../../../core/lifecycle/if-there.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";
import { PULLED, PULLING, type PullCheck } from "./pull-records.ts";

/** Returns what counts the checks. `root`: of the records. */
export function pullRecordMetrics(metrics: Metrics, root: string): (result: PullCheck) => void {
  for (const [name, what, directory] of [["intents", "ImagePullIntents", PULLING], ["edrecords", "ImagePulledRecords", PULLED]] as const) {
    metrics.gaugeFrom(`kubelet_imagemanager_ondisk_pull${name}`, `[ALPHA] Number of ${what} stored on disk.`, () => [[{}, filesIn(`${root}/${directory}`)]]);
  }
  const checks = metrics.counter("kubelet_imagemanager_image_mustpull_checks_total", "[ALPHA] Counter for how many times kubelet checked whether credentials need to be re-verified to access an image");
  return (result) => checks.inc({ result });
}

function filesIn(directory: string): number {
  const names = ifThereSync(() => readdirSync(directory)) ?? []; // nothing was pulled yet
  return names.filter((name) => !name.endsWith(".tmp")).length;
}
