/**
 * The keys an issuer signs with: found by its discovery document, fetched when none of those known fits a token.
 *
 * Source: kubernetes v1.36 apiserver/plugin/pkg/authenticator/token/oidc/oidc.go, github.com/coreos/go-oidc v2 jwks.go; OpenID Connect Discovery 1.0, RFC 7517
 */
import { createPublicKey, type JsonWebKeyInput, type KeyObject } from "node:crypto";
import { STATUS_CODES } from "node:http";
import { goQuote } from "../../api/meta/go-quote.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import { httpsFetch } from "../../net/https-fetch.ts";

interface IssuerKey { readonly id: string; readonly key: KeyObject }

export interface IssuerKeys {
  /** Reads the discovery document, unless that was done. Throws when it cannot be had. */
  discover(): Promise<void>;
  /** Whether one with this id fits, or any when it is "". When none does they are fetched, unless they just were. Throws when the issuer cannot be asked. */
  anyFits(id: string, fits: (key: KeyObject) => boolean): Promise<boolean>;
}

/** The issuer's discovery document cannot be had: nothing is known of its tokens. */
export class NotInitialized extends Error { override readonly name = "NotInitialized"; }

const TIMEOUT_MS = 30_000;
/** Between two questions, whatever tokens are shown: an issuer is not to be flooded by who sends us nonsense. */
const PAUSE_MS = 10_000;

interface Options {
  readonly url: string;
  readonly discoveryUrl: string;
  readonly ca?: string | undefined;
  readonly clock: Clock;
  /** Is told of each fetch: the keys' text, undefined when there is none. */
  readonly fetched?: ((keySet: string | undefined) => void) | undefined;
}

export function issuerKeys({ url, discoveryUrl, ca, clock, fetched = () => undefined }: Options): IssuerKeys {
  let keys: readonly IssuerKey[] = [];
  let jwksUrl: string | undefined;
  let askedMs = Number.NEGATIVE_INFINITY;
  let asking: Promise<void> | undefined;
  let failed: Error | undefined;

  async function get(address: string): Promise<{ readonly status: string; readonly text: string; readonly ok: boolean }> {
    const { signal } = new AbortController(); // for all who wait, whoever goes away
    const { status, text } = await httpsFetch({ url: address, tls: ca === undefined ? {} : { ca }, timeoutMs: TIMEOUT_MS }, clock, signal);
    return { status: `${status} ${STATUS_CODES[status] ?? ""}`.trim(), text, ok: status === 200 };
  }

  async function findKeysUrl(): Promise<string> {
    const { status, text, ok } = await get(discoveryUrl === "" ? `${url.replace(/\/$/, "")}/.well-known/openid-configuration` : discoveryUrl);
    if (!ok) throw new Error(`${status}: ${text.slice(0, 200)}`);
    const found = JSON.parse(text) as Readonly<Record<string, unknown>>;
    if (found["issuer"] !== url) throw new Error(`oidc: issuer did not match the issuer returned by provider, expected ${goQuote(url)} got ${goQuote(String(found["issuer"] ?? ""))}`);
    if (typeof found["jwks_uri"] !== "string" || found["jwks_uri"] === "") throw new Error("provider did not return JWKS URL");
    return found["jwks_uri"];
  }

  async function discover(): Promise<void> {
    jwksUrl ??= await findKeysUrl();
  }

  async function fetchKeys(): Promise<void> {
    await discover().catch((cause: Error) => { throw new NotInitialized(`oidc: authenticator not initialized: ${cause.message}`, { cause }); });
    try {
      const { status, text, ok } = await get(jwksUrl!);
      if (!ok) throw new Error(`: ${status} ${text.slice(0, 200)}`);
      const { keys: list } = JSON.parse(text) as { keys?: unknown };
      keys = (Array.isArray(list) ? list : []).flatMap(readKey);
      fetched(text);
    } catch (cause) {
      fetched(undefined);
      throw new Error(`failed to verify signature: fetching keys oidc: get keys failed ${(cause as Error).message}`, { cause });
    }
  }

  /** Whether they were fetched now. */
  async function refresh(): Promise<boolean> {
    if (clock.uptimeMs() - askedMs < PAUSE_MS && !asking) return false;
    askedMs = clock.uptimeMs();
    asking ??= fetchKeys().then(() => { failed = undefined; }, (error: Error) => { failed = error; }).finally(() => { asking = undefined; });
    await asking;
    return true;
  }

  return {
    discover,
    async anyFits(id, fits) {
      const found = (): boolean => keys.some((one) => (id === "" || one.id === id) && fits(one.key));
      if (found()) return true;
      const isNew = await refresh();
      if (failed) throw failed;
      return isNew && found();
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
