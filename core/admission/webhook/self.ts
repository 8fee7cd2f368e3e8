import type { HeaderPairs } from "../../net/response-head.ts";
/**
 * This server itself as the one to ask: webhooks of extension API servers are found behind it, under /apis. It need not show itself who it is.
 *
 * Source: kubernetes v1.36 apiserver/pkg/util/webhook/authentication.go NewDefaultAuthenticationInfoResolverWrapper
 */

/** A POST. */
export interface SelfQuestion {
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
  /** Lower-case names. */
  readonly headers: HeaderPairs;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

export interface SelfAnswer { readonly status: number; readonly contentType: string | undefined; readonly body: Uint8Array }

/** Throws an Error where there is no answer. */
export type Self = (question: SelfQuestion) => Promise<SelfAnswer>;

/** `host`: with its port. */
export function isSelf(host: string): boolean { return host === "kubernetes.default.svc:443"; }
