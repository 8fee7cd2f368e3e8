/** Conditions of the common form: a type, a status, since when and why. Source: kubernetes v1.36 apimachinery/pkg/apis/meta/v1/validation/validation.go ValidateConditions */
import { byteLength } from "../../../api/meta/byte-length.ts";
import { child, duplicate, type FieldError, index, invalid, notSupported, required, tooLong } from "../../../api/meta/field-error.ts";
import type { Condition } from "../../../api/gen/meta.v1.ts";
import { repeats } from "../../../api/meta/linear.ts";
import { validateLabelName } from "../../../api/meta/label-selector.ts";
import { regexMessage } from "../../../api/meta/names.ts";

const REASON_BYTES_MAX = 1024;
const MESSAGE_BYTES_MAX = 32 * 1024;
const REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?";
const REASON_MATCH = new RegExp(`^${REASON}$`);
const REASON_MESSAGE = regexMessage(
  "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
  REASON, "my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB",
);

export function* validateCommonConditions(path: string, conditions: readonly Condition[] = []): Iterable<FieldError> {
  const isRepeated = repeats<string>();
  for (const [i, condition] of conditions.entries()) {
    const at = index(path, i);
    if (isRepeated(condition.type)) yield duplicate(child(at, "type"), condition.type);
    yield* validateCondition(at, condition);
  }
}

function* validateCondition(path: string, { type, status, observedGeneration = 0, lastTransitionTime, reason, message }: Condition): Iterable<FieldError> {
  yield* validateLabelName(type ?? "", child(path, "type"));
  if (!["False", "True", "Unknown"].includes(status)) yield notSupported(child(path, "status"), status ?? "", ["False", "True", "Unknown"]);
  if (observedGeneration < 0) yield invalid(child(path, "observedGeneration"), observedGeneration, "must be greater than or equal to zero");
  if (!lastTransitionTime) yield required(child(path, "lastTransitionTime"));
  if (!reason) yield required(child(path, "reason"));
  else if (!REASON_MATCH.test(reason)) yield invalid(child(path, "reason"), reason, REASON_MESSAGE);
  if (byteLength(reason ?? "") > REASON_BYTES_MAX) yield tooLong(child(path, "reason"), REASON_BYTES_MAX);
  if (byteLength(message ?? "") > MESSAGE_BYTES_MAX) yield tooLong(child(path, "message"), MESSAGE_BYTES_MAX);
}
