import { expect, onTestFinished, test } from "vitest";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import { formatFieldError } from "../../api/meta/field-error.ts";
import { keepFieldsOf } from "../generic/switched-on.ts";
import { deviceClasses } from "./device-class.ts";
import { resourceClaims, resourceClaimTemplates } from "./resource-claim.ts";
import { resourceSlices } from "./resource-slice.ts";

const labels = { default: {}, privileged: { "resource.kubernetes.io/admin-access": "true" } } as Readonly<Record<string, Record<string, string>>>;
const claims = resourceClaims((name) => labels[name] ?? {});
const exactly = { deviceClassName: "gpu.example.com" };
const claim = (request: Given = {}, more: Given = {}): Given => ({ spec: { devices: { requests: [{ name: "gpu", exactly, ...request }], ...more } } });

test("one device unless told otherwise", () => {
  const { object, errors } = created(claims, claim());
  expect([object.spec.devices!.requests![0]!.exactly, errors]).toEqual([{ ...exactly, allocationMode: "ExactCount", count: 1 }, []]);
  expect(created(resourceClaimTemplates(() => ({})), { spec: { ...claim(), metadata: { name: "a", uid: "b", labels: { c: "d" } } } }).errors).toEqual(["spec.metadata.name: Forbidden: cannot be set", "spec.metadata.uID: Forbidden: cannot be set"]);
  expect(created(resourceClaimTemplates(() => ({})), { spec: claim() }).object.spec.spec.devices!.requests![0]!.exactly!.count).toBe(1);
});

test.each<[Given, string[]]>([
  [claim({ exactly: undefined }), ["spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required"]],
  [claim({ exactly: { ...exactly, allocationMode: "All", count: 2 } }), ["spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'"]],
  [claim({ exactly: { ...exactly, adminAccess: true } }), ["spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"]],
  [{ metadata: { namespace: "privileged" }, ...claim({ exactly: { ...exactly, adminAccess: true } }) }, []],
  [claim({ exactly: { ...exactly, selectors: [{ cel: { expression: "device.driver" } }, { cel: { expression: 'device.driver == "d"' } }] } }), [
    'spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value: "device.driver": must evaluate to bool or the unknown type, not string',
  ]],
  [claim({ exactly: { ...exactly, selectors: [{ cel: { expression: `[1].all(x, ${"[1,1,1,1,1,1,1,1,1,1].all(y, ".repeat(6)}true${")".repeat(7)}` } }] } }), [
    "spec.devices.requests[0].exactly.selectors[0].cel.expression: Forbidden: too complex, exceeds cost limit",
  ]],
  [claim({}, { constraints: [{ requests: ["nic"], matchAttribute: "model" }] }), [
    `spec.devices.constraints[0].requests[0]: Invalid value: "nic": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'`,
    'spec.devices.constraints[0].matchAttribute: Invalid value: "model": a fully qualified name must be a domain and a name separated by a slash',
  ]],
  [claim({ exactly: undefined, firstAvailable: [{ name: "a", ...exactly }] }, { constraints: [{ requests: ["gpu", "gpu/a"], matchAttribute: "d.io/model" }] }), []],
  [{ spec: { devices: { requests: [{ name: "gpu", firstAvailable: [{ name: "a", ...exactly }] }, { name: "gpu", exactly }], config: [{ requests: ["gpu", "gpu/a"], opaque: { driver: "d.io", parameters: {} } }] } } }, [
    'spec.devices.requests[1]: Duplicate value: "gpu"',
    `spec.devices.config[0].requests[1]: Invalid value: "gpu/a": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'`,
  ]],
])("a claim %#", (given, errors) => expect(created(claims, given).errors).toEqual(errors));

test("what is asked for never changes; it is shown as the server's own structs are", () => {
  const { object } = created(claims, claim());
  const selected = updated(claims, object, claim({ exactly: { ...exactly, selectors: [{ cel: { expression: "true" } }] } }));
  expect(selected.errors[0]).toContain('"Selectors":[{"CEL":{"Expression":"true"}}]');
  const { errors } = updated(claims, object, { spec: { devices: {} } });
  expect(errors).toEqual(['spec: Invalid value: {"Devices":{"Requests":null,"Constraints":null,"Config":null}}: field is immutable']);
});

test("what was taken once stays as it is: of unchanged selectors, configurations and templates nothing is asked", () => {
  const dear = `[1].all(x, ${"[1,1,1,1,1,1,1,1,1,1].all(y, ".repeat(6)}true${")".repeat(7)}`;
  const spec = { selectors: [{ cel: { expression: dear } }], config: [{ opaque: { driver: "d.example.com", parameters: { long: "x".repeat(11_000) } } }] };
  const { object: old } = created(deviceClasses, { spec });
  expect(updated(deviceClasses, old, {}).errors).toEqual([]);
  expect(updated(deviceClasses, old, { spec: { ...spec, selectors: [...spec.selectors, { cel: { expression: "true" } }] } }).errors).toHaveLength(1);
  const templates = resourceClaimTemplates(() => ({}));
  const template = created(templates, { spec: claim({ exactly: { ...exactly, adminAccess: true } }) });
  expect([template, updated(templates, template.object, {})].map(({ errors }) => errors.length)).toEqual([1, 0]);
});

test("what was allocated stays; what is known of devices goes with them", () => {
  const { object } = created(claims, claim());
  const result = { request: "gpu", driver: "d.example.com", pool: "n1", device: "gpu-0" };
  const allocation = { devices: { results: [result] } };
  const device = { driver: "d.example.com", pool: "n1", device: "gpu-0", conditions: [] };
  const got = updated(claims, object, { status: { allocation, devices: [device] } }, { subresource: "status" });
  expect(got.errors).toEqual([]);
  expect(updated(claims, got.object, { status: { allocation: { devices: { results: [{ ...result, device: "gpu-1" }] } } } }, { subresource: "status" }).errors).toHaveLength(1);
  expect(updated(claims, object, { status: { allocation, devices: [{ ...device, device: "other" }] } }, { subresource: "status" }).errors).toEqual([expect.stringMatching(/^status.devices\[0\]: Invalid value: \{"Driver":"[^"]*","Pool":"[^"]*","Device":"other","ShareID":""\}: must be an allocated device in the claim$/)]);
  expect(updated(claims, object, { status: { allocation, devices: [device, device] } }, { subresource: "status" }).errors).toEqual(['status.devices[1]: Duplicate value: {"Driver":"d.example.com","Pool":"n1","Device":"gpu-0","ShareID":""}']);
  expect(updated(claims, got.object, { status: { devices: [device] } }, { subresource: "status" }).object.status).toEqual({});
  expect(updated(claims, object, { status: { reservedFor: [{ resource: "pods", name: "p", uid: "1" }] } }, { subresource: "status" }).errors).toEqual(["status.reservedFor: Forbidden: may not be specified when `allocated` is not set"]);
});

test("addresses of devices are written as they would be by the server", () => {
  const { object } = created(claims, claim());
  const ips = ["010.0.0.1/24", "10.0.0.1/024", "::ffff:1.2.3.4/120", "FD00::/64", "10.0.0.1/24"];
  const device = { driver: "d.example.com", pool: "n1", device: "gpu-0", networkData: { ips } };
  const allocation = { devices: { results: [{ request: "gpu", driver: "d.example.com", pool: "n1", device: "gpu-0" }] } };
  expect(updated(claims, object, { status: { allocation, devices: [device] } }, { subresource: "status" }).errors).toEqual(
    ["10.0.0.1/24", "10.0.0.1/24", "1.2.3.4/24", "fd00::/64"].map((canonical, i) => `status.devices[0].networkData.ips[${i}]: Invalid value: "${ips[i]}": must be in canonical form ("${canonical}")`),
  );
});

test.each([
  ["01234567-89ab-cdef-0123-456789abcdeF", "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters"],
  ["0123456789abcdef0123456789abcdef", "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters"],
  ["01234567-89ab-cdef-0123-456789abcdeg", "error validating uid: invalid UUID format"],
  ["01234567x89ab-cdef-0123-456789abcdef", "error validating uid: invalid UUID format"],
  ["0123456789abcdef0123456789abcdeg", "error validating uid: invalid UUID format"],
  ["uri:uuid:01234567-89ab-cdef-0123-456789abcdef", 'error validating uid: invalid urn prefix: "uri:uuid:"'],
  ["(01234567-89ab-cdef-0123-456789abcdef}", "error validating uid: invalid bracketed UUID format"],
  ["1", "error validating uid: invalid UUID length: 1"],
])("%s does not name a share", (shareID, problem) => {
  const result = { request: "gpu", driver: "d.example.com", pool: "n1", device: "gpu-0", shareID };
  expect(updated(claims, created(claims, claim()).object, { status: { allocation: { devices: { results: [result] } } } }, { subresource: "status" }).errors)
    .toEqual([`status.allocation.devices.results[0].shareID: Invalid value: "${shareID}": ${problem}`]);
});

const slice = (device: Given = {}, more: Given = {}): Given => ({ spec: { driver: "d.example.com", pool: { name: "n1", generation: 1, resourceSliceCount: 1 }, nodeName: "n1", devices: [{ name: "gpu-0", ...device }], ...more } });

test.each<[Given, string[]]>([
  [slice({ attributes: { model: { string: "x" }, "d.example.com/driver": { version: "1.2.3-rc.1" } }, capacity: { memory: { value: "1Gi" } } }), []],
  [slice({ allowMultipleAllocations: true, capacity: { memory: { value: "20", requestPolicy: { default: "5", validValues: Array.from({ length: 11 }, (_, i) => String(i + 1)) } } } }), [
    "spec.devices[0].capacity[memory].requestPolicy.validValues: Too many: 11: must have at most 10 items", 'spec.devices[0].capacity[memory].requestPolicy.validValues: Invalid value: "5": default value is not valid according to the requestPolicy',
  ]],
  [slice({}, { nodeName: undefined, nodeSelector: { nodeSelectorTerms: [0, 1].map((i) => ({ matchFields: [{ key: "metadata.name", operator: "In", values: [`n${i}`] }] })) } }), [
    expect.stringMatching(/^spec.nodeSelector.nodeSelectorTerms: Invalid value: \[\{"MatchExpressions":null,"MatchFields":\[.*\]: must have exactly one node selector term$/),
  ]],
  [slice({ attributes: { model: {}, version: { version: "1.0" } } }), [
    'spec.devices[0].attributes[model]: Invalid value: "": exactly one value must be specified', 'spec.devices[0].attributes[version].version: Invalid value: "1.0": must be a string compatible with semver.org spec 2.0.0',
  ]],
  [slice({ attributes: { model: { string: "x", int: 1 } } }), [
    'spec.devices[0].attributes[model]: Invalid value: {"IntValue":1,"BoolValue":null,"StringValue":"x","VersionValue":null,"IntValues":null,"BoolValues":null,"StringValues":null,"VersionValues":null}: exactly one value must be specified',
  ]],
  [slice({ bindingFailureConditions: ["a.example.com/b"] }), ["spec.devices[0].bindingConditions: Invalid value: null: bindingConditions are required to use bindingFailureConditions"]],
  [slice({ bindingConditions: ["a.example.com/b"] }), ["spec.devices[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use bindingConditions"]],
  [slice({}, { allNodes: true }), [
    'spec: Invalid value: "{`nodeName`, `allNodes`}": exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set',
  ]],
  [slice({ allowMultipleAllocations: true, capacity: { memory: { value: "8", requestPolicy: { default: "3", validRange: { min: "1", step: "2", max: "9" } } } } }), [
    'spec.devices[0].capacity[memory].requestPolicy.validRange.max: Invalid value: "9": max is larger than capacity value: 8',
  ]],
  [slice({ allowMultipleAllocations: true, capacity: { memory: { value: "8", requestPolicy: { validValues: ["8"] } } } }), ["spec.devices[0].capacity[memory].requestPolicy.default: Required value: required when validValues is defined"]],
  [slice({ allowMultipleAllocations: true, capacity: { memory: { value: "8", requestPolicy: { validRange: { min: "1" } } } } }), ["spec.devices[0].capacity[memory].requestPolicy.default: Required value: required when validRange is defined"]],
  [slice({}, { sharedCounters: [] }), ['spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed']],
  [slice({}, { devices: [], sharedCounters: [{ name: "c", counters: { a: { value: "1" } } }] }), ['spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed']],
])("a slice %#", (given, errors) => expect(created(resourceSlices, given).errors).toEqual(errors));

test("of a slice is told what stays as it was made before where its devices may be", () => {
  const { object } = created(resourceSlices, slice());
  expect(updated(resourceSlices, object, slice({}, { nodeName: undefined })).errors).toEqual([
    "spec.nodeName: Invalid value: null: field is immutable", "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required",
  ]);
});

test.each([{ sharedCounters: [] }, { devices: [] }])("an empty list alone says nothing: %j", (list) => {
  const { object, errors } = created(resourceSlices, slice({}, { devices: undefined, ...list }));
  expect([errors, Object.keys(object.spec)]).toEqual([[], ["driver", "pool", "nodeName"]]);
});

test("taints are as old as the write that brought them; an extended resource has a domain", () => {
  expect(created(resourceSlices, slice({ taints: [{ key: "broken", effect: "NoExecute" }] })).object.spec.devices![0]!.taints![0]!.timeAdded).toBe("1970-01-01T00:00:00Z");
  expect(created(deviceClasses, { spec: { extendedResourceName: "cpu" } }).errors).toEqual(['spec.extendedResourceName: Invalid value: "cpu": must be a valid extended resource name']);
});

test("attributes that are lists go, unless their gate is switched on or there are some already; then they are checked", () => {
  const listed = slice({ attributes: { l: { ints: [1, 2] } } }), problem = 'spec.devices[0].attributes[l]: Invalid value: "": exactly one value must be specified';
  expect(created(resourceSlices, listed).errors).toEqual([problem]);
  keepFieldsOf(new Set(["DRAListTypeAttributes"]));
  onTestFinished(() => keepFieldsOf(new Set()));
  const made = created(resourceSlices, listed);
  expect([made.errors, (made.object as unknown as { spec: { devices: Given[] } }).spec.devices[0]!["attributes"]]).toEqual([[], { l: { ints: [1, 2] } }]);
  const many = { l: { ints: Array.from({ length: 48 }, (_, i) => i) }, m: { bool: true } };
  expect(created(resourceSlices, slice({ attributes: many })).errors).toEqual(["spec.devices[0]: Invalid value: 49: the total number of attribute values must not exceed 48"]);
  const wrong = { a: { strings: ["x".repeat(65)] }, b: { versions: ["1.0", "1.0.0"] }, c: { bools: [] }, d: { int: 1, ints: [1] } };
  expect(created(resourceSlices, slice({ attributes: wrong })).errors).toEqual([
    "spec.devices[0].attributes[a].strings[0]: Too long: may not be more than 64 bytes", 'spec.devices[0].attributes[b].versions[0]: Invalid value: "1.0": must be a string compatible with semver.org spec 2.0.0',
    "spec.devices[0].attributes[c].bools: Invalid value: []: must not be empty if specified",
    'spec.devices[0].attributes[d]: Invalid value: {"IntValue":1,"BoolValue":null,"StringValue":null,"VersionValue":null,"IntValues":[1],"BoolValues":null,"StringValues":null,"VersionValues":null}: exactly one value must be specified',
  ]);
  const devices = Array.from({ length: 65 }, (_, i) => ({ name: `gpu-${i}`, attributes: { l: { ints: [1] } } }));
  expect(created(resourceSlices, slice({}, { devices })).errors).toEqual(["spec.devices: Too many: 65: must have at most 64 items"]);
  const selects = { spec: { selectors: [{ cel: { expression: 'device.attributes["d.io"].l.includes(1)' } }] } };
  expect(created(deviceClasses, selects).errors).toEqual([]);
  keepFieldsOf(new Set());
  expect(created(deviceClasses, selects).errors).toHaveLength(1);
  expect(updated(resourceSlices, made.object, listed).errors).toEqual([]);
});

test("expressions, of which there may be megabytes, are looked at one after another before they are judged, and once", () => {
  const context = { user: { name: "ann", groups: [] }, nowMs: 0, dryRun: false, uuid: () => "" };
  const select = (...expressions: string[]): Given => ({ ...exactly, selectors: expressions.map((expression) => ({ cel: { expression } })) });
  const requests = [{ name: "a", exactly: select("true", "1", "x".repeat(10_241)) }, { name: "b", firstAvailable: [{ name: "c", ...select("false", "true") }] }];
  const { object, errors } = created(claims, { spec: { devices: { requests } } });
  const pieces = [...claims.foresee!(object, undefined, context)].length;
  const judged = [...claims.validate!(object, undefined, context)].map(formatFieldError);
  const template = created(resourceClaimTemplates(() => ({})), { spec: { spec: object.spec } }).object;
  const changed = structuredClone(template);
  changed.spec.spec.devices!.requests!.pop();
  const templates = resourceClaimTemplates(() => ({}));
  expect([pieces, judged, [...claims.foresee!(object, object, context)].length, [...templates.foresee!(template, template, context)].length, [...templates.foresee!(changed, template, context)].length]).toEqual([4, errors, 0, 0, 3]);
  expect(errors).toHaveLength(2);
  const many = Array.from({ length: 33 }, (_, i) => `${i} > 0`);
  const tooMany = created(claims, { spec: { devices: { requests: [{ name: "a", exactly: select(...many) }, { name: "b", exactly: select("true"), firstAvailable: [{ name: "c", ...select("false") }] }] } } });
  expect([tooMany.errors.length, [...claims.foresee!(tooMany.object, undefined, context)].length]).toEqual([2, 0]); // nobody asks for them
  const shelf = created(deviceClasses, { metadata: { name: "gpu" }, spec: { selectors: [{ cel: { expression: "true" } }, { cel: { expression: "1" } }] } });
  expect([[...deviceClasses.foresee!(shelf.object, undefined, context)].length, [...deviceClasses.validate!(shelf.object, undefined, context)].map(formatFieldError), [...deviceClasses.foresee!(shelf.object, shelf.object, context)].length]).toEqual([2, shelf.errors, 0]);
});
