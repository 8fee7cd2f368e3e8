/** A cluster's certificates in a directory of their own, for tests that need TLS. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../core/lifecycle/clock.ts";
import { systemRandom } from "../core/lifecycle/random.ts";
import { silentLog } from "../core/observe/log.ts";
import { NO_ALT_NAMES } from "../core/pki/alt-names.ts";
import { generateKey, keyPem } from "../core/pki/authority.ts";
import { createCertificateRequest } from "../core/pki/certificate-request.ts";
import { kubeletSubject, SERVING_NAME } from "../core/pki/identities.ts";
import { openPki, type Pki } from "../core/pki/pki.ts";
import { spkiOf } from "../core/pki/signature.ts";
import { encodeSubject } from "../core/pki/subject.ts";
import { certificatePem, signCertificate } from "../core/pki/x509.ts";

export async function testPki(nodeIps: readonly string[] = ["127.0.0.1"]): Promise<Pki> {
  const names = () => ({ nodeName: "node-1", nodeIps, serviceIps: ["10.43.0.1"], clusterDomain: "cluster.local", extra: [] });
  return await openPki({ dir: mkdtempSync(join(tmpdir(), "pki-")), names, clock: systemClock, random: systemRandom, log: silentLog, releasedMs: 0 });
}

export function servingMaterial(pki: Pki): { key: string; cert: string; clientCas: string[] } {
  const { keyPem: key, certificatePem: cert } = pki.leaf(SERVING_NAME);
  return { key, cert, clientCas: [pki.authority("client-ca").bundlePem, pki.authority("request-header-ca").bundlePem] };
}

/** What a joined node calls the API server with. */
export async function nodeCredentials(pki: Pki, nodeName: string): Promise<{ ca: string; cert: string; key: string }> {
  const key = await generateKey();
  const cert = pki.authority("client-ca").issue({ subject: kubeletSubject(nodeName), spki: spkiOf(key), usages: ["digital signature", "client auth"], notBeforeMs: 0, notAfterMs: systemClock.nowMs() + 3_600_000 });
  return { ca: pki.authority("server-ca").bundlePem, cert, key: keyPem(key) };
}

/** An authority and what it signed, as policy engines make them for their webhooks: neither has a name, or both the same. */
export async function namesakes(commonName?: string): Promise<{ ca: string; cert: string; key: string }> {
  const name = commonName === undefined ? Uint8Array.of(0x30, 0) : encodeSubject({ commonName, organizations: [] });
  const [above, below] = [await generateKey(), await generateKey()];
  const common = { notBeforeMs: 0, notAfterMs: systemClock.nowMs() + 3_600_000, issuerRaw: name, subjectRaw: name };
  const ca = signCertificate({ ...common, serial: Buffer.alloc(16, 1), spki: spkiOf(above), usages: ["cert sign"], altNames: NO_ALT_NAMES, isCa: true }, above);
  const leaf = signCertificate({ ...common, serial: Buffer.alloc(16, 2), spki: spkiOf(below), usages: ["server auth"], altNames: { ...NO_ALT_NAMES, ipAddresses: ["127.0.0.1"] }, isCa: false }, above);
  return { ca: certificatePem(ca), cert: certificatePem(leaf), key: keyPem(below) };
}

/** Signed by itself, and with no alternative names: what openssl makes of `-subj /CN=…` alone. */
export async function withCommonNameOnly(commonName: string): Promise<{ cert: string; key: string }> {
  const key = await generateKey(), name = encodeSubject({ commonName, organizations: [] });
  const cert = signCertificate({ serial: Buffer.alloc(16, 1), notBeforeMs: 0, notAfterMs: systemClock.nowMs() + 3_600_000, issuerRaw: name, subjectRaw: name, spki: spkiOf(key), usages: ["server auth"], altNames: NO_ALT_NAMES, isCa: true }, key);
  return { cert: certificatePem(cert), key: keyPem(key) };
}

/** Of 127.0.0.1, for an hour from `notBeforeMs`. */
export async function servingFrom(pki: Pki, notBeforeMs: number): Promise<{ cert: string; key: string }> {
  const key = await generateKey();
  const cert = pki.authority("server-ca").issue({ subject: encodeSubject({ commonName: "node", organizations: [] }), spki: spkiOf(key), usages: ["server auth"], altNames: { ...NO_ALT_NAMES, ipAddresses: ["127.0.0.1"] }, notBeforeMs, notAfterMs: notBeforeMs + 3_600_000 });
  return { cert, key: keyPem(key) };
}

/** What asks for a certificate, and the one an authority answers with: both PEM. */
export async function requested(pki: Pki, { seconds }: { readonly seconds: number }): Promise<{ request: string; certificate: string }> {
  const key = await generateKey();
  const request = createCertificateRequest({ commonName: "ann", organizations: [] }, NO_ALT_NAMES, key);
  const certificate = pki.authority("client-ca").issue({ subject: encodeSubject({ commonName: "ann", organizations: [] }), spki: spkiOf(key), usages: ["client auth"], notBeforeMs: 0, notAfterMs: seconds * 1000 });
  return { request, certificate };
}
