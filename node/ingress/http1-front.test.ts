import { createServer, type Server } from "node:http";
import * as http2 from "node:http2";
import * as net from "node:net";
import type { TLSSocket } from "node:tls";
import { afterEach, describe, expect, test } from "vitest";
import { NO_ALT_NAMES } from "../../core/pki/alt-names.ts";
import { generateKey, keyPem } from "../../core/pki/authority.ts";
import { spkiOf } from "../../core/pki/signature.ts";
import { encodeSubject } from "../../core/pki/subject.ts";
import { certificatePem, signCertificate } from "../../core/pki/x509.ts";
import { h2Frame } from "../../test/fuzz/hostile.ts";
import { ingressFront, talk } from "../../test/ingress-front.ts";
import type { UpstreamTls } from "./upstreams.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => { for (const close of closing.splice(0).reverse()) await close(); });

/** An endpoint that speaks for itself; what each of its connections is told is kept. */
async function endpoint(say: (text: string, socket: net.Socket) => void): Promise<{ readonly port: number; readonly heard: string[] }> {
  const heard: string[] = [], sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    const own = heard.push("") - 1;
    sockets.add(socket.on("error", () => undefined).on("data", (chunk) => {
      heard[own] += chunk.toString("latin1");
      say(heard[own]!, socket);
    }));
  });
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as net.AddressInfo).port, heard };
}
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const answering = (answer = OK) => endpoint((text, socket) => { if (text.endsWith("\r\n\r\n")) socket.write(answer); });

async function front(options: Parameters<typeof ingressFront>[0]): Promise<number> {
  const { port, close } = await ingressFront(options);
  closing.push(close);
  return port;
}
async function http(listener: Parameters<typeof createServer>[1]): Promise<Server & { readonly port: number }> {
  const server = createServer(listener!);
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return Object.assign(server, { port: (server.address() as net.AddressInfo).port });
}
const twice = (mark: string) => (text: string): boolean => text.split(mark).length > 2;

describe("one connection, many requests", () => {
  test("sent ahead they are answered in their order, over one connection to the endpoint; heads are ours, bodies as they came", async () => {
    const { port, heard } = await answering();
    const said = await talk(await front({ ports: [port] }), "GET /1 HTTP/1.1\r\nHost: a.b:81\r\nX-Kept: \xe4\r\nConnection: x-own\r\nX-Own: 1\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n\r\nGET /2 HTTP/1.1\r\nHost: c\r\n\r\nGET http://other/3?x HTTP/1.1\r\nHost: none\r\nConnection: close\r\n\r\n");
    expect(said.split("ok").length).toBe(4);
    expect(heard).toEqual([
      "GET /1 HTTP/1.1\r\nhost: a.b:81\r\nX-Kept: \xe4\r\nx-forwarded-for: 127.0.0.1\r\nx-forwarded-host: a.b:81\r\nx-forwarded-port: 81\r\nx-forwarded-proto: http\r\nx-real-ip: 127.0.0.1\r\n\r\n"
      + "GET /2 HTTP/1.1\r\nhost: c\r\nx-forwarded-for: 127.0.0.1\r\nx-forwarded-host: c\r\nx-forwarded-port: 8080\r\nx-forwarded-proto: http\r\nx-real-ip: 127.0.0.1\r\n\r\n"
      + "GET /3?x HTTP/1.1\r\nhost: other\r\nx-forwarded-for: 127.0.0.1\r\nx-forwarded-host: other\r\nx-forwarded-port: 8080\r\nx-forwarded-proto: http\r\nx-real-ip: 127.0.0.1\r\n\r\n",
    ]);
    expect(said).toMatch(/^HTTP\/1\.1 200 OK\r\ncontent-length: 2\r\ndate: \w{3}, [^\r]* GMT\r\n\r\nok/);
    expect(said).toMatch(/connection: close\r\n\r\nok$/);
  });

  test("bodies both ways, sized and in chunks, byte by byte; nothing of one request is another's", async () => {
    const { port, heard } = await endpoint((text, socket) => { if (/(body|0\r\n\r\n)$/.test(text)) socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\n\r\n2\r\nok\r\n0\r\nx: y\r\n\r\n"); });
    const to = await front({ ports: [port] });
    const bytes = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbodyPOST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nGET \r\n0\r\n\r\n";
    const socket = net.connect(to, "127.0.0.1");
    let said = "";
    const done = new Promise<void>((resolve) => void socket.on("data", (chunk) => { if (twice("x: y\r\n\r\n")(said += chunk.toString())) resolve(); }));
    for (const byte of Buffer.from(bytes)) {
      socket.write(Buffer.of(byte));
      if (byte === 10) await Bun.sleep(1);
    }
    await done;
    socket.destroy();
    expect(said.split("\r\n\r\n2\r\nok\r\n0\r\nx: y\r\n\r\n").length).toBe(3);
    expect(heard.join("")).toMatch(/^POST \/a [\s\S]*\r\ncontent-length: 4\r\n[\s\S]*\r\n\r\nbodyPOST \/b [\s\S]*\r\ntransfer-encoding: chunked\r\n[\s\S]*\r\n\r\n4\r\nGET \r\n0\r\n\r\n$/);
  });

  test("who sends on and on what nobody wants hears the answer, and the end, before the connection is closed", async () => {
    const { port } = await endpoint((text, socket) => { if (text.endsWith("\r\n\r\n")) socket.write("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig"); });
    const socket = net.connect(await front({ ports: [port] }), "127.0.0.1");
    let said = "", failed = "";
    const ended = new Promise((resolve) => void socket.on("data", (chunk) => { said += chunk.toString(); }).on("error", ({ message }) => { failed = message; }).on("end", resolve).on("close", resolve));
    socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 90000000\r\n\r\n");
    await expect.poll(() => said).toMatch(/^HTTP\/1\.1 413 [\s\S]*big$/);
    for (let i = 0; i < 40; i++) await new Promise((resolve) => void socket.write(Buffer.alloc(64 * 1024), resolve));
    await ended;
    expect(failed).toBe("");
    socket.destroy();
  });

  test("a body nobody wants is thrown away, and the next request served", async () => {
    const { port } = await answering();
    const said = await talk(await front({ ports: [port] }), `POST / HTTP/1.1\r\nHost: none\r\nContent-Length: 100000\r\n\r\n${"x".repeat(100_000)}GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect(said).toMatch(/^HTTP\/1\.1 404 Not Found\r\n[\s\S]*404 page not found\nHTTP\/1\.1 200 OK\r\n[\s\S]*ok$/);
  });

  test("an answer before the body is whole is passed on, and the endpoint's connection not used again", async () => {
    const { port, heard } = await endpoint((text, socket) => { if (text.includes("\r\n\r\n")) socket.write("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"); });
    const said = await talk(await front({ ports: [port] }), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf", (text, socket) => {
      if (!text.includes("413")) return false;
      socket.write("-whole");
      socket.write("GET /next HTTP/1.1\r\nHost: x\r\n\r\n");
      return twice("413")(text);
    });
    expect(said.split("413 Too Large").length).toBe(3);
    expect(heard.length).toBe(2);
  });
});

describe("what could be read in two ways", () => {
  test.each([
    ["GET / HTTP/1.1\r\n\r\n", 400], ["POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400], ["GET / HTTP/1.1\nHost: x\n\n", 400], ["POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n", 501],
    [`GET / HTTP/1.1\r\nHost: x\r\nX: ${"a".repeat(70_000)}\r\n\r\n`, 431], ["GET / HTTP/1.1\r\nHost: x\r\nExpect: y\r\n\r\n", 417], ["GET x HTTP/1.1\r\nHost: x\r\n\r\n", 400], ["OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 400], ["CONNECT x:1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 400],
  ])("%j is refused, and nothing behind it is read", async (bytes, status) => {
    const { port, heard } = await answering();
    const said = await talk(await front({ ports: [port] }), `${bytes}GET /smuggled HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`, (text) => text.includes("smuggled"));
    expect(said.startsWith(`HTTP/1.1 ${status} `)).toBe(true);
    expect(said.split("HTTP/1.1 ").length === 2 || status === 400).toBe(true);
    expect(heard.filter((text) => text.includes("smuggled") && !/^(GET x|OPTIONS|CONNECT)/.test(bytes))).toEqual([]);
  });

  test("Connection cannot take the length from a body", async () => {
    const { port, heard } = await endpoint((text, socket) => { if (text.endsWith("GET / ")) socket.write(OK); });
    await talk(await front({ ports: [port] }), "POST / HTTP/1.1\r\nHost: x\r\nConnection: content-length\r\nContent-Length: 6\r\n\r\nGET / ", (text) => text.endsWith("ok"));
    expect(heard.join("")).toMatch(/\r\ncontent-length: 6\r\n[\s\S]*\r\n\r\nGET \/ $/);
  });

  test("chunks that are none end both connections", async () => {
    const { port, heard } = await endpoint(() => undefined);
    expect(await talk(await front({ ports: [port] }), "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\nabcGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n")).toBe("");
    expect(heard.join("")).not.toContain("smuggled");
  });

  test.each(["HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"])("an endpoint that answers %j has not answered", async (answer) => {
    const { port } = await answering(answer);
    expect(await talk(await front({ ports: [port] }), "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).toMatch(/^HTTP\/1\.1 502 Bad Gateway\r\n[\s\S]*502 bad gateway\n$/);
  });

  test("what an endpoint says behind its answer is nobody's", async () => {
    const { port } = await answering(`${OK}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil`);
    const said = await talk(await front({ ports: [port] }), "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    expect([said.split("ok").length, said.includes("evil")]).toEqual([3, false]);
  });
});

test("a client that sends on and on is read from as fast as it is served, and one that does not read its answers not at all; both have all of them in the end", async () => {
  let asked = 0;
  const { port } = await http((_, response) => {
    asked++;
    response.end("x".repeat(20_000));
  });
  const count = 2_000, request = `GET / HTTP/1.1\r\nHost: a\r\nX-Long: ${"l".repeat(8_000)}\r\n\r\n`;
  const client = net.connect(await front({ ports: [port] }), "127.0.0.1");
  closing.push(() => client.destroy());
  client.pause();
  client.write(request.repeat(count));
  let before = -1;
  await expect.poll(() => { const isQuiet = asked > 0 && asked === before; before = asked; return isQuiet; }, { interval: 300, timeout: 20_000 }).toBe(true);
  expect(asked).toBeLessThan(count);
  expect(client.bytesWritten - client.writableLength).toBeLessThan(request.length * count);
  let got = 0;
  client.on("data", (chunk) => { got += chunk.length; });
  client.resume();
  await expect.poll(() => asked, { timeout: 20_000 }).toBe(count);
  await expect.poll(() => got).toBeGreaterThan(count * 20_000);
});

test("a redirect leads to the port that was asked, or the listener's; no edit changes where an answer ends", async () => {
  const to = await front({ ports: [1] });
  const said = await talk(to, "GET /a?b HTTP/1.1\r\nHost: moved\r\n\r\nGET / HTTP/1.1\r\nHost: moved:81\r\nConnection: close\r\n\r\n");
  expect(said).toMatch(/^HTTP\/1\.1 301 Moved Permanently\r\nlocation: http:\/\/moved:8080\/a\?b\r\nx-why: möved\r\ncontent-length: 0\r\n[\s\S]*location: http:\/\/moved:81\/\r\n/);
});

test("who asks for an upgrade is led elsewhere like anybody; with a body it is a request like any", async () => {
  const { port, heard } = await endpoint((text, socket) => { if (text.endsWith("\r\n\r\nhello")) socket.write(OK); });
  const to = await front({ ports: [port] }), asks = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
  expect(await talk(to, `GET /a HTTP/1.1\r\nHost: moved\r\n${asks}\r\n`)).toBe("HTTP/1.1 301 Moved Permanently\r\ncontent-length: 0\r\nlocation: http://moved:8080/a\r\nx-why: möved\r\nconnection: close\r\n\r\n");
  expect(await talk(to, `POST / HTTP/1.1\r\nHost: x\r\n${asks}Content-Length: 5\r\n\r\nhello`, (text) => text.endsWith("ok"))).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(heard.join("")).not.toContain("pgrade");
});

test("a page of another origin is answered here when it asks, and by the endpoint when it does it", async () => {
  const { port, heard } = await answering("HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 2\r\n\r\nok");
  const to = await front({ ports: [port] });
  const ask = (method: string, origin: string): Promise<string> => talk(to, `${method} / HTTP/1.1\r\nHost: cors\r\nOrigin: ${origin}\r\nAccess-Control-Request-Method: PUT\r\nConnection: close\r\n\r\n`);
  expect(await ask("OPTIONS", "https://a.test")).toMatch(/^HTTP\/1\.1 200 OK\r\naccess-control-allow-origin: https:\/\/a\.test\r\naccess-control-allow-methods: PUT\r\naccess-control-max-age: 5\r\ncontent-length: 0\r\n/);
  expect(await ask("OPTIONS", "https://b.test")).toMatch(/^HTTP\/1\.1 200 OK\r\ncontent-length: 0\r\n/);
  expect(heard).toEqual([]);
  expect(await ask("PUT", "https://a.test")).toMatch(/^HTTP\/1\.1 200 OK\r\naccess-control-allow-origin: https:\/\/a\.test\r\nvary: origin\r\n[\s\S]*ok$/);
});

test("who waits to be told to go on is told so once an endpoint is there; a refusal ends the connection", async () => {
  const { port, heard } = await endpoint((text, socket) => { if (text.endsWith("body")) socket.write(OK); });
  const to = await front({ ports: [port] });
  const ask = (host: string): Promise<string> => talk(to, `PUT / HTTP/1.1\r\nHost: ${host}\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n`, (text, socket) => {
    if (text === "HTTP/1.1 100 Continue\r\n\r\n") socket.write("body");
    return text.endsWith("ok");
  });
  expect(await ask("x")).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
  expect(heard.join("")).not.toMatch(/expect/i);
  expect(await ask("none")).toMatch(/^HTTP\/1\.1 404 Not Found\r\n[\s\S]*\r\nconnection: close\r\n/);
});

test("an answer that ends with its connection does so here too; half of one ends the client's without an end", async () => {
  const whole = await endpoint((_, socket) => void socket.end("HTTP/1.1 200 OK\r\n\r\nall"));
  expect(await talk(await front({ ports: [whole.port] }), "GET / HTTP/1.1\r\nHost: x\r\n\r\n")).toMatch(/\r\nconnection: close\r\n\r\nall$/);
  const half = await endpoint((_, socket) => void socket.end("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"));
  expect(await talk(await front({ ports: [half.port] }), "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n")).toMatch(/half$/);
});

test("no faster than the slower side, either way, and nothing is lost", async () => {
  const SIZE = 20_000_000;
  let got = 0;
  const server = await http((request, response) => {
    if (request.method === "GET") return void response.end(Buffer.alloc(SIZE, "d"));
    request.on("data", (chunk: Buffer) => {
      got += chunk.length;
      request.pause();
      setTimeout(() => request.resume(), 1);
    }).on("end", () => response.end("ok"));
  });
  const to = await front({ ports: [server.port] });
  const up = net.connect(to, "127.0.0.1");
  const answered = new Promise((resolve) => up.once("data", resolve));
  up.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${SIZE}\r\n\r\n`);
  up.write(Buffer.alloc(SIZE, "u"));
  await answered;
  up.destroy();
  expect(got).toBe(SIZE);

  let bytes = 0;
  const down = net.connect(to, "127.0.0.1", () => void down.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  down.on("data", (chunk) => {
    bytes += chunk.length;
    down.pause();
    setTimeout(() => down.resume(), 1);
  });
  await new Promise((resolve) => void down.on("close", resolve));
  expect(bytes).toBeGreaterThan(SIZE);
});

test("a client that goes takes its request along; a route's time is one for all tries", async () => {
  const asked = Promise.withResolvers<void>(), gone = Promise.withResolvers<void>();
  const { port } = await endpoint((_, socket) => { socket.on("close", () => gone.resolve()); asked.resolve(); });
  const to = await front({ ports: [port] });
  const socket = net.connect(to, "127.0.0.1", () => void socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  await asked.promise;
  socket.destroy();
  await gone.promise;
  expect(await talk(await front({ ports: [port, port], timeoutMs: 50 }), "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).toMatch(/^HTTP\/1\.1 504 /);
});

describe("HTTP/2 without TLS", () => {
  const h2 = async (listener: (request: http2.Http2ServerRequest, response: http2.Http2ServerResponse) => void): Promise<number> => {
    const server = http2.createServer(listener);
    await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
    closing.push(() => server.close());
    return (server.address() as net.AddressInfo).port;
  };
  const ask = (session: http2.ClientHttp2Session, path: string, body?: string): Promise<string> => new Promise((resolve, reject) => {
    const stream = session.request({ ":method": body === undefined ? "GET" : "POST", ":path": path, ":authority": "x" }, { endStream: body === undefined });
    let text = "";
    stream.on("data", (chunk: Buffer) => (text += chunk.toString())).on("end", () => resolve(text)).on("error", reject);
    if (body !== undefined) stream.end(body);
  });

  test.each(["http", "h2c"])("a client that knows begins with it; the endpoint speaks %s", async (protocol) => {
    const say = (request: { readonly url?: string | undefined; readonly httpVersion: string }, response: { end(text: string): unknown }): void => void response.end(`${request.httpVersion} ${request.url}`);
    const port = protocol === "h2c" ? await h2(say) : (await http((request, response) => say(request, response))).port;
    const to = await front({ ports: [port], appProtocol: protocol === "h2c" ? "kubernetes.io/h2c" : undefined });
    const session = http2.connect(`http://127.0.0.1:${to}`);
    const version = protocol === "h2c" ? "2.0" : "1.1";
    expect(await Promise.all(["/1", "/2", "/3"].map((path) => ask(session, path)))).toEqual(["/1", "/2", "/3"].map((path) => `${version} ${path}`));
    expect(await ask(session, "/4", "body")).toBe(`${version} /4`);
    session.close();
  });

  test("a client that asks for it is answered over it, and goes on", async () => {
    const server = await http((request, response) => void response.end(`${request.method} ${request.url} ${request.headers["x-kept"]} ${request.headers["http2-settings"]} ${request.headers.upgrade}`));
    const to = await front({ ports: [server.port] });
    const socket = net.connect(to, "127.0.0.1", () => void socket.write("GET /first HTTP/1.1\r\nHost: x\r\nX-Kept: 1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"));
    const first = await new Promise<Buffer>((resolve) => void socket.once("data", resolve));
    expect(first.toString()).toBe("HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: h2c\r\n\r\n");
    const frames: [type: number, stream: number, text: string][] = [];
    const done = Promise.withResolvers<void>();
    let came: Buffer = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      came = Buffer.concat([came, chunk]);
      while (came.length >= 9 && came.length >= 9 + came.readUIntBE(0, 3)) {
        const length = came.readUIntBE(0, 3);
        frames.push([came[3]!, came.readUInt32BE(5), came.toString("latin1", 9, 9 + length)]);
        if (came[3] === 0 && came.readUInt32BE(5) === 3 && (came[4]! & 1) === 1) done.resolve();
        came = came.subarray(9 + length);
      }
    });
    socket.write(Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), h2Frame(4, 0, 0), h2Frame(1, 5, 3, [0x82, 0x84, 0x86, 0x41, 1, 0x78])]));
    await done.promise;
    socket.destroy();
    const bodies = (stream: number): string => frames.filter(([type, id]) => type === 0 && id === stream).map(([, , text]) => text).join("");
    expect([bodies(1), bodies(3)]).toEqual(["GET /first 1 undefined undefined", "GET / undefined undefined undefined"]);
    expect(frames.filter(([type]) => type === 7)).toEqual([]);
  });

  /** What comes of HTTP/2, "type flags" of each frame of requests' streams: 0 a body's, 1 a head's, 3 a reset; flag 1 an end. */
  function framesOf(socket: net.Socket, skip = 0): { readonly seen: string[]; readonly reset: Promise<void> } {
    const seen: string[] = [], reset = Promise.withResolvers<void>();
    let came: Buffer = Buffer.alloc(0), ahead = skip;
    socket.on("error", () => undefined).on("close", () => reset.resolve()).on("data", (chunk: Buffer) => {
      came = Buffer.concat([came, chunk]);
      if (came.length >= ahead) [came, ahead] = [came.subarray(ahead), 0];
      while (ahead === 0 && came.length >= 9 && came.length >= 9 + came.readUIntBE(0, 3)) {
        if (came.readUInt32BE(5) > 0) seen.push(`${came[3]} ${came[4]}`);
        if (came[3] === 3) reset.resolve();
        came = came.subarray(9 + came.readUIntBE(0, 3));
      }
    });
    return { seen, reset: reset.promise };
  }
  const PREFACE = Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), h2Frame(4, 0, 0)]), HEAD = [0x84, 0x86, 0x41, 1, 0x78], ENDS = 1, WHOLE_HEAD = 4;

  test.each(["http", "h2c"])("half an answer of an endpoint that speaks %s ends with a reset, not as a whole one does", async (protocol) => {
    const half = (_: unknown, response: { write(text: string): unknown; socket?: net.Socket | null; stream?: http2.ServerHttp2Stream }): void => {
      response.write("half");
      setTimeout(() => (response.stream ? response.stream.on("error", () => undefined).destroy(new Error("x")) : response.socket!.destroy()), 5);
    };
    const port = protocol === "h2c" ? await h2(half as never) : (await http(half as never)).port;
    const socket = net.connect(await front({ ports: [port], appProtocol: protocol === "h2c" ? "kubernetes.io/h2c" : undefined }), "127.0.0.1");
    const { seen, reset } = framesOf(socket);
    socket.write(Buffer.concat([PREFACE, h2Frame(1, ENDS | WHOLE_HEAD, 1, [0x82, ...HEAD])]));
    await reset;
    socket.destroy();
    expect([seen[0], seen.at(-1), seen.slice(1, -1).every((one) => one === "0 0")]).toEqual(["1 4", "3 0", true]);
  });

  test.each([["HTTP/1.1", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"], ["HTTP/2", Buffer.concat([PREFACE, h2Frame(1, WHOLE_HEAD, 1, [0x83, ...HEAD]), h2Frame(0, 0, 1, [...Buffer.from("half")])])]])("half a request of a client that speaks %s does not reach an endpoint as a whole one", async (_, bytes) => {
    const connected = Promise.withResolvers<ReturnType<typeof framesOf>>();
    const server = net.createServer((socket) => {
      connected.resolve(framesOf(socket, PREFACE.length - 9));
      socket.write(h2Frame(4, 0, 0));
    });
    await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
    closing.push(() => void server.close());
    const client = net.connect(await front({ ports: [(server.address() as net.AddressInfo).port], appProtocol: "kubernetes.io/h2c" }), "127.0.0.1", () => void client.write(bytes));
    const { seen, reset } = await connected.promise;
    while (!seen.includes("0 0")) await Bun.sleep(1);
    client.destroy();
    await reset;
    expect(seen).toEqual(["1 4", "0 0", "3 0"]);
  });

  test("a body that nobody has told the length of is the endpoint's, whatever the method", async () => {
    const server = await http((request, response) => {
      let text = "";
      request.on("data", (chunk: Buffer) => (text += chunk.toString())).on("end", () => response.end(`${request.method} ${text}`));
    });
    const session = http2.connect(`http://127.0.0.1:${await front({ ports: [server.port] })}`);
    const said = await new Promise((resolve, reject) => {
      const stream = session.request({ ":method": "OPTIONS", ":path": "/", ":authority": "x" }, { endStream: false });
      let text = "";
      stream.on("data", (chunk: Buffer) => (text += chunk.toString())).on("end", () => resolve(text)).on("error", reject).end("body");
    });
    session.close();
    expect(said).toBe("OPTIONS body");
  });

  test("a client of HTTP/1.1 and one of HTTP/1.0 reach an endpoint that speaks it", async () => {
    const port = await h2((request, response) => {
      let text = "";
      request.on("data", (chunk: Buffer) => (text += chunk.toString())).on("end", () => response.end(`${request.httpVersion} ${text}`));
    });
    const to = await front({ ports: [port], appProtocol: "kubernetes.io/h2c" });
    const said = await talk(to, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\naPOST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nConnection: close\r\n\r\nb");
    expect(said).toMatch(/2\.0 a[\s\S]*2\.0 b/);
    expect(await talk(to, "GET / HTTP/1.0\r\n\r\n")).toMatch(/^HTTP\/1\.[01] 200 OK\r\n[\s\S]*2\.0 $/);
  });
});

test("a mirror is sent a copy, with its body, and nobody waits for it", async () => {
  const { port } = await http((request, response) => { request.resume().on("end", () => response.end("real")); });
  const copies: string[] = [];
  const copied = await http((request) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString())).on("end", () => copies.push(`${request.method} ${request.url} ${request.headers["host"]} ${request.headers["x-copy"]} ${body.length}`)); // and never an answer
  });
  const to = await front({ ports: [port], mirrorPort: copied.port });
  const body = "y".repeat(300_000);
  expect(await talk(to, `POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`)).toMatch(/real$/);
  expect(await talk(to, `POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n`)).toMatch(/real/);
  expect(await talk(to, "GET /c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).toMatch(/real/);
  await expect.poll(() => copies.toSorted()).toEqual(["GET /c x mirror 0", "POST /a x mirror 300000", "POST /b x mirror 3"]);
});

test("a host of another listener than the name TLS was agreed on for is misdirected; hosts of the same one are not", async () => {
  const { port } = await http((_, response) => void response.end("ok"));
  const status = async (serverName: string | undefined, host: string): Promise<string> => (await talk(await front({ ports: [port], serverName, claimed: ["", "a.test", "*.w.test", "x.w.test"] }), `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)).slice(9, 12);
  const cases = [["a.test", "a.test", false], ["a.test", "b.test", true], ["b.test", "a.test", true], ["b.test", "c.test", false], ["y.w.test", "z.w.test", false], ["y.w.test", "x.w.test", true], [undefined, "a.test", false]] as const;
  expect((await Promise.all(cases.map(([name, host]) => status(name, host)))).map((one) => one === "421")).toEqual(cases.map(([, , expected]) => expected));
});

test("an endpoint whose certificate a policy knows is spoken to, over HTTP/1.1 and HTTP/2; another is not", async () => {
  const key = await generateKey(), name = encodeSubject({ commonName: "own", organizations: [] });
  const cert = certificatePem(signCertificate({ serial: Buffer.alloc(16, 1), notBeforeMs: 0, notAfterMs: Date.now() + 3_600_000, issuerRaw: name, subjectRaw: name, spki: spkiOf(key), usages: ["digital signature", "server auth", "cert sign"], altNames: { ...NO_ALT_NAMES, dnsNames: ["web.test"], uris: ["spiffe://a/b"] }, isCa: true }, key));
  const server = http2.createSecureServer({ key: keyPem(key), cert, allowHTTP1: true }, (request, response) => void response.end(`${request.httpVersion} ${(request.socket as TLSSocket & { servername?: string }).servername}`));
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  closing.push(() => server.close());
  const ask = async (tls: Partial<UpstreamTls>, appProtocol?: string): Promise<string> => await talk(await front({ ports: [(server.address() as net.AddressInfo).port], appProtocol, tls: { key: "1", ca: cert, serverName: "web.test", names: [], ...tls } }), "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  expect(await ask({})).toMatch(/ 200 [\s\S]*1\.1 web\.test/);
  expect(await ask({}, "kubernetes.io/h2c")).toMatch(/ 200 [\s\S]*2\.0 web\.test/);
  expect(await ask({ names: [{ type: "DNS", value: "no.test" }, { type: "URI", value: "spiffe://a/b" }], serverName: "other.test" })).toMatch(/ 200 [\s\S]*1\.1 other\.test/);
  for (const wrong of [{ serverName: "other.test" }, { ca: undefined }, { names: [{ type: "DNS", value: "other.test" }] }, { names: [{ type: "URI", value: "web.test" }] }] as const) expect(await ask(wrong), JSON.stringify(wrong)).toMatch(/^HTTP\/1\.1 502 /);
  expect(await ask({ serverName: "other.test" }, "kubernetes.io/h2c")).toMatch(/^HTTP\/1\.1 502 /);
});
