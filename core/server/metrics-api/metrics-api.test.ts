import { expect, test } from "vitest";
import { apiServer } from "../../../test/api-server.ts";
import { metricsHandlers } from "./metrics-api.ts";

test("where the server does not serve metrics.k8s.io itself, a custom resource of that name is what is read", async () => {
  await using api = await apiServer({ special: { connections: metricsHandlers({} as never) } });
  await api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: {
    apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name: "pods.metrics.k8s.io", annotations: { "api-approved.kubernetes.io": "unapproved, a stand-in" } },
    spec: { group: "metrics.k8s.io", scope: "Namespaced", names: { plural: "pods", singular: "podmetrics", kind: "PodMetrics", listKind: "PodMetricsList" }, versions: [{ name: "v1beta1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } } }] },
  } });
  const pods = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods";
  await expect.poll(async () => (await api.ask("GET", pods)).code).toBe(200);
  await api.ask("POST", pods, { body: { apiVersion: "metrics.k8s.io/v1beta1", kind: "PodMetrics", metadata: { name: "p" }, window: "30s" } });
  expect(await api.ask("GET", `${pods}/p`)).toMatchObject({ code: 200, body: { kind: "PodMetrics", window: "30s" } });
  expect(await api.ask("GET", pods)).toMatchObject({ body: { items: [{ metadata: { name: "p" } }] } });
});
