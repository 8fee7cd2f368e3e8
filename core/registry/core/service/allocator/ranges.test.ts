/** Ranges of service addresses that come and go while the cluster runs. */
import { expect, test } from "vitest";
import type { Service, ServiceSpec } from "../../../../api/gen/core.v1.ts";
import type { IPAddress, ServiceCIDR } from "../../../../api/gen/networking.v1.ts";
import type { Random } from "../../../../lifecycle/random.ts";
import { ServiceAllocator } from "./allocator.ts";

const lowest: Random = { next: () => 0, uuid: () => "u", bytes: (length) => new Uint8Array(length) };
const meta = (name: string, more: object = {}) => ({ name, uid: name, resourceVersion: "1", creationTimestamp: "", ...more });
const range = (cidrs: string[], { ready, deleting = false }: { ready?: string; deleting?: boolean } = {}): ServiceCIDR => ({
  apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", metadata: meta(cidrs.join(), deleting ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}), spec: { cidrs },
  ...(ready && { status: { conditions: [{ type: "Ready", status: ready, reason: "", message: "", lastTransitionTime: "" }] } }),
}) as ServiceCIDR;
const address = (name: string, manager?: string): IPAddress => ({ apiVersion: "networking.k8s.io/v1", kind: "IPAddress", metadata: meta(name, manager ? { labels: { "ipaddress.kubernetes.io/managed-by": manager } } : {}), spec: {} }) as IPAddress;

function cluster(serviceCidrs = ["10.43.0.0/29"]) {
  const services: Service[] = [];
  const state = { ranges: [] as ServiceCIDR[], addresses: [] as IPAddress[] };
  let looks = 0; // at all services
  const existing = (): Service[] => { looks++; return services; };
  const allocator = new ServiceAllocator({ serviceCidrs, nodePortRange: { first: 30000, last: 30063 }, existing, ranges: () => state.ranges, addresses: () => state.addresses, random: lowest });
  const add = (spec: Partial<ServiceSpec> = {}): string => {
    const service = { apiVersion: "v1", kind: "Service", metadata: meta(`s${services.length}`), spec: { type: "ClusterIP", ports: [{ port: 80 }], ...spec, ...(spec.clusterIP && { clusterIPs: [spec.clusterIP] }) } } as Service;
    const allocation = allocator.allocate(service, undefined);
    services.push(service);
    allocation.commit();
    return service.spec.clusterIPs!.join();
  };
  return { state, add, allocator, looks: () => looks };
}

test("a full range is helped by another, which is used when it is ready, and not when it goes", () => {
  const { state, add } = cluster();
  state.ranges = [range(["10.43.0.0/29"], { ready: "True" })];
  for (let i = 0; i < 6; i++) expect(add()).toMatch(/^10\.43\.0\.[1-6]$/);
  expect(() => add()).toThrow("range is full");
  state.ranges = [range(["10.99.0.0/28"], { ready: "False" }), ...state.ranges];
  expect(() => add()).toThrow("range is full");
  state.ranges[0] = range(["10.99.0.0/28"], { ready: "True" });
  expect(add()).toBe("10.99.0.1");
  expect(add({ clusterIP: "10.99.0.9" })).toBe("10.99.0.9");
  expect(() => add({ clusterIP: "10.99.0.9" })).toThrow("failed to allocate IP 10.99.0.9: provided IP is already allocated");
  state.ranges[0] = range(["10.99.0.0/28"], { ready: "True", deleting: true });
  expect(() => add({ clusterIP: "10.99.0.10" })).toThrow("failed to allocate IP 10.99.0.10: the provided network does not match the current range");
});

test("nothing said of a range: it is ready; none of a family: those the server was started with", () => {
  const { state, add } = cluster(["10.43.0.0/24", "fd00:43::/112"]);
  expect(add()).toBe("10.43.0.17");
  state.ranges = [range(["10.50.0.0/24"])];
  expect(add()).toBe("10.50.0.17");
  expect(add({ ipFamilyPolicy: "RequireDualStack" })).toMatch(/^10\.50\.0\.18,fd00:43::/);
});

test("an IPAddress is taken, whoever has made it", () => {
  const { state, add } = cluster();
  state.addresses = [address("10.43.0.1"), address("10.43.0.2", "example.com"), address("10.43.0.3", "ipallocator.k8s.io")];
  expect(add()).toBe("10.43.0.4");
  expect(() => add({ clusterIP: "10.43.0.3" })).toThrow("provided IP is already allocated");
});

test("ranges that overlap give no address twice while writes are under way", () => {
  const { state, allocator } = cluster();
  state.ranges = [range(["10.43.0.0/30"], { ready: "True" }), range(["10.43.0.0/29"], { ready: "True" })];
  const given = [1, 2, 3].map((i) => {
    const service = { apiVersion: "v1", kind: "Service", metadata: meta(`x${i}`), spec: { type: "ClusterIP", ports: [{ port: 80 }] } } as Service;
    allocator.allocate(service, undefined); // none is finished
    return service.spec.clusterIP;
  });
  expect(new Set(given).size).toBe(3);
});

test("however many ports a service has, the services there are are gone through a few times", () => {
  const { allocator, add, looks } = cluster();
  add();
  const before = looks();
  const service = { apiVersion: "v1", kind: "Service", metadata: meta("s"), spec: { type: "NodePort", ports: Array.from({ length: 60 }, (_, i) => ({ port: i + 1, ...(i < 30 && { nodePort: 30000 + i }) })) } } as Service;
  const allocation = allocator.allocate(service, undefined);
  expect(new Set(service.spec.ports!.map(({ nodePort }) => nodePort)).size).toBe(60);
  expect(allocation.isFree()).toBe(true);
  expect(looks() - before).toBeLessThan(6);
});
