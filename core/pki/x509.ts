/**
 * X.509 certificates: reading them, and writing the kinds a cluster needs.
 *
 * Standard: RFC 5280. Fields and extensions Kubernetes does not look at are skipped when reading, except that an unknown
 * critical extension is reported, because whoever verifies must refuse it.
 */
import { createHash, type KeyObject } from "node:crypto";
import { type AltNames, decodeAltNames, encodeAltNames, isEmptyAltNames, NO_ALT_NAMES } from "./alt-names.ts";
import {
  type Asn1, Asn1Error, bitString, boolean, contextTag, expectTag, integer, octetString, oid, readBitString, readChildren, readOid, readOne, readTime, sequence,
  TAG, time, tlv,
} from "./asn1.ts";
import { toPem } from "./pem.ts";
import { algorithmIdentifier, signDer } from "./signature.ts";
import { decodeSubject, type Subject } from "./subject.ts";

/** Key usages in the words of the certificates API. Those with an OID are extended ones; the others are bits. */
export type Usage =
  | "signing" | "digital signature" | "content commitment" | "key encipherment" | "data encipherment" | "key agreement" | "cert sign" | "crl sign"
  | "encipher only" | "decipher only" | "any" | "server auth" | "client auth" | "code signing" | "email protection" | "s/mime" | "ipsec end system"
  | "ipsec tunnel" | "ipsec user" | "timestamping" | "ocsp signing" | "microsoft sgc" | "netscape sgc";

/** Source: kubernetes v1.36 staging/src/k8s.io/client-go/util/certificate/csr, pkg/apis/certificates (KeyUsage → x509) */
const USAGE_BITS: Readonly<Partial<Record<Usage, number>>> = {
  "signing": 0, "digital signature": 0, "content commitment": 1, "key encipherment": 2, "data encipherment": 3, "key agreement": 4, "cert sign": 5,
  "crl sign": 6, "encipher only": 7, "decipher only": 8,
};
const USAGE_OIDS: Readonly<Partial<Record<Usage, string>>> = {
  "any": "2.5.29.37.0", "server auth": "1.3.6.1.5.5.7.3.1", "client auth": "1.3.6.1.5.5.7.3.2", "code signing": "1.3.6.1.5.5.7.3.3",
  "email protection": "1.3.6.1.5.5.7.3.4", "s/mime": "1.3.6.1.5.5.7.3.4", "ipsec end system": "1.3.6.1.5.5.7.3.5", "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
  "ipsec user": "1.3.6.1.5.5.7.3.7", "timestamping": "1.3.6.1.5.5.7.3.8", "ocsp signing": "1.3.6.1.5.5.7.3.9", "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
  "netscape sgc": "2.16.840.1.113730.4.1",
};

export function isUsage(text: string): text is Usage { return Object.hasOwn(USAGE_BITS, text) || Object.hasOwn(USAGE_OIDS, text); }

const OID_SKI = "2.5.29.14";
const OID_KEY_USAGE = "2.5.29.15";
const OID_ALT_NAMES = "2.5.29.17";
const OID_BASIC_CONSTRAINTS = "2.5.29.19";
const OID_AKI = "2.5.29.35";
const OID_EXTENDED_KEY_USAGE = "2.5.29.37";

export interface Certificate {
  /** DER. */
  readonly raw: Uint8Array;
  /** What the issuer signed. */
  readonly tbs: Uint8Array;
  readonly signatureOid: string;
  readonly signature: Uint8Array;
  /** Lower-case hex. */
  readonly serial: string;
  readonly issuerRaw: Uint8Array;
  readonly subjectRaw: Uint8Array;
  readonly subject: Subject;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** SubjectPublicKeyInfo, DER. */
  readonly spki: Uint8Array;
  readonly altNames: AltNames;
  readonly isCa: boolean;
  /** Bit numbers; undefined: no such extension, hence no limit. */
  readonly keyUsage: ReadonlySet<number> | undefined;
  /** OIDs; undefined: no such extension, hence no limit. */
  readonly extendedKeyUsage: readonly string[] | undefined;
  readonly subjectKeyId: Uint8Array | undefined;
  readonly unknownCritical: boolean;
}

/** Throws Asn1Error for what is no certificate. */
export function parseCertificate(der: Uint8Array): Certificate {
  const [tbs, algorithm, signature] = readChildren(expectTag(readOne(der), TAG.sequence, "certificate"));
  const fields = readChildren(expectTag(tbs, TAG.sequence, "certificate"));
  if (fields[0]?.tag === contextTag(0)) fields.shift(); // version; absent in v1
  const [serial, , issuer, validity, subject, spki, ...rest] = fields;
  const [notBefore, notAfter] = readChildren(expectTag(validity, TAG.sequence, "validity"));
  const extensions = rest.find(({ tag }) => tag === contextTag(3));
  return {
    raw: der, tbs: tbs!.raw,
    signatureOid: readOid(readChildren(expectTag(algorithm, TAG.sequence, "algorithm"))[0]), signature: readBitString(signature),
    serial: Buffer.from(expectTag(serial, TAG.integer, "serial number").content).toString("hex"),
    issuerRaw: expectTag(issuer, TAG.sequence, "issuer").raw,
    subjectRaw: expectTag(subject, TAG.sequence, "subject").raw, subject: decodeSubject(subject!),
    notBeforeMs: readTime(notBefore), notAfterMs: readTime(notAfter),
    spki: expectTag(spki, TAG.sequence, "public key").raw,
    ...readExtensions(extensions),
  };
}

type Extensions = Pick<Certificate, "altNames" | "isCa" | "keyUsage" | "extendedKeyUsage" | "subjectKeyId" | "unknownCritical">;

function readExtensions(explicit: Asn1 | undefined): Extensions {
  const found: { -readonly [K in keyof Extensions]: Extensions[K] } = {
    altNames: NO_ALT_NAMES, isCa: false, keyUsage: undefined, extendedKeyUsage: undefined, subjectKeyId: undefined, unknownCritical: false,
  };
  for (const { id, critical, value } of explicit ? decodeExtensions(readChildren(explicit)[0]) : []) {
    if (id === OID_ALT_NAMES) found.altNames = decodeAltNames(value);
    else if (id === OID_BASIC_CONSTRAINTS) found.isCa = readChildren(value)[0]?.content[0] === 0xff;
    else if (id === OID_KEY_USAGE) found.keyUsage = readBits(value);
    else if (id === OID_EXTENDED_KEY_USAGE) found.extendedKeyUsage = readChildren(value).map(readOid);
    else if (id === OID_SKI) found.subjectKeyId = value.content;
    else if (critical) found.unknownCritical = true;
  }
  return found;
}

/** The Extensions sequence of a certificate or of a request's attribute. */
function decodeExtensions(list: Asn1 | undefined): { readonly id: string; readonly critical: boolean; readonly value: Asn1 }[] {
  return readChildren(expectTag(list, TAG.sequence, "extensions")).map((extension) => {
    const parts = readChildren(expectTag(extension, TAG.sequence, "extension"));
    const content = expectTag(parts.at(-1), TAG.octetString, "extension").content;
    return { id: readOid(parts[0]), critical: parts.length === 3 && parts[1]!.content[0] === 0xff, value: readOne(content) };
  });
}

export function altNamesFromExtensions(list: Asn1): AltNames {
  const found = decodeExtensions(list).find(({ id }) => id === OID_ALT_NAMES);
  return found ? decodeAltNames(found.value) : NO_ALT_NAMES;
}

function readBits(value: Asn1): ReadonlySet<number> {
  const [unused = 0, ...bytes] = expectTag(value, TAG.bitString, "key usage").content;
  if (unused > 7) throw new Asn1Error("key usage: bad bit string");
  const bits = new Set<number>();
  for (const [i, byte] of bytes.entries()) for (let bit = 0; bit < 8; bit++) if (byte & (0x80 >> bit)) bits.add(i * 8 + bit);
  return bits;
}

export interface Template {
  /** 1–20 bytes; made positive. */
  readonly serial: Uint8Array;
  /** Names in DER. */
  readonly issuerRaw: Uint8Array;
  readonly subjectRaw: Uint8Array;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  readonly spki: Uint8Array;
  readonly usages: readonly Usage[];
  readonly altNames: AltNames;
  readonly isCa: boolean;
  /** Absent when self-signed. */
  readonly authorityKeyId?: Uint8Array | undefined;
}

/** The bits that a certificate for these usages has. */
export function keyUsageOf(usages: readonly Usage[]): Certificate["keyUsage"] {
  const bits = usages.flatMap((usage) => USAGE_BITS[usage] ?? []);
  return bits.length > 0 ? new Set(bits) : undefined;
}

/** DER, signed with the issuer's key. */
export function signCertificate(template: Template, issuerKey: KeyObject): Uint8Array {
  const keyId = keyIdOf(template.spki);
  const bits = [...keyUsageOf(template.usages) ?? []];
  const purposes = [...new Set(template.usages.flatMap((usage) => USAGE_OIDS[usage] ?? []))];
  const extensions = [
    ...(bits.length > 0 ? [extension(OID_KEY_USAGE, writeBits(bits), true)] : []),
    ...(purposes.length > 0 ? [extension(OID_EXTENDED_KEY_USAGE, sequence(...purposes.map(oid)))] : []),
    extension(OID_BASIC_CONSTRAINTS, template.isCa ? sequence(boolean(true)) : sequence(), true),
    ...(template.isCa ? [extension(OID_SKI, octetString(keyId))] : []),
    ...(template.authorityKeyId ? [extension(OID_AKI, sequence(tlv(contextTag(0, false), template.authorityKeyId)))] : []),
    // Without a subject the names are all there is, so nobody may overlook them.
    ...(isEmptyAltNames(template.altNames) ? [] : [extension(OID_ALT_NAMES, encodeAltNames(template.altNames), template.subjectRaw.length <= 2)]),
  ];
  const serial = Uint8Array.from(template.serial);
  serial[0] = (serial[0]! & 0x7f) | 0x40; // positive, and never all zeros
  const tbs = sequence(
    tlv(contextTag(0), integer(2)), integer(serial), algorithmIdentifier(issuerKey), template.issuerRaw,
    sequence(time(template.notBeforeMs), time(template.notAfterMs)), template.subjectRaw, template.spki, tlv(contextTag(3), sequence(...extensions)),
  );
  const { algorithm, signature } = signDer(tbs, issuerKey);
  return sequence(tbs, algorithm, bitString(signature));
}

function extension(id: string, value: Uint8Array, critical = false): Uint8Array {
  return sequence(oid(id), ...(critical ? [boolean(true)] : []), octetString(value));
}

function writeBits(bits: readonly number[]): Uint8Array {
  const highest = Math.max(...bits);
  const bytes = new Uint8Array(Math.floor(highest / 8) + 1);
  for (const bit of bits) bytes[bit >> 3]! |= 0x80 >> (bit & 7);
  return bitString(bytes, 7 - (highest & 7));
}

/** RFC 7093 method 1: the leftmost 160 bits of SHA-256 over the key's bits. */
export function keyIdOf(spki: Uint8Array): Uint8Array {
  const key = readBitString(readChildren(readOne(spki))[1]);
  return createHash("sha256").update(key).digest().subarray(0, 20);
}

export function certificatePem(der: Uint8Array): string { return toPem("CERTIFICATE", der); }

/** Whether the certificate may be used so. An absent extension limits nothing. */
export function allowsUsage({ extendedKeyUsage }: Certificate, usage: Usage): boolean {
  if (!extendedKeyUsage) return true;
  return extendedKeyUsage.includes(USAGE_OIDS[usage] ?? "") || extendedKeyUsage.includes(USAGE_OIDS.any!);
}

/** Whether TLS takes it from whoever shows it: keys are proved by signatures. Go does not ask; our library does, of servers and of clients. */
export function maySignHandshakes({ keyUsage }: Pick<Certificate, "keyUsage">): boolean { return keyUsage === undefined || keyUsage.has(USAGE_BITS["digital signature"]!); }

export function maySignCertificates({ isCa, keyUsage }: Certificate): boolean { return isCa && (keyUsage === undefined || keyUsage.has(USAGE_BITS["cert sign"]!)); }

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean { return Buffer.compare(a, b) === 0; }
