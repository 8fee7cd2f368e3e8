import { createServer, type IncomingMessage, request as httpRequest, type RequestListener, type Server } from "node:http";
import * as http2 from "node:http2";
import { type AddressInfo, connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, createServer as createTlsServer } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FakeApi, fakeApi } from "../../test/fake-api.ts";
import { frame, frameServer } from "../../test/http2-frames.ts";
import type { CustomResourceDefinition } from "../../core/api/gen/apiextensions.v1.ts";
import type { Secret, Service } from "../../core/api/gen/core.v1.ts";
import type { EndpointSlice } from "../../core/api/gen/discovery.v1.ts";
import type { Ingress, IngressClass, IngressSpec } from "../../core/api/gen/networking.v1.ts";
import type { NewObject } from "../../core/api/meta/object-meta.ts";
import type { ResourceRef } from "../../core/client/client.ts";
import { informerFactory } from "../../core/client/informer-factory.ts";
import { CUSTOM_RESOURCE_DEFINITIONS, ENDPOINT_SLICES, INGRESS_CLASSES, INGRESSES, SECRETS, SERVICES } from "../../core/client/resources.ts";
import { GATEWAY_CLASSES, GATEWAY_CONTROLLER, GATEWAYS, HTTP_ROUTES, REFERENCE_GRANTS, TLS_ROUTES } from "../../core/ingress/gateway-types.ts";
import { systemClock as clock } from "../../core/lifecycle/clock.ts";
import { systemRandom as random } from "../../core/lifecycle/random.ts";
import { silentLog as log } from "../../core/observe/log.ts";
import { metricsRegistry } from "../../core/observe/metrics.ts";
import { mayBeDialled as isDialled, withheldRanges } from "./dial-endpoint.ts";
import { fallbackCertificate } from "./fallback-certificate.ts";
import { H2Upstreams } from "./h2-upstreams.ts";
import { nodeIngress } from "./ingress.ts";
import { keyOf, Upstreams } from "./upstreams.ts";

/** This process' own, below those that the kernel hands out: the same tests may run twice on a machine. */
const FIRST_PORT = 20_000 + (process.pid % 5_000) * 2;
const PORTS = { http: FIRST_PORT, https: FIRST_PORT + 1 };
const stop = new AbortController();
const call = { signal: stop.signal };
const servers: Server[] = [];
let api: FakeApi, life: Promise<unknown>;

async function backend(listener: RequestListener): Promise<Server> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  return server;
}
const portOf = (server: Server): number => (server.address() as AddressInfo).port;

async function service(name: string, ports: readonly number[], appProtocol?: string): Promise<void> {
  const metadata = { name, namespace: "default" };
  await api.client.resource(SERVICES).create({ apiVersion: "v1", kind: "Service", metadata, spec: { ports: [{ port: 80, name: "http", protocol: "TCP", ...(appProtocol && { appProtocol }) }] } } as NewObject<Service>, call);
  for (const port of ports)
    await api.client.resource(ENDPOINT_SLICES).create({ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", metadata: { namespace: "default", name: `${name}-${port}`, labels: { "kubernetes.io/service-name": name } }, addressType: "IPv4", endpoints: [{ addresses: ["127.0.0.1"], conditions: { ready: true } }], ports: [{ name: "http", port, protocol: "TCP" }] } as NewObject<EndpointSlice>, call);
}
const rule = (host: string, name: string, path = "/") => ({ host, http: { paths: [{ path, pathType: "Prefix", backend: { service: { name, port: { name: "http" } } } }] } });
const ingress = async (name: string, spec: IngressSpec): Promise<Readonly<Ingress>> => await api.client.resource(INGRESSES).create({ apiVersion: "networking.k8s.io/v1", kind: "Ingress", metadata: { name, namespace: "default" }, spec: { ingressClassName: "coracle", ...spec } }, call);

interface Answer { readonly status: number; readonly headers: IncomingMessage["headers"]; readonly body: string }
function ask(host: string, path: string, { method = "GET", body, headers = {} }: { method?: string; body?: string; headers?: Record<string, string> } = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: "127.0.0.1", port: PORTS.http, path, method, headers: { host, ...headers }, agent: false }, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => (text += chunk.toString())).on("end", () => resolve({ status: response.statusCode!, headers: response.headers, body: text })).on("error", reject);
    });
    request.on("error", reject).end(body);
  });
}
/** Asks again and again, until the answer is as it should be. */
async function eventually<T>(look: () => Promise<T>, holds: (seen: T) => boolean): Promise<T> {
  for (const endMs = clock.uptimeMs() + 60_000; ; await clock.sleep(20, call.signal)) {
    const seen = await look().catch((error: unknown) => { if (clock.uptimeMs() > endMs) throw error; });
    if (seen !== undefined && holds(seen)) return seen;
    if (clock.uptimeMs() > endMs) throw new Error(`last seen: ${JSON.stringify(seen)}`);
  }
}
const certificate = (name: string): Promise<string> => new Promise((resolve, reject) => {
  const socket = connectTls({ host: "127.0.0.1", port: PORTS.https, servername: name, rejectUnauthorized: false }, () => {
    resolve(String(socket.getPeerCertificate().subject.CN));
    socket.destroy();
  }).on("error", reject);
});
const selfSigned = async (): Promise<{ key: string; cert: string }> => await fallbackCertificate(random, { nowMs: clock.nowMs(), releasedMs: 0 });

beforeAll(async () => {
  api = fakeApi();
  const informers = informerFactory({ client: api.client, clock, random, log });
  const part = nodeIngress({ client: api.client, informers, addresses: ["127.0.0.1"], ownAddresses: () => ["192.0.2.9"], clusterCidrs: ["10.42.0.0/16"], serviceCidrs: ["10.43.0.0/16"], ports: PORTS, fallbackCertificate: async () => ({ ...(await selfSigned()), clientCas: [] }), clock, random, metrics: metricsRegistry(), log });
  life = Promise.all([informers, part].map((one) => one.run(stop.signal, () => {})));
  const echo = await backend((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString())).on("end", () => {
      response.setHeader("set-cookie", ["a=1", "b=2"]);
      response.setHeader("keep-alive", "timeout=9");
      response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body }));
    });
  });
  await service("echo", [portOf(echo)]);
  await service("nobody", []);
});
afterAll(async () => {
  stop.abort();
  for (const server of servers) server.closeAllConnections();
  await life;
});

test("nothing listens until there is an Ingress of ours", async () => {
  await api.client.resource(INGRESS_CLASSES).create({ apiVersion: "networking.k8s.io/v1", kind: "IngressClass", metadata: { name: "coracle" }, spec: { controller: "coracle.io/ingress-controller" } } as NewObject<IngressClass>, call);
  await api.client.resource(INGRESSES).create({ apiVersion: "networking.k8s.io/v1", kind: "Ingress", metadata: { name: "other", namespace: "default" }, spec: { ingressClassName: "nginx", rules: [rule("web.test", "echo")] } }, call);
  await clock.sleep(100, call.signal);
  await expect(ask("web.test", "/")).rejects.toThrow();
  const web = await ingress("web", { rules: [rule("old.test", "echo")] });
  await eventually(() => ask("old.test", "/"), ({ status }) => status === 200);
  await api.client.resource(INGRESSES).update({ ...web, spec: { ...web.spec, rules: [rule("web.test", "echo"), rule("nobody.test", "nobody"), rule("*.wild.test", "echo", "/in")] } }, call);
  await eventually(() => ask("web.test", "/"), ({ status }) => status === 200);
  expect((await ask("old.test", "/")).status).toBe(404);
});

describe("a request", () => {
  test("arrives with its path, query, body and host, and with who asks", async () => {
    const { status, headers, body } = await ask("web.test:8080", "/a%20b/?q=1&r=%2F", { method: "POST", body: "x".repeat(300_000), headers: { "x-forwarded-for": "6.6.6.6", connection: "x-secret, close", "x-secret": "1", "x-kept": "2" } });
    const seen = JSON.parse(body) as { method: string; url: string; headers: Record<string, string>; body: string };
    expect([status, seen.method, seen.url, seen.body.length, seen.headers["host"]]).toEqual([200, "POST", "/a%20b/?q=1&r=%2F", 300_000, "web.test:8080"]);
    expect(seen.headers).toMatchObject({ "x-forwarded-for": "127.0.0.1", "x-forwarded-proto": "http", "x-forwarded-host": "web.test:8080", "x-forwarded-port": "8080", "x-kept": "2" });
    expect(seen.headers).not.toHaveProperty("x-secret");
    expect(headers["set-cookie"]).toEqual(["a=1", "b=2"]);
    expect(headers["keep-alive"]).not.toBe("timeout=9");
  });

  test.each([
    ["unknown.test", "/", 404, "404 page not found\n"], ["nobody.test", "/", 503, "503 no available server\n"], ["a.wild.test", "/in/side", 200, undefined], ["a.wild.test", "/in/../out", 404, undefined],
    ["b.a.wild.test", "/in", 404, undefined], ["a b", "/", 400, undefined],
  ])("%s%s answers %i", async (host, path, status, text) => {
    const answer = await ask(host, path);
    expect(answer.status).toBe(status);
    if (text !== undefined) expect(answer.body).toBe(text);
  });

  test("streams, is cut off when the endpoint fails in the middle, and HEAD has no body", async () => {
    const server = await backend((request, response) => {
      if (request.method === "HEAD") return void response.writeHead(200, { "content-length": "12" }).end();
      response.write("first");
      if (request.url === "/cut") setTimeout(() => response.destroy(), 50);
      else setTimeout(() => response.end("last"), 50);
    });
    await service("slow", [portOf(server)]);
    await ingress("slow", { rules: [rule("slow.test", "slow")] });
    await eventually(() => ask("slow.test", "/"), ({ body }) => body === "firstlast");
    await expect(ask("slow.test", "/cut")).rejects.toThrow();
    expect(await ask("slow.test", "/", { method: "HEAD" })).toMatchObject({ status: 200, body: "", headers: { "content-length": "12" } });
  });

  test("is tried elsewhere when an endpoint is gone; one that may have had an effect is not sent twice", async () => {
    let posts = 0;
    const breaking = await backend((request, response) => {
      if (request.method === "POST") posts++;
      response.destroy();
    });
    const good = await backend((_, response) => void response.end("good"));
    const gone = await backend(() => {});
    const gonePort = portOf(gone);
    gone.close();
    await service("flaky", [portOf(good), gonePort]);
    await service("broken", [portOf(breaking)]);
    await ingress("flaky", { rules: [rule("flaky.test", "flaky"), rule("broken.test", "broken")] });
    await eventually(() => ask("flaky.test", "/"), ({ status }) => status === 200);
    for (let i = 0; i < 10; i++) expect((await ask("flaky.test", "/", { method: "POST", body: "x" })).body).toBe("good");
    expect(await ask("broken.test", "/", { method: "POST", body: "x" })).toMatchObject({ status: 502, body: "502 bad gateway\n" });
    expect(posts).toBe(1);
  });
});

test("an upgrade joins both connections; one that is refused is answered", async () => {
  const server = await backend((_, response) => void response.writeHead(403).end("no"));
  server.on("upgrade", (request, socket, head) => {
    if (request.url === "/no") return void socket.end("HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno");
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: ${request.headers.upgrade}\r\n\r\nhello ${request.headers["x-forwarded-proto"]} `);
    if (head.length > 0) socket.write(head);
    socket.on("data", (chunk) => void socket.write(chunk));
  });
  await service("ws", [portOf(server)]);
  await ingress("ws", { rules: [rule("ws.test", "ws")] });
  await eventually(() => ask("ws.test", "/"), ({ status }) => status === 403);
  const talk = (path: string, until: string): Promise<string> => new Promise((resolve, reject) => {
    const socket = connectTcp(PORTS.http, "127.0.0.1", () => void socket.write(`GET ${path} HTTP/1.1\r\nhost: ws.test\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\nearly `));
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString();
      if (!text.includes(until)) return;
      socket.destroy();
      resolve(text);
    }).on("error", reject);
  });
  expect(await talk("/", "early ")).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n[\s\S]*\r\n\r\nhello http early $/);
  expect(await talk("/no", "\r\n\r\nno")).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n/);
});

test("HTTPS: certificates by name, renewed ones at once; HTTP/2", async () => {
  const secrets = api.client.resource(SECRETS);
  const data = async (name: string): Promise<Record<string, string>> => {
    const { authority, generateKey, keyPem, selfSign } = await import("../../core/pki/authority.ts");
    const key = await generateKey();
    const pem = selfSign(name, { notBeforeMs: 0, notAfterMs: clock.nowMs() + 1e9, key, random });
    expect(authority(pem, keyPem(key), random)).toBeDefined();
    return { "tls.crt": Buffer.from(pem).toString("base64"), "tls.key": Buffer.from(keyPem(key)).toString("base64") };
  };
  const made = await secrets.create({ apiVersion: "v1", kind: "Secret", metadata: { name: "cert", namespace: "default" }, data: await data("first") } as unknown as NewObject<Secret>, call);
  await ingress("tls", { rules: [rule("tls.test", "echo")], tls: [{ hosts: ["tls.test", "*.tls.test"], secretName: "cert" }] });
  await eventually(() => certificate("tls.test"), (name) => name === "first");
  expect([await certificate("a.tls.test"), await certificate("b.a.tls.test"), await certificate("other.test")]).toEqual(["first", "ingress.coracle.invalid", "ingress.coracle.invalid"]);
  await secrets.update({ ...made, data: await data("second") } as Secret, call);
  await eventually(() => certificate("tls.test"), (name) => name === "second");

  const session = http2.connect(`https://127.0.0.1:${PORTS.https}`, { servername: "tls.test", rejectUnauthorized: false });
  const answers = await Promise.all(Array.from({ length: 5 }, (_, i) => new Promise<string>((resolve, reject) => {
    const stream = session.request({ ":method": "POST", ":path": `/h2/${i}`, ":authority": "tls.test", "content-type": "text/plain" });
    let text = "";
    stream.on("data", (chunk: Buffer) => (text += chunk.toString())).on("end", () => resolve(text)).on("error", reject);
    stream.end("body");
  })));
  session.close();
  for (const [i, text] of answers.entries()) expect(JSON.parse(text)).toMatchObject({ method: "POST", url: `/h2/${i}`, body: "body", headers: { host: "tls.test", "x-forwarded-proto": "https", "x-forwarded-port": "443" } });
});

test("names that every object has are headers like any, on the way there and back", async () => {
  const server = http2.createServer((request, response) => void response.writeHead(200, { constructor: String(request.headers["constructor"]) }).end("ok"));
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  await service("odd", [(server.address() as AddressInfo).port], "kubernetes.io/h2c");
  await ingress("odd", { rules: [rule("odd.example", "odd")] });
  const { body, headers } = await eventually(() => ask("odd.example", "/", { headers: { constructor: "a" } }), ({ status }) => status === 200);
  expect([body, headers["constructor"]]).toEqual(["ok", "a"]);
  server.close();
});

test("h2c: a gRPC call streams both ways and ends with trailers; plain requests are carried too", async () => {
  const server = http2.createServer();
  let connections = 0;
  server.on("session", () => connections++);
  server.on("stream", (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => {
    stream.on("error", () => undefined); // the one we reset
    if (headers[":path"] === "/reset") return void stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
    if (headers[":path"] === "/missing") return void stream.respond({ ":status": 200, "content-type": "application/grpc", "grpc-status": "12" }, { endStream: true });
    stream.respond({ ":status": 200, "content-type": "application/grpc", "x-seen": `${headers[":authority"]} ${headers["te"]} ${headers["x-forwarded-proto"]}` }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0", "grpc-message": "fine" }));
    stream.on("data", (chunk: Buffer) => stream.write(`echo ${chunk.toString()};`)).on("end", () => void stream.end());
  });
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  await service("grpc", [(server.address() as AddressInfo).port], "kubernetes.io/h2c");
  await ingress("grpc", { rules: [rule("grpc.test", "grpc")] });
  expect(JSON.stringify(await eventually(() => ask("grpc.test", "/", { method: "POST", body: "x" }), ({ status }) => status === 200))).toContain("echo x;"); // HTTP/1.1 in front

  const session = http2.connect(`https://127.0.0.1:${PORTS.https}`, { servername: "grpc.test", rejectUnauthorized: false });
  const call = (path: string, host = "grpc.test"): Promise<string[]> => new Promise((resolve) => {
    const seen: string[] = [];
    const stream = session.request({ ":method": "POST", ":path": path, ":authority": host, te: "trailers", "content-type": "application/grpc" });
    stream.on("response", (headers, flags) => {
      seen.push(`${headers[":status"]} ${headers["x-seen"]} ${headers["grpc-status"]}${(flags & 1) === 0 ? "" : " and that is all"}`);
      if (path === "/talk") stream.write("one"); // the headers come before anything is said
    }).on("data", (chunk: Buffer) => {
      seen.push(chunk.toString());
      if (chunk.toString() === "echo one;") stream.end("two");
    }).on("trailers", (headers) => seen.push(`${headers["grpc-status"]} ${headers["grpc-message"]}`)).on("error", () => seen.push("error")).on("close", () => resolve(seen));
    if (path !== "/talk") stream.end("x");
  });
  expect(await call("/talk")).toEqual(["200 grpc.test trailers https undefined", "echo one;", "echo two;", "0 fine"]);
  expect(await call("/missing")).toEqual(["200 undefined 12 and that is all"]);
  expect(await call("/reset"), "unavailable").toEqual(["200 undefined 14 and that is all"]);
  expect(await call("/missing", "unknown.test"), "unimplemented").toEqual(["200 undefined 12 and that is all"]);
  expect(connections).toBe(1);
  session.close();
  server.close();
});

test.each([
  ["resets the stream", (socket: Socket, stream: number) => void socket.write(frame(3, 0, stream, Buffer.from([0, 0, 0, 8])))],
  ["is gone", (socket: Socket) => void socket.end()],
])("h2c: half of an answer, when the endpoint %s, is not a whole one to the client either", async (how, ends) => {
  await using server = await frameServer((socket, stream) => {
    socket.write(Buffer.concat([frame(1, 4, stream, Buffer.from([0x88])), frame(0, 0, stream, Buffer.from("half"))])); // ":status: 200"
    setTimeout(ends, 20, socket, stream);
  });
  const name = how.replaceAll(" ", "-");
  await service(name, [server.port], "kubernetes.io/h2c");
  await ingress(name, { rules: [rule(`${name}.test`, name)] });
  const session = http2.connect(`http://127.0.0.1:${PORTS.http}`), call = (): Promise<unknown[]> => new Promise((resolve) => {
    const seen: unknown[] = [], stream = session.request({ ":path": "/", ":authority": `${name}.test` });
    stream.on("response", ({ ":status": status }) => seen.push(status)).on("data", (bytes: Buffer) => seen.push(bytes.toString())).on("error", () => undefined).on("close", () => resolve([...seen, stream.rstCode]));
  });
  expect(await eventually(call, ([status]) => status === 200)).toEqual([200, "half", http2.constants.NGHTTP2_INTERNAL_ERROR]);
  session.close();
});

test("what changes again and again leaves nothing behind", async () => {
  const { signal } = stop;
  let listening = 0;
  const { addEventListener, removeEventListener } = signal;
  Object.assign(signal, {
    addEventListener: (...given: Parameters<typeof addEventListener>) => { listening++; addEventListener.apply(signal, given); },
    removeEventListener: (...given: Parameters<typeof removeEventListener>) => { listening--; removeEventListener.apply(signal, given); },
  });
  for (let i = 0; i < 5; i++) {
    await ingress(`passing-${i}`, { rules: [rule(`passing-${i}.test`, "echo")] });
    await eventually(() => ask(`passing-${i}.test`, "/"), ({ status }) => status === 200);
  }
  await clock.sleep(200, new AbortController().signal);
  Object.assign(signal, { addEventListener, removeEventListener });
  expect(listening).toBeLessThan(2);
});

test("an alias: a Service of type ExternalName is reached by its name, but for what is this machine's own, or a pod or a Service by its address", async () => {
  const withheld = withheldRanges(["10.42.0.0/16", "10.43.0.0/16", "192.0.2.9", "2001:db8::9"]), mayBeDialled = (one: string): boolean => isDialled(one, withheld);
  expect(["192.0.2.1", "10.0.0.1", "2001:db8::1", "::ffff:10.0.0.1"].map(mayBeDialled)).toEqual([true, true, true, true]);
  expect(["10.42.0.7", "::ffff:10.42.0.7", "10.43.0.1", "192.0.2.9", "2001:db8::9"].some(mayBeDialled)).toBe(false);
  expect(["127.0.0.1", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::", "0.0.0.0", "169.254.169.254", "fe80::1", "224.0.0.1", "nonsense"].some(mayBeDialled)).toBe(false);
  expect(keyOf({ address: "10.42.0.7", port: 80, isAlias: true }), "nor by a connection that is open").not.toBe(keyOf({ address: "10.42.0.7", port: 80 }));
  const own = new Upstreams(clock, () => withheld), refused = "192.0.2.9 has no address that may be used";
  await expect(own.dial({ address: "192.0.2.9", port: 80, isAlias: true }, call.signal)).rejects.toThrow(refused);
  await expect(new H2Upstreams(clock, own).connect({ address: "192.0.2.9", port: 80, isAlias: true }, undefined)).rejects.toThrow(refused);
  await api.client.resource(SERVICES).create({ apiVersion: "v1", kind: "Service", metadata: { name: "alias", namespace: "default" }, spec: { type: "ExternalName", externalName: "localhost" } } as NewObject<Service>, call);
  await ingress("alias", { rules: [{ host: "alias.test", http: { paths: [{ path: "/", pathType: "Prefix", backend: { service: { name: "alias", port: { number: portOf(servers[0]!) } } } }] } }] });
  await eventually(() => ask("alias.test", "/"), ({ status }) => status === 502);
});

async function defineRoutes(plural: string): Promise<void> {
  await api.client.resource(CUSTOM_RESOURCE_DEFINITIONS).create({ apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name: `${plural}.gateway.networking.k8s.io` }, spec: { versions: [{ name: "v1", served: true }] }, status: { conditions: [{ type: "Established", status: "True" }] } } as unknown as NewObject<CustomResourceDefinition>, call);
}

test("a Gateway that an older one leaves no room is not served at the nodes' ports, whatever the host; one is, of whose ports no Service leads to the one both want", async () => {
  const gatewayApi = "gateway.networking.k8s.io/v1", meta = (name: string, creationTimestamp: string) => ({ name, namespace: "default", creationTimestamp });
  const gateway = async (name: string, created: string, ...listeners: readonly object[]): Promise<void> => {
    const spec = { gatewayClassName: "gateways", listeners: listeners.map((one, i) => ({ name: `l${i}`, protocol: "HTTP" as const, port: 80, ...one })) };
    await api.client.resource(GATEWAYS).create({ apiVersion: gatewayApi, kind: "Gateway", metadata: meta(name, created), spec }, call);
    await api.client.resource(HTTP_ROUTES).create({ apiVersion: gatewayApi, kind: "HTTPRoute", metadata: meta(name, created), spec: { parentRefs: [{ name }], hostnames: [`${name}.gateway.test`], rules: [{ backendRefs: [{ name: "echo", port: 80 }] }] } }, call);
  };
  for (const ref of [GATEWAY_CLASSES, GATEWAYS, HTTP_ROUTES, REFERENCE_GRANTS]) api.serve(ref as ResourceRef);
  await defineRoutes("httproutes");
  await api.client.resource(GATEWAY_CLASSES).create({ apiVersion: gatewayApi, kind: "GatewayClass", metadata: { name: "gateways" }, spec: { controllerName: GATEWAY_CONTROLLER } }, call);
  await gateway("first", "2026-01-01T00:00:00Z", {}, { port: 9000 });
  await gateway("second", "2026-01-02T00:00:00Z", {});
  await gateway("third", "2026-01-03T00:00:00Z", { hostname: "third.gateway.test" }, { port: 9000 });
  await eventually(() => ask("third.gateway.test", "/"), ({ status }) => status === 200);
  expect([(await ask("first.gateway.test", "/")).status, (await ask("second.gateway.test", "/")).status]).toEqual([200, 404]);
});

test("one port for HTTPS and for TLS that is passed through: the most specific listener's host decides, and each serves what is its own", async () => {
  const door = 10_500 + process.pid % 500, identity = await selfSigned();
  const sealed = createTlsServer(identity, (socket) => void socket.on("error", () => undefined).end("sealed"));
  await new Promise<void>((done) => void sealed.listen(0, "127.0.0.1", done));
  await service("sealed", [(sealed.address() as AddressInfo).port]);
  await api.client.resource(SERVICES).create({ apiVersion: "v1", kind: "Service", metadata: { name: "coracle-ingress", namespace: "kube-system" }, spec: { ports: [{ name: "gateway-8443", port: 8443, targetPort: door }] } } as NewObject<Service>, call);
  api.serve(TLS_ROUTES as ResourceRef);
  await defineRoutes("tlsroutes");
  const gatewayApi = "gateway.networking.k8s.io/v1", tls = { protocol: "TLS", port: 8443, tls: { mode: "Passthrough" } } as const, https = { protocol: "HTTPS", port: 8443, tls: { certificateRefs: [{ name: "cert" }] } } as const;
  await api.client.resource(GATEWAYS).create({ apiVersion: gatewayApi, kind: "Gateway", metadata: { name: "mixed", namespace: "default" }, spec: { gatewayClassName: "gateways", listeners: [{ name: "rest", ...tls }, { name: "web", ...https, hostname: "*.web.mixed.test" }, { name: "not", ...tls, hostname: "not.web.mixed.test" }] } }, call);
  const route = { parentRefs: [{ name: "mixed" }], hostnames: ["a.web.mixed.test", "not.web.mixed.test", "other.mixed.test"] };
  await api.client.resource(HTTP_ROUTES).create({ apiVersion: gatewayApi, kind: "HTTPRoute", metadata: { name: "mixed", namespace: "default" }, spec: { ...route, rules: [{ backendRefs: [{ name: "echo", port: 80 }] }] } }, call);
  await api.client.resource(TLS_ROUTES).create({ apiVersion: gatewayApi, kind: "TLSRoute", metadata: { name: "mixed", namespace: "default" }, spec: { ...route, rules: [{ backendRefs: [{ name: "sealed", port: 80 }] }] } }, call);
  const asked = (servername: string, host = servername, method = "GET", body = ""): Promise<string> => new Promise((resolve, reject) => {
    let text = "";
    const socket = connectTls({ host: "127.0.0.1", port: door, servername, rejectUnauthorized: false }, () => void socket.write(`${method} / HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`));
    socket.on("data", (bytes: Buffer) => (text += bytes.toString())).on("error", reject).on("close", () => resolve(text));
  });
  await eventually(() => asked("other.mixed.test"), (text) => text === "sealed");
  expect([await asked("not.web.mixed.test"), (await asked("a.web.mixed.test")).slice(0, 12), (await asked("b.web.mixed.test")).slice(0, 12), (await asked("a.web.mixed.test", "other.mixed.test")).slice(0, 12)]).toEqual(["sealed", "HTTP/1.1 200", "HTTP/1.1 404", "HTTP/1.1 421"]);
  const shown = (servername: string): Promise<unknown> => new Promise((resolve, reject) => {
    const socket = connectTls({ host: "127.0.0.1", port: door, servername, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().subject.CN);
      socket.destroy();
    }).on("error", reject);
  });
  expect([await shown("a.web.mixed.test"), await shown("b.a.web.mixed.test")]).toEqual(["second", "second"]); // a listener's wildcard is one label and more
  const posted = await asked("a.web.mixed.test", "a.web.mixed.test", "POST", "x".repeat(1_000_000));
  expect([posted.length > 1_000_000, posted.includes('"x-forwarded-proto":"https"'), posted.includes('"x-forwarded-port":"8443"')]).toEqual([true, true, true]);
  const session = http2.connect(`https://127.0.0.1:${door}`, { servername: "a.web.mixed.test", rejectUnauthorized: false });
  const status = await new Promise((resolve, reject) => void session.on("error", reject).request({ ":path": "/", ":authority": "a.web.mixed.test" }).on("response", (headers) => resolve(headers[":status"])).resume().end());
  expect(status).toBe(200);
  session.close();
  sealed.close();
});
