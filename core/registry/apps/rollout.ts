/** How many at a time: a count or a percentage. Source: kubernetes v1.36 pkg/apis/apps/validation/validation.go */
import { type FieldError, invalid } from "../../api/meta/field-error.ts";
import { type IntOrString, intValue, percentValue } from "../../api/meta/int-or-string.ts";
import { percent } from "../../api/meta/names.ts";
import { nonNegative, problems } from "../core/checks/values.ts";

export function* countOrPercent(path: string, value: IntOrString): Iterable<FieldError> {
  if (typeof value === "string") yield* problems(path, value, percent(value));
  else yield* nonNegative(path, value);
}

export function* atMost100Percent(path: string, value: IntOrString): Iterable<FieldError> {
  if ((percentValue(value) ?? 0) > 100) yield invalid(path, value, "must not be greater than 100%");
}

/** Of "0%" and 0 alike. */
export function isZero(value: IntOrString): boolean { return (percentValue(value) ?? intValue(value)) === 0; }
