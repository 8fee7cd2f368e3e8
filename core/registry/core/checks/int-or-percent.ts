/** Fields that are a number of something or a percentage of it. Source: kubernetes v1.36 pkg/apis/apps/validation/validation.go */
import { type FieldError, invalid } from "../../../api/meta/field-error.ts";
import { type IntOrString, intValue, percentValue } from "../../../api/meta/int-or-string.ts";
import { percent } from "../../../api/meta/names.ts";
import { nonNegative, problems } from "./values.ts";

/** A count that is not negative, or a percentage. */
export function intOrPercent(path: string, value: IntOrString): Iterable<FieldError> {
  return typeof value === "string" ? problems(path, value, percent(value)) : nonNegative(path, value);
}

export function* atMost100Percent(path: string, value: IntOrString): Iterable<FieldError> {
  if ((percentValue(value) ?? 0) > 100) yield invalid(path, value, "must not be greater than 100%");
}

/** 0 for "0%" as for 0. */
export function countOrPercent(value: IntOrString): number { return percentValue(value) ?? intValue(value); }
