/** A member of what somebody else has answered, read as Go's decoder does: null is nothing, and what is of another type is refused in its words. */
import { jsonKindOf } from "../api/patch/json-value.ts";

/** Throws an Error. `field`: as Go names it. */
export function member<T>(value: unknown, is: (value: unknown) => value is T, field: string, type: string): T | undefined {
  if (value === undefined || value === null) return undefined;
  if (!is(value)) throw new Error(`json: cannot unmarshal ${jsonKindOf(value)} into Go struct field ${field} of type ${type}`);
  return value;
}

export function isText(value: unknown): value is string { return typeof value === "string"; }
export function isTruth(value: unknown): value is boolean { return typeof value === "boolean"; }
