/** The names of field managers: printable, and short. Source: kubernetes v1.36 apimachinery/pkg/apis/meta/v1/validation ValidateFieldManager */
import { type FieldError, invalid, tooLong } from "./field-error.ts";

const FIELD_MANAGER_BYTES_MAX = 128;
const UNPRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u;

export function fieldManagerErrors(name: string, path: string): FieldError[] {
  const errors = Buffer.byteLength(name) > FIELD_MANAGER_BYTES_MAX ? [tooLong(path, FIELD_MANAGER_BYTES_MAX)] : [];
  if (!UNPRINTABLE.test(name)) return errors;
  let at = 0;
  for (const character of name) {
    if (UNPRINTABLE.test(character)) {
      const code = character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
      errors.push(invalid(path, name, `invalid character U+${code} (at position ${at})`));
    }
    at += Buffer.byteLength(character);
  }
  return errors;
}
