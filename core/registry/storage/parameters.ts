/** Provisioners and what they are told: of StorageClasses and VolumeAttributesClasses. Source: kubernetes v1.36 pkg/apis/storage/validation/validation.go */
import { type FieldError, invalid, required, tooLong } from "../../api/meta/field-error.ts";
import { byteLength } from "../../api/meta/byte-length.ts";
import { isQualifiedName } from "../core/checks/values.ts";

const COUNT_MAX = 512;
const BYTES_MAX = 256 * 1024;

export function* validateProvisioner(path: string, name: string | undefined): Iterable<FieldError> {
  if (!name) yield required(path);
  else yield* isQualifiedName(path, name.toLowerCase());
}

export function* validateParameters(path: string, parameters: Readonly<Record<string, string>> = {}, { mayBeEmpty }: { readonly mayBeEmpty: boolean }): Iterable<FieldError> {
  const entries = Object.entries(parameters);
  if (entries.length > COUNT_MAX) { yield tooLong(path, COUNT_MAX); return; }
  let bytes = 0;
  for (const [name, value] of entries) {
    if (name === "") yield invalid(path, name, "field can not be empty.");
    bytes += byteLength(name) + byteLength(value);
  }
  if (bytes > BYTES_MAX) yield tooLong(path, BYTES_MAX);
  if (!mayBeEmpty && entries.length === 0) yield required(path, "must contain at least one key/value pair");
}
