import { expect, test } from "vitest";
import type { IPAddress, ServiceCIDR } from "../../api/gen/networking.v1.ts";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { stored } from "../../../test/scheduling-cluster.ts";
import { EVENTS, IP_ADDRESSES, REPORTED_EVENTS, SERVICE_CIDRS, SERVICES } from "../../client/resources.ts";
import { clientOver } from "../../client/resource-client.ts";
import { serviceAddressController } from "./ipaddresses.ts";
import { graceLeftMs, isNeeded, serviceCidrController } from "./servicecidr.ts";

const range = (name: string, ...cidrs: string[]): ServiceCIDR => stored("networking.k8s.io/v1", "ServiceCIDR", name, { spec: { cidrs } });
const address = (name: string): IPAddress => stored("networking.k8s.io/v1", "IPAddress", name, { metadata: { labels: { "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io" } }, spec: {} });

test.each([
  ["an address only it holds", ["10.1.0.0/24"], ["10.1.0.7"], [], true],
  ["no address in it", ["10.1.0.0/24"], ["10.2.0.7"], [], false],
  ["a larger range holds all", ["10.1.0.0/24"], ["10.1.0.7"], [range("big", "10.0.0.0/8")], false],
  ["a smaller range holds the address", ["10.1.0.0/24"], ["10.1.0.7"], [range("small", "10.1.0.0/28")], false],
  ["a smaller range does not", ["10.1.0.0/24"], ["10.1.0.77"], [range("small", "10.1.0.0/28")], true],
  ["a smaller range ends with it", ["10.1.0.0/24"], ["10.1.0.15"], [range("small", "10.1.0.0/28")], true],
  ["a smaller range begins with it", ["fd00::/108"], ["fd00::10"], [range("small", "fd00::10/124")], true],
  ["of the other family", ["10.1.0.0/24", "fd00::/108"], ["fd00::5"], [range("four", "10.0.0.0/8")], true],
] as const)("a range is kept: %s", (_, cidrs, addresses, others, kept) => {
  const own = range("own", ...cidrs);
  expect(isNeeded(own, { ranges: [own, ...others], addresses: addresses.map(address) })).toBe(kept);
});

test.each([[0, 10_000], [4000, 6000], [10_000, 0], [-3000, 13_000], [-86_400_000, 0]])("%d ms after its deletion a range nobody needs has %d ms left", (agoMs, leftMs) => expect(graceLeftMs(1_000_000_000, 1_000_000_000 + agoMs)).toBe(leftMs));

test("a service's missing IPAddress is made and told of, one that is deleted is made again, and a range waits until none is left", () => withControllers((deps) => [serviceCidrController(deps), serviceAddressController({ ...deps, nodeName: "n1" })], async (api, call) => {
  const services = api.client.resource(SERVICES);
  await api.client.resource(SERVICE_CIDRS).create({ apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", metadata: { name: "own" }, spec: { cidrs: ["10.1.0.0/24"] } } as never, call);
  const service = await services.create({ apiVersion: "v1", kind: "Service", metadata: { name: "web", namespace: "ns" }, spec: { clusterIP: "10.1.0.7", clusterIPs: ["10.1.0.7"] } } as never, call);
  const [made] = await eventually(() => api.all(IP_ADDRESSES), (all) => all.length === 1);
  expect(made).toMatchObject({ metadata: { name: "10.1.0.7", labels: { "ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io" } }, spec: { parentRef: { resource: "services", namespace: "ns", name: "web" } } });
  const ready = await eventually(() => api.all(SERVICE_CIDRS)[0]!, ({ status }) => status?.conditions?.[0]?.status === "True");
  expect(ready.metadata.finalizers).toEqual(["networking.k8s.io/service-cidr-finalizer"]);
  await api.client.resource(SERVICE_CIDRS).delete(ready, {}, call);
  await eventually(() => api.all(SERVICE_CIDRS)[0]!, ({ status }) => status?.conditions?.[0]?.reason === "Terminating");
  const addresses = api.client.resource(IP_ADDRESSES);
  await addresses.delete(made!, {}, call);
  const [again] = await eventually(() => api.all(IP_ADDRESSES), (all) => all.length === 1 && all[0]!.metadata.uid !== made!.metadata.uid);
  const told = await eventually(() => api.all(REPORTED_EVENTS).find(({ reason }) => reason === "ClusterIPNotAllocated"), (event) => event !== undefined);
  expect(told).toMatchObject({ action: "ClusterIPAllocation", reportingController: "ipallocator-repair-controller", reportingInstance: "ipallocator-repair-controller-n1", note: "Cluster IP [IPv4]: 10.1.0.7 is not allocated; repairing" });
  await services.delete(service, {}, call);
  await addresses.delete(again!, {}, call); // as the API server does
  await eventually(() => api.all(IP_ADDRESSES), (all) => all.length === 0);
}));

test("of a range whose status cannot be written that is told", () => {
  const api = fakeApi();
  const call = api.call.bind(api);
  api.call = async (req) => {
    if (req.path.endsWith("/servicecidrs/own/status")) throw new Error("refused");
    return await call(req);
  };
  return withControllers((deps) => [serviceCidrController(deps)], async (_, { signal }) => {
    await api.client.resource(SERVICE_CIDRS).create({ apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", metadata: { name: "own" }, spec: { cidrs: ["10.1.0.0/24"] } } as never, { signal });
    await eventually(() => api.all(EVENTS).map(({ type, reason, message }) => `${type} ${reason}: ${message}`), (all) => all.includes("Warning KubernetesServiceCIDRError: The ServiceCIDR Status can not be set to Ready=True"));
  }, { api: { ...api, client: clientOver(api) } });
});
