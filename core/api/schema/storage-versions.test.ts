import { expect, test } from "vitest";
import { builtInResources } from "./resources.ts";
import { storageVersionsOf } from "./storage-versions.ts";

test("each resource that is stored has a version in which it is, those that can be read, and those that are served", () => {
  const versions = storageVersionsOf(builtInResources.rows(), builtInResources.everyRow());
  const of = (name: string) => { const { encodingVersion, decodableVersions, servedVersions } = versions.get(name)!; return [encodingVersion, decodableVersions?.join(), servedVersions?.join()]; };
  expect(of("core.pods")).toEqual(["v1", "v1", "v1"]);
  expect(of("apps.deployments")).toEqual(["apps/v1", "apps/v1", "apps/v1"]);
  expect(of("core.events")).toEqual(["v1", "v1,events.k8s.io/v1", "v1"]);
  expect(of("autoscaling.horizontalpodautoscalers")).toEqual(["autoscaling/v2", "autoscaling/v2,autoscaling/v1", "autoscaling/v2,autoscaling/v1"]);
  expect(of("networking.k8s.io.servicecidrs")).toEqual(["networking.k8s.io/v1", "networking.k8s.io/v1,networking.k8s.io/v1beta1", "networking.k8s.io/v1"]);
  expect(["events.k8s.io.events", "core.bindings", "core.componentstatuses", "authorization.k8s.io.subjectaccessreviews", "metrics.k8s.io.nodes"].filter((name) => versions.has(name))).toEqual([]);
  expect([...versions.values()].filter(({ encodingVersion, decodableVersions, servedVersions }) => ![encodingVersion!, ...servedVersions!].every((one) => decodableVersions!.includes(one)))).toEqual([]);
});
