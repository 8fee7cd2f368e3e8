/**
 * Issues service account tokens: the `token` subresource of service accounts.
 *
 * A token is good for its audiences until it expires, and dies with the pod, Secret or node it is bound to.
 *
 * Source: kubernetes v1.36 pkg/registry/core/serviceaccount/storage/token.go, pkg/serviceaccount/claims.go, pkg/apis/authentication/validation
 */
import type { BoundObjectReference, TokenRequest } from "../api/gen/authentication.v1.ts";
import type { Node, Pod, ServiceAccount } from "../api/gen/core.v1.ts";
import { type FieldError, invalid as invalidField } from "../api/meta/field-error.ts";
import { goQuote } from "../api/meta/go-quote.ts";
import { formatGvk, type GroupVersionKind, gvkOf } from "../api/meta/gvk.ts";
import { checkNameParameter } from "../api/meta/name-parameter.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { badRequest, conflict, internalError, invalid, notFound } from "../api/meta/status-error.ts";
import { type Clock, timestamp } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import type { Claims } from "../pki/jwt.ts";
import type { ServiceAccountLookups } from "./service-account.ts";
import { credentialIdOf } from "./service-account.ts";
import { encodeBoundClaims, type ObjectRef } from "./service-account-claims.ts";

const TOKEN_REQUEST = { group: "authentication.k8s.io", kind: "TokenRequest" };
const EXPIRATION_SECONDS_DEFAULT = 3_600;
const EXPIRATION_SECONDS_MIN = 600;
const EXPIRATION_SECONDS_MAX = 2 ** 32;
/** The lifetime admission asks for in pods it adds a token to. Such tokens live a year, for clients that read the file once, whatever others may live at most. */
const EXTENDED_IF_SECONDS = 3_607;
export const EXTENDED_SECONDS = 365 * 24 * 3_600;

export interface TokenIssuerOptions extends ServiceAccountLookups {
  /** The signed token of these claims. Throws when who signs them does not. */
  readonly sign: (claims: Claims, signal: AbortSignal) => Promise<string>;
  readonly issuer: string;
  readonly apiAudiences: readonly string[];
  readonly clock: Clock;
  readonly random: Random;
  /** --service-account-max-token-expiration: what may be asked for; 0: no limit of ours. */
  readonly expirationSecondsMax?: number;
  /** --service-account-extend-token-expiration. Upstream's default: true. */
  readonly extendExpiration?: boolean;
  /** How long tokens so extended live. A year, if absent. */
  readonly extendedSeconds?: number | undefined;
}

export interface TokenCall {
  readonly signal: AbortSignal;
  warn(text: string): void;
  annotate(key: string, value: string): void;
  /** Validating admission, of the request as completed. */
  admit?(request: TokenRequest): Promise<void>;
}

interface IssueOptions {
  readonly serviceAccount: Readonly<ServiceAccount>;
  readonly audiences: readonly string[];
  readonly expirationSeconds: number;
  readonly warnAfterSeconds?: number | undefined;
  readonly bound: Bound;
}

interface Bound { readonly pod?: ObjectRef | undefined; readonly secret?: ObjectRef | undefined; readonly node?: ObjectRef | undefined }

export interface TokenIssuer {
  /** POST …/serviceaccounts/<name>/token. Throws StatusError. */
  tokenRequest(account: { readonly namespace: string; readonly name: string }, request: Readonly<TokenRequest>, call: TokenCall): Promise<TokenRequest>;
}

export function tokenIssuer(options: TokenIssuerOptions): TokenIssuer {
  const { sign, issuer, apiAudiences, clock, random, expirationSecondsMax = 0, extendExpiration = true, extendedSeconds = EXTENDED_SECONDS } = options;

  async function issueToken({ serviceAccount, audiences, expirationSeconds, warnAfterSeconds, bound }: IssueOptions, signal: AbortSignal): Promise<{ token: string; id: string; issuedAtMs: number }> {
    const issuedAtMs = clock.nowMs();
    const issuedAt = Math.floor(issuedAtMs / 1000);
    const id = random.uuid();
    const claims = encodeBoundClaims(issuer, {
      namespace: serviceAccount.metadata.namespace ?? "", serviceAccount: refOf(serviceAccount), ...bound, audiences, issuedAt, id,
      expiresAt: issuedAt + expirationSeconds, warnAfter: warnAfterSeconds === undefined ? undefined : issuedAt + warnAfterSeconds,
    });
    const token = await sign(claims, signal).catch((cause: unknown) => { throw internalError(new Error(`failed to generate token: ${(cause as Error).message}`, { cause })); });
    return { token, id, issuedAtMs };
  }

  return {
    async tokenRequest({ namespace, name }, request, call) {
      checkNames(request, namespace, name);
      const serviceAccount = await options.serviceAccounts.find(namespace, name, call.signal);
      if (!serviceAccount) throw notFound({ group: "", resource: "serviceaccounts" }, name);
      const { uid } = serviceAccount.metadata;
      const given = request.metadata?.uid ?? "";
      if (given !== "" && given !== uid)
        throw conflict({ group: TOKEN_REQUEST.group, resource: TOKEN_REQUEST.kind }, name, `the UID in the token request (${given}) does not match the UID of the service account (${uid})`);
      const audiences = request.spec?.audiences?.length ? request.spec.audiences : [...apiAudiences];
      let expirationSeconds = request.spec?.expirationSeconds ?? EXPIRATION_SECONDS_DEFAULT;
      const problems = [...expirationProblems(expirationSeconds)];
      if (problems.length > 0) throw invalid(TOKEN_REQUEST, "", problems);
      const { name: _, generateName, namespace: __, uid: ___, creationTimestamp: ____, ...rest } = request.metadata ?? {};
      const completed: TokenRequest = {
        kind: "TokenRequest", apiVersion: "authentication.k8s.io/v1",
        metadata: { name, ...(generateName ? { generateName } : {}), namespace, uid, creationTimestamp: timestamp(clock.nowMs()), ...rest },
        spec: { ...request.spec, audiences, expirationSeconds },
      };
      await call.admit?.({ ...structuredClone(completed), status: { token: "", expirationTimestamp: null as never } });
      const bound = await boundTo(request.spec?.boundObjectRef, { namespace, name }, options, call.signal);
      if (expirationSecondsMax > 0 && expirationSeconds > expirationSecondsMax) {
        call.warn(`requested expiration of ${expirationSeconds} seconds shortened to ${expirationSecondsMax} seconds`);
        expirationSeconds = expirationSecondsMax;
      }
      const extend = extendExpiration && bound.pod !== undefined && expirationSeconds === EXTENDED_IF_SECONDS && audiences.every((audience) => apiAudiences.includes(audience));
      const { token, id, issuedAtMs } = await issueToken({
        serviceAccount, audiences, bound, expirationSeconds: extend ? extendedSeconds : expirationSeconds, warnAfterSeconds: extend ? expirationSeconds : undefined,
      }, call.signal);
      call.annotate("authentication.kubernetes.io/issued-credential-id", credentialIdOf(id));
      const status = { token, expirationTimestamp: timestamp(Math.floor(issuedAtMs / 1000) * 1000 + expirationSeconds * 1000) };
      return { ...completed, spec: { ...completed.spec, expirationSeconds }, status };
    },
  };
}

/** A default like any other: whoever asks owns it. Mutates `request`. Source: kubernetes v1.36 pkg/apis/authentication/v1/defaults.go */
export function defaultExpiration(request: TokenRequest): void {
  request.spec = { ...request.spec, audiences: request.spec?.audiences ?? null!, expirationSeconds: request.spec?.expirationSeconds ?? EXPIRATION_SECONDS_DEFAULT };
}

function checkNames({ metadata }: Readonly<TokenRequest>, namespace: string, name: string): void {
  if (metadata?.name && metadata.name !== name) throw invalid(TOKEN_REQUEST, name, [invalidField("metadata.name", metadata.name, "must match the service account name if specified")]);
  if (metadata?.namespace && metadata.namespace !== namespace)
    throw invalid(TOKEN_REQUEST, name, [invalidField("metadata.namespace", metadata.namespace, "must match the service account namespace if specified")]);
}

function* expirationProblems(seconds: number): Iterable<FieldError> {
  if (seconds < EXPIRATION_SECONDS_MIN) yield invalidField("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes");
  if (seconds > EXPIRATION_SECONDS_MAX) yield invalidField("spec.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds");
}

function refOf({ metadata: { name, uid } }: Readonly<ApiObject>): ObjectRef { return { name, uid }; }

async function boundTo(
  reference: Readonly<BoundObjectReference> | undefined, account: { readonly namespace: string; readonly name: string }, lookups: ServiceAccountLookups, signal: AbortSignal,
): Promise<Bound> {
  if (!reference) return {};
  const gvk = boundKind(reference);
  const name = reference.name ?? "";
  const isKnown = gvk.group === "" && ["Pod", "Node", "Secret"].includes(gvk.kind);
  if (isKnown) checkNameParameter(name);
  const check = <T extends ApiObject>(object: Readonly<T> | undefined, resource: string): Readonly<T> => {
    if (!object) throw notFound({ group: "", resource }, name);
    return object;
  };
  const checkUid = ({ metadata: { uid } }: Readonly<ApiObject>): void => {
    if (reference.uid && reference.uid !== uid)
      throw conflict({ group: gvk.group, resource: gvk.kind }, name, `the UID in the bound object reference (${reference.uid}) does not match the UID in record. The object might have been deleted and then recreated`);
  };
  switch (gvk.group === "" ? gvk.kind : "") {
    case "Pod": {
      const pod: Readonly<Pod> = check(await lookups.pods.find(account.namespace, name, signal), "pods");
      if (pod.spec?.serviceAccountName !== account.name) throw badRequest(`cannot bind token for serviceaccount ${goQuote(account.name)} to pod running with different serviceaccount name.`);
      const node = await nodeOf(pod, lookups, signal);
      checkUid(pod);
      return { pod: refOf(pod), node };
    }
    case "Node": {
      const node: Readonly<Node> = check(await lookups.nodes.find("", name, signal), "nodes");
      checkUid(node);
      return { node: refOf(node) };
    }
    case "Secret": {
      const secret = check(await lookups.secrets.find(account.namespace, name, signal), "secrets");
      checkUid(secret);
      return { secret: refOf(secret) };
    }
    default: throw badRequest(`cannot bind token to object of type ${formatGvk(gvk)}`);
  }
}

/** What is no version is none, and does not matter: kinds of the core group are told by their names. */
function boundKind({ apiVersion = "", kind = "" }: Readonly<BoundObjectReference>): GroupVersionKind {
  try {
    return gvkOf({ apiVersion, kind });
  } catch {
    return { group: "", version: "", kind }; // as upstream's FromAPIVersionAndKind has it
  }
}

/** The pod's node; its name alone when the node does not exist. */
async function nodeOf(pod: Readonly<Pod>, { nodes }: ServiceAccountLookups, signal: AbortSignal): Promise<ObjectRef | undefined> {
  const name = pod.spec?.nodeName ?? "";
  if (name === "") return undefined;
  const node = await nodes.find("", name, signal);
  return node ? refOf(node) : { name, uid: "" };
}
