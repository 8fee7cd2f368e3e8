/**
 * Integers that are too large for their field, as Go converts them where an object is made of a map: an int32 has their low 32 bits, and a number
 * beyond int64 is the least there is.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/runtime/converter.go fromUnstructured, Go's conversions between numbers on amd64
 */
import type { Scalar, Type } from "./facts.ts";

const INT64_LEAST = -(2n ** 63n);

/** The same value if all its integers fit. */
export function wrapIntegers(type: Type, value: unknown): unknown {
  switch (type.kind) {
    case "struct": return mapEntries(value, (name, field) => { const inner = type.field(name); return inner ? wrapIntegers(inner.type, field) : field; });
    case "map": return mapEntries(value, (_, entry) => wrapIntegers(type.values, entry));
    case "list": return mapItems(value, (item) => wrapIntegers(type.items, item));
    case "scalar": return wrap(type.scalar, value);
    case "special": return value; // has a decoder of its own
  }
}

function wrap(scalar: Scalar, value: unknown): unknown {
  if ((scalar !== "int32" && scalar !== "int64") || !isInteger(value)) return value;
  const wide = BigInt.asIntN(64, BigInt(value)) === BigInt(value) ? BigInt(value) : INT64_LEAST;
  const wrapped = scalar === "int32" ? BigInt.asIntN(32, wide) : wide;
  const short = Number(wrapped);
  return Number.isSafeInteger(short) ? short : wrapped;
}

function isInteger(value: unknown): value is number | bigint { return typeof value === "bigint" || Number.isInteger(value); }

function mapEntries(value: unknown, change: (name: string, value: unknown) => unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value);
  const changed = entries.map(([name, field]): [string, unknown] => [name, change(name, field)]);
  return changed.some(([, field], i) => field !== entries[i]![1]) ? Object.fromEntries(changed) : value;
}

function mapItems(value: unknown, change: (item: unknown) => unknown): unknown {
  if (!Array.isArray(value)) return value;
  const changed = value.map(change);
  return changed.some((item, i) => item !== value[i]) ? changed : value;
}
