import { expect, test } from "vitest";
import { builtInFacts } from "./facts.ts";
import { builtInResources } from "./resources.ts";

test("the stable API of v1.36 is served, and nothing else", () => {
  expect(builtInResources.groupVersions().map(({ group, version }) => `${group}/${version}`).sort()).toEqual([
    "/v1", "admissionregistration.k8s.io/v1", "apiextensions.k8s.io/v1", "apiregistration.k8s.io/v1", "apps/v1", "authentication.k8s.io/v1", "authorization.k8s.io/v1",
    "autoscaling/v1", "autoscaling/v2", "batch/v1", "certificates.k8s.io/v1", "coordination.k8s.io/v1", "discovery.k8s.io/v1", "events.k8s.io/v1",
    "flowcontrol.apiserver.k8s.io/v1", "networking.k8s.io/v1", "node.k8s.io/v1", "policy/v1", "rbac.authorization.k8s.io/v1", "resource.k8s.io/v1", "scheduling.k8s.io/v1",
    "storage.k8s.io/v1",
  ]);
});

test("every kind that is served has facts", () => {
  const unknown = builtInResources.rows().flatMap((row) => [row, ...row.subresources.map(({ kind }) => kind)]).filter((kind) => !builtInFacts.typeOf(kind));
  expect(unknown).toEqual([]);
});

test("rows carry names, verbs and storage versions as upstream's discovery does", () => {
  const pods = builtInResources.find("", "v1", "pods")!;
  expect(pods).toMatchObject({ kind: "Pod", singular: "pod", shortNames: ["po"], categories: ["all"], namespaced: true, storageVersionHash: "xPOwRZ+Yhw8=", returnsDeleted: true });
  expect(pods.verbs).toEqual(["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]);
  expect(pods.subresources.map(({ name, kind, verbs, connects }) => [name, kind.kind, verbs.join(), connects.join()])).toEqual([
    ["attach", "PodAttachOptions", "create,get", "GET,POST"], ["binding", "Binding", "create", ""], ["ephemeralcontainers", "Pod", "get,patch,update", ""],
    ["eviction", "Eviction", "create", ""], ["exec", "PodExecOptions", "create,get", "GET,POST"], ["log", "Pod", "get", ""],
    ["portforward", "PodPortForwardOptions", "create,get", "GET,POST"], ["proxy", "PodProxyOptions", "create,delete,get,patch,update", "DELETE,GET,HEAD,OPTIONS,PATCH,POST,PUT"],
    ["resize", "Pod", "get,patch,update", ""], ["status", "Pod", "get,patch,update", ""],
  ]);
  expect(builtInResources.find("events.k8s.io", "v1", "events")?.storageVersionHash).toBe("r2yiGXH7wu8=");
  expect(builtInResources.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")?.storageVersionHash).toBe("jfWCUB31mvA=");
  expect(builtInResources.find("", "v1", "componentstatuses")).toMatchObject({ verbs: ["get", "list"], storageVersionHash: undefined });
  expect(builtInResources.find("apps", "v1", "pods")).toBeUndefined();
});
