import { expect, test } from "vitest";
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
    "mutatingadmissionpolicies.v1beta1.admissionregistration.k8s.io", "mutatingadmissionpolicybindings.v1beta1.admissionregistration.k8s.io",
    "devicetaintrules.v1beta2.resource.k8s.io", "resourcepoolstatusrequests.v1alpha3.resource.k8s.io", "storageversions.v1alpha1.internal.apiserver.k8s.io",
  ]);
});
