import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { expect, test } from "vitest";
import { jwkSet, keyId, namedKeys, parseJwt, signatureHolds, signJwt, verifyingKeys } from "./jwt.ts";

const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
const ec = (namedCurve: string): KeyObject => generateKeyPairSync("ec", { namedCurve }).privateKey;

test.each([["RS256", rsa, 256], ["ES256", ec("P-256"), 64], ["ES384", ec("P-384"), 96], ["ES512", ec("P-521"), 132]] as const)("%s", (alg, key, bytes) => {
  const token = signJwt({ sub: "system:serviceaccount:default:web", aud: ["api"] }, key);
  const jwt = parseJwt(token)!;
  expect(jwt.header).toEqual({ alg, kid: keyId(key) });
  expect(jwt.claims).toEqual({ sub: "system:serviceaccount:default:web", aud: ["api"] });
  expect(jwt.signature).toHaveLength(bytes);
  expect(signatureHolds(jwt, verifyingKeys(namedKeys([rsa, key])))).toBe(true);
  expect(signatureHolds(jwt, verifyingKeys(namedKeys([ec("P-256")])))).toBe(false);
  const [header, claims] = token.split(".");
  const forged = Buffer.from(JSON.stringify({ sub: "system:serviceaccount:kube-system:admin" })).toString("base64url");
  expect(signatureHolds(parseJwt(`${header}.${forged}.${token.split(".")[2]}`)!, verifyingKeys(namedKeys([key])))).toBe(false);
  expect(signatureHolds(parseJwt(`${Buffer.from(JSON.stringify({ alg: "HS256", kid: keyId(key) })).toString("base64url")}.${claims}.${token.split(".")[2]}`)!, verifyingKeys(namedKeys([key])))).toBe(false);
});

test("without a key id every key is tried; with one, that one only", () => {
  const other = ec("P-256");
  const jwt = parseJwt(signJwt({}, rsa))!;
  expect(signatureHolds({ ...jwt, header: { alg: "RS256", kid: keyId(other) } }, verifyingKeys(namedKeys([rsa, other])))).toBe(false);
});

test.each(["", "a.b", "a.b.c", "e30.e30.", ".e30.e30", "e30.W10.e30", "e30=.e30.e30"])("%j is no token", (text) => expect(parseJwt(text)).toBeUndefined());

test("the key set is what relying parties read", () => {
  const key = ec("P-256");
  const [first, second] = jwkSet(namedKeys([createPublicKey(rsa), key])).keys;
  expect(Object.keys(first!)).toEqual(["use", "kty", "kid", "alg", "n", "e"]);
  expect(first).toMatchObject({ use: "sig", kty: "RSA", alg: "RS256", e: "AQAB" });
  expect(Object.keys(second!)).toEqual(["use", "kty", "kid", "crv", "alg", "x", "y"]);
  expect(createPublicKey({ key: second as never, format: "jwk" }).equals(createPublicKey(key))).toBe(true);
});
