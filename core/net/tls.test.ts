import { once } from "node:events";
import * as https from "node:https";
import { connect } from "node:net";
import * as tls from "node:tls";
import { expect, test } from "vitest";
import { systemClock } from "../lifecycle/clock.ts";
import { forSealingOnly, testPki } from "../../test/certificates.ts";
import { P521_CERT, P521_SERVER } from "../../test/p521.ts";
import { dialOrigin } from "./dial-origin.ts";
import { dialTls } from "./dial-tls.ts";
import { httpsFetch } from "./https-fetch.ts";
import { tlsOptions } from "./tls.ts";

const signal = new AbortController().signal;

test("servers with certificates of P-521 are reached that know no newer TLS than 1.2", async () => {
  await using server = https.createServer(P521_SERVER, (_, response) => response.end("yes"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number }, url = `https://127.0.0.1:${port}/`;
  expect((await httpsFetch({ url, post: { contentType: "application/json", body: "{}" }, tls: { ca: P521_CERT }, timeoutMs: 10_000 }, systemClock, signal)).text).toBe("yes");
  for (const socket of [await dialTls(connect({ host: "127.0.0.1", port }), { ca: P521_CERT, serverName: "127.0.0.1", signal }), await dialOrigin(url, { tls: { ca: P521_CERT }, alpn: ["http/1.1"], clock: systemClock, signal })]) socket.destroy();
});

test("so are servers of ours by clients that know no other curve", async () => {
  await using server = tls.createServer(tlsOptions({ key: P521_SERVER.key, cert: P521_CERT, clientCas: [] }), (socket) => socket.end());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const socket = tls.connect({ host: "127.0.0.1", port, ca: P521_CERT, maxVersion: "TLSv1.2", ecdhCurve: "P-521" });
  await once(socket, "secureConnect");
  socket.destroy();
});

test("a server whose certificate's key may sign nothing is told of in words", async () => {
  const pki = await testPki();
  await using server = https.createServer(await forSealingOnly(pki, "server-ca"), (_, response) => response.end("yes"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number }, ca = pki.authority("server-ca").bundlePem;
  const told = "tls: failed to verify certificate: x509: its key usage is without digital signature";
  await expect(dialTls(connect({ host: "127.0.0.1", port }), { ca, serverName: "127.0.0.1", signal })).rejects.toThrow(told);
  await expect(httpsFetch({ url: `https://127.0.0.1:${port}/`, tls: { ca }, timeoutMs: 10_000 }, systemClock, signal)).rejects.toThrow(told);
});
