import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { request as httpsRequest } from "node:https";
import { X509Certificate } from "node:crypto";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { createGunzip } from "node:zlib";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { zpages } from "../../../core/api/codec/zpages.ts";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import type { Client } from "../../../core/client/client.ts";
import type { ApiRequest } from "../../../core/client/transport.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { systemRandom } from "../../../core/lifecycle/random.ts";
import type { HttpsServer } from "../../../core/net/http-server.ts";
import { KUBELET_SERVER_NAME } from "../../../core/net/tls.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import { openPki, type Pki } from "../../../core/pki/pki.ts";
import { CriError } from "../../cri/client.ts";
import { KubeletApiError, type KubeletApi } from "../kubelet-api.ts";
import { KUBELET_DEFAULTS } from "../settings.ts";
import { givenCertificate } from "./given-certificate.ts";
import { requestCounts } from "./requests.ts";
import { type Routed, route } from "./routes.ts";
import { readOnlyServer } from "./read-only.ts";
import { kubeletServer, type KubeletServerOptions } from "./server.ts";

const dir = mkdtempSync(join(tmpdir(), "kubelet-server-"));
const quit = new AbortController();
const asked: string[] = [];
let pki: Pki;
let stranger: Pki;
let server: HttpsServer;
let ended: Promise<void>;
let runtimePort = 0;
const runtime = createHttpServer();

const POD = { apiVersion: "v1", kind: "Pod", metadata: { name: "web", namespace: "shop", uid: "u1" }, spec: { containers: [{ name: "c", image: "i" }] } } as unknown as Pod;

const api = {
  nodeName: "n1", logDir: dir,
  pods: () => [POD],
  pod: ({ namespace, name }: { namespace: string; name: string }) => (namespace === "shop" && name === "web" ? POD : undefined),
  logFile(_: unknown, container: string, { previous }: { previous?: boolean }) {
    if (previous) throw new KubeletApiError("bad-request", `previous terminated container "${container}" in pod "web" not found`);
    return { path: join(dir, "0.log"), running: () => false };
  },
  exec: (_: unknown, __: string, command: readonly string[]) => command[0] === "gone" ? Promise.reject(new CriError({ method: "", code: "NotFound", detail: "no such container" })) : command[0] === "many" ? Promise.reject(new CriError({ method: "", code: "ResourceExhausted", detail: "maximum number of in-flight requests exceeded" })) : Promise.resolve(`http://127.0.0.1:${runtimePort}/exec/${command.join("+")}`),
  checkpoint: async (_: unknown, container: string) => `/k/checkpoints/${container}.tar`,
  cadvisorMetrics: async () => "",
  unhealthyReason: () => undefined,
} as unknown as KubeletApi;

/** Knows the token "good" as joe, who may read pods; and masters, who may do anything. */
const client = {
  request({ path, body }: ApiRequest) {
    const { spec } = body as { spec: { token?: string; user?: string; groups?: readonly string[]; resourceAttributes?: { verb: string; subresource: string } } };
    if (path.endsWith("/tokenreviews")) return Promise.resolve({ status: spec.token === "good" ? { authenticated: true, user: { username: "joe", groups: [] } } : { authenticated: false } });
    const { verb, subresource } = spec.resourceAttributes!;
    asked.push(`${spec.user} ${verb} ${subresource}`);
    return Promise.resolve({ status: { allowed: spec.groups!.includes("system:masters") || (spec.user === "joe" && subresource === "pods") } });
  },
} as unknown as Client;

const metrics = metricsRegistry();
const counts = requestCounts({ metrics, clock: systemClock });
beforeAll(async () => {
  const open = (name: string): Promise<Pki> => openPki({ dir: join(dir, name), clock: systemClock, random: systemRandom, log: silentLog, releasedMs: 0, names: () => ({ nodeName: "n1", nodeIps: ["127.0.0.1"], serviceIps: [], clusterDomain: "cluster.local", extra: [] }) });
  pki = await open("tls");
  stranger = await open("stranger");
  runtime.on("upgrade", (_request, socket, head) => fakeRuntime(socket, head));
  await new Promise<void>((resolve) => runtime.listen(0, "127.0.0.1", resolve));
  runtimePort = (runtime.address() as AddressInfo).port;
  server = kubeletServer(options());
  await new Promise<void>((ready, failed) => { ended = server.run(quit.signal, ready); ended.catch(failed); });
});

function options(): KubeletServerOptions {
  const { keyPem, certificatePem } = pki.leaf("serving-kubelet");
  return {
    api, access: KUBELET_DEFAULTS.access, counts, host: "127.0.0.1", port: 0, tls: () => ({ key: keyPem, cert: certificatePem, clientCas: [pki.authority("client-ca").bundlePem] }), clientCa: () => pki.authority("client-ca").bundle,
    client, configz: () => ({ port: 10250 }), zpages: zpages({ component: "kubelet", flags: { "node-name": "n1" }, version: { major: "1", minor: "36", gitVersion: "v1.36.0", goVersion: "bun" }, paths: ["/statusz"], clock: systemClock }), debug: async ({ path, method, body }) => ({ status: 200, contentType: "text/plain", body: `${method} ${path} ${await body()}`, headers: {} }), clock: systemClock, exec: async () => ({ exitCode: 0, stdout: "", stderr: "" }), log: silentLog, metrics,
  };
}

/** Serves while `work` goes on. */
async function served(one: HttpsServer, work: () => Promise<void>): Promise<void> {
  const end = new AbortController();
  let running = Promise.resolve();
  await new Promise<void>((ready, failed) => { running = one.run(end.signal, ready); running.catch(failed); });
  try {
    await work();
  } finally {
    end.abort();
    await running;
  }
}

test("a certificate of somebody else's is shown to all but the API server, and read again when its files change; one that cannot be used changes nothing", async () => {
  const files = { certFile: join(dir, "given.crt"), keyFile: join(dir, "given.key") };
  const write = (from: Pki, key = from): void => {
    writeFileSync(files.certFile, from.leaf("serving-kubelet").certificatePem);
    writeFileSync(files.keyFile, key.leaf("serving-kubelet").keyPem);
  };
  const told: string[] = [];
  let one: HttpsServer | undefined;
  const given = givenCertificate(files, { changed: () => one!.reloadCertificates(), clock: { ...systemClock, every: (_, signal) => systemClock.every(20, signal) }, log: { ...silentLog, error: (message) => void told.push(message) } });
  expect([given.current(), told.length]).toEqual([undefined, 1]);
  const { tls: own } = options();
  one = kubeletServer({ ...options(), metrics: metricsRegistry(), tls: () => ({ ...own(), ...given.current() }), tlsForApiServer: own });
  const stop = new AbortController();
  await served(one, async () => {
    const shown = (servername?: string): Promise<string> => new Promise((resolve, reject) => {
      const socket = connectTls({ port: one!.address()!.port, host: "127.0.0.1", rejectUnauthorized: false, ...(servername === undefined ? {} : { servername }) }, () => { resolve(new X509Certificate(socket.getPeerCertificate().raw).fingerprint256); socket.destroy(); }).on("error", reject);
    });
    const of = (from: Pki): string => new X509Certificate(from.leaf("serving-kubelet").certificatePem).fingerprint256;
    expect([await shown(), await shown("n1"), await shown(KUBELET_SERVER_NAME)]).toEqual([of(pki), of(pki), of(pki)]);
    const reading = given.run(stop.signal, () => {});
    write(stranger);
    await expect.poll(() => shown()).toBe(of(stranger));
    expect([await shown("n1"), await shown(KUBELET_SERVER_NAME)]).toEqual([of(stranger), of(pki)]);
    write(pki, stranger);
    await expect.poll(() => told.length).toBe(2);
    expect(await shown()).toBe(of(stranger));
    write(pki);
    await expect.poll(() => shown()).toBe(of(pki));
    stop.abort();
    await reading;
  });
});

afterAll(async () => {
  quit.abort();
  await ended;
  runtime.close();
  rmSync(dir, { recursive: true });
});

interface As { readonly upgrade?: string; readonly pki?: Pki; readonly token?: string; readonly accept?: string; readonly encoding?: string; readonly port?: number }

function get(path: string, { upgrade, pki: from, token, accept, encoding, port = server.address()!.port }: As): Promise<string> {
  const leaf = from?.leaf("client-kube-apiserver");
  return new Promise((resolve, reject) => {
    const request = httpsRequest({
      host: "127.0.0.1", port, path, ca: pki.authority("server-ca").bundlePem, agent: false,
      ...(leaf ? { cert: leaf.certificatePem, key: leaf.keyPem } : {}), headers: { ...(token ? { authorization: `Bearer ${token}` } : {}), ...(accept ? { accept } : {}), ...(encoding ? { "accept-encoding": encoding } : {}), ...(upgrade ? { connection: "Upgrade", upgrade } : {}) },
    }, (response) => {
      let text = `${response.statusCode} `;
      if (response.headers.warning !== undefined) text += `(${response.headers.warning}) `;
      if (response.headers["retry-after"] !== undefined) text += `in ${response.headers["retry-after"]} s: `;
      const body = response.headers["content-encoding"] === "gzip" ? response.pipe(createGunzip()) : response;
      if (body !== response) text += "gzip ";
      body.on("data", (chunk: Buffer) => void (text += chunk.toString()));
      body.on("end", () => resolve(text.trimEnd()));
    });
    request.on("error", reject);
    request.end();
  });
}

test("who may what", async () => {
  expect(await get("/pods", {})).toBe("401 Unauthorized");
  expect(await get("/healthz", {})).toBe("401 Unauthorized");
  expect(await get("/pods", { pki: stranger })).toBe("401 Unauthorized");
  expect(await get("/pods", { token: "bad" })).toBe("401 Unauthorized");
  expect(await get("/pods", { token: "good" })).toContain('200 {"kind":"PodList"');
  expect(await get("/stats/summary", { token: "good" })).toBe("403 Forbidden (user=joe, verb=get, resource=nodes, subresource(s)=[stats])");
  expect(await get("/containerLogs/shop/web/c", { token: "good" })).toBe("403 Forbidden (user=joe, verb=get, resource=nodes, subresource(s)=[proxy])");
  expect(await get("//%73tats/summary", { token: "good" })).toContain("subresource(s)=[stats]"); // however it is spelled
  expect(await get("/healthz", { pki })).toBe("200 ok");
  const before = asked.length;
  await get("/healthz", { pki });
  expect(asked.length).toBe(before); // decisions are kept for a while
});

test("what pods use: of processor, memory and swap alone for who asks so; a scrape that learns nothing says so", async () => {
  const at = "2026-01-02T03:04:05Z";
  const each = { name: "c", startTime: at, cpu: { time: at, usageCoreNanoSeconds: 2e9 }, swap: { time: at, swapUsageBytes: 1 } };
  const rest = { io: { time: at }, fs: { time: at } };
  const summary = { node: { nodeName: "n1", ...each, name: undefined, ...rest, systemContainers: [{ ...each, ...rest, name: "pods" }] }, pods: [{ podRef: { name: "web", namespace: "shop", uid: "u1" }, startTime: at, ...rest, swap: each.swap, containers: [{ ...each, ...rest }] }] };
  const asked = { api: { ...api, statsSummary: async () => summary }, log: silentLog, debugging: true, query: new URLSearchParams("only_cpu_and_memory=true"), parts: ["stats", "summary"] } as unknown as Routed;
  const { cpu, swap } = each;
  const few = { node: { nodeName: "n1", startTime: at, cpu, swap, systemContainers: [{ name: "pods", startTime: at, cpu, swap }] }, pods: [{ podRef: summary.pods[0]!.podRef, startTime: at, swap, containers: [each] }] };
  for (const method of ["GET", "POST"]) expect(JSON.parse(String((await route({ ...asked, method })).body))).toEqual(few);
  expect(JSON.parse(String((await route({ ...asked, method: "GET", query: new URLSearchParams("only_cpu_and_memory=true&only_cpu_and_memory=true") })).body)).node.io).toBeDefined();
  const scraped = async (statsSummary: () => Promise<unknown>) => String((await route({ ...asked, api: { ...api, statsSummary } as unknown as KubeletApi, method: "GET", parts: ["metrics", "resource"], signal: new AbortController().signal })).body).split("\n").filter((line) => !line.startsWith("#") && line !== "");
  expect(await scraped(async () => summary)).toContain("resource_scrape_error 0");
  const away = async () => { throw new Error("the runtime does not answer"); };
  await expect(route({ ...asked, api: { ...api, statsSummary: away } as unknown as KubeletApi, method: "GET", signal: new AbortController().signal })).rejects.toMatchObject({ answer: { status: 500, body: "Internal Error: the runtime does not answer" } });
  expect(await scraped(away)).toEqual(["resource_scrape_error 1"]);
});

test("settings and time of start, for who may see them", async () => {
  expect(await get("/flagz", { pki })).toMatch(/^200 \nkubelet flagz\nWarning: [\s\S]*\nnode-name=n1$/);
  expect(await get("/statusz", { pki })).toMatch(/^200 \nkubelet statusz\n[\s\S]*\nBinary version: 1.36.0\n[\s\S]*\nPaths: \/statusz$/);
  expect(await get("/flagz", { pki, accept: "application/json;v=v1beta1;g=config.k8s.io;as=Flagz" })).toBe('200 {"kind":"Flagz","apiVersion":"config.k8s.io/v1beta1","metadata":{"name":"kubelet"},"flags":{"node-name":"n1"}}');
  expect(await get("/flagz", { pki, accept: "application/json;v=v1alpha1;g=config.k8s.io;as=Flagz" })).toMatch(/^200 \(299 - "This version of the flagz endpoint is deprecated\. Please use a newer version\."\) \{"kind":"Flagz","apiVersion":"config\.k8s\.io\/v1alpha1"/);
  expect(await get("/flagz", { pki, accept: "application/json" })).toBe('406 {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"only the following media types are accepted: application/json, application/yaml, text/plain","reason":"NotAcceptable","code":406}');
  expect(await get("/statusz", { token: "good" })).toContain("403 Forbidden (user=joe, verb=get, resource=nodes, subresource(s)=[statusz])");
});

test("what its health checks found, at a path of its own", async () => {
  expect(await get("/metrics/slis", { token: "good" })).toBe("403 Forbidden (user=joe, verb=get, resource=nodes, subresource(s)=[metrics])");
  const told = await get("/metrics/slis", { pki });
  for (const name of ["ping", "log", "syncloop"]) expect(told).toContain(`kubernetes_healthcheck{name="${name}",type="healthz"} 1`);
  expect(told).toContain('kubernetes_healthchecks_total{name="syncloop",status="success",type="healthz"}');
  expect(await get("/metrics", { pki })).not.toContain("kubernetes_healthcheck");
  expect(await get("/metrics", { pki, encoding: "deflate, gzip;q=0.5" })).toMatch(/^200 gzip # HELP /);
  expect(await get("/metrics", { pki, encoding: "gzip;q=0" })).toMatch(/^200 # HELP /);
});

test("methods that are none are not counted one by one", async () => {
  const session = connectHttp2(`https://127.0.0.1:${server.address()!.port}`, { ca: pki.authority("server-ca").bundlePem, servername: "n1" });
  for (const method of ["BREW", "WHEN"]) await new Promise<void>((resolve, reject) => void session.request({ ":method": method, ":path": "/pods" }).on("error", reject).resume().on("end", resolve));
  session.destroy();
  const lines = metrics.render().split("\n").filter((line) => line.startsWith("kubelet_http_requests_total"));
  expect(lines.filter((line) => line.includes('method="other"'))).toEqual([expect.stringMatching(/method="other".* 2$/)]);
  expect(lines.filter((line) => /BREW|WHEN/.test(line))).toEqual([]);
});

test("logs, and why there are none", async () => {
  writeFileSync(join(dir, "0.log"), "2026-01-02T03:04:05Z stdout F one\n");
  appendFileSync(join(dir, "0.log"), "2026-01-02T03:04:06Z stderr F two\n");
  expect(await get("/containerLogs/shop/web/c", { pki })).toBe("200 one\ntwo");
  expect(await get("/containerLogs/shop/web/c?tailLines=1&follow=true&timestamps=true", { pki })).toBe("200 2026-01-02T03:04:06.000000000Z two");
  expect(await get("/containerLogs/shop/web/c?previous=true", { pki })).toBe('400 previous terminated container "c" in pod "web" not found');
  expect(await get("/containerLogs/shop/web/x", { pki })).toBe('404 container "x" not found in pod "web"');
  expect(await get("/containerLogs/shop/nope/c", { pki })).toBe('404 pod "nope" does not exist');
  expect(await get("/containerLogs/shop/web/c?tailLines=-1", { pki })).toBe('422 {"message": "Invalid request."}');
  expect(await get("/logs/../../etc/passwd", { pki })).toBe("404 404 page not found");
  expect(await get("/exec/shop/web/c?output=1&command=x", { pki })).toBe("500 Upgrade request required");
  expect(await get("/exec/shop/web/c?command=x", { pki })).toBe("400 you must specify at least 1 of stdin, stdout, stderr");
  expect([await get("/attach/shop/nope/c?output=1", { pki }), await get("/portForward/shop/nope", { pki }), await get("/portForward/shop/web/other", { pki })]).toEqual(["404 pod does not exist", "404 pod does not exist", "404 pod not found"]);
});

test("a container that is gone by the time its runtime is asked is not found", async () => {
  expect(await get("/exec/shop/web/c?output=1&command=gone", { pki, upgrade: "SPDY/3.1" })).toBe("404 rpc error: code = NotFound desc = no such container");
});

test("who asks for more streams than the runtime keeps is told when to come again", async () => {
  expect(await get("/exec/shop/web/c?output=1&command=many", { pki, upgrade: "SPDY/3.1" })).toBe("429 in 60 s: rpc error: code = ResourceExhausted desc = maximum number of in-flight requests exceeded");
});

test.each<readonly [query: string, why: string]>([
  ["", 'query parameter "port" is required'], ["port=", 'query parameter "port" cannot be empty'], ["port=80,0", 'port "80,0" must be > 0'],
  ...([["1e3", "invalid syntax"], ["-1", "invalid syntax"], ["", "invalid syntax"], ["70000", "value out of range"]] as const).map(([text, why]) => [`port=80,${text}`, `unable to parse "80,${text}" as a port: strconv.ParseUint: parsing "${text}": ${why}`] as const),
])("ports over WebSocket: ?%s", async (query, why) => {
  expect(await get(`/portForward/shop/web?${query}`, { pki, upgrade: "websocket" })).toBe(`400 ${why}`);
});

/** What fakeRuntime has read of stdin, of each connection. */
const typed: string[][] = [];

/** How the command ended. */
let end = "";

/** Answers a SPDY upgrade, sends stdin back on stdout, and once stdin has ended says how the command did. */
function fakeRuntime(socket: Duplex, head: Buffer): void {
  let bytes = head;
  const read: string[] = [];
  typed.push(read);
  const ids = { error: 1, stdin: 3, stdout: 5 }; // in the order they are opened
  const frame = (id: number, text: string | Buffer, fin = 0): Buffer => {
    const start = Buffer.alloc(8);
    start.writeUInt32BE(id, 0);
    start.writeUInt32BE(Buffer.byteLength(text), 4);
    start[4] = fin;
    return Buffer.concat([start, Buffer.from(text)]);
  };
  socket.on("error", () => undefined);
  socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n");
  socket.on("data", (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    while (bytes.length >= 8) {
      const length = bytes.readUInt32BE(4) & 0xff_ffff;
      if (bytes.length < 8 + length) return;
      if (bytes.readUInt32BE(0) === ids.stdin) read.push(bytes.toString("utf8", 8, 8 + length) || "end");
      if (bytes.readUInt32BE(0) === ids.stdin && length > 0) socket.write(frame(ids.stdout, bytes.subarray(8, 8 + length)));
      if (bytes.readUInt32BE(0) === ids.stdin && bytes[4] === 1) {
        socket.write(frame(ids.error, end, 1)); // before the output has ended
        socket.write(frame(ids.stdout, "bye", 1));
      }
      bytes = bytes.subarray(8 + length);
    }
  });
}

interface Exec { readonly url: string; readonly protocols: readonly string[]; open(socket: WebSocket): void; message?(socket: WebSocket, message: string): void }

async function execOver({ url, protocols, open, message }: Exec): Promise<{ readonly socket: WebSocket; readonly got: readonly string[]; readonly code: number }> {
  const leaf = pki.leaf("client-kube-apiserver");
  const tls = { ca: pki.authority("server-ca").bundlePem, cert: leaf.certificatePem, key: leaf.keyPem };
  const socket = new WebSocket(`wss://127.0.0.1:${server.address()!.port}/exec/shop/web/c?${url}`, { protocols, tls } as unknown as string[]);
  socket.binaryType = "arraybuffer";
  const got: string[] = [];
  socket.onopen = () => open(socket);
  socket.onmessage = ({ data }) => {
    const bytes = Buffer.from(data as ArrayBuffer);
    got.push(`${bytes[0]} ${bytes.subarray(1)}`);
    message?.(socket, got.at(-1)!);
  };
  const code = await new Promise<number>((resolve) => { socket.onclose = (closed) => resolve(closed.code); });
  return { socket, got, code };
}

test("exec over WebSocket v5: what is typed comes back, closing stdin ends it, the Status is the last word", async () => {
  end = '{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}';
  const { socket, got, code } = await execOver({
    url: "command=cat&input=1&output=1", protocols: ["v5.channel.k8s.io"],
    open(socket) {
      socket.send(Buffer.from("\0hello"));
      socket.send(Uint8Array.of(255, 0));
    },
  });
  expect(socket.protocol).toBe("v5.channel.k8s.io");
  expect(metrics.render()).toMatch(/kubelet_websocket_streaming_requests_total\{subresource="exec"\} \d/);
  expect(got).toEqual(["1 ", "1 hello", "1 bye", '3 {"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: command terminated with exit code 3","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}']);
  expect(code).toBe(1000);
});

test.each([
  ["v5.channel.k8s.io", '{"status":"Failure","reason":"InternalError","message":"Internal error occurred: no such command"}', "Internal error occurred: Internal error occurred: no such command"],
  ["v5.channel.k8s.io", "no Status", "Internal error occurred: error stream protocol error: "],
  ["v5.channel.k8s.io", "{}", "Internal error occurred: error stream protocol error: unknown error"],
  ["v5.channel.k8s.io", '{"status":"Failure","reason":"NonZeroExitCode"}', "Internal error occurred: error stream protocol error: details must be set"],
  ["v5.channel.k8s.io", '{"status":"Failure","reason":"NonZeroExitCode","details":{}}', "Internal error occurred: error stream protocol error: no ExitCode cause given"],
  ["v5.channel.k8s.io", '{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"256"}]}}', 'Internal error occurred: error stream protocol error: invalid exit code value "256"'],
] as const)("what failed over WebSocket is an internal error of the translator's, as upstream's: %s %s", async (protocol, said, message) => {
  end = said;
  const { got } = await execOver({ url: "command=cat&input=1&output=1", protocols: [protocol], open: (socket) => socket.send(Uint8Array.of(255, 0)) });
  const told = JSON.parse(got.at(-1)!.slice(2)) as { readonly message: string };
  expect(told).toMatchObject({ status: "Failure", reason: "InternalError", code: 500, details: { causes: [{ message: told.message.slice("Internal error occurred: ".length) }] } });
  expect(told.message.startsWith(message)).toBe(true);
});

test("exec over WebSocket v4 reaches the runtime as streams, too; stdin ends with the connection alone", async () => {
  const { socket, got } = await execOver({
    url: "command=cat&input=1&output=1", protocols: ["v4.channel.k8s.io", "v3.channel.k8s.io"],
    open(socket) {
      socket.send(Uint8Array.of(255, 0));
      socket.send(Buffer.from("\0hello"));
    },
    message(socket, message) { if (message === "1 hello") socket.close(); },
  });
  expect([socket.protocol, ...got]).toEqual(["v4.channel.k8s.io", "1 ", "1 hello"]);
});

test.each<[protocol: string]>([["v4.channel.k8s.io"], ["v5.channel.k8s.io"]])("who types and goes (%s) has typed it, and its end", async (protocol) => {
  await execOver({
    url: "command=cat&input=1&output=1", protocols: [protocol],
    open(socket) {
      socket.send(Buffer.from("\0hello"));
      socket.close();
    },
  });
  await vi.waitFor(() => expect(typed.at(-1)).toEqual(["hello", "end"]));
});

test("profiles and how much is logged are the administrator's, unless the configuration says that there are none", async () => {
  expect(await get("/debug/pprof/", { pki })).toBe("200 GET /debug/pprof/");
  expect(await get("/debug/pprof/profile?seconds=1", { pki })).toBe("200 GET /debug/pprof/profile");
  await vi.waitFor(() => expect(metrics.render()).toContain('kubelet_http_requests_total{long_running="true",method="GET",path="debug",server_type="readwrite"}'));
  expect(await get("/debug/flags/v", { pki })).toBe("200 GET /debug/flags/v");
  expect(await get("/debug/flags", { pki })).toBe("404 404 page not found");
  expect(await get("/debug/pprof/", { token: "good" })).toMatch(/^403 /);
  const asked = { debugging: true, configz: () => ({ enableProfilingHandler: false, enableDebugFlagsHandler: false }), method: "GET", query: new URLSearchParams(), debug: () => Promise.reject(new Error("not asked")), body: () => Promise.resolve("") } as unknown as Routed;
  expect(await route({ ...asked, parts: ["debug", "pprof", "profile"] })).toMatchObject({ status: 405, body: "profiling endpoint is disabled.\n" });
  expect(await route({ ...asked, parts: ["debug", "flags", "v"] })).toMatchObject({ status: 405, body: "flags endpoint is disabled.\n" });
});

test("anyone may ask anything where the settings say so; without debugging there is none", async () => {
  const open = kubeletServer({ ...options(), metrics: metricsRegistry(), access: { ...KUBELET_DEFAULTS.access, anonymous: true, tokens: false, authorizes: false, debugging: false } });
  const asker = (path: string, as: As = {}) => get(path, { ...as, port: open.address()!.port });
  await served(open, async () => {
    expect(await asker("/pods")).toContain('200 {"kind":"PodList"');
    expect(await asker("/healthz", { token: "bad" })).toBe("200 ok");
    expect(await asker("/healthz", { pki: stranger })).toBe("401 Unauthorized");
    for (const path of ["/containerLogs/shop/web/c", "/exec/shop/web/c?output=1&command=x", "/runningpods/", "/logs/", "/debug/pprof/"]) expect(await asker(path)).toBe("405 Debug endpoints are disabled.");
    expect(await asker("/exec/shop/web/c?output=1&command=x", { upgrade: "SPDY/3.1" })).toBe("405 Debug endpoints are disabled.");
    for (const path of ["/configz", "/statusz", "/debug/flags/v"]) expect(await asker(path)).toBe("404 404 page not found");
  });
  const authorized = kubeletServer({ ...options(), metrics: metricsRegistry(), access: { ...KUBELET_DEFAULTS.access, anonymous: true } });
  await served(authorized, async () => {
    expect(await get("/healthz", { port: authorized.address()!.port })).toBe("403 Forbidden (user=system:anonymous, verb=get, resource=nodes, subresource(s)=[healthz proxy])");
    expect(await get("/healthz", { token: "bad", port: authorized.address()!.port })).toBe("401 Unauthorized");
  });
});

test("the read-only port tells health, pods and metrics, and nothing else", async () => {
  const readOnly = readOnlyServer({ ...options(), host: "127.0.0.1" });
  await served(readOnly, async () => {
    const asked = async (path: string, init: RequestInit = {}) => {
      const response = await fetch(`http://127.0.0.1:${readOnly.address()!.port}${path}`, init);
      return `${response.status} ${(await response.text()).trimEnd()}`;
    };
    expect(await asked("/healthz")).toBe("200 ok");
    expect(await asked("/pods")).toContain('200 {"kind":"PodList"');
    expect(await asked("/metrics")).toContain('kubelet_http_requests_total{long_running="false",method="GET",path="pods",server_type="readonly"} 1');
    for (const path of ["/containerLogs/shop/web/c", "/logs/", "/runningpods/"]) expect(await asked(path)).toBe("405 Debug endpoints are disabled.");
    expect(await asked("/run/shop/web/c?cmd=id", { method: "POST" })).toBe("405 Debug endpoints are disabled.");
    for (const path of ["/configz", "/localPath/x", "/checkpoint/shop/web/c"]) expect(await asked(path)).toBe("404 404 page not found");
  });
});
