import * as https from "node:https";
import { connect } from "node:net";
import { once } from "node:events";
import { expect, test } from "vitest";
import { servingMaterial, testPki } from "../../test/certificates.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { dialTls } from "./dial-tls.ts";
import { httpsFetch } from "./https-fetch.ts";

const signal = new AbortController().signal;

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
