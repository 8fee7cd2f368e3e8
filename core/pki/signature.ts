/**
 * Signatures over DER: which algorithm an OID names, signing as an authority, verifying what others signed.
 *
 * We sign with ECDSA P-256 (or, with an operator's own key, whatever key that is), and verify what Go's x509 verifies: SHA-2 with
 * RSA (PKCS#1) or ECDSA, and Ed25519. SHA-1 and MD5 are refused.
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

/** False also for an algorithm we do not know and for a key of another type. `spki`: SubjectPublicKeyInfo, DER. */
export function verifyDer(algorithmOid: string, data: Uint8Array, { spki, signature }: { readonly spki: Uint8Array; readonly signature: Uint8Array }): boolean {
  const algorithm = ALGORITHMS.find((one) => one.oid === algorithmOid);
  if (!algorithm) return false;
  try {
    const key = publicKeyOf(spki);
    return key.asymmetricKeyType === algorithm.keyType && verify(algorithm.hash, data, key, signature);
  } catch {
    return false; // a malformed key or signature verifies nothing
  }
}

function publicKeyOf(spki: Uint8Array): KeyObject { return createPublicKey({ key: Buffer.from(spki), format: "der", type: "spki" }); }

export function spkiOf(key: KeyObject): Uint8Array {
  return (key.type === "private" ? createPublicKey(key) : key).export({ format: "der", type: "spki" });
}
