/**
 * Tokens of others: JWTs of an OpenID Connect issuer the configuration names (configuration.ts).
 *
 *   token ─▶ issuer is one of them? ─▶ signature, audience, dates (verify-token.ts) ─▶ groups from elsewhere (distributed-claims.ts)
 *         ─▶ claims to a user (claims.ts)
 *
 * Source: kubernetes v1.36 apiserver/plugin/pkg/authenticator/token/oidc/oidc.go
 */
import type { Clock } from "../../lifecycle/clock.ts";
import { parseJwt } from "../../pki/jwt.ts";
import { refuse } from "../authn.ts";
import { audienceAgnostic, type TokenAuthenticator } from "../bearer-token.ts";
import { userOf } from "./claims.ts";
import type { JwtAuthenticator } from "./configuration.ts";
import { distributedClaims } from "./distributed-claims.ts";
import { issuerKeys } from "./issuer-keys.ts";
import { verifyToken } from "./verify-token.ts";

interface Options { readonly configuration: JwtAuthenticator; readonly apiAudiences: readonly string[]; readonly clock: Clock }

export function oidcTokens({ configuration, apiAudiences, clock }: Options): TokenAuthenticator {
  const { issuer, algorithms, groups } = configuration;
  const { url, discoveryUrl, ca, audiences } = issuer;
  const keys = issuerKeys({ url, discoveryUrl, ca, clock });
  const expand = groups?.claim ? distributedClaims({ claim: groups.claim, audiences, algorithms, ca, clock }) : undefined;
  return {
    async authenticateToken(token, wanted, signal) {
      const jwt = parseJwt(token);
      if (!jwt || jwt.claims["iss"] !== url) return undefined; // somebody else's
      await attempt("oidc: verify token: ", () => verifyToken(jwt, { keys, audiences, algorithms, clock }, signal));
      const claims = expand ? await attempt("oidc: could not expand distributed claims: ", () => expand(jwt.claims, signal)) : jwt.claims;
      return attempt("", () => audienceAgnostic(apiAudiences, wanted, { user: userOf(claims, configuration) }));
    },
  };
}

/** What fails becomes a 401. */
async function attempt<T>(what: string, act: () => T | Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw refuse(`${what}${(error as Error).message}`);
  }
}
