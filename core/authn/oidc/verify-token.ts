/**
 * Whether a JWT is of an issuer, for us, and holds now: its audience, its dates and its signature, by keys the issuer is asked for.
 *
 * Source: kubernetes v1.36 apiserver/plugin/pkg/authenticator/token/oidc/oidc.go, github.com/coreos/go-oidc verify.go
 */
import { constants, type KeyObject, verify } from "node:crypto";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Jwt } from "../../pki/jwt.ts";
import { audiencesOf } from "../service-account-claims.ts";
import type { IssuerKeys } from "./issuer-keys.ts";

export interface Verifier {
  readonly keys: IssuerKeys;
  readonly audiences: readonly string[];
  readonly algorithms?: readonly string[] | undefined;
  readonly clock: Clock;
}

/** go-oidc allows an issuer's clock to be ahead by this much. */
const NOT_BEFORE_LEEWAY_MS = 300_000;

/** Throws an Error that says what is wrong. */
export async function verifyToken(jwt: Jwt, { keys, audiences: wanted, algorithms = Object.keys(ALGORITHMS), clock }: Verifier, signal: AbortSignal): Promise<void> {
  const { header, claims } = jwt;
  const audiences = audiencesOf(claims);
  if (!wanted.some((audience) => audiences.includes(audience))) throw new Error(`oidc: expected audience in ${list(wanted)} got ${list(audiences)}`);
  const nowMs = clock.nowMs();
  const expiry = typeof claims["exp"] === "number" ? claims["exp"] * 1000 : 0;
  if (expiry < nowMs) throw new Error(`oidc: token is expired (Token Expiry: ${new Date(expiry).toISOString()})`);
  if (typeof claims["nbf"] === "number" && claims["nbf"] * 1000 > nowMs + NOT_BEFORE_LEEWAY_MS) throw new Error(`oidc: current time ${new Date(nowMs).toISOString()} before the nbf (not before) time: ${new Date(claims["nbf"] * 1000).toISOString()}`);
  const algorithm = String(header["alg"]);
  if (!algorithms.includes(algorithm) || !Object.hasOwn(ALGORITHMS, algorithm)) throw new Error(`oidc: malformed jwt: unexpected signature algorithm ${JSON.stringify(algorithm)}; expected ${list(algorithms)}`);
  const found = await keys.find(typeof header["kid"] === "string" ? header["kid"] : "", signal);
  if (!found.some((key) => holds(algorithm, jwt, key))) throw new Error("failed to verify signature: failed to verify id token signature");
}

interface Algorithm { readonly hash: string; readonly type: "rsa" | "ec"; readonly pss?: boolean; readonly curve?: string }

const ALGORITHMS: Readonly<Record<string, Algorithm>> = {
  RS256: { hash: "sha256", type: "rsa" }, RS384: { hash: "sha384", type: "rsa" }, RS512: { hash: "sha512", type: "rsa" },
  PS256: { hash: "sha256", type: "rsa", pss: true }, PS384: { hash: "sha384", type: "rsa", pss: true }, PS512: { hash: "sha512", type: "rsa", pss: true },
  ES256: { hash: "sha256", type: "ec", curve: "prime256v1" }, ES384: { hash: "sha384", type: "ec", curve: "secp384r1" }, ES512: { hash: "sha512", type: "ec", curve: "secp521r1" },
};

/** The key must be of the algorithm's kind: what the token says is not to be believed. */
function holds(algorithm: string, { signed, signature }: Jwt, key: KeyObject): boolean {
  const { hash, type, pss, curve } = ALGORITHMS[algorithm]!;
  if (key.asymmetricKeyType !== type || (curve !== undefined && key.asymmetricKeyDetails?.namedCurve !== curve)) return false;
  const how = type === "ec" ? { key, dsaEncoding: "ieee-p1363" as const } : pss ? { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST } : { key };
  return verify(hash, Buffer.from(signed), how, signature);
}

function list(values: readonly string[]): string { return `[${values.map((value) => JSON.stringify(value)).join(" ")}]`; }
