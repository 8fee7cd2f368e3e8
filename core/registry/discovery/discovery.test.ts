import { expect, test } from "vitest";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import { endpointSlices } from "./endpoint-slice.ts";

const slice = (endpoints: Given[], more: Given = {}): Given => ({ addressType: "IPv4", endpoints, ports: [{ port: 80 }], ...more });

test("ports have a name, if an empty one, and a protocol", () => {
  const { object, errors } = created(endpointSlices, slice([{ addresses: ["10.0.0.1"] }]));
  expect([object.ports, errors]).toEqual([[{ port: 80, name: "", protocol: "TCP" }], []]);
});

test.each<[Given, string[]]>([
  [slice([{ addresses: ["fd00::1"] }]), ['endpoints[0].addresses: Invalid value: "fd00::1": must be an IPv4 address']],
  [slice([{ addresses: ["127.0.0.1"] }]), ['endpoints[0].addresses[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)']],
  [slice([{}]), ["endpoints[0].addresses: Required value: must contain at least 1 address"]],
  [slice([], { addressType: "" }), ["addressType: Required value"]],
  [slice([{ addresses: ["web"] }], { addressType: "FQDN" }), ['endpoints[0].addresses[0]: Invalid value: "web": should be a domain with at least two segments separated by dots']],
  [slice([], { ports: [{ port: 1 }, { port: 2, protocol: "ICMP" }] }), ['ports[1].name: Duplicate value: ""', 'ports[1].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"']],
  [slice([{ addresses: ["10.0.0.1"], hints: { forZones: [{ name: "a" }, { name: "a" }] } }]), ['endpoints[0].hints.forZones[1].name: Duplicate value: "a"']],
])("a slice %#", (given, errors) => expect(created(endpointSlices, given).errors).toEqual(errors));

test("the kind of addresses stays; labels count as a change", () => {
  const { object } = created(endpointSlices, slice([]));
  expect(updated(endpointSlices, object, { addressType: "IPv6" }).errors).toEqual(['addressType: Invalid value: "IPv6": field is immutable']);
  const { generation } = endpointSlices;
  const labelled = { ...object, metadata: { ...object.metadata, labels: { a: "b" } } };
  const annotated = { ...object, metadata: { ...object.metadata, annotations: { a: "b" } } };
  expect(generation && [generation(labelled, object), generation(annotated, object)]).toEqual([true, false]);
});
