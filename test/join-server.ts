/**
 * A server that machines can join, for tests: TLS with a CA of its own, the objects that tell what is joined, one token, and somebody who signs every
 * certificate request. It authorizes nothing; `seen` tells who asked for what.
 */
import type { ServerResponse } from "node:http";
import type { CertificateSigningRequest } from "../core/api/gen/certificates.v1.ts";
import { StatusError, unauthorized } from "../core/api/meta/status-error.ts";
import type { ApiWatchEvent } from "../core/client/transport.ts";
import { CERTIFICATE_SIGNING_REQUESTS, CONFIG_MAPS } from "../core/client/resources.ts";
import { systemClock } from "../core/lifecycle/clock.ts";
import { httpsServer } from "../core/net/http-server.ts";
import { silentLog } from "../core/observe/log.ts";
import { parseCertificateRequest } from "../core/pki/certificate-request.ts";
import { formatJoinToken } from "../core/pki/join-token.ts";
import type { Pki } from "../core/pki/pki.ts";
import { isUsage } from "../core/pki/x509.ts";
import { ensureJoinObjects } from "../core/server/join-objects.ts";
import { servingMaterial, testPki } from "./certificates.ts";
import { fakeApi } from "./fake-api.ts";

const DAY_MS = 86_400_000;

/** Signs what bootstrappers and nodes ask for, unless `state.refuse` says why not, or it is for an address of `state.unapproved`. It ends with `stop`. */
export async function joinServer({ token = "abcdef.0123456789abcdef", lifeMs = 365 * DAY_MS }: { readonly token?: string; readonly lifeMs?: number } = {}) {
  const pki = await testPki();
  const api = fakeApi();
  const state = { seen: [] as string[], refuse: undefined as CertificateSigningRequest["status"], unapproved: [] as readonly string[], token };
  const stop = new AbortController();
  const server = httpsServer({
    host: "127.0.0.1", port: 0, portFlag: "--port", tls: () => servingMaterial(pki), upgrade() {}, log: silentLog, clock: systemClock,
    handler(request, response, { peerCertificate }) {
      const user = peerCertificate ? peerCertificate.subject.CN! : request.headers.authorization === `Bearer ${state.token}` ? "bootstrapper" : request.headers.authorization ? "" : "anonymous";
      void (async () => {
        const url = new URL(request.url!, "https://x");
        state.seen.push(`${user || "refused"} ${request.method} ${url.pathname.split("/").at(-1)}`);
        const chunks: Buffer[] = [];
        for await (const chunk of request) chunks.push(chunk as Buffer);
        const body = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) as unknown : undefined;
        try {
          if (user === "") throw unauthorized();
          const asked = { method: request.method as "GET", path: url.pathname, query: Object.fromEntries(url.searchParams), body, signal: stop.signal };
          if (url.searchParams.has("watch")) return await tell(response, api.watch(asked));
          const answer = await api.call(asked);
          response.setHeader("content-type", "application/json").end(JSON.stringify(answer));
        } catch (error) {
          if (!(error instanceof StatusError)) throw error;
          response.writeHead(error.code, { "content-type": "application/json" }).end(JSON.stringify(error.status));
        }
      })();
    },
  });
  await new Promise<void>((ready) => void server.run(stop.signal, ready));
  const url = `https://127.0.0.1:${server.address()!.port}`;
  const apply = api.client.resource(CONFIG_MAPS).create;
  await ensureJoinObjects({ ...api.client, resource: (ref) => ({ ...api.client.resource(ref), apply: apply as never }) }, { server: url, serverCa: ca(pki), clientCa: "client ca", settings: { "cluster-cidr": "10.1.0.0/16" } }, stop.signal);
  void sign(pki, api, state, lifeMs, stop.signal);
  return { pki, api, url, state, stop, token: formatJoinToken(ca(pki), token) };
}

async function tell(response: ServerResponse, events: AsyncIterable<ApiWatchEvent>): Promise<void> {
  response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
  for await (const event of events) response.write(`${JSON.stringify(event)}\n`);
  response.end();
}

export const ca = (pki: Pki): string => pki.authority("server-ca").bundlePem;

async function sign(pki: Pki, api: ReturnType<typeof fakeApi>, state: { readonly refuse: CertificateSigningRequest["status"]; readonly unapproved: readonly string[] }, lifeMs: number, signal: AbortSignal): Promise<void> {
  const requests = api.client.resource(CERTIFICATE_SIGNING_REQUESTS);
  while (!signal.aborted) {
    for (const csr of api.all(CERTIFICATE_SIGNING_REQUESTS)) {
      if (csr.status?.certificate || csr.status?.conditions) continue;
      const { subjectRaw, spki, altNames } = parseCertificateRequest(atob(csr.spec.request));
      if (altNames.ipAddresses.some((ip) => state.unapproved.includes(ip))) continue;
      const authority = pki.authority(csr.spec.signerName.endsWith("serving") ? "server-ca" : "client-ca");
      const certificate = authority.issue({ subject: subjectRaw, spki, altNames, usages: (csr.spec.usages as string[]).filter(isUsage), notBeforeMs: Date.now() - 1000, notAfterMs: Date.now() + lifeMs });
      await requests.updateStatus({ ...csr, status: state.refuse ?? { certificate: btoa(certificate) } }, { signal });
    }
    await Bun.sleep(20);
  }
}
