import { expect, test } from "vitest";
import { apiServer } from "../../../../test/api-server.ts";

test("how long the rules of custom resources take is told once there are any", async () => {
  await using api = await apiServer();
  const schema = { type: "object", properties: { spec: { type: "object", properties: { size: { type: "integer" } }, "x-kubernetes-validations": [{ rule: "self.size < 5" }] } } };
  const names = { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" };
  await api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: { metadata: { name: "widgets.example.com" }, spec: { group: "example.com", scope: "Namespaced", names, versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema } }] } } });
  await expect.poll(async () => (await api.ask("POST", "/apis/example.com/v1/namespaces/a/widgets", { body: { apiVersion: "example.com/v1", kind: "Widget", metadata: { name: "w" }, spec: { size: 1 } } })).code).toBe(201);
  const count = (of: string): number => Number(new RegExp(`^apiserver_cel_${of}_duration_seconds_count (\\d+)$`, "m").exec(api.metrics.render())?.[1]);
  expect([count("compilation"), count("evaluation")]).toEqual([1, 1]);
  for (const size of [2, "x"]) await api.ask("PATCH", "/apis/example.com/v1/namespaces/a/widgets/w", { headers: { "content-type": "application/merge-patch+json" }, body: { spec: { size } } });
  expect(api.metrics.render()).toContain("apiextensions_apiserver_validation_ratcheting_seconds_count 2");
});
