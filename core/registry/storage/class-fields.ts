/** What StorageClasses and VolumeAttributesClasses say alike: whose they are, and with what parameters. Source: kubernetes v1.36 pkg/apis/storage/validation/validation.go */
import { byteLength } from "../../api/meta/byte-length.ts";
import { type FieldError, invalid, required, tooLong } from "../../api/meta/field-error.ts";
import { isQualifiedName } from "../core/checks/values.ts";

const PARAMETERS_MAX = 512;
const PARAMETERS_BYTES_MAX = 256 * 1024;

export function* validateProvisioner(path: string, name: string | undefined): Iterable<FieldError> {
  if (!name) yield required(path);
  else yield* isQualifiedName(path, name.toLowerCase());
}

export function* validateParameters(path: string, parameters: Readonly<Record<string, string>> = {}, { mayBeEmpty }: { readonly mayBeEmpty: boolean }): Iterable<FieldError> {
  const all = Object.entries(parameters);
  if (all.length > PARAMETERS_MAX) { yield tooLong(path, PARAMETERS_MAX); return; }
  for (const [name] of all) if (name === "") yield invalid(path, name, "field can not be empty.");
  if (totalBytes(parameters) > PARAMETERS_BYTES_MAX) yield tooLong(path, PARAMETERS_BYTES_MAX);
  if (!mayBeEmpty && all.length === 0) yield required(path, "must contain at least one key/value pair");
}

export function totalBytes(map: Readonly<Record<string, string>>): number {
  return Object.entries(map).reduce((sum, [name, value]) => sum + byteLength(name) + byteLength(value), 0);
}
