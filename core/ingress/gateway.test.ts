import { expect, test } from "vitest";
import { type GatewayWorld, intersection, planGateways } from "./gateway.ts";
import type { Gateway, GatewayClass, GrpcRoute, GrpcRouteMatch, HttpRoute, HttpRouteRule, Listener, TcpRoute, TlsRoute } from "./gateway-types.ts";
import { durationMs, grants } from "./http-route-rules.ts";
import { growth } from "../../test/reads.ts";
import { routeTable } from "./route-table.ts";

const meta = (name: string, namespace = "default") => ({ name, namespace, generation: 1 }) as unknown as Gateway["metadata"];
const gateway = (...listeners: Partial<Listener>[]): Gateway => ({ apiVersion: "gateway.networking.k8s.io/v1", kind: "Gateway", metadata: meta("gw"), spec: { gatewayClassName: "coracle", listeners: listeners.map((one, i) => ({ name: `l${i}`, port: 80, protocol: "HTTP", ...one })) } });
const route = (spec: HttpRoute["spec"], namespace = "default"): HttpRoute => ({ apiVersion: "gateway.networking.k8s.io/v1", kind: "HTTPRoute", metadata: meta("r", namespace), spec: { parentRefs: [{ name: "gw", namespace: "default" }], ...spec } });
const rules = (rule: HttpRouteRule): HttpRoute["spec"] => ({ rules: [{ backendRefs: [{ name: "web", port: 80 }], ...rule }] });
const classes = [{ apiVersion: "", kind: "GatewayClass", metadata: meta("coracle"), spec: { controllerName: "coracle.io/gateway-controller" } }] as GatewayClass[];
const plan = (gateways: Gateway[], routes: HttpRoute[], rest: Partial<GatewayWorld> = {}) => planGateways({
  classes, gateways, routes, grpcRoutes: [], tlsRoutes: [], tcpRoutes: [], tlsPolicies: [], namespaces: new Map([["default", {}], ["b", { team: "b" }]]), addressesOf: () => ["10.0.0.1"], portProblem: () => undefined, hasSecureIngress: false, serviceOf: (_, name) => (name === "web" ? { spec: {} } : name === "alias" ? { spec: { type: "ExternalName" } } : undefined), certificateProblem: () => undefined, authorityProblem: () => undefined, isGranted: () => false, ...rest,
});
const conditionsOf = (list: readonly { readonly type: string; readonly status: string; readonly reason: string }[]): string[] => list.map(({ type, status, reason }) => `${type} ${status} ${reason}`);
const routeConditions = (spec: HttpRoute["spec"], world: Gateway = gateway({}), namespace?: string): string[] => [...plan([world], [route(spec, namespace)]).routeStatus.values()].flat().flatMap(({ conditions }) => conditionsOf(conditions));
const FINE = ["Accepted True Accepted", "ResolvedRefs True ResolvedRefs"];

test("hosts of a route and of a listener: what both have", () => {
  const cases: [string[], string | undefined, string[]][] = [
    [[], undefined, [""]], [[], "*.a", ["*.a"]], [["x.a"], undefined, ["x.a"]], [["x.a", "y.b"], "*.a", ["x.a"]], [["*.a"], "x.a", ["x.a"]], [["*.x.a"], "*.a", ["*.x.a"]], [["X.a"], "x.A", ["x.a"]], [["a"], "*.a", []], [["x.b"], "x.a", []],
  ];
  expect(cases.map(([hosts, listener]) => intersection(hosts, listener))).toEqual(cases.map(([, , both]) => both));
});

test("a request's time and that of asking a backend: the shorter one ends it; 0 is none, and escapes of a path are whatever they stand for", () => {
  const found = (timeouts: { request?: string; backendRequest?: string }) => plan([gateway({})], [route(rules({ matches: [{ path: { type: "Exact", value: "/%7e%c3" } }], timeouts }))]).listeners[0]!.routes[0]!;
  const times = [{}, { request: "10s" }, { backendRequest: "2s" }, { request: "10s", backendRequest: "2s" }, { request: "0s", backendRequest: "2s" }, { request: "3s", backendRequest: "0s" }, { request: "0s" }];
  expect(times.map((one) => (found(one).action as { timeoutMs?: number }).timeoutMs)).toEqual([undefined, 10_000, 2_000, 2_000, 2_000, 3_000, undefined]);
  expect(found({}).match.path).toEqual({ type: "Exact", value: "/~%C3" });
});

test("matches, filters, weights and timeouts become routes", () => {
  const { listeners: [plain, secure] } = plan([gateway({}, { port: 443, protocol: "HTTPS", hostname: "*.secure.test", tls: { certificateRefs: [{ name: "cert" }] } })], [route({
    hostnames: ["a.test", "x.secure.test"],
    rules: [
      { matches: [{ path: { type: "Exact", value: "/go" } }], filters: [{ type: "RequestRedirect", requestRedirect: { scheme: "https", statusCode: 301 } }] },
      {
        matches: [{ path: { value: "/v1" }, headers: [{ name: "X-Beta", value: "1" }], method: "GET" }],
        filters: [{ type: "URLRewrite", urlRewrite: { path: { type: "ReplacePrefixMatch", replacePrefixMatch: "/" } } }, { type: "RequestHeaderModifier", requestHeaderModifier: { set: [{ name: "X-Who", value: "me" }], remove: ["X-Beta"] } }],
        backendRefs: [{ name: "web", port: 80, weight: 9 }, { name: "gone", port: 80 }], timeouts: { request: "1m500ms" },
      },
    ],
  })]);
  const find = (path: string, headers: Record<string, string> = {}, routes = plain!.routes) => routeTable(routes).find({ host: "a.test", path, method: "GET", header: (name) => headers[name], query: () => undefined })?.action;
  expect(find("/go")).toMatchObject({ type: "redirect", redirect: { scheme: "https", statusCode: 301 } });
  expect(find("/v1/x", { "x-beta": "1" })).toMatchObject({
    type: "forward", timeoutMs: 60_500, rewrite: { path: { type: "ReplacePrefixMatch", value: "/" } }, edits: [{ on: "request", set: [{ name: "x-who", value: "me" }], remove: ["x-beta"] }],
    backends: [{ service: "web", port: 80, weight: 9 }, { service: "gone", weight: 1, invalid: true }],
  });
  expect(find("/v1/x")).toBeUndefined();
  expect([...new Set(secure!.routes.map(({ host }) => host))]).toEqual(["x.secure.test"]);
  expect([durationMs("10s"), durationMs("1h2m3s4ms"), durationMs("0s"), durationMs(undefined)]).toEqual([10_000, 3_723_004, 0, 0]);
});

test("what a filter puts into a header is UTF-8, a character for each byte, and one line", () => {
  const add = [{ name: "X", value: "\u010d\u010aEvil: 1" }, { name: "Y", value: "a\r\nEvil: 1" }];
  const [listener] = plan([gateway({})], [route(rules({ filters: [{ type: "RequestHeaderModifier", requestHeaderModifier: { add } }, { type: "ResponseHeaderModifier", responseHeaderModifier: { set: add } }] }))]).listeners;
  const written = [{ name: "x", value: "\u00c4\u008d\u00c4\u008aEvil: 1" }, { name: "y", value: "a Evil: 1" }];
  expect(listener!.routes[0]!.action).toMatchObject({ edits: [{ on: "request", add: written }, { on: "response", set: written }] });
});

test("what a filter puts in a path's place is a path, whatever it says: no end of a line", () => {
  const evil = "/a b\r\nHost: x\r\n\r\nGET /\u00e9";
  const [listener] = plan([gateway({})], [route(rules({ filters: [{ type: "URLRewrite", urlRewrite: { path: { type: "ReplaceFullPath", replaceFullPath: evil } } }], backendRefs: [{ name: "web", port: 80, filters: [{ type: "RequestRedirect", requestRedirect: { path: { type: "ReplacePrefixMatch", replacePrefixMatch: evil } } }] }] }))]).listeners;
  const value = "/a%20b%0D%0AHost:%20x%0D%0A%0D%0AGET%20/%C3%A9";
  expect(listener!.routes[0]!.action).toMatchObject({ rewrite: { path: { type: "ReplaceFullPath", value } }, backends: [{ redirect: { path: { type: "ReplacePrefixMatch", value } } }] });
});

test("mirrors have their share; what a backend's own filters say comes before the rule's", () => {
  const [listener] = plan([gateway({})], [route(rules({
    filters: [{ type: "RequestMirror", requestMirror: { backendRef: { name: "web", port: 81 }, percent: 20 } }, { type: "RequestMirror", requestMirror: { backendRef: { name: "web", port: 82 }, fraction: { numerator: 1, denominator: 4 } } }, { type: "RequestMirror", requestMirror: { backendRef: { name: "gone", port: 83 } } }],
    backendRefs: [{ name: "web", port: 80, filters: [{ type: "URLRewrite", urlRewrite: { hostname: "b.test" } }] }, { name: "web", port: 84, filters: [{ type: "RequestRedirect", requestRedirect: { hostname: "c.test" } }] }],
  }))]).listeners;
  expect(listener!.routes[0]!.action).toMatchObject({
    mirrors: [{ share: 0.2, backend: { port: 81 } }, { share: 0.25, backend: { port: 82 } }],
    backends: [{ port: 80, rewrite: { hostname: "b.test" } }, { port: 84, redirect: { hostname: "c.test", statusCode: 302 } }],
  });
});

test("a route is told whether it is accepted, and whether its references lead anywhere", () => {
  expect(routeConditions(rules({}))).toEqual(FINE);
  expect(routeConditions({ ...rules({}), parentRefs: [{ name: "gw", sectionName: "nope" }] })).toEqual(["Accepted False NoMatchingParent", FINE[1]]);
  expect(routeConditions({ ...rules({}), hostnames: ["b.test"] }, gateway({ hostname: "a.test" }))).toEqual(["Accepted False NoMatchingListenerHostname", FINE[1]]);
  expect(routeConditions(rules({}), gateway({}), "b")).toEqual(["Accepted False NotAllowedByListeners", FINE[1]]);
  expect(routeConditions(rules({}), gateway({ allowedRoutes: { namespaces: { from: "Selector", selector: { matchLabels: { team: "b" } } } } }), "b")).toEqual(FINE);
  expect(routeConditions(rules({ filters: [{ type: "ExtensionRef" }] }))).toEqual(["Accepted False UnsupportedValue", FINE[1]]);
  expect(routeConditions(rules({ filters: [{ type: "RequestMirror", requestMirror: { backendRef: { name: "gone", port: 80 } } }] }))).toEqual([FINE[0], "ResolvedRefs False BackendNotFound"]);
  expect(routeConditions(rules({ backendRefs: [{ name: "gone", port: 80 }] }))).toEqual([FINE[0], "ResolvedRefs False BackendNotFound"]);
  expect(routeConditions(rules({ backendRefs: [{ name: "alias", port: 80 }] }))).toEqual([FINE[0], "ResolvedRefs False UnsupportedValue"]);
  expect(routeConditions(rules({ backendRefs: [{ name: "web", namespace: "b", port: 80 }] }))).toEqual([FINE[0], "ResolvedRefs False RefNotPermitted"]);
  expect(routeConditions({ ...rules({}), parentRefs: [{ name: "other" }] })).toEqual([]);
  const granted = grants([{ metadata: { namespace: "b" }, spec: { from: [{ group: "gateway.networking.k8s.io", kind: "HTTPRoute", namespace: "default" }], to: [{ group: "", kind: "Service", name: "web" }] } }]);
  expect([granted({ kind: "HTTPRoute", namespace: "default" }, { kind: "Service", namespace: "b", name: "web" }), granted({ kind: "HTTPRoute", namespace: "c" }, { kind: "Service", namespace: "b", name: "web" }), granted({ kind: "HTTPRoute", namespace: "default" }, { kind: "Service", namespace: "b", name: "db" })]).toEqual([true, false, false]);
});

test("a Gateway that nothing tells apart from an older one on a port is told why it has a Service of its own", () => {
  const [older, younger] = [...plan([gateway({}, { port: 81 }), { ...gateway({}), metadata: meta("younger") }], []).gatewayStatus.values()];
  const programmed = (status: typeof older) => status?.conditions.find(({ type }) => type === "Programmed")?.message;
  expect([programmed(older), programmed(younger)]).toEqual(["every node serves the Gateway", "every node serves the Gateway, at a Service of its own: on a port, nothing tells it apart from an older one"]);
});

test("a Gateway is told which listeners are served, with how many routes, and where", () => {
  const [status] = [...plan([gateway({}, { port: 6443 }, { protocol: "HTTPS", port: 443 }, { protocol: "UDP" }, { port: 8080 })], [route(rules({}))], { portProblem: (port) => (port === 6443 ? "port 6443/TCP of the nodes is the API server's" : undefined) }).gatewayStatus.values()];
  expect(conditionsOf(status!.conditions)).toEqual(["Accepted True ListenersNotValid", "Programmed True Programmed"]);
  expect(status!.listeners.map(({ attachedRoutes, conditions }) => [attachedRoutes, ...conditionsOf(conditions).slice(0, 3)])).toEqual([
    [1, "Accepted True Accepted", "Programmed True Programmed", "ResolvedRefs True ResolvedRefs"],
    [0, "Accepted False PortUnavailable", "Programmed False Invalid", "ResolvedRefs True ResolvedRefs"],
    [1, "Accepted True Accepted", "Programmed False Invalid", "ResolvedRefs False InvalidCertificateRef"],
    [0, "Accepted False UnsupportedProtocol", "Programmed False Invalid", "ResolvedRefs True ResolvedRefs"],
    [1, "Accepted True Accepted", "Programmed True Programmed", "ResolvedRefs True ResolvedRefs"],
  ]);
  const both = ["HTTPRoute", "GRPCRoute"];
  expect(status!.listeners.map(({ supportedKinds }) => supportedKinds.map(({ kind }) => kind))).toEqual([both, both, both, [], both]);
  expect(status!.addresses).toEqual([{ type: "IPAddress", value: "10.0.0.1" }]);
  expect(plan([gateway({})], [], { classes: [] }).gatewayStatus.size).toBe(0);
});

test("listeners of a Gateway that nobody could tell apart are both refused", () => {
  const [status] = [...plan([gateway({ port: 80 }, { port: 81 }, { port: 81, protocol: "HTTPS" }, { port: 82, hostname: "A.test" }, { port: 82, hostname: "a.test" }, { port: 82, hostname: "*.test" })], []).gatewayStatus.values()];
  expect(status!.listeners.map(({ conditions }) => [conditions[0], conditions[3]].map((one) => `${one!.type} ${one!.status} ${one!.reason}`))).toEqual([
    ["Accepted True Accepted", "Conflicted False NoConflicts"], ...Array.from({ length: 2 }, () => ["Accepted False ProtocolConflict", "Conflicted True ProtocolConflict"]),
    ...Array.from({ length: 2 }, () => ["Accepted False HostnameConflict", "Conflicted True HostnameConflict"]), ["Accepted True Accepted", "Conflicted False NoConflicts"],
  ]);
});

test("addresses that are asked for are given if they are there", () => {
  const status = (addresses: NonNullable<Gateway["spec"]["addresses"]>, at = ["10.0.0.1", "10.0.0.2", "lb.test"]): unknown[] => {
    const one = gateway({});
    const [found] = [...plan([{ ...one, spec: { ...one.spec, addresses } }], [], { addressesOf: () => at }).gatewayStatus.values()];
    return [...conditionsOf(found!.conditions), found!.addresses!.map(({ type, value }) => `${type} ${value}`).join()];
  };
  const accepted = "Accepted True Accepted";
  expect(status([])).toEqual([accepted, "Programmed True Programmed", "IPAddress 10.0.0.1,IPAddress 10.0.0.2,Hostname lb.test"]);
  expect(status([{ value: "10.0.0.2" }])).toEqual([accepted, "Programmed True Programmed", "IPAddress 10.0.0.2"]);
  expect(status([{ type: "Hostname" }])).toEqual([accepted, "Programmed True Programmed", "Hostname lb.test"]);
  expect(status([{ value: "10.0.0.9" }, { type: "IPAddress", value: "10.0.0.1" }])).toEqual([accepted, "Programmed False AddressNotUsable", "IPAddress 10.0.0.1"]);
  expect(status([{ type: "Hostname" }], ["10.0.0.1"])).toEqual([accepted, "Programmed False AddressNotAssigned", ""]);
  expect(status([], [])).toEqual([accepted, "Programmed False AddressNotAssigned", ""]);
  expect(status([{ type: "example.com/pool", value: "x" }])).toEqual(["Accepted False UnsupportedAddress", "Programmed False Invalid", ""]);
});

test("a host is the most specific listener's that has it, and no other's", () => {
  const world = gateway({ name: "any" }, { name: "wild", hostname: "*.a.test" }, { name: "one", hostname: "x.a.test" });
  const to = (sectionName: string, service: string, hostnames?: string[]): HttpRoute => route({ parentRefs: [{ name: "gw", sectionName }], ...(hostnames && { hostnames }), rules: [{ backendRefs: [{ name: service, port: 80 }] }] });
  const { listeners } = plan([world], [to("any", "any"), to("any", "too-specific", ["y.a.test", "b.test"]), to("wild", "wild")], { serviceOf: () => ({ spec: {} }) });
  const table = routeTable(listeners.flatMap(({ routes }) => routes), listeners.map(({ hostname }) => hostname));
  const find = (host: string): string | undefined => {
    const action = table.find({ host, path: "/", method: "GET", header: () => undefined, query: () => undefined })?.action;
    return action?.type === "forward" ? action.backends[0]!.service : action?.type;
  };
  expect(["c.test", "b.test", "y.a.test", "x.a.test", "x.y.a.test"].map(find)).toEqual(["any", "too-specific", "wild", undefined, "wild"]);
});

test("of gRPC's methods those of a service come before those of any, however long, and these before everything", () => {
  const rule = (name: string, ...matches: GrpcRouteMatch[]) => ({ matches, backendRefs: [{ name, port: 80 }] });
  const all: GrpcRoute = { apiVersion: "gateway.networking.k8s.io/v1", kind: "GRPCRoute", metadata: meta("g"), spec: { parentRefs: [{ name: "gw" }], rules: [rule("to-all", { headers: [{ name: "X", value: "1" }] }), rule("to-method", { method: { method: "DoItAllAtOnce" } }), rule("to-service", { method: { service: "a.B" } }), rule("to-both", { method: { service: "a.C", method: "DoItAllAtOnce" } })] } };
  const table = routeTable(plan([gateway({})], [], { grpcRoutes: [all] }).listeners[0]!.routes);
  const find = (path: string) => table.find({ host: "x", path, method: "POST", header: (name) => (name === "x" ? "1" : "application/grpc"), query: () => undefined })?.action;
  const found = ["/a.B/DoItAllAtOnce", "/a.C/DoItAllAtOnce", "/a.D/DoItAllAtOnce", "/a.D/Do"].map(find);
  expect(found).toMatchObject(["to-service", "to-both", "to-method", "to-all"].map((service) => ({ backends: [{ service }] })));
});

test("a GRPCRoute: methods are paths, its endpoints speak HTTP/2, and what is not gRPC is not its", () => {
  const grpc = (...matches: GrpcRouteMatch[]): GrpcRoute => ({ apiVersion: "gateway.networking.k8s.io/v1", kind: "GRPCRoute", metadata: meta("g"), spec: { parentRefs: [{ name: "gw" }], rules: [{ matches, backendRefs: [{ name: "web", port: 80 }] }] } });
  const find = (match: GrpcRouteMatch, path: string, headers: Record<string, string> = { "content-type": "application/grpc+proto" }) => {
    const { listeners: [listener] } = plan([gateway({})], [], { grpcRoutes: [grpc(match)] });
    return routeTable(listener!.routes).find({ host: "x", path, method: "POST", header: (name) => headers[name], query: () => undefined })?.action;
  };
  const both = { method: { service: "a.B", method: "Do" } };
  expect(find(both, "/a.B/Do")).toMatchObject({ type: "forward", backends: [{ service: "web", protocol: "h2c" }] });
  expect([find(both, "/a.B/Don't"), find(both, "/a.B/Do", {}), find({ method: { service: "a.B" } }, "/a.C/Do"), find({ method: { method: "Do" } }, "/a.C/Undo"), find({ headers: [{ name: "X", value: "1" }] }, "/a.B/Do")]).toEqual(Array.from({ length: 5 }));
  for (const action of [find({ method: { service: "a.B" } }, "/a.B/Any"), find({ method: { method: "Do" } }, "/any/Do"), find({}, "/any/thing")]) expect(action?.type).toBe("forward");
  expect([...plan([gateway({})], [], { grpcRoutes: [grpc({ method: { type: "RegularExpression", service: ".*" } })] }).routeStatus.values()].flat().flatMap(({ conditions }) => conditionsOf(conditions))).toEqual(["Accepted False UnsupportedValue", "ResolvedRefs True ResolvedRefs"]);
});

test("TLS takes TLSRoutes, by name, whether it is passed through or ended here", () => {
  const world = gateway({ port: 443, protocol: "TLS", tls: { mode: "Passthrough" } }, { port: 8443, protocol: "TLS", tls: { mode: "Terminate", certificateRefs: [{ name: "cert" }] } }, {}, { port: 8444, protocol: "TLS" });
  const tls: TlsRoute = { apiVersion: "gateway.networking.k8s.io/v1", kind: "TLSRoute", metadata: meta("t"), spec: { parentRefs: [{ name: "gw" }], hostnames: ["a.test"], rules: [{ backendRefs: [{ name: "web", port: 443 }] }] } };
  const { listeners, gatewayStatus, routeStatus } = plan([world], [route(rules({}))], { tlsRoutes: [tls] });
  expect(listeners.map(({ port, protocol, terminates, routes }) => [port, protocol, terminates, routes.map(({ host, source }) => `${source} ${host}`).join()])).toEqual([
    [443, "TLS", false, "tlsroute default/t a.test"], [8443, "TLS", true, "tlsroute default/t a.test"], [80, "HTTP", false, "httproute default/r "], [8444, "TLS", true, "tlsroute default/t a.test"],
  ]);
  const [status] = [...gatewayStatus.values()];
  expect(status!.listeners.map(({ supportedKinds, conditions }) => [supportedKinds.map(({ kind }) => kind).join(), conditions[0]!.reason])).toEqual([["TLSRoute", "Accepted"], ["TLSRoute", "Accepted"], ["HTTPRoute,GRPCRoute", "Accepted"], ["TLSRoute", "Accepted"]]);
  expect(status!.listeners.map(({ conditions }) => conditions[2]!.reason), "one names no certificate").toEqual(["ResolvedRefs", "ResolvedRefs", "ResolvedRefs", "InvalidCertificateRef"]);
  expect([...routeStatus.values()].flat().map(({ conditions }) => conditionsOf(conditions))).toEqual([FINE, FINE]);
});

test("TCP takes TCPRoutes, of which the oldest has it, and goes with nothing else on its port", () => {
  const tcp = (name: string, second: number): TcpRoute => ({ apiVersion: "gateway.networking.k8s.io/v1", kind: "TCPRoute", metadata: { ...meta(name), creationTimestamp: `2026-01-01T00:00:0${second}Z` }, spec: { parentRefs: [{ name: "gw", sectionName: "l0" }], rules: [{ backendRefs: [{ name: "web", port: second }] }] } });
  const { listeners, gatewayStatus, routeStatus } = plan([gateway({ port: 1883, protocol: "TCP" }, { port: 81, protocol: "TCP" }, { port: 81 })], [route({ ...rules({}), parentRefs: [{ name: "gw", sectionName: "l0" }] })], { tcpRoutes: [tcp("young", 2), tcp("old", 1)] });
  const [status] = [...gatewayStatus.values()];
  expect(status!.listeners.map(({ attachedRoutes, supportedKinds, conditions }) => [attachedRoutes, supportedKinds.map(({ kind }) => kind).join(), conditions[0]!.reason])).toEqual([[2, "TCPRoute", "Accepted"], [0, "TCPRoute", "ProtocolConflict"], [0, "HTTPRoute,GRPCRoute", "ProtocolConflict"]]);
  expect([...routeStatus.values()].flat().map(({ conditions }) => conditions[0]!.reason).toSorted()).toEqual(["Accepted", "Accepted", "NotAllowedByListeners"]);
  const action = routeTable(listeners[0]!.routes).find({ host: "", path: "/", method: "", header: () => undefined, query: () => undefined })?.action;
  expect(action).toMatchObject({ type: "forward", backends: [{ port: 1 }] });
});

test("a Gateway with parameters is refused and not served, a class with parameters is nobody's", () => {
  const parametersRef = { group: "example.io", kind: "Parameters", name: "p" };
  const { spec, ...rest } = gateway({}, { protocol: "HTTPS", port: 443, tls: { certificateRefs: [{ name: "cert" }] } });
  const refused = plan([{ ...rest, spec: { ...spec, infrastructure: { parametersRef } } }], [route(rules({}))]);
  const [status] = [...refused.gatewayStatus.values()];
  expect(conditionsOf(status!.conditions)).toEqual(["Accepted False InvalidParameters", "Programmed False Invalid"]);
  expect(status!.listeners.map(({ conditions }) => conditionsOf(conditions).slice(0, 2))).toEqual([["Accepted True Accepted", "Programmed False Invalid"], ["Accepted True Accepted", "Programmed False Invalid"]]);
  expect(refused.listeners).toEqual([]);
  expect(plan([gateway({})], [], { classes: classes.map((one) => ({ ...one, spec: { ...one.spec, parametersRef } })) }).gatewayStatus.size).toBe(0);
});

test("a certificate that cannot be used is told at its listener", () => {
  const [status] = [...plan([gateway({ protocol: "HTTPS", port: 443, tls: { certificateRefs: [{ name: "cert" }] } })], [], { certificateProblem: (namespace, name) => `secret ${namespace}/${name} has no certificate in tls.crt` }).gatewayStatus.values()];
  expect(status!.listeners[0]!.conditions[2]).toMatchObject({ type: "ResolvedRefs", status: "False", reason: "InvalidCertificateRef", message: "secret default/cert has no certificate in tls.crt" });
});

test("grants are looked up: of all kinds and names they may be for, and not each for each reference", () => {
  const grant = (namespace: string, name: string | undefined, { group = "", kind = "Service" } = {}) => ({ metadata: { namespace }, spec: { from: [{ group: "gateway.networking.k8s.io", kind: "HTTPRoute", namespace: "a" }, { group: "other", kind: "HTTPRoute", namespace: "z" }], to: [{ group, kind, ...(name === undefined ? {} : { name }) }] } });
  const isGranted = grants([grant("b", "web"), grant("b", "db"), grant("c", undefined), grant("d", ""), grant("e", "web", { group: "apps" }), grant("f", undefined, { kind: "Secret" })]);
  const asked = (namespace: string, name: string, { from = "a", kind = "HTTPRoute" } = {}) => isGranted({ kind, namespace: from }, { kind: "Service", namespace, name });
  expect([asked("b", "web"), asked("b", "db"), asked("b", "x"), asked("c", "x"), asked("d", "x"), asked("e", "web"), asked("f", "x"), asked("b", "web", { from: "z" }), asked("b", "web", { kind: "GRPCRoute" })]).toEqual([true, true, false, true, true, false, false, false, false]);
  expect(growth((n, reads) => {
    const among = grants(reads.of(Array.from({ length: n }, (_, i) => grant("b", `s${i}`))));
    for (let i = 0; i < n; i++) among({ kind: "HTTPRoute", namespace: "x" }, { kind: "Service", namespace: "b", name: `s${i}` });
  })).toBeLessThan(3);
});
