/** Paths inside volumes: relative, never upwards. Source: kubernetes v1.36 pkg/apis/core/validation/validation.go */
import { type FieldError, invalid } from "../../../api/meta/field-error.ts";

export function* noBacksteps(path: string, target: string): Iterable<FieldError> {
  if (target.split("/").includes("..")) yield invalid(path, target, "must not contain '..'");
}

export function* localDescending(path: string, target: string): Iterable<FieldError> {
  if (target.startsWith("/")) yield invalid(path, target, "must be a relative path");
  yield* noBacksteps(path, target);
}

/** Names that begin with ".." are how atomic updates of a volume are stored. */
export function* localNonReserved(path: string, target: string): Iterable<FieldError> {
  yield* localDescending(path, target);
  if (target.startsWith("..") && !target.startsWith("../")) yield invalid(path, target, "must not start with '..'");
}

const FILE_MODE_MAX = 0o777;

export function* fileMode(path: string, mode: number | undefined): Iterable<FieldError> {
  if (mode !== undefined && (mode > FILE_MODE_MAX || mode < 0)) yield invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive");
}
