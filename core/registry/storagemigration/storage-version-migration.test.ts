import { expect, test } from "vitest";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import { storageVersionMigrations } from "./storage-version-migration.ts";

const spec = (resource: Given) => ({ spec: { resource } });

test.each<[Given, unknown[]]>([
  [{ group: "apps", resource: "deployments" }, []], [{ resource: "pods" }, []],
  [{ group: "apps" }, ["spec.resource.resource: Required value: resource is required to be set"]],
  [{ group: "Apps", resource: "1x" }, [expect.stringMatching(/^spec\.resource\.resource: Invalid value: "1x": a DNS-1035 label must/), expect.stringMatching(/^spec\.resource\.group: Invalid value: "Apps": a lowercase RFC 1123 subdomain must/)]],
])("%j", (resource, errors) => expect(created(storageVersionMigrations, spec(resource)).errors).toEqual(errors));

test("what is migrated stays", () => {
  const { object } = created(storageVersionMigrations, spec({ resource: "pods" }));
  expect(updated(storageVersionMigrations, object, spec({ resource: "secrets" })).errors).toEqual([expect.stringMatching(/^spec: Invalid value: .*: field is immutable$/)]);
});

const condition = (type: string, status = "True") => ({ type, status, reason: "Was", message: "", lastTransitionTime: "2020-01-01T00:00:00Z" });

test.each<[Given, Given, string[]]>([
  [{}, { resourceVersion: "7", conditions: [condition("Succeeded")] }, []],
  [{}, { resourceVersion: "07" }, ['status.resourceVersion: Invalid value: "07": resource version is not well formed: 07']],
  [{ resourceVersion: "7" }, { resourceVersion: "8" }, ['status.resourceVersion: Invalid value: "8": field is immutable']],
  [{}, { conditions: [condition("Succeeded"), condition("Failed")] }, ["Both success and failed conditions cannot be true at the same time"]],
  [{ conditions: [condition("Succeeded")] }, { conditions: [condition("Succeeded", "False")] }, ["Success condition cannot be set to false once it is true"]],
  [{ conditions: [condition("Failed")] }, {}, ["Failed condition cannot be set to false once it is true"]],
  [{}, { conditions: [{ ...condition("Running"), reason: "" }] }, ["status.conditions[0].reason: Required value"]],
])("status %j to %j", (before, after, errors) => {
  const { object } = created(storageVersionMigrations, spec({ resource: "pods" }));
  const found = updated(storageVersionMigrations, { ...object, status: before }, { status: after }, { subresource: "status" }).errors;
  expect(found.map((error, i) => (error.endsWith(errors[i] ?? "-") ? errors[i] : error))).toEqual(errors);
});
