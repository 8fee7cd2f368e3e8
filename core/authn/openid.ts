/**
 * What relying parties read to check our tokens: /.well-known/openid-configuration and /openid/v1/jwks.
 *
 * Source: kubernetes v1.36 pkg/serviceaccount/openidmetadata.go, pkg/routes/openidmetadata.go
 */
import { jwkSet, type NamedKey } from "../pki/jwt.ts";

const OPENID_CONFIG_PATH = "/.well-known/openid-configuration";
export const JWKS_PATH = "/openid/v1/jwks";

export interface OpenIdDocument { readonly contentType: string; readonly cacheControl: string; readonly body: string }

/** Of keys that only another start changes. */
const MAX_AGE_SECONDS = 3_600;

interface Published {
  readonly keys: readonly NamedKey[];
  /** How long they may be kept by who reads them. An hour, if absent. */
  readonly maxAgeSeconds?: number | undefined;
}

interface Issuer extends Published { readonly issuer: string; readonly jwksUri: string }

/** What is at this path, of an issuer that OpenID allows. Clients made from the OpenAPI document, the one for Python among them, ask with a slash at the end. */
export function openIdDocument(path: string, issuer: Issuer): OpenIdDocument | undefined {
  const asked = path.replace(/\/+$/, "");
  return asked === OPENID_CONFIG_PATH ? openIdConfiguration(issuer) : asked === JWKS_PATH ? jsonWebKeySet(issuer) : undefined;
}

/** Throws for an issuer that OpenID does not allow: then there are no documents to serve. `jwksUri`: where the key set is found, as seen by relying parties. */
export function openIdConfiguration({ issuer, jwksUri, keys, maxAgeSeconds }: Issuer): OpenIdDocument {
  const url = new URL(issuer);
  if (url.protocol !== "https:") throw new Error(`issuer URL must use https scheme, got: ${issuer}`);
  if (url.search !== "") throw new Error(`issuer URL may not include a query, got: ${issuer}`);
  if (url.hash !== "") throw new Error(`issuer URL may not include a fragment, got: ${issuer}`);
  if (new URL(jwksUri).protocol !== "https:") throw new Error(`jwksURI requires https scheme, parsed as: ${jwksUri}`);
  const algorithms = [...new Set(jwkSet(keys).keys.map(({ alg }) => String(alg)))].sort();
  const body = { issuer, jwks_uri: jwksUri, response_types_supported: ["id_token"], subject_types_supported: ["public"], id_token_signing_alg_values_supported: algorithms };
  return { contentType: "application/json", cacheControl: cacheControl(maxAgeSeconds), body: JSON.stringify(body) };
}

export function jsonWebKeySet({ keys, maxAgeSeconds }: Published): OpenIdDocument {
  return { contentType: "application/jwk-set+json", cacheControl: cacheControl(maxAgeSeconds), body: JSON.stringify(jwkSet(keys)) };
}

function cacheControl(seconds = MAX_AGE_SECONDS): string { return `public, max-age=${seconds}`; }
