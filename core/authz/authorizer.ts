/** Whether a caller may do what a request asks for. */
import type { Attributes } from "../api/request/attributes.ts";
import type { UserInfo } from "../api/request/user.ts";

export interface Decision {
  readonly decision: "allow" | "deny" | "no-opinion";
  readonly reason: string;
  /** Why it may not be what it would be: somebody who was to be asked could not be. Told where it is not "allow". */
  readonly error?: string | undefined;
}

export interface ResourceRule { readonly verbs: readonly string[]; readonly apiGroups: readonly string[]; readonly resources: readonly string[]; readonly resourceNames: readonly string[] }
export interface PathRule { readonly verbs: readonly string[]; readonly nonResourceURLs: readonly string[] }

export interface Authorizer {
  authorize(attributes: Attributes): Decision | Promise<Decision>;
  /** The rules that apply to `user` in `namespace`, for SelfSubjectRulesReview. `incomplete`: there may be more. */
  rulesFor(user: UserInfo, namespace: string): Promise<{ readonly resourceRules: readonly ResourceRule[]; readonly pathRules: readonly PathRule[]; readonly incomplete: boolean; readonly evaluationError?: string }>;
}
