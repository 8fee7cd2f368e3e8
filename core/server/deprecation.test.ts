import { expect, test } from "vitest";
import { apiServer } from "../../test/api-server.ts";
import { builtInResources } from "../api/schema/resources.ts";
import { deprecation } from "./deprecation.ts";

test.each<[string, string, string, string | undefined]>([
  ["", "v1", "Endpoints", "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"],
  ["resource.k8s.io", "v1beta1", "ResourceClaim", "resource.k8s.io/v1beta1 ResourceClaim is deprecated in v1.35+, unavailable in v1.38+"],
  ["storage.k8s.io", "v1beta1", "VolumeAttributesClass", "storage.k8s.io/v1beta1 VolumeAttributesClass is deprecated in v1.34+, unavailable in v1.37+; use storage.k8s.io/v1 VolumeAttributesClass"],
  ["resource.k8s.io", "v1beta2", "DeviceTaintRule", undefined],
])("%s/%s %s", (group, version, kind, text) => expect(deprecation({ group, version, kind })).toBe(text));

test("of versions that are off by default, those that are new are not deprecated", () => {
  const served = new Set(builtInResources.rows());
  expect(builtInResources.everyRow().filter((row) => !served.has(row) && deprecation(row) === undefined).map(({ group, version, plural }) => `${plural}.${version}.${group}`)).toEqual([
    "clustertrustbundles.v1beta1.certificates.k8s.io", "podcertificaterequests.v1beta1.certificates.k8s.io", "mutatingadmissionpolicies.v1beta1.admissionregistration.k8s.io", "mutatingadmissionpolicybindings.v1beta1.admissionregistration.k8s.io", "podgroups.v1alpha2.scheduling.k8s.io", "workloads.v1alpha2.scheduling.k8s.io",
    "devicetaintrules.v1beta2.resource.k8s.io", "resourcepoolstatusrequests.v1alpha3.resource.k8s.io", "storageversions.v1alpha1.internal.apiserver.k8s.io", "storageversionmigrations.v1beta1.storagemigration.k8s.io",
  ]);
});

test("what the router refuses is not told to be deprecated, what is refused after it is", async () => {
  await using api = await apiServer();
  const ENDPOINTS = "/api/v1/namespaces/a/endpoints";
  const warned = async (method: string, path: string, headers: Readonly<Record<string, string>>): Promise<[code: number, warned: boolean]> => {
    const { code, warnings } = await api.ask(method, path, { headers, ...(method === "GET" ? {} : { body: {} }) });
    return [code, warnings.some((text) => text.includes("is deprecated"))];
  };
  expect(await warned("GET", ENDPOINTS, { accept: "text/html" })).toEqual([406, false]);
  expect(await warned("GET", ENDPOINTS, { accept: "application/json;as=Foo;v=v1;g=meta.k8s.io" })).toEqual([406, true]);
  expect(await warned("PATCH", `${ENDPOINTS}/x`, { "content-type": "application/x" })).toEqual([415, false]);
  expect(await warned("PATCH", `${ENDPOINTS}/x`, { "content-type": "application/merge-patch+json" })).toEqual([404, true]);
  expect(await warned("POST", ENDPOINTS, { "content-type": "application/x" })).toEqual([415, true]);
});

test("of a custom resource's version that is deprecated whoever asks for it is told, also for a part it has not", async () => {
  await using api = await apiServer();
  const versions = [{ name: "v1", served: true, storage: true, deprecated: true, schema: { openAPIV3Schema: { type: "object" } } }];
  const body = { metadata: { name: "boxes.ops.io" }, spec: { group: "ops.io", scope: "Namespaced", names: { kind: "Box", plural: "boxes" }, versions } };
  expect((await api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body })).code).toBe(201);
  while ((await api.ask("GET", "/apis/ops.io/v1/namespaces/a/boxes")).code !== 200) await new Promise((resolve) => setTimeout(resolve, 10));
  const told = async (path: string): Promise<[code: number, warnings: readonly string[]]> => {
    const { code, warnings } = await api.ask("GET", `/apis/ops.io/v1${path}`);
    return [code, warnings];
  };
  expect(await told("/namespaces/a/boxes/x/status")).toEqual([404, ["ops.io/v1 Box is deprecated"]]);
  expect(await told("/boxes/x")).toEqual([404, []]); // in no namespace there is none
});
