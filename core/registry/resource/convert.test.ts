import { expect, test } from "vitest";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { canonical } from "../../api/schema/canonical.ts";
import { builtInFacts } from "../../api/schema/facts.ts";
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
  expect(updated(resourcePoolStatusRequests, object, { spec: { driver: "e.example.com" } }).errors).toEqual(["spec: Invalid value: null: field is immutable"]);
});

test("what a request for a pool's state, and an answer to it, may say", () => {
  const { object, errors } = created(resourcePoolStatusRequests, { spec: { driver: "-A", poolName: "a//B" } });
  expect(errors).toEqual([
    expect.stringMatching(/^spec.driver: Invalid value: "-A": an RFC 1123 subdomain must consist of alphanumeric characters/), 'spec.poolName: Invalid value: "a//B": segment 1: must not be empty',
    expect.stringMatching(/^spec.poolName: Invalid value: "B": segment 2: a lowercase RFC 1123 subdomain/),
  ]);
  expect(created(resourcePoolStatusRequests, { spec: { driver: "GPU.example.com", poolName: "a/b", limit: 1 } }).errors).toEqual([]);
  expect(updated(resourcePoolStatusRequests, object, { status: { pools: [{ driver: "", poolName: "", resourceSliceCount: 0, totalDevices: -1, nodeName: "A", validationError: "é".repeat(129) }] } }, { subresource: "status" }).errors).toEqual([
    "status.poolCount: Required value", ...["driver", "poolName", "generation"].map((field) => `status.pools[0].${field}: Required value`),
    "status.pools[0].resourceSliceCount: Invalid value: 0: must be greater than or equal to 1", "status.pools[0].totalDevices: Invalid value: -1: must be greater than or equal to 0",
    expect.stringMatching(/^status.pools\[0\].nodeName: Invalid value: "A": a lowercase RFC 1123 subdomain/), "status.pools[0].validationError: Too long: may not be more than 256 bytes",
  ]);
});

test("a slice that lists nothing of both says both, whatever its version", () => {
  for (const [version, type] of [["v1beta1", "resource.v1beta1"], ["v1beta2", "resource.v1beta2"], ["v1", "resource.v1"]] as const) {
    const spec = { driver: "d", pool: { name: "p", generation: 0, resourceSliceCount: 1 }, sharedCounters: [], devices: [] };
    const { spec: read } = canonical(builtInFacts.structNamed(`io.k8s.api.${type}.ResourceSlice`)!, { apiVersion: `resource.k8s.io/${version}`, kind: "ResourceSlice", metadata: { name: "a" }, spec }).object as { readonly spec: object };
    expect(read).toMatchObject({ sharedCounters: [], devices: [] });
  }
});

test("parameters that are not found deny, where a policy is bound in v1alpha1 and nothing is said of it", () => {
  const bound = (paramRef: object | undefined): unknown => convert({ apiVersion: "admissionregistration.k8s.io/v1alpha1", kind: "MutatingAdmissionPolicyBinding", metadata: { name: "a" }, spec: { policyName: "p", ...(paramRef && { paramRef }) } } as unknown as ApiObject, "admissionregistration.k8s.io/v1");
  expect([bound({ name: "x" }), bound({ name: "x", parameterNotFoundAction: "Allow" }), bound(undefined)]).toMatchObject([
    { spec: { paramRef: { parameterNotFoundAction: "Deny" } } }, { spec: { paramRef: { parameterNotFoundAction: "Allow" } } }, { spec: { policyName: "p" } },
  ]);
});
