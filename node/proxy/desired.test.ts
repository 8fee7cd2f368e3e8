import { describe, expect, test } from "vitest";
import type { Node, Service, ServicePort } from "../../core/api/gen/core.v1.ts";
import type { Endpoint, EndpointSlice } from "../../core/api/gen/discovery.v1.ts";
import { stored } from "../../test/static-informer.ts";
import { keptPorts, planService, type ProxyNode } from "./desired.ts";

const node: ProxyNode = { name: "n1", ips: ["172.30.0.1"], zone: "a" };

function service(spec: Service["spec"], rest: Partial<Service> = {}): Service {
  return stored<Service>("v1", "Service", "default/web", { spec: { clusterIP: "10.43.0.5", clusterIPs: ["10.43.0.5"], ports: [{ name: "http", port: 80, protocol: "TCP" }], ...spec }, ...rest });
}

function slice(endpoints: Endpoint[], rest: Partial<EndpointSlice> = {}): EndpointSlice {
  return stored<EndpointSlice>("discovery.k8s.io/v1", "EndpointSlice", "default/web-1", { addressType: "IPv4", ports: [{ name: "http", port: 8080, protocol: "TCP" }], endpoints, ...rest });
}

function endpoint(n: number, nodeName: string, rest: Partial<Endpoint> = {}): Endpoint { return { addresses: [`10.42.0.${n}`], nodeName, conditions: { ready: true }, ...rest }; }
const draining = { conditions: { ready: false, serving: true, terminating: true } };
const zones = (...names: string[]) => ({ hints: { forZones: names.map((name) => ({ name })) } });
const nodes = (...names: string[]) => ({ hints: { forNodes: names.map((name) => ({ name })) } });
const LOCAL = { type: "NodePort", externalTrafficPolicy: "Local", internalTrafficPolicy: "Cluster" } as const;
const nodePort = { ports: [{ name: "http", port: 80, protocol: "TCP" as const, nodePort: 30080 }] };

describe("which endpoints get traffic", () => {
  test.each([
    { name: "ready ones", spec: {}, endpoints: [endpoint(1, "n1"), endpoint(2, "n2"), endpoint(3, "n1", { conditions: { ready: false } })], cluster: [1, 2], local: [] },
    { name: "unknown readiness is ready", spec: {}, endpoints: [endpoint(1, "n1", { conditions: {} })], cluster: [1], local: [] },
    { name: "those that are nobody's pods", spec: {}, endpoints: [{ addresses: ["192.0.2.7"] }], cluster: [7], local: [] },
    { name: "terminating ones only when no other is ready", spec: {}, endpoints: [endpoint(1, "n1", draining), endpoint(2, "n2")], cluster: [2], local: [] },
    { name: "terminating ones that still serve, when there is nothing better", spec: {}, endpoints: [endpoint(1, "n1", draining), endpoint(2, "n2", { conditions: { ready: false } })], cluster: [1], local: [] },
    { name: "a terminating one of which nobody says whether it serves does", spec: {}, endpoints: [endpoint(1, "n1", { conditions: { ready: false, terminating: true } })], cluster: [1], local: [] },
    { name: "internal policy Local", spec: { internalTrafficPolicy: "Local" }, endpoints: [endpoint(1, "n1"), endpoint(2, "n2")], cluster: [], local: [1] },
    { name: "external policy Local needs both", spec: { ...LOCAL, ...nodePort }, endpoints: [endpoint(1, "n1"), endpoint(2, "n2")], cluster: [1, 2], local: [1] },
    { name: "external policy Local falls back to its own terminating ones", spec: { ...LOCAL, ...nodePort }, endpoints: [endpoint(1, "n1", draining), endpoint(2, "n2")], cluster: [2], local: [1] },
    { name: "zone hints", spec: {}, endpoints: [endpoint(1, "n2", zones("a")), endpoint(2, "n3", zones("b"))], cluster: [1], local: [] },
    { name: "zone hints of some are ignored", spec: {}, endpoints: [endpoint(1, "n2", zones("a")), endpoint(2, "n3")], cluster: [1, 2], local: [] },
    { name: "zone hints for other zones are ignored", spec: {}, endpoints: [endpoint(1, "n2", zones("b")), endpoint(2, "n3", zones("b"))], cluster: [1, 2], local: [] },
    { name: "node hints come first", spec: {}, endpoints: [endpoint(1, "n2", { hints: { ...nodes("n1").hints, ...zones("a").hints } }), endpoint(2, "n3", { hints: { ...nodes("n3").hints, ...zones("a").hints } })], cluster: [1], local: [] },
  ] as const)("$name", ({ spec, endpoints, cluster, local }) => {
    const [port] = planService(service(spec as Service["spec"]), [slice([...endpoints] as Endpoint[])], node).ports;
    const numbers = (backends: readonly { ip: string }[]): number[] => backends.map(({ ip }) => Number(ip.split(".")[3]));
    expect(numbers(port!.clusterBackends)).toEqual(cluster);
    expect(numbers(port!.localBackends)).toEqual(local);
    expect(port!.anyBackend).toBe(true);
  });
});

test("of two pods with one address the one that stays counts, ready or not, in whatever order they are told", () => {
  const leaving = endpoint(1, "n1", draining), starting = endpoint(1, "n1", { conditions: { ready: false, serving: false, terminating: false } });
  const leavingReady = endpoint(1, "n1", { conditions: { ready: true, serving: true, terminating: true } }), ready = endpoint(1, "n1");
  const used = (...endpoints: Endpoint[]) => planService(service({}), endpoints.map((one) => slice([one])), node).ports[0]!.clusterBackends.length;
  expect([used(leaving), used(leaving, starting), used(starting, leaving), used(leavingReady, starting), used(starting, leavingReady)]).toEqual([1, 0, 0, 0, 0]);
  expect([used(leaving, ready), used(ready, leaving), used(starting, ready), used(ready, starting)]).toEqual([1, 1, 1, 1]);
});

test.each([0, -1, 65_536])("an endpoint at port %d, which is none, is no endpoint", (port) => {
  const [plan] = planService(service({}), [slice([endpoint(1, "n1")], { ports: [{ name: "http", port, protocol: "TCP" }] })], node).ports;
  expect(plan).toMatchObject({ clusterBackends: [], anyBackend: false });
});

test("headless, ExternalName and other proxies' services have no rules", () => {
  expect(planService(service({ clusterIP: "None", clusterIPs: ["None"] }), [], node).ports).toEqual([]);
  expect(planService(service({ type: "ExternalName", externalName: "x.example" }), [], node).ports).toEqual([]);
  const elsewhere = service({});
  elsewhere.metadata.labels = { "service.kubernetes.io/service-proxy-name": "other" };
  expect(planService(elsewhere, [], node).ports).toEqual([]);
  const slices = [slice([endpoint(1, "n1")])];
  slices[0]!.metadata.labels = { ...slices[0]!.metadata.labels, "service.kubernetes.io/service-proxy-name": "other" };
  expect(planService(service({}), slices, node).ports[0]!.clusterBackends).toHaveLength(1); // that only slices say so changes nothing
});

test("each family has its own cluster IP, addresses and endpoints", () => {
  const both = service({ clusterIPs: ["10.43.0.5", "fd43::5"], externalIPs: ["192.0.2.1", "2001:DB8::1"] });
  const slices = [slice([endpoint(1, "n1")]), slice([{ addresses: ["fd42:0::2"], nodeName: "n2" }], { addressType: "IPv6" })];
  expect(planService(both, slices, node).ports.map(({ family, clusterIp, externalIps, clusterBackends }) => ({ family, clusterIp, externalIps, clusterBackends }))).toEqual([
    { family: 4, clusterIp: "10.43.0.5", externalIps: ["192.0.2.1"], clusterBackends: [{ ip: "10.42.0.1", port: 8080, local: true }] },
    { family: 6, clusterIp: "fd43::5", externalIps: ["2001:db8::1"], clusterBackends: [{ ip: "fd42::2", port: 8080, local: false }] },
  ]);
});

test("where API servers, nodes' kubelets and ends of the tunnel, and the datastore, are reached is no Service's external address, whoever writes one; their other ports are", () => {
  const kubernetes = stored<EndpointSlice>("discovery.k8s.io/v1", "EndpointSlice", "default/kubernetes", { addressType: "IPv4", ports: [{ name: "https", port: 6443, protocol: "TCP" }], endpoints: [{ addresses: ["172.30.0.9"] }, { addresses: ["172.30.0.1"] }] });
  const own = stored<Node>("v1", "Node", "n1", { status: { addresses: [{ type: "InternalIP", address: "172.30.0.1" }, { type: "Hostname", address: "n1" }], daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } } } });
  const other = stored<Node>("v1", "Node", "n2", { status: { addresses: [{ type: "InternalIP", address: "172.30.0.2" }], daemonEndpoints: { kubeletEndpoint: { Port: 80 } } } }); // that is not for it to say
  const ports = [["a", 6443, "TCP"], ["b", 6443, "UDP"], ["c", 10_250, "TCP"], ["d", 80, "TCP"], ["e", 4789, "UDP"], ["f", 4789, "TCP"], ["g", 2379, "TCP"]].map(([name, port, protocol]) => ({ name, port, protocol }) as ServicePort);
  const wanted = service({ externalIPs: ["172.30.0.9", "172.30.0.1", "172.30.0.2"], ports }, { status: { loadBalancer: { ingress: [{ ip: "172.30.0.9" }] } } });
  const planned = planService(wanted, [], { ...node, kept: keptPorts([kubernetes], { own, nodes: [own, other], asked: [{ host: "172.30.0.9", port: 2379 }, { host: "etcd", port: 2379 }] }) }).ports.map(({ portName, externalIps, loadBalancerIps }) => [portName, externalIps, loadBalancerIps]);
  expect(planned).toEqual([
    ["a", ["172.30.0.2"], []], ["b", ["172.30.0.9", "172.30.0.1", "172.30.0.2"], ["172.30.0.9"]], ["c", ["172.30.0.9"], ["172.30.0.9"]], ["d", ["172.30.0.9", "172.30.0.1", "172.30.0.2"], ["172.30.0.9"]],
    ["e", ["172.30.0.9"], ["172.30.0.9"]], ["f", ["172.30.0.9", "172.30.0.1", "172.30.0.2"], ["172.30.0.9"]],
    ["g", ["172.30.0.1", "172.30.0.2"], ["172.30.0.9"]],
  ]);
});

test.each([["true", true], ["True", false], [undefined, false]])("the annotation preserve-destination: %j", (value, preservesDestination) => {
  const asked = service({});
  asked.metadata.annotations = value === undefined ? {} : { "preserve-destination": value };
  expect(planService(asked, [], node).ports).toMatchObject([{ preservesDestination }]);
});

test("ports are matched by name and protocol, each slice with its own numbers", () => {
  const slices = [slice([endpoint(1, "n1")]), slice([endpoint(2, "n1")], { ports: [{ name: "http", port: 9090, protocol: "TCP" }, { name: "http", port: 1, protocol: "UDP" }] }), slice([endpoint(3, "n1")], { ports: [{ name: "other", port: 1, protocol: "TCP" }] })];
  expect(planService(service({}), slices, node).ports[0]!.clusterBackends.map(({ ip, port }) => `${ip}:${port}`)).toEqual(["10.42.0.1:8080", "10.42.0.2:9090"]);
  const unnamed = [slice([endpoint(1, "n1"), endpoint(2, "n2")], { ports: [{ name: "", port: 9376, protocol: "TCP" }] })];
  expect(planService(service({ ports: [{ port: 80, protocol: "TCP" }] }), unnamed, node).ports[0]!.clusterBackends.map(({ ip, port }) => `${ip}:${port}`)).toEqual(["10.42.0.1:9376", "10.42.0.2:9376"]);
});

test("a load balancer with policy Local: source ranges, health check, addresses in VIP mode only", () => {
  const balanced = service({ ...LOCAL, type: "LoadBalancer", ...nodePort, healthCheckNodePort: 32000, loadBalancerSourceRanges: [" 172.30.0.0/16 ", "fd00::/8"] },
    { status: { loadBalancer: { ingress: [{ ip: "192.0.2.1" }, { ip: "192.0.2.2", ipMode: "Proxy" }] } } });
  const { ports: [port], healthCheck } = planService(balanced, [slice([endpoint(1, "n1"), endpoint(1, "n1"), endpoint(2, "n2")])], node);
  expect(port).toMatchObject({ loadBalancerIps: ["192.0.2.1"], sourceRanges: ["172.30.0.0/16"], nodeInSourceRanges: true, externalLocal: true, nodePort: 30080 });
  expect(healthCheck).toEqual({ port: 32000, localEndpoints: 1 });
  const alsoV6 = slice([{ addresses: ["fd42::1"], nodeName: "n1" }], { addressType: "IPv6" });
  expect(planService(balanced, [slice([endpoint(1, "n1")]), alsoV6], node).healthCheck?.localEndpoints).toBe(1);
  const both = { ...balanced, spec: { ...balanced.spec, clusterIPs: ["10.43.0.9", "fd43::9"] } };
  expect([balanced, both].map((one) => planService(one, [alsoV6], node).healthCheck?.localEndpoints)).toEqual([0, 1]); // what somebody has written for a family that the Service has not is nobody's
  expect([[], [{ name: "http", protocol: "TCP" as const }]].map((ports) => planService(balanced, [slice([endpoint(1, "n1")], { ports })], node).healthCheck?.localEndpoints)).toEqual([0, 0]); // no pod has the port that is looked for by its name
});

test("addresses and ranges that are stored with leading zeros, or as IPv4 in IPv6, are what they stand for", () => {
  const spec: Service["spec"] = { type: "LoadBalancer", externalIPs: ["192.000.2.010"], loadBalancerSourceRanges: ["010.9.0.0/16"] };
  const [port] = planService(service(spec, { status: { loadBalancer: { ingress: [{ ip: "::ffff:192.0.2.011", ipMode: "VIP" }] } } }), [slice([endpoint(1, "n1", { addresses: ["010.42.0.1"] }), endpoint(2, "n1")])], node).ports;
  expect(port).toMatchObject({ externalIps: ["192.0.2.10"], loadBalancerIps: ["192.0.2.11"], sourceRanges: ["10.9.0.0/16"] }); // without a range everyone would be let in
  expect(port!.clusterBackends.map(({ ip }) => ip)).toEqual(["10.42.0.1", "10.42.0.2"]);
});

test("a Service with thousands of ports and of addresses asks for no more pairs of them than there is room for", () => {
  const many = <T>(n: number, make: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => make(i));
  const ip = (i: number): string => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`;
  const ports = many(10_000, (i) => ({ name: `p${i}`, port: i + 1, protocol: "TCP" as const }));
  const huge = service({ type: "LoadBalancer", ports, externalIPs: many(10_000, ip), loadBalancerSourceRanges: many(10_000, (i) => `${ip(i)}/32`) });
  const plans = planService(huge, many(3, (n) => slice(many(100, (i) => ({ addresses: [ip(n * 100 + i)] })), { ports })), node).ports;
  expect(plans.length).toBe(10_000);
  const lengths = ({ externalIps, sourceRanges, clusterBackends }: (typeof plans)[number]) => [externalIps, sourceRanges, clusterBackends].map((list) => list.length);
  expect([plans[0]!, plans.at(-1)!].map(lengths)).toEqual([[50, 50, 50], [50, 50, 50]]);
  expect(plans.at(-1)!.clusterBackends[0]).toEqual({ ip: "10.0.0.0", port: 10_000, local: false });
  const large = planService(service({ ports: ports.slice(0, 100) }), many(10, (n) => slice(many(100, (i) => ({ addresses: [ip(n * 100 + i)] })), { ports })), node).ports;
  expect(large.map(({ clusterBackends }) => clusterBackends.length)).toEqual(many(100, () => 1_000));
});
