import { expect, test } from "vitest";
import { isOfControllers, isOfControlPlane, isOfNode, isOfProbes, isOfScheduler } from "./families.ts";
import { metricsRegistry } from "./metrics.ts";

test("one process counts for all components: a node's endpoints leave out the control plane's families, the API server's the node's, and the probes' show only theirs", () => {
  const metrics = metricsRegistry();
  for (const name of ["apiserver_request_total", "scheduler_schedule_attempts_total", "workqueue_depth", "aggregator_unavailable_apiservice", "job_controller_job_syncs_total", "node_collector_zone_size", "kubelet_node_name", "kubeproxy_sync_total", "prober_probe_total", "process_start_time_seconds"]) metrics.gauge(name, "[ALPHA] One.").set(1);
  const shown = (text: string) => text.split("\n").filter((line) => line !== "" && !line.startsWith("#")).sort();
  expect(shown(metrics.render(isOfNode))).toEqual(['registered_metrics_total{deprecated_version="",stability_level="ALPHA"} 4', "disabled_metrics_total 0", "hidden_metrics_total 0", "kubelet_node_name 1", "kubeproxy_sync_total 1", "prober_probe_total 1", "process_start_time_seconds 1"].sort());
  expect(shown(metrics.render(isOfControlPlane))).toEqual(['registered_metrics_total{deprecated_version="",stability_level="ALPHA"} 7', "disabled_metrics_total 0", "hidden_metrics_total 0", "apiserver_request_total 1", "scheduler_schedule_attempts_total 1", "workqueue_depth 1", "aggregator_unavailable_apiservice 1", "job_controller_job_syncs_total 1", "node_collector_zone_size 1", "process_start_time_seconds 1"].sort());
  expect(shown(metrics.render(isOfProbes))).toEqual(["prober_probe_total 1", "process_start_time_seconds 1"].sort());
  expect(shown(metrics.render())).toHaveLength(13);
});

test("what a kubelet asks the API server about its callers it tells itself, under upstream's name", () => {
  const names = ["apiserver_delegated_authn_request_total", "apiserver_delegated_authz_request_duration_seconds"];
  expect([names.map(isOfNode), names.map(isOfControlPlane)]).toEqual([[true, true], [false, false]]);
});

test("the controllers and the scheduler each tell theirs, and what every component tells", () => {
  const names = ["apiserver_flowcontrol_controller_x", "job_controller_job_syncs_total", "workqueue_depth", "running_managed_controllers", "pod_gc_collector_force_delete_pods_total", "scheduler_pending_pods", "kubelet_node_name", "leader_election_master_status", "kubernetes_build_info", "version_info", "process_open_fds"];
  const common = ["leader_election_master_status", "kubernetes_build_info", "version_info", "process_open_fds"];
  expect(["volume_operation_total_seconds", "storage_count_attachable_volumes_in_use", "retroactive_storageclass_total", "attachdetach_controller_total_volumes"].map((name) => [isOfControllers(name), isOfNode(name)])).toEqual(Array.from({ length: 4 }, () => [true, false]));
  expect(names.filter(isOfControllers)).toEqual(["job_controller_job_syncs_total", "workqueue_depth", "running_managed_controllers", "pod_gc_collector_force_delete_pods_total", ...common]);
  expect(names.filter(isOfScheduler)).toEqual(["scheduler_pending_pods", ...common]);
});
