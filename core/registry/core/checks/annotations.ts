/** Annotations of templates; those of objects are checked for every kind alike. Source: kubernetes v1.36 apimachinery/pkg/api/validation/objectmeta.go */
import { type FieldError, tooLong } from "../../../api/meta/field-error.ts";
import { byteLength } from "../../../api/meta/byte-length.ts";
import { qualifiedName } from "../../../api/meta/names.ts";
import { problems } from "./values.ts";

/** Keys and values together. */
const TOTAL_BYTES_MAX = 256 * 1024;

export function* validateAnnotations(path: string, annotations: Readonly<Record<string, string>> | undefined): Iterable<FieldError> {
  let bytes = 0;
  for (const [name, value] of Object.entries(annotations ?? {})) {
    yield* problems(path, name, qualifiedName(name.toLowerCase()));
    bytes += byteLength(name) + byteLength(value);
  }
  if (bytes > TOTAL_BYTES_MAX) yield tooLong(path, TOTAL_BYTES_MAX);
}
