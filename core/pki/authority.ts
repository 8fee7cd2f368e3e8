/**
 * A certificate authority: a key, its certificate (or a bundle of them, the first being the one that signs), and what it issues.
 */
import { createPrivateKey, generateKeyPair, type KeyObject } from "node:crypto";
import { promisify } from "node:util";
import type { Random } from "../lifecycle/random.ts";
import { type AltNames, NO_ALT_NAMES } from "./alt-names.ts";
import { readCertificatePems } from "./pem.ts";
import { spkiOf } from "./signature.ts";
import { encodeSubject, type Subject } from "./subject.ts";
import type { Validity } from "./validity.ts";
import { issued } from "./verify-chain.ts";
import { type Certificate, certificatePem, keyIdOf, maySignCertificates, parseCertificate, sameBytes, signCertificate, type Usage } from "./x509.ts";

export interface IssueRequest extends Validity {
  /** A subject to encode, or one already in DER. */
  readonly subject: Subject | Uint8Array;
  /** SubjectPublicKeyInfo, DER. */
  readonly spki: Uint8Array;
  readonly usages: readonly Usage[];
  readonly altNames?: AltNames;
}

export interface Authority {
  /** The certificate that signs, with its validity. */
  readonly certificate: Certificate;
  /** All certificates peers should trust: more than one while one CA replaces another. */
  readonly bundle: readonly Certificate[];
  readonly bundlePem: string;
  /** A certificate in PEM. It never outlives the authority. */
  issue(request: IssueRequest): string;
}

const generate = promisify(generateKeyPair);

/** ECDSA P-256. */
export async function generateKey(): Promise<KeyObject> { return (await generate("ec", { namedCurve: "prime256v1" })).privateKey; }

export function keyPem(key: KeyObject): string { return key.export({ format: "pem", type: "pkcs8" }).toString(); }

/** A self-signed CA certificate, PEM. */
export function selfSign(commonName: string, { key, random, notBeforeMs, notAfterMs }: Validity & { readonly key: KeyObject; readonly random: Random }): string {
  const name = encodeSubject({ commonName, organizations: [] });
  return certificatePem(signCertificate({
    serial: random.bytes(16), issuerRaw: name, subjectRaw: name, notBeforeMs, notAfterMs, spki: spkiOf(key), altNames: NO_ALT_NAMES, isCa: true,
    usages: ["digital signature", "key encipherment", "cert sign"],
  }, key));
}

/** Throws when the two do not belong together, or when the certificate is no CA's. */
export function authority(bundlePem: string, privateKeyPem: string, random: Random): Authority {
  const bundle = readCertificatePems(bundlePem).map(parseCertificate);
  const [certificate] = bundle;
  if (!certificate) throw new Error("no certificate found");
  if (!maySignCertificates(certificate)) throw new Error(`certificate ${certificate.subject.commonName} may not sign certificates`);
  const key = createPrivateKey(privateKeyPem);
  if (!sameBytes(spkiOf(key), certificate.spki)) throw new Error("the certificate belongs to another key");
  return {
    certificate, bundle, bundlePem,
    issue: ({ subject, spki, usages, altNames = NO_ALT_NAMES, notBeforeMs, notAfterMs }) => certificatePem(signCertificate({
      serial: random.bytes(16), issuerRaw: certificate.subjectRaw, subjectRaw: subject instanceof Uint8Array ? subject : encodeSubject(subject), spki, usages, altNames,
      notBeforeMs, notAfterMs: Math.min(notAfterMs, certificate.notAfterMs), isCa: false, authorityKeyId: certificate.subjectKeyId ?? keyIdOf(certificate.spki),
    }, key)),
  };
}

/** The bundle with the certificate first that has signed `leaf`, if one of them has. */
export function signerFirst({ bundle, bundlePem }: Pick<Authority, "bundle" | "bundlePem">, leaf: Certificate): string {
  const signer = bundle.find((one) => issued(one, leaf));
  if (signer === undefined || signer === bundle[0]) return bundlePem;
  return [signer, ...bundle.filter((one) => one !== signer)].map(({ raw }) => certificatePem(raw)).join("");
}
