/**
 * For which images a pod must show that it could have pulled them: imagePullCredentialsVerificationPolicy. Pure.
 *
 * Source: kubernetes v1.36 pkg/kubelet/images/pullmanager/image_pull_policies.go
 */
import { nameProblem, withoutTag } from "../../cri/image-name.ts";

export const PULL_POLICIES = ["NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify"] as const;
export type PullPolicy = (typeof PULL_POLICIES)[number];

/** `pulledHere`: by this kubelet, and not there before it. */
export function mustVerify({ policy, allowlist }: { readonly policy: PullPolicy; readonly allowlist: readonly string[] }, image: string, pulledHere: boolean): boolean {
  switch (policy) {
    case "NeverVerify": return false;
    case "NeverVerifyPreloadedImages": return pulledHere;
    case "AlwaysVerify": return true;
    case "NeverVerifyAllowlistedImages": return !allowlist.some((pattern) => (pattern.endsWith("/*") ? withoutTag(image).startsWith(pattern.slice(0, -1)) : withoutTag(image) === pattern));
  }
}

/** What is wrong with a pattern of the list: the name of an image without its tag, or what names begin with, ending in "/*". */
export function allowlistProblem(pattern: string): string | undefined {
  if (pattern !== pattern.trim()) return `leading/trailing spaces are not allowed: ${pattern}`;
  const isWildcard = pattern.endsWith("/*");
  const name = isWildcard ? pattern.slice(0, -1) : pattern;
  if (name === "") return `the supplied pattern is too short: ${pattern}`;
  if (name.includes("*")) return `not a valid wildcard pattern, only patterns ending with '/*' are allowed: ${pattern}`;
  if (isWildcard) return name === "/" ? "at least registry hostname is required" : undefined;
  const problem = nameProblem(name);
  if (problem !== undefined) return `failed to parse as an image name: ${problem}`;
  return withoutTag(name) === name ? undefined : `neither tag nor digest is accepted in an image reference: ${pattern}`;
}
