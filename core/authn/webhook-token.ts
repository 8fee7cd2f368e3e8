/**
 * Tokens somebody else knows: they are asked with a TokenReview, and what they say is remembered for a while, but for errors.
 *
 * Source: kubernetes v1.36 apiserver/plugin/pkg/authenticator/token/webhook/webhook.go, apiserver/pkg/authentication/token/cache
 */
import { createHash } from "node:crypto";
import type { TokenReviewStatus } from "../api/gen/authentication.v1.ts";
import { foreignFailure } from "../api/codec/foreign-answer.ts";
import { reviewStatus } from "../api/schema/review-status.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { AnswerCache, AnswerError, reviewCall, type ReviewServer } from "../net/review-call.ts";
import type { Authenticated } from "./authenticator.ts";
import { refuse } from "./authn.ts";
import type { TokenAuthenticator } from "./bearer-token.ts";

export interface WebhookTokenOptions {
  readonly server: ReviewServer;
  /** --authentication-token-webhook-version */
  readonly version?: "v1" | "v1beta1" | undefined;
  /** --authentication-token-webhook-cache-ttl */
  readonly cacheMs?: number | undefined;
  readonly apiAudiences: readonly string[];
  readonly clock: Clock;
}

const CACHE_MS = 120_000;
const CACHED_MAX = 4_096;
/** A question, with its answer. Source: kubernetes v1.36 apiserver/pkg/util/webhook/webhook.go defaultRequestTimeout */
const TIMEOUT_MS = 30_000;
const REVIEW = { group: "authentication.k8s.io", kind: "TokenReview" };

type Answer = { readonly found: Authenticated | undefined } | { readonly refused: string };

export function webhookTokens({ server, version = "v1beta1", cacheMs = CACHE_MS, apiAudiences, clock }: WebhookTokenOptions): TokenAuthenticator {
  const cache = new AnswerCache<Answer>({ max: CACHED_MAX, clock });
  const asking = new Map<string, Promise<Answer>>(); // many requests come with one token at once

  async function ask(token: string, audiences: readonly string[]): Promise<Answer> {
    const review = { kind: "TokenReview", apiVersion: `authentication.k8s.io/${version}`, metadata: {}, spec: { token, ...(audiences.length > 0 ? { audiences: [...audiences] } : {}) }, status: { user: {} } };
    const answer = await reviewCall({ server, review, timeoutMs: TIMEOUT_MS, clock }, new AbortController().signal);
    const status = reviewStatus<TokenReviewStatus>({ ...REVIEW, version }, answer);
    const theirs = new Set(status?.audiences?.length ? status.audiences : apiAudiences);
    const shared = audiences.filter((audience) => theirs.has(audience));
    if (audiences.length > 0 && shared.length === 0) return { found: undefined };
    if (!status?.authenticated) return status?.error ? { refused: status.error } : { found: undefined };
    const { username = "", uid, groups = [], extra: told = {} } = status.user ?? {};
    const extra = Object.fromEntries(Object.entries(told).map(([key, values]) => [key, (values as readonly string[] | null) ?? []]));
    return { found: { user: { name: username, groups, ...(uid ? { uid } : {}), ...(Object.keys(extra).length > 0 ? { extra } : {}) }, ...(audiences.length > 0 ? { audiences: shared } : {}) } };
  }

  return {
    async authenticateToken(token, audiences) {
      const key = createHash("sha256").update(`${audiences.join("\0")}\0\0${token}`).digest("base64");
      let answer = cache.get(key);
      if (!answer) {
        let pending = asking.get(key);
        if (!pending) asking.set(key, (pending = ask(token, audiences).finally(() => asking.delete(key))));
        try {
          answer = await pending;
        } catch (error) {
          throw refuse(error instanceof AnswerError ? foreignFailure(error.answer) : (error as Error).message); // not remembered: it may answer the next time
        }
        if (!("refused" in answer)) cache.set(key, answer, cacheMs); // nor is that it says why it does not know the token: it may the next time
      }
      if ("refused" in answer) throw refuse(answer.refused);
      return answer.found;
    },
  };
}
