import { expect, test } from "vitest";
import { memoryRegistry } from "../../test/memory-registry.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { CustomKind } from "../registry/apiextensions/custom/custom-kind.ts";
import { objectVersions } from "./object-versions.ts";

const { signal } = new AbortController();
const HPA_V1 = { group: "autoscaling", version: "v1", resource: "horizontalpodautoscalers" };
const HPA_V2 = { ...HPA_V1, version: "v2" };
const PODS = { group: "", version: "v1", resource: "pods" };

const world = async () => objectVersions(await memoryRegistry());

test("one resource under several versions and groups, and what its subresources take", async () => {
  const versions = await world();
  expect([...versions.equivalents(HPA_V1)]).toEqual([HPA_V2]);
  expect([...versions.equivalents({ group: "", version: "v1", resource: "events" })]).toEqual([{ group: "events.k8s.io", version: "v1", resource: "events" }]);
  expect([...versions.equivalents(PODS)]).toEqual([]);
  expect(versions.kindOf(HPA_V1, "")).toEqual({ group: "autoscaling", version: "v1", kind: "HorizontalPodAutoscaler" });
  expect(versions.kindOf({ group: "apps", version: "v1", resource: "deployments" }, "scale")).toEqual({ group: "autoscaling", version: "v1", kind: "Scale" });
  expect(versions.kindOf(PODS, "eviction")).toEqual({ group: "policy", version: "v1", kind: "Eviction" });
  expect(versions.kindOf(PODS, "exec")).toMatchObject({ version: "v1", kind: "PodExecOptions" });
  expect(versions.kindOf({ group: "", version: "v1", resource: "nothings" }, "")).toBeUndefined();
});

test("a version that is not served is one webhooks may ask for", async () => {
  const registry = await memoryRegistry();
  const versionsOf = [{ name: "v1", served: true, storage: true }, { name: "v2", served: false, storage: false }].map((version) => ({ ...version, schema: { openAPIV3Schema: { type: "object" } } }));
  const names = { plural: "boxes", kind: "Box" };
  registry.setCustom(new CustomKind({ crd: { metadata: { name: "boxes.ops.io" }, spec: { group: "ops.io", scope: "Namespaced", names, versions: versionsOf } } as never, remote: undefined }), names);
  const versions = objectVersions(registry);
  const v1 = { group: "ops.io", version: "v1", resource: "boxes" }, v2 = { ...v1, version: "v2" };
  expect([...versions.equivalents(v1)]).toEqual([v2]);
  expect(registry.knownRowsNamed("boxes").map(({ version }) => version)).toEqual(["v1", "v2"]); // and none of other names is looked at
  expect(versions.kindOf(v2, "")).toEqual({ group: "ops.io", version: "v2", kind: "Box" });
  expect(await versions.shown({ apiVersion: "ops.io/v1", kind: "Box", metadata: { name: "b" } } as ApiObject, v2, signal)).toMatchObject({ apiVersion: "ops.io/v2" });
  expect(registry.find("ops.io", "v2", "boxes")).toBeUndefined();
  registry.removeCustom("ops.io", "boxes");
  expect([...versions.equivalents(v1)]).toEqual([]);
});

test("an object is shown in another version, and what has been made of it comes back as it is stored, with its defaults", async () => {
  const versions = await world();
  const stored = { apiVersion: "autoscaling/v2", kind: "HorizontalPodAutoscaler", metadata: { name: "h" }, spec: { maxReplicas: 3, scaleTargetRef: { kind: "Deployment", name: "d" }, metrics: [{ type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50 } } }] } } as unknown as ApiObject;
  const shown = await versions.shown(stored, HPA_V1, signal);
  expect(shown).toMatchObject({ apiVersion: "autoscaling/v1", spec: { targetCPUUtilizationPercentage: 50 } });
  const changed = { ...shown, spec: { maxReplicas: 5, scaleTargetRef: { kind: "Deployment", name: "d" }, targetCPUUtilizationPercentage: 60 } };
  expect(await versions.restored(changed as never, HPA_V1, HPA_V1, signal)).toMatchObject({
    apiVersion: "autoscaling/v2", spec: { maxReplicas: 5, minReplicas: 1, metrics: [{ resource: { target: { averageUtilization: 60 } } }] },
  });
  expect(await versions.restored(changed as never, HPA_V1, HPA_V2, signal)).toMatchObject({ apiVersion: "autoscaling/v2", spec: { metrics: [{ resource: { target: { averageUtilization: 60 } } }] } });
  expect(await versions.shown(stored, HPA_V2, signal)).toBe(stored);
});

test("webhooks are told of fields in upstream's order", async () => {
  const versions = await world();
  const object = { apiVersion: "v1", kind: "Service", metadata: { labels: { a: "b" }, name: "s" }, spec: { externalName: "a.b", ports: [{ port: 80, protocol: "TCP" }], type: "ExternalName" } };
  expect(JSON.stringify(versions.inOrder(object as never))).toBe('{"kind":"Service","apiVersion":"v1","metadata":{"name":"s","labels":{"a":"b"}},"spec":{"ports":[{"protocol":"TCP","port":80,"targetPort":0}],"type":"ExternalName","externalName":"a.b"},"status":{"loadBalancer":{}}}');
});

test("what is no object of its kind is refused; unknown fields are dropped", async () => {
  const versions = await world();
  const pod = (spec: object) => ({ apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec }) as never;
  await expect(versions.restored(pod({ containers: "none" }), PODS, PODS, signal)).rejects.toThrow(/cannot unmarshal string/);
  expect(await versions.restored(pod({ containers: [{ name: "c", image: "x" }], mystery: 1 }), PODS, PODS, signal)).toMatchObject({ spec: { restartPolicy: "Always", containers: [{ imagePullPolicy: "Always" }] } });
});
