import { expect, test } from "vitest";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { convert } from "../conversions.ts";
import { deviceTaintRules } from "./device-taint-rule.ts";
import { resourcePoolStatusRequests } from "./resource-pool-status-request.ts";

const V1 = "resource.k8s.io/v1";
const BETA = "resource.k8s.io/v1beta1";
const object = (kind: string, spec: object): ApiObject => ({ apiVersion: BETA, kind, metadata: { name: "a" }, spec }) as unknown as ApiObject;
const devices = (requests: object[]): object => ({ devices: { requests, constraints: [{ matchAttribute: "d.example.com/numa" }] } });

const BOTH: readonly [string, string, object, object][] = [
  ["exactly one", "ResourceClaim", devices([{ name: "gpu", deviceClassName: "c", allocationMode: "ExactCount", count: 2, adminAccess: false }]), devices([{ name: "gpu", exactly: { deviceClassName: "c", allocationMode: "ExactCount", count: 2, adminAccess: false } }])],
  ["the first of several", "ResourceClaim", devices([{ name: "gpu", firstAvailable: [{ name: "big", deviceClassName: "c" }] }]), devices([{ name: "gpu", firstAvailable: [{ name: "big", deviceClassName: "c" }] }])],
  ["a template", "ResourceClaimTemplate", { metadata: { labels: { a: "b" } }, spec: devices([{ name: "gpu", deviceClassName: "c", selectors: [] }]) }, { metadata: { labels: { a: "b" } }, spec: devices([{ name: "gpu", exactly: { deviceClassName: "c" } }]) }],
  ["devices of a node", "ResourceSlice", { driver: "d", pool: { name: "p", generation: 0, resourceSliceCount: 1 }, nodeName: "n", devices: [{ name: "d0", basic: { attributes: { a: { int: 1 } }, capacity: { m: { value: "1Gi" } }, taints: [{ key: "k", effect: "NoSchedule" }] } }, { name: "d1", basic: {} }] },
    { driver: "d", pool: { name: "p", generation: 0, resourceSliceCount: 1 }, nodeName: "n", devices: [{ name: "d0", attributes: { a: { int: 1 } }, capacity: { m: { value: "1Gi" } }, taints: [{ key: "k", effect: "NoSchedule" }] }, { name: "d1" }] }],
];

test.each(BOTH)("%s from v1beta1 to v1 and back", (_name, kind, beta, v1) => {
  const stored = convert(object(kind, beta), V1) as ApiObject & { spec: object };
  expect([stored.apiVersion, stored.spec]).toMatchObject([V1, v1]);
  const back = convert(stored, BETA) as ApiObject & { spec: object };
  expect(back.apiVersion).toBe(BETA);
  expect(convert(back, V1)).toEqual(stored);
  expect(JSON.stringify(back)).not.toContain("exactly");
});

test("of a slice that is nowhere, and of a request that says nothing, nothing is made up", () => {
  const slice = convert(object("ResourceSlice", { driver: "d", pool: { name: "p", generation: 0, resourceSliceCount: 1 }, nodeName: "", allNodes: false, devices: [{ name: "d0" }] }), V1) as ApiObject & { spec: object };
  expect(Object.keys(slice.spec).sort()).toEqual(["devices", "driver", "pool"]);
  const claim = convert(object("ResourceClaim", devices([{ name: "gpu" }])), V1) as ApiObject & { spec: { devices: { requests: object[] } } };
  expect(claim.spec.devices.requests).toEqual([{ name: "gpu" }]);
});

const rule = (taint: Given, deviceSelector?: Given): Given => ({ spec: { taint, ...(deviceSelector ? { deviceSelector } : {}) } });

test.each<[Given, string[]]>([
  [rule({ key: "k", effect: "NoExecute" }, { driver: "d.example.com", pool: "a/b", device: "gpu-0" }), []],
  [rule({ key: "", effect: "Never" }, { device: "A" }), [
    'spec.deviceSelector.device: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \'-\', and must start and end with an alphanumeric character (e.g. \'my-name\',  or \'123-abc\', regex used for validation is \'[a-z0-9]([-a-z0-9]*[a-z0-9])?\')',
    "spec.taint.key: Invalid value: \"\": name part must be non-empty",
    "spec.taint.key: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    'spec.taint.effect: Unsupported value: "Never": supported values: "NoExecute", "NoSchedule", "None"',
  ]],
])("a rule that taints %#", (given, errors) => expect(created(deviceTaintRules, given).errors).toEqual(errors));

test("a taint is as old as its effect", () => {
  const { object } = created(deviceTaintRules, rule({ key: "k", effect: "None" }));
  expect(object.spec.taint!.timeAdded).toMatch(/^\d{4}-/);
  const old = { ...object, spec: { taint: { key: "k", effect: "None" as const, timeAdded: "2020-01-01T00:00:00Z" } } };
  expect(updated(deviceTaintRules, old, rule({ key: "k", value: "v", effect: "None", timeAdded: "2020-01-01T00:00:00Z" })).object.spec.taint!.timeAdded).toBe("2020-01-01T00:00:00Z");
  expect(updated(deviceTaintRules, old, rule({ key: "k", effect: "NoExecute", timeAdded: "2020-01-01T00:00:00Z" })).object.spec.taint!.timeAdded).not.toBe("2020-01-01T00:00:00Z");
});

test("what was asked of a pool is not asked again", () => {
  const { object, errors } = created(resourcePoolStatusRequests, { spec: { driver: "d.example.com", limit: 1001 } });
  expect(errors).toEqual(["spec.limit: Invalid value: 1001: must be less than or equal to 1000"]);
  expect(updated(resourcePoolStatusRequests, object, { spec: { driver: "e.example.com" } }).errors).toHaveLength(1);
});
