/** Several errors as upstream prints them, each text once. Source: kubernetes v1.36 apimachinery/pkg/util/errors Aggregate */
export function aggregate(errors: readonly string[]): string {
  const distinct = [...new Set(errors)];
  return distinct.length === 1 ? distinct[0]! : `[${distinct.join(", ")}]`;
}
