/**
 * Tokens of others: JWTs of an OpenID Connect issuer the configuration names (configuration.ts).
 *
 *   token ─▶ issuer is one of them? ─▶ signature (issuer-keys.ts), audience, dates ─▶ claims to a user (claims.ts)
 *
 * Claims that stand elsewhere (distributed claims) are not fetched.
 *
 * Source: kubernetes v1.36 apiserver/plugin/pkg/authenticator/token/oidc/oidc.go, github.com/coreos/go-oidc verify.go
 */
import { constants, type KeyObject, verify } from "node:crypto";
import type { Clock } from "../../lifecycle/clock.ts";
import { type Jwt, parseJwt } from "../../pki/jwt.ts";
import { refuse } from "../authn.ts";
import { audienceAgnostic, type TokenAuthenticator } from "../bearer-token.ts";
import { audiencesOf } from "../service-account-claims.ts";
import { userOf } from "./claims.ts";
import type { JwtAuthenticator } from "./configuration.ts";
import { issuerKeys } from "./issuer-keys.ts";

interface Options { readonly configuration: JwtAuthenticator; readonly apiAudiences: readonly string[]; readonly clock: Clock }

/** go-oidc allows an issuer's clock to be ahead by this much. */
const NOT_BEFORE_LEEWAY_MS = 300_000;

export function oidcTokens({ configuration, apiAudiences, clock }: Options): TokenAuthenticator {
  const { issuer, algorithms = Object.keys(ALGORITHMS) } = configuration;
  const keys = issuerKeys({ url: issuer.url, discoveryUrl: issuer.discoveryUrl, ca: issuer.ca, clock });

  async function check(jwt: Jwt, signal: AbortSignal): Promise<void> {
    const { header, claims } = jwt;
    const audiences = audiencesOf(claims);
    if (!issuer.audiences.some((audience) => audiences.includes(audience))) throw new Error(`oidc: expected audience in ${list(issuer.audiences)} got ${list(audiences)}`);
    const nowMs = clock.nowMs();
    const expiry = typeof claims["exp"] === "number" ? claims["exp"] * 1000 : 0;
    if (expiry < nowMs) throw new Error(`oidc: token is expired (Token Expiry: ${new Date(expiry).toISOString()})`);
    if (typeof claims["nbf"] === "number" && claims["nbf"] * 1000 > nowMs + NOT_BEFORE_LEEWAY_MS) throw new Error(`oidc: current time ${new Date(nowMs).toISOString()} before the nbf (not before) time: ${new Date(claims["nbf"] * 1000).toISOString()}`);
    const algorithm = String(header["alg"]);
    if (!algorithms.includes(algorithm) || !Object.hasOwn(ALGORITHMS, algorithm)) throw new Error(`oidc: malformed jwt: unexpected signature algorithm ${JSON.stringify(algorithm)}; expected ${list(algorithms)}`);
    const found = await keys.find(typeof header["kid"] === "string" ? header["kid"] : "", signal);
    if (!found.some((key) => holds(algorithm, jwt, key))) throw new Error("failed to verify signature: failed to verify id token signature");
  }

  return {
    async authenticateToken(token, wanted, signal) {
      const jwt = parseJwt(token);
      if (!jwt || jwt.claims["iss"] !== issuer.url) return undefined; // somebody else's
      try {
        await check(jwt, signal);
      } catch (error) {
        throw refuse(`oidc: verify token: ${(error as Error).message}`);
      }
      try {
        return audienceAgnostic(apiAudiences, wanted, { user: userOf(jwt.claims, configuration) });
      } catch (error) {
        throw refuse((error as Error).message);
      }
    },
  };
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
