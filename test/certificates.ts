/** A cluster's certificates in a directory of their own, for tests that need TLS. */
import { generateKeyPairSync, type KeyObject } from "node:crypto";
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
export async function namesakes(commonName?: string, usages: Parameters<typeof signCertificate>[0]["usages"] = ["cert sign"]): Promise<{ ca: string; cert: string; key: string }> {
  const name = commonName === undefined ? Uint8Array.of(0x30, 0) : encodeSubject({ commonName, organizations: [] });
  const [above, below] = [await generateKey(), await generateKey()];
  const common = { notBeforeMs: 0, notAfterMs: systemClock.nowMs() + 3_600_000, issuerRaw: name, subjectRaw: name };
  const ca = signCertificate({ ...common, serial: Buffer.alloc(16, 1), spki: spkiOf(above), usages, altNames: NO_ALT_NAMES, isCa: true }, above);
  const leaf = signCertificate({ ...common, serial: Buffer.alloc(16, 2), spki: spkiOf(below), usages: ["server auth"], altNames: { ...NO_ALT_NAMES, ipAddresses: ["127.0.0.1"] }, isCa: false }, above);
  return { ca: certificatePem(ca), cert: certificatePem(leaf), key: keyPem(below) };
}

/** PEM: an authority as it was renewed with its key, as it was before, and one of its name with another key; and what it signed for a server, which calls it by an identifier it has no longer, or by its name alone. */
export async function authoritiesOfOneName(): Promise<{ renewed: string; expired: string; other: string; leaves: readonly string[]; key: string }> {
  const name = encodeSubject({ commonName: "webhook-ca", organizations: [] }), nowMs = systemClock.nowMs(), hourMs = 3_600_000;
  const [key, otherKey, below] = [await generateKey(), await generateKey(), await generateKey()];
  const common = { issuerRaw: name, notBeforeMs: 0, notAfterMs: nowMs + hourMs };
  const authority = (by: KeyObject, period = {}) => certificatePem(signCertificate({ ...common, ...period, serial: Buffer.alloc(16, 1), subjectRaw: name, spki: spkiOf(by), usages: ["cert sign"], altNames: NO_ALT_NAMES, isCa: true }, by));
  const leaf = (authorityKeyId?: Uint8Array) => certificatePem(signCertificate({
    ...common, serial: Buffer.alloc(16, 2), subjectRaw: encodeSubject({ commonName: "webhook", organizations: [] }), spki: spkiOf(below), usages: ["server auth"], altNames: { ...NO_ALT_NAMES, ipAddresses: ["127.0.0.1"] }, isCa: false, authorityKeyId,
  }, key));
  return { renewed: authority(key), expired: authority(key, { notAfterMs: nowMs - hourMs }), other: authority(otherKey), leaves: [leaf(Buffer.alloc(20, 7)), leaf()], key: keyPem(below) };
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

/** As many recipes for openssl have it: a key that may seal keys, and sign nothing. */
export async function forSealingOnly(pki: Pki, by: "server-ca" | "client-ca", type: "rsa" | "ec" = "rsa"): Promise<{ cert: string; key: string }> {
  const key = type === "ec" ? await generateKey() : generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
  const cert = pki.authority(by).issue({ subject: encodeSubject({ commonName: "ann", organizations: [] }), spki: spkiOf(key), usages: ["key encipherment", "data encipherment", "server auth", "client auth"], altNames: { ...NO_ALT_NAMES, ipAddresses: ["127.0.0.1"] }, notBeforeMs: 0, notAfterMs: systemClock.nowMs() + 3_600_000 });
  return { cert, key: keyPem(key) };
}

/** What asks for a certificate, and the one an authority answers with: both PEM. */
export async function requested(pki: Pki, { seconds }: { readonly seconds: number }): Promise<{ request: string; certificate: string }> {
  const key = await generateKey();
  const request = createCertificateRequest({ commonName: "ann", organizations: [] }, NO_ALT_NAMES, key);
  const certificate = pki.authority("client-ca").issue({ subject: encodeSubject({ commonName: "ann", organizations: [] }), spki: spkiOf(key), usages: ["client auth"], notBeforeMs: 0, notAfterMs: seconds * 1000 });
  return { request, certificate };
}
