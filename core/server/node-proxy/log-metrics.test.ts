import { expect, test } from "vitest";
import { metricsRegistry } from "../../observe/metrics.ts";
import { logMeter } from "./log-metrics.ts";

test("who reads logs is counted by whether the kubelet must prove who it is", () => {
  const metrics = metricsRegistry();
  const meter = logMeter(metrics);
  meter.asked(true);
  meter.asked(false);
  meter.notVerified();
  expect(metrics.render().split("\n").filter((line) => line.startsWith("kube_apiserver")).sort()).toEqual(['kube_apiserver_pod_logs_insecure_backend_total{usage="enforce_tls"} 1', 'kube_apiserver_pod_logs_insecure_backend_total{usage="skip_tls_allowed"} 1', "kube_apiserver_pod_logs_backend_tls_failure_total 1"].sort());
});
