/** A LabelSelector as Go prints it: some messages of upstream's have it so. */
import type { LabelSelector } from "../api/gen/meta.v1.ts";

export function formatSelector(selector: LabelSelector | undefined): string {
  if (selector === undefined) return "nil";
  const labels = Object.entries(selector.matchLabels ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => `${name}: ${value},`).join("");
  const expressions = (selector.matchExpressions ?? []).map(({ key, operator, values = [] }) => `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${values.join(" ")}],},`).join("");
  return `&LabelSelector{MatchLabels:map[string]string{${labels}},MatchExpressions:[]LabelSelectorRequirement{${expressions}},}`;
}
