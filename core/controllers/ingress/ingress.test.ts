import { expect, test } from "vitest";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { staticInformer, stored } from "../../../test/static-informer.ts";
import type { Node, Service } from "../../api/gen/core.v1.ts";
import type { Ingress, IngressClass } from "../../api/gen/networking.v1.ts";
import type { NewObject } from "../../api/meta/object-meta.ts";
import { ENDPOINT_SLICES, INGRESS_CLASSES, INGRESSES, NODES, SERVICES } from "../../client/resources.ts";
import { GATEWAY_SERVICE_LABELS } from "../../ingress/gateway-fronts.ts";
import { ingressController, noIngressController } from "./ingress.ts";
import { holdsPorts, nodePortProblem } from "./node-ports.ts";
import { ingressSlices, withPorts } from "./plan.ts";

const node = (name: string, addresses: readonly string[], { ready = "True", os = "linux", kubeletVersion = "v1.36.0+coracle0.1.0" } = {}): Node => ({
  apiVersion: "v1", kind: "Node", metadata: { name, labels: { "kubernetes.io/os": os } } as unknown as Node["metadata"], spec: {},
  status: { addresses: addresses.map((address) => ({ type: "InternalIP", address })), conditions: [{ type: "Ready", status: ready }], nodeInfo: { kubeletVersion } } as unknown as Node["status"],
});
const ingress = (name: string, ingressClassName: string): NewObject<Ingress> => ({ apiVersion: "networking.k8s.io/v1", kind: "Ingress", metadata: { name, namespace: "default" }, spec: { ingressClassName } });

test("each family has its slice: the nodes with an address of it, except Windows and those of other kubelets, which serve no ingress, and one that nobody can be reached at", () => {
  const service = { metadata: { name: "coracle-ingress", uid: "u" }, spec: { ipFamilies: ["IPv6", "IPv4"] } } as unknown as Service;
  const slices = ingressSlices(service, [node("b", ["10.0.0.2", "fd00::2"], { ready: "False" }), node("a", ["10.0.0.1"]), node("w", ["10.0.0.3"], { os: "windows" }), node("k", ["10.0.0.4"], { kubeletVersion: "v1.36.0" }), node("o", ["::ffff:10.0.0.5", "224.0.0.1", "ff02::1"])]);
  expect(slices.map(({ metadata, addressType, endpoints }) => [metadata.name, addressType, endpoints!.map(({ addresses, conditions }) => `${addresses[0]} ${conditions?.ready}`)])).toEqual([
    ["coracle-ingress-ipv4", "IPv4", ["10.0.0.1 true", "10.0.0.2 false"]], ["coracle-ingress-ipv6", "IPv6", ["fd00::2 false"]],
  ]);
});

test("a Service has the ports that Gateways want, each with a port of the nodes that no other has; the rest of it is its owner's", () => {
  const service = (...ports: readonly object[]): Service => ({ spec: { ports } }) as unknown as Service;
  const http = { name: "http", port: 80, targetPort: 10_080 }, theirs = { name: "mine", port: 99, targetPort: 99 };
  const port = (number: number, targetPort: number, appProtocol = "http") => ({ name: `gateway-${number}`, port: number, protocol: "TCP", targetPort, appProtocol });
  const wanted = new Map([[8080, "HTTP"], [8443, "HTTPS"]] as const);
  const made = withPorts(service(http, theirs), wanted, new Set([10_500, 10_502]));
  expect(made).toEqual([http, theirs, port(8080, 10_501), port(8443, 10_503, "https")]);
  expect(withPorts(service(...made!), wanted, new Set([10_500])), "as it should be").toBeUndefined();
  expect(withPorts(service(...made!), new Map([[8443, "HTTP"]]), new Set())).toEqual([http, theirs, port(8443, 10_503)]);
  expect(withPorts(service(http, port(1, 10_500)), new Map(), new Set())).toEqual([http]);
  const [slice] = ingressSlices({ ...service(http, port(1, 10_500)), metadata: { name: "coracle-ingress", uid: "u" }, spec: { ipFamilies: ["IPv4"], ports: [http, port(1, 10_500)] } } as unknown as Service, []);
  expect(slice!.ports!.map(({ name, port: number }) => `${name} ${number}`)).toEqual(["http 10080", "https 10443", "gateway-1 10500"]);
});

test("ports that are the cluster's, or another load balancer's already, cannot be had", () => {
  const balancer = (name: string, port: number, more: object = {}) => ({ metadata: { name, namespace: "default" }, spec: { type: "LoadBalancer", ports: [{ port, protocol: "TCP" }] }, status: { loadBalancer: { ingress: [{ ip: "10.0.0.1" }] } }, ...more }) as unknown as Service;
  const all = [balancer("web", 8080), balancer("waits", 8081, { status: {} }), balancer("other", 8082, { spec: { type: "ClusterIP", ports: [{ port: 8082 }] } }), { ...balancer("x", 8083), metadata: { name: "coracle-ingress", namespace: "kube-system" } } as Service];
  const problem = nodePortProblem({ list: () => all }, [{ protocol: "TCP", port: 6443, why: "the API server's" }]);
  expect([6443, 8080, 8081, 8082, 8083].map(problem)).toEqual(["port 6443/TCP of the nodes is the API server's", "port 8080/TCP of the nodes is used by service default/web", undefined, undefined, undefined]);
  expect([6443, 8080].map(nodePortProblem({ list: () => all }, undefined)), "where addresses are not the nodes'").toEqual([undefined, undefined]);
  expect([holdsPorts(all[0]!, all[0]), holdsPorts(all[0]!, undefined), holdsPorts(all[0]!, all[1]), holdsPorts(all[1]!, undefined)]).toEqual([false, true, true, false]);
});

test("the Service comes with the first Ingress of ours and goes with the last; its addresses are published", () =>
  withControllers((deps) => [ingressController(deps)], async (api, call) => {
    const ingresses = api.client.resource(INGRESSES), services = api.client.resource(SERVICES);
    const published = (name: string): unknown => api.all(INGRESSES).find(({ metadata }) => metadata.name === name)?.status?.loadBalancer?.ingress;
    const own = (): Service | undefined => api.all(SERVICES).find(({ metadata }) => metadata.name === "coracle-ingress");
    await api.client.resource(INGRESS_CLASSES).create({ apiVersion: "networking.k8s.io/v1", kind: "IngressClass", metadata: { name: "coracle" }, spec: { controller: "coracle.io/ingress-controller" } } as NewObject<IngressClass>, call);
    await api.client.resource(NODES).create(node("a", ["10.0.0.1"]), call);
    await ingresses.create(ingress("theirs", "nginx"), call);
    const ours = await ingresses.create(ingress("ours", "coracle"), call);
    const service = await eventually(own, (found) => found !== undefined);
    await services.update({ ...service!, spec: { ...service!.spec, ipFamilies: ["IPv4"] } }, call); // as the API server does
    await eventually(() => api.all(ENDPOINT_SLICES), (all) => all[0]?.endpoints?.[0]?.addresses[0] === "10.0.0.1");
    await services.updateStatus({ ...own()!, status: { loadBalancer: { ingress: [{ ip: "10.0.0.1", ipMode: "VIP" }] } } }, call);
    await eventually(() => published("ours"), (at) => JSON.stringify(at) === '[{"ip":"10.0.0.1"}]');
    expect(published("theirs")).toBeUndefined();
    await api.client.resource(NODES).create(node("b", ["10.0.0.2"]), call);
    await eventually(() => api.all(ENDPOINT_SLICES)[0]?.endpoints?.length, (count) => count === 2);
    await ingresses.delete(ours, {}, call);
    await eventually(own, (found) => found === undefined);
  }));

test("where nodes have no ingress any more its Services go, those of Gateways too, and Ingresses of ours are at no address; others stay", async () => {
  const api = fakeApi(), { signal } = new AbortController(), at = { loadBalancer: { ingress: [{ ip: "10.0.0.1" }] } };
  await api.client.resource(INGRESS_CLASSES).create({ apiVersion: "networking.k8s.io/v1", kind: "IngressClass", metadata: { name: "coracle" }, spec: { controller: "coracle.io/ingress-controller" } } as NewObject<IngressClass>, { signal });
  for (const [name, of] of [["ours", "coracle"], ["theirs", "nginx"]] as const) await api.client.resource(INGRESSES).updateStatus({ ...(await api.client.resource(INGRESSES).create(ingress(name, of), { signal })), status: at }, { signal });
  for (const [name, namespace, labels] of [["coracle-ingress", "kube-system", {}], ["of-a-gateway", "default", GATEWAY_SERVICE_LABELS], ["web", "default", {}]] as const)
    await api.client.resource(SERVICES).create({ apiVersion: "v1", kind: "Service", metadata: { name, namespace, labels }, spec: { type: "LoadBalancer", ports: [{ port: 80 }] } } as NewObject<Service>, new AbortController());
  await withControllers((deps) => [noIngressController(deps)], async () => {
    await eventually(() => api.all(SERVICES).map(({ metadata }) => metadata.name).join(), (names) => names === "web");
    await eventually(() => api.all(INGRESSES).map(({ metadata, status }) => `${metadata.name} ${status?.loadBalancer?.ingress?.[0]?.ip}`).join(), (told) => told === "ours undefined,theirs 10.0.0.1");
  }, { api });
});

test("addresses that are published concern their Ingress alone; what is shared is looked at later, once for all that come meanwhile", () => {
  const ingresses = staticInformer<Ingress>(), none = staticInformer();
  const { watches } = ingressController({ client: fakeApi().client, informers: { of: (ref: unknown) => (ref === INGRESSES ? ingresses : none) } as never });
  let woken: string[] = [];
  for (const watch of watches) watch.subscribe((key, afterMs = 0) => void woken.push(`${key}${afterMs > 0 ? ", later" : ""}`));
  const since = (change: () => void): string[] => { woken = []; change(); return woken; };
  const one = stored<Ingress>("networking.k8s.io/v1", "Ingress", "default/a", { metadata: { generation: 1 }, spec: { ingressClassName: "coracle" } });
  const published = { ...one, status: { loadBalancer: { ingress: [{ ip: "10.0.0.1" }] } } };
  expect(since(() => ingresses.put(one))).toEqual(["default/a", "shared, later"]);
  expect(since(() => ingresses.put(published))).toEqual(["default/a"]);
  expect(since(() => ingresses.put({ ...published, metadata: { ...one.metadata, annotations: { "kubernetes.io/ingress.class": "coracle" } } }))).toEqual(["default/a", "shared, later"]);
  expect(since(() => ingresses.put({ ...published, metadata: { ...one.metadata, generation: 2 } }))).toEqual(["default/a", "shared, later"]);
  expect(since(() => ingresses.remove(one))).toEqual(["shared, later"]);
});
