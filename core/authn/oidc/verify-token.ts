/**
 * Whether a JWT is of an issuer, for us, and holds now: its signature by keys the issuer is asked for, the types of its claims, its audience
 * and its dates, in this order.
 *
 * Source: kubernetes v1.36 apiserver/plugin/pkg/authenticator/token/oidc/oidc.go, github.com/coreos/go-oidc v2 verify.go
 */
import { constants, type KeyObject, verify } from "node:crypto";
import { goQuote } from "../../api/meta/go-quote.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Claims } from "../../pki/jwt.ts";
import { checkClaimTypes, secondsOf } from "./claim-types.ts";
import type { IssuerKeys } from "./issuer-keys.ts";
import { parseSigned, type SignedToken } from "./signed-token.ts";
import { audiencesOf } from "../service-account-claims.ts";

export interface Verifier {
  readonly keys: IssuerKeys;
  readonly audiences: readonly string[];
  readonly algorithms?: readonly string[] | undefined;
  readonly clock: Clock;
}

/** An issuer's clock may be ahead by this much. */
const NOT_BEFORE_LEEWAY_MS = 60_000;

/** Its claims. Throws an Error that says what is wrong. */
export async function verifyToken(token: string, { keys, audiences: wanted, algorithms = ALL_ALGORITHMS, clock }: Verifier): Promise<Claims> {
  const jwt = parseSigned(token);
  if (!algorithms.includes(jwt.algorithm) || !Object.hasOwn(ALGORITHMS, jwt.algorithm)) throw new Error(`oidc: id token signed with unsupported algorithm, expected ${list(algorithms)} got ${goQuote(jwt.algorithm)}`);
  if (!(await keys.anyFits(jwt.keyId, (key) => holds(jwt, key)))) throw new Error("failed to verify signature: failed to verify id token signature");
  const claims = JSON.parse(jwt.payload) as Claims;
  checkClaimTypes(claims);
  const audiences = audiencesOf(claims);
  if (!wanted.some((audience) => audiences.includes(audience))) throw new Error(`oidc: expected audience ${wanted.length === 1 ? goQuote(wanted[0]!) : `in ${list([...wanted].sort())}`} got ${list(audiences)}`);
  const nowMs = clock.nowMs();
  const [expiryMs, notBeforeMs] = [secondsOf(claims["exp"]) * 1000, secondsOf(claims["nbf"]) * 1000];
  if (expiryMs < nowMs) throw new Error(`oidc: token is expired (Token Expiry: ${goTime(expiryMs)})`);
  if (notBeforeMs > nowMs + NOT_BEFORE_LEEWAY_MS) throw new Error(`oidc: current time ${goTime(nowMs)} before the nbf (not before) time: ${goTime(notBeforeMs)}`);
  return claims;
}

interface Algorithm { readonly hash: string; readonly type: "rsa" | "ec"; readonly pss?: boolean; readonly curve?: string }

const ALGORITHMS: Readonly<Record<string, Algorithm>> = {
  ES256: { hash: "sha256", type: "ec", curve: "prime256v1" }, ES384: { hash: "sha384", type: "ec", curve: "secp384r1" }, ES512: { hash: "sha512", type: "ec", curve: "secp521r1" },
  PS256: { hash: "sha256", type: "rsa", pss: true }, PS384: { hash: "sha384", type: "rsa", pss: true }, PS512: { hash: "sha512", type: "rsa", pss: true },
  RS256: { hash: "sha256", type: "rsa" }, RS384: { hash: "sha384", type: "rsa" }, RS512: { hash: "sha512", type: "rsa" },
};
/** Those a configuration may allow. */
export const ALL_ALGORITHMS: readonly string[] = Object.keys(ALGORITHMS);

/** The key must be of the algorithm's kind: what the token says is not to be believed. */
function holds({ algorithm, isSpecial, signed, signature }: SignedToken, key: KeyObject): boolean {
  const { hash, type, pss, curve } = ALGORITHMS[algorithm]!;
  if (isSpecial || key.asymmetricKeyType !== type || (curve !== undefined && key.asymmetricKeyDetails?.namedCurve !== curve)) return false;
  const how = type === "ec" ? { key, dsaEncoding: "ieee-p1363" as const } : pss ? { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_AUTO } : { key };
  return verify(hash, signed, how, signature);
}

function list(values: readonly string[]): string { return `[${values.map(goQuote).join(" ")}]`; }

/** As Go prints one: "2026-11-27 02:13:48 +0000 UTC". */
function goTime(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? String(ms) : `${date.toISOString().replace("T", " ").replace(/\.?0*Z$/, "")} +0000 UTC`;
}
