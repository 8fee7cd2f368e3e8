import { X509Certificate } from "node:crypto";
import * as https from "node:https";
import { connect } from "node:net";
import { once } from "node:events";
import { expect, test } from "vitest";
import { authoritiesOfOneName, namesakes, servingFrom, servingMaterial, testPki } from "../../test/certificates.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { dialTls } from "./dial-tls.ts";
import { httpsFetch } from "./https-fetch.ts";
import { signedByOneOf } from "./same-name.ts";

const signal = new AbortController().signal;

test.each([["no name", undefined], ["one name", "webhook"]])("an authority that shares %s with what it signed is found by its key", async (_, name) => {
  const { ca, cert, key } = await namesakes(name);
  await using server = https.createServer({ key, cert }, (request, response) => {
    response.setHeader("cache-control", "max-age=7");
    request.pipe(response.writeHead(request.headers.authorization === "Bearer t" ? 200 : 403));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const fetched = (bundle: string) => httpsFetch({ url: `https://127.0.0.1:${port}/x?y`, post: { contentType: "application/json", body: '{"ä":1}' }, token: "t", tls: { ca: bundle }, timeoutMs: 10_000 }, systemClock, signal).catch((error: Error) => error.message.replace(String(port), "PORT"));
  expect(await fetched(ca)).toEqual({ status: 200, text: '{"ä":1}', maxAgeSeconds: 7 });
  expect(await fetched((await namesakes(name)).ca)).toBe('Post "https://127.0.0.1:PORT/x?y": tls: failed to verify certificate: x509: certificate signed by unknown authority');
  const dialled = (bundle: string, serverName = "127.0.0.1") => dialTls(connect({ host: "127.0.0.1", port }), { ca: bundle, serverName, signal }).then((socket) => { socket.destroy(); return "trusted"; }, (error: Error) => error.message);
  const unknown = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
  expect([await dialled(ca), await dialled((await namesakes(name)).ca), await dialled(ca, "127.0.0.2"), await dialled(ca, "a.svc")]).toEqual(["trusted", unknown, "tls: failed to verify certificate: x509: certificate is valid for 127.0.0.1, not 127.0.0.2", "tls: failed to verify certificate: x509: certificate is not valid for any names, but wanted to match a.svc"]);
  const held = (nowMs: number) => signedByOneOf(new X509Certificate(cert).raw, ca, nowMs);
  expect([held(systemClock.nowMs()), held(systemClock.nowMs() + 2 * 3_600_000)]).toEqual([true, false]);
});

test("an authority that is for clients alone has signed no server that is trusted", async () => {
  const held = ({ cert, ca }: { readonly cert: string; readonly ca: string }): boolean => signedByOneOf(new X509Certificate(cert).raw, ca, systemClock.nowMs());
  expect([held(await namesakes("webhook", ["cert sign", "client auth"])), held(await namesakes("webhook", ["cert sign", "client auth", "server auth"]))]).toEqual([false, true]);
});

test("an authority that was renewed with its key, or stands beside one of its name with another key or that has expired, is found by its key", async () => {
  const { renewed, expired, other, leaves, key } = await authoritiesOfOneName();
  for (const cert of leaves) {
    await using server = https.createServer({ key, cert }, (_, response) => response.end("yes"));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    const dialled = (ca: string) => dialTls(connect({ host: "127.0.0.1", port }), { ca, serverName: "127.0.0.1", signal }).then((socket) => { socket.destroy(); return "trusted"; }, (error: Error) => error.message.replace(/.*x509: /, ""));
    const fetched = (ca: string) => httpsFetch({ url: `https://127.0.0.1:${port}/`, tls: { ca }, timeoutMs: 10_000 }, systemClock, signal).then(({ text }) => text, (error: Error) => error.message.replace(/.*x509: /, ""));
    for (const bundle of [renewed, expired + renewed, other + renewed, other + expired + renewed]) expect([await dialled(bundle), await fetched(bundle)]).toEqual(["trusted", "yes"]);
    for (const bundle of [other, expired]) for (const told of [await dialled(bundle), await fetched(bundle)]) expect(told).toMatch(/^certificate (signed by unknown authority|has expired or is not yet valid)$/);
  }
});

test("a certificate that is not valid yet is only for a clock that is not set, and must be signed all the same", async () => {
  const [mine, others] = [await testPki(), await testPki()];
  const signing = mine.authority("server-ca"), startMs = systemClock.nowMs() + 3_600_000;
  await using server = https.createServer(await servingFrom(mine, startMs), (_, response) => response.end("yes"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const dialled = (releasedMs: number, ca = signing.bundlePem) => dialTls(connect({ host: "127.0.0.1", port }), { ca, serverName: "127.0.0.1", signal, releasedMs }).then((socket) => { socket.destroy(); return "trusted"; }, (error: Error) => error.message.replace(/.*x509: /, ""));
  expect([await dialled(startMs - 60_000), await dialled(0), await dialled(startMs, others.authority("server-ca").bundlePem)]).toEqual(["trusted", "certificate has expired or is not yet valid", "certificate has expired or is not yet valid"]);
});

test("a bundle may name the authority or the very certificate: what webhooks in tests and on small clusters come with", async () => {
  const pki = await testPki();
  const { key, cert } = servingMaterial(pki);
  const leaf = /^-----BEGIN.*?-----END CERTIFICATE-----\n/s.exec(cert)![0];
  await using server = https.createServer({ key, cert: leaf }, (_, response) => response.end("yes"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const told = { root: pki.authority("server-ca").bundlePem, leaf, other: servingMaterial(await testPki()).cert };

  const dialled = async (ca: string | undefined): Promise<string> => {
    const connection = connect({ host: "127.0.0.1", port });
    try {
      (await dialTls(connection, { ca, serverName: "127.0.0.1", signal })).destroy();
      return "trusted";
    } catch (error) {
      return (error as Error).message;
    }
  };
  const fetched = (ca: string | undefined) => httpsFetch({ url: `https://127.0.0.1:${port}/`, tls: { ca }, timeoutMs: 10_000 }, systemClock, signal).then(({ text }) => text, () => "no");
  expect([await dialled(told.root), await dialled(told.leaf), await dialled(told.other)]).toEqual(["trusted", "trusted", "tls: failed to verify certificate: x509: certificate signed by unknown authority"]);
  expect([await fetched(told.root), await fetched(told.leaf), await fetched(told.other)]).toEqual(["yes", "yes", "no"]);
});
