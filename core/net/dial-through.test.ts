import { rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { servingMaterial, testPki } from "../../test/certificates.ts";
import { connectProxy } from "../../test/connect-proxy.ts";
import { systemClock as clock } from "../lifecycle/clock.ts";
import { dialThrough } from "./dial-through.ts";

let pki: Awaited<ReturnType<typeof testPki>>;
beforeAll(async () => { pki = await testPki(); });
afterAll(() => rmSync(pki.dir, { recursive: true, force: true }));

const target = { host: "10.255.0.7", port: 8443, timeoutMs: 60_000 };
const signal = new AbortController().signal;

/** Says what it hears, in capitals. */
async function shouter(): Promise<AsyncDisposable & { readonly address: string }> {
  const server = createServer((socket) => void socket.on("error", () => undefined).on("data", (chunk) => socket.end(chunk.toString().toUpperCase())));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, [Symbol.asyncDispose]: () => new Promise((resolve) => void server.close(() => resolve())) };
}

test("a proxy is asked for the host and the port, and shown who asks", async () => {
  await using server = await shouter();
  await using proxy = await connectProxy({ routes: { "10.255.0.7:8443": server.address } });
  const connection = await dialThrough(new URL(`http://me:s%40cret@127.0.0.1:${proxy.port}`), target, { clock, signal });
  connection.write("hello");
  expect((await connection.toArray()).join("")).toBe("HELLO");
  expect(proxy.asked).toEqual([{ target: "10.255.0.7:8443", authorization: `Basic ${Buffer.from("me:s@cret").toString("base64")}` }]);
});

test("one that refuses says why, one that is not there is told of, and so is one that nobody can speak to", async () => {
  await using proxy = await connectProxy({ routes: {}, refusal: "403 Not from here" });
  const at = (url: string): Promise<unknown> => dialThrough(new URL(url), target, { clock, signal });
  await expect(at(`http://127.0.0.1:${proxy.port}`)).rejects.toThrow(/^Not from here$/);
  await expect(at("http://127.0.0.1:1")).rejects.toThrow("proxyconnect tcp: dial tcp 127.0.0.1:1: connect: connection refused");
  await expect(at("socks5://127.0.0.1:1080")).rejects.toThrow("proxyconnect tcp: unknown scheme: socks5");
});

test("one that shows a certificate nobody here trusts gets no request", async () => {
  const { key, cert } = servingMaterial(pki);
  await using proxy = await connectProxy({ routes: {}, certificate: { key, cert } });
  await expect(dialThrough(new URL(`https://127.0.0.1:${proxy.port}`), target, { clock, signal })).rejects.toThrow("proxyconnect tcp: tls: failed to verify certificate: x509: certificate signed by unknown authority");
  expect(proxy.asked).toEqual([]);
});

test("one that does not answer is given up in time", async () => {
  const silent = createServer((socket) => void socket.on("error", () => undefined));
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  await expect(dialThrough(new URL(`http://127.0.0.1:${(silent.address() as AddressInfo).port}`), { ...target, timeoutMs: 50 }, { clock, signal })).rejects.toThrow("i/o timeout");
  silent.close();
});
