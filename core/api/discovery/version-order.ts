/**
 * Kubernetes' order of API versions: v10 > v2 > v1 > v11beta2 > v10beta3 > v3beta1 > v12alpha1 > v11alpha2 > foo1 > foo10.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/version/helpers.go
 */
const STABILITY = ["alpha", "beta", ""];
const VERSION = /^v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?$/;

/** Positive if `a` ranks above `b`. */
export function compareVersions(a: string, b: string): number {
  if (a === b) return 0;
  const left = VERSION.exec(a), right = VERSION.exec(b);
  if (!left && !right) return a < b ? 1 : -1; // not ours to judge: alphabetical, the first above
  if (!left || !right) return left ? 1 : -1;
  const stability = STABILITY.indexOf(left[2] ?? "") - STABILITY.indexOf(right[2] ?? "");
  return stability || Number(left[1]) - Number(right[1]) || Number(left[3] ?? 0) - Number(right[3] ?? 0);
}
