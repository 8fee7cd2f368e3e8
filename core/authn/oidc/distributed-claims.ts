/**
 * Claims that stand elsewhere: a token may name an endpoint where another JWT tells the user's groups, as issuers do whose users have many.
 *
 *   "_claim_names": { "groups": "src1" }, "_claim_sources": { "src1": { "endpoint": "https://…", "access_token": "…" } }
 *
 * That JWT has an issuer of its own, whose keys are found as always; it must be for the same audience. It is fetched each time a token is shown.
 *
 * Source: kubernetes v1.36 apiserver/plugin/pkg/authenticator/token/oidc/oidc.go (claimResolver); OpenID Connect Core 1.0, 5.6.2
 */
import type { Clock } from "../../lifecycle/clock.ts";
import { httpsFetch } from "../../net/https-fetch.ts";
import { type Claims, parseJwt } from "../../pki/jwt.ts";
import { type IssuerKeys, issuerKeys } from "./issuer-keys.ts";
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
    if (status < 200 || status > 226) throw new Error(`while getting distributed claim ${JSON.stringify(claim)}: error while getting distributed claim JWT: ${status}`);
    const jwt = parseJwt(text.trim());
    if (!jwt) throw new Error(`getting untrusted issuer from endpoint ${url} failed for claim ${JSON.stringify(claim)}: malformed token`);
    const keys = keysOf(String(jwt.claims["iss"] ?? ""));
    try {
      await verifyToken(jwt, { keys, audiences, algorithms, clock }, signal);
    } catch (error) {
      throw new Error(`verify distributed claim token: ${(error as Error).message}`, { cause: error });
    }
    return jwt.claims;
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

function sourceOf(claims: Claims, claim: string): Source | undefined {
  const names = claims["_claim_names"], sources = claims["_claim_sources"];
  if (names === undefined) return undefined;
  if (!isObject(names) || !Object.values(names).every((name) => typeof name === "string")) throw new Error("oidc: error parsing distributed claim names");
  if (sources === undefined) throw new Error("oidc: no claim sources");
  if (!isObject(sources)) throw new Error("oidc: could not parse claim sources");
  if (!Object.hasOwn(names, claim)) return undefined;
  const name = names[claim] as string;
  if (!Object.hasOwn(sources, name)) throw new Error(`id token _claim_names contained a source ${name} missing in _claims_sources`);
  const { endpoint = "", access_token: accessToken = "" } = isObject(sources[name]) ? sources[name] : {};
  if (typeof endpoint !== "string" || typeof accessToken !== "string") throw new Error("oidc: could not parse claim sources");
  return endpoint === "" ? undefined : { url: endpoint, accessToken }; // without an endpoint the claim stands in the token, which nobody reads
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> { return typeof value === "object" && value !== null && !Array.isArray(value); }
