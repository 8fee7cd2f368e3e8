/**
 * TokenReview and SelfSubjectReview: who a token, or the caller, is.
 *
 * Source: kubernetes v1.36 pkg/registry/authentication/{tokenreview,selfsubjectreview}
 */
import type { SelfSubjectReview, TokenReview, UserInfo as UserInfoV1 } from "../api/gen/authentication.v1.ts";
import type { TemplateMeta } from "../api/meta/object-meta.ts";
import { badRequest } from "../api/meta/status-error.ts";
import type { UserInfo } from "../api/request/user.ts";
import { GROUP_AUTHENTICATED } from "../api/request/user.ts";
import { isAnonymous, refusalDetail } from "./authn.ts";
import type { TokenAuthenticator } from "./bearer-token.ts";

export interface TokenReviewOptions { readonly tokens: TokenAuthenticator; readonly apiAudiences: readonly string[] }

/** The server asks about its own token first, which it is not, and tells what each has said. */
const INVALID = "invalid bearer token";

/** The review with its status. Throws 400 for a review without a token. */
export async function reviewToken(review: Readonly<TokenReview>, { tokens, apiAudiences }: TokenReviewOptions, signal: AbortSignal): Promise<TokenReview> {
  const token = review.spec?.token ?? "";
  if (token === "") throw badRequest("token is required for TokenReview in authentication");
  const { authenticated: _, user: given = {}, ...rest } = review.status ?? {}; // what was sent stays, where nothing is found out, as upstream leaves it
  const wanted = review.spec.audiences?.length ? review.spec.audiences : apiAudiences;
  return { ...review, status: await statusOf() };

  async function statusOf(): Promise<NonNullable<TokenReview["status"]>> {
    try {
      const found = await tokens.authenticateToken(token, wanted, signal);
      if (!found) return { user: given, ...rest, error: INVALID };
      const { user, audiences = wanted } = found;
      const groups = isAnonymous(user) || user.groups.includes(GROUP_AUTHENTICATED) ? user.groups : [...user.groups, GROUP_AUTHENTICATED];
      return { ...rest, authenticated: true, user: userInfoV1({ ...user, groups }), audiences: [...audiences] };
    } catch (error) {
      const why = refusalDetail(error);
      return { user: given, ...rest, error: why === INVALID ? why : `[${INVALID}, ${why}]` };
    }
  }
}

export function reviewSelf(review: { readonly apiVersion: string; readonly kind: string; readonly metadata?: TemplateMeta }, user: UserInfo, createdAt: string): SelfSubjectReview {
  return { kind: review.kind, apiVersion: review.apiVersion, metadata: { creationTimestamp: createdAt } as SelfSubjectReview["metadata"], status: { userInfo: userInfoV1(user) } };
}

/** As the authentication API writes a user: empty parts are left out. */
function userInfoV1({ name, uid, groups, extra = {} }: UserInfo): UserInfoV1 {
  return {
    ...(name === "" ? {} : { username: name }), ...(uid ? { uid } : {}), ...(groups.length > 0 ? { groups: [...groups] } : {}),
    ...(Object.keys(extra).length > 0 ? { extra: Object.fromEntries(Object.keys(extra).sort().map((key) => [key, [...extra[key]!]])) } : {}),
  };
}
