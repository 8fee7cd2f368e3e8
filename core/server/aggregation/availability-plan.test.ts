import { expect, test } from "vitest";
import type { Service } from "../../api/gen/core.v1.ts";
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import type { APIService } from "../../registry/apiregistration/api-service.ts";
import { LOCAL, PASSED, planAvailability, withAvailable } from "./availability-plan.ts";

const remote = { metadata: { name: "v1.example.com" }, spec: { group: "example.com", version: "v1", groupPriorityMinimum: 1, versionPriority: 1, service: { name: "s", namespace: "a", port: 443 } } } as unknown as APIService;
const local = { ...remote, spec: { ...remote.spec, service: undefined } } as APIService;
const service = (type: string, port: number): Service => ({ spec: { type, ports: [{ name: "https", port }] } }) as unknown as Service;
const slice = (ready: boolean | undefined, name: string): EndpointSlice => ({ endpoints: [{ addresses: ["10.0.0.1"], conditions: ready === undefined ? {} : { ready } }], ports: [{ name, port: 8443 }] }) as unknown as EndpointSlice;

test.each<[string, Service | undefined, EndpointSlice[], string | undefined, string?]>([
  ["without its service", undefined, [], "ServiceNotFound", 'service/s in "a" is not present'],
  ["on another port", service("ClusterIP", 80), [], "ServicePortError", 'service/s in "a" is not listening on port 443'],
  ["without slices", service("ClusterIP", 443), [], "EndpointsNotFound", 'cannot find endpointslices for service/s in "a"'],
  ["without a ready endpoint", service("ClusterIP", 443), [slice(false, "https")], "MissingEndpoints", 'endpointslices for service/s in "a" have no addresses with port name "https"'],
  ["with another port name", service("ClusterIP", 443), [slice(true, "other")], "MissingEndpoints"],
  ["with an endpoint that says nothing", service("ClusterIP", 443), [slice(undefined, "https")], undefined],
  ["of a type whose endpoints are nobody's business", service("ExternalName", 80), [], undefined],
])("an APIService %s", (_, found, slices, reason, message) => {
  const verdict = planAvailability(remote, found, slices);
  expect(verdict?.reason).toBe(reason);
  if (message !== undefined) expect(verdict?.message).toBe(message);
});

test("what this server serves is available", () => expect(planAvailability(local, undefined, [])).toBe(LOCAL));

test("a condition changes its time with its status only, others stay, and nothing is written when nothing changed", () => {
  const other = { type: "StatusUpdated", status: "True" };
  const failed = { type: "Available", status: "False", lastTransitionTime: "then", reason: "MissingEndpoints", message: "m" };
  expect(withAvailable([other, failed], PASSED, "now")).toEqual([other, { type: "Available", lastTransitionTime: "now", ...PASSED }]);
  expect(withAvailable([failed], { status: "False", reason: "ServiceNotFound", message: "n" }, "now")).toEqual([{ ...failed, reason: "ServiceNotFound", message: "n" }]);
  expect(withAvailable([{ type: "Available", lastTransitionTime: "then", ...PASSED }], PASSED, "now")).toBeUndefined();
});
