/**
 * A write that changes nothing must not be stored just because managedFields would carry a newer time.
 *
 * Source: kubernetes v1.36 apiserver/pkg/endpoints/handlers/fieldmanager/equality.go
 */
import { equalJson, type JsonMap } from "../json-value.ts";
import { managedFieldsOf, withManagedFields, withoutManagedFields } from "./update.ts";

/** `next` with the times of `live`, if those are all that differs between the two; else `next` as it is. Both in canonical form. */
export function keepTimesIfUnchanged<T extends object>(live: Readonly<T>, next: T): T {
  const before = managedFieldsOf(live);
  const after = managedFieldsOf(next);
  if (before === after || before === undefined || after === undefined || before.length !== after.length) return next;
  if (after.every(({ time }, at) => time === before[at]!.time)) return next;
  const timeless = (entry: object): JsonMap => ({ ...entry, time: undefined });
  if (!after.every((entry, at) => equalJson(timeless(entry), timeless(before[at]!)))) return next;
  return equalJson(withoutManagedFields(next), withoutManagedFields(live)) ? withManagedFields(next, before) : next;
}
