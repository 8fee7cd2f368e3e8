import { expect, test } from "vitest";
import { builtInResources, type ResourceRow } from "../schema/resources.ts";
import { apiGroup, apiGroupList, apiResourceList, apiVersions, etagOf, groupDiscoveryList, isAggregatedDiscovery } from "./discovery.ts";
import { compareVersions } from "./version-order.ts";

const CRONTABS: ResourceRow = {
  group: "stable.example.com", version: "v1", plural: "crontabs", singular: "crontab", kind: "CronTab", shortNames: ["ct"], categories: [], namespaced: true, verbs: ["get", "list"],
  subresources: [{ name: "scale", kind: { group: "autoscaling", version: "v1", kind: "Scale" }, verbs: ["get"], connects: [] }], storageVersionHash: undefined, returnsDeleted: true, custom: true,
};

test("legacy documents", () => {
  const versions = builtInResources.groupVersions();
  expect(apiVersions("10.0.0.1:6443")).toEqual({ kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress: "10.0.0.1:6443" }] });
  expect((apiGroupList(versions) as { groups: { name: string }[] }).groups.map(({ name }) => name)).toEqual([
    "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io", "networking.k8s.io",
    "policy", "rbac.authorization.k8s.io", "storage.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io", "coordination.k8s.io", "node.k8s.io",
    "discovery.k8s.io", "resource.k8s.io", "flowcontrol.apiserver.k8s.io",
  ]);
  expect(apiGroup(versions, "autoscaling")).toEqual({
    kind: "APIGroup", apiVersion: "v1", name: "autoscaling", preferredVersion: { groupVersion: "autoscaling/v2", version: "v2" },
    versions: [{ groupVersion: "autoscaling/v2", version: "v2" }, { groupVersion: "autoscaling/v1", version: "v1" }],
  });
  expect(apiGroup(versions, "nothing")).toBeUndefined();
});

test("a group version's resources, subresources among them by name", () => {
  const apps = { group: "apps", version: "v1" };
  const document = apiResourceList(apps, builtInResources.rows().filter((row) => row.group === "apps")) as { resources: { name: string }[] };
  expect(document).toMatchObject({ kind: "APIResourceList", apiVersion: "v1", groupVersion: "apps/v1" });
  expect(document.resources.map(({ name }) => name).slice(0, 6)).toEqual(["controllerrevisions", "daemonsets", "daemonsets/status", "deployments", "deployments/scale", "deployments/status"]);
  expect(document.resources[4]).toEqual({ name: "deployments/scale", singularName: "", namespaced: true, group: "autoscaling", version: "v1", kind: "Scale", verbs: ["get", "patch", "update"] });
});

test("those of a custom resource stand as its definition has them", () => {
  const status = { name: "status", kind: { group: CRONTABS.group, version: "v1", kind: "CronTab" }, verbs: ["get" as const], connects: [] };
  const { resources } = apiResourceList(CRONTABS, [{ ...CRONTABS, subresources: [status, ...CRONTABS.subresources] }]) as { resources: { name: string }[] };
  expect(resources.map(({ name }) => name)).toEqual(["crontabs", "crontabs/status", "crontabs/scale"]);
});

test("aggregated discovery spells out foreign and custom kinds only", () => {
  const document = groupDiscoveryList([{ group: CRONTABS.group, version: "v1", groupPriority: 1000, versionPriority: 100, rows: [CRONTABS], freshness: "Stale" }]);
  expect(document).toEqual({
    kind: "APIGroupDiscoveryList", apiVersion: "apidiscovery.k8s.io/v2", metadata: {},
    items: [{
      metadata: { name: "stable.example.com" },
      versions: [{
        version: "v1", freshness: "Stale",
        resources: [{
          resource: "crontabs", responseKind: { group: "stable.example.com", version: "v1", kind: "CronTab" }, scope: "Namespaced", singularResource: "crontab", verbs: ["get", "list"],
          shortNames: ["ct"], subresources: [{ subresource: "scale", responseKind: { group: "autoscaling", version: "v1", kind: "Scale" }, verbs: ["get"] }],
        }],
      }],
    }],
  });
  expect(etagOf(document)).toMatch(/^"[0-9A-F]{128}"$/);
  expect(isAggregatedDiscovery({ group: "apidiscovery.k8s.io", version: "v2", kind: "APIGroupDiscoveryList" })).toBe(true);
});

test("versions in Kubernetes' order", () => {
  const order = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"];
  expect([...order].reverse().sort((a, b) => compareVersions(b, a))).toEqual(order);
});

test("a version of which nothing is known names no resources", () => {
  const document = groupDiscoveryList([{ group: "a.b", version: "v1", groupPriority: 1000, versionPriority: 100, rows: [], foreign: [], freshness: "Stale" }]);
  expect(document).toMatchObject({ items: [{ versions: [{ version: "v1", freshness: "Stale" }] }] });
  expect(JSON.stringify(document)).not.toContain("resources");
});
