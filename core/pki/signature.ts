/**
 * Signatures over DER: which algorithm an OID names, signing as an authority, verifying what others signed.
 *
 * We sign with ECDSA P-256 (or, with an operator's own key, whatever key that is), and verify what Go's x509 verifies: SHA-2 with
 * RSA (PKCS#1) or ECDSA, and Ed25519. MD5 is refused, and SHA-1 but for requests for certificates.
 */
import { createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { oid, sequence, TAG, tlv } from "./asn1.ts";

interface Algorithm { readonly oid: string; readonly keyType: "ec" | "rsa" | "ed25519"; readonly hash: string | null; readonly curve?: string }

const ALGORITHMS: readonly Algorithm[] = [
  { oid: "1.2.840.10045.4.3.2", keyType: "ec", hash: "sha256", curve: "prime256v1" },
  { oid: "1.2.840.10045.4.3.3", keyType: "ec", hash: "sha384", curve: "secp384r1" },
  { oid: "1.2.840.10045.4.3.4", keyType: "ec", hash: "sha512", curve: "secp521r1" },
  { oid: "1.2.840.113549.1.1.11", keyType: "rsa", hash: "sha256" },
  { oid: "1.2.840.113549.1.1.12", keyType: "rsa", hash: "sha384" },
  { oid: "1.2.840.113549.1.1.13", keyType: "rsa", hash: "sha512" },
  { oid: "1.3.101.112", keyType: "ed25519", hash: null },
];
/** After those we sign with. */
const SHA1_ALGORITHMS: readonly Algorithm[] = [
  { oid: "1.2.840.113549.1.1.5", keyType: "rsa", hash: "sha1" },
  { oid: "1.3.14.3.2.29", keyType: "rsa", hash: "sha1" },
  { oid: "1.2.840.10045.4.1", keyType: "ec", hash: "sha1" },
];
const MD5_RSA = "1.2.840.113549.1.1.4";
const FAILURES = { rsa: "crypto/rsa: verification error", ec: "x509: ECDSA verification failure", ed25519: "x509: Ed25519 verification failure" };
const GO_KEYS: Readonly<Record<string, readonly [algorithm: string, type: string]>> = { rsa: ["RSA", "*rsa.PublicKey"], ec: ["ECDSA", "*ecdsa.PublicKey"], ed25519: ["Ed25519", "ed25519.PublicKey"] };

/** What was signed with: SubjectPublicKeyInfo, DER. */
export interface Signed { readonly spki: Uint8Array; readonly signature: Uint8Array }

/** The AlgorithmIdentifier and the signature. */
export function signDer(data: Uint8Array, key: KeyObject): { readonly algorithm: Uint8Array; readonly signature: Uint8Array } {
  const algorithm = algorithmFor(key);
  return { algorithm: encodeAlgorithm(algorithm), signature: sign(algorithm.hash, data, key) };
}

/** The AlgorithmIdentifier alone: it stands inside what is signed too. */
export function algorithmIdentifier(key: KeyObject): Uint8Array { return encodeAlgorithm(algorithmFor(key)); }

function algorithmFor(key: KeyObject): Algorithm {
  const curve = key.asymmetricKeyDetails?.namedCurve;
  const found = ALGORITHMS.find((one) => one.keyType === key.asymmetricKeyType && (one.curve === undefined || one.curve === curve));
  if (!found) throw new Error(`cannot sign with a key of type ${key.asymmetricKeyType} ${curve ?? ""}`.trimEnd());
  return found;
}

function encodeAlgorithm(algorithm: Algorithm): Uint8Array {
  return algorithm.keyType === "rsa" ? sequence(oid(algorithm.oid), tlv(TAG.null)) : sequence(oid(algorithm.oid));
}

/** False also for an algorithm we do not know and for a key of another type. */
export function verifyDer(algorithmOid: string, data: Uint8Array, signed: Signed): boolean { return signatureProblem(algorithmOid, data, signed, ALGORITHMS) === undefined; }

/** Why a request for a certificate is not signed by its key, in Go's words; undefined if it is. */
export function requestSignatureProblem(algorithmOid: string, data: Uint8Array, signed: Signed): string | undefined {
  return signatureProblem(algorithmOid, data, signed, [...ALGORITHMS, ...SHA1_ALGORITHMS]);
}

function signatureProblem(algorithmOid: string, data: Uint8Array, { spki, signature }: Signed, algorithms: readonly Algorithm[]): string | undefined {
  const algorithm = algorithms.find((one) => one.oid === algorithmOid);
  if (!algorithm) return `x509: cannot verify signature: ${algorithmOid === MD5_RSA ? "insecure algorithm MD5-RSA" : "algorithm unimplemented"}`;
  const { keyType, hash } = algorithm;
  try {
    const key = publicKeyOf(spki), type = key.asymmetricKeyType ?? "";
    if (type !== keyType) return `x509: signature algorithm specifies an ${GO_KEYS[keyType]?.[0]} public key, but have public key of type ${GO_KEYS[type]?.[1] ?? type}`;
    return verify(hash, data, key, signature) ? undefined : FAILURES[keyType];
  } catch {
    return FAILURES[keyType]; // a malformed key or signature verifies nothing
  }
}

/** Throws for what the engine knows no such key of. */
export function publicKeyOf(spki: Uint8Array): KeyObject { return createPublicKey({ key: Buffer.from(spki), format: "der", type: "spki" }); }

export function spkiOf(key: KeyObject): Uint8Array {
  return (key.type === "private" ? createPublicKey(key) : key).export({ format: "der", type: "spki" });
}
