import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import type { Node, Service } from "../../api/gen/core.v1.ts";
import type { Ingress, IngressClass } from "../../api/gen/networking.v1.ts";
import type { NewObject } from "../../api/meta/object-meta.ts";
import { ENDPOINT_SLICES, INGRESS_CLASSES, INGRESSES, NODES, SERVICES } from "../../client/resources.ts";
import { ingressController } from "./ingress.ts";
import { ingressSlices } from "./plan.ts";

const node = (name: string, addresses: readonly string[], { ready = "True", os = "linux" } = {}): Node => ({
  apiVersion: "v1", kind: "Node", metadata: { name, labels: { "kubernetes.io/os": os } } as unknown as Node["metadata"], spec: {},
  status: { addresses: addresses.map((address) => ({ type: "InternalIP", address })), conditions: [{ type: "Ready", status: ready }] } as unknown as Node["status"],
});
const ingress = (name: string, ingressClassName: string): NewObject<Ingress> => ({ apiVersion: "networking.k8s.io/v1", kind: "Ingress", metadata: { name, namespace: "default" }, spec: { ingressClassName } });

test("each family has its slice: the nodes with an address of it, Windows excepted", () => {
  const service = { metadata: { name: "coracle-ingress", uid: "u" }, spec: { ipFamilies: ["IPv6", "IPv4"] } } as unknown as Service;
  const slices = ingressSlices(service, [node("b", ["10.0.0.2", "fd00::2"], { ready: "False" }), node("a", ["10.0.0.1"]), node("w", ["10.0.0.3"], { os: "windows" })]);
  expect(slices.map(({ metadata, addressType, endpoints }) => [metadata.name, addressType, endpoints!.map(({ addresses, conditions }) => `${addresses[0]} ${conditions?.ready}`)])).toEqual([
    ["coracle-ingress-ipv4", "IPv4", ["10.0.0.1 true", "10.0.0.2 false"]], ["coracle-ingress-ipv6", "IPv6", ["fd00::2 false"]],
  ]);
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
