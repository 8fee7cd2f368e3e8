/**
 * Claims that stand elsewhere: a token may name an endpoint where another JWT tells the user's groups, as issuers do whose users have many.
 *
 *   "_claim_names": { "groups": "src1" }, "_claim_sources": { "src1": { "endpoint": "https://…", "access_token": "…" } }
 *
 * That JWT has an issuer of its own, whose keys are found as always; it must be for the same audience. It is fetched each time a token is shown.
 *
 * Source: kubernetes v1.36 apiserver/plugin/pkg/authenticator/token/oidc/oidc.go (claimResolver); OpenID Connect Core 1.0, 5.6.2
 */
import { STATUS_CODES } from "node:http";
import type { Clock } from "../../lifecycle/clock.ts";
import { httpsFetch } from "../../net/https-fetch.ts";
import type { Claims } from "../../pki/jwt.ts";
import { type IssuerKeys, issuerKeys } from "./issuer-keys.ts";
import { untrustedIssuer } from "./signed-token.ts";
import { verifyToken } from "./verify-token.ts";

interface Options {
  /** The one that may stand elsewhere. */
  readonly claim: string;
  readonly audiences: readonly string[];
  readonly algorithms?: readonly string[] | undefined;
  readonly ca?: string | undefined;
  readonly clock: Clock;
}

const TIMEOUT_MS = 30_000;
/** Upstream has no bound; a provider has one or two. */
const ISSUERS_MAX = 32;

/** The claims with the one that stands elsewhere, if it does. Throws an Error that says why it cannot be had. */
export function distributedClaims({ claim, audiences, algorithms, ca, clock }: Options): (claims: Claims, signal: AbortSignal) => Promise<Claims> {
  const issuers = new Map<string, IssuerKeys>();

  function keysOf(url: string): IssuerKeys {
    const known = issuers.get(url);
    if (known) return known;
    if (!url.startsWith("https://") || issuers.size >= ISSUERS_MAX) throw new Error(`verifying untrusted issuer ${url} failed: verifier not initialized for issuer: ${JSON.stringify(url)}`);
    const keys = issuerKeys({ url, discoveryUrl: "", ca, clock });
    issuers.set(url, keys);
    return keys;
  }

  async function fetchClaims({ url, accessToken }: Source, signal: AbortSignal): Promise<Claims> {
    if (!url.startsWith("https://")) throw new Error(`while getting distributed claim ${JSON.stringify(claim)}: ${url} is not https`);
    const { status, text } = await httpsFetch({ url, token: accessToken || undefined, tls: ca === undefined ? {} : { ca }, timeoutMs: TIMEOUT_MS }, clock, signal).catch((error: unknown) => {
      throw new Error(`while getting distributed claim ${JSON.stringify(claim)}: ${(error as Error).message}`, { cause: error });
    });
    if (status < 200 || status > 226) throw new Error(`while getting distributed claim ${JSON.stringify(claim)}: error while getting distributed claim JWT: ${`${status} ${STATUS_CODES[status] ?? ""}`.trim()}`);
    const token = text.trim();
    const issuer = untrustedIssuer(token);
    if (issuer === undefined) throw new Error(`getting untrusted issuer from endpoint ${url} failed for claim ${JSON.stringify(claim)}: malformed token`);
    const keys = keysOf(issuer);
    try {
      return await verifyToken(token, { keys, audiences, algorithms, clock });
    } catch (error) {
      throw new Error(`verify distributed claim token: ${(error as Error).message}`, { cause: error });
    }
  }

  return async (claims, signal) => {
    if (Object.hasOwn(claims, claim)) return claims;
    const source = sourceOf(claims, claim);
    if (!source) return claims;
    const found = await fetchClaims(source, signal);
    if (!Object.hasOwn(found, claim)) throw new Error(`jwt returned by distributed claim endpoint ${JSON.stringify(source.url)} did not contain claim: ${claim}`);
    return { ...claims, [claim]: found[claim] };
  };
}

interface Source { readonly url: string; readonly accessToken: string }

/** Undefined: it stands in the token, or nowhere. The types of both claims were checked (claim-types.ts). */
function sourceOf({ _claim_names: names, _claim_sources: sources }: Claims, claim: string): Source | undefined {
  const name = (names as Readonly<Record<string, string>> | null | undefined)?.[claim];
  if (name === undefined) return undefined;
  const { endpoint, access_token: accessToken } = (sources as Readonly<Record<string, { readonly endpoint?: string; readonly access_token?: string } | null>>)[name] ?? {};
  return endpoint ? { url: endpoint, accessToken: accessToken ?? "" } : undefined;
}
