import { expect, test } from "vitest";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import { storageVersions } from "./storage-version.ts";

test.each([
  ["apps.deployments", []], ["deployments", ["name must be in the form of <group>.<resource>"]],
  ["Apps.1x", [expect.stringMatching(/^the group segment a lowercase RFC 1123 subdomain must/), expect.stringMatching(/^the resource segment a DNS-1035 label must/)]],
])("the name %s", (name, expected) => expect([...storageVersions.validateName!(name)]).toEqual(expected));

const server = (encodingVersion: string, more: Given = {}): Given => ({ apiServerID: "a", encodingVersion, decodableVersions: [encodingVersion], servedVersions: [encodingVersion], ...more });
test.each<[Given, string[]]>([
  [{ storageVersions: [server("apps/v1")], commonEncodingVersion: "apps/v1" }, []],
  [{ storageVersions: [server("v1"), server("v2")] }, ['status.storageVersions[1].apiServerID: Duplicate value: "a"']],
  [{ storageVersions: [server("v1", { decodableVersions: undefined, servedVersions: ["v2"] })] }, [
    "status.storageVersions[0].decodableVersions: Invalid value: null: decodableVersions must include encodingVersion v1",
    'status.storageVersions[0].servedVersions[0]: Invalid value: "v2": individual served version : v2 must be included in decodableVersions : []',
    "status.commonEncodingVersion: Invalid value: null: the common encoding version is v1",
  ]],
  [{ storageVersions: [server("/")], commonEncodingVersion: "v1" }, [
    ...["encodingVersion", "decodableVersions[0]", "servedVersions[0]"].map((field) => `status.storageVersions[0].${field}: Invalid value: "/": group part: must be non-empty,version part: must be non-empty`),
    'status.commonEncodingVersion: Invalid value: "v1": the actual common encoding version is /',
  ]],
  [{ commonEncodingVersion: "v1" }, ['status.commonEncodingVersion: Invalid value: "v1": should be nil if servers do not agree on the same encoding version, or if there is no server reporting the supported versions yet']],
  [{ conditions: [{ type: "A", status: "True", reason: "r", message: "m" }, { type: "A", status: "True" }] }, [
    'status[1].type: Invalid value: "A": the type of the condition is not unique, it also appears in conditions[0]', "status[1].reason: Required value", "status[1].message: Required value",
  ]],
])("a status %#", (status, errors) => {
  const { object } = created(storageVersions, { metadata: { name: "apps.deployments" }, spec: {} });
  expect(updated(storageVersions, object, { status }, { subresource: "status" }).errors).toEqual(errors);
});
