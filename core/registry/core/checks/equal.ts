/**
 * Whether two pieces of an object mean the same: an empty list is no list, `1Gi` is `1073741824` where quantities stand, absent is absent.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/api/equality/semantic.go
 */
import { compareQuantities, isQuantity } from "../../../api/meta/quantity.ts";

/** Fields whose value, or whose values, are quantities. */
const QUANTITY_FIELDS: ReadonlySet<string> = new Set([
  "requests", "limits", "capacity", "allocatable", "overhead", "hard", "used", "sizeLimit", "divisor", "min", "max", "default", "defaultRequest",
]);

export function semanticEqual(a: unknown, b: unknown): boolean { return equal(a, b, false); }

function equal(a: unknown, b: unknown, quantities: boolean): boolean {
  if (a === b || (isNothing(a) && isNothing(b))) return true;
  if (typeof a === "string" && typeof b === "string") return quantities && isQuantity(a) && isQuantity(b) && compareQuantities(a, b) === 0;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b))
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, i) => equal(item, b[i], quantities));
  return equalFields(a as Fields, b as Fields, quantities);
}

type Fields = Readonly<Record<string, unknown>>;

function equalFields(a: Fields, b: Fields, quantities: boolean): boolean {
  for (const name in a) if (!equal(a[name], b[name], quantities || QUANTITY_FIELDS.has(name))) return false;
  for (const name in b) if (!(name in a) && !isNothing(b[name])) return false;
  return true;
}

function isNothing(value: unknown): boolean { return value === undefined || value === null || (Array.isArray(value) && value.length === 0); }
