import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import type { Pod, Service } from "../../api/gen/core.v1.ts";
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import type { NewObject } from "../../api/meta/object-meta.ts";
import { ENDPOINT_SLICES, ENDPOINTS, EVENTS, NODES, PODS, SERVICES } from "../../client/resources.ts";
import { endpointSliceController } from "../endpointslice/endpointslice.ts";
import { endpointSliceMirroringController } from "../endpointslicemirroring/endpointslicemirroring.ts";
import { endpointsController } from "./endpoints.ts";
import { repackSubsets, truncateSubsets } from "./plan.ts";

const pod = (name: string, ip: string, { ready = true, port = 8080 } = {}): NewObject<Pod> & { status: unknown } => ({
  apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default", labels: { app: "web" } }, spec: { nodeName: "n1", containers: [{ name: "c", ports: [{ name: "http", containerPort: port }] }] },
  status: { phase: "Running", podIP: ip, podIPs: [{ ip }], conditions: [{ type: "Ready", status: ready ? "True" : "False", lastTransitionTime: "2026-01-01T00:00:00Z" }] },
});
const service = (spec: Partial<Service["spec"]>): NewObject<Service> => ({ apiVersion: "v1", kind: "Service", metadata: { name: "web", namespace: "default", labels: { team: "x" } }, spec: { clusterIP: "10.43.0.9", ipFamilies: ["IPv4"], ...spec } });

test("a Service's pods become its Endpoints and EndpointSlices, and stay in step", () =>
  withControllers((deps) => [endpointsController(deps), endpointSliceController(deps), endpointSliceMirroringController(deps)], async (api, call) => {
    await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n1", labels: { "topology.kubernetes.io/zone": "z" } }, spec: {} }, call);
    const pods = api.client.resource(PODS);
    const a = await pods.create(pod("a", "10.42.0.1"), call);
    await pods.create(pod("b", "10.42.0.2", { ready: false }), call);
    await pods.create(pod("c", "10.42.0.3", { port: 9090 }), call);
    const web = await api.client.resource(SERVICES).create(service({ selector: { app: "web" }, ports: [{ name: "http", port: 80, targetPort: "http", appProtocol: "kubernetes.io/h2c" }] }), call);
    const slices = await eventually(() => api.all(ENDPOINT_SLICES), (all) => all.length === 2);
    const main = slices.find(({ ports }) => ports?.[0]?.port === 8080)!;
    expect(main.metadata).toMatchObject({
      labels: { team: "x", "kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io" },
      ownerReferences: [{ kind: "Service", uid: web.metadata.uid, controller: true, blockOwnerDeletion: true }], annotations: { "endpoints.kubernetes.io/last-change-trigger-time": web.metadata.creationTimestamp },
    });
    expect(main.ports).toEqual([{ name: "http", port: 8080, protocol: "TCP", appProtocol: "kubernetes.io/h2c" }]);
    expect(main.endpoints).toEqual([
      { addresses: ["10.42.0.1"], conditions: { ready: true, serving: true, terminating: false }, nodeName: "n1", zone: "z", targetRef: { kind: "Pod", namespace: "default", name: "a", uid: a.metadata.uid } },
      { addresses: ["10.42.0.2"], conditions: { ready: false, serving: false, terminating: false }, nodeName: "n1", zone: "z", targetRef: expect.objectContaining({ name: "b" }) },
    ]);
    const [ep] = await eventually(() => api.all(ENDPOINTS), (all) => all.length === 1);
    expect(ep!.subsets?.map(({ addresses = [], notReadyAddresses = [], ports }) => [ports?.[0]?.port, addresses.map(({ ip }) => ip), notReadyAddresses.map(({ ip }) => ip)])).toEqual(
      expect.arrayContaining([[8080, ["10.42.0.1"], ["10.42.0.2"]], [9090, ["10.42.0.3"], []]]));
    expect(ep!.subsets?.[0]?.ports?.[0]?.appProtocol).toBe("kubernetes.io/h2c");

    await pods.delete(a, {}, call); // graceful: it still serves, but gets no new connections
    await eventually(() => api.all(ENDPOINT_SLICES).flatMap((s) => s.endpoints ?? []).find(({ addresses }) => addresses[0] === "10.42.0.1")?.conditions, (c) => c?.terminating === true && c.serving === true && c.ready === false);
    await eventually(() => JSON.stringify(api.all(ENDPOINTS)[0]?.subsets), (text) => !text?.includes("10.42.0.1"));
    await api.client.resource(SERVICES).delete(web, {}, call);
    await eventually(() => api.all(ENDPOINTS), (all) => all.length === 0);
  }));

test("the cluster's own Services without a selector have Endpoints of what their slices say, of the first family, and these are not copied into slices", () =>
  withControllers((deps) => [endpointsController(deps), endpointSliceMirroringController(deps)], async (api, call) => {
    const slices = api.client.resource(ENDPOINT_SLICES), services = api.client.resource(SERVICES);
    const slice = (name: string, { of, manager, ready = true, ip = "10.42.0.1" }: { of: string; manager: string; ready?: boolean; ip?: string }): NewObject<EndpointSlice> => ({
      apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", metadata: { name, namespace: "default", labels: { "kubernetes.io/service-name": of, "endpointslice.kubernetes.io/managed-by": manager } },
      addressType: ip.includes(":") ? "IPv6" : "IPv4", ports: [{ name: "dns", port: 10053, protocol: "UDP" }], endpoints: [{ addresses: [ip], conditions: { ready }, nodeName: `node-${name}` }],
    });
    const made = (name: string) => services.create({ ...service({ ports: [{ name: "dns", port: 53, protocol: "UDP" }] }), metadata: { name, namespace: "default", labels: { team: "x" } } }, call);
    const first = await slices.create(slice("a", { of: "dns", manager: "coracle-dns" }), call);
    await slices.create(slice("b", { of: "dns", manager: "coracle-dns", ready: false, ip: "10.42.1.1" }), call);
    await slices.create(slice("c", { of: "dns", manager: "coracle-dns", ip: "fd00::1" }), call);
    await slices.create(slice("d", { of: "theirs", manager: "somebody" }), call);
    await made("theirs");
    const dns = await made("dns");
    const [own] = await eventually(() => api.all(ENDPOINTS), (all) => all[0]?.subsets?.[0]?.notReadyAddresses !== undefined);
    expect(own!.metadata).toMatchObject({ name: "dns", labels: { team: "x", "endpointslice.kubernetes.io/skip-mirror": "true" } });
    expect(own!.subsets).toEqual([{ addresses: [{ ip: "10.42.0.1", nodeName: "node-a" }], notReadyAddresses: [{ ip: "10.42.1.1", nodeName: "node-b" }], ports: [{ name: "dns", port: 10053, protocol: "UDP" }] }]);
    await slices.delete(first, {}, call);
    await eventually(() => api.all(ENDPOINTS)[0]?.subsets?.[0], (subset) => subset?.addresses === undefined && subset?.notReadyAddresses?.length === 1);
    expect([api.all(ENDPOINTS).length, api.all(ENDPOINT_SLICES).length]).toEqual([1, 3]);
    await services.delete(dns, {}, call);
    await eventually(() => api.all(ENDPOINTS), (all) => all.length === 0);
  }));

test("slices of many nodes that come one after the other are written into Endpoints together", () =>
  withControllers((deps) => [endpointsController(deps)], async (api, call) => {
    await api.client.resource(SERVICES).create({ ...service({ ports: [{ name: "dns", port: 53, protocol: "UDP" }] }), metadata: { name: "dns", namespace: "default" } }, call);
    for (let i = 0; i < 40; i++) {
      await api.client.resource(ENDPOINT_SLICES).create({
        apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", metadata: { name: `dns-${i}`, namespace: "default", labels: { "kubernetes.io/service-name": "dns", "endpointslice.kubernetes.io/managed-by": "coracle-dns" } },
        addressType: "IPv4", ports: [{ name: "dns", port: 10053, protocol: "UDP" }], endpoints: [{ addresses: [`10.42.${i}.1`] }],
      }, call);
      await Bun.sleep(2);
    }
    await eventually(() => api.all(ENDPOINTS)[0]?.subsets?.[0]?.addresses?.length, (count) => count === 40);
    expect(api.requests.filter((request) => request.includes("/endpoints/")).length).toBeLessThan(20);
  }));

test("a slice that has lost its owner is left so, as when a Service goes without its slices", () =>
  withControllers((deps) => [endpointSliceController(deps)], async (api, call) => {
    const make = (name: string) => { const made = service({ selector: { app: "web" }, ports: [{ port: 80 }] }); return api.client.resource(SERVICES).create({ ...made, metadata: { ...made.metadata, name } }, call); };
    const ownersOf = (name: string) => api.all(ENDPOINT_SLICES).find(({ metadata }) => metadata.labels?.["kubernetes.io/service-name"] === name)?.metadata.ownerReferences?.length;
    await make("web");
    await eventually(() => ownersOf("web"), (count) => count === 1);
    await api.client.resource(ENDPOINT_SLICES).patch(api.all(ENDPOINT_SLICES)[0]!, "application/merge-patch+json", { metadata: { ownerReferences: null } }, call);
    await make("later");
    await eventually(() => ownersOf("later"), (count) => count === 1);
    expect(ownersOf("web")).toBeUndefined();
  }));

test("a pod on a node that is not there is no endpoint; that is told until the node comes", () =>
  withControllers((deps) => [endpointSliceController(deps)], async (api, call) => {
    await api.client.resource(PODS).create(pod("a", "10.42.0.1"), call);
    await api.client.resource(SERVICES).create(service({ selector: { app: "web" }, ports: [{ port: 80 }] }), call);
    const [event] = await eventually(() => api.all(EVENTS), (all) => all.length > 0);
    expect([event?.type, event?.reason, event?.message]).toEqual(["Warning", "FailedToUpdateEndpointSlices", "Error updating Endpoint Slices for Service default/web: skipping Pod a for Service default/web: Node n1 Not Found"]);
    expect(api.all(ENDPOINT_SLICES).flatMap(({ endpoints }) => endpoints ?? [])).toEqual([]);
    await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" }, spec: {} }, call);
    await eventually(() => api.all(ENDPOINT_SLICES).flatMap(({ endpoints }) => endpoints ?? []).map(({ addresses }) => addresses[0]).join(), (addresses) => addresses === "10.42.0.1");
  }));

test("of several pods whose nodes are not there all are told of, in brackets", () =>
  withControllers((deps) => [endpointSliceController(deps)], async (api, call) => {
    for (const [name, ip] of [["a", "10.42.0.1"], ["b", "10.42.0.2"]] as const) await api.client.resource(PODS).create(pod(name, ip), call);
    await api.client.resource(SERVICES).create(service({ selector: { app: "web" }, ports: [{ port: 80 }] }), call);
    const said = "Error updating Endpoint Slices for Service default/web: [skipping Pod a for Service default/web: Node n1 Not Found, skipping Pod b for Service default/web: Node n1 Not Found]";
    await eventually(() => api.all(EVENTS).map(({ message }) => message), (all) => all.includes(said));
  }));

test("of two families one has its endpoints though the other's slice is refused", () =>
  withControllers((deps) => [endpointSliceController(deps)], async (api, call) => {
    api.fail = ({ method, path, body }) => (method === "POST" && path.endsWith("/endpointslices") && (body as EndpointSlice).addressType === "IPv4" ? new Error("no") : undefined);
    await api.client.resource(SERVICES).create(service({ ipFamilies: ["IPv4", "IPv6"], selector: { app: "web" }, ports: [{ port: 80 }] }), call);
    await eventually(() => api.all(ENDPOINT_SLICES).map(({ addressType }) => addressType).join(), (types) => types === "IPv6");
    await eventually(() => api.all(EVENTS).map(({ message }) => message), (all) => all.includes("Error updating Endpoint Slices for Service default/web: failed to create EndpointSlice for Service default/web: no"));
  }));

test("slices of another Service of the name are not taken over: they go, and new ones come", () =>
  withControllers((deps) => [endpointSliceController(deps)], async (api, call) => {
    const labels = { "kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io" };
    const ownerReferences = [{ apiVersion: "v1", kind: "Service", name: "web", uid: "of-before", controller: true, blockOwnerDeletion: true }];
    await api.client.resource(ENDPOINT_SLICES).create({ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", metadata: { name: "web-old", namespace: "default", labels, ownerReferences }, addressType: "IPv4", endpoints: [{ addresses: ["10.1.2.3"] }], ports: [{ name: "", port: 80, protocol: "TCP" }] }, call);
    const web = await api.client.resource(SERVICES).create(service({ selector: { app: "web" }, ports: [{ port: 80 }] }), call);
    const [slice] = await eventually(() => api.all(ENDPOINT_SLICES), (all) => all.length === 1 && all[0]!.metadata.name !== "web-old");
    expect(slice!.metadata.ownerReferences?.map(({ uid }) => uid)).toEqual([web.metadata.uid]);
  }));

test("an IPv6 address has its shortest spelling, whatever was written", () =>
  withControllers((deps) => [endpointsController(deps), endpointSliceController(deps), endpointSliceMirroringController(deps)], async (api, call) => {
    await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" }, spec: {} }, call);
    await api.client.resource(PODS).create(pod("a", "FD00:0::1"), call);
    await api.client.resource(SERVICES).create(service({ clusterIP: "fd01::9", ipFamilies: ["IPv6"], selector: { app: "web" }, ports: [{ port: 80 }] }), call);
    await api.client.resource(ENDPOINTS).create({ apiVersion: "v1", kind: "Endpoints", metadata: { name: "own", namespace: "default" }, subsets: [{ addresses: [{ ip: "2001:DB8:0::1" }], ports: [{ port: 80, protocol: "TCP" }] }] }, call);
    const own = service({ ports: [{ port: 80 }] });
    await api.client.resource(SERVICES).create({ ...own, metadata: { ...own.metadata, name: "own" } }, call);
    await eventually(() => api.all(ENDPOINT_SLICES).flatMap(({ endpoints }) => (endpoints ?? []).flatMap(({ addresses }) => addresses)).sort(), (all) => all.join() === "2001:db8::1,fd00::1");
    await eventually(() => api.all(ENDPOINTS).find(({ metadata }) => metadata.name === "web")?.subsets?.[0]?.addresses?.[0]?.ip, (ip) => ip === "fd00::1");
  }));

test("a Service may come before its pods; more than a thousand fill slices of a hundred, and Endpoints that say they are cut off", () =>
  withControllers((deps) => [endpointsController(deps), endpointSliceController(deps)], async (api, call) => {
    await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" }, spec: {} }, call);
    await api.client.resource(SERVICES).create(service({ selector: { app: "web" }, ports: [{ port: 80, targetPort: 8080 }] }), call);
    await eventually(() => api.all(ENDPOINT_SLICES), (all) => all.length === 1 && (all[0]!.endpoints ?? []).length === 0);
    const pods = api.client.resource(PODS);
    const made = await Promise.all(Array.from({ length: 1001 }, (_, i) => pods.create(pod(`p${i}`, `10.42.${i >> 8}.${i & 255}`), call)));
    await eventually(() => api.all(ENDPOINT_SLICES).map((one) => one.endpoints?.length ?? 0), (sizes) => sizes.reduce((sum, size) => sum + size) === 1001 && sizes.every((size) => size <= 100));
    const held = () => ({ count: api.all(ENDPOINTS)[0]?.subsets?.[0]?.addresses?.length, cut: api.all(ENDPOINTS)[0]?.metadata.annotations?.["endpoints.kubernetes.io/over-capacity"] });
    await eventually(held, ({ count, cut }) => count === 1000 && cut === "truncated");
    const ends = api.client.resource(ENDPOINTS);
    await ends.patch(api.all(ENDPOINTS)[0]!, "application/merge-patch+json", { metadata: { annotations: { "endpoints.kubernetes.io/over-capacity": "warning" } } }, call); // as versions before 1.22 said it
    await api.client.resource(SERVICES).patch(api.all(SERVICES)[0]!, "application/merge-patch+json", { metadata: { annotations: { looked: "at" } } }, call);
    await eventually(held, ({ cut }) => cut === "truncated");
    for (const one of made.slice(0, 2)) await pods.delete(one, { gracePeriodSeconds: 0 }, call);
    await eventually(held, ({ count, cut }) => count === 999 && cut === undefined);
  }));

test("a Service that publishes addresses before they are ready calls all of them ready, also those that end, and those of nodes that nobody knows", () =>
  withControllers((deps) => [endpointsController(deps), endpointSliceController(deps)], async (api, call) => {
    const pods = api.client.resource(PODS);
    await pods.create(pod("starting", "10.42.0.1", { ready: false }), call);
    const ending = await pods.create(pod("ending", "10.42.0.2"), call);
    await pods.delete(ending, {}, call);
    await api.client.resource(SERVICES).create(service({ clusterIP: "None", publishNotReadyAddresses: true, selector: { app: "web" }, ports: [{ port: 80, targetPort: 8080 }] }), call);
    const [slice] = await eventually(() => api.all(ENDPOINT_SLICES), (all) => all[0]?.endpoints?.length === 2);
    expect(Object.fromEntries(slice!.endpoints!.map(({ addresses: [ip], conditions }) => [ip, conditions]))).toEqual({
      "10.42.0.1": { ready: true, serving: false, terminating: false }, "10.42.0.2": { ready: true, serving: true, terminating: true },
    });
    const [ep] = await eventually(() => api.all(ENDPOINTS), (all) => all.length === 1);
    expect(ep!.subsets?.map(({ addresses, notReadyAddresses }) => [addresses?.map(({ ip }) => ip), notReadyAddresses])).toEqual([[["10.42.0.1", "10.42.0.2"], undefined]]);
  }));

test("a Service without a selector gets neither, and what others have made for it is left alone", () =>
  withControllers((deps) => [endpointsController(deps), endpointSliceController(deps), endpointSliceMirroringController(deps)], async (api, call) => {
    const own = await api.client.resource(ENDPOINT_SLICES).create({ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", metadata: { name: "by-hand", namespace: "default", labels: { "kubernetes.io/service-name": "web" } }, addressType: "IPv4", endpoints: [{ addresses: ["10.1.2.3"] }], ports: [{ name: "", port: 9376, protocol: "TCP" }] }, call);
    await api.client.resource(SERVICES).create(service({ ports: [{ port: 80 }] }), call);
    await api.client.resource(SERVICES).create({ ...service({ selector: { app: "web" }, ports: [{ port: 80 }] }), metadata: { name: "other", namespace: "default" } }, call);
    await eventually(() => api.all(ENDPOINTS), (all) => all.length === 1); // of the other, which came later
    await eventually(() => api.all(ENDPOINT_SLICES), (all) => all.length === 2);
    expect(api.all(ENDPOINTS)[0]!.metadata.name).toBe("other");
    expect(api.all(ENDPOINT_SLICES).find(({ metadata }) => metadata.name === "by-hand")).toEqual(own);
  }));

test("Endpoints of a Service without a selector are mirrored", () =>
  withControllers((deps) => [endpointsController(deps), endpointSliceController(deps), endpointSliceMirroringController(deps)], async (api, call) => {
    const endpoints = api.client.resource(ENDPOINTS);
    const ep = await endpoints.create({ apiVersion: "v1", kind: "Endpoints", metadata: { name: "web", namespace: "default", labels: { own: "1" } }, subsets: [{ addresses: [{ ip: "192.0.2.1" }, { ip: "2001:db8::1" }], ports: [{ port: 80, protocol: "TCP" }] }] }, call);
    await api.client.resource(SERVICES).create(service({ ports: [{ port: 80 }] }), call);
    const slices = await eventually(() => api.all(ENDPOINT_SLICES), (all) => all.length === 2);
    expect(slices.map(({ addressType, endpoints: held, metadata }) => [addressType, held?.[0]?.addresses[0], metadata.labels?.["own"]]).sort()).toEqual([["IPv4", "192.0.2.1", "1"], ["IPv6", "2001:db8::1", "1"]]);
    await endpoints.update({ ...ep, subsets: [{ addresses: [{ ip: "192.0.2.2" }], ports: [{ port: 81, protocol: "TCP" }] }] }, call);
    await eventually(() => api.all(ENDPOINT_SLICES).map((s) => [s.ports?.[0]?.port, s.endpoints?.[0]?.addresses[0]]), (all) => JSON.stringify(all) === '[[81,"192.0.2.2"]]');
  }));

test("subsets are packed the same way whatever their order, and cut to capacity ready ones first", () => {
  const one = { addresses: [{ ip: "10.0.0.1" }], ports: [{ name: "a", port: 1 }] };
  const two = { addresses: [{ ip: "10.0.0.1" }], ports: [{ name: "b", port: 2 }] };
  const three = { notReadyAddresses: [{ ip: "10.0.0.2" }], ports: [{ name: "b", port: 2 }] };
  expect(repackSubsets([one, two])).toEqual([{ addresses: [{ ip: "10.0.0.1" }], ports: [{ name: "a", port: 1 }, { name: "b", port: 2 }] }]);
  expect(repackSubsets([three, two, one])).toEqual(repackSubsets([one, two, three]));
  const both = { addresses: [{ ip: "10.0.0.1", nodeName: "first" }], notReadyAddresses: [{ ip: "10.0.0.1", nodeName: "second" }], ports: [{ port: 1 }] };
  expect(repackSubsets([both])).toEqual([{ notReadyAddresses: [{ ip: "10.0.0.1", nodeName: "first" }], ports: [{ port: 1 }] }]); // what is said to be both is not ready
  expect(repackSubsets([both, { addresses: [{ ip: "10.0.0.1" }], ports: [{ port: 1 }] }])).toEqual(repackSubsets([both]));
  const many = (n: number, prefix: string) => Array.from({ length: n }, (_, i) => ({ ip: `${prefix}.${i}` }));
  const cut = truncateSubsets([{ addresses: many(600, "a"), notReadyAddresses: many(600, "b") }, { addresses: many(200, "c"), notReadyAddresses: many(200, "d") }]);
  expect(cut.truncated).toBe(true);
  expect(cut.subsets.map(({ addresses, notReadyAddresses }) => [addresses?.length, notReadyAddresses?.length])).toEqual([[600, 150], [200, 50]]);
});
