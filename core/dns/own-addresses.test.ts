import { expect, test } from "vitest";
import type { Service } from "../api/gen/core.v1.ts";
import type { EndpointSlice } from "../api/gen/discovery.v1.ts";
import { staticInformer } from "../../test/static-informer.ts";
import { ownAddresses } from "./own-addresses.ts";

const slice = (service: string, address: string) => ({ metadata: { name: service, namespace: "kube-system", labels: { "kubernetes.io/service-name": service } }, addressType: "IPv4", endpoints: [{ addresses: [address] }], ports: [] }) as unknown as EndpointSlice;
const service = (name: string, port: number, ...ips: string[]) => ({
  metadata: { name, namespace: "kube-system" }, spec: { clusterIPs: ["10.43.0.10"], externalIPs: ips, ports: [{ port }] }, status: { loadBalancer: { ingress: ips.map((ip) => ({ ip: ip.replace("192", "198") })) } },
}) as unknown as Service;

test("questions come to us where Services lead to where we listen, at the port that resolvers ask, and not at whatever else the machine has", () => {
  const at = (services: readonly Service[], listen: readonly string[] = ["10.42.0.1"]): string[] =>
    ownAddresses({ services: staticInformer(...services), slices: staticInformer(slice("kube-dns", "10.42.0.1"), slice("other", "10.42.0.9"), slice("gone", "10.42.0.1")), listen });
  expect(at([service("kube-dns", 53)])).toEqual(["10.43.0.10"]);
  expect(at([service("kube-dns", 53, "192.0.2.1"), service("other", 53, "192.0.2.2")])).toEqual(["10.43.0.10", "192.0.2.1", "198.0.2.1"]);
  expect(at([service("kube-dns", 5353, "192.0.2.1")])).toEqual([]);
  expect(at([service("kube-dns", 53)], [])).toEqual([]);
});
