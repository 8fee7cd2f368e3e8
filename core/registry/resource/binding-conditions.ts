/** Conditions a device must have before pods that use it are bound, and those that say it never will. Source: kubernetes v1.36 pkg/apis/resource/validation/validation.go */
import { child, duplicate, type FieldError, index, invalid } from "../../api/meta/field-error.ts";
import { validateLabelName } from "../../api/meta/label-selector.ts";
import { listOf } from "./names.ts";
import { repeats } from "../../api/meta/linear.ts";

const CONDITIONS_MAX = 4;

interface Bound { readonly bindingConditions?: readonly string[] | undefined; readonly bindingFailureConditions?: readonly string[] | undefined }

export function* bindingConditions(path: string, { bindingConditions: conditions = [], bindingFailureConditions: failures = [] }: Bound): Iterable<FieldError> {
  const [at, failuresAt] = [child(path, "bindingConditions"), child(path, "bindingFailureConditions")];
  const check = (where: string, name: string): Iterable<FieldError> => validateLabelName(name, where);
  yield* listOf(at, conditions, { max: CONDITIONS_MAX, check });
  yield* listOf(failuresAt, failures, { max: CONDITIONS_MAX, check });
  const cameBefore = repeats<string>(), failedBefore = repeats<string>();
  for (const [i, name] of conditions.entries()) if (cameBefore(name)) yield duplicate(index(at, i), name);
  const known = new Set(conditions);
  for (const [i, name] of failures.entries()) {
    if (failedBefore(name)) yield duplicate(index(failuresAt, i), name);
    if (known.has(name)) yield invalid(index(failuresAt, i), name, "bindingFailureConditions must not overlap with bindingConditions");
  }
  if (conditions.length === 0 && failures.length > 0) yield invalid(at, null, "bindingConditions are required to use bindingFailureConditions");
  if (failures.length === 0 && conditions.length > 0) yield invalid(failuresAt, null, "bindingFailureConditions are required to use bindingConditions");
}
