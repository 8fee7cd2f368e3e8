import { rmSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import * as http2 from "node:http2";
import * as https from "node:https";
import * as net from "node:net";
import * as tls from "node:tls";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { servingMaterial, testPki } from "../../test/certificates.ts";
import { connectProxy } from "../../test/connect-proxy.ts";
import { lateStreams } from "../../test/late-streams.ts";
import { systemClock as clock } from "../lifecycle/clock.ts";
import { silentLog as log } from "../observe/log.ts";
import { http2Fetch } from "./http2-fetch.ts";
import type { Connection } from "./connections.ts";
import { httpsServer } from "./http-server.ts";

let pki: Awaited<ReturnType<typeof testPki>>;
beforeAll(async () => { pki = await testPki(); });
afterAll(() => rmSync(pki.dir, { recursive: true, force: true }));

/** Runs `work` beside a server that has `handler`; `trust`: what the client shows and believes. */
async function withServer(handler: (request: IncomingMessage, response: ServerResponse, connection: Connection) => void, work: (at: { url: string; port: number; tls: { ca: string; cert: string; key: string; serverName: string }; signal: AbortSignal; connectionCount(): number; stop(): Promise<void> }) => Promise<void>): Promise<void> {
  const quit = new AbortController();
  const server = httpsServer({ host: "127.0.0.1", port: 0, portFlag: "--port", tls: () => servingMaterial(pki), log, clock, handler, upgrade: (_request, socket) => void socket.destroy(), limits: { drainMs: 100 } });
  const listening = Promise.withResolvers<void>();
  const ended = server.run(quit.signal, listening.resolve);
  await listening.promise;
  const leaf = pki.leaf("client-admin");
  const { port } = server.address()!;
  const stop = async (): Promise<void> => { quit.abort(); await ended; };
  await work({ url: `https://127.0.0.1:${port}`, port, tls: { ca: pki.authority("server-ca").bundlePem, cert: leaf.certificatePem, key: leaf.keyPem, serverName: "localhost" }, signal: quit.signal, connectionCount: () => server.connectionCount, stop });
  await stop();
}

test("all requests of one identity share a connection, a watch among them; bodies arrive both ways", async () => {
  const seen = new Set<Connection>();
  const echo = (request: IncomingMessage, response: ServerResponse, connection: Connection): void => {
    seen.add(connection);
    if (request.url === "/watch") return void response.writeHead(200).write("one\n");
    if (request.url === "/none") return void response.writeHead(204).end();
    request.pipe(response.writeHead(201, { "content-type": "text/plain", "x-who": connection.peerCertificate?.subject.CN ?? "" }));
  };
  await withServer(echo, async ({ url, tls, signal }) => {
    const fetch = http2Fetch({ clock, signal });
    const watch = await fetch(`${url}/watch`, { method: "GET", headers: {}, signal, tls });
    const reader = watch.body!.getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe("one\n");
    const large = "x".repeat(300_000);
    const answers = await Promise.all(["a", large, "c"].map((body) => fetch(`${url}/echo?q=1`, { method: "POST", headers: { "content-type": "text/plain" }, body, signal, tls })));
    expect(answers.map(({ status, headers }) => [status, headers.get("x-who")])).toEqual(Array.from({ length: 3 }, () => [201, "system:admin"]));
    expect(await Promise.all(answers.map((answer) => answer.text()))).toEqual(["a", large, "c"]);
    expect((await fetch(`${url}/none`, { method: "DELETE", headers: {}, signal, tls })).status).toBe(204);
    expect([...seen].map(({ protocol }) => protocol)).toEqual(["h2"]);
    const other = pki.leaf("client-auth-proxy");
    await fetch(`${url}/none`, { method: "GET", headers: {}, signal, tls: { ...tls, cert: other.certificatePem, key: other.keyPem } });
    expect(seen.size).toBe(2); // somebody else's are their own
    await reader.cancel();
  });
});

test("a connection that has no numbers left for requests is left for another one, and a watch on it goes on", async () => {
  const seen = new Set<Connection>();
  let watched: ServerResponse | undefined;
  const answer = ({ url }: IncomingMessage, response: ServerResponse, connection: Connection): void => {
    seen.add(connection);
    if (url === "/watch") (watched = response.writeHead(200)).write("one");
    else response.writeHead(200).end("here");
  };
  await withServer(answer, async ({ url, tls, signal }) => {
    using _ = lateStreams(3);
    const fetch = http2Fetch({ clock, signal });
    const ask = async (path: string) => await fetch(`${url}${path}`, { method: "GET", headers: {}, signal, tls });
    const reader = (await ask("/watch")).body!.getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe("one");
    for (let i = 0; i < 8; i++) expect(await (await ask("/")).text()).toBe("here");
    expect(seen.size).toBeGreaterThan(1);
    watched!.end("two");
    expect(new TextDecoder().decode((await reader.read()).value)).toBe("two");
  });
});

test("a request whose head is too long is refused alone: a watch beside it goes on, and one as long as may be is answered", async () => {
  const answer = ({ url }: IncomingMessage, response: ServerResponse): void => void (url === "/watch" ? response.writeHead(200).write("one\n") : response.writeHead(200).end(String(url?.length)));
  await withServer(answer, async ({ url, tls, signal }) => {
    const fetch = http2Fetch({ clock, signal });
    const ask = async (length: number): Promise<string> => await (await fetch(`${url}/${"x".repeat(length)}`, { method: "DELETE", headers: {}, signal, tls })).text();
    const reader = (await fetch(`${url}/watch`, { method: "GET", headers: {}, signal, tls })).body!.getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe("one\n");
    const more = reader.read().then(() => "more", (error: Error) => error.message);
    for (const length of [65_500, 70_000, 2_000_000]) await expect(ask(length)).rejects.toThrow("http2: request header list larger than peer's advertised limit");
    expect(await ask(65_100)).toBe("65101");
    expect(await Promise.race([more, "still there"])).toBe("still there");
    await reader.cancel();
  });
});

test("a server that is not trusted, or not there, is an error; one that comes back is asked again", async () => {
  const ok = (_request: IncomingMessage, response: ServerResponse): void => void response.end("ok");
  const { signal } = new AbortController();
  const fetch = http2Fetch({ clock, signal });
  let at = "";
  await withServer(ok, async ({ url, tls, stop }) => {
    at = url;
    await expect(fetch(url, { method: "GET", headers: {}, signal, tls: { ...tls, ca: pki.authority("client-ca").bundlePem } })).rejects.toThrow(/certificate/);
    expect(await (await fetch(url, { method: "GET", headers: {}, signal, tls })).text()).toBe("ok");
    await stop();
    await expect(fetch(url, { method: "GET", headers: {}, signal, tls })).rejects.toThrow();
  });
  await withServer(ok, async ({ url, tls }) => {
    expect(url).not.toBe(at);
    expect(await (await fetch(url, { method: "GET", headers: {}, signal, tls })).text()).toBe("ok");
  });
});

test("what is given up ends with the signal's reason, before the answer and while it comes", async () => {
  const slow = (request: IncomingMessage, response: ServerResponse): void => { if (request.url === "/begins") response.writeHead(200).write("x"); };
  await withServer(slow, async ({ url, tls, signal }) => {
    const fetch = http2Fetch({ clock, signal });
    const quit = new AbortController();
    const never = fetch(`${url}/never`, { method: "GET", headers: {}, signal: quit.signal, tls });
    const begun = await fetch(`${url}/begins`, { method: "GET", headers: {}, signal: quit.signal, tls });
    quit.abort(new Error("enough"));
    await expect(never).rejects.toThrow("enough");
    await expect(begun.text()).rejects.toThrow();
    await expect(fetch(`${url}/never`, { method: "GET", headers: {}, signal: quit.signal, tls })).rejects.toThrow("enough");
  });
});

const NEVER = { signal: new AbortController().signal };
const get = { method: "GET", headers: {} };

/** A server of the engine's, without what ours does for it. */
async function withOther(server: tls.Server, work: (url: string, tls: { ca: string }) => Promise<void>): Promise<void> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  await work(`https://127.0.0.1:${(server.address() as net.AddressInfo).port}`, { ca: pki.authority("server-ca").bundlePem });
  server.close();
}

test("more than a connection takes go on another one, and none waits", async () => {
  const seen = new Set<Connection>();
  const watch = (_request: IncomingMessage, response: ServerResponse, connection: Connection): void => {
    seen.add(connection);
    response.writeHead(200).write("x");
  };
  await withServer(watch, async ({ url, tls, signal }) => {
    const fetch = http2Fetch({ clock, signal });
    for (let n = 0; n < 300; n++) expect((await fetch(url, { ...get, signal, tls })).status).toBe(200);
    expect(seen.size).toBe(2); // 250 at once is what the server takes
  });
});

test("an answer that is packed is unpacked", async () => {
  const packed = (request: IncomingMessage, response: ServerResponse): void => void response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(`for ${String(request.headers["accept-encoding"])}`));
  await withServer(packed, async ({ url, tls, signal }) => {
    const answer = await http2Fetch({ clock, signal })(url, { ...get, signal, tls });
    expect([await answer.text(), answer.headers.get("content-encoding")]).toEqual(["for gzip", null]);
  });
});

test("a connection that nobody uses ends; one that is left fails what is under way, and the next request has another", async () => {
  const seen = new Set<Connection>();
  const answer = (request: IncomingMessage, response: ServerResponse, connection: Connection): void => {
    seen.add(connection);
    response.writeHead(200).write("x");
    if (request.url === "/once") response.end();
  };
  await withServer(answer, async ({ url, tls, signal, connectionCount }) => {
    const fetch = http2Fetch({ clock, signal, idleMs: 50 });
    expect(await (await fetch(`${url}/once`, { ...get, signal, tls })).text()).toBe("x");
    await expect.poll(connectionCount).toBe(0);
    const watch = await fetch(`${url}/watch`, { ...get, signal, tls });
    await Bun.sleep(200); // is in use
    expect([seen.size, new TextDecoder().decode((await watch.body!.getReader().read()).value)]).toEqual([2, "x"]);
    const lost = (await fetch(`${url}/watch`, { ...get, signal, tls })).text();
    const why = lost.catch((error: unknown) => error);
    fetch.reconnect("the server was away");
    expect(await why).toBeInstanceOf(Error);
    expect(await (await fetch(`${url}/once`, { ...get, signal, tls })).text()).toBe("x");
    expect(seen.size).toBe(3);
  });
});

/** HTTP/2 at its barest: answers the n-th request there is, on whichever connection, with the frame that `answer` gives. */
function bareServer(answer: (n: number, stream: number) => Buffer): { server: tls.Server; asked(): number } {
  const { key, cert } = servingMaterial(pki);
  let asked = 0;
  const server = tls.createServer({ key, cert, ALPNProtocols: ["h2"] }, (socket) => {
    let pending = Buffer.alloc(0);
    let skip = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".length;
    socket.write(frame(SETTINGS, 0, Buffer.alloc(0)));
    socket.on("error", () => undefined).on("data", (bytes: Buffer) => {
      pending = Buffer.concat([pending, bytes]);
      if (skip > 0 && pending.length >= skip) [pending, skip] = [pending.subarray(skip), 0];
      while (skip === 0 && pending.length >= 9 && pending.length >= 9 + pending.readUIntBE(0, 3)) {
        if (pending[3] === HEADERS) socket.write(answer(++asked, pending.readUInt32BE(5)));
        pending = pending.subarray(9 + pending.readUIntBE(0, 3));
      }
    });
  });
  return { server, asked: () => asked };
}

const DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, GOAWAY = 7;

function frame(type: number, stream: number, payload: Buffer, flags = 0): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

test("a request that the server has not begun is sent again, and not for ever", async () => {
  const refused = Buffer.from([0, 0, 0, http2.constants.NGHTTP2_REFUSED_STREAM]);
  const { server, asked } = bareServer((n, stream) => {
    if (n === 1 || n > 3) return frame(RST_STREAM, stream, refused);
    if (n === 2) return frame(GOAWAY, 0, Buffer.alloc(8)); // the last one it has begun: none
    return frame(HEADERS, stream, Buffer.from([0x88]), 0x5); // 200, and that is all
  });
  await withOther(server, async (url, tls) => {
    const fetch = http2Fetch({ clock, ...NEVER });
    expect((await fetch(url, { method: "POST", headers: {}, body: "hello", ...NEVER, tls })).status).toBe(200);
    expect(asked()).toBe(3);
    await expect(fetch(url, { ...get, ...NEVER, tls })).rejects.toThrow("the server refuses the stream");
    expect(asked()).toBe(3 + 7);
    fetch.reconnect("over");
  });
});

test("a server that has no HTTP/2 is asked as it can be", async () => {
  const { key, cert } = servingMaterial(pki);
  await withOther(https.createServer({ key, cert }, (request, response) => void response.end(request.httpVersion)), async (url, tls) => {
    const fetch = http2Fetch({ clock, ...NEVER });
    for (const _ of "ab") expect(await (await fetch(url, { ...get, ...NEVER, tls })).text()).toBe("1.1");
  });
});

test("who gives up while the connection is made takes it from nobody else", async () => {
  await withServer((_request, response) => void response.end("x"), async ({ url, tls, signal }) => {
    const fetch = http2Fetch({ clock, signal });
    const quit = new AbortController();
    const first = fetch(url, { ...get, signal: quit.signal, tls });
    const second = fetch(url, { ...get, signal, tls });
    quit.abort(new Error("enough"));
    await expect(first).rejects.toThrow("enough");
    expect(await (await second).text()).toBe("x");
  });
});

/** A way to `port` that loses what it is told to lose. */
async function passing(port: number, { toServer, toClient }: { toServer(): boolean; toClient(): boolean }): Promise<{ url: string; end(): void }> {
  const sockets: net.Socket[] = [];
  const listener = net.createServer((near) => {
    const far = net.connect(port, "127.0.0.1");
    sockets.push(near, far);
    near.on("data", (bytes) => { if (toServer()) far.write(bytes); }).on("error", () => undefined);
    far.on("data", (bytes) => { if (toClient()) near.write(bytes); }).on("error", () => undefined);
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const end = (): void => {
    for (const socket of sockets) socket.destroy();
    listener.close();
  };
  return { url: `https://127.0.0.1:${(listener.address() as net.AddressInfo).port}`, end };
}

test("a connection on which nothing comes any more is given up, though nobody closed it", async () => {
  await withServer((_request, response) => void response.writeHead(200).write("x"), async ({ port, tls, signal }) => {
    let deaf = false;
    const way = await passing(port, { toServer: () => !deaf, toClient: () => !deaf });
    const fetch = http2Fetch({ clock, signal, readIdleMs: 50, pingMsMax: 100 });
    const watch = await fetch(way.url, { method: "GET", headers: {}, signal, tls });
    await Bun.sleep(300); // pings are answered: it stays
    const reader = watch.body!.getReader();
    expect((await reader.read()).done).toBe(false);
    deaf = true;
    await expect(reader.read()).rejects.toThrow();
    way.end();
  });
});

test.each(["the way is lost", "the server is known to be away"])("a watch on a connection that the server takes no more requests on is given up like any other: %s", async (why) => {
  const { server } = bareServer((n, stream) => Buffer.concat([frame(HEADERS, stream, Buffer.from([0x88]), 0x4), ...(n === 1 ? [frame(DATA, stream, Buffer.from("x")), frame(GOAWAY, 0, goawayAfter(stream))] : [])]));
  await withOther(server, async (url, tls) => {
    const fetch = http2Fetch({ clock, ...NEVER, ...(why === "the way is lost" && { readIdleMs: 50, pingMsMax: 100 }) }); // this server answers no pings
    const reader = (await fetch(url, { ...get, ...NEVER, tls })).body!.getReader();
    expect((await reader.read()).done).toBe(false);
    const lost = reader.read().then(() => "more", () => "lost");
    if (why !== "the way is lost") {
      await fetch(url, { ...get, ...NEVER, tls }); // on another one
      fetch.reconnect("the server was away");
    }
    expect(await lost).toBe("lost");
    fetch.reconnect("over");
  });
});

function goawayAfter(stream: number): Buffer {
  const payload = Buffer.alloc(8);
  payload.writeUInt32BE(stream);
  return payload;
}

test("a watch is not held back by how late the server hears of what was read; what is longer than the window comes in whole", async () => {
  const large = "x".repeat(3 * 1024 * 1024);
  let mute = false;
  const answer = ({ url }: IncomingMessage, response: ServerResponse): void => {
    if (url === "/watch") mute = true;
    response.writeHead(200).write(url === "/first" ? "x" : large.repeat(url === "/long" ? 5 : 1));
    if (url !== "/watch") response.end();
  };
  await withServer(answer, async ({ port, tls, signal }) => {
    const way = await passing(port, { toServer: () => !mute, toClient: () => true });
    const fetch = http2Fetch({ clock, signal });
    const text = async (path: string): Promise<string> => await (await fetch(way.url + path, { method: "GET", headers: {}, signal, tls })).text();
    expect(await text("/first")).toBe("x");
    expect((await Promise.all(["/long", "/long"].map(text))).map((long) => long.length)).toEqual([15 * 1024 * 1024, 15 * 1024 * 1024]);
    const reader = (await fetch(`${way.url}/watch`, { method: "GET", headers: {}, signal, tls })).body!.getReader();
    let read = 0;
    while (read < large.length) read += (await reader.read()).value?.length ?? Number.NaN; // with the usual window it would wait for ever after 64 KiB
    way.end();
  });
});

test("through a proxy requests share a connection as well, and the server is known by its own name", async () => {
  const who = (_request: IncomingMessage, response: ServerResponse, { protocol, peerCertificate }: Connection): void => void response.end(`${protocol} ${peerCertificate?.subject.CN}`);
  await withServer(who, async ({ port, tls: { serverName: _, ...trust }, signal }) => {
    await using proxy = await connectProxy({ routes: { "localhost:7": `127.0.0.1:${port}`, "127.0.0.1:7": `127.0.0.1:${port}`, "other.example.com:7": `127.0.0.1:${port}` } });
    const fetch = http2Fetch({ clock, signal, proxyOf: () => new URL(`http://127.0.0.1:${proxy.port}`) });
    const get = async (host: string): Promise<string> => (await fetch(`https://${host}:7/`, { method: "GET", headers: {}, signal, tls: trust })).text();
    expect(await Promise.all([get("localhost"), get("localhost"), get("127.0.0.1")])).toEqual(Array.from({ length: 3 }, () => "h2 system:admin"));
    expect(proxy.asked.map(({ target }) => target)).toEqual(["localhost:7", "127.0.0.1:7"]);
    await expect(get("other.example.com")).rejects.toThrow();
  });
});
