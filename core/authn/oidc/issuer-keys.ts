/**
 * The keys an issuer signs with: found by its discovery document, fetched when a token names one we do not know.
 *
 * Source: kubernetes v1.36 apiserver/plugin/pkg/authenticator/token/oidc/oidc.go; OpenID Connect Discovery 1.0, RFC 7517
 */
import { createPublicKey, type JsonWebKeyInput, type KeyObject } from "node:crypto";
import type { Clock } from "../../lifecycle/clock.ts";
import { httpsFetch } from "../../net/https-fetch.ts";

export interface IssuerKey { readonly id: string; readonly key: KeyObject }

export interface IssuerKeys {
  /** Those with this id, or all when it is "". Fetched when there is none, and not just was. Throws when the issuer cannot be asked. */
  find(id: string, signal: AbortSignal): Promise<readonly KeyObject[]>;
}

const TIMEOUT_MS = 30_000;
/** Between two questions, whatever tokens are shown: an issuer is not to be flooded by who sends us nonsense. */
const PAUSE_MS = 10_000;

interface Options { readonly url: string; readonly discoveryUrl: string; readonly ca?: string | undefined; readonly clock: Clock; /** Is told of each fetch: the keys' text, undefined when there is none. */ readonly fetched?: ((keySet: string | undefined) => void) | undefined }

export function issuerKeys({ url, discoveryUrl, ca, clock, fetched = () => undefined }: Options): IssuerKeys {
  let keys: readonly IssuerKey[] = [];
  let jwksUrl: string | undefined;
  let askedMs = Number.NEGATIVE_INFINITY;
  let asking: Promise<void> | undefined;
  let failed: Error | undefined;

  async function get(address: string, signal: AbortSignal): Promise<string> {
    const { status, text } = await httpsFetch({ url: address, tls: ca === undefined ? {} : { ca }, timeoutMs: TIMEOUT_MS }, clock, signal);
    if (status !== 200) throw new Error(`${status}: ${text.slice(0, 200)}`);
    return text;
  }

  async function fetchKeys(): Promise<void> {
    const { signal } = new AbortController(); // for all who wait, whoever goes away
    if (jwksUrl === undefined) {
      const found = JSON.parse(await get(discoveryUrl === "" ? `${url.replace(/\/+$/, "")}/.well-known/openid-configuration` : discoveryUrl, signal)) as Record<string, unknown>;
      if (found["issuer"] !== url) throw new Error(`oidc: issuer did not match the issuer returned by provider, expected ${JSON.stringify(url)} got ${JSON.stringify(found["issuer"])}`);
      if (typeof found["jwks_uri"] !== "string") throw new Error("oidc: the provider's configuration has no jwks_uri");
      jwksUrl = found["jwks_uri"];
    }
    const text = await get(jwksUrl, signal);
    const { keys: list } = JSON.parse(text) as { keys?: unknown };
    fetched(text);
    keys = (Array.isArray(list) ? list : []).flatMap(readKey);
  }

  async function refresh(): Promise<void> {
    if (clock.uptimeMs() - askedMs < PAUSE_MS && !asking) return;
    askedMs = clock.uptimeMs();
    asking ??= fetchKeys().then(() => { failed = undefined; }, (error: Error) => { failed = error; fetched(undefined); }).finally(() => { asking = undefined; });
    await asking;
  }

  return {
    async find(id) {
      const known = (): KeyObject[] => keys.filter((one) => id === "" || one.id === id).map(({ key }) => key);
      if (known().length > 0) return known();
      await refresh();
      if (keys.length === 0 && failed) throw new Error(`oidc: authenticator not initialized: ${failed.message}`, { cause: failed });
      return known();
    },
  };
}

/** What we cannot read, somebody else may use. */
function readKey(jwk: JsonWebKeyInput["key"] & { readonly kid?: unknown; readonly use?: unknown }): IssuerKey[] {
  if (jwk.use !== undefined && jwk.use !== "sig") return [];
  try {
    return [{ id: typeof jwk.kid === "string" ? jwk.kid : "", key: createPublicKey({ key: jwk, format: "jwk" }) }];
  } catch {
    return []; // of a kind that signs nothing we accept
  }
}
