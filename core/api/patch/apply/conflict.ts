/**
 * Fields an apply would take from others.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/util/managedfields/internal/conflict.go
 */
import { goQuote } from "../../meta/go-quote.ts";
import { applyConflict, type StatusError } from "../../meta/status-error.ts";
import { difference, type FieldSet, formatPath, isEmptySet, pathsOf } from "./field-set.ts";
import { identifierOf, type Manager } from "./managers.ts";

/** What one manager owns of what would change. */
export interface Conflict { readonly manager: Manager; readonly set: FieldSet }

/** Thrown while an apply may still find out that it is allowed to; the caller of the API sees `conflictStatus`. */
export class ConflictError extends Error {
  override readonly name = "ConflictError";
  readonly conflicts: readonly Conflict[];
  constructor(conflicts: readonly Conflict[]) {
    super("apply conflicts with other managers");
    this.conflicts = conflicts;
  }
}

/** Conflicts outside of `allowed`. */
export function conflictsBeyond(conflicts: readonly Conflict[], allowed: FieldSet): readonly Conflict[] {
  return conflicts.map(({ manager, set }) => ({ manager, set: difference(set, allowed) })).filter(({ set }) => !isEmptySet(set));
}

export function conflictStatus(conflicts: readonly Conflict[]): StatusError {
  const sorted = conflicts.map((conflict) => ({ ...conflict, id: identifierOf(conflict.manager) })).sort((a, b) => (a.id < b.id ? -1 : 1))
    .map(({ manager, set }) => ({ told: describeManager(manager), paths: [...pathsOf(set)].map(formatPath) }));
  const causes = sorted.flatMap(({ told, paths }) => paths.map((field) => ({ reason: "FieldManagerConflict", message: `conflict with ${told}`, field })));
  if (causes.length === 1) return applyConflict(`Apply failed with 1 conflict: ${causes[0]!.message}: ${causes[0]!.field}`, causes);
  const lines = sorted.flatMap(({ told, paths }) => [`conflicts with ${told}:`, ...paths.map((path) => `- ${path}`)]);
  return applyConflict(`Apply failed with ${causes.length} conflicts: ${lines.join("\n")}`, causes);
}

function describeManager({ name, operation, apiVersion, subresource }: Manager): string {
  const who = subresource === "" ? goQuote(name) : `${goQuote(name)} with subresource ${goQuote(subresource)}`;
  return operation === "Update" ? `${who} using ${apiVersion}` : who;
}
