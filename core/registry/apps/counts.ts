/** Counts in a status: none negative, none above what it is a part of. Source: kubernetes v1.36 pkg/apis/apps/validation/validation.go */
import { child, type FieldError, invalid } from "../../api/meta/field-error.ts";
import { nonNegative } from "../core/checks/values.ts";

type Counts = Readonly<Record<string, unknown>>;

export function* countsNonNegative(path: string, counts: object, names: readonly string[]): Iterable<FieldError> {
  for (const name of names) yield* nonNegative(child(path, name), (counts as Counts)[name] as number | undefined);
}

/** [part, whole, what to say of a part that is more than the whole]. */
export function* countsWithin(path: string, counts: object, limits: readonly (readonly [part: string, whole: string, detail: string])[]): Iterable<FieldError> {
  for (const [part, whole, detail] of limits) {
    const value = countOf(counts, part);
    if (value > countOf(counts, whole)) yield invalid(child(path, part), value, detail);
  }
}

export function* notDecremented(path: string, next: number | undefined, old: number | undefined): Iterable<FieldError> {
  if (old !== undefined && (next === undefined || next < old)) yield invalid(path, next ?? 0, "cannot be decremented");
}

function countOf(counts: object, name: string): number { return ((counts as Counts)[name] as number | undefined) ?? 0; }
