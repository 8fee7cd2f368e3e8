import { describe, expect, test } from "vitest";
import type { Service } from "../api/gen/core.v1.ts";
import type { Endpoint, EndpointSlice } from "../api/gen/discovery.v1.ts";
import type { HTTPIngressPath, Ingress, IngressSpec } from "../api/gen/networking.v1.ts";
import { aliasOf, endpointsOf } from "./endpoints.ts";
import { ingressCertificates, ingressRoutes } from "./ingress-routes.ts";
import { Reads } from "../../test/reads.ts";
import type { RoutedRequest } from "./host-routes.ts";
import { rewritePath, type Route, routeTable } from "./route-table.ts";

const path = (value: string, pathType: string, service = value + pathType): HTTPIngressPath => ({ path: value, pathType, backend: { service: { name: service, port: { number: 80 } } } });
const ingress = (spec: IngressSpec, metadata: { name?: string; creationTimestamp?: string } = {}): Ingress => ({ apiVersion: "networking.k8s.io/v1", kind: "Ingress", metadata: { name: "web", namespace: "default", ...metadata } as Ingress["metadata"], spec });
const request = (url: string, rest: Partial<RoutedRequest> = {}): RoutedRequest => ({ host: url.slice(0, url.indexOf("/")), path: url.slice(url.indexOf("/")), method: "GET", header: () => undefined, query: () => undefined, ...rest });
const serviceOf = (route: Route | undefined): string => (route?.action.type === "forward" ? route.action.backends[0]!.service : route === undefined ? "none" : route.action.type);

/** The table of https://kubernetes.io/docs/concepts/services-networking/ingress/#examples */
describe("paths", () => {
  test.each<[paths: [string, string][], asked: string, found: string]>([
    [[["/", "Prefix"]], "/any/thing", "/Prefix"], [[["/foo", "Exact"]], "/foo", "/fooExact"], [[["/foo", "Exact"]], "/bar", "none"], [[["/foo", "Exact"]], "/foo/", "none"], [[["/foo/", "Exact"]], "/foo", "none"],
    [[["/foo", "Prefix"]], "/foo", "/fooPrefix"], [[["/foo", "Prefix"]], "/foo/", "/fooPrefix"], [[["/foo/", "Prefix"]], "/foo", "/foo/Prefix"], [[["/foo/", "Prefix"]], "/foo/", "/foo/Prefix"],
    [[["/aaa/bb", "Prefix"]], "/aaa/bbb", "none"], [[["/aaa/bbb", "Prefix"]], "/aaa/bbb", "/aaa/bbbPrefix"], [[["/aaa/bbb/", "Prefix"]], "/aaa/bbb", "/aaa/bbb/Prefix"], [[["/aaa/bbb", "Prefix"]], "/aaa/bbb/ccc", "/aaa/bbbPrefix"], [[["/aaa/bbb", "Prefix"]], "/aaa/bbbxyz", "none"],
    [[["/", "Prefix"], ["/aaa", "Prefix"]], "/aaa/ccc", "/aaaPrefix"], [[["/", "Prefix"], ["/aaa", "Prefix"], ["/aaa/bbb", "Prefix"]], "/aaa/bbb", "/aaa/bbbPrefix"], [[["/", "Prefix"], ["/aaa", "Prefix"], ["/aaa/bbb", "Prefix"]], "/ccc", "/Prefix"],
    [[["/foo", "Prefix"], ["/foo", "Exact"]], "/foo", "/fooExact"], [[["/Foo", "Prefix"]], "/foo", "none"], [[["/foo", "ImplementationSpecific"]], "/foo/x", "/fooImplementationSpecific"],
    [[["/%7eme", "Exact"]], "/~me", "/%7emeExact"], [[["/caf%c3%a9", "Prefix"]], "/caf%C3%A9/x", "/caf%c3%a9Prefix"], [[["/café", "Exact"]], "/caf%C3%A9", "/caféExact"],
  ])("%j: %s → %s", (paths, asked, found) => {
    const table = routeTable(ingressRoutes(ingress({ rules: [{ http: { paths: paths.map(([value, type]) => path(value, type)) } }] })));
    expect(serviceOf(table.find(request(`x${asked}`)))).toBe(found);
  });
});

test("hosts: the name itself, a wildcard for one label, then rules without a host", () => {
  const rule = (host: string | undefined, service: string, at = "/") => ({ ...(host === undefined ? {} : { host }), http: { paths: [path(at, "Prefix", service)] } });
  const table = routeTable(ingressRoutes(ingress({ rules: [rule("*.foo.com", "wild"), rule("Bar.foo.com", "bar", "/bar"), rule(undefined, "any")] })));
  const found = ["bar.foo.com/bar", "bar.foo.com/", "x.foo.com/", "baz.bar.foo.com/", "foo.com/", "other/"].map((url) => serviceOf(table.find(request(url))));
  expect(found).toEqual(["bar", "none", "wild", "any", "any", "any"]);
});

test("default backends take what nobody else takes, of their own hosts first; the older Ingress wins", () => {
  const backend = (name: string) => ({ service: { name, port: { name: "http" } } });
  const table = routeTable([
    ...ingressRoutes(ingress({ defaultBackend: backend("young"), rules: [{ host: "a", http: { paths: [path("/x", "Exact", "late")] } }] }, { name: "young", creationTimestamp: "2026-02-01T00:00:00Z" })),
    ...ingressRoutes(ingress({ defaultBackend: backend("old"), rules: [{ host: "b", http: { paths: [path("/x", "Exact", "x")] } }, { host: "a", http: { paths: [path("/x", "Exact", "early")] } }] }, { name: "old", creationTimestamp: "2026-01-01T00:00:00Z" })),
    ...ingressRoutes(ingress({ rules: [{ host: "c", http: { paths: [path("/x", "Exact", "c")] } }, { http: { paths: [{ path: "/res", pathType: "Exact", backend: { resource: { kind: "Bucket", name: "b" } } }] } }] })),
  ]);
  expect(["a/x", "b/y", "c/y", "d/y", "d/res"].map((url) => serviceOf(table.find(request(url))))).toEqual(["early", "old", "old", "old", "fail"]);
});

test("a route with more conditions comes first, and rewrites keep the rest of the path", () => {
  const route = (service: string, match: Partial<Route["match"]>): Route => ({ host: "*.x", labels: "many", match: { path: { type: "Prefix", value: "/" }, ...match }, fallback: false, source: "", age: "", action: { type: "forward", backends: [{ namespace: "d", service, port: 80, weight: 1 }] } });
  const table = routeTable([route("plain", {}), route("query", { query: [{ name: "q", value: "1" }] }), route("header", { headers: [{ name: "h", value: "1" }] }), route("post", { method: "POST" })]);
  const yes = { header: () => "1", query: () => "1" };
  expect([request("a.b.x/"), request("a.x/", yes), request("a.x/", { query: () => "1" }), request("a.x/", { ...yes, method: "POST" })].map((one) => serviceOf(table.find(one)))).toEqual(["plain", "header", "query", "post"]);
  const cases: [string, string, string, string][] = [["/foo/bar", "/foo", "/xyz", "/xyz/bar"], ["/foo/bar", "/foo/", "/xyz", "/xyz/bar"], ["/foo", "/foo", "/", "/"], ["/foo/bar", "/foo", "/", "/bar"], ["/foo/", "/foo", "/xyz/", "/xyz/"]];
  expect(cases.map(([at, prefix, value]) => rewritePath(at, { type: "ReplacePrefixMatch", value }, prefix))).toEqual(cases.map(([, , , result]) => result));
});

test("certificates: for the hosts that are listed, or else those of the rules", () => {
  const use = (host: string, secret: string) => ({ host, labels: "one", namespace: "default", secret });
  expect(ingressCertificates(ingress({ rules: [{ host: "a.b" }], tls: [{ hosts: ["X.y", "*.z"], secretName: "s" }, { secretName: "t" }, { hosts: ["none"] }] }))).toEqual([use("x.y", "s"), use("*.z", "s"), use("a.b", "t")]);
  expect(ingressCertificates(ingress({ tls: [{ secretName: "t" }] }))).toEqual([use("", "t")]);
});

test("endpoints: ready ones of the port, by name or number; ending ones only when there is nothing else", () => {
  const service = { spec: { ports: [{ name: "http", port: 80, appProtocol: "kubernetes.io/h2c" }, { name: "dns", port: 80, protocol: "UDP" }] } } as unknown as Service;
  const slice = (endpoints: Partial<Endpoint>[], ports = [{ name: "http", port: 8080 }]): EndpointSlice => ({ addressType: "IPv4", endpoints, ports }) as EndpointSlice;
  const gone = { addresses: ["10.0.0.3"], conditions: { ready: false, serving: true, terminating: true } }, up = { addresses: ["10.0.0.1"], conditions: { ready: true } };
  expect(endpointsOf(service, "http", [slice([up, gone]), slice([up], [{ name: "other", port: 1 }])])).toEqual({ endpoints: [{ address: "10.0.0.1", port: 8080 }], appProtocol: "kubernetes.io/h2c", portName: "http" });
  expect(endpointsOf(service, 80, [slice([gone, { addresses: ["10.0.0.4"], conditions: { ready: false } }])])?.endpoints).toEqual([{ address: "10.0.0.3", port: 8080 }]);
  expect(endpointsOf(service, 81, [])).toBeUndefined();
});

test("endpoints at ports that are none are left out, and addresses stored with leading zeros are what they stand for", () => {
  const service = { spec: { ports: [{ port: 80 }] } } as unknown as Service;
  const slice = (address: string, port: number): EndpointSlice => ({ addressType: "IPv4", endpoints: [{ addresses: [address] }], ports: [{ port }] }) as unknown as EndpointSlice;
  expect(endpointsOf(service, 80, [slice("10.0.0.1", 0), slice("10.0.0.2", 65_536), slice("10.0.0.3", -1), slice("010.0.0.4", 8080), slice("::ffff:10.0.0.5", 65_535)])?.endpoints).toEqual([{ address: "10.0.0.4", port: 8080 }, { address: "10.0.0.5", port: 65_535 }]);
});

test("an alias has a port by number, or by a name it lists", () => {
  const alias = (ports?: object[]): Service => ({ spec: { type: "ExternalName", externalName: "example.test.", ports } }) as unknown as Service;
  expect(aliasOf(alias(), 8080)?.endpoints).toEqual([{ address: "example.test", port: 8080, isAlias: true }]);
  expect(aliasOf(alias([{ name: "web", port: 81 }]), "web")?.endpoints[0]?.port).toBe(81);
  expect(aliasOf(alias(), "web")).toBeUndefined();
});

test("certificates without hosts are for those of all rules: of a few of them, for each of the thousands has each otherwise", () => {
  const many = (n: number) => ingressCertificates(ingress({ rules: Array.from({ length: n }, (_, i) => ({ host: `h${i}` })), tls: Array.from({ length: n }, (_, i) => ({ secretName: `s${i}` })) }));
  expect([many(2).map(({ host, secret }) => `${host} ${secret}`), many(1000).length]).toEqual([["h0 s0", "h1 s0", "h0 s1", "h1 s1"], 16_000]);
});

test("of one Ingress' certificates a thousand Secrets are used: each node watches each of them", () => {
  const tls = Array.from({ length: 3000 }, (_, i) => ({ hosts: [`h${i}`], secretName: `s${i % 1500}` }));
  const used = ingressCertificates(ingress({ tls }));
  expect([new Set(used.map(({ secret }) => secret)).size, used.length, used.at(-1)?.host]).toEqual([1000, 2000, "h2499"]);
});

test("the routes of a wildcard are brought into order once, not for each request", () => {
  const reads = new Reads();
  const route = (labels: "one" | "many", value: string): Route => ({ host: "*.a.b", labels, match: { path: { type: "Prefix", value } }, fallback: false, action: { type: "fail", status: 500 }, source: value, age: "" });
  const table = routeTable(reads.of(Array.from({ length: 1000 }, (_, i) => route(i % 2 ? "one" : "many", `/${String(i).padStart(4, "0")}`))));
  const ask = (url: string): number => {
    reads.count = 0;
    expect(table.find(request(url))?.source).toBe("/0001");
    return reads.count;
  };
  expect([ask("x.a.b/0001") > 1000, ask("x.a.b/0001") < 10]).toEqual([true, true]);
});
