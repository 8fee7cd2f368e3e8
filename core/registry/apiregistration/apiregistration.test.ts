import { expect, test } from "vitest";
import { created, type Given } from "../../../test/rehearse.ts";
import { apiServices } from "./api-service.ts";

const service = (spec: Given = {}, name = "v1.example.com"): Given => ({ metadata: { name }, spec: { group: "example.com", version: "v1", groupPriorityMinimum: 1000, versionPriority: 10, ...spec } });

test("what this server serves itself is available", () => {
  expect(created(apiServices, service()).object.status!.conditions).toEqual([
    { type: "Available", status: "True", lastTransitionTime: "1970-01-01T00:00:00Z", reason: "Local", message: "Local APIServices are always available" },
  ]);
  expect(created(apiServices, service({ service: { namespace: "a", name: "b" } })).object).toMatchObject({ spec: { service: { port: 443 } }, status: {} });
});

test.each<[Given, string[]]>([
  [service({}, "v2.example.com"), ['metadata.name: Invalid value: "v2.example.com": must be `spec.version+"."+spec.group`: "v1.example.com"']],
  [service({ versionPriority: 0, caBundle: "eHh4" }), ["spec.versionPriority: Invalid value: 0: must be positive and less than 1000", 'spec.caBundle: Invalid value: "3 bytes": local APIServices may not have a caBundle']],
  [service({ service: { name: "b", port: 0 } }), ["spec.service.namespace: Required value", "spec.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive"]],
])("a service %#", (given, errors) => expect(created(apiServices, given).errors).toEqual(errors));
