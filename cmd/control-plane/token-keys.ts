/** Who signs tokens of service accounts, and which keys verify them: the cluster's own or a given one, or those of another program. */
import type { KeyObject } from "node:crypto";
import { type ExternalSigner, externalSigner } from "../../core/authn/external-signer.ts";
import { EXTENDED_SECONDS } from "../../core/authn/token-issuer.ts";
import { formatDurationNs } from "../../core/api/meta/duration.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Metrics } from "../../core/observe/metrics.ts";
import { type Claims, type NamedKey, namedKeys, signJwt, type VerifyingKeys, verifyingKeys } from "../../core/pki/jwt.ts";
import type { ServiceAccountSettings } from "../authentication.ts";
import { ConfigError } from "../config/config.ts";
import { signingService } from "../token-signer.ts";

export interface TokenKeys {
  sign(claims: Claims, signal: AbortSignal): Promise<string>;
  keys(): VerifyingKeys;
  readonly newerKeys?: (() => Promise<VerifyingKeys>) | undefined;
  published(): { readonly keys: readonly NamedKey[]; readonly maxAgeSeconds?: number };
  readonly legacyTokenKey: KeyObject | undefined;
  /** See TokenIssuerOptions. */
  readonly expirationSecondsMax: number;
  readonly extendExpiration: boolean;
  readonly extendedSeconds: number;
  readonly parts: readonly Runnable[];
}

interface Options { readonly settings: ServiceAccountSettings; readonly clock: Clock; readonly log: Log; readonly metrics: Metrics }

/** Throws ConfigError, and what is wrong with the other program: it is waited for a minute. */
export async function tokenKeys({ settings, clock, log, metrics }: Options): Promise<TokenKeys> {
  const { signingEndpoint: endpoint, expirationSecondsMax = 0, extendExpiration } = settings;
  if (endpoint === undefined) {
    if (extendExpiration && expirationSecondsMax > 0 && expirationSecondsMax < EXTENDED_SECONDS)
      log.warn("tokens of pods live longer than service-account-max-token-expiration as long as service-account-extend-token-expiration is true", { seconds: EXTENDED_SECONDS, expirationSecondsMax });
    return { ...ownKeys(settings), expirationSecondsMax, extendExpiration, extendedSeconds: EXTENDED_SECONDS };
  }
  const signer = await externalSigner({ service: signingService({ endpoint, clock, metrics }), clock, log: log.with({ part: "token-signer" }), metrics });
  return { ...signedElsewhere(signer), ...lifetimes(settings, signer), extendExpiration };
}

function ownKeys({ signing, verifying }: ServiceAccountSettings): Pick<TokenKeys, "sign" | "keys" | "published" | "legacyTokenKey" | "parts"> {
  const named = namedKeys(verifying);
  const keys = verifyingKeys(named);
  return { sign: async (claims) => signJwt(claims, signing), keys: () => keys, published: () => ({ keys: named }), legacyTokenKey: signing, parts: [] };
}

function signedElsewhere(signer: ExternalSigner): Pick<TokenKeys, "sign" | "keys" | "newerKeys" | "published" | "legacyTokenKey" | "parts"> {
  return { sign: (claims, signal) => signer.sign(claims, signal), keys: () => signer.keys(), newerKeys: () => signer.newerKeys(), published: () => signer.published(), legacyTokenKey: undefined, parts: [signer.part] };
}

/** Tokens live as long as the signer allows, and no longer, extended ones included. */
function lifetimes({ expirationSecondsMax: wanted }: ServiceAccountSettings, { expirationSecondsMax: allowed }: ExternalSigner): Pick<TokenKeys, "expirationSecondsMax" | "extendedSeconds"> {
  if (wanted !== undefined && wanted > allowed) throw new ConfigError(`service-account-max-token-expiration cannot be set longer than the token expiration supported by service-account-signing-endpoint: ${spelled(wanted)} > ${spelled(allowed)}`);
  return { expirationSecondsMax: wanted ?? allowed, extendedSeconds: Math.min(allowed, EXTENDED_SECONDS) };
}

function spelled(seconds: number): string { return formatDurationNs(BigInt(seconds) * 1_000_000_000n); }
