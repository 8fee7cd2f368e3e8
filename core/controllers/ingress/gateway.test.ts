import { expect, test } from "vitest";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import type { CustomResourceDefinition } from "../../api/gen/apiextensions.v1.ts";
import type { Service } from "../../api/gen/core.v1.ts";
import type { NewObject } from "../../api/meta/object-meta.ts";
import { statusError } from "../../api/meta/status-error.ts";
import type { ResourceRef } from "../../client/client.ts";
import { CUSTOM_RESOURCE_DEFINITIONS, SERVICES } from "../../client/resources.ts";
import { gatewaySource } from "../../ingress/gateway-source.ts";
import { GATEWAY_CLASSES, GATEWAYS, type Gateway, HTTP_ROUTES, type HttpRoute, type Listener, REFERENCE_GRANTS } from "../../ingress/gateway-types.ts";
import { systemClock as clock } from "../../lifecycle/clock.ts";
import { gatewayController } from "./gateway.ts";
import { ingressController } from "./ingress.ts";
import { noGatewayController } from "./no-gateway.ts";

const definition = { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name: "httproutes.gateway.networking.k8s.io", annotations: { "gateway.networking.k8s.io/bundle-version": "v1.6.1" } }, spec: { versions: [{ name: "v1", served: true }] }, status: { conditions: [{ type: "Established", status: "True" }] } } as unknown as NewObject<CustomResourceDefinition>;
const gateway = (name: string, listeners: readonly Partial<Listener>[]): NewObject<Gateway> => ({ apiVersion: "gateway.networking.k8s.io/v1", kind: "Gateway", metadata: { name, namespace: "default" }, spec: { gatewayClassName: "coracle", listeners: listeners.map((one, i) => ({ name: `l${i}`, port: 80, protocol: "HTTP", ...one })) } });

test("a Gateway is reached at the nodes' ports; one that does not go together with it at an address of its own, and is not programmed before it has one", async () => {
  const api = fakeApi({ clock });
  for (const ref of [GATEWAY_CLASSES, GATEWAYS, HTTP_ROUTES, REFERENCE_GRANTS]) api.serve(ref as ResourceRef);
  await withControllers((deps) => {
    const source = gatewaySource(deps.informers), reserved = [{ protocol: "TCP", port: 6443, why: "the API server's" }] as const;
    return [ingressController({ ...deps, gateways: source, reserved }), gatewayController({ ...deps, clock, source, reserved })];
  }, async (_, call) => {
    const services = api.client.resource(SERVICES), gateways = api.client.resource(GATEWAYS);
    const shared = (): Service | undefined => api.all(SERVICES).find(({ metadata }) => metadata.name === "coracle-ingress"), own = (): Service | undefined => api.all(SERVICES).find(({ metadata }) => metadata.namespace === "default");
    const portsOf = (service: Service | undefined): string => (service?.spec?.ports ?? []).map(({ name, targetPort }) => `${name}→${targetPort}`).join();
    const told = (name: string): string => {
      const { status } = api.all(GATEWAYS).find(({ metadata }) => metadata.name === name) ?? {};
      return [...(status?.conditions ?? []).map(({ type, reason }) => `${type} ${reason}`), ...(status?.addresses ?? []).map(({ value }) => value)].join();
    };
    await api.client.resource(CUSTOM_RESOURCE_DEFINITIONS).create(definition, call);
    await eventually(() => api.all(GATEWAY_CLASSES)[0]?.status?.supportedFeatures?.some(({ name }) => name === "HTTPRouteRequestMirror"), (said) => said === true);
    await gateways.create(gateway("a", [{}, { port: 8080 }, { port: 6443 }]), call);
    await eventually(() => portsOf(shared()), (ports) => ports === "http→10080,https→10443,gateway-8080→10500");
    await services.updateStatus({ ...shared()!, status: { loadBalancer: { ingress: [{ ip: "10.0.0.1" }] } } }, call);
    await eventually(() => told("a"), (text) => text === "Accepted ListenersNotValid,Programmed Programmed,10.0.0.1");
    const b = await gateways.create(gateway("b", [{ port: 8080 }, { port: 81 }]), call);
    await eventually(() => portsOf(own()), (ports) => ports === "gateway-8080→10501,gateway-81→10502");
    await eventually(() => told("b"), (text) => text === "Accepted Accepted,Programmed AddressNotAssigned");
    await services.update({ ...own()!, spec: { ...own()!.spec, clusterIPs: ["10.43.0.9"] } }, call); // as the API server does
    await eventually(() => told("b"), (text) => text === "Accepted Accepted,Programmed Programmed,10.43.0.9");
    expect(new Set([...portsOf(shared()).matchAll(/→(\d+)/g), ...portsOf(own()).matchAll(/→(\d+)/g)].map(([, port]) => port)).size, "each port of the nodes once").toBe(5);
    await gateways.delete(b, {}, call);
    await eventually(own, (found) => found === undefined);
    await eventually(() => portsOf(shared()), (ports) => ports === "http→10080,https→10443,gateway-8080→10500");
  }, { api });
});

test("a route is told when its Service becomes another one's name, which no route follows, and when it is one with endpoints again", async () => {
  const api = fakeApi({ clock });
  for (const ref of [GATEWAY_CLASSES, GATEWAYS, HTTP_ROUTES, REFERENCE_GRANTS]) api.serve(ref as ResourceRef);
  await withControllers((deps) => [gatewayController({ ...deps, clock, source: gatewaySource(deps.informers), reserved: [] })], async (_, call) => {
    const services = api.client.resource(SERVICES), told = (): string | undefined => api.all(HTTP_ROUTES)[0]?.status?.parents?.[0]?.conditions?.find(({ type }) => type === "ResolvedRefs")?.reason;
    const web = await services.create({ apiVersion: "v1", kind: "Service", metadata: { name: "web", namespace: "default" }, spec: { type: "ClusterIP" } }, call);
    await api.client.resource(CUSTOM_RESOURCE_DEFINITIONS).create(definition, call);
    await api.client.resource(GATEWAYS).create(gateway("a", [{}]), call);
    const route: NewObject<HttpRoute> = { apiVersion: "gateway.networking.k8s.io/v1", kind: "HTTPRoute", metadata: { name: "r", namespace: "default" }, spec: { parentRefs: [{ name: "a" }], rules: [{ backendRefs: [{ name: "web", port: 80 }] }] } };
    await api.client.resource(HTTP_ROUTES).create(route, call);
    await eventually(told, (reason) => reason === "ResolvedRefs");
    const alias = await services.update({ ...web, spec: { type: "ExternalName", externalName: "example.com" } }, call);
    await eventually(told, (reason) => reason === "UnsupportedValue");
    await services.update({ ...alias, spec: { type: "ClusterIP" } }, call);
    await eventually(told, (reason) => reason === "ResolvedRefs");
  }, { api });
});

test("a Gateway whose Service or status is refused keeps nothing from the others", async () => {
  const api = fakeApi({ clock });
  for (const ref of [GATEWAY_CLASSES, GATEWAYS, HTTP_ROUTES, REFERENCE_GRANTS]) api.serve(ref as ResourceRef);
  api.fail = ({ method, path }) => {
    const isRefused = (method === "POST" && path === "/api/v1/namespaces/full/services") || (method === "PUT" && path.endsWith("/gateways/b/status"));
    return isRefused ? statusError({ code: 403, reason: "Forbidden", message: "exceeded quota" }) : undefined;
  };
  await withControllers((deps) => {
    const source = gatewaySource(deps.informers);
    return [ingressController({ ...deps, gateways: source, reserved: [] }), gatewayController({ ...deps, clock, source, reserved: [] })];
  }, async (_, call) => {
    for (const [name, namespace] of [["a", "default"], ["b", "full"], ["c", "roomy"]] as const) { // each wants the port for itself
      const one = gateway(name, [{ port: 8080 }]);
      await api.client.resource(GATEWAYS).create({ ...one, metadata: { ...one.metadata, namespace } }, call);
    }
    await api.client.resource(CUSTOM_RESOURCE_DEFINITIONS).create(definition, call);
    await eventually(() => api.all(SERVICES).map(({ metadata }) => metadata.namespace).sort().join(), (namespaces) => namespaces === "kube-system,roomy");
    await eventually(() => api.all(GATEWAYS).filter(({ status }) => status?.conditions?.some(({ type }) => type === "Accepted")).map(({ metadata }) => metadata.name).sort().join(), (names) => names === "a,c");
  }, { api });
});

test("where nodes have no ingress any more nothing says that Gateways and routes are served; what others have said stays", async () => {
  const api = fakeApi({ clock });
  for (const ref of [GATEWAY_CLASSES, GATEWAYS, HTTP_ROUTES, REFERENCE_GRANTS]) api.serve(ref as ResourceRef);
  const theirs = { parentRef: { name: "other" }, controllerName: "example.com/other", conditions: [] };
  const told = (): unknown => [
    api.all(GATEWAY_CLASSES)[0]?.status?.conditions?.map(({ type, status }) => `${type} ${status}`),
    api.all(GATEWAYS).map(({ status }) => [status?.conditions?.map(({ type, status: said }) => `${type} ${said}`), status?.listeners?.length ?? 0, status?.addresses?.length ?? 0]),
    api.all(HTTP_ROUTES)[0]?.status?.parents?.map(({ controllerName }) => controllerName),
  ];
  await withControllers((deps) => [gatewayController({ ...deps, clock, source: gatewaySource(deps.informers), reserved: [] })], async (_, call) => {
    await api.client.resource(CUSTOM_RESOURCE_DEFINITIONS).create(definition, call);
    await api.client.resource(GATEWAYS).create(gateway("a", [{}]), call);
    await api.client.resource(HTTP_ROUTES).create({ apiVersion: "gateway.networking.k8s.io/v1", kind: "HTTPRoute", metadata: { name: "r", namespace: "default" }, spec: { parentRefs: [{ name: "a" }, { name: "other" }] } } as NewObject<HttpRoute>, call);
    await eventually(() => JSON.stringify(told()), (text) => text.includes("Accepted True") && text.includes("coracle.io"));
  }, { api });
  const call = { signal: new AbortController().signal }, [route] = api.all(HTTP_ROUTES);
  await api.client.resource(HTTP_ROUTES).updateStatus({ ...route!, status: { parents: [...route!.status!.parents!, theirs] } }, call);
  await withControllers((deps) => [noGatewayController({ ...deps, source: gatewaySource(deps.informers) })], async () => {
    await eventually(() => JSON.stringify(told()), (text) => text === JSON.stringify([["Accepted Unknown"], [[["Accepted Unknown", "Programmed Unknown"], 0, 0]], ["example.com/other"]]));
  }, { api });
});
