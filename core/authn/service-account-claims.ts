/**
 * What stands in a service account's token.
 *
 * Two forms exist: today's, bound to an audience, an expiry and mostly a pod; and the legacy one, which lives as long as the Secret it is kept in.
 *
 * Source: kubernetes v1.36 pkg/serviceaccount/{claims,legacy}.go
 */
import { isMap, textOf } from "../api/patch/json-value.ts";
import type { Claims } from "../pki/jwt.ts";

export const LEGACY_ISSUER = "kubernetes/serviceaccount";

export interface ObjectRef { readonly name: string; readonly uid: string }

export interface BoundClaims {
  readonly namespace: string;
  readonly serviceAccount: ObjectRef;
  readonly pod?: ObjectRef | undefined;
  readonly secret?: ObjectRef | undefined;
  readonly node?: ObjectRef | undefined;
  readonly audiences: readonly string[];
  /** Seconds since the epoch. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly warnAfter?: number | undefined;
  /** Unique id of the token. */
  readonly id: string;
}

/** Members in the order upstream's encoder writes them: sorted, public and private together. */
export function encodeBoundClaims(issuer: string, claims: BoundClaims): Claims {
  const ref = ({ name, uid }: ObjectRef): Claims => (uid === "" ? { name } : { name, uid });
  const { namespace, serviceAccount, pod, secret, node, warnAfter } = claims;
  return {
    aud: claims.audiences, exp: claims.expiresAt, iat: claims.issuedAt, iss: issuer, jti: claims.id,
    "kubernetes.io": {
      namespace, ...(node ? { node: ref(node) } : {}), ...(pod ? { pod: ref(pod) } : {}), ...(secret ? { secret: ref(secret) } : {}), serviceaccount: ref(serviceAccount),
      ...(warnAfter === undefined ? {} : { warnafter: warnAfter }),
    },
    nbf: claims.issuedAt, sub: userNameOf(namespace, serviceAccount.name),
  };
}

/** Undefined for claims of another shape. Absent parts are empty or 0. */
export function decodeBoundClaims(claims: Claims): BoundClaims | undefined {
  const own = claims["kubernetes.io"];
  if (!isMap(own)) return undefined;
  const ref = (value: unknown): ObjectRef | undefined => (isMap(value) ? { name: textOf(value.name), uid: textOf(value.uid) } : undefined);
  return {
    namespace: textOf(own.namespace), serviceAccount: ref(own.serviceaccount) ?? { name: "", uid: "" }, pod: ref(own.pod), secret: ref(own.secret), node: ref(own.node),
    audiences: audiencesOf(claims), issuedAt: number(claims.iat), expiresAt: number(claims.exp), warnAfter: number(own.warnafter) || undefined, id: textOf(claims.jti),
  };
}

export interface LegacyClaims {
  readonly namespace: string;
  readonly secretName: string;
  readonly serviceAccount: ObjectRef;
  readonly subject: string;
}

const LEGACY = "kubernetes.io/serviceaccount/";

export function encodeLegacyClaims({ namespace, secretName, serviceAccount }: Omit<LegacyClaims, "subject">): Claims {
  return {
    iss: LEGACY_ISSUER, [`${LEGACY}namespace`]: namespace, [`${LEGACY}secret.name`]: secretName, [`${LEGACY}service-account.name`]: serviceAccount.name,
    [`${LEGACY}service-account.uid`]: serviceAccount.uid, sub: userNameOf(namespace, serviceAccount.name),
  };
}

export function decodeLegacyClaims(claims: Claims): LegacyClaims {
  return {
    namespace: textOf(claims[`${LEGACY}namespace`]), secretName: textOf(claims[`${LEGACY}secret.name`]), subject: textOf(claims.sub),
    serviceAccount: { name: textOf(claims[`${LEGACY}service-account.name`]), uid: textOf(claims[`${LEGACY}service-account.uid`]) },
  };
}

export function audiencesOf({ aud }: Claims): string[] {
  if (typeof aud === "string") return [aud];
  return Array.isArray(aud) ? aud.filter((one): one is string => typeof one === "string") : [];
}

function userNameOf(namespace: string, name: string): string { return `system:serviceaccount:${namespace}:${name}`; }
function number(value: unknown): number { return typeof value === "number" ? value : 0; }
