import { expect, test } from "vitest";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import { growth } from "../../../test/reads.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import type { Node, Service, ServicePort, ServiceSpec } from "../../api/gen/core.v1.ts";
import type { EndpointConditions, EndpointSlice } from "../../api/gen/discovery.v1.ts";
import type { NewObject } from "../../api/meta/object-meta.ts";
import { EVENTS, NODES, SERVICES } from "../../client/resources.ts";
import { GATEWAY_SERVICE_LABELS } from "../../ingress/gateway-fronts.ts";
import { INGRESS_SERVICE } from "../../ingress/ingress-class.ts";
import { planLoadBalancer } from "./plan.ts";
import { noServiceLbController, serviceLbController } from "./servicelb.ts";

const node = (name: string, addresses: Record<string, string>, { ready = true, ...metadata }: { ready?: boolean; labels?: Record<string, string> } = {}): Node => ({
  apiVersion: "v1", kind: "Node", metadata: { name, ...metadata } as Node["metadata"], spec: {},
  status: { addresses: Object.entries(addresses).map(([address, type]) => ({ type, address })), conditions: [{ type: "Ready", status: ready ? "True" : "False" }] } as unknown as Node["status"],
});
const service = (name: string, spec: Partial<ServiceSpec> = {}, created = "2026-01-01T00:00:00Z"): Service => ({
  apiVersion: "v1", kind: "Service", metadata: { name, namespace: "default", creationTimestamp: created } as Service["metadata"],
  spec: { type: "LoadBalancer", ipFamilies: ["IPv4"], ports: [{ port: 80, protocol: "TCP" }], ...spec } as ServiceSpec,
});
const ingressService: Service = { ...service("ingress", {}, "2025-06-01T00:00:00Z"), metadata: { ...INGRESS_SERVICE, creationTimestamp: "2025-06-01T00:00:00Z" } as Service["metadata"] };
const gatewayService = (created: string): Service => ({ ...service("gateway"), metadata: { name: "gateway", namespace: "default", labels: GATEWAY_SERVICE_LABELS, creationTimestamp: created } as unknown as Service["metadata"] });
const slice = (nodeNames: readonly string[], conditions: EndpointConditions = { ready: true }): EndpointSlice => ({ endpoints: nodeNames.map((nodeName) => ({ addresses: ["10.42.0.1"], nodeName, conditions })) }) as unknown as EndpointSlice;
const NODES_2 = [node("b", { "10.0.0.2": "InternalIP", "fd00::2": "InternalIP" }), node("a", { "10.0.0.1": "InternalIP", a: "Hostname" }), node("c", { "10.0.0.3": "InternalIP" }, { ready: false })];
const RESERVED = [{ protocol: "TCP", port: 6443, why: "the API server's" }] as const;

test.each<[string, Partial<ServiceSpec>, Partial<Parameters<typeof planLoadBalancer>[1]>, unknown]>([
  ["ready nodes, by name", {}, {}, ["10.0.0.1", "10.0.0.2"]],
  ["both families", { ipFamilies: ["IPv6", "IPv4"] }, {}, ["10.0.0.1", "10.0.0.2", "fd00::2"]],
  ["policy Local: nodes with endpoints", { externalTrafficPolicy: "Local" }, { slices: [slice(["b", "c"])] }, ["10.0.0.2"]],
  ["policy Local: nodes whose endpoints are ending, as long as they serve", { externalTrafficPolicy: "Local" }, { slices: [slice(["b"], { ready: false, serving: true, terminating: true }), slice(["a"], { ready: false, serving: false, terminating: true })] }, ["10.0.0.2"]],
  ["policy Local: not those whose endpoints are not ready yet", { externalTrafficPolicy: "Local" }, { slices: [slice(["b"], { ready: false, serving: false }), slice(["a"])] }, ["10.0.0.1"]],
  ["policy Local without any that is ready: all, as a load balancer has an address before it has backends", { externalTrafficPolicy: "Local" }, { slices: [slice(["b"], { ready: false, serving: false })] }, ["10.0.0.1", "10.0.0.2"]],
  ["policy Local without any: all", { externalTrafficPolicy: "Local" }, {}, ["10.0.0.1", "10.0.0.2"]],
  ["external addresses where there are some", {}, { nodes: [...NODES_2, node("d", { "10.0.0.4": "InternalIP", "198.51.100.4": "ExternalIP" })] }, ["198.51.100.4"]],
  ["not what a node calls itself that nobody can be reached at", {}, { nodes: [...NODES_2, node("d", { "0.0.0.0": "InternalIP", "127.0.0.1": "ExternalIP", "224.0.0.1": "InternalIP", "::ffff:10.0.0.4": "InternalIP", "169.254.1.1": "InternalIP" })] }, ["10.0.0.1", "10.0.0.2"]],
  ["not nodes that are left out", {}, { nodes: [node("a", { "10.0.0.1": "InternalIP" }, { labels: { "node.kubernetes.io/exclude-from-external-load-balancers": "" } })] }, []],
  ["one address that is asked for", { loadBalancerIP: "10.0.0.2" }, {}, ["10.0.0.2"]],
  ["an address nobody has", { loadBalancerIP: "10.0.0.9" }, {}, "no node has the address 10.0.0.9"],
  ["a port the cluster needs", { ports: [{ port: 6443, protocol: "TCP" }] }, {}, "port 6443/TCP of the nodes is the API server's"],
  ["a port an older service has", {}, { rivals: [service("old", {}, "2025-01-01T00:00:00Z")] }, "port 80/TCP of the nodes is used by service default/old"],
  ["a port that a service of the same second has got", {}, { rivals: [{ ...service("zoo"), status: { loadBalancer: { ingress: [{ ip: "10.0.0.1" }] } } }] }, "port 80/TCP of the nodes is used by service default/zoo"],
  ["a port of the ingress's, whatever is older: a Gateway with a Service of its own is reached inside the cluster then", {}, { rivals: [gatewayService("2025-01-01T00:00:00Z"), ingressService] }, "port 80/TCP of the nodes is used by service kube-system/coracle-ingress"],
  ["a port that nobody but a younger Gateway wants", {}, { rivals: [gatewayService("2027-01-01T00:00:00Z")] }, ["10.0.0.1", "10.0.0.2"]],
  ["an older service's node port", { ports: [{ port: 30_080, protocol: "TCP" }] }, { nodePortsAt: (port: string) => (port === "TCP 30080" ? [service("nodes", { type: "NodePort" }, "2025-01-01T00:00:00Z")] : []) }, "port 30080/TCP of the nodes is the node port of service default/nodes"],
  ["a younger service's node port", { ports: [{ port: 30_080, protocol: "TCP" }] }, { nodePortsAt: () => [service("nodes", { type: "NodePort" }, "2027-01-01T00:00:00Z")] }, ["10.0.0.1", "10.0.0.2"]],
  ["the same port of another protocol", {}, { rivals: [service("old", { ports: [{ port: 80, protocol: "UDP" }] }, "2025-01-01T00:00:00Z")] }, ["10.0.0.1", "10.0.0.2"]],
])("%s", (_, spec, world, expected) => {
  const web = service("web", spec);
  const plan = planLoadBalancer(web, { nodes: NODES_2, slices: [], nodePortsAt: () => [], reserved: RESERVED, ...world, rivals: [web, ...(world.rivals ?? [])] });
  expect("refusal" in plan ? plan.refusal : plan.ingress.map(({ ip }) => ip)).toEqual(expected);
});

test("where nobody gives addresses any more, those that were given are taken back, and no one else's", async () => {
  const api = fakeApi(), { signal } = new AbortController(), services = api.client.resource(SERVICES);
  const by = (manager: string) => [{ manager, subresource: "status", operation: "Update", fieldsType: "FieldsV1", apiVersion: "v1", fieldsV1: { "f:status": { "f:loadBalancer": { "f:ingress": {} } } } }];
  for (const [name, manager, spec] of [["ours", "kube-controller-manager", {}], ["theirs", "metallb", {}], ["classy", "kube-controller-manager", { loadBalancerClass: "example.com/lb" }]] as const) {
    const made = await services.create({ ...service(name, spec), metadata: { name, namespace: "default", managedFields: by(manager) } } as unknown as NewObject<Service>, { signal });
    await services.updateStatus({ ...made, status: { loadBalancer: { ingress: [{ ip: "10.0.0.1" }] } } }, { signal });
  }
  await withControllers((deps) => [noServiceLbController(deps)], async () => {
    await eventually(() => api.all(SERVICES).map(({ metadata, status }) => `${metadata.name} ${status?.loadBalancer?.ingress?.[0]?.ip}`).join(), (told) => told === "ours undefined,theirs 10.0.0.1,classy 10.0.0.1");
  }, { api });
});

test("the addresses follow the nodes, and a port goes to who waited for it", () =>
  withControllers((deps) => [serviceLbController({ ...deps, reserved: RESERVED })], async (api, call) => {
    const nodes = api.client.resource(NODES), services = api.client.resource(SERVICES);
    const ips = (name: string): string[] => api.all(SERVICES).find(({ metadata }) => metadata.name === name)?.status?.loadBalancer?.ingress?.map(({ ip }) => ip ?? "") ?? [];
    const fresh = (name: string, spec: Partial<ServiceSpec> = {}): NewObject<Service> => ({ ...service(name, spec), metadata: { name, namespace: "default" } });
    await nodes.create(NODES_2[1]!, call);
    const first = await services.create(fresh("a-first"), call);
    await eventually(() => ips("a-first"), (all) => all.join() === "10.0.0.1");
    await services.create(fresh("b-second"), call);
    await services.create(fresh("c-classy", { loadBalancerClass: "example.com/other" }), call);
    await nodes.create(NODES_2[0]!, call);
    await eventually(() => ips("a-first"), (all) => all.join() === "10.0.0.1,10.0.0.2");
    expect([ips("b-second"), ips("c-classy")]).toEqual([[], []]);
    await services.delete(first, {}, call);
    await eventually(() => ips("b-second"), (all) => all.join() === "10.0.0.1,10.0.0.2");
    const second = await services.get({ metadata: { name: "b-second", namespace: "default" } }, call);
    await services.update({ ...second, spec: { ...second.spec, type: "ClusterIP" } }, call);
    await eventually(() => ips("b-second"), (all) => all.length === 0);
  }));

test.each<[string, Partial<ServiceSpec>]>([
  ["of type NodePort", { type: "NodePort", ports: [{ port: 30_080, protocol: "TCP", nodePort: 30_080 }] as ServicePort[] }],
  ["of type LoadBalancer, whoever serves that", { loadBalancerClass: "else.where/lb", ports: [{ port: 80, protocol: "TCP", nodePort: 30_080 }] as ServicePort[] }],
  ["which tells of its health there", { loadBalancerClass: "else.where/lb", externalTrafficPolicy: "Local", healthCheckNodePort: 30_080 }],
])("a node port of an older Service is waited for: %s", (_, spec) =>
  withControllers((deps) => [serviceLbController({ ...deps, reserved: RESERVED })], async (api, call) => {
    const services = api.client.resource(SERVICES);
    const has = (): boolean => api.all(SERVICES).some(({ metadata, status }) => metadata.name === "web" && status?.loadBalancer?.ingress?.length);
    await api.client.resource(NODES).create(NODES_2[1]!, call);
    const older = await services.create({ ...service("a-nodes", spec), metadata: { name: "a-nodes", namespace: "default" } }, call);
    await services.create({ ...service("web", { ports: [{ port: 30_080, protocol: "TCP" }] }), metadata: { name: "web", namespace: "default" } }, call);
    await eventually(() => api.all(EVENTS).map(({ message }) => message ?? ""), (all) => all.some((one) => one.endsWith("is the node port of service default/a-nodes")));
    expect(has()).toBe(false);
    await services.delete(older, {}, call);
    await eventually(has, (one) => one);
  }));

test("what becomes of a load balancer is told, and once that there is no node for it", () =>
  withControllers((deps) => [serviceLbController({ ...deps, reserved: RESERVED })], async (api, call) => {
    const nodes = api.client.resource(NODES), services = api.client.resource(SERVICES);
    const told = (): string[] => api.all(EVENTS).map(({ reason, message, count }) => `${reason} ${message} ${count}`);
    const untilTold = (reason: string) => eventually(told, (all) => all.some((one) => one.startsWith(`${reason} `)));
    const made = await services.create({ ...service("web"), metadata: { name: "web", namespace: "default" } }, call);
    await untilTold("UnAvailableLoadBalancer");
    await nodes.create(NODES_2[2]!, call); // not ready
    await nodes.create(NODES_2[1]!, call);
    await untilTold("EnsuredLoadBalancer");
    await nodes.create(NODES_2[0]!, call);
    await untilTold("UpdatedLoadBalancer");
    const now = await services.get(made, call);
    await services.update({ ...now, spec: { ...now.spec, type: "ClusterIP" }, status: { loadBalancer: {} } }, call); // as the API does it
    await untilTold("DeletedLoadBalancer");
    expect(told()).toEqual([
      "UnAvailableLoadBalancer There are no available nodes for LoadBalancer 1", "EnsuringLoadBalancer Ensuring load balancer 1", "EnsuredLoadBalancer Ensured load balancer 1",
      "UpdatedLoadBalancer Updated load balancer with new hosts 1", "DeletingLoadBalancer Deleting load balancer 1", "DeletedLoadBalancer Deleted load balancer 1",
    ]);
    const other = await services.create({ ...service("other"), metadata: { name: "other", namespace: "default" } }, call);
    await eventually(told, (all) => all.length === 8);
    await services.delete(other, {}, call);
    await eventually(told, (all) => all.length === 10);
    expect(api.all(EVENTS).slice(8).map(({ reason, involvedObject }) => `${reason} ${involvedObject.name}`)).toEqual(["DeletingLoadBalancer other", "DeletedLoadBalancer other"]);
  }));

test("of Services with very many ports each port is looked at as often as of others", () => {
  const ports = (n: number): ServicePort[] => Array.from({ length: n }, (_, i) => ({ port: i + 1000, protocol: "TCP" }));
  expect(growth((n, reads) => {
    const [web, other] = ["web", "zoo"].map((name) => service(name, { ports: reads.of(ports(n)) })) as [Service, Service];
    planLoadBalancer(web, { nodes: NODES_2, slices: [], nodePortsAt: () => [], reserved: [], rivals: [web, other] });
  })).toBeLessThan(3);
});

test("a Service that another cluster's cloud held may go, but not one of somebody else's class", () =>
  withControllers((deps) => [serviceLbController({ ...deps, reserved: RESERVED })], async (api, call) => {
    const services = api.client.resource(SERVICES);
    const held = (name: string, spec: Partial<ServiceSpec> = {}): NewObject<Service> => ({ ...service(name, spec), metadata: { name, namespace: "default", finalizers: ["service.kubernetes.io/load-balancer-cleanup", "example.com/own"] } });
    const finalizers = (name: string) => api.all(SERVICES).find(({ metadata }) => metadata.name === name)?.metadata.finalizers;
    const made = await Promise.all([held("theirs", { loadBalancerClass: "example.com/lb" }), held("goes"), held("stays")].map((one) => services.create(one, call)));
    for (const one of made.slice(0, 2)) await services.delete(one, {}, call);
    await eventually(() => finalizers("goes"), (all) => all?.join() === "example.com/own");
    expect(finalizers("theirs")).toHaveLength(2);
    expect(finalizers("stays")).toHaveLength(2);
  }));
