/**
 * What was a field once and is an annotation of apps/v1: a number, written anew as it is read.
 *
 * Source: kubernetes v1.36 pkg/apis/apps/v1/conversion.go
 */
import { parseGoInteger } from "../../api/meta/go-integer.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { badRequest } from "../../api/meta/status-error.ts";

export interface NumberAnnotation {
  readonly kind: string;
  readonly name: string;
  /** Ahead of why a text is no number. */
  because?(text: string): string;
}

/** Undefined without one. Throws a 400 for one that is no number, as reading it into the field does upstream. */
export function numberIn({ metadata }: Readonly<ApiObject>, { kind, name, because }: NumberAnnotation): bigint | undefined {
  const text = metadata.annotations?.[name];
  if (text === undefined) return undefined;
  try {
    return parseGoInteger(text);
  } catch (error) {
    throw badRequest(`${kind} in version "v1" cannot be handled as a ${kind}: ${because?.(text) ?? ""}${(error as Error).message}`, error);
  }
}

/** Undefined: there is none. Mutates. */
export function setNumber({ metadata }: ApiObject, { name }: NumberAnnotation, value: bigint | undefined): void {
  const text = value === undefined ? undefined : String(value);
  if (metadata.annotations?.[name] === text) return;
  const { [name]: _, ...others } = metadata.annotations ?? {};
  if (text !== undefined) metadata.annotations = { ...metadata.annotations, [name]: text };
  else if (Object.keys(others).length > 0) metadata.annotations = others;
  else delete metadata.annotations;
}
