import { once } from "node:events";
import * as https from "node:https";
import { connect } from "node:net";
import * as tls from "node:tls";
import { expect, test } from "vitest";
import { systemClock } from "../lifecycle/clock.ts";
import { dialOrigin } from "./dial-origin.ts";
import { dialTls } from "./dial-tls.ts";
import { httpsFetch } from "./https-fetch.ts";
import { tlsOptions } from "./tls.ts";

const signal = new AbortController().signal;

/** On the curve P-521, of 127.0.0.1, for a hundred years. */
const KEY = `-----BEGIN PRIVATE KEY-----
MIHuAgEAMBAGByqGSM49AgEGBSuBBAAjBIHWMIHTAgEBBEIBlwMU6cjcjpnOLLJl
JhlhT4eInMUjyflsJVyrgG1Rgv9K8VK/X3HssuGjSuwcoTVMxjDc031EsHFAEbEu
PHZxCgWhgYkDgYYABAHBhQH4/XBrub0aAPoBa7p8cqbZaVTXNKTBHJd4xhuXk/my
YMpLLvrPkJ4qnBQqVbTwoRcQVC7/fZKLH8JGgmjrdAFe3uRgr/KZb/lf8V9xnSB5
jqaziarmnxsesLAolSY2L6k3TQy1XI9pHj2hZhG07DzIirZj9XDlfPCnCpr8Aa6b
4w==
-----END PRIVATE KEY-----
`;
const CERT = `-----BEGIN CERTIFICATE-----
MIICDTCCAW+gAwIBAgIUeNSrz0hVvacWuUtCeqldnHh8zicwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEcDUyMTAgFw0yNjExMjkyMDUzMTlaGA8yMTI2MTEwNTIwNTMx
OVowDzENMAsGA1UEAwwEcDUyMTCBmzAQBgcqhkjOPQIBBgUrgQQAIwOBhgAEAcGF
Afj9cGu5vRoA+gFrunxyptlpVNc0pMEcl3jGG5eT+bJgyksu+s+QniqcFCpVtPCh
FxBULv99kosfwkaCaOt0AV7e5GCv8plv+V/xX3GdIHmOprOJquafGx6wsCiVJjYv
qTdNDLVcj2kePaFmEbTsPMiKtmP1cOV88KcKmvwBrpvjo2QwYjAdBgNVHQ4EFgQU
W/NaHFQRO9fQglUWyN6R2G7e868wHwYDVR0jBBgwFoAUW/NaHFQRO9fQglUWyN6R
2G7e868wDwYDVR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49
BAMCA4GLADCBhwJCAfAEmYqjblcDJxcfidtl4DjNL9gpvEb1Xbv/Me/5f/miw1sf
I6l1bZKJTpNmgyWFH3Z1gV1XnS+XVVFKMolW2XVGAkEklM8YRgpW1L5ls65vVoB0
WC4+EzJbtqO/j1TA4Dy82KYZryhYSeXX+PSSzXutkvMq6fuvAlPtQBxqTWpGPJPv
ag==
-----END CERTIFICATE-----
`;

test("servers with certificates of P-521 are reached that know no newer TLS than 1.2", async () => {
  await using server = https.createServer({ key: KEY, cert: CERT, ecdhCurve: "P-521", maxVersion: "TLSv1.2" }, (_, response) => response.end("yes"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number }, url = `https://127.0.0.1:${port}/`;
  expect((await httpsFetch({ url, post: { contentType: "application/json", body: "{}" }, tls: { ca: CERT }, timeoutMs: 10_000 }, systemClock, signal)).text).toBe("yes");
  for (const socket of [await dialTls(connect({ host: "127.0.0.1", port }), { ca: CERT, serverName: "127.0.0.1", signal }), await dialOrigin(url, { tls: { ca: CERT }, alpn: ["http/1.1"], clock: systemClock, signal })]) socket.destroy();
});

test("so are servers of ours by clients that know no other curve", async () => {
  await using server = tls.createServer(tlsOptions({ key: KEY, cert: CERT, clientCas: [] }), (socket) => socket.end());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const socket = tls.connect({ host: "127.0.0.1", port, ca: CERT, maxVersion: "TLSv1.2", ecdhCurve: "P-521" });
  await once(socket, "secureConnect");
  socket.destroy();
});
