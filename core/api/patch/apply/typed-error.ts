/**
 * A value that does not fit its schema. Upstream's wording: `.spec.replicas: expected numeric (int or float), got string`; several
 * problems are listed under `errors:`.
 *
 * Source: sigs.k8s.io/structured-merge-diff v6 typed/helpers.go ValidationErrors
 */
export interface Misfit { readonly path: string; readonly message: string }

export class TypedError extends Error {
  override readonly name = "TypedError";
  constructor(misfits: string | readonly Misfit[]) { super(typeof misfits === "string" ? misfits : formatMisfits(misfits)); }
}

function formatMisfits(misfits: readonly Misfit[]): string {
  const lines = misfits.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
  return lines.length === 1 ? lines[0]! : ["errors:", ...lines.map((line) => `  ${line}`)].join("\n");
}
