/**
 * PKCS#10 certificate signing requests: what a client sends to have its key certified.
 *
 * Standard: RFC 2986; the alternative names come in an extensionRequest attribute (RFC 2985 section 5.4.2).
 */
import type { KeyObject } from "node:crypto";
import { type AltNames, encodeAltNames, isEmptyAltNames, NO_ALT_NAMES } from "./alt-names.ts";
import { bitString, contextTag, expectTag, integer, octetString, oid, readBitString, readChildren, readOid, readOne, sequence, setOf, TAG, tlv } from "./asn1.ts";
import { readPem, toPem, withoutPemHeaders } from "./pem.ts";
import { requestSignatureProblem, signDer, spkiOf } from "./signature.ts";
import { decodeSubject, encodeSubject, type Subject } from "./subject.ts";
import { altNamesFromExtensions } from "./x509.ts";

const OID_EXTENSION_REQUEST = "1.2.840.113549.1.9.14";
const OID_ALT_NAMES = "2.5.29.17";

export interface CertificateRequest {
  readonly subject: Subject;
  readonly subjectRaw: Uint8Array;
  readonly altNames: AltNames;
  readonly spki: Uint8Array;
  /** Why it does not show that the sender holds the private key, in Go's words; computed when asked for. Undefined: it does. */
  readonly signatureProblem: string | undefined;
}

/** Throws Asn1Error for what is no request, and an Error with upstream's text for PEM of another kind. */
export function parseCertificateRequest(pem: string): CertificateRequest {
  const block = readPem(withoutPemHeaders(pem))[0];
  if (block?.label !== "CERTIFICATE REQUEST") throw new Error("PEM block type must be CERTIFICATE REQUEST");
  return decodeCertificateRequest(block.der);
}

/** Throws Asn1Error for what is no request. */
export function decodeCertificateRequest(der: Uint8Array): CertificateRequest {
  const [info, algorithm, signature] = readChildren(expectTag(readOne(der), TAG.sequence, "certificate request"));
  const [, subject, spki, attributes] = readChildren(expectTag(info, TAG.sequence, "certificate request"));
  let altNames = NO_ALT_NAMES;
  for (const attribute of attributes?.tag === contextTag(0) ? readChildren(attributes) : []) {
    const [type, values] = readChildren(expectTag(attribute, TAG.sequence, "attribute"));
    if (readOid(type) !== OID_EXTENSION_REQUEST) continue;
    const list = readChildren(expectTag(values, TAG.set, "attribute"))[0];
    if (list) altNames = altNamesFromExtensions(list);
  }
  const spkiRaw = expectTag(spki, TAG.sequence, "public key").raw;
  const signatureOid = readOid(readChildren(expectTag(algorithm, TAG.sequence, "algorithm"))[0]);
  const signed = { spki: spkiRaw, signature: readBitString(signature) };
  return {
    subject: decodeSubject(expectTag(subject, TAG.sequence, "subject")), subjectRaw: subject!.raw, altNames, spki: spkiRaw,
    get signatureProblem() { return requestSignatureProblem(signatureOid, info!.raw, signed); },
  };
}

/** PEM. */
export function createCertificateRequest(subject: Subject, altNames: AltNames, key: KeyObject): string { return toPem("CERTIFICATE REQUEST", encodeCertificateRequest(subject, altNames, key)); }

/** DER. */
export function encodeCertificateRequest(subject: Subject, altNames: AltNames, key: KeyObject): Uint8Array {
  const attributes = isEmptyAltNames(altNames) ? [] : [
    sequence(oid(OID_EXTENSION_REQUEST), setOf(sequence(sequence(oid(OID_ALT_NAMES), octetString(encodeAltNames(altNames)))))),
  ];
  const info = sequence(integer(0), encodeSubject(subject), spkiOf(key), tlv(contextTag(0), ...attributes));
  const { algorithm, signature } = signDer(info, key);
  return sequence(info, algorithm, bitString(signature));
}
