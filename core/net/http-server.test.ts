import { X509Certificate } from "node:crypto";
import { rmSync } from "node:fs";
import type { ServerResponse } from "node:http";
import * as http2 from "node:http2";
import * as net from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import * as tls from "node:tls";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { forSealingOnly, servingMaterial, testPki } from "../../test/certificates.ts";
import { h2Frame } from "../../test/fuzz/hostile.ts";
import { type Clock, systemClock } from "../lifecycle/clock.ts";
import { silentLog } from "../observe/log.ts";
import type { TlsPolicy } from "./tls-policy.ts";
import { tlsOptions } from "./tls.ts";
import type { Connection } from "./connections.ts";
import { httpsServer, type HttpsServer, type HttpsServerOptions } from "./http-server.ts";

let pki: Awaited<ReturnType<typeof testPki>>;
beforeAll(async () => { pki = await testPki(); });
afterAll(() => rmSync(pki.dir, { recursive: true, force: true }));

interface Running { server: HttpsServer; port: number; stop(): Promise<void> }
const running: Running[] = [];
afterEach(async () => { for (const one of running.splice(0)) await one.stop(); });

async function start(options: Partial<HttpsServerOptions>): Promise<Running> {
  const server = httpsServer({
    host: "127.0.0.1", port: 0, portFlag: "--https-listen-port", tls: () => servingMaterial(pki), log: silentLog, clock: systemClock,
    handler: (_request, response) => void response.end("ok"), upgrade: (_request, socket) => void socket.destroy(), ...options,
    limits: { drainMs: 300, ...options.limits },
  });
  const stop = new AbortController();
  let ended: Promise<void> = Promise.resolve();
  await new Promise<void>((resolve, reject) => { ended = server.run(stop.signal, resolve); ended.catch(reject); });
  const one = { server, port: server.address()!.port, async stop() { stop.abort(); await ended; } };
  running.push(one);
  return one;
}

const identity = (name?: string): tls.ConnectionOptions => (name === undefined ? {} : { key: pki.leaf(name).keyPem, cert: pki.leaf(name).certificatePem });
const trust = (): tls.ConnectionOptions => ({ ca: pki.authority("server-ca").bundlePem, servername: "localhost" });

/** Sends raw bytes; resolves with all that comes back until the server closes, or until `until` is seen. */
function raw(port: number, text: string, { as, until }: { as?: string; until?: RegExp } = {}): Promise<string> {
  return new Promise((resolve) => {
    const socket = tls.connect({ port, host: "127.0.0.1", ...trust(), ...identity(as), ALPNProtocols: ["http/1.1"] }, () => socket.write(text));
    let got = "";
    const done = (): void => { resolve(got); socket.destroy(); };
    socket.on("data", (chunk) => { got += chunk.toString("latin1"); if (until?.test(got)) done(); });
    socket.on("close", done);
    socket.on("error", done);
  });
}

function session(port: number, as?: string): http2.ClientHttp2Session {
  const client = http2.connect(`https://127.0.0.1:${port}`, { ...trust(), ...identity(as) });
  client.on("error", () => client.destroy());
  return client;
}

function ask(client: http2.ClientHttp2Session, path: string, body?: string): Promise<string> {
  return new Promise((resolve) => {
    const stream = client.request({ ":path": path, ...(body === undefined ? {} : { ":method": "POST" }) });
    let got = "";
    stream.on("response", (headers) => { got += `${headers[":status"]} `; });
    stream.on("data", (chunk) => { got += String(chunk); });
    stream.on("end", () => resolve(got));
    stream.on("error", (error) => resolve(`error ${error.message}`));
    stream.end(body);
  });
}

const END = /\r\n\r\n[\s\S]*ok$/;
const GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

describe("who is calling", () => {
  const told = (connection: Connection): string => `${connection.protocol} ${connection.peerCertificate?.subject.CN} ${connection.peerCertificate?.authorized} ${connection.peerCertificate && connection.peerCertificate.issuers.length > 0 ? 1 : undefined} ${connection.remoteAddress} ok`;
  test.each([
    [undefined, "undefined undefined undefined"], ["client-admin", "system:admin true 1"], ["client-auth-proxy", "system:auth-proxy true 1"], ["serving-kube-apiserver", "kube-apiserver false 1"],
  ])("certificate %s", async (as, seen) => {
    const { port } = await start({ handler: (_request, response, connection) => void response.end(told(connection)) });
    expect(await raw(port, GET, { ...(as === undefined ? {} : { as }), until: END })).toContain(`http/1.1 ${seen} 127.0.0.1 ok`);
    const client = session(port, as);
    expect(await ask(client, "/")).toBe(`200 h2 ${seen} 127.0.0.1 ok`);
    client.destroy();
  });

  test("a renewed certificate is shown to new connections; old ones go on", async () => {
    let material = servingMaterial(pki);
    const { port, server } = await start({ tls: () => material });
    const old = session(port);
    expect(await ask(old, "/")).toBe("200 ok");
    const { serial } = pki.leaf("serving-kube-apiserver").certificate;
    rmSync(join(pki.dir, "serving-kube-apiserver.crt"));
    await pki.renew();
    material = servingMaterial(pki);
    server.reloadCertificates();
    const shown = await new Promise<string>((resolve) => { const socket = tls.connect({ port, host: "127.0.0.1", ...trust() }, () => { resolve(socket.getPeerCertificate().serialNumber.toLowerCase()); socket.destroy(); }); });
    expect(shown).toBe(pki.leaf("serving-kube-apiserver").certificate.serial);
    expect(shown).not.toBe(serial);
    expect(await ask(old, "/")).toBe("200 ok");
    old.destroy();
  });
});

describe("requests", () => {
  test.each([
    ["no Host in 1.1", "GET / HTTP/1.1\r\n\r\n", /^HTTP\/1.1 400 [\s\S]*400 Bad Request: missing required Host header$/],
    ["no Host, and why, in the status line", "GET / HTTP/1.1\r\n\r\n", /^HTTP\/1.1 400 Bad Request: missing required Host header\r\n/],
    ["two Hosts", "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", /^HTTP\/1.1 400 Bad Request\r\n/],
    ["a Host that is none", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", /^HTTP\/1.1 400 Bad Request: malformed Host header\r\n[\s\S]*Connection: close/],
    ["a Host with a port and brackets", "GET / HTTP/1.1\r\nHost: [fd00::1]:443\r\nConnection: close\r\n\r\n", /^HTTP\/1.1 200 /],
    ["an escape that is none", "GET /a%zz HTTP/1.1\r\nHost: x\r\n\r\n", /^HTTP\/1.1 400 Bad Request\r\nContent-Type: text\/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request$/],
    ["half an escape at the end", "GET /a%2 HTTP/1.1\r\nHost: x\r\n\r\n", /^HTTP\/1.1 400 Bad Request\r\n/],
    ["an escape that is none of a method nobody knows", "FOO /a%zz HTTP/1.1\r\nHost: x\r\n\r\n", /^HTTP\/1.1 400 Bad Request\r\n/],
    ["an escape that is none in a query", "GET /a%20?b=%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", /^HTTP\/1.1 200 [\s\S]*url=\/a%20\?b=%zz$/],
    ["what the server itself can do", "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", /^HTTP\/1.1 200 OK\r\n[\s\S]*Content-Length: 0\r\n[\s\S]*\r\n\r\n$/],
    ["a coding nobody knows", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", /^HTTP\/1.1 501 Not Implemented\r\n[\s\S]*Unsupported transfer encoding$/],
    ["a version nobody knows", "GET / HTTP/1.3\r\nHost: x\r\n\r\n", /^HTTP\/1.1 505 HTTP Version Not Supported: unsupported protocol version\r\n/],
    ["no Host in 1.0", "GET / HTTP/1.0\r\n\r\n", /^HTTP\/1.1 200 [\s\S]*url=\/$/],
    ["absolute form", "GET https://elsewhere/a?b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", /^HTTP\/1.1 200 [\s\S]*url=\/a\?b$/],
    ["an upgrade we do not know is a request like any", "GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n", /^HTTP\/1.1 200 [\s\S]*url=\/a/],
    ["garbage", "\x00\x01\x02\r\n\r\n", /^HTTP\/1.1 400 Bad Request/],
    ["two lengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", /^HTTP\/1.1 400 Bad Request/],
    ["length and chunks", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", /^HTTP\/1.1 400 Bad Request/],
    ["CONNECT", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", /^HTTP\/1.1 200 [\s\S]*Connection: close[\s\S]*url=$/],
    ["CONNECT to a path", "CONNECT /a HTTP/1.1\r\nHost: x\r\n\r\n", /^HTTP\/1.1 200 [\s\S]*url=\/a$/],
    ["a method nobody knows", "FOO /a?b HTTP/1.1\r\nHost: x\r\nX-A: 1\r\nX-A: 2\r\n\r\n", /^HTTP\/1.1 200 [\s\S]*Connection: close[\s\S]*url=\/a\?b$/],
    ["a method nobody knows, and no Host", "FOO /a HTTP/1.1\r\n\r\n", /^HTTP\/1.1 400 Bad Request/],
    ["what is expected and nobody knows", "POST /a HTTP/1.1\r\nHost: x\r\nExpect: foo\r\nContent-Length: 1\r\n\r\na", /^HTTP\/1.1 417 Expectation Failed\r\n[\s\S]*Content-Length: 0\r\n/],
    ["an expectation that says nothing", "POST /a HTTP/1.1\r\nHost: x\r\nExpect: \r\nContent-Length: 1\r\nConnection: close\r\n\r\na", /^HTTP\/1.1 200 [\s\S]*url=\/a$/],
    ["that a connection is kept goes without saying", "GET /a HTTP/1.1\r\nHost: x\r\n\r\n", /^HTTP\/1.1 200 OK\r\n(?![\s\S]*Connection:)[\s\S]*url=\/a$/],
  ])("%s", async (_name, asked, answer) => {
    const { port } = await start({ handler: (request, response) => void response.end(`url=${request.url}`) });
    expect(await raw(port, asked, { until: /url=|417.*\r\n\r\n/s })).toMatch(answer);
  });

  test("a method nobody knows has a body, whole or in parts", async () => {
    const { port } = await start({ handler: (request, response) => void text(request).then((body) => response.end(`url=${request.method} ${body}`)) });
    expect(await raw(port, "FOO /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", { until: /url=/ })).toMatch(/url=FOO abc$/);
  });

  test("a method nobody knows behind another request is refused, and that request is not served again", async () => {
    let served = 0;
    const { port } = await start({ handler: (_, response) => { served++; setTimeout(() => void response.end("url=done"), 50); } });
    for (const method of ["FOO /b", "CONNECT b:1"]) await raw(port, `GET /a HTTP/1.1\r\nHost: x\r\n\r\n${method} HTTP/1.1\r\nHost: x\r\n\r\n`, { until: /400|url=/ });
    expect(served).toBe(2);
  });

  test("a method nobody knows may follow an answer", async () => {
    const { port } = await start({ handler: (request, response) => void response.end(`url=${request.method}`) });
    const got = await new Promise<string>((resolve) => {
      let all = "";
      const socket = tls.connect({ port, host: "127.0.0.1", ...trust(), ALPNProtocols: ["http/1.1"] }, () => socket.write("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"));
      socket.on("data", (chunk: Buffer) => { all += chunk.toString(); if (all.endsWith("url=GET")) socket.write("FOO /b HTTP/1.1\r\nHost: x\r\n\r\n"); }).on("close", () => resolve(all)).on("error", () => undefined);
    });
    expect(got).toMatch(/url=GETHTTP\/1.1 200 OK\r\n[\s\S]*url=FOO$/);
  });

  test("where whatever is asked for is handed over, it is", async () => {
    const { port } = await start({ handler: (request, response) => void response.end(`url=${request.url}`), handsOver: (path) => path === "/there", upgrade: (request, socket) => void socket.end(`url=${request.headers.upgrade}`) });
    const asking = (path: string): string => `GET ${path}?x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n`;
    expect(await raw(port, asking("/there"), { until: /url=/ })).toBe("url=foo");
    expect(await raw(port, asking("/here"), { until: /url=/ })).toMatch(/url=\/here\?x$/);
  });

  test("headers have a limit, and tokens fit below it", async () => {
    const { port } = await start({});
    expect(await raw(port, `GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${"a".repeat(30_000)}\r\n\r\n`, { until: END })).toMatch(/^HTTP\/1.1 200/);
    expect(await raw(port, `GET / HTTP/1.1\r\nHost: x\r\nX-A: ${"a".repeat(100_000)}\r\n\r\n`)).not.toContain("200");
  });

  test("there may be as many fields as there is room for: each group of whom somebody acts for is one", async () => {
    const { port } = await start({ handler: ({ rawHeaders }, response) => void response.end(`${rawHeaders.filter((name) => name.toLowerCase() === "impersonate-group").length} ok`) });
    const groups = Array.from({ length: 1400 }, (_, i) => `g${i}`);
    expect(await raw(port, `GET / HTTP/1.1\r\nHost: x\r\n${groups.map((group) => `Impersonate-Group: ${group}\r\n`).join("")}\r\n`, { until: END })).toContain("\r\n\r\n1400 ok");
    const client = session(port);
    const stream = client.request({ ":path": "/", "impersonate-group": groups.slice(0, 1000) });
    expect(await text(stream)).toBe("1000 ok");
    client.destroy();
  });

  test("the limit may be another one; over HTTP/2 clients are told the engine's own, and how much they may have under way", async () => {
    const { port } = await start({ limits: { headerBytesMax: 1024 * 1024, streamsMax: 7 } });
    const heads = (bytes: number): string[] => [`GET / HTTP/1.1\r\nHost: x\r\nX-A: ${"a".repeat(bytes)}\r\n\r\n`, `GET /${"a".repeat(bytes)} HTTP/1.1\r\nHost: x\r\n\r\n`];
    for (const head of heads(900_000)) expect(await raw(port, head, { until: END })).toMatch(/^HTTP\/1.1 200/);
    for (const head of heads(1_100_000)) expect(await raw(port, head)).toBe("HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n431 Request Header Fields Too Large");
    const client = session(port);
    const { maxHeaderListSize, maxConcurrentStreams, initialWindowSize } = await new Promise<http2.Settings>((resolve) => client.once("remoteSettings", resolve));
    expect([maxHeaderListSize, maxConcurrentStreams, initialWindowSize]).toEqual([65_536, 7, 262_144]);
    expect([await ask(client, "/a%zz"), await ask(client, "/a%20?b=%zz")]).toEqual([expect.not.stringContaining("200"), "200 ok"]);
    expect(client.state.remoteWindowSize).toBe(262_144);
    client.destroy();
  });

  test("a body arrives whole: of a length that is told, in chunks, and after the word to go on", async () => {
    const { port } = await start({ handler: (request, response) => void Array.fromAsync(request).then((chunks) => response.end(`${Buffer.concat(chunks as Buffer[])} ok`)) });
    expect(await raw(port, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n0123456789", { until: END })).toContain("0123456789 ok");
    expect(await raw(port, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n", { until: END })).toContain("0123456789 ok");
    expect(await raw(port, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc", { until: END })).toMatch(/^HTTP\/1.1 100 Continue[\s\S]*abc ok$/);
    const client = session(port);
    expect(await ask(client, "/", "0123456789")).toBe("200 0123456789 ok");
    client.destroy();
  });
});

test("who asks for far more at once than he may, before he has been told how much, has that refused alone", async () => {
  const { port } = await start({ limits: { streamsMax: 50 }, handler: (_request, response) => void setTimeout(() => response.end("ok"), 200) });
  const field = (name: string, value: string): Buffer => Buffer.concat([Buffer.of(0, name.length), Buffer.from(name), Buffer.of(value.length), Buffer.from(value)]);
  const head = Buffer.concat([field(":method", "GET"), field(":path", "/"), field(":scheme", "https"), field(":authority", "x")]);
  const frames = Array.from({ length: 300 }, (_, i) => h2Frame(1, 5, 2 * i + 1, head));
  const socket = tls.connect({ port, host: "127.0.0.1", ...trust(), ALPNProtocols: ["h2"] }, () => void socket.write(Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), h2Frame(4, 0, 0), ...frames])));
  let got = "";
  socket.on("data", (chunk) => { got += chunk.toString("latin1"); }).on("error", () => undefined);
  await expect.poll(() => got.split("ok").length - 1, { timeout: 5_000 }).toBe(50);
  socket.destroy();
});

test("what is written beside an answer whose reader has paused comes at once, though its reader has nothing to say", async () => {
  const beside = Promise.withResolvers<ServerResponse>();
  const { port } = await start({ handler: ({ url }, response) => {
    if (url === "/paused") return void response.write(Buffer.alloc(200_000, "."));
    response.write("first");
    beside.resolve(response);
  } });
  const field = (name: string, value: string): Buffer => Buffer.concat([Buffer.of(0, name.length), Buffer.from(name), Buffer.of(value.length), Buffer.from(value)]);
  const asks = (path: string): Buffer => Buffer.concat([field(":method", "GET"), field(":path", path), field(":scheme", "https"), field(":authority", "x")]);
  const roomForAll = h2Frame(8, 0, 0, [0, 16, 0, 0]); // of the connection, and not of its streams
  const socket = tls.connect({ port, host: "127.0.0.1", ...trust(), ALPNProtocols: ["h2"] }, () => void socket.write(Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), h2Frame(4, 0, 0), roomForAll, h2Frame(1, 5, 1, asks("/paused")), h2Frame(1, 5, 3, asks("/beside"))])));
  let got = "";
  socket.on("data", (chunk) => { got += chunk.toString("latin1"); }).on("error", () => undefined);
  await expect.poll(() => got, { timeout: 5_000 }).toMatch(/first/);
  for (const word of ["second", "third"]) {
    (await beside.promise).write(word);
    await expect.poll(() => got, { timeout: 5_000 }).toContain(word);
  }
  socket.destroy();
});

test("what a field says is not left out for the blanks around it", async () => {
  const seen = Promise.withResolvers<unknown>();
  const { port } = await start({ handler: ({ headers }, response) => { seen.resolve([headers["impersonate-user"], headers["x-after"]]); response.end("ok"); } });
  const field = (name: string, value: string): Buffer => Buffer.concat([Buffer.of(0, name.length), Buffer.from(name), Buffer.of(value.length), Buffer.from(value)]);
  const fields = [[":method", "GET"], [":scheme", "https"], [":authority", "x"], [":path", "/"], ["impersonate-user", " bob "], ["x-after", "1"]].map(([name, value]) => field(name!, value!));
  const socket = tls.connect({ port, host: "127.0.0.1", ...trust(), ALPNProtocols: ["h2"] }, () => socket.write(Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), h2Frame(4, 0, 0), h2Frame(1, 5, 1, Buffer.concat(fields))])));
  expect(await seen.promise).toEqual([" bob ", "1"]);
  socket.destroy();
});

test.each([
  ["with its body", (response: ServerResponse) => void response.end("ok")],
  ["before its body", (response: ServerResponse) => { response.flushHeaders(); response.write("o"); response.end("k"); }],
])("fields of an answer are bytes, a character each, over either protocol: a head %s", async (_, end) => {
  const fileName = Buffer.from("größer als ∞").toString("latin1");
  const { port } = await start({ handler: (_request, response) => { response.setHeader("Content-Disposition", fileName); end(response); } });
  expect(/content-disposition: (.*)/i.exec(await raw(port, GET, { until: /\r\n\r\n[\s\S]*k/ }))?.[1]).toBe(fileName);
  const client = session(port), stream = client.request({ ":path": "/" }).resume();
  expect(await new Promise((resolve) => { stream.on("response", (headers) => resolve(headers["content-disposition"])); })).toBe(fileName);
  client.destroy();
});

test("a peer that has much to read on one connection is answered on it all the same", async () => {
  const { port } = await start({ handler: (request, response) => void response.writeHead(200).end(request.url === "/large" ? Buffer.alloc(3_000_000) : "ok") });
  const client = session(port);
  const unread = Array.from({ length: 8 }, () => client.request({ ":path": "/large" }));
  await Promise.all(unread.map((stream) => new Promise((resolve) => stream.once("response", resolve))));
  expect(await ask(client, "/")).toBe("200 ok");
  client.destroy();
});

test("a client that sends one request after the other without waiting for answers has one of them acted on at a time, and all answered in the end", async () => {
  const count = 5_000;
  let begun = 0, most = 0, ended = 0;
  const { port } = await start({
    handler(request, response) {
      most = Math.max(most, ++begun - ended);
      setImmediate(() => {
        ended++;
        response.end(request.url);
      });
    },
  });
  const socket = tls.connect({ port, host: "127.0.0.1", ...trust(), ALPNProtocols: ["http/1.1"] }, () => socket.write(Array.from({ length: count }, (_, i) => `GET /${i} HTTP/1.1\r\nHost: x\r\n\r\n`).join("")));
  let got = "";
  socket.on("data", (chunk) => { got += chunk.toString("latin1"); });
  await expect.poll(() => got.endsWith(`/${count - 1}`), { timeout: 60_000 }).toBe(true);
  expect({ begun, most }).toEqual({ begun: count, most: 1 });
  expect([...got.matchAll(/\r\n\r\n\/(\d+)/g)].map(([, i]) => Number(i))).toEqual(Array.from({ length: count }, (_, i) => i));
  socket.destroy();
});

test("what is sent ahead sees what was written before it, and what is no request is refused behind the answers", async () => {
  const written: string[] = [];
  const { port } = await start({
    handler: (request, response) => void text(request).then(async (body) => {
      if (body !== "") await new Promise((resolve) => setTimeout(resolve, 20));
      if (body !== "") written.push(body);
      response.end(`url=${written.join()}`);
    }),
  });
  const post = (body: string): string => `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`, get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  const got = await raw(port, [get, post("a"), get, post("b"), get, "\x00\x01\r\n\r\n"].join(""));
  expect([...got.matchAll(/url=([a-z,]*)/g)].map(([, seen]) => seen)).toEqual(["", "a", "a", "a,b", "a,b"]);
  expect(got).toMatch(/url=a,bHTTP\/1.1 400 Bad Request\r\n[\s\S]*400 Bad Request$/);
});

test("a body that goes on as none does is refused at once, though somebody waits for the rest of it", async () => {
  const { port } = await start({ handler: (request, response) => void text(request).then((body) => response.end(body), () => undefined) });
  expect(await raw(port, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\nzz\r\n")).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/);
});

test("a body that is larger than what the parser gets at once, with a request behind it, and one that is handed over behind that", async () => {
  const { port } = await start({
    handler: (request, response) => void text(request).then((body) => response.end(`${request.method} ${body.length}.`)),
    upgrade: (_request, socket, { head }) => void socket.end(`HTTP/1.1 101 Switching Protocols\r\n\r\n${head.length}`),
  });
  const body = "b".repeat(1_000_000), early = "e".repeat(60_000);
  const got = await raw(port, `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}${"GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(20)}`, { until: /(GET 0\.[\s\S]*){20}/ });
  expect(got).toContain(`POST ${body.length}.`);
  expect(await raw(port, `GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n${early}`)).toMatch(/\r\n\r\n\d+$/);
});

test.each(["websocket", "SPDY/3.1"])("upgrade to %s, with bytes that came along", async (protocol) => {
  const { port } = await start({
    upgrade(request, socket, { head, connection }) {
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${request.headers.upgrade}\r\n\r\n${request.method} ${request.url} ${connection.peerCertificate?.subject.CN} ${head} `);
      socket.on("data", (chunk) => socket.end(`${chunk} ok`));
    },
  });
  const answer = new Promise<string>((resolve) => {
    const socket = tls.connect({ port, host: "127.0.0.1", ...trust(), ...identity("client-admin"), ALPNProtocols: ["http/1.1"] }, () => socket.write(`POST /exec HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\nearly`));
    let got = "";
    socket.on("data", (chunk) => { got += String(chunk); if (got.endsWith("early ")) socket.write("late"); });
    socket.on("close", () => resolve(got));
  });
  expect(await answer).toMatch(new RegExp(`^HTTP/1.1 101 [\\s\\S]*Upgrade: ${protocol}\r\n\r\nPOST /exec system:admin early late ok$`));
});

describe("deadlines", () => {
  /** Sweeps when told to, at a time that is told. */
  function sweeper(): { clock: Clock; sweep(uptimeMs: number): Promise<void> } {
    let uptimeMs = 0;
    let tick = Promise.withResolvers<void>();
    const clock: Clock = {
      ...systemClock, uptimeMs: () => uptimeMs,
      async *every(_periodMs, signal) { while (!signal.aborted) { await Promise.race([tick.promise, new Promise((resolve) => signal.addEventListener("abort", resolve))]); if (!signal.aborted) yield; } },
    };
    return { clock, async sweep(to) { uptimeMs = to; const last = tick; tick = Promise.withResolvers<void>(); last.resolve(); await Bun.sleep(50); } };
  }

  test("a connection without a request, half a request, and an idle one end; a watch stays", async () => {
    const { clock, sweep } = sweeper();
    const { port, server } = await start({ clock, handler: (request, response) => { if (request.url === "/watch") response.write("x"); else response.end("ok"); } });
    const half = raw(port, "GET / HTTP/1.1\r\nHost: x\r\nX-A");
    const idle = raw(port, GET);
    const idle2 = session(port);
    expect(await ask(idle2, "/")).toBe("200 ok");
    const watch = session(port);
    await new Promise((resolve) => watch.request({ ":path": "/watch" }).once("data", resolve));
    await expect.poll(() => server.connectionCount).toBe(4);
    await sweep(31_000);
    expect(server.connectionCount).toBe(4);
    await sweep(33_000);
    expect(await half).toBe("");
    await expect.poll(() => server.connectionCount).toBe(3);
    await sweep(91_000);
    expect(await idle).toContain("ok");
    await expect.poll(() => server.connectionCount).toBe(1);
    expect(watch.destroyed).toBe(false);
    watch.destroy();
  });

  test("a peer of HTTP/2 that is told to go and stays is cut off", async () => {
    const { clock, sweep } = sweeper();
    const { port, server } = await start({ clock });
    const stays = tls.connect({ port, host: "127.0.0.1", ...trust(), ALPNProtocols: ["h2"], allowHalfOpen: true } as tls.ConnectionOptions, () => void stays.write(Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])])));
    stays.on("error", () => undefined);
    await new Promise((resolve) => stays.once("data", resolve));
    await sweep(33_000);
    expect(server.connectionCount).toBe(1); // it has been told
    await sweep(38_000);
    await expect.poll(() => server.connectionCount).toBe(0);
    stays.destroy();
  });

  test("a peer of HTTP/2 that is answered and never ends its request is as idle as others", async () => {
    const { clock, sweep } = sweeper();
    const { port, server } = await start({ clock });
    const client = session(port);
    const stream = client.request({ ":method": "POST", ":path": "/" }, { endStream: false }).on("error", () => undefined);
    expect(await text(stream)).toBe("ok");
    await sweep(89_000);
    expect(server.connectionCount).toBe(1);
    await sweep(91_000);
    await sweep(96_000);
    await expect.poll(() => server.connectionCount).toBe(0);
    client.destroy();
  });

  test("a peer whose upgrade is refused and that stays is cut off", async () => {
    const { clock, sweep } = sweeper();
    const { port, server } = await start({ clock, upgrade: (_request, socket) => void socket.end("HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n") });
    const stays = tls.connect({ port, host: "127.0.0.1", ...trust(), ALPNProtocols: ["http/1.1"], allowHalfOpen: true } as tls.ConnectionOptions, () => void stays.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
    stays.on("error", () => undefined);
    expect(String(await new Promise((resolve) => stays.once("data", resolve)))).toContain("403");
    await sweep(5_000);
    expect(server.connectionCount).toBe(1);
    await sweep(66_000);
    await expect.poll(() => server.connectionCount).toBe(0);
    stays.destroy();
  });

  test.each([["answered", true, 0], ["being answered", true, 24], ["handed over", true, 24], ["being answered", false, 0], ["handed over", false, 0]])("who takes nothing for a minute of what waits: a connection that is %s (may pause: %s) goes on with %i MB", async (is, mayPause, megabytes) => {
    const { clock, sweep } = sweeper();
    const all = Buffer.alloc(24 * 1024 * 1024);
    const { port, server } = await start({ clock, limits: { mayPause }, handler: (_request, response) => void (is === "answered" ? response.end(all) : response.write(all, () => response.end())), upgrade: (_request, socket) => void socket.write(all, () => socket.end()) });
    const pauses = tls.connect({ port, host: "127.0.0.1", ...trust(), ALPNProtocols: ["http/1.1"] }, () => void pauses.write(`GET / HTTP/1.0\r\nHost: x\r\n${is !== "handed over" ? "" : "Connection: Upgrade\r\nUpgrade: websocket\r\n"}\r\n`));
    await new Promise((resolve) => pauses.once("readable", resolve));
    for (const atMs of [5_000, 10_000, 15_000, 80_000]) await sweep(atMs);
    expect(server.connectionCount).toBe(megabytes === 0 ? 0 : 1);
    let got = 0;
    if (megabytes > 0) for await (const chunk of pauses) got += (chunk as Buffer).length;
    expect(Math.floor(got / 1024 / 1024)).toBe(megabytes);
    pauses.destroy();
  });

  test("streams that are opened only to be reset cost the connection", async () => {
    const { clock, sweep } = sweeper();
    const { port, server } = await start({ clock, limits: { resetsMax: 20 }, handler: (_request, response) => void response.write("x") });
    const client = session(port);
    for (let i = 0; i < 30; i++) {
      const stream = client.request({ ":path": "/" });
      await new Promise((resolve) => stream.once("response", resolve));
      stream.close(http2.constants.NGHTTP2_CANCEL);
    }
    await Bun.sleep(50);
    await sweep(1_000);
    expect(server.connectionCount).toBe(0);
  });
});

test("when there are too many connections one that does nothing makes room; those with something under way stay, and then there is no room", async () => {
  const warned: string[] = [];
  const { port, server } = await start({ limits: { connectionsMax: 3 }, log: { ...silentLog, warn: (message) => void warned.push(message) }, handler: (request, response) => { if (request.url === "/watch") response.write("x"); else response.end("ok"); } });
  const watch = session(port);
  await new Promise((resolve) => watch.request({ ":path": "/watch" }).once("data", resolve));
  const [idle, held] = [session(port), raw(port, "GET / HTTP/1.1\r\nHost: x\r\nX-A")];
  expect(await ask(idle, "/")).toBe("200 ok");
  await expect.poll(() => server.connectionCount).toBe(3);
  const more = session(port);
  expect(await ask(more, "/")).toBe("200 ok");
  expect(await held).toBe(""); // it had asked for nothing yet
  expect(await ask(idle, "/")).toBe("200 ok");
  for (const client of [idle, more]) await new Promise((resolve) => client.request({ ":path": "/watch" }).once("data", resolve));
  expect(await raw(port, GET)).toBe("");
  expect([server.connectionCount, watch.destroyed, idle.destroyed, more.destroyed]).toEqual([3, false, false, false]);
  expect(warned).toEqual(["too many connections"]);
  for (const client of [watch, idle, more]) client.destroy();
});

test("who leaves untaken what there was to say makes room as well, if nobody else does", async () => {
  const { port, server } = await start({ limits: { connectionsMax: 3 }, handler: (request, response) => { if (request.url === "/watch") response.write("x"); else response.end("ok"); } });
  const watch = session(port);
  await new Promise((resolve) => watch.request({ ":path": "/watch" }).once("data", resolve));
  const silent = [0, 1].map(() => http2.connect(`https://127.0.0.1:${port}`, { ...trust(), settings: { initialWindowSize: 0 } }).on("error", () => undefined));
  for (const client of silent) await new Promise((resolve) => client.request({ ":path": "/" }).on("error", () => undefined).once("response", resolve));
  for (let i = 0; i < 3; i++) expect(await raw(port, GET, { until: END })).toMatch(END);
  await expect.poll(() => [server.connectionCount <= 3, watch.destroyed, silent.map(({ destroyed }) => destroyed)]).toEqual([true, false, [true, false]]);
  for (const client of [watch, ...silent]) client.destroy();
});

describe("HTTP in the clear", () => {
  const clear = (port: number, text: string): Promise<string> => new Promise((resolve) => {
    const socket = net.connect({ port, host: "127.0.0.1" }, () => socket.write(text));
    let got = "";
    socket.on("data", (chunk) => { got += chunk.toString("latin1"); });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(got));
  });

  test("is told that this is an HTTPS server; noise is told nothing; others go on", async () => {
    const { port } = await start({});
    const answer = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
    for (const method of ["GET", "HEAD", "POST", "PUT"]) expect(await clear(port, `${method} /version HTTP/1.1\r\nHost: x\r\n\r\n`)).toBe(answer);
    expect(await clear(port, "nothing of the kind\r\n\r\n")).not.toContain("HTTP"); // an alert of TLS, if anything
    expect(await Promise.all(Array.from({ length: 20 }, async () => await clear(port, GET)))).toEqual(Array.from({ length: 20 }, () => answer));
    expect(await raw(port, GET, { until: END })).toContain("ok");
  });
});

test("versions and ciphers are those that were asked for", async () => {
  const offered = async (policy: TlsPolicy, client: tls.ConnectionOptions): Promise<string> => {
    const { port } = await start({ tls: () => ({ ...servingMaterial(pki), policy }) });
    return await new Promise((resolve) => {
      const socket = tls.connect({ port, host: "127.0.0.1", ...trust(), ...client }, () => { resolve(`${socket.getProtocol()} ${socket.getCipher().name}`); socket.destroy(); });
      socket.on("error", () => resolve("refused"));
    });
  };
  expect(await offered({ minVersion: "TLSv1.3" }, { maxVersion: "TLSv1.2" })).toBe("refused");
  expect(await offered({ minVersion: "TLSv1.2", ciphers: "ECDHE-ECDSA-AES256-GCM-SHA384" }, { maxVersion: "TLSv1.2" })).toBe("TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384");
  expect(await offered({ minVersion: "TLSv1.2", ciphers: "ECDHE-ECDSA-AES256-GCM-SHA384" }, { maxVersion: "TLSv1.2", ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256" })).toBe("refused");
});

describe("the end", () => {
  test("a port in use is told with the flag that changes it", async () => {
    const { port } = await start({});
    await expect(start({ port })).rejects.toThrow(`port ${port} on 127.0.0.1 is in use by another program: stop that, or choose another port with --https-listen-port`);
  });

  test("requests under way finish, watches are told, idle connections close, nobody new gets in", async () => {
    let seen = 0;
    const release = Promise.withResolvers<void>();
    const one = await start({
      limits: { drainMs: 20_000 },
      handler(request, response) {
        seen++;
        if (request.url === "/watch") { response.write("x"); one.server.stopping.addEventListener("abort", () => response.end(" bye")); }
        else if (request.url === "/slow") void release.promise.then(() => response.end("slow ok"));
        else response.end("ok");
      },
    });
    const { port } = one;
    const client = session(port);
    const goaway = new Promise((resolve) => client.on("goaway", resolve));
    const watch = ask(client, "/watch");
    const slow = raw(port, "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
    const idle = raw(port, GET);
    while (seen < 3) await Bun.sleep(10);
    await Bun.sleep(50);
    const stopped = one.stop();
    await goaway;
    expect(await watch).toBe("200 x bye");
    expect(await idle).toContain("ok");
    expect(await raw(port, GET)).toBe("");
    release.resolve();
    expect(await slow).toContain("slow ok");
    await stopped;
    expect(one.server.connectionCount).toBe(0);
  });

  test("what does not end is cut off", async () => {
    const one = await start({ limits: { drainMs: 50 }, handler: (_request, response) => void response.write("x") });
    const client = session(one.port);
    const closed = new Promise((resolve) => client.on("close", resolve));
    await new Promise((resolve) => client.request({ ":path": "/" }).on("error", () => client.destroy()).once("data", resolve));
    await one.stop();
    await closed;
    expect(one.server.connectionCount).toBe(0);
  });
});

test("who connects and says nothing does not hold up the end", async () => {
  const one = await start({ limits: { drainMs: 50, firstRequestMs: 3_600_000 } }); // longer than a test may take
  const silent = net.connect(one.port, "127.0.0.1").on("error", () => undefined);
  const closed = new Promise<void>((resolve) => silent.on("close", () => resolve()));
  await new Promise((resolve) => silent.once("connect", resolve));
  await Bun.sleep(50); // accepted
  await one.stop();
  await closed;
});

test("a handshake has as long as a first request", async () => {
  const connect = async (firstRequestMs: number): Promise<{ readonly socket: net.Socket; readonly closed: Promise<void> }> => {
    const { port } = await start({ limits: { firstRequestMs } });
    const socket = net.connect(port, "127.0.0.1").on("error", () => undefined);
    return { socket, closed: new Promise((resolve) => socket.on("close", () => resolve())) };
  };
  const patient = await connect(60_000);
  const hasty = await connect(500);
  expect(await Promise.race([patient.closed.then(() => "patient"), hasty.closed.then(() => "hasty")])).toBe("hasty");
  patient.socket.destroy();
});

test("who asks for a name is shown its certificate, and their own is seen all the same", async () => {
  const seen: (boolean | undefined)[] = [];
  const material = { ...servingMaterial(pki), key: pki.leaf("serving-kubelet").keyPem, cert: pki.leaf("serving-kubelet").certificatePem };
  const { port } = await start({
    certificateFor: (name) => (name === "other.example.com" ? tls.createSecureContext(tlsOptions(material)) : undefined),
    handler: (_request, response, { peerCertificate }) => { seen.push(peerCertificate?.authorized); response.end("ok"); },
  });
  for (const [servername, leaf] of [["other.example.com", "serving-kubelet"], ["localhost", "serving-kube-apiserver"]] as const) {
    const shown = await new Promise<Buffer>((resolve, reject) => {
      const socket = tls.connect({ port, host: "127.0.0.1", servername, ca: pki.authority("server-ca").bundlePem, checkServerIdentity: () => undefined, ...identity("client-admin"), ALPNProtocols: ["http/1.1"] }, () => socket.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
      socket.on("data", () => { resolve(socket.getPeerCertificate().raw); socket.destroy(); });
      socket.on("error", reject);
    });
    expect(new X509Certificate(shown).fingerprint256).toBe(new X509Certificate(pki.leaf(leaf).certificatePem).fingerprint256);
  }
  expect(seen).toEqual([true, true]);
});

test("a client's certificate whose key may sign nothing is told of once", async () => {
  const told: unknown[] = [];
  let failed = 0;
  const { port } = await start({ handshakeFailed: () => void failed++, log: { ...silentLog, warn: (message) => void told.push(message) } });
  const client = await forSealingOnly(pki, "client-ca");
  for (const wanted of [1, 2]) {
    tls.connect({ host: "127.0.0.1", port, ...client, rejectUnauthorized: false }).on("error", () => undefined);
    await expect.poll(() => failed).toBe(wanted);
  }
  expect(told).toEqual(["a client's certificate cannot be shown here: its key usage is without digital signature; have it issued anew"]);
});

test("a handshake that fails is told of", async () => {
  let failed = 0;
  const { port } = await start({ handshakeFailed: () => void failed++ });
  const socket = net.connect(port, "127.0.0.1", () => socket.write("GET / HTTP/1.1\r\n\r\n"));
  socket.on("error", () => undefined);
  await expect.poll(() => failed).toBe(1);
  socket.destroy();
});
