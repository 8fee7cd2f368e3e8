import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { expect, test } from "vitest";
import { apiServer } from "../../../test/api-server.ts";
import { testPki } from "../../../test/certificates.ts";
import { eventually } from "../../../test/eventually.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { httpsServer } from "../../net/http-server.ts";
import { KUBELET_SERVER_NAME } from "../../net/tls.ts";
import { silentLog } from "../../observe/log.ts";
import type { ServerRequest } from "../request.ts";
import { nodeProxyHandlers } from "../special/node-proxy.ts";
import { forwardHttp, forwardUpgrade, isUpgrade } from "./forward.ts";

test.each([
  ["127.0.0.1", false], ["::1", false], ["0:0:0:0:0:0:0:1", false], ["0::1", false], ["::0001", false], ["::ffff:127.0.0.1", false], ["0:0:0:0:0:ffff:7f00:1", false], ["::", false], ["0:0::0", false],
  ["fe80::1", false], ["FEBF:0::1", false], ["fec0::1", true], ["ff02::1", false], ["169.254.169.254", false], ["::ffff:a9fe:a9fe", false], ["224.0.0.1", false], ["255.255.255.255", false], ["0.0.0.0", false],
  ["240.0.0.1", true], ["10.0.0.7", true], ["fd00::7", true],
])("a pod that says its address is %s is asked: %s", async (ip, asked) => {
  const dialled: string[] = [];
  const dialer = { connect: ({ host }: { readonly host: string }) => { dialled.push(host); return Promise.reject(new Error("refused")); } };
  await using api = await apiServer({ special: { connections: nodeProxyHandlers({ dialer, kubeletTls: () => ({ ca: "", cert: "", key: "" }) }) } });
  const path = "/api/v1/namespaces/a/pods";
  const { body } = await api.ask("POST", path, { body: { metadata: { name: "p" }, spec: { containers: [{ name: "c", image: "i" }] } } });
  await api.ask("PATCH", `${path}/p/status`, { headers: { "content-type": "application/merge-patch+json" }, body: { status: { podIP: ip, podIPs: [{ ip }] } } });
  expect(body.metadata.name).toBe("p");
  const told = await api.ask("GET", `${path}/p:80/proxy/`);
  expect([told.code, dialled]).toEqual(asked ? [503, [ip]] : [400, []]);
});

test.each([["65536", "address 65536: invalid port"], ["web", "lookup tcp/web: unknown port"]])("a port %s is none: %s", async (port, told) => {
  await using api = await apiServer({ special: { connections: nodeProxyHandlers({ dialer: { connect: () => Promise.reject(new Error("refused")) }, kubeletTls: () => ({ ca: "", cert: "", key: "" }) }) } });
  const path = "/api/v1/namespaces/a/pods";
  await api.ask("POST", path, { body: { metadata: { name: "p" }, spec: { containers: [{ name: "c", image: "i" }] } } });
  await api.ask("PATCH", `${path}/p/status`, { headers: { "content-type": "application/merge-patch+json" }, body: { status: { podIP: "10.0.0.7", podIPs: [{ ip: "10.0.0.7" }] } } });
  expect((await api.ask("GET", `${path}/p:${port}/proxy/`)).body).toMatchObject({ code: 503, message: `error trying to reach service: dial tcp: ${told}` });
});

test("a kubelet is told that it is the API server that comes, and must be the node that is meant by the cluster's own word", async () => {
  const pki = await testPki();
  const { keyPem: key, certificatePem: cert } = pki.leaf("serving-kubelet");
  const { keyPem, certificatePem } = pki.leaf("client-kube-apiserver");
  const called: unknown[] = [];
  const kubelet = httpsServer({ host: "127.0.0.1", port: 0, portFlag: "--port", tls: () => ({ key, cert, clientCas: [] }), upgrade() {}, log: silentLog, clock: systemClock, handler(_, response, { serverName }) { called.push(serverName); response.end("ok"); } });
  const stop = new AbortController();
  let running = Promise.resolve();
  await new Promise<void>((ready) => { running = kubelet.run(stop.signal, ready); });
  const dialer = { connect: async () => connect(kubelet.address()!.port, "127.0.0.1") };
  await using api = await apiServer({ special: { connections: nodeProxyHandlers({ dialer, kubeletTls: () => ({ ca: pki.authority("server-ca").bundlePem, cert: certificatePem, key: keyPem }) }) } });
  for (const name of ["node-1", "node-2"]) {
    await api.ask("POST", "/api/v1/nodes", { body: { metadata: { name } } });
    await api.ask("PATCH", `/api/v1/nodes/${name}/status`, { headers: { "content-type": "application/merge-patch+json" }, body: { status: { addresses: [{ type: "InternalIP", address: "10.0.0.7" }] } } });
  }
  await expect(api.ask("GET", "/api/v1/nodes/node-1/proxy/pods"), "passed on as it is").rejects.toThrow("a raw is not for ask()");
  expect(called).toEqual([KUBELET_SERVER_NAME]);
  expect((await api.ask("GET", "/api/v1/nodes/node-2/proxy/pods")).body.message).toMatch(/x509: certificate is valid for .*node-1.*, not node-2/);
  stop.abort();
  await running;
});

test("a kubelet that cannot be reached: what is said of it has no reason of the API's; nor is it asked for what only those speak that say so", async () => {
  const dialled: string[] = [];
  const dialer = { connect: ({ nodeName }: { readonly nodeName?: string | undefined }) => { dialled.push(nodeName!); return Promise.reject(new Error("dial tcp 10.0.0.7:10250: connect: connection refused")); } };
  await using api = await apiServer({ special: { connections: nodeProxyHandlers({ dialer, kubeletTls: () => ({ ca: "", cert: "", key: "" }) }) } });
  for (const [name, declaredFeatures] of [["old", undefined], ["new", ["ExtendWebSocketsToKubelet"]]] as const) {
    await api.ask("POST", "/api/v1/nodes", { body: { metadata: { name } } });
    await api.ask("PATCH", `/api/v1/nodes/${name}/status`, { headers: { "content-type": "application/merge-patch+json" }, body: { status: { addresses: [{ type: "InternalIP", address: "10.0.0.7" }], declaredFeatures } } });
    await api.ask("POST", "/api/v1/namespaces/a/pods", { body: { metadata: { name }, spec: { nodeName: name, containers: [{ name: "c", image: "i" }] } } });
  }
  const asked = async (path: string, protocol?: string) => {
    const [plain, query] = path.split("?");
    const { body } = await api.ask("GET", `/api/v1/namespaces/a/pods/${plain}`, { query: Object.fromEntries(new URLSearchParams(query)), headers: { connection: "Upgrade", upgrade: "websocket", ...(protocol === undefined ? {} : { "sec-websocket-protocol": protocol }) } });
    return [body.code, body.reason, body.message];
  };
  const refused = "dial tcp 10.0.0.7:10250: connect: connection refused", backend = [500, undefined, `error dialing backend: ${refused}`];
  expect(await asked("old/log")).toEqual([500, undefined, `Get "https://10.0.0.7:10250/containerLogs/a/old/c": ${refused}`]);
  for (const protocol of [undefined, "v4.channel.k8s.io", "v5.channel.k8s.io, v4.channel.k8s.io"]) expect(await asked("old/exec?command=a&stdout=1", protocol)).toEqual(backend);
  for (const [path, protocol] of [["exec?command=a&stdout=1", "base64url.bearer.authorization.k8s.io.abc, v5.channel.k8s.io"], ["attach?stdout=1", "v5.channel.k8s.io"], ["portforward?ports=1", "SPDY/3.1+portforward.k8s.io"]] as const) {
    const before = dialled.length;
    expect([await asked(`old/${path}`, protocol), dialled.length]).toEqual([[400, "BadRequest", `the kubelet of node "old" does not speak ${protocol.split(", ").at(-1)} over WebSocket`], before]);
    expect(await asked(`new/${path}`, protocol)).toEqual(backend);
  }
});

test("what may not stand in a path is escaped for the pod, and in where it sends the client", async () => {
  const heads: string[] = [];
  const pod = createServer((socket) => socket.once("data", (head: Buffer) => {
    heads.push(head.toString("latin1"));
    socket.end("HTTP/1.1 302 Found\r\nLocation: /<b>\r\nContent-Length: 0\r\n\r\n");
  })).listen(0, "127.0.0.1");
  await once(pod, "listening");
  const request = { method: "GET", header: () => undefined, headers: () => [], remoteAddress: "192.0.2.1", query: new URLSearchParams("q=<q>") } as unknown as ServerRequest;
  const backend = { host: "10.0.0.7:80", scheme: "http", connect: async () => connect((pod.address() as AddressInfo).port, "127.0.0.1") };
  const { signal } = new AbortController();
  const { headers } = await forwardHttp({ request, signal, server: { clock: systemClock } }, { backend, path: "/<a>", prefix: "/pods/p/proxy" });
  const upgrading = { ...request, header: (name: string) => (name === "connection" ? "Upgrade" : undefined) } as unknown as ServerRequest;
  await expect(forwardUpgrade({ request: upgrading, signal, server: { clock: systemClock } }, backend, "/<c>?q=<q>")).rejects.toThrow("invalid upgrade response: status code 302");
  pod.close();
  expect(heads[1]!.split("\r\n")[0]).toBe("GET /%3Cc%3E?q=<q> HTTP/1.1");
  expect(headers).toMatchObject({ location: "/pods/p/proxy/%3Cb%3E" });
  expect([heads[0]!.split("\r\n")[0], /^x-forwarded-uri: (.*)$/im.exec(heads[0]!)?.[1]]).toEqual(["GET /%3Ca%3E?q=%3Cq%3E HTTP/1.1", "/pods/p/proxy/%3Ca%3E"]);
});

test("a request that asks for a protocol nobody is handed over to is one like any: what its backend made of it would have no client", () => {
  const asking = (upgrade: string): boolean => isUpgrade({ header: (name: string) => ({ connection: "Upgrade", upgrade })[name] } as never);
  expect(["websocket", "WebSocket", "SPDY/3.1", "h2c", "foo", "websocket, foo", ""].map(asking)).toEqual([true, true, true, false, false, false, false]);
});

test("a kubelet that answers with another protocol, or sends the client elsewhere, where it is asked for a log has failed, and is let go of", async () => {
  const pki = await testPki();
  const { keyPem: key, certificatePem: cert } = pki.leaf("serving-kubelet");
  const { keyPem, certificatePem } = pki.leaf("client-kube-apiserver");
  let answer = "", open = 0;
  const kubelet = createTlsServer({ key, cert }, (socket) => {
    open++;
    socket.on("error", () => undefined).on("close", () => open--).once("data", () => socket.write(answer));
  }).listen(0, "127.0.0.1");
  await once(kubelet, "listening");
  const dialer = { connect: async () => connect((kubelet.address() as AddressInfo).port, "127.0.0.1") };
  await using api = await apiServer({ special: { connections: nodeProxyHandlers({ dialer, kubeletTls: () => ({ ca: pki.authority("server-ca").bundlePem, cert: certificatePem, key: keyPem }) }) } });
  await api.ask("POST", "/api/v1/nodes", { body: { metadata: { name: "node-1" } } });
  await api.ask("PATCH", "/api/v1/nodes/node-1/status", { headers: { "content-type": "application/merge-patch+json" }, body: { status: { addresses: [{ type: "InternalIP", address: "10.0.0.7" }] } } });
  await api.ask("POST", "/api/v1/namespaces/a/pods", { body: { metadata: { name: "p" }, spec: { nodeName: "node-1", containers: [{ name: "c", image: "i" }] } } });
  for (answer of ["HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"]) {
    const { code, body } = await api.ask("GET", "/api/v1/namespaces/a/pods/p/log");
    expect([code, body.code, body.reason]).toEqual([500, 500, "InternalError"]);
  }
  await eventually("no connection is left", () => Promise.resolve(open === 0));
  kubelet.close();
});
