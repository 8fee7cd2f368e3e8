/**
 * Tokens of others: JWTs of an OpenID Connect issuer the configuration names (configuration.ts).
 *
 *   token ─▶ issuer is one of them? ─▶ signature, audience, dates (verify-token.ts) ─▶ groups from elsewhere (distributed-claims.ts)
 *         ─▶ claims to a user (claims.ts)
 *
 * Source: kubernetes v1.36 apiserver/plugin/pkg/authenticator/token/oidc/oidc.go
 */
import { goQuote } from "../../api/meta/go-quote.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Log } from "../../observe/log.ts";
import { refuse } from "../authn.ts";
import { audienceAgnostic, isForApi, type TokenAuthenticator } from "../bearer-token.ts";
import { userOf } from "./claims.ts";
import type { JwtAuthenticator } from "./configuration.ts";
import { distributedClaims } from "./distributed-claims.ts";
import { issuerKeys, NotInitialized } from "./issuer-keys.ts";
import type { OidcMetrics } from "./metrics.ts";
import { untrustedIssuer } from "./signed-token.ts";
import { verifyToken } from "./verify-token.ts";

interface Options { readonly configuration: JwtAuthenticator; readonly apiAudiences: readonly string[]; readonly clock: Clock; readonly log: Log; /** Absent: nothing is counted. */ readonly meter?: OidcMetrics | undefined }

export interface OidcTokens extends TokenAuthenticator {
  /** Waits until the issuer can be asked. Throws when it cannot be before `signal` ends it. */
  initialized(signal: AbortSignal): Promise<void>;
}

/** Between two looks for an issuer that is not there. */
const LOOK_AGAIN_MS = 10_000;

export function oidcTokens({ configuration, apiAudiences, clock, log, meter }: Options): OidcTokens {
  const { issuer, algorithms, groups } = configuration;
  const { url, discoveryUrl, ca, audiences } = issuer;
  const keys = issuerKeys({ url, discoveryUrl, ca, clock, fetched: (keySet) => meter?.fetched(url, keySet) });
  const expand = groups?.claim ? distributedClaims({ claim: groups.claim, audiences, algorithms, ca, clock }) : undefined;
  let told: unknown; // once for each time it was asked, however many tokens are shown meanwhile
  return {
    async authenticateToken(token, wanted, signal) {
      if (!isForApi(apiAudiences, wanted) || untrustedIssuer(token) !== url) return undefined; // somebody else's
      const startMs = clock.uptimeMs();
      const tell = (failed: boolean): void => meter?.authenticated(url, { ms: clock.uptimeMs() - startMs, failed });
      try {
        const answer = await answerTo(token, wanted, signal);
        tell(false);
        return answer;
      } catch (error) {
        tell(true);
        throw error;
      }
    },
    async initialized(signal) {
      for (;;) {
        const reason = await keys.discover().then(() => undefined, (error: Error) => error.message);
        if (reason === undefined) return;
        await clock.sleep(LOOK_AGAIN_MS, signal);
        if (signal.aborted) throw new Error(`oidc: authenticator for issuer ${goQuote(url)} is not healthy: ${reason}`);
      }
    },
  };

  async function answerTo(token: string, wanted: readonly string[], signal: AbortSignal): ReturnType<TokenAuthenticator["authenticateToken"]> {
    const shown = await attempt("oidc: verify token: ", () => verifyToken(token, { keys, audiences, algorithms, clock }));
    const claims = expand ? await attempt("oidc: could not expand distributed claims: ", () => expand(shown, signal)) : shown;
    return attempt("", () => audienceAgnostic(apiAudiences, wanted, { user: userOf(claims, configuration) }));
  }

  /** What fails becomes a 401. */
  async function attempt<T>(what: string, act: () => T | Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof NotInitialized)) throw refuse(`${what}${(error as Error).message}`);
      if (error !== told) log.error("an issuer of tokens cannot be asked", { issuer: url, error });
      told = error;
      throw refuse("oidc: authenticator not initialized");
    }
  }
}
