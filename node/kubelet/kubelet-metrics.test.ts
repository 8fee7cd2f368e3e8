import { expect, test } from "vitest";
import type { Pod, PodStatus } from "../../core/api/gen/core.v1.ts";
import { metricsRegistry } from "../../core/observe/metrics.ts";
import { kubeletMetrics, registerRunning } from "./kubelet-metrics.ts";
import type { WorkerStage } from "./pod-worker.ts";
import { emptyRuntimePod } from "./runtime-pod.ts";
import { StartLatency } from "./start-latency.ts";

const CREATED = "2026-01-01T00:00:00Z";
const after = (seconds: number): number => Date.parse(CREATED) + seconds * 1000;
const at = (seconds: number): string => new Date(after(seconds)).toISOString();

function podOf(spec: Partial<Pod["spec"]> = {}, status: PodStatus = {}, source = "api"): Pod {
  return { apiVersion: "v1", kind: "Pod", metadata: { name: "a", namespace: "x", uid: "u", resourceVersion: "", creationTimestamp: CREATED, annotations: { "kubernetes.io/config.source": source } }, spec: { containers: [{ name: "c" }], ...spec }, status };
}

const RUNNING: PodStatus = { startTime: CREATED, phase: "Running", containerStatuses: [{ name: "c", image: "", imageID: "", ready: true, restartCount: 0, state: { running: { startedAt: at(20) } } }] };

test("a pod's start is its own, without the pulls, overlapping or not, and its init containers", () => {
  const latency = new StartLatency();
  latency.seen(podOf());
  latency.pulled("u", { beganMs: 1_000, endedMs: 5_000 });
  latency.pulled("u", { beganMs: 4_000, endedMs: 7_000 });
  const init = { name: "i", image: "", imageID: "", ready: true, restartCount: 0, state: { terminated: { exitCode: 0, startedAt: at(8), finishedAt: at(11) } } };
  expect(latency.observe(podOf({}, { startTime: CREATED, phase: "Pending" }), after(10))).toBeUndefined();
  expect(latency.observe(podOf({}, { ...RUNNING, initContainerStatuses: [init] }), after(21))).toEqual({ totalSeconds: 21, sliSeconds: 12 });
  expect(latency.observe(podOf({}, RUNNING), after(30))).toBeUndefined(); // only once
});

test("nothing is promised of a pod with volumes that last, nor of one that could not be placed, or ran before", () => {
  const latency = new StartLatency();
  const volumes = [{ name: "v", persistentVolumeClaim: { claimName: "p" } }];
  latency.seen(podOf({ volumes }));
  expect(latency.observe(podOf({ volumes }, RUNNING), after(21))).toEqual({ totalSeconds: 21, sliSeconds: undefined });
  const waiting = { conditions: [{ type: "PodScheduled", status: "False", reason: "SchedulerError" }] } satisfies Pod["status"];
  for (const before of [{ startTime: CREATED }, waiting]) {
    latency.seen(podOf({}, before));
    expect(latency.observe(podOf({}, RUNNING), after(21))).toBeUndefined();
  }
  latency.seen(podOf({}));
  expect([podOf({}, waiting), podOf({}, RUNNING)].map((pod) => latency.observe(pod, after(21)))).toEqual([undefined, undefined]); // told only later
});

test("of pods in a network of their own the first one's start is told apart", () => {
  const metrics = metricsRegistry();
  const counted = kubeletMetrics(metrics, "n");
  const start = (seconds: number, spec: Partial<Pod["spec"]>) => {
    counted.podSeen(podOf(spec));
    counted.podRead(podOf(spec, RUNNING), after(seconds));
    return metrics.render().split("\n").find((line) => line.startsWith("kubelet_first_network_pod_start_sli_duration_seconds "))?.split(" ")[1];
  };
  expect([start(21, { hostNetwork: true }), start(22, {}), start(23, {})]).toEqual(["0", "22", "22"]);
});

test("pods are told of by where they come from and how far they are", () => {
  const metrics = metricsRegistry();
  const worker = (pod: Pod, stage: WorkerStage, isGone = false) => ({ pod, stage, isGone, runtime: emptyRuntimePod("u", "a", "x"), resizeConditions: stage === "running" ? [{ type: "PodResizePending", reason: "Deferred" }, { type: "PodResizeInProgress" }] : [] });
  const remembered = { ...podOf(), metadata: { ...podOf().metadata, creationTimestamp: "" } };
  registerRunning(metrics, () => [worker(podOf({ ephemeralContainers: [{ name: "e" }] }), "running"), worker(podOf({}, {}, "file"), "running"), worker(podOf(), "terminating", true), worker(podOf({}, { phase: "Succeeded" }), "terminated"), worker(remembered, "terminating", true)]);
  const shown = metrics.render().split("\n").filter((line) => /^kubelet_(desired|active|mirror|working|managed)/.test(line) && !line.endsWith(" 0")).sort();
  expect(shown).toEqual([
    'kubelet_desired_pods{static=""} 2', 'kubelet_desired_pods{static="true"} 1', 'kubelet_active_pods{static=""} 1', 'kubelet_active_pods{static="true"} 1', "kubelet_mirror_pods 1",
    'kubelet_working_pods{config="desired",lifecycle="sync",static=""} 1', 'kubelet_working_pods{config="desired",lifecycle="sync",static="true"} 1',
    'kubelet_working_pods{config="orphan",lifecycle="terminating",static=""} 1', 'kubelet_working_pods{config="runtime_only",lifecycle="terminating",static="unknown"} 1', 'kubelet_working_pods{config="desired",lifecycle="terminated",static=""} 1',
    "kubelet_managed_ephemeral_containers 1",
  ].sort());
  expect(metrics.render()).toContain('\nkubelet_pod_pending_resizes{reason="deferred"} 2\n');
  expect(metrics.render()).toContain("\nkubelet_pod_in_progress_resizes 2\n");
});

test("that no pod could not be started is told as a number from the start: who divides by it, or looks at how it grows, finds one", () => {
  const metrics = metricsRegistry();
  kubeletMetrics(metrics, "n");
  expect(metrics.render().split("\n").filter((line) => line.startsWith("kubelet_started_"))).toEqual(expect.arrayContaining(["kubelet_started_pods_total 0", "kubelet_started_pods_errors_total 0"]));
});

test("refusals, pulls and sandboxes are counted under few labels", () => {
  const metrics = metricsRegistry();
  const counted = kubeletMetrics(metrics, "n");
  for (const reason of ["OutOfcpu", "OutOfexample.com/gpu", "NodeAffinity"]) counted.admissionRefused(reason);
  for (const sizeBytes of [0, 5_000_000, 20_000_000_000]) counted.imagePulled("u", { beganMs: 0, endedMs: 2_000, sizeBytes });
  counted.sandboxStarted("kata", 0.3, true);
  counted.imageEnsured("IfNotPresent", { isPresent: false, mustPull: true });
  counted.imageEnsured("Always", { mustPull: true });
  expect(metrics.render().split("\n").filter((line) => line.startsWith("kubelet_image_manager_ensure"))).toEqual([
    'kubelet_image_manager_ensure_image_requests_total{present_locally="false",pull_policy="ifnotpresent",pull_required="true"} 1', 'kubelet_image_manager_ensure_image_requests_total{present_locally="unknown",pull_policy="always",pull_required="true"} 1',
  ]);
  const shown = metrics.render().split("\n").filter((line) => /^kubelet_(admission_rejections_total|image_pull_duration_seconds_count|run_podsandbox_(errors_total|duration_seconds_sum))/.test(line));
  expect(shown).toEqual([
    'kubelet_admission_rejections_total{reason="OutOfcpu"} 1', 'kubelet_admission_rejections_total{reason="OutOfExtendedResources"} 1', 'kubelet_admission_rejections_total{reason="Other"} 1',
    'kubelet_image_pull_duration_seconds_count{image_size_in_bytes="N/A"} 1', 'kubelet_image_pull_duration_seconds_count{image_size_in_bytes="0-10MB"} 1', 'kubelet_image_pull_duration_seconds_count{image_size_in_bytes="10GB-20GB"} 1',
    'kubelet_run_podsandbox_duration_seconds_sum{runtime_handler="kata"} 0.3', 'kubelet_run_podsandbox_errors_total{runtime_handler="kata"} 1',
  ]);
});
