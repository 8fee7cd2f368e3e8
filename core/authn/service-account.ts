/**
 * Tokens of service accounts: that we signed them, and that what they are bound to is still there.
 *
 * A signature is checked once per token (a small cache); everything that can change is looked up at every request, so that deleting a pod,
 * a Secret or the account ends its tokens at once.
 *
 * Differs from upstream in one thing, for devices whose clock goes back to 1970 at a power cut: a token that seems to be issued in the
 * future is accepted. We signed it by this very clock, so what it shows is that the clock is wrong, and refusing it would lock out every pod.
 *
 * Source: kubernetes v1.36 pkg/serviceaccount/{jwt,claims,legacy}.go
 */
import { timingSafeEqual } from "node:crypto";
import type { Node, Pod, Secret, ServiceAccount } from "../api/gen/core.v1.ts";
import { goQuote } from "../api/meta/go-quote.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { notFound, StatusError } from "../api/meta/status-error.ts";
import { serviceAccountUser } from "../api/request/user.ts";
import type { Lookup } from "../client/lookup.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Metrics } from "../observe/metrics.ts";
import { type Claims, type Jwt, parseJwt, signatureHolds, type VerifyingKeys } from "../pki/jwt.ts";
import type { Authenticated } from "./authenticator.ts";
import { refuse } from "./authn.ts";
import type { TokenAuthenticator } from "./bearer-token.ts";
import { audiencesOf, type BoundClaims, decodeBoundClaims, decodeLegacyClaims, LEGACY_ISSUER, type LegacyClaims, type ObjectRef } from "./service-account-claims.ts";

export interface ServiceAccountLookups {
  readonly serviceAccounts: Lookup<ServiceAccount>;
  readonly pods: Lookup<Pod>;
  readonly secrets: Lookup<Secret>;
  readonly nodes: Lookup<Node>;
}

export interface ServiceAccountTokenOptions extends ServiceAccountLookups {
  readonly keys: () => VerifyingKeys;
  /** Where keys come and go while the server runs: as they are now. Asked when a token names one that is not among `keys`. */
  readonly newerKeys?: (() => Promise<VerifyingKeys>) | undefined;
  /** Issuers whose tokens we accept; the first is the one we issue as. */
  readonly issuers: readonly string[];
  readonly apiAudiences: readonly string[];
  readonly clock: Clock;
  readonly metrics?: Metrics | undefined;
  /** Notes on a legacy token's Secret that it is in use. */
  readonly markUsed?: (secret: Readonly<Secret>, signal: AbortSignal) => Promise<void>;
}

/** Tokens remembered as signed by us: a few hundred pods, 1–2 kB each. */
const SIGNED_MAX = 1_024;
/** Longer ones are checked each time: of a token with as many audiences as a body holds a thousand would take gigabytes. */
const SIGNED_LENGTH_MAX = 16_384;
/** What go-jose allows clocks to differ by. */
const LEEWAY_MS = 60_000;

export function serviceAccountTokenAuthenticator(options: ServiceAccountTokenOptions): TokenAuthenticator {
  const { keys, newerKeys, issuers, apiAudiences, clock, metrics } = options;
  const counted = (name: string, help: string): { inc(): void } | undefined => metrics?.counter(name, help).with({}); // shown as 0 until there is something to count
  const counters = {
    automatic: counted("serviceaccount_legacy_auto_token_uses_total", "[ALPHA] Cumulative auto-generated legacy tokens used"),
    manual: counted("serviceaccount_legacy_manual_token_uses_total", "[ALPHA] Cumulative manually created legacy tokens used"),
    invalidated: counted("serviceaccount_invalid_legacy_auto_token_uses_total", "[ALPHA] Cumulative invalid auto-generated legacy tokens used"),
    legacy: counted("serviceaccount_legacy_tokens_total", "[ALPHA] Cumulative legacy service account tokens used"),
    stale: counted("serviceaccount_stale_tokens_total", "[ALPHA] Cumulative stale projected service account tokens used"),
    valid: counted("serviceaccount_valid_tokens_total", "[ALPHA] Cumulative valid projected service account tokens used"),
  };
  const signed = new Map<string, { readonly claims: Claims; readonly keys: VerifyingKeys }>(); // in the order of use, oldest first

  function knownClaims(token: string): Claims | undefined {
    const before = signed.get(token);
    if (before?.keys !== keys()) return undefined;
    signed.delete(token);
    signed.set(token, before);
    return before.claims;
  }

  async function claimsOf(token: string): Promise<Claims | undefined> {
    const jwt = parseJwt(token);
    if (!jwt || !(jwt.claims.iss === LEGACY_ISSUER || issuers.includes(jwt.claims.iss as string))) return undefined; // somebody else's
    const current = newerKeys && namesUnknownKey(jwt, keys()) ? await newerKeys() : keys();
    if (!signatureHolds(jwt, current)) throw refuse(signatureProblem(jwt, current));
    if (token.length > SIGNED_LENGTH_MAX) return jwt.claims;
    signed.set(token, { claims: jwt.claims, keys: current });
    if (signed.size > SIGNED_MAX) signed.delete(signed.keys().next().value!);
    return jwt.claims;
  }

  return {
    async authenticateToken(token, wanted, signal) {
      const claims = knownClaims(token) ?? (await claimsOf(token));
      if (!claims) return undefined;
      const own = audiencesOf(claims);
      const tokenAudiences = own.length > 0 ? own : apiAudiences;
      const requested = wanted.length > 0 ? wanted : apiAudiences;
      const asked = new Set(requested);
      const audiences = tokenAudiences.filter((audience) => asked.has(audience));
      if (audiences.length === 0 && apiAudiences.length > 0) throw refuse(`token audiences ${list(tokenAudiences)} is invalid for the target audiences ${list(requested)}`);
      if (claims.iss === LEGACY_ISSUER && !issuers.includes(LEGACY_ISSUER)) {
        const { user, secretName, isAutomatic } = await legacyUser(decodeLegacyClaims(claims), token, options, signal).catch((error: unknown) => {
          if (error instanceof InvalidatedToken) counters.invalidated?.inc();
          throw error;
        });
        counters.legacy?.inc();
        (isAutomatic ? counters.automatic : counters.manual)?.inc();
        const kind = isAutomatic ? "legacy-token-autogenerated-secret" : "legacy-token-manual-secret";
        return {
          user, audiences, ...(isAutomatic ? { warnings: [AUTOMATIC_WARNING] } : {}),
          annotations: { [`authentication.k8s.io/${kind}`]: secretName, "authentication.k8s.io/legacy-token": user.name },
        };
      }
      const bound = decodeBoundClaims(claims);
      const user = await boundUser(bound, options, signal);
      if (!bound?.warnAfter) return { user, audiences };
      const lateSeconds = Math.floor(clock.nowMs() / 1000) - bound.warnAfter;
      const isStale = clock.nowMs() > bound.warnAfter * 1000; // read once, and used long after it should have been read again
      (isStale ? counters.stale : counters.valid)?.inc();
      return { user, audiences, ...(isStale ? { annotations: { "authentication.k8s.io/stale-token": `subject: ${user.name}, seconds after warning threshold: ${lateSeconds}` } } : {}) };
    },
  };
}

/** In upstream's words, and its library's. */
function signatureProblem(jwt: Jwt, keys: VerifyingKeys): string { return namesUnknownKey(jwt, keys) ? "invalid signature, no keys found" : "go-jose/go-jose: error in cryptographic primitive"; }

function namesUnknownKey({ header: { kid } }: Jwt, keys: VerifyingKeys): boolean { return typeof kid === "string" && kid !== "" && keys.byId(kid).length === 0; }

function list(audiences: readonly string[]): string { return `[${audiences.map(goQuote).join(" ")}]`; }

async function boundUser(claims: BoundClaims | undefined, options: ServiceAccountTokenOptions, signal: AbortSignal): Promise<Authenticated["user"]> {
  if (!claims) throw refuse("service account token claims could not be validated");
  const nowMs = options.clock.nowMs();
  if (claims.expiresAt !== 0 && nowMs - LEEWAY_MS > claims.expiresAt * 1000) throw refuse("service account token has expired");
  const { namespace, serviceAccount, pod, secret, node } = claims;
  const account = await options.serviceAccounts.find(namespace, serviceAccount.name, signal);
  if (!account) throw refuse(notFound({ group: "", resource: "serviceaccounts" }, serviceAccount.name).message);
  if (account.metadata.uid !== serviceAccount.uid) throw refuse(`service account UID (${account.metadata.uid}) does not match claim (${serviceAccount.uid})`);
  if (deletedBefore(account, nowMs)) throw refuse(`service account ${namespace}/${serviceAccount.name} has been deleted`);
  if (secret) checkBound("secret", secret, await options.secrets.find(namespace, secret.name, signal), nowMs);
  if (pod) checkBound("pod", pod, await options.pods.find(namespace, pod.name, signal), nowMs);
  else if (node) checkBound("node", node, await options.nodes.find("", node.name, signal), nowMs);
  const extra: Record<string, readonly string[]> = {};
  if (pod && pod.name !== "" && pod.uid !== "") {
    extra["authentication.kubernetes.io/pod-name"] = [pod.name];
    extra["authentication.kubernetes.io/pod-uid"] = [pod.uid];
  }
  if (claims.id !== "") extra["authentication.kubernetes.io/credential-id"] = [credentialIdOf(claims.id)];
  if (node && node.name !== "") {
    extra["authentication.kubernetes.io/node-name"] = [node.name];
    if (node.uid !== "") extra["authentication.kubernetes.io/node-uid"] = [node.uid];
  }
  return serviceAccountUser(namespace, serviceAccount.name, { uid: serviceAccount.uid, extra });
}

export function credentialIdOf(tokenId: string): string { return `JTI=${tokenId}`; }

function checkBound(kind: "secret" | "pod" | "node", claim: ObjectRef, object: Readonly<ApiObject> | undefined, nowMs: number): void {
  if (!object) throw refuse("service account token has been invalidated");
  if (object.metadata.uid !== claim.uid) throw refuse(`${kind} UID (${object.metadata.uid}) does not match service account ${kind} ref claim (${claim.uid})`);
  if (deletedBefore(object, nowMs)) throw refuse("service account token has been invalidated");
}

/** A pod that shuts down may still use its token; one that should be gone for a minute may not. */
function deletedBefore({ metadata }: Readonly<ApiObject>, nowMs: number): boolean {
  return metadata.deletionTimestamp != null && Date.parse(metadata.deletionTimestamp) < nowMs - LEEWAY_MS;
}

const INVALID_SINCE_LABEL = "kubernetes.io/legacy-token-invalid-since";

/** It is not used, and says so: core/controllers/serviceaccount/legacy-token-cleaner.ts. */
class InvalidatedToken extends StatusError {}

const AUTOMATIC_WARNING = "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens.";

/** `isAutomatic`: made for the account by itself, as clusters before v1.24 did. */
async function legacyUser(claims: LegacyClaims, token: string, options: ServiceAccountTokenOptions, signal: AbortSignal): Promise<{ readonly user: Authenticated["user"]; readonly secretName: string; readonly isAutomatic: boolean }> {
  const { namespace, secretName, subject, serviceAccount: { name, uid } } = claims;
  for (const [claim, what] of [[subject, "sub"], [namespace, "namespace"], [secretName, "secretName"], [name, "serviceAccountName"], [uid, "serviceAccountUID"]])
    if (claim === "") throw refuse(`${what} claim is missing`);
  const user = serviceAccountUser(namespace, name, { uid });
  if (subject !== user.name) throw refuse("sub claim is invalid");
  const secret = await options.secrets.find(namespace, secretName, signal);
  if (!secret || secret.metadata.deletionTimestamp != null) throw refuse("Token has been invalidated");
  const kept = Buffer.from(secret.data?.token ?? "", "base64");
  const shown = Buffer.from(token);
  if (kept.length !== shown.length || !timingSafeEqual(kept, shown)) throw refuse("Token does not match server's copy");
  const account = await options.serviceAccounts.find(namespace, name, signal);
  if (!account) throw refuse(notFound({ group: "", resource: "serviceaccounts" }, name).message);
  if (account.metadata.deletionTimestamp != null) throw refuse(`ServiceAccount ${namespace}/${name} has been deleted`);
  if (account.metadata.uid !== uid) throw refuse(`ServiceAccount UID (${account.metadata.uid}) does not match claim (${uid})`);
  await options.markUsed?.(secret, signal);
  if ((secret.metadata.labels?.[INVALID_SINCE_LABEL] ?? "") !== "")
    throw new InvalidatedToken(refuse("").status, { cause: new Error(`the token in secret ${namespace}/${secretName} for service account ${namespace}/${name} has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the '${INVALID_SINCE_LABEL}' label from the secret to temporarily allow use of this token`) });
  return { user, secretName, isAutomatic: account.secrets?.some((one) => one.name === secretName) ?? false };
}
