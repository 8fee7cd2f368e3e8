import { rmSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import * as net from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { servingMaterial, testPki } from "../../test/certificates.ts";
import { systemClock as clock } from "../lifecycle/clock.ts";
import { silentLog as log } from "../observe/log.ts";
import { http2Fetch } from "./http2-fetch.ts";
import { type Connection, httpsServer } from "./http-server.ts";

let pki: Awaited<ReturnType<typeof testPki>>;
beforeAll(async () => { pki = await testPki(); });
afterAll(() => rmSync(pki.dir, { recursive: true, force: true }));

/** Runs `work` beside a server that has `handler`; `trust`: what the client shows and believes. */
async function withServer(handler: (request: IncomingMessage, response: ServerResponse, connection: Connection) => void, work: (at: { url: string; port: number; tls: { ca: string; cert: string; key: string; serverName: string }; signal: AbortSignal; stop(): Promise<void> }) => Promise<void>): Promise<void> {
  const quit = new AbortController();
  const server = httpsServer({ host: "127.0.0.1", port: 0, portFlag: "--port", tls: () => servingMaterial(pki), log, clock, handler, upgrade: (_request, socket) => void socket.destroy(), limits: { drainMs: 100 } });
  const listening = Promise.withResolvers<void>();
  const ended = server.run(quit.signal, listening.resolve);
  await listening.promise;
  const leaf = pki.leaf("client-admin");
  const { port } = server.address()!;
  const stop = async (): Promise<void> => { quit.abort(); await ended; };
  await work({ url: `https://127.0.0.1:${port}`, port, tls: { ca: pki.authority("server-ca").bundlePem, cert: leaf.certificatePem, key: leaf.keyPem, serverName: "localhost" }, signal: quit.signal, stop });
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

test("a connection on which nothing comes any more is given up, though nobody closed it", async () => {
  await withServer((_request, response) => void response.writeHead(200).write("x"), async ({ port, tls, signal }) => {
    const pairs: net.Socket[] = [];
    let deaf = false;
    const between = net.createServer((near) => {
      const far = net.connect(port, "127.0.0.1");
      pairs.push(near, far);
      near.on("data", (bytes) => { if (!deaf) far.write(bytes); }).on("error", () => undefined);
      far.on("data", (bytes) => { if (!deaf) near.write(bytes); }).on("error", () => undefined);
    });
    await new Promise<void>((resolve) => between.listen(0, "127.0.0.1", resolve));
    const fetch = http2Fetch({ clock, signal, readIdleMs: 50, pingMsMax: 100 });
    const url = `https://127.0.0.1:${(between.address() as net.AddressInfo).port}`;
    const watch = await fetch(url, { method: "GET", headers: {}, signal, tls });
    await Bun.sleep(300); // pings are answered: it stays
    const reader = watch.body!.getReader();
    expect((await reader.read()).done).toBe(false);
    deaf = true;
    await expect(reader.read()).rejects.toThrow();
    for (const socket of pairs) socket.destroy();
    between.close();
  });
});
