import { execFileSync } from "node:child_process";
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemRandom } from "../lifecycle/random.ts";
import { altNamesOf, NO_ALT_NAMES } from "./alt-names.ts";
import { Asn1Error, readOne } from "./asn1.ts";
import { authority, generateKey, keyPem, selfSign } from "./authority.ts";
import { createCertificateRequest, parseCertificateRequest } from "./certificate-request.ts";
import { kubeletSubject } from "./identities.ts";
import { readPem, toPem } from "./pem.ts";
import { spkiOf } from "./signature.ts";
import { chainProblem } from "./verify-chain.ts";
import { parseCertificate } from "./x509.ts";

const openssl = ((): boolean => { try { execFileSync("openssl", ["version"], { stdio: "ignore" }); return true; } catch { return false; } })();

test("a request survives the trip, and is signed into a certificate for the same key", async () => {
  const key = await generateKey();
  const altNames = altNamesOf(["edge-1", "10.0.0.7"]);
  const request = parseCertificateRequest(createCertificateRequest(kubeletSubject("edge-1"), altNames, key));
  expect(request).toMatchObject({ subject: { commonName: "system:node:edge-1", organizations: ["system:nodes"] }, altNames, signatureProblem: undefined });

  const caKey = await generateKey();
  const ca = authority(selfSign("ca", { key: caKey, random: systemRandom, notBeforeMs: 0, notAfterMs: 2_000_000_000_000 }), keyPem(caKey), systemRandom);
  const pem = ca.issue({ subject: request.subjectRaw, spki: request.spki, usages: ["digital signature", "client auth"], notBeforeMs: 0, notAfterMs: 9_000_000_000_000 });
  const certificate = parseCertificate(readPem(pem)[0]!.der);
  expect(certificate.subject).toMatchObject({ commonName: "system:node:edge-1", organizations: ["system:nodes"] });
  expect(certificate.notAfterMs).toBe(2_000_000_000_000); // never longer than its CA
  expect(createPublicKey(key).equals(createPublicKey({ key: Buffer.from(certificate.spki), format: "der", type: "spki" }))).toBe(true);
  expect(chainProblem(certificate, { roots: ca.bundle, usage: "client auth", nowMs: 1_900_000_000_000 })).toBeUndefined();
});

test("a request whose key the sender does not hold is noticed", async () => {
  const pem = createCertificateRequest(kubeletSubject("edge-1"), NO_ALT_NAMES, await generateKey());
  const der = Uint8Array.from(readPem(pem)[0]!.der);
  der[der.indexOf(0x65) + 1]! ^= 1; // "edge" → "eege"
  expect(parseCertificateRequest(toPem("CERTIFICATE REQUEST", der)).signatureProblem).toBe("x509: ECDSA verification failure");
});

test.runIf(openssl)("openssl reads ours, and we read openssl's, whatever the key", async () => {
  const dir = mkdtempSync(join(tmpdir(), "csr-"));
  writeFileSync(join(dir, "ours.csr"), createCertificateRequest({ commonName: "jane", organizations: ["dev", "ops"] }, altNamesOf(["a.example", "::1"]), await generateKey()));
  const text = execFileSync("openssl", ["req", "-in", join(dir, "ours.csr"), "-verify", "-noout", "-text"], { stdio: ["ignore", "pipe", "pipe"] }).toString();
  expect(text).toContain("DNS:a.example, IP Address:0:0:0:0:0:0:0:1");
  for (const [type, ...options] of [["rsa", "-newkey", "rsa:2048"], ["ed25519", "-newkey", "ed25519"], ["p384", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384", "-sha384"]]) {
    const csr = execFileSync("openssl", ["req", "-new", "-nodes", ...options, "-keyout", join(dir, "key"), "-subj", "/O=dev/CN=jané", "-utf8", "-addext", "subjectAltName=DNS:x.example,URI:spiffe://a,email:j@x.example"], { stdio: ["ignore", "pipe", "ignore"] }).toString();
    expect(parseCertificateRequest(csr), type).toMatchObject({
      signatureProblem: undefined, subject: { commonName: "jané", organizations: ["dev"] }, altNames: { dnsNames: ["x.example"], uris: ["spiffe://a"], emailAddresses: ["j@x.example"] },
    });
  }
});

test.runIf(openssl)("a request may be signed over SHA-1, not over MD5", () => {
  const dir = mkdtempSync(join(tmpdir(), "csr-"));
  const made = (hash: string): string => execFileSync("openssl", ["req", "-new", "-nodes", "-newkey", "rsa:2048", hash, "-keyout", join(dir, "key"), "-subj", "/CN=x"], { stdio: ["ignore", "pipe", "ignore"] }).toString();
  expect(parseCertificateRequest(made("-sha1")).signatureProblem).toBeUndefined();
  expect(parseCertificateRequest(made("-md5")).signatureProblem).toBe("x509: cannot verify signature: insecure algorithm MD5-RSA");
});

test("certificates of other makers are read: RSA, v1, dates beyond 2050", async () => {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const pem = selfSign("far", { key: privateKey, random: systemRandom, notBeforeMs: 0, notAfterMs: Date.parse("2070-01-01T00:00:00Z") });
  const certificate = parseCertificate(readPem(pem)[0]!.der);
  expect(new Date(certificate.notAfterMs).getUTCFullYear()).toBe(2070);
  expect(chainProblem(certificate, { roots: [certificate], usage: "client auth", nowMs: 5 })).toBeUndefined();
});

test.each([
  ["", "asn1: syntax error: data truncated"], ["3003020101ff", "trailing data"], ["30800000", "indefinite"], ["3081050201010500", "not the shortest"], ["3082012c00", "data truncated"], ["1f810100", "above 30"], ["30847fffffff", "data truncated"],
])("DER %s is refused: %s", (hex, message) => {
  expect(() => readOne(Buffer.from(hex, "hex"))).toThrow(Asn1Error);
  expect(() => readOne(Buffer.from(hex, "hex"))).toThrow(message);
});

test("no mutation of a certificate makes the reader do anything but read or refuse", async () => {
  const key = await generateKey();
  const der = readPem(selfSign("x", { key, random: systemRandom, notBeforeMs: 0, notAfterMs: 1e12 }))[0]!.der;
  expect(spkiOf(key)).toHaveLength(91);
  for (let at = 0; at < der.length; at++) {
    for (const byte of [0, 0x30, 0x80, 0xff, der[at]! ^ 1]) {
      const copy = Uint8Array.from(der);
      copy[at] = byte;
      try { parseCertificate(copy); } catch (error) { expect(error).toBeInstanceOf(Asn1Error); }
    }
  }
});

test("headers in a request's PEM are passed over, as Go's decoder passes them over; in a certificate's they make it none", async () => {
  const pem = createCertificateRequest(kubeletSubject("edge-1"), NO_ALT_NAMES, await generateKey());
  expect(parseCertificateRequest(pem.replace("REQUEST-----\n", "REQUEST-----\nComment: hello\nX: y\n\n")).signatureProblem).toBeUndefined();
  expect(readPem("-----BEGIN CERTIFICATE-----\nA: b\n\nAAAA\n-----END CERTIFICATE-----\n")).toEqual([]);
});
