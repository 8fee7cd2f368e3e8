/** A real server behind ours, over HTTPS on loopback. */
import { rmSync } from "node:fs";
import type { IncomingHttpHeaders } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { servingMaterial, testPki } from "../../../test/certificates.ts";
import { staticInformer, stored } from "../../../test/static-informer.ts";
import type { Service } from "../../api/gen/core.v1.ts";
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { systemRandom } from "../../lifecycle/random.ts";
import { dialTcp } from "../../net/dial-tcp.ts";
import { silentLog } from "../../observe/log.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import type { APIService } from "../../registry/apiregistration/api-service.ts";
import type { RawAnswer, UpgradeAnswer } from "../answer.ts";
import { inProcessSelf } from "../in-process.ts";
import type { ServerRequest } from "../request.ts";
import { aggregator } from "./aggregator.ts";
import { availability } from "./availability.ts";
import { askExtension } from "./extension-server.ts";
import { AGGREGATOR } from "./identity.ts";
import { RemoteCatalog } from "./remote-documents.ts";

const MIB = 1024 * 1024;
let pki: Awaited<ReturnType<typeof testPki>>;
let server: Server;
let port = 0;
let client: { cert: string; key: string };
/** What the server answers with; nothing but its discovery when it is well. */
let status = 200;
/** What it says it serves, and of what type that is. */
const THINGS = '{"resources":[{"name":"things","kind":"Thing","namespaced":true,"verbs":["get"],"singularName":"thing"}]}';
let openapi: object | undefined;
let serves = THINGS, form = "application/json";
/** Paths it does not answer at all. */
let silent = /^$/;
/** The headers it was asked with. */
let got: IncomingHttpHeaders = {};
/** How their names are spelled, and what they say. */
let spelled: readonly string[] = [];
let asked = { url: "", body: "" };
let told = 0;
function* endless(): Generator<Buffer> { for (; told < 128 * MIB; told += MIB) yield Buffer.alloc(MIB, " "); }
beforeEach(() => { status = 200; silent = /^$/; serves = THINGS; form = "application/json"; openapi = undefined; });
beforeAll(async () => {
  pki = await testPki();
  client = servingMaterial(pki);
  server = createServer(client, async (incoming, response) => {
    got = incoming.headers;
    spelled = incoming.rawHeaders;
    asked = { url: incoming.url!, body: await text(incoming) };
    if (silent.test(incoming.url!)) return;
    if (incoming.url === "/endless") return void Readable.from(endless()).on("error", () => undefined).pipe(response);
    if (incoming.url!.startsWith("/apis/g/v1/raw/")) {
      incoming.socket.end(RAW[incoming.url!.slice("/apis/g/v1/raw/".length)]!);
      return;
    }
    if (openapi && incoming.url === "/openapi/v2") return void response.end(JSON.stringify(openapi));
    response.writeHead(status, { "content-type": form }).end(serves);
  });
  await new Promise<void>((ready) => void server.listen(0, "127.0.0.1", ready));
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(pki.dir, { recursive: true, force: true });
});

const ZIPPED = gzipSync("zipped");
/** Whole answers, as they go over the wire. */
const RAW: Readonly<Record<string, string | Buffer>> = {
  gzip: Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Encoding: gzip\r\nContent-Length: ${ZIPPED.length}\r\n\r\n`), ZIPPED]),
  switched: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n",
  repeated: "HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\nAccess-Control-Allow-Origin: *\r\nConnection: X-Hop\r\nX-Hop: 1\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n0\r\nX-Sum: 1\r\n\r\n",
  created: "HTTP/1.1 201 Created\r\nLocation: /apis/g/v1/new\r\nContent-Length: 0\r\n\r\n",
  page: 'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 14\r\n\r\n<a href="/x">a',
  junk: "hello there\r\n\r\n",
  cut: "HTTP/1.1 200 OK\r\nX-A",
  early: "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n",
  forbidden: "HTTP/1.1 403 Forbidden\r\nX-A: 1\r\n\r\nno",
  chunked: "HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
};

const { signal } = new AbortController();
const apiService = (): APIService => stored<APIService>("apiregistration.k8s.io/v1", "APIService", "v1.g", { spec: { group: "g", version: "v1", groupPriorityMinimum: 1, versionPriority: 1, insecureSkipTLSVerify: true, service: { name: "ext", namespace: "a", port: 443 } }, status: { conditions: [{ type: "Available", status: "True", reason: "Passed", message: "all checks passed", lastTransitionTime: "2026-01-01T00:00:00Z" }] } } as never);

function world(spec: object) {
  const services = staticInformer(stored<Service>("v1", "Service", "a/ext", { spec: { type: "ClusterIP", clusterIP: "10.43.0.9", ports: [{ port: 443 }], ...spec } } as never));
  const endpointSlices = staticInformer(stored<EndpointSlice>("discovery.k8s.io/v1", "EndpointSlice", "a/ext-1", { metadata: { labels: { "kubernetes.io/service-name": "ext" } }, addressType: "IPv4", ports: [{ port }], endpoints: [{ addresses: ["127.0.0.1"] }] } as never));
  return {
    services, serviceCopies: services, endpointSlices, clock: systemClock, random: systemRandom, clientTls: () => client, log: silentLog, metrics: metricsRegistry(),
    dialer: { connect: ({ host, port: to, signal: until }: { host: string; port: number; signal: AbortSignal }) => dialTcp({ host, port: to, timeoutMs: 60_000 }, { clock: systemClock, signal: until }) },
  };
}

test.each<[string, object, string]>([
  ["of the cluster by its address", {}, "https://10.43.0.9:443/apis"],
  ["without an address by its name", { clusterIP: "None" }, "https://ext.a.svc:443/apis"],
  ["over IPv6 in brackets", { clusterIP: "fd00::9" }, "https://[fd00::9]:443/apis"],
])("a Service %s is what was asked", async (_, spec, url) => {
  expect((await askExtension(apiService().spec, { path: "/apis", accept: "application/json", user: AGGREGATOR, timeoutMs: 60_000, signal }, world(spec))).url).toBe(url);
});

test("of a Service elsewhere that is its own name", async () => {
  await expect(askExtension(apiService().spec, { path: "/apis", accept: "application/json", user: AGGREGATOR, timeoutMs: 60_000, signal }, world({ type: "ExternalName", externalName: "localhost" }))).rejects.toThrow('Get "https://localhost:443/apis": ');
});

test("who only wants to know whether it is there reads little of an answer without end, and holds nothing of it", async () => {
  const answer = await askExtension(apiService().spec, { path: "/endless", accept: "application/json", statusOnly: true, user: AGGREGATOR, timeoutMs: 60_000, signal }, world({}));
  expect([answer.status, answer.body.length]).toEqual([200, 0]);
  expect(told).toBeLessThan(64 * MIB);
  await expect(askExtension(apiService().spec, { path: "/endless", accept: "application/json", user: AGGREGATOR, timeoutMs: 60_000, signal }, world({}))).rejects.toThrow("response body is longer than 67108864 bytes");
});

/** Runs it until `done`. */
async function running(part: { run(until: AbortSignal, ready: () => void): Promise<void> }, work: () => Promise<void>): Promise<void> {
  const stop = new AbortController();
  const ended = part.run(stop.signal, () => undefined);
  await work();
  stop.abort();
  await ended;
}

async function eventually(holds: () => boolean): Promise<void> { while (!holds()) await systemClock.sleep(5, signal); }

test("an APIService that somebody changes is looked at again, and what its server serves is not told while it does not answer", async () => {
  const apiServices = staticInformer(apiService());
  const written: string[] = [];
  const deps = { ...world({}), apiServices, resource: { updateStatus: async (object: APIService) => { written.push(object.status!.conditions![0]!.message!); return object; } } as never };
  const catalog = new RemoteCatalog(deps);
  await running(catalog, () => running(availability(deps), async () => {
    await eventually(() => catalog.of("v1.g").resources.length === 1);
    status = 503;
    apiServices.put({ ...apiService(), metadata: { ...apiService().metadata, labels: { touched: "yes" } } });
    await eventually(() => written.length > 0);
    expect(written[0]).toBe("failing or missing response from https://10.43.0.9:443/apis/g/v1: bad status from https://10.43.0.9:443/apis/g/v1: 503");
    apiServices.put({ ...apiService(), spec: { ...apiService().spec, versionPriority: 2 } });
    await eventually(() => catalog.of("v1.g").stale);
    expect(catalog.of("v1.g").resources).toEqual([]);
  }));
});

test("a server that is said to be unavailable is still asked what it serves, once somebody has looked", async () => {
  const unseen = { ...apiService(), status: {} }, unavailable = { ...apiService(), status: { conditions: [{ ...apiService().status!.conditions![0]!, status: "False" as const }] } };
  const apiServices = staticInformer<APIService>(unseen);
  const catalog = new RemoteCatalog({ ...world({}), apiServices });
  await running(catalog, async () => {
    await eventually(() => catalog.of("v1.g").stale);
    apiServices.put(unavailable);
    await eventually(() => catalog.of("v1.g").resources.length === 1);
    expect(catalog.of("v1.g").stale).toBe(false);
  });
});

const inGroup = (resource: unknown): string => JSON.stringify({ items: [{ metadata: { name: "g" }, versions: [{ version: "v1", resources: [resource] }] }] });
const AGGREGATED = { resource: "things", responseKind: { kind: "Thing" }, scope: "Namespaced", singularResource: "thing", verbs: ["get"] };

test.each<[string, string]>([
  ...[{ verbs: 5 }, { verbs: [{}] }, { resource: 7 }, { responseKind: "Thing" }, { scope: {} }, { shortNames: "th" }, { subresources: [{ subresource: "status", verbs: { get: true } }] }].map((wrong): [string, string] => ["application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", inGroup({ ...AGGREGATED, ...wrong })]),
  ...[{ verbs: 5 }, { kind: 5 }, { namespaced: "yes" }, { shortNames: [5] }].map((wrong): [string, string] => ["application/json", JSON.stringify({ resources: [{ name: "things", kind: "Thing", namespaced: true, verbs: ["get"], ...wrong }] })]),
  ["application/json", "[]"], ["application/json", '{"resources":"things"}'],
])("who says what it serves in types that no client reads has said nothing, and all others are understood: %s %s", async (type, says) => {
  [form, serves] = [type, says];
  const catalog = new RemoteCatalog({ ...world({}), apiServices: staticInformer(apiService()) });
  await running(catalog, async () => {
    await eventually(() => catalog.changes > 0);
    expect(catalog.of("v1.g")).toMatchObject({ stale: true, resources: [] });
  });
});

test.each([null, 5, { get: 5 }, { get: { responses: { 200: null } } }, { get: { parameters: [null] } }, { get: { tags: "a" } }, { get: { description: 5 } }])("a path that is %j is in no document, and costs nobody the others'", async (path) => {
  const catalog = new RemoteCatalog({ ...world({}), apiServices: staticInformer(apiService()) });
  openapi = { swagger: "2.0", paths: { "/apis/g/v1/things": { get: { description: "well" } } } };
  await running(catalog, () => eventually(() => catalog.of("v1.g").v2 !== undefined));
  openapi = { swagger: "2.0", paths: { "/apis/g/v1/things": path } };
  const other = new RemoteCatalog({ ...world({}), apiServices: staticInformer(apiService()), log: { ...silentLog, debug: (what, facts) => void logged.push(`${what}: ${String((facts as { error: Error }).error.message)}`) } });
  const logged: string[] = [];
  await running(other, () => eventually(() => logged.length > 0));
  expect([other.of("v1.g").v2, logged[0]]).toEqual([undefined, expect.stringContaining("an extension API server does not tell its OpenAPI: ")]);
});

test("what clients need not know of is left out of what a server serves, and verbs that are not told are none", async () => {
  [form, serves] = ["application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", inGroup({ ...AGGREGATED, verbs: null, newer: 1 })];
  const catalog = new RemoteCatalog({ ...world({}), apiServices: staticInformer(apiService()) });
  await running(catalog, async () => {
    await eventually(() => catalog.of("v1.g").resources.length === 1);
    expect(catalog.of("v1.g").resources).toEqual([{ ...AGGREGATED, responseKind: { group: "", version: "", kind: "Thing" }, verbs: [] }]);
  });
});

test("whether a server answers is asked without naming a form", async () => {
  const written: string[] = [];
  status = 503;
  const deps = { ...world({}), apiServices: staticInformer(apiService()), resource: { updateStatus: async (object: APIService) => { written.push(object.status!.conditions![0]!.reason!); return object; } } as never };
  await running(availability(deps), () => eventually(() => written.length > 0));
  expect(got.accept).toBeUndefined();
});

test("a server that does not tell its OpenAPI still serves what it tells it does", async () => {
  const deps = { ...world({}), apiServices: staticInformer(apiService()), clock: { ...systemClock, after: (ms: number, work: () => void) => systemClock.after(ms < 60_000 ? ms : 50, work) } }; // what it serves may take its 5 s
  const catalog = new RemoteCatalog(deps);
  silent = /^\/openapi\/v2/;
  await running(catalog, async () => {
    await eventually(() => catalog.of("v1.g").resources.length === 1);
    for (let i = 0; i < 100; i++) {
      await systemClock.sleep(2, signal);
      expect(catalog.of("v1.g")).toMatchObject({ stale: false, resources: [{ resource: "things" }] });
    }
  });
});

/** Nothing is waited for longer than a moment. */
const hasty = { ...systemClock, after: (ms: number, work: () => void) => systemClock.after(Math.min(ms, 50), work) };

test("who asks a server behind this one what it serves is not kept waiting for long; one whose Service is gone is not asked", async () => {
  const ask = async (deps: object): Promise<RawAnswer> => {
    const apiServices = staticInformer<APIService>();
    const aggregation = aggregator({ ...world({}), ...deps, apiServices, registry: undefined as never, resource: undefined as never });
    apiServices.put(apiService());
    const request = { method: "GET", path: "/apis/g/v1", query: new URLSearchParams(), header: () => undefined, headers: () => [], remoteAddress: "192.0.2.1", signal, wire: { body: Readable.from([]), rawQuery: "" } } as unknown as ServerRequest;
    return (await aggregation.answer(request, { name: "jane", groups: [] }, { unavailable: () => notAsked++ })) as RawAnswer;
  };
  let notAsked = 0;
  silent = /^\/apis\/g\/v1$/;
  expect(await ask({ clock: hasty })).toMatchObject({ status: 503, body: "error trying to reach service: context deadline exceeded\n" });
  expect(notAsked).toBe(0);
  expect(await ask({ services: staticInformer<Service>() })).toMatchObject({ status: 503, body: "service unavailable\n" });
  expect(notAsked).toBe(1);
});

/** What the server behind is asked by who asks ours. */
async function passedOn({ method = "GET", path = "/apis/g/v1/things", rawQuery = "", headers = {}, body = "", deps = {} }: { readonly deps?: object; readonly method?: string; readonly path?: string; readonly rawQuery?: string; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }): Promise<unknown> {
  const apiServices = staticInformer<APIService>();
  const aggregation = aggregator({ ...world({}), ...deps, apiServices, registry: undefined as never, resource: undefined as never });
  apiServices.put(apiService());
  const request = { method, path, query: new URLSearchParams(rawQuery), header: (name: string) => headers[name], headers: () => Object.entries(headers), remoteAddress: "192.0.2.1", signal, wire: { body: Readable.from(body === "" ? [] : [Buffer.from(body)]), rawQuery } } as unknown as ServerRequest;
  const answer = await aggregation.answer(request, { name: "jane", groups: ["g"] }, { auditId: "audit-7" });
  (answer as { body: Readable }).body.destroy();
  return answer;
}

/** What becomes of one of RAW: how it is passed on, and its body. */
async function answered(key: string, headers: Readonly<Record<string, string>> = {}, method = "GET"): Promise<{ readonly answer: RawAnswer; readonly body: string }> {
  const apiServices = staticInformer<APIService>();
  const aggregation = aggregator({ ...world({}), apiServices, registry: undefined as never, resource: undefined as never });
  apiServices.put(apiService());
  const all = { host: "h", ...headers };
  const request = { method, path: `/apis/g/v1/raw/${key}`, query: new URLSearchParams(), header: (name: string) => (all as Record<string, string>)[name], headers: () => Object.entries(all), remoteAddress: "192.0.2.1", signal, wire: { body: Readable.from([]), rawQuery: "" } } as unknown as ServerRequest;
  const answer = (await aggregation.answer(request, { name: "jane", groups: [] })) as RawAnswer | UpgradeAnswer;
  if (answer.type === "raw") return { answer, body: answer.body instanceof Readable ? await text(answer.body) : Buffer.from(answer.body as string).toString() };
  const socket = new PassThrough();
  answer.take(socket, Buffer.alloc(0));
  return { answer: answer as never, body: await text(socket) };
}

test("what is asked for in our own name is unpacked, what the client asked for is its own to unpack", async () => {
  const { answer, body } = await answered("gzip");
  expect([got["accept-encoding"], answer.passedOn, body]).toEqual(["gzip", { headers: [["Content-Type", "a/b"]], length: undefined }, "zipped"]);
  for (const headers of [{ "accept-encoding": "gzip" }, { "range": "bytes=0-1" }]) {
    const same = await answered("gzip", headers);
    expect([got["accept-encoding"], same.answer.headers["content-encoding"], same.answer.passedOn!.length]).toEqual([(headers as Record<string, string>)["accept-encoding"], "gzip", ZIPPED.length]);
  }
});

test("headers are passed on each as often as it came, but for those of one hop, and that trailers were to follow", async () => {
  expect((await answered("repeated")).answer).toMatchObject({ headers: { "x-a": "1, 2" }, passedOn: { headers: [["X-A", "1"], ["x-a", "2"], ["Trailer", "X-Sum"]], length: undefined } });
});

test("links lead to the server behind", async () => {
  expect((await answered("created")).answer.headers["location"]).toBe("https://10.43.0.9:443/apis/g/v1/new");
  expect((await answered("page")).body).toBe('<a href="https://10.43.0.9:443/x">a');
});

const BROKEN = "error trying to reach service: net/http: HTTP/1.x transport connection broken: ";
const ASKING = { connection: "Upgrade", upgrade: "foo" };
test.each<[string, string, Readonly<Record<string, string>>, string]>([
  ["is no HTTP", "junk", {}, `${BROKEN}malformed HTTP status code "there"\n`],
  ["breaks off in its head", "cut", {}, `${BROKEN}malformed MIME header: missing colon: "X-A"\n`],
  ["switches unasked", "switched", {}, 'backend tried to switch protocol "foo" when "" was requested\n'],
  ["does not switch, as it was asked to", "created", ASKING, "invalid upgrade response: status code 201\n"],
  ["says something before it switches", "early", ASKING, "invalid upgrade response: status code 103\n"],
  ["is no HTTP when it was asked to switch", "junk", ASKING, 'malformed HTTP status code "there"\n'],
])("a server behind this one that %s", async (_, key, headers, expected) => {
  const { answer, body } = await answered(key, headers);
  expect([answer.status, body]).toEqual([503, expected]);
});

test("who is refused another protocol has that answer, and its connection's end", async () => {
  expect((await answered("forbidden", ASKING)).body).toBe("HTTP/1.1 403 Forbidden\r\nX-A: 1\r\nConnection: close\r\n\r\nno");
  expect((await answered("chunked", ASKING)).body).toBe(RAW["chunked"]);
  expect(got).toMatchObject({ connection: "Upgrade", upgrade: "foo", "user-agent": "Go-http-client/1.1" });
});

test("nobody is connected to a server behind", async () => {
  expect((await answered("gzip", {}, "CONNECT")).body).toBe("client sent unsupported CONNECT request\n");
});

test("a server behind this one is told where it was asked for, and how", async () => {
  expect(await passedOn({ path: "/apis/g/v1/a%2Fb//c/../(d)", rawQuery: "b=2&a=1", headers: { host: "api.example.com", te: "trailers", "audit-id": "theirs", "if-none-match": "x" } })).toMatchObject({ type: "raw", status: 200 });
  expect(got).toMatchObject({
    host: "10.43.0.9:443", "x-forwarded-proto": "https", "x-forwarded-host": "10.43.0.9:443", "x-forwarded-uri": "/apis/g/v1/a/b/%28d%29", "x-forwarded-for": "192.0.2.1", "x-remote-user": "jane", "audit-id": "audit-7", te: "trailers",
  });
  expect(spelled).toEqual(expect.arrayContaining(["Host", "Te", "If-None-Match", "X-Forwarded-For", "X-Remote-User"]));
  expect(asked).toEqual({ url: "/apis/g/v1/a/b//c/../%28d%29?a=1&b=2", body: "" });
});

test("this server asks one behind it as anybody would, in its own name", async () => {
  const apiServices = staticInformer<APIService>();
  const aggregation = aggregator({ ...world({}), apiServices, registry: undefined as never, resource: undefined as never });
  apiServices.put(apiService());
  const user = { name: "system:apiserver", groups: ["system:masters"] };
  const self = inProcessSelf((request) => aggregation.answer(request, request.user!)!, user);
  const { status: told, contentType, body } = await self({ path: "/apis/g/v1/things", query: "timeout=5s", headers: [["content-type", "application/json"]], body: Buffer.from('{"a":1}'), signal });
  expect([told, contentType, JSON.parse(Buffer.from(body).toString()).resources[0].name]).toEqual([200, "application/json", "things"]);
  expect(asked).toEqual({ url: "/apis/g/v1/things?timeout=5s", body: '{"a":1}' });
  expect([got["x-remote-user"], got["content-type"]]).toEqual(["system:apiserver", "application/json"]);
});

test("headers in which front proxies say who somebody is are told by this server alone, whatever they are called", async () => {
  const headers = { host: "h", "x-remote-user": "root", "x-login": "root", "x-more-a": "b", "x-other": "c" };
  await passedOn({ headers, deps: { isWithheld: (name: string) => name === "x-login" || name.startsWith("x-more-") } });
  expect([got["x-remote-user"], got["x-login"], got["x-more-a"], got["x-other"]]).toEqual(["jane", undefined, undefined, "c"]);
  await answered("forbidden", { ...ASKING, ...headers });
  expect([got["x-login"], got["x-other"]]).toEqual(["root", "c"]); // whose settings name no other
});

test("a body goes on with whatever method it has, and where there is none it is said so as Go says it", async () => {
  await passedOn({ headers: { host: "h", "content-length": "3" }, body: "abc" });
  expect([asked.body, got["content-length"]]).toEqual(["abc", "3"]);
  await passedOn({ method: "DELETE", headers: { host: "h", "transfer-encoding": "chunked" }, body: "abc" });
  expect([asked.body, got["transfer-encoding"]]).toEqual(["abc", "chunked"]);
  for (const [method, length] of [["POST", "0"], ["DELETE", undefined], ["GET", undefined]] as const) {
    await passedOn({ method, headers: { host: "h", ...(method === "POST" ? {} : { "content-length": "0" }) } });
    expect([method, got["content-length"], got["transfer-encoding"]]).toEqual([method, length, undefined]);
  }
});
