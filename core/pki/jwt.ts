/**
 * JSON Web Tokens, compact form, and the keys they are checked with as a JWK set.
 *
 * RS256, ES256, ES384 and ES512, chosen by the key's type and never by the token: "alg" must agree with the key it names.
 * Key ids are upstream's: unpadded base64url of SHA-256 over the public key's DER.
 *
 * Standard: RFC 7515, 7517, 7519. Source: kubernetes v1.36 pkg/serviceaccount/{jwt,openidmetadata}.go
 */
import { createHash, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { spkiOf } from "./signature.ts";

export type Claims = Readonly<Record<string, unknown>>;

interface Algorithm { readonly name: string; readonly hash: string }

const CURVES: Readonly<Record<string, Algorithm>> = {
  "prime256v1": { name: "ES256", hash: "sha256" }, "secp384r1": { name: "ES384", hash: "sha384" }, "secp521r1": { name: "ES512", hash: "sha512" },
};

function algorithmOf(key: KeyObject): Algorithm {
  if (key.asymmetricKeyType === "rsa") return { name: "RS256", hash: "sha256" };
  const found = CURVES[key.asymmetricKeyDetails?.namedCurve ?? ""];
  if (!found) throw new Error("tokens are signed with RSA keys or with EC keys on P-256, P-384 or P-521");
  return found;
}

export function keyId(key: KeyObject): string { return createHash("sha256").update(spkiOf(key)).digest("base64url"); }

/** Whether it is one that tokens are signed with: RSA, or EC on one of the curves above. */
export function signsTokens(key: KeyObject): boolean { return key.asymmetricKeyType === "rsa" || CURVES[key.asymmetricKeyDetails?.namedCurve ?? ""] !== undefined; }

export function signJwt(claims: Claims, key: KeyObject): string {
  const { name, hash } = algorithmOf(key);
  const signed = `${encodePart({ alg: name, kid: keyId(key) })}.${encodePart(claims)}`;
  const signature = sign(hash, Buffer.from(signed), { key, dsaEncoding: "ieee-p1363" });
  return `${signed}.${signature.toString("base64url")}`;
}

/** A token's header, or its claims, as they stand in it. */
export function encodePart(value: object): string { return Buffer.from(JSON.stringify(value)).toString("base64url"); }

export interface Jwt {
  readonly header: Claims;
  readonly claims: Claims;
  readonly signed: string;
  readonly signature: Uint8Array;
}

/** Reads without checking the signature. Undefined for what is no token. */
export function parseJwt(token: string): Jwt | undefined {
  const parts = token.split(".");
  if (parts.length !== 3 || !parts.every((part) => /^[A-Za-z0-9_-]+$/.test(part))) return undefined;
  const [header = "", claims = "", signature = ""] = parts;
  const decoded = [decode(header), decode(claims)];
  if (!decoded[0] || !decoded[1]) return undefined;
  return { header: decoded[0], claims: decoded[1], signed: `${header}.${claims}`, signature: Buffer.from(signature, "base64url") };
}

function decode(part: string): Claims | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, "base64url").toString("utf8"));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value as Claims : undefined;
  } catch {
    return undefined; // not JSON, so not a token
  }
}

/** A public key under the id that tokens name it by. */
export interface NamedKey { readonly id: string; readonly key: KeyObject }

/** Under upstream's ids. */
export function namedKeys(keys: readonly KeyObject[]): readonly NamedKey[] {
  return keys.map((key) => ({ id: keyId(key), key: key.type === "private" ? createPublicKey(key) : key }));
}

/** Public keys tokens are checked with, found by key id. */
export interface VerifyingKeys { readonly all: readonly KeyObject[]; byId(id: string): readonly KeyObject[] }

export function verifyingKeys(keys: readonly NamedKey[]): VerifyingKeys {
  const byId = Map.groupBy(keys, ({ id }) => id);
  return { all: keys.map(({ key }) => key), byId: (id) => byId.get(id)?.map(({ key }) => key) ?? [] };
}

/** Whether one of the keys signed it. A token that names its key is checked with that one only. */
export function signatureHolds({ header, signed, signature }: Jwt, keys: VerifyingKeys): boolean {
  const named = typeof header.kid === "string" && header.kid !== "" ? keys.byId(header.kid) : keys.all;
  return named.some((key) => {
    const { name, hash } = algorithmOf(key);
    return header.alg === name && verify(hash, Buffer.from(signed), { key, dsaEncoding: "ieee-p1363" }, signature);
  });
}

/** Members in upstream's order; values of the key as Node exports them. */
export function jwkSet(keys: readonly NamedKey[]): { readonly keys: readonly Claims[] } {
  return {
    keys: keys.map(({ id: kid, key }) => {
      const { kty, crv, x, y, n, e } = key.export({ format: "jwk" });
      const alg = algorithmOf(key).name;
      return kty === "RSA" ? { use: "sig", kty, kid, alg, n, e } : { use: "sig", kty, kid, crv, alg, x, y };
    }),
  };
}
