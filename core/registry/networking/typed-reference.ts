/** References to an object of any kind. Source: kubernetes v1.36 pkg/apis/networking/validation/validation.go */
import { child, type FieldError, required } from "../../api/meta/field-error.ts";
import { pathSegmentName } from "../../api/meta/names.ts";
import { isDns1123Subdomain, problems } from "../core/checks/values.ts";

interface TypedReference { readonly apiGroup?: string | null | undefined; readonly kind: string; readonly name: string }

export function* validateTypedReference(path: string, { apiGroup, kind, name }: TypedReference): Iterable<FieldError> {
  if (apiGroup != null) yield* isDns1123Subdomain(child(path, "apiGroup"), apiGroup);
  yield* validateSegment(child(path, "kind"), kind);
  yield* validateSegment(child(path, "name"), name);
}

/** What can stand in a path, and has to. */
export function* validateSegment(path: string, value: string | undefined): Iterable<FieldError> {
  if (!value) yield required(path);
  else yield* problems(path, value, pathSegmentName(value));
}
