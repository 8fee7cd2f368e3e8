import { expect, test } from "vitest";
import type { Service } from "../../api/gen/core.v1.ts";
import type { IPAddress, ServiceCIDR } from "../../api/gen/networking.v1.ts";
import { keyOf } from "../../api/meta/object-meta.ts";
import { stored } from "../../../test/scheduling-cluster.ts";
import { addressFor, planAddress, planService } from "./repair-plan.ts";

const NOW = Date.parse("2026-01-01T01:00:00Z");
const service = (name: string, ...clusterIPs: string[]): Service => stored("v1", "Service", name, { metadata: { namespace: "a" }, spec: { type: "ClusterIP", clusterIPs } });
const range = stored<ServiceCIDR>("networking.k8s.io/v1", "ServiceCIDR", "r", { spec: { cidrs: ["10.1.0.0/24", "fd01::/112"] } });
function address(name: string, owner: Service, { parentRef = {}, labels = {}, ageMs = 3_600_000 }: { parentRef?: object; labels?: object; ageMs?: number } = {}): IPAddress {
  const made = addressFor(name, owner);
  return stored("networking.k8s.io/v1", "IPAddress", name, {
    metadata: { labels: { ...made.metadata.labels, ...labels }, creationTimestamp: new Date(NOW - ageMs).toISOString() }, spec: { parentRef: { ...made.spec.parentRef, ...parentRef } },
  });
}
const knowing = (services: Service[], addresses: IPAddress[]) => ({
  service: (key: string) => services.find((one) => keyOf(one) === key), address: (name: string) => addresses.find(({ metadata }) => metadata.name === name), ranges: [range],
});
const WEB = service("web", "10.1.0.7", "fd01::7");
const V6 = address("fd01::7", WEB);

test.each<[string, Service[], IPAddress[], string[]]>([
  ["all is well", [WEB], [address("10.1.0.7", WEB), V6], []],
  ["one is missing", [WEB], [V6], ["create 10.1.0.7 ClusterIPNotAllocated: Cluster IP [IPv4]: 10.1.0.7 is not allocated; repairing"]],
  ["both are missing", [WEB], [], ["create 10.1.0.7 ClusterIPNotAllocated: Cluster IP [IPv4]: 10.1.0.7 is not allocated; repairing", "create fd01::7 ClusterIPNotAllocated: Cluster IP [IPv6]: fd01::7 is not allocated; repairing"]],
  ["out of every range", [service("far", "10.2.0.7")], [], ["tell ClusterIPOutOfRange: Cluster IP [IPv4]: 10.2.0.7 is not within any configured Service CIDR; please recreate service"]],
  ["the last of its range", [service("last", "10.1.0.255")], [], ["tell ClusterIPOutOfRange: Cluster IP [IPv4]: 10.1.0.255 is not within any configured Service CIDR; please recreate service"]],
  ["of something else", [WEB], [address("10.1.0.7", WEB, { parentRef: { resource: "things" } }), V6], ["replace 10.1.0.7 ClusterIPNotAllocated: the ClusterIP [IPv4]: 10.1.0.7 for Service a/web has a wrong reference; repairing"]],
  ["of a service that is gone", [WEB], [address("10.1.0.7", service("gone")), V6], ["replace 10.1.0.7 ClusterIPNotAllocated: the ClusterIP [IPv4]: 10.1.0.7 for Service a/web has a wrong reference; repairing"]],
  ["of two services", [WEB, service("twin", "10.1.0.7")], [address("10.1.0.7", service("twin")), V6], ["tell ClusterIPAlreadyAllocated: Cluster IP [IPv4]:10.1.0.7 was assigned to multiple services; please recreate service"]],
  ["labels that say another family", [WEB], [address("10.1.0.7", WEB, { labels: { "ipaddress.kubernetes.io/ip-family": "IPv6" } }), V6], ["replace 10.1.0.7 "]],
  ["labels that say another manager", [WEB], [address("10.1.0.7", WEB, { labels: { "ipaddress.kubernetes.io/managed-by": "me" } }), V6], ["replace 10.1.0.7 "]],
  ["headless and external", [service("h", "None"), service("e")], [], []],
])("a service's addresses: %s", (_, services, addresses, expected) => {
  const steps = planService(services[0]!, knowing(services, addresses));
  expect(steps.map((step) => `${step.type} ${step.type === "tell" ? "" : `${step.address} `}${step.told ? `${step.told.reason}: ${step.told.message}` : ""}`)).toEqual(expected);
});

test.each<[string, IPAddress, Service[], number, string]>([
  ["its service has it", V6, [WEB], 0, "keep"],
  ["it is somebody else's", address("10.1.0.9", WEB, { labels: { "ipaddress.kubernetes.io/managed-by": "me" } }), [], 9e9, "keep"],
  ["its service may be about to be written", address("10.1.0.9", service("new"), { ageMs: 20_000 }), [], 0, "again in 40000"],
  ["its service was never written", address("10.1.0.9", service("new")), [], 5_000, "delete IPAddressNotAllocated: IPAddress: 10.1.0.9 for Service a/new appears to have leaked: cleaning up"],
  ["its service was never written, and the clock was ahead then", address("10.1.0.9", service("new"), { ageMs: -9e10 }), [], 60_000, "delete IPAddressNotAllocated: IPAddress: 10.1.0.9 for Service a/new appears to have leaked: cleaning up"],
  ["its service may be about to be written, and the clock is ahead", address("10.1.0.9", service("new"), { ageMs: -9e10 }), [], 20_000, "again in 40000"],
  ["its service has just gone", address("10.1.0.9", service("new")), [], 1_000, "again in 4000"],
  ["its service has another", address("10.1.0.9", WEB), [WEB], 5_000, "delete IPAddressWrongReference: IPAddress: 10.1.0.9 for Service a/web has a wrong reference; cleaning up"],
  ["it is no service's", address("10.1.0.9", WEB, { parentRef: { resource: "things" } }), [WEB], 5_000, "delete IPAddressNotAllocated: IPAddress 10.1.0.9 appears to have been modified, not referencing a Service &ParentReference{Group:,Resource:things,Namespace:a,Name:web,}: cleaning up"],
])("an IPAddress: %s", (_, one, services, strayMs, expected) => {
  const plan = planAddress(one, knowing(services, []), { nowMs: NOW, strayMs });
  expect(plan.type === "again" ? `again in ${plan.inMs}` : plan.type === "delete" ? `delete ${plan.told.reason}: ${plan.told.message}` : plan.type).toBe(expected);
});
