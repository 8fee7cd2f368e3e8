/**
 * Tokens of others: JWTs of an OpenID Connect issuer the configuration names (configuration.ts).
 *
 *   token ─▶ issuer is one of them? ─▶ signature, audience, dates (verify-token.ts) ─▶ groups from elsewhere (distributed-claims.ts)
 *         ─▶ claims to a user (claims.ts)
 *
 * Source: kubernetes v1.36 apiserver/plugin/pkg/authenticator/token/oidc/oidc.go
 */
import type { Clock } from "../../lifecycle/clock.ts";
import { type Jwt, parseJwt } from "../../pki/jwt.ts";
import { refuse } from "../authn.ts";
import { audienceAgnostic, type TokenAuthenticator } from "../bearer-token.ts";
import { userOf } from "./claims.ts";
import type { JwtAuthenticator } from "./configuration.ts";
import { distributedClaims } from "./distributed-claims.ts";
import { issuerKeys } from "./issuer-keys.ts";
import type { OidcMetrics } from "./metrics.ts";
import { verifyToken } from "./verify-token.ts";

interface Options { readonly configuration: JwtAuthenticator; readonly apiAudiences: readonly string[]; readonly clock: Clock; /** Absent: nothing is counted. */ readonly meter?: OidcMetrics | undefined }

export function oidcTokens({ configuration, apiAudiences, clock, meter }: Options): TokenAuthenticator {
  const { issuer, algorithms, groups } = configuration;
  const { url, discoveryUrl, ca, audiences } = issuer;
  const keys = issuerKeys({ url, discoveryUrl, ca, clock, fetched: (keySet) => meter?.fetched(url, keySet) });
  const expand = groups?.claim ? distributedClaims({ claim: groups.claim, audiences, algorithms, ca, clock }) : undefined;
  return {
    async authenticateToken(token, wanted, signal) {
      const jwt = parseJwt(token);
      if (!jwt || jwt.claims["iss"] !== url) return undefined; // somebody else's
      const startMs = clock.uptimeMs();
      const tell = (failed: boolean): void => meter?.authenticated(url, { ms: clock.uptimeMs() - startMs, failed });
      try {
        const answer = await answerTo(jwt, wanted, signal);
        tell(false);
        return answer;
      } catch (error) {
        tell(true);
        throw error;
      }
    },
  };

  async function answerTo(jwt: Jwt, wanted: readonly string[], signal: AbortSignal): ReturnType<TokenAuthenticator["authenticateToken"]> {
    await attempt("oidc: verify token: ", () => verifyToken(jwt, { keys, audiences, algorithms, clock }, signal));
    const claims = expand ? await attempt("oidc: could not expand distributed claims: ", () => expand(jwt.claims, signal)) : jwt.claims;
    return attempt("", () => audienceAgnostic(apiAudiences, wanted, { user: userOf(claims, configuration) }));
  }
}

/** What fails becomes a 401. */
async function attempt<T>(what: string, act: () => T | Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw refuse(`${what}${(error as Error).message}`);
  }
}
