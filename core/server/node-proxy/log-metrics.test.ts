import { expect, test } from "vitest";
import { metricsRegistry } from "../../observe/metrics.ts";
import { apiServer } from "../../../test/api-server.ts";
import { nodeProxyHandlers } from "../special/node-proxy.ts";
import { logMeter, streamMeter } from "./log-metrics.ts";

test("who reads logs is counted by whether the kubelet must prove who it is", () => {
  const metrics = metricsRegistry();
  const meter = logMeter(metrics);
  meter.asked(true);
  meter.asked(false);
  meter.notVerified();
  expect(metrics.render().split("\n").filter((line) => line.startsWith("kube_apiserver")).sort()).toEqual(['kube_apiserver_pod_logs_insecure_backend_total{usage="enforce_tls"} 1', 'kube_apiserver_pod_logs_insecure_backend_total{usage="skip_tls_allowed"} 1', "kube_apiserver_pod_logs_backend_tls_failure_total 1"].sort());
});

test("streams to containers are counted once it is known where they go, whatever becomes of them", async () => {
  const metrics = metricsRegistry();
  const dialer = { connect: () => Promise.reject(new Error("refused")) };
  await using api = await apiServer({ special: { connections: nodeProxyHandlers({ dialer, kubeletTls: () => ({ ca: "", cert: "", key: "" }), streamMeter: streamMeter(metrics) }) } });
  const pods = "/api/v1/namespaces/a/pods";
  await api.ask("POST", "/api/v1/nodes", { body: { metadata: { name: "n" } } });
  await api.ask("PATCH", "/api/v1/nodes/n/status", { headers: { "content-type": "application/merge-patch+json" }, body: { status: { addresses: [{ type: "InternalIP", address: "10.0.0.9" }] } } });
  await api.ask("POST", pods, { body: { metadata: { name: "p" }, spec: { nodeName: "n", containers: [{ name: "c", image: "i" }] } } });
  const upgrade = { headers: { connection: "Upgrade", upgrade: "websocket" } };
  for (const path of ["p/exec?command=ls&stdout=1", "p/attach?stdout=1", "p/portforward?ports=80", "p/exec?command=ls&stdout=1", "gone/exec?command=ls&stdout=1"]) {
    const [of, query] = path.split("?");
    await api.ask("POST", `${pods}/${of}`, { ...upgrade, query: Object.fromEntries(new URLSearchParams(query)) });
  }
  const counted = (subresource: string): string | undefined => new RegExp(`apiserver_websocket_streaming_requests_total\\{(?=.*subresource="${subresource}")(?=.*proxy_type="proxied_to_kubelet").*\\} (\\d+)`).exec(metrics.render())?.[1];
  expect(["exec", "attach", "portforward"].map(counted)).toEqual(["2", "1", "1"]);
});
